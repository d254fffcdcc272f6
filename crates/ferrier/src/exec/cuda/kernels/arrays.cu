// Small arrays along all their axes: a block has an array in shared memory, a thread a line in registers.
//
// N0 N1 N2  points of the axes; 1 where one is not transformed and has one point
// KIND      0 complex, 1 real to complex (axis 2 first), 2 complex to real (axis 2 last)
// ORDER     the axes in the order of the transforms, AXES of them
// SIZE      threads of a block
// BLOCKS    that should fit on a multiprocessor

// The first element, and distances, in numbers.
struct End {
    Word start, step[3], batch;
};

struct Ends {
    End from, to;
};

constexpr int POINTS[] = {N0, N1, N2};
// Complex elements of a row, and numbers of a row of the real side.
constexpr int ROW = KIND ? N2 / 2 + 1 : N2;
// Rows of an odd length: neighbouring threads meet in no bank.
constexpr int PITCH = ROW | 1;

template <int AXIS> __host__ __device__ constexpr int pitch() {
    return AXIS == 0 ? N1 * PITCH : AXIS == 1 ? PITCH : 1;
}

// The first element of line `l` along an axis.
template <int AXIS> INLINE unsigned line(unsigned l) {
    if constexpr (AXIS == 2) return l * PITCH;
    if constexpr (AXIS == 1) return l / ROW * (N1 * PITCH) + l % ROW;
    return l / ROW * PITCH + l % ROW;
}

template <int AXIS> __host__ __device__ constexpr unsigned lines() {
    return AXIS == 2 ? N0 * N1 : AXIS == 1 ? N0 * ROW : N1 * ROW;
}

// All lines along an axis, each where it is.
template <int AXIS> INLINE void transform(Pair *shared) {
    constexpr int N = POINTS[AXIS], STEP = pitch<AXIS>();
    for (unsigned l = threadIdx.x; l < lines<AXIS>(); l += SIZE) {
        Pair *first = shared + line<AXIS>(l);
        REAL *row = reinterpret_cast<REAL *>(first);
        Pair x[N];
        if constexpr (AXIS == 2 && KIND == 1) {
#pragma unroll
            for (int k = 0; k < N; k++) x[k] = {row[k], 0};
        } else if constexpr (AXIS == 2 && KIND == 2) {
            // Elements are swapped, as for all backward transforms; the other half are the conjugates.
#pragma unroll
            for (int k = 0; k < N; k++) {
                Pair value = swapped(first[2 * k > N ? N - k : k]);
                if (2 * k > N) value.y = -value.y;
                if (k == 0 || 2 * k == N) value.y = 0;
                x[k] = swapped(value);
            }
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) x[k] = first[k * STEP];
        }
        dft<N>(x);
        if constexpr (AXIS == 2 && KIND == 2) {
#pragma unroll
            for (int k = 0; k < N; k++) row[k] = x[k].y;
        } else {
#pragma unroll
            for (int k = 0; k < (AXIS == 2 ? ROW : N); k++) first[k * STEP] = x[k];
        }
    }
}

template <int AT = 0> INLINE void transforms(Pair *shared) {
    constexpr int order[] = {ORDER};
    transform<order[AT]>(shared);
    __syncthreads();
    if constexpr (AT + 1 < AXES) transforms<AT + 1>(shared);
}

// Element i of an array whose rows have `ROWS` elements, neighbouring ones along axis 2.
template <int ROWS> INLINE Word place(const End &end, unsigned i) {
    unsigned row = i / ROWS;
    return row / N1 * end.step[0] + row % N1 * end.step[1] + i % ROWS * end.step[2];
}

template <int ROWS> INLINE unsigned slot(unsigned i) { return i / ROWS * PITCH; }

extern "C" __global__ void __launch_bounds__(SIZE, BLOCKS)
    arrays(const __grid_constant__ Ends ends, REAL *input, REAL *output, REAL scale, int swap) {
    extern __shared__ __align__(16) unsigned char raw[];
    Pair *shared = reinterpret_cast<Pair *>(raw);
    const REAL *from = array_at(input, ends.from.start, ends.from.batch, 0, blockIdx.x);
    REAL *to = array_at(output, ends.to.start, ends.to.batch, 0, blockIdx.x);
    if constexpr (KIND == 1) {
        for (unsigned i = threadIdx.x; i < N0 * N1 * N2; i += SIZE)
            reinterpret_cast<REAL *>(shared + slot<N2>(i))[i % N2] = from[place<N2>(ends.from, i)];
    } else {
        for (unsigned i = threadIdx.x; i < N0 * N1 * ROW; i += SIZE) {
            Pair value = *reinterpret_cast<const Pair *>(from + place<ROW>(ends.from, i));
            shared[slot<ROW>(i) + i % ROW] = swap ? swapped(value) : value;
        }
    }
    __syncthreads();
    transforms(shared);
    if constexpr (KIND == 2) {
        for (unsigned i = threadIdx.x; i < N0 * N1 * N2; i += SIZE)
            to[place<N2>(ends.to, i)] = reinterpret_cast<REAL *>(shared + slot<N2>(i))[i % N2] * scale;
    } else {
        for (unsigned i = threadIdx.x; i < N0 * N1 * ROW; i += SIZE) {
            Pair value = shared[slot<ROW>(i) + i % ROW];
            value = swap ? swapped(value) : value;
            *reinterpret_cast<Pair *>(to + place<ROW>(ends.to, i)) = value * scale;
        }
    }
}
