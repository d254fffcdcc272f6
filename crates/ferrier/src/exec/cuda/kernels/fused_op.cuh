// What is done to the modes of a line while they are in registers: the formula
// of an operator, or the factors between the two halves of a long transform.
//
// ALONG    the axis of the lines         ACROSS   the axis along which they lie side by side
// TABLES   numbers of an entry of the tables of each axis; 0: there are none
// TWIDDLE  1: factors of a long transform instead of the formula
// KEPT     runs of modes that there are of a line; the others are zero

#define CONSTANTS 4

#if TABLES == 2
typedef Pair Entry;
#else
typedef REAL Entry;
#endif

// Modes at..at + len of the array are elements line..line + len of a transformed line.
struct Kept {
    int at, line, len, pad;
};

// Handed over with every launch.
struct FusedOp {
    const Entry *tables[3];
    Kept kept[2];
    REAL constants[CONSTANTS];
    // Times this first.
    double scale;
    // Of a long transform; negative: back.
    long long points;
    // The first array of those that are launched.
    int batch, pad;
};

INLINE Pair conjugate(Pair a) { return {a.x, -a.y}; }

#if TWIDDLE
// e^(-2 pi i m / n) for the product m of the indices along the two axes.
INLINE Pair operate(Pair z, const FusedOp &op, const int (&index)[3], int) {
    long long n = op.points < 0 ? -op.points : op.points, m = (long long)index[1] * index[2];
    // From minus half a turn to half a turn, where angles are most exact.
    if (2 * m > n) m -= n;
    double sine, cosine;
    sincospi((op.points < 0 ? 2.0 : -2.0) * double(m) / double(n), &sine, &cosine);
    return z * Pair{REAL(cosine), REAL(sine)};
}
#else
INLINE Pair formula(Pair z, Entry a, Entry b, Entry c, const int (&index)[3], int batch, const REAL (&p)[CONSTANTS]);

INLINE Pair operate(Pair z, const FusedOp &op, const int (&index)[3], int batch) {
    Entry entries[3] = {};
#if TABLES
#pragma unroll
    for (int axis = 0; axis < 3; axis++) entries[axis] = op.tables[axis][index[axis]];
#endif
    return formula(z, entries[0], entries[1], entries[2], index, batch, op.constants);
}
#endif

// What becomes of element k of a line that lies at these indices across.
INLINE Pair fused(Pair z, int k, const int (&across)[2], int batch, const FusedOp &op) {
    int at = -1;
#pragma unroll
    for (int r = 0; r < KEPT; r++) {
        int from = k - op.kept[r].line;
        at = from >= 0 && from < op.kept[r].len ? op.kept[r].at + from : at;
    }
    if (at < 0) return {0, 0};
    int index[3];
    index[ALONG] = at;
    index[ACROSS] = across[0];
    index[3 - ALONG - ACROSS] = across[1];
    return operate(z * REAL(op.scale), op, index, op.batch + batch);
}
