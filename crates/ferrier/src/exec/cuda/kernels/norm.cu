// The sum of the squares of an array, without overflow or underflow.

#define WORKERS 256

// Runs of numbers without gaps: how many along each side, and how far apart, the fastest first.
struct Sides {
    Word run, count[4], stride[4];
};

// Squares of numbers of ordinary size, of small and of large ones, which are lifted and lowered by 2^600; and whether a
// number is not finite.
struct Squares {
    double mid, small, large, odd;
};

// 2^600, 2^400 and their inverses.
constexpr double LIFT = 4.149515568880993e180, HIGH = 2.5822498780869086e120;
constexpr double LOWER = 1 / LIFT, LOW = 1 / HIGH;

INLINE double sum_of(double x, double *sums) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffff, x, far);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) x += sums[i];
    __syncthreads();
    return x;
}

extern "C" __global__ void __launch_bounds__(WORKERS) sum_squares(const REAL *array, Sides sides, Word total, Squares *out) {
    __shared__ double sums[WORKERS / 32];
    Squares own = {0, 0, 0, 0};
    for (Word i = Word(blockIdx.x) * WORKERS + threadIdx.x; i < total; i += Word(gridDim.x) * WORKERS) {
        Word outer = i / sides.run, at = i - outer * sides.run;
#pragma unroll
        for (int side = 0; side < 4; side++) {
            Word next = sides.count[side] == 1 ? outer : outer / sides.count[side];
            at += (outer - next * sides.count[side]) * sides.stride[side];
            outer = next;
        }
        double x = fabs(double(array[at]));
        if (!(x <= 1.7976931348623157e308))
            own.odd = 1;
        else if (x > HIGH)
            own.large = __fma_rn(x * LOWER, x * LOWER, own.large);
        else if (x < LOW)
            own.small = __fma_rn(x * LIFT, x * LIFT, own.small);
        else
            own.mid = __fma_rn(x, x, own.mid);
    }
    Squares all = {sum_of(own.mid, sums), sum_of(own.small, sums), sum_of(own.large, sums), sum_of(own.odd, sums)};
    if (threadIdx.x == 0) out[blockIdx.x] = all;
}
