// Chunks of numbers to bytes, and what is lost of each.

// Of a chunk: the sum of the squares of what was lost is at most `sum` times 4^exponent. The host reads bytes of this run
// when `run` is its number.
struct Record {
    double sum, exponent;
    Word run, unused;
};

// 2^k, for numbers that are neither too small nor too large.
INLINE double two_to(int k) { return __longlong_as_double((long long)(k + 1023) << 52); }

// What a thread knows of the loss of its chunk: squares in units of 4^exponent, and whether there is any.
struct Loss {
    double sum = 0, weight = 1;
    int exponent = 0;
    bool some = false;

    // Where the largest magnitude is below 2^(exponent + 1).
    INLINE void unit(int top) {
        exponent = min(max(top, -1000), 1000);
        weight = two_to(-exponent);
    }
    INLINE void add(REAL x, REAL decoded) {
        double lost = double(x) - double(decoded);
        some |= lost != 0;
        lost *= weight;
        sum = __fma_rn(lost, lost, sum);
    }
};

// Writes the record of a chunk that is complete.
INLINE void record(const Loss &loss, Record *records, Word run, double *sums) {
    if (!records) return;
    double sum = loss.sum;
#pragma unroll
    for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffff, sum, far);
    // What this thread has written comes before what thread 0 writes last.
    if (run) __threadfence_system();
    bool some = __syncthreads_or(loss.some);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    sum = 0;
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) sum += sums[i];
    // Up: fewer than 100 roundings of half an epsilon each; squares that were too small for a number are far below 2^-900.
    Record &mine = records[blockIdx.x];
    mine.sum = some ? sum * (1 + two_to(-40)) + two_to(-900) : 0;
    mine.exponent = loss.exponent;
    if (!run) return;
    __threadfence_system();
    *reinterpret_cast<volatile Word *>(&mine.run) = run;
}

// Blocks that should fit on a multiprocessor (measured on an H200).
#if BITS == 64
#define ENCODERS 4
#else
#define ENCODERS 8
#endif

// The base of a chunk whose largest magnitude has this exponent.
INLINE int base_of(int field) {
#if BLOCK
    return field;
#else
    constexpr int last = (1 << SMALL_EXPONENT) - 3;
    return SMALL_EXPONENT == EXPONENT || field < last ? 0 : field - last;
#endif
}

INLINE void write_head(const Head &head, unsigned char *image) {
    if (threadIdx.x < 2) {
        unsigned bits = unsigned(head.field) | unsigned(head.lifted) << 14 | unsigned(head.special) << 15;
        image[threadIdx.x] = (unsigned char)(bits >> (8 * threadIdx.x));
    }
}

// The head of a chunk of which this thread has seen the largest finite magnitude, and whether all are finite.
INLINE Head judge(WORD &top, bool odd, WORD *judged, REAL &lift) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) top = max(top, __shfl_xor_sync(0xffffffff, top, far));
    // The others have seen what was there.
    __syncthreads();
    if (threadIdx.x % 32 == 0) judged[threadIdx.x / 32] = top;
    bool special = __syncthreads_or(odd);
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) top = max(top, judged[i]);
    bool lifted = top > 0 && top < WORD(LOW) << MANTISSA;
    lift = power(lifted ? LIFT : 0);
    int field = top == 0 ? BIAS : int(word(product(number(top), lift)) >> MANTISSA);
    return {base_of(field), lifted, special};
}

// ---- A whole chunk, whose numbers lie at multiples of 16 bytes and whose bytes at a multiple of two.

INLINE void load(REAL (&x)[ROWS][LANES], const REAL *from, const Share &share) {
    from += share.row() * ROW + share.lane(0);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int l = 0; l < LANES; l += VECTOR) {
            Numbers some;
            some.all = *reinterpret_cast<const Vector *>(from + r * ROW + l * SETS);
#pragma unroll
            for (int v = 0; v < VECTOR; v++) x[r][l + v] = some.each[v];
        }
}

// The upper 16 bits of the largest magnitude of each row: two rows in a word.
#if BLOCK
constexpr int NARROW = MANTISSA - (BITS - 16);
INLINE void row_tops(const REAL (&x)[ROWS][LANES], unsigned (&tops)[ROWS / 2]) {
#pragma unroll
    for (int r = 0; r < ROWS / 2; r++) {
        unsigned top = 0;
#pragma unroll
        for (int l = 0; l < LANES; l++)
            top = __vmaxu2(top, __byte_perm(upper(x[2 * r][l]), upper(x[2 * r + 1][l]), 0x7632) & 0x7fff7fff);
#pragma unroll
        for (int far = SETS / 2; far > 0; far /= 2) top = __vmaxu2(top, __shfl_xor_sync(0xffffffff, top, far));
        tops[r] = top;
    }
}
#endif

