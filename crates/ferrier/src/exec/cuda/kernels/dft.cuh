// Transforms of a few points in registers, sign -1. All loops unroll and all
// roots of unity are constants of the compiler.

// cos(2 pi k / n) for 0 <= 8 k <= n by its series: exact to rounding there.
__host__ __device__ constexpr double small_cos(double turn) {
    double a = turn * 6.283185307179586476925286766559, sum = 0, term = 1;
    for (int i = 1; i < 24; i += 2) {
        sum += term;
        term *= -a * a / (i * (i + 1));
    }
    return sum;
}

__host__ __device__ constexpr double small_sin(double turn) {
    double a = turn * 6.283185307179586476925286766559, sum = 0, term = a;
    for (int i = 2; i < 25; i += 2) {
        sum += term;
        term *= -a * a / (i * (i + 1));
    }
    return sum;
}

// cos(2 pi k / n): by octants, so that what is 0, 1 or equal comes out so.
__host__ __device__ constexpr double cosine(int k, int n) {
    k %= n;
    if (2 * k > n) k = n - k;
    if (4 * k > n) return -cosine(n - 2 * k, 2 * n);
    return 8 * k > n ? small_sin((n - 4.0 * k) / (4.0 * n)) : small_cos(k / double(n));
}

__host__ __device__ constexpr double sine(int k, int n) { return cosine((4 * k + 3 * n) % (4 * n), 4 * n); }

template <int R> struct Roots {
    double re[R], im[R];
    __host__ __device__ constexpr Roots() : re(), im() {
        for (int k = 0; k < R; k++) {
            re[k] = cosine(k, R);
            im[k] = -sine(k, R);
        }
    }
};

// Times a root of unity; what multiplies by 0 or 1 vanishes in the compiler.
INLINE Pair turned(Pair a, double re, double im) {
    if (im == 0) return re == 1 ? a : Pair{-a.x, -a.y};
    if (re == 0) return im == -1 ? Pair{a.y, -a.x} : Pair{-a.y, a.x};
    REAL c = REAL(re), s = REAL(im);
    if (re == -im) return {c * (a.x + a.y), c * (a.y - a.x)};
    if (re == im) return {c * (a.x - a.y), c * (a.x + a.y)};
    return {a.x * c - a.y * s, a.x * s + a.y * c};
}

// The first factor of a composite: 4 where it can be, else the smallest.
__host__ __device__ constexpr int factor(int r) {
    if (r % 4 == 0 && r > 4) return 4;
    for (int f = 2; f * f <= r; f++)
        if (r % f == 0) return f;
    return r;
}

template <int R> INLINE void dft(Pair (&x)[R]) {
    constexpr Roots<R> w;
    if constexpr (R == 2) {
        Pair a = x[0];
        x[0] = a + x[1];
        x[1] = a - x[1];
    } else if constexpr (R == 4) {
        Pair a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
        x[0] = a + c;
        x[1] = {b.x + d.y, b.y - d.x};
        x[2] = a - c;
        x[3] = {b.x - d.y, b.y + d.x};
    } else if constexpr (R > 2 && factor(R) == R) {
        // Odd primes: sums and differences of what lies opposite.
        constexpr int H = R / 2;
        Pair sum[H], dif[H], first = x[0];
#pragma unroll
        for (int m = 0; m < H; m++) {
            sum[m] = x[m + 1] + x[R - 1 - m];
            dif[m] = x[m + 1] - x[R - 1 - m];
            x[0] = x[0] + sum[m];
        }
#pragma unroll
        for (int k = 1; k <= H; k++) {
            Pair even = first, odd = {0, 0};
#pragma unroll
            for (int m = 1; m <= H; m++) {
                REAL c = REAL(w.re[k * m % R]), s = REAL(w.im[k * m % R]);
                even = {even.x + c * sum[m - 1].x, even.y + c * sum[m - 1].y};
                odd = {odd.x + s * dif[m - 1].x, odd.y + s * dif[m - 1].y};
            }
            x[k] = {even.x - odd.y, even.y + odd.x};
            x[R - k] = {even.x + odd.y, even.y - odd.x};
        }
    } else if constexpr (R > 2) {
        constexpr int A = factor(R), B = R / A;
        Pair y[R];
#pragma unroll
        for (int b = 0; b < B; b++) {
            Pair part[A];
#pragma unroll
            for (int a = 0; a < A; a++) part[a] = x[B * a + b];
            dft<A>(part);
#pragma unroll
            for (int a = 0; a < A; a++) y[a * B + b] = turned(part[a], w.re[a * b], w.im[a * b]);
        }
#pragma unroll
        for (int a = 0; a < A; a++) {
            Pair part[B];
#pragma unroll
            for (int b = 0; b < B; b++) part[b] = y[a * B + b];
            dft<B>(part);
#pragma unroll
            for (int b = 0; b < B; b++) x[a + A * b] = part[b];
        }
    }
}
