// Bytes back to chunks of numbers.

// Blocks that should fit on a multiprocessor (measured on an H200).
#define DECODERS 8

// ---- A whole chunk, whose bytes lie at a multiple of two and whose numbers at one of 16 bytes.

// COUNT times 32 bits, one after the other, that lie at an even place; no byte after them is touched.
template <int COUNT> INLINE void get(unsigned (&pieces)[COUNT], const unsigned char *at) {
    bool further = reinterpret_cast<Word>(at) % 4 != 0;
    const unsigned *words = reinterpret_cast<const unsigned *>(at - (further ? 2 : 0));
    unsigned last = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) pieces[i] = words[i];
    if (further) last = *reinterpret_cast<const unsigned short *>(words + COUNT);
    unsigned by = further ? 16 : 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) pieces[i] = __funnelshift_r(pieces[i], i + 1 < COUNT ? pieces[i + 1] : last, by);
}

// All pieces of a thread, those that are neighbours together.
INLINE void get_pieces(unsigned (&pieces)[LANES][PER + 2], const unsigned char *packed, const Share &share) {
    // Of a 64-bit word both halves, of VECTOR lanes.
    constexpr int HALVES = BITS == 64 && PER % 2 == 0 ? 2 : 1, NEAR = BITS == 64 && HALVES == 1 ? 1 : VECTOR;
#pragma unroll
    for (int p = 0; p < PER; p += HALVES)
#pragma unroll
        for (int l = 0; l < LANES; l += NEAR) {
            unsigned some[HALVES * NEAR];
            get(some, packed + share.piece(p, share.lane(l)));
#pragma unroll
            for (int i = 0; i < HALVES * NEAR; i++) pieces[l + i / HALVES][p + i % HALVES] = some[i];
        }
}

// The code that begins at a bit that the compiler knows; more bits may follow it.
INLINE Code code_at(const unsigned (&pieces)[PER + 2], int bit) {
    int p = bit / 32, off = bit % 32;
#if WIDTH <= 32
    return off + WIDTH <= 32 ? pieces[p] >> off : __funnelshift_r(pieces[p], pieces[p + 1], off);
#else
    Word low = Word(pieces[p + 1]) << 32 | pieces[p];
    return off + WIDTH <= 64 ? low >> off : low >> off | Word(pieces[p + 2]) << (64 - off);
#endif
}

INLINE void read_codes(REAL *to, const unsigned (&pieces)[LANES][PER + 2], const Share &share, const Head &head,
                       const unsigned char *from) {
    to += share.row() * ROW + share.lane(0);
#if !BLOCK
    REAL step = power(-scale(head));
#endif
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#if BLOCK
        REAL step = plain_step(head, from[2 + share.row() + r]);
#endif
#pragma unroll
        for (int l = 0; l < LANES; l += VECTOR) {
            Numbers some;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
#if BLOCK
                some.each[v] = decode_plain(code_at(pieces[l + v], r * WIDTH), step);
#else
                some.each[v] = decode_plain(code_at(pieces[l + v], r * WIDTH), head, step);
#endif
            }
            *reinterpret_cast<Vector *>(to + r * ROW + l * SETS) = some.all;
        }
    }
}

// Decodes a chunk in which nothing was lifted or is special; others are left to `decode_some`.
INLINE bool decode_whole(REAL *to, const unsigned char *from) {
    constexpr Layout layout(CHUNK);
    Share share;
    Head head = read_head(from);
    if (head.lifted || head.special || !is_plain(head)) return false;
    unsigned pieces[LANES][PER + 2] = {};
    get_pieces(pieces, from + layout.packed, share);
    read_codes(to, pieces, share, head, from);
    return true;
}

// ---- The last chunk of a part, one that is not plain, or lies crookedly.

// Bit `at` of a stream of bytes.
INLINE WORD stream_bits(const unsigned char *bytes, unsigned at, int width) {
    WORD made = 0;
    for (int b = 0; b < width; b++) made |= WORD(bytes[(at + b) / 8] >> ((at + b) % 8) & 1) << b;
    return made;
}

INLINE WORD fetch(const Layout &layout, const unsigned char *from, unsigned at) {
    const unsigned char *packed = from + layout.packed, *rest = from + layout.rest();
    if (at >= layout.rows * ROW) return stream_bits(rest, ROW * layout.odd + (at - layout.rows * ROW) * WIDTH, WIDTH);
    unsigned lane = at % ROW, bit = at / ROW * WIDTH, w = bit / BITS, off = bit % BITS;
    if (w >= layout.whole) return stream_bits(rest, lane * layout.odd + bit - layout.whole * BITS, WIDTH);
    int here = BITS - int(off);
    WORD made = got(packed + (w * ROW + lane) * (BITS / 8)) >> off;
    if (here < WIDTH) {
        WORD next = w + 1 < layout.whole ? got(packed + ((w + 1) * ROW + lane) * (BITS / 8))
                                         : stream_bits(rest, lane * layout.odd, WIDTH - here);
        made |= next << here;
    }
    return made & mask(WIDTH);
}

INLINE void decode_some(REAL *to, const unsigned char *from, unsigned count) {
    Layout layout(count);
    Head head = read_head(from);
    REAL lower = power(head.lifted ? -LIFT : 0);
    for (unsigned at = threadIdx.x; at < count; at += WORKERS) {
        WORD code = fetch(layout, from, at);
#if BLOCK
        to[at] = decode(code, from[2 + at / ROW], head, lower);
#else
        to[at] = decode(code, head, lower);
#endif
    }
}

extern "C" __global__ void __launch_bounds__(WORKERS, DECODERS)
    decode_chunks(const Part *parts, int count, REAL *__restrict__ values, const unsigned char *__restrict__ bytes,
                  Word first) {
    Word chunk = first + blockIdx.x;
    Part part = find(parts, count, chunk);
    unsigned numbers = length(part, chunk);
    REAL *to = values + part.stage + chunk * CHUNK;
    const unsigned char *from = bytes + part.bytes + chunk * SLOT;
    bool whole = numbers == CHUNK && reinterpret_cast<Word>(from) % 2 == 0 && reinterpret_cast<Word>(to) % 16 == 0;
    if (!whole || !decode_whole(to, from)) decode_some(to, from, numbers);
}
