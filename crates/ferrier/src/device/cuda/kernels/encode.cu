// Chunks of numbers to bytes.

// Blocks that should fit on a multiprocessor (measured on an H200).
#if BITS == 64
#define ENCODERS 3
#else
#define ENCODERS 5
#endif

// The largest magnitude of the 16 threads around this one. Only its exponent
// counts, which is in its upper half, but for numbers that are lifted.
INLINE WORD largest_near(WORD size, bool lifted) {
#if BITS == 64
    if (!lifted) {
        unsigned high = unsigned(size >> 32);
#pragma unroll
        for (int far = 8; far > 0; far /= 2) {
            unsigned other = __shfl_xor_sync(0xffffffff, high, far);
            high = other > high ? other : high;
        }
        return WORD(high) << 32;
    }
#endif
#pragma unroll
    for (int far = 8; far > 0; far /= 2) {
        WORD other = __shfl_xor_sync(0xffffffff, size, far);
        size = other > size ? other : size;
    }
    return size;
}

// A code to where its bits belong, or to where it waits for the others of its lane.
template <bool FULL> INLINE void keep(WORD code, unsigned at, Code *codes, unsigned char *packed) {
    if constexpr (FULL && PIECES) {
#pragma unroll
        for (int p = 0; p < WIDTH / 16; p++)
            *reinterpret_cast<unsigned short *>(packed + piece(at % ROW, at / ROW * (WIDTH / 16) + p)) =
                (unsigned short)(code >> (16 * p));
    } else {
        codes[at] = Code(code);
    }
}

// The codes of a chunk.
template <bool FULL>
INLINE void write_codes(const REAL (&x)[EACH], const Layout &layout, const Head &head, REAL lift, Code *codes,
                        unsigned char *image) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned at = i * WORKERS + threadIdx.x;
#if BLOCK
        int depth;
        WORD code = encode(x[i], largest_near(word(x[i]) & MAGNITUDE, head.lifted), head, lift, depth);
        if (at % ROW == 0 && (FULL || at < layout.count)) image[2 + at / ROW] = (unsigned char)(depth);
#else
        WORD code = encode<false>(x[i], head, lift);
#endif
        keep<FULL>(code, at, codes, image + layout.packed);
    }
}

// The same for a whole chunk that is plain: all numbers are finite, the largest
// is neither so small that it is lifted nor so large that it may be rounded up to infinity.
INLINE void write_plain(const REAL (&x)[EACH], const Layout &layout, const Head &head, Code *codes, unsigned char *image) {
#if BLOCK
    // Two exponents at a time.
#pragma unroll
    for (int i = 0; i < EACH; i += 2) {
        unsigned both = upper(x[i]) >> UPPER | upper(x[i + 1]) >> UPPER << 16;
#pragma unroll
        for (int far = 8; far > 0; far /= 2) both = __vmaxu2(both, __shfl_xor_sync(0xffffffff, both, far));
#pragma unroll
        for (int side = 0; side < 2; side++) {
            unsigned at = (i + side) * WORKERS + threadIdx.x;
            int depth;
            WORD code = encode_plain(x[i + side], int(side ? both >> 16 : both & 0xffff), head, depth);
            if (at % ROW == 0) image[2 + at / ROW] = (unsigned char)(depth);
            keep<true>(code, at, codes, image + layout.packed);
        }
    }
#else
#pragma unroll
    for (int i = 0; i < EACH; i++)
        keep<true>(encode<true>(x[i], head, REAL(1)), i * WORKERS + threadIdx.x, codes, image + layout.packed);
#endif
}

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