// The largest exponent of the chunk: of all its threads, given what each has found.
INLINE int top_field(unsigned most, int shift, WORD *judged) {
    most = __reduce_max_sync(0xffffffff, most);
    if (threadIdx.x % 32 == 0) judged[threadIdx.x / 32] = most;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) most = max(most, unsigned(judged[i]));
    return int(most >> shift);
}

// Adds a code to the pieces of its lane, at a place that the compiler knows.
INLINE void pack(unsigned (&pieces)[PER + 2], int bit, Code code) {
    int p = bit / 32, off = bit % 32;
    pieces[p] |= unsigned(code << off);
    if (off + WIDTH > 32) pieces[p + 1] |= unsigned(code >> (32 - off));
    if (off + WIDTH > 64) pieces[p + 2] |= unsigned(code >> (64 - off));
}

INLINE void write_codes(const REAL (&x)[ROWS][LANES], const unsigned (&tops)[ROWS / 2], const Share &share, const Head &head,
                        unsigned char *image, Loss &loss) {
    constexpr Layout layout(CHUNK);
    unsigned char *packed = image + layout.packed;
    unsigned pieces[LANES][PER + 2] = {};
#if !BLOCK
    REAL factor = power(scale(head)), step = power(-scale(head));
#endif
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#if BLOCK
        int depth = depth_of(int((r % 2 ? tops[r / 2] >> 16 : tops[r / 2] & 0xffff) >> NARROW), head);
        REAL factor = plain_factor(head, depth), step = plain_step(head, depth);
        if (share.set == 0) image[2 + share.row() + r] = (unsigned char)(depth);
#endif
#pragma unroll
        for (int l = 0; l < LANES; l++) {
#if BLOCK
            Code code = encode_plain(x[r][l], factor);
            loss.add(x[r][l], decode_plain(code, step));
#else
            Code code = encode_plain(x[r][l], head, factor);
            loss.add(x[r][l], decode_plain(code, head, step));
#endif
            pack(pieces[l], r * WIDTH, code);
        }
        // What is full.
#pragma unroll
        for (int p = r * WIDTH / 32; p < (r + 1) * WIDTH / 32; p++)
#pragma unroll
            for (int l = 0; l < LANES; l++)
                *reinterpret_cast<unsigned *>(packed + share.piece(p, share.lane(l))) = pieces[l][p];
    }
}

struct alignas(16) Line {
    unsigned a, b, c, d;
};

// Bytes to their place; they lie there modulo 16, or two bytes further.
INLINE void copy(unsigned char *to, const unsigned char *from, unsigned bytes) {
    unsigned phase = unsigned(reinterpret_cast<Word>(to) % 16), head = min((16 - phase) % 16, bytes);
    unsigned lines = (bytes - head) / 16, done = head + 16 * lines;
    bool further = (reinterpret_cast<Word>(from) - phase) % 4 != 0;
    const unsigned char *start = from + head - (further ? 2 : 0);
    for (unsigned i = threadIdx.x; i < lines; i += WORKERS) {
        Line line = reinterpret_cast<const Line *>(start)[i];
        if (further) {
            unsigned next = reinterpret_cast<const unsigned *>(start)[4 * i + 4];
            line = {__funnelshift_r(line.a, line.b, 16), __funnelshift_r(line.b, line.c, 16),
                    __funnelshift_r(line.c, line.d, 16), __funnelshift_r(line.d, next, 16)};
        }
        reinterpret_cast<Line *>(to + head)[i] = line;
    }
    if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
    if (done + threadIdx.x < bytes) to[done + threadIdx.x] = from[done + threadIdx.x];
}

// Is every number of the chunk zero?
INLINE bool is_zero(const REAL (&x)[ROWS][LANES]) {
    WORD any = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int l = 0; l < LANES; l++) any |= word(x[r][l]) & MAGNITUDE;
    return !__syncthreads_or(any != 0);
}

// Encodes a chunk that is plain: all numbers are finite, the largest is neither so small that it is lifted nor so large that
// it may be rounded up to infinity; or all are zero. Others are left to `encode_some`.
INLINE bool encode_whole(const REAL *from, unsigned char *to, unsigned char *raw, WORD *judged, Loss &loss) {
    constexpr Layout layout(CHUNK);
    unsigned phase = unsigned(reinterpret_cast<Word>(to) % 16);
    // Pieces lie at multiples of four.
    unsigned char *image = raw + phase + (phase + layout.packed) % 4;
    Share share;
    REAL x[ROWS][LANES];
    load(x, from, share);
    unsigned tops[ROWS / 2] = {}, most = 0;
#if BLOCK
    row_tops(x, tops);
#pragma unroll
    for (int r = 0; r < ROWS / 2; r++) most = __vmaxu2(most, tops[r]);
    int field = top_field(max(most >> 16, most & 0xffff), NARROW, judged);
#else
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int l = 0; l < LANES; l++) most = max(most, upper(x[r][l]) & 0x7fffffff);
    int field = top_field(most, UPPER, judged);
