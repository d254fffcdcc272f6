// What all kernels share. REAL is float or double; sources are put one after
// the other and compiled at run time, with their sizes as macros.

#define INLINE __device__ __forceinline__

typedef unsigned long long Word;

// A complex number: one load, one store.
struct alignas(2 * sizeof(REAL)) Pair {
    REAL x, y;
};

INLINE Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
INLINE Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
INLINE Pair operator*(Pair a, Pair b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
INLINE Pair operator*(Pair a, REAL by) { return {a.x * by, a.y * by}; }
INLINE Pair operator*(REAL by, Pair a) { return a * by; }
INLINE Pair swapped(Pair a) { return {a.y, a.x}; }