// Looks at every number, and encodes what is not plain.
template <bool FULL>
INLINE void write_any(const REAL (&x)[EACH], const Layout &layout, Code *codes, unsigned char *image, WORD *tops,
                      unsigned &odd_threads) {
    WORD top = 0;
    bool odd = false;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        WORD size = word(x[i]) & MAGNITUDE;
        odd |= size >= INFINITE;
        if (size < INFINITE && size > top) top = size;
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) {
        WORD other = __shfl_xor_sync(0xffffffff, top, far);
        top = other > top ? other : top;
    }
    // The others have seen what was there.
    __syncthreads();
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    if (odd) odd_threads = 1;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) top = tops[i] > top ? tops[i] : top;
    bool lifted = top > 0 && top < WORD(LOW) << MANTISSA;
    REAL lift = power(lifted ? LIFT : 0);
    int field = top == 0 ? BIAS : int(word(product(number(top), lift)) >> MANTISSA);
    Head head = {base_of(field), lifted, odd_threads != 0};
    write_head(head, image);
    write_codes<FULL>(x, layout, head, lift, codes, image);
}

template <bool FULL>
INLINE void encode_chunk(const REAL *from, unsigned char *to, unsigned count, unsigned char *raw, WORD *tops,
                         unsigned &odd_threads) {
    const Layout layout = layout_of<FULL>(count);
    unsigned phase = unsigned(reinterpret_cast<Word>(to) % 16);
    Code *codes = reinterpret_cast<Code *>(raw);
    unsigned char *image = raw + CHUNK * sizeof(Code) + phase, *packed = image + layout.packed;
    REAL x[EACH];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned at = i * WORKERS + threadIdx.x;
        x[i] = FULL || at < layout.count ? from[at] : REAL(0);
    }
    if constexpr (FULL) {
#pragma unroll
        for (int i = 0; i < EACH; i++) most = max(most, upper(x[i]));
        most = __reduce_max_sync(0xffffffff, most);
        if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = most;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WORKERS / 32; i++) most = max(most, unsigned(tops[i]));
    }
    int field = int(most >> UPPER);
    if (FULL && field >= LOW && field < (1 << EXPONENT) - 2) {
        Head head = {base_of(field), false, false};
        write_head(head, image);
        write_plain(x, layout, head, codes, image);
    } else {
        write_any<FULL>(x, layout, codes, image, tops, odd_threads);
    }
    __syncthreads();
    if constexpr (!(FULL && PIECES)) {
        // A thread for each word of each lane.
        for (unsigned i = threadIdx.x; i < layout.whole * ROW; i += WORKERS) {
            unsigned lane = i % ROW, bit = i / ROW * BITS, row = bit / WIDTH;
            int by = int(row * WIDTH) - int(bit);
            WORD made = WORD(codes[row * ROW + lane]) >> -by;
            for (by += WIDTH; by < BITS; by += WIDTH) made |= WORD(codes[++row * ROW + lane]) << by;
            put(packed + i * (BITS / 8), made);
        }
        unsigned left = layout.bytes() - layout.rest();
        for (unsigned i = threadIdx.x; i < left; i += WORKERS) {
            unsigned made = 0;
            for (int b = 0; b < 8; b++) made |= rest_bit(layout, codes, 8 * i + b) << b;
            image[layout.rest() + i] = (unsigned char)(made);
        }
        __syncthreads();
    }
    copy(to, image, layout.bytes(), phase);
}

extern "C" __global__ void __launch_bounds__(WORKERS, ENCODERS)
    encode_chunks(const Part *parts, int count, const REAL *values, unsigned char *bytes) {
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ WORD tops[WORKERS / 32];
    __shared__ unsigned odd_threads;
    if (threadIdx.x == 0) odd_threads = 0;
    __syncthreads();
    Word chunk;
    Part part = find(parts, count, chunk);
    unsigned numbers = length(part, chunk);
    const REAL *from = values + part.stage + chunk * CHUNK;
    unsigned char *to = bytes + part.bytes + chunk * SLOT;
    // Parts begin at even places, so whole chunks do.
    if (numbers == CHUNK && reinterpret_cast<Word>(to) % 2 == 0)
        encode_chunk<true>(from, to, numbers, raw, tops, odd_threads);
    else
        encode_chunk<false>(from, to, numbers, raw, tops, odd_threads);
}
