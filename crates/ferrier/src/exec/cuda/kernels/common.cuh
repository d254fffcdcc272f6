// What all kernels share. REAL is float or double (in copies of any elements, PLAIN, a word); sources are put one
// after the other and compiled at run time, with their sizes as macros.

#define INLINE __device__ __forceinline__

typedef unsigned long long Word;
typedef unsigned char Word8;
typedef unsigned short Word16;
typedef unsigned int Word32;

#ifndef PLAIN
// `offset` in array `array` of a batch, `further` arrays on; arrays are `step` apart, or `base` is a list of their addresses:
// its lowest bit is set.
template <class T> INLINE T *array_at(T *base, Word offset, Word step, unsigned array, unsigned further) {
    if (Word(base) & 1) return reinterpret_cast<T *const *>(Word(base) - 1)[array + further] + (offset - array * step);
    return base + offset + further * step;
}

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
#else
template <class T> INLINE T *array_at(T *base, Word offset, Word step, unsigned, unsigned further) {
    return base + offset + further * step;
}
#endif
