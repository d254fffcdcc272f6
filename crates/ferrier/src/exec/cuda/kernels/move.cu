// Boxes from pieces of memory to pieces of memory: one launch for all peers.
//
// UNIT    bytes of what is moved at once: 1, 2, 4, 8 or 16, NUMBERS of them
// TURN    1: source and target have different fastest axes
// SCALED  1: numbers are multiplied by `scale` on the way
// ADDED   1: numbers are added to those of the target

#define WIDTH 256
#define EACH 8
#define TILE 32

// A box; axis 0 is the fastest of the target, axis 1 that of the source (TURN).
// Distances in units; fewer than 2^31 units in all. Axis 3 may be that of a batch, from `array` on.
struct Move {
    Word first;  // Blocks of all boxes before.
    Word from, to, from_step[4], to_step[4];
    Word reciprocal[3];  // Of n[0], n[1], n[2].
    unsigned n[4], from_base, to_base;
    unsigned array, pad;
};

// Members one by one: arrays in structures are not loaded at once.
struct alignas(UNIT) Unit {
    REAL a;
#if NUMBERS > 1
    REAL b;
#endif
#if NUMBERS > 2
    REAL c, d;
#endif
};

INLINE Unit scaled(Unit unit, REAL scale) {
#if SCALED
    unit.a *= scale;
#if NUMBERS > 1
    unit.b *= scale;
#endif
#if NUMBERS > 2
    unit.c *= scale;
    unit.d *= scale;
#endif
#endif
    return unit;
}

INLINE void store(Unit *to, Unit unit, REAL scale) {
    unit = scaled(unit, scale);
#if ADDED
    unit.a = to->a + unit.a;
#if NUMBERS > 1
    unit.b = to->b + unit.b;
#endif
#endif
    *to = unit;
}

// at / n, by the reciprocal that the host has worked out: 2^64 / n, rounded up.
INLINE unsigned quotient(unsigned at, Word reciprocal) {
    return reciprocal ? unsigned(__umul64hi(reciprocal, at)) : at;
}

extern "C" __global__ void __launch_bounds__(WIDTH)
    move(const Move *moves, int count, unsigned char *const *bases, REAL scale) {
    Word block = blockIdx.x;
    int low = 0, high = count;
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (moves[mid].first <= block)
            low = mid;
        else
            high = mid;
    }
    // A copy: what is stored below may be anything to the compiler, the table too.
    const Move box = moves[low];
    const Unit *from = reinterpret_cast<const Unit *>(bases[box.from_base]);
    // A box that is not moved in this run.
    if (!from) return;
    Unit *to = reinterpret_cast<Unit *>(bases[box.to_base]);
    unsigned inside = unsigned(block - box.first), n0 = box.n[0], n1 = box.n[1], n2 = box.n[2];
#if TURN
    __shared__ Unit tile[TILE][TILE + 1];
    unsigned t0 = (n0 + TILE - 1) / TILE, t1 = (n1 + TILE - 1) / TILE;
    unsigned a = inside % t0 * TILE, b = inside / t0 % t1 * TILE, rest = inside / t0 / t1;
    unsigned i2 = rest % n2, i3 = rest / n2, fast = threadIdx.x % TILE, slow = threadIdx.x / TILE;
    from = array_at(from, box.from, box.from_step[3], box.array, i3) + i2 * box.from_step[2];
    to = array_at(to, box.to, box.to_step[3], box.array, i3) + i2 * box.to_step[2];
#pragma unroll
    for (int r = 0; r < TILE; r += WIDTH / TILE) {
        unsigned i0 = a + slow + r, i1 = b + fast;
        if (i0 < n0 && i1 < n1) tile[slow + r][fast] = from[i0 * box.from_step[0] + i1 * box.from_step[1]];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < TILE; r += WIDTH / TILE) {
        unsigned i0 = a + fast, i1 = b + slow + r;
        if (i0 < n0 && i1 < n1)
            store(&to[i0 * box.to_step[0] + i1 * box.to_step[1]], tile[fast][slow + r], scale);
    }
#else
    unsigned total = n0 * n1 * n2 * box.n[3], start = inside * (WIDTH * EACH) + threadIdx.x;
    Unit unit[EACH];
    Unit *target[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned at = start + i * WIDTH;
        if (at < total) {
            unsigned row = quotient(at, box.reciprocal[0]), i0 = at - row * n0;
            unsigned plane = quotient(row, box.reciprocal[1]), i1 = row - plane * n1;
            unsigned i3 = quotient(plane, box.reciprocal[2]), i2 = plane - i3 * n2;
            unit[i] = array_at(from, box.from, box.from_step[3], box.array, i3)
                [i0 * box.from_step[0] + i1 * box.from_step[1] + i2 * box.from_step[2]];
            target[i] = array_at(to, box.to, box.to_step[3], box.array, i3) + i0 * box.to_step[0] + i1 * box.to_step[1] +
                        i2 * box.to_step[2];
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (start + i * WIDTH < total) store(target[i], unit[i], scale);
#endif
}