#endif
    if (field == 0 && is_zero(x)) field = BIAS;
    if (field < LOW || field >= (1 << EXPONENT) - 2) return false;
    Head head = {base_of(field), false, false};
    write_head(head, image);
    loss.unit(field - BIAS);
    write_codes(x, tops, share, head, image, loss);
    __syncthreads();
    copy(to, image, layout.bytes());
    return true;
}

// ---- The last chunk of a part, one that is not plain, or lies crookedly: few, so codes are made anew wherever one is wanted.

struct Chunk {
    const REAL *from;
    Layout layout;
    Head head;
    REAL lift;
    const unsigned char *image;

    INLINE Code code(unsigned at) const {
#if BLOCK
        return Code(encode(from[at], image[2 + at / ROW], head, lift));
#else
        return Code(encode(from[at], head, lift));
#endif
    }

    // Word w of a lane.
    INLINE WORD word_of(unsigned w, unsigned lane) const {
        unsigned bit = w * BITS, row = bit / WIDTH;
        int by = int(row * WIDTH) - int(bit);
        WORD made = WORD(code(row * ROW + lane)) >> -by;
        for (by += WIDTH; by < BITS; by += WIDTH) made |= WORD(code(++row * ROW + lane)) << by;
        return made;
    }

    // Bit `at` of what follows the whole words.
    INLINE unsigned rest_bit(unsigned at) const {
        if (at < ROW * layout.odd) {
            unsigned lane = at / layout.odd, bit = layout.whole * BITS + at % layout.odd;
            return unsigned(code(bit / WIDTH * ROW + lane) >> (bit % WIDTH)) & 1;
        }
        at -= ROW * layout.odd;
        unsigned which = layout.rows * ROW + at / WIDTH;
        return which < layout.count ? unsigned(code(which) >> (at % WIDTH)) & 1 : 0;
    }
};

INLINE void encode_some(const REAL *from, unsigned char *to, unsigned count, WORD *judged, Loss &loss) {
    Chunk chunk = {from, Layout(count), {}, 1, to};
    const Layout &layout = chunk.layout;
    WORD top = 0;
    bool odd = false;
    for (unsigned i = threadIdx.x; i < count; i += WORKERS) {
        WORD size = word(from[i]) & MAGNITUDE;
        odd |= size >= INFINITE;
        if (size < INFINITE) top = max(top, size);
    }
    chunk.head = judge(top, odd, judged, chunk.lift);
    write_head(chunk.head, to);
#if BLOCK
    for (unsigned r = threadIdx.x; r * ROW < count; r += WORKERS) {
        WORD top = 0;
        for (unsigned at = r * ROW; at < min(count, (r + 1) * ROW); at++) top = max(top, word(from[at]) & MAGNITUDE);
        to[2 + r] = (unsigned char)(depth_of(top, chunk.head, chunk.lift));
    }
    __syncthreads();
#endif
    for (unsigned i = threadIdx.x; i < layout.whole * ROW; i += WORKERS)
        put(to + layout.packed + i * (BITS / 8), chunk.word_of(i / ROW, i % ROW));
    for (unsigned i = threadIdx.x; i < layout.bytes() - layout.rest(); i += WORKERS) {
        unsigned made = 0;
        for (int b = 0; b < 8; b++) made |= chunk.rest_bit(8 * i + b) << b;
        to[layout.rest() + i] = (unsigned char)(made);
    }
    if (top > 0) loss.unit(int(top >> MANTISSA) - BIAS);
    REAL lower = power(chunk.head.lifted ? -LIFT : 0);
    for (unsigned at = threadIdx.x; at < count; at += WORKERS) {
#if BLOCK
        loss.add(from[at], decode(chunk.code(at), to[2 + at / ROW], chunk.head, lower));
#else
        loss.add(from[at], decode(chunk.code(at), chunk.head, lower));
#endif
    }
    // Nothing is known of what is not finite.
    if (chunk.head.special) loss.sum = two_to(1023) * 4, loss.some = true;
}

extern "C" __global__ void __launch_bounds__(WORKERS, ENCODERS)
    encode_chunks(const Part *parts, int count, const REAL *values, unsigned char *bytes, Record *records, Word run) {
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ WORD judged[WORKERS / 32];
    __shared__ double sums[WORKERS / 32];
    Word chunk = blockIdx.x;
    Part part = find(parts, count, chunk);
    unsigned numbers = length(part, chunk);
    const REAL *from = values + part.stage + chunk * CHUNK;
    unsigned char *to = bytes + part.bytes + chunk * SLOT;
    // Parts begin at even places, so whole chunks do.
    bool whole = numbers == CHUNK && reinterpret_cast<Word>(to) % 2 == 0 && reinterpret_cast<Word>(from) % 16 == 0;
    Loss loss;
    if (!whole || !encode_whole(from, to, raw, judged, loss)) {
        loss = Loss();
        encode_some(from, to, numbers, judged, loss);
    }
    record(loss, records, run, sums);
}
