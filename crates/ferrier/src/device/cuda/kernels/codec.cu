// Numbers to fewer bytes and back, chunk by chunk, a block of threads for
// each: bit for bit what the codecs on the CPU write and read.
//
// WORD, BITS        an unsigned integer as wide as REAL
// MANTISSA, EXPONENT, LOW, LIFT  of REAL, as in ferrier-codec
// BLOCK             1: groups of 16 share an exponent; 0: small floats
// WIDTH             bits of a code
// SMALL             bits of the mantissa of small floats (0 for BLOCK)
// CHUNK             numbers of a chunk
// SLOT              bytes of a whole chunk

#define WORKERS 256
#define ROW 16
#define EACH (CHUNK / WORKERS)
// Blocks that should fit on a multiprocessor (measured on an H200).
#if BITS == 64
#define ENCODERS 3
#else
#define ENCODERS 5
#endif
#define DECODERS 6

// A run of numbers and the bytes of its chunks.
struct Part {
    Word first;  // Chunks of all parts before.
    Word numbers, stage, bytes;
};

constexpr int BIAS = (1 << (EXPONENT - 1)) - 1;
constexpr WORD ONE = 1;
constexpr WORD SIGN = ONE << (BITS - 1), MAGNITUDE = SIGN - 1;
constexpr WORD INFINITE = ((ONE << EXPONENT) - 1) << MANTISSA;
constexpr WORD MAGIC = WORD(MANTISSA + BIAS) << MANTISSA;
constexpr int SMALL_EXPONENT = WIDTH - 1 - SMALL;
constexpr int SPECIAL_GROUP = 255;

// The smallest integers that codes fit into, while they wait to be packed.
#if WIDTH <= 16
typedef unsigned short Code;
#elif WIDTH <= 32
typedef unsigned Code;
#else
typedef Word Code;
#endif

__host__ __device__ constexpr WORD mask(int width) { return width >= BITS ? ~WORD(0) : (ONE << (width % BITS)) - 1; }

union Bits {
    REAL x;
    WORD w;
};
INLINE REAL number(WORD word) {
    Bits bits;
    bits.w = word;
    return bits.x;
}
INLINE WORD word(REAL x) {
    Bits bits;
    bits.x = x;
    return bits.w;
}

// 2^k as bits: 0 far below, infinity far above.
INLINE REAL power(int k) {
    int field = k + BIAS, last = (1 << EXPONENT) - 1;
    if (field > 0) return number(WORD(field < last ? field : last) << MANTISSA);
    return number(field > -MANTISSA ? ONE << (MANTISSA - 1 + field) : 0);
}

// Never fused with an addition, as on the CPU.
INLINE REAL product(REAL a, REAL b) { return PRODUCT(a, b); }
// A number below 2^MANTISSA, rounded to an integer, and back.
INLINE WORD integer(REAL x) { return word(x + number(MAGIC)) - MAGIC; }
INLINE REAL of_integer(WORD q) { return number(MAGIC + q) - number(MAGIC); }

// The header of a chunk: an exponent field and two marks.
struct Head {
    int field;
    bool lifted, special;
};

INLINE Head read_head(const unsigned char *image) {
    unsigned bits = image[0] | image[1] << 8;
    return {int(bits & 0x3fff), (bits >> 14 & 1) != 0, (bits >> 15 & 1) != 0};
}

#if BLOCK
constexpr WORD MOST = mask(WIDTH - 1), MARKS = WIDTH == 2 ? MOST : MOST - 1;

INLINE int unit(const Head &head, int depth) { return head.field - depth + 1 - BIAS - (WIDTH - 1); }

INLINE WORD special_code(REAL x, const Head &head, REAL lift) {
    WORD bits = word(x), size = bits & MAGNITUDE, sign = (bits >> (BITS - 1)) << (WIDTH - 1), code;
    if (size < INFINITE) {
        WORD nearest = integer(product(product(number(size), lift), power(-unit(head, 0))));
        code = nearest < MARKS - 1 ? nearest : MARKS - 1;
    } else {
        code = size == INFINITE || WIDTH == 2 ? MOST : MARKS;
    }
    return code | sign;
}

// The code of a number of a group whose largest magnitude is `top`, and the depth of the group.
template <bool PLAIN> INLINE WORD encode(REAL x, WORD top, const Head &head, REAL lift, int &depth) {
    if (!PLAIN && top >= INFINITE) {
        depth = SPECIAL_GROUP;
        return special_code(x, head, lift);
    }
    int field = int((PLAIN ? top : word(product(number(top), lift))) >> MANTISSA), deepest = head.field - WIDTH;
    deepest = deepest < 0 ? 0 : deepest > 254 ? 254 : deepest;
    depth = head.field - field < deepest ? head.field - field : deepest;
    WORD bits = word(x);
    REAL size = number(bits & MAGNITUDE);
    WORD nearest = integer(product(PLAIN ? size : product(size, lift), power(-unit(head, depth))));
    return (nearest < MOST ? nearest : MOST) | (bits >> (BITS - 1)) << (WIDTH - 1);
}

INLINE REAL decode(WORD code, int depth, const Head &head, REAL lower) {
    WORD sign = (code >> (WIDTH - 1)) << (BITS - 1), size = code & MOST;
    if (depth == SPECIAL_GROUP && size >= MARKS) {
        bool infinite = WIDTH > 2 && size == MOST;
        return number(INFINITE | (infinite ? 0 : ONE << (MANTISSA - 1)) | sign);
    }
    REAL step = power(unit(head, depth == SPECIAL_GROUP ? 0 : depth));
    return number(word(product(product(of_integer(size), step), lower)) | sign);
}
#else
constexpr int CUT = MANTISSA - SMALL;
constexpr WORD HALF = CUT == 0 ? 0 : (ONE << (CUT > 0 ? CUT - 1 : 0)) - 1, EVEN = CUT == 0 ? 0 : 1;
constexpr WORD LARGEST = INFINITE - (ONE << CUT), SPECIAL = ((ONE << SMALL_EXPONENT) - 1) << SMALL;

INLINE int scale(const Head &head) { return SMALL + BIAS - head.field - 1; }

template <bool PLAIN> INLINE WORD encode(REAL x, const Head &head, REAL lift) {
    WORD bits = word(x), size = bits & MAGNITUDE, sign = (bits >> (BITS - 1)) << (WIDTH - 1);
    if (!PLAIN && size >= INFINITE) return SPECIAL | WORD(size > INFINITE) << (SMALL - 1) | sign;
    WORD a = PLAIN ? size : word(product(number(size), lift));
    a = a < LARGEST ? a : LARGEST;
    // Without a base the codes are the number's own leading bits, its subnormals included.
    if (head.field > 0 && a < WORD(head.field + 1) << MANTISSA)
        return integer(product(number(a), power(scale(head)))) | sign;
    return ((a + HALF + (a >> CUT & EVEN)) >> CUT) - (WORD(head.field) << SMALL) | sign;
}

INLINE REAL decode(WORD code, const Head &head, REAL lower) {
    WORD sign = (code >> (WIDTH - 1)) << (BITS - 1), size = code & mask(WIDTH - 1);
    if (head.special && size >= SPECIAL) return number(INFINITE | (size == SPECIAL ? 0 : ONE << (MANTISSA - 1)) | sign);
    REAL x = size >> SMALL == 0 && head.field > 0 ? product(of_integer(size & mask(SMALL)), power(-scale(head)))
                                                  : number((size + (WORD(head.field) << SMALL)) << CUT & MAGNITUDE);
    return number(word(product(x, lower)) | sign);
}
#endif

// How the codes of a chunk are packed: rows of 16 lanes, each lane a stream
// of words; what fills none and the codes after the last row follow as bits.
// Of a whole chunk everything is known to the compiler.
struct Layout {
    unsigned count, rows, whole, odd, packed;
    __host__ __device__ constexpr Layout(unsigned count)
        : count(count), rows(count / ROW), whole(unsigned(Word(count / ROW) * WIDTH / BITS)),
          odd(unsigned(Word(count / ROW) * WIDTH % BITS)), packed(BLOCK ? 2 + (count + ROW - 1) / ROW : 2) {}
    __host__ __device__ constexpr unsigned bytes() const { return packed + unsigned((Word(count) * WIDTH + 7) / 8); }
    __host__ __device__ constexpr unsigned rest() const { return packed + whole * ROW * (BITS / 8); }
};

template <bool FULL> INLINE Layout layout_of(unsigned count) { return Layout(FULL ? CHUNK : count); }

// The part of this block, and its chunk there.
INLINE Part find(const Part *parts, int count, Word &chunk) {
    int low = 0, high = count;
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (parts[mid].first <= blockIdx.x)
            low = mid;
        else
            high = mid;
    }
    Part part = parts[low];
    chunk = blockIdx.x - part.first;
    return part;
}

INLINE unsigned length(const Part &part, Word chunk) {
    Word left = part.numbers - chunk * CHUNK;
    return left < CHUNK ? unsigned(left) : CHUNK;
}

struct alignas(16) Line {
    Word a, b;
};

// Bytes at the same places modulo 16 in both: all but the ends go 16 at a time.
INLINE void copy(unsigned char *to, const unsigned char *from, unsigned bytes, unsigned phase) {
    unsigned head = (16 - phase) % 16;
    head = head < bytes ? head : bytes;
    unsigned lines = (bytes - head) / 16;
    for (unsigned i = threadIdx.x; i < lines; i += WORKERS)
        reinterpret_cast<Line *>(to + head)[i] = reinterpret_cast<const Line *>(from + head)[i];
    unsigned done = head + 16 * lines;
    if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
    if (done + threadIdx.x < bytes) to[done + threadIdx.x] = from[done + threadIdx.x];
}

// Words lie at even places, but for the odd chunk: two bytes at a time.
INLINE void put(unsigned char *to, WORD value) {
    if (reinterpret_cast<Word>(to) % 2 == 0) {
#pragma unroll
        for (int b = 0; b < BITS / 16; b++)
            reinterpret_cast<unsigned short *>(to)[b] = (unsigned short)(value >> (16 * b));
    } else {
        for (int b = 0; b < BITS / 8; b++) to[b] = (unsigned char)(value >> (8 * b));
    }
}

INLINE WORD got(const unsigned char *from) {
    WORD made = 0;
    if (reinterpret_cast<Word>(from) % 2 == 0) {
#pragma unroll
        for (int b = 0; b < BITS / 16; b++) made |= WORD(reinterpret_cast<const unsigned short *>(from)[b]) << (16 * b);
    } else {
        for (int b = 0; b < BITS / 8; b++) made |= WORD(from[b]) << (8 * b);
    }
    return made;
}

// Codes of whole pieces of two bytes need no packing: where piece p of a lane lies.
constexpr bool PIECES = WIDTH % 16 == 0 && BITS % WIDTH == 0;
INLINE unsigned piece(unsigned lane, unsigned p) { return (p / (BITS / 16) * ROW + lane) * (BITS / 8) + p % (BITS / 16) * 2; }

// Bit `at` of what follows the whole words.
INLINE unsigned rest_bit(const Layout &layout, const Code *codes, unsigned at) {
    if (at < ROW * layout.odd) {
        unsigned lane = at / layout.odd, bit = layout.whole * BITS + at % layout.odd;
        return unsigned(codes[bit / WIDTH * ROW + lane] >> (bit % WIDTH)) & 1;
    }
    at -= ROW * layout.odd;
    unsigned code = layout.rows * ROW + at / WIDTH;
    return code < layout.count ? unsigned(codes[code] >> (at % WIDTH)) & 1 : 0;
}

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

// The codes of a chunk; PLAIN: all are finite, and none is so small that it is lifted.
template <bool FULL, bool PLAIN>
INLINE void write_codes(const REAL (&x)[EACH], const Layout &layout, const Head &head, REAL lift, Code *codes,
                        unsigned char *image) {
    unsigned char *packed = image + layout.packed;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned at = i * WORKERS + threadIdx.x;
#if BLOCK
        int depth;
        WORD code = encode<PLAIN>(x[i], largest_near(word(x[i]) & MAGNITUDE, !PLAIN && head.lifted), head, lift, depth);
        if (at % ROW == 0 && (FULL || at < layout.count)) image[2 + at / ROW] = (unsigned char)(depth);
#else
        WORD code = encode<PLAIN>(x[i], head, lift);
#endif
        if constexpr (FULL && PIECES) {
#pragma unroll
            for (int p = 0; p < WIDTH / 16; p++)
                *reinterpret_cast<unsigned short *>(packed + piece(at % ROW, at / ROW * (WIDTH / 16) + p)) =
                    (unsigned short)(code >> (16 * p));
        } else {
            codes[at] = Code(code);
        }
    }
}

template <bool FULL>
INLINE void encode_chunk(const REAL *from, unsigned char *to, unsigned count, unsigned char *raw, WORD *tops,
                         unsigned &odd_threads) {
    const Layout layout = layout_of<FULL>(count);
    unsigned phase = unsigned(reinterpret_cast<Word>(to) % 16);
    Code *codes = reinterpret_cast<Code *>(raw);
    unsigned char *image = raw + CHUNK * sizeof(Code) + phase, *packed = image + layout.packed;
    REAL x[EACH];
    WORD top = 0;
    bool odd = false;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned at = i * WORKERS + threadIdx.x;
        x[i] = FULL || at < layout.count ? from[at] : REAL(0);
        WORD size = word(x[i]) & MAGNITUDE;
        odd |= size >= INFINITE;
        if (size < INFINITE && size > top) top = size;
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) {
        WORD other = __shfl_xor_sync(0xffffffff, top, far);
        top = other > top ? other : top;
    }
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    if (odd) odd_threads = 1;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WORKERS / 32; i++) top = tops[i] > top ? tops[i] : top;
    bool lifted = top > 0 && top < WORD(LOW) << MANTISSA;
    REAL lift = power(lifted ? LIFT : 0);
    int field = top == 0 ? BIAS : int(word(product(number(top), lift)) >> MANTISSA);
#if !BLOCK
    int last = (1 << SMALL_EXPONENT) - 3;
    field = SMALL_EXPONENT == EXPONENT || field < last ? 0 : field - last;
#endif
    Head head = {field, lifted, odd_threads != 0};
    if (threadIdx.x < 2) {
        unsigned bits = unsigned(head.field) | unsigned(head.lifted) << 14 | unsigned(head.special) << 15;
        image[threadIdx.x] = (unsigned char)(bits >> (8 * threadIdx.x));
    }
    if (FULL && !head.lifted && !head.special)
        write_codes<FULL, true>(x, layout, head, lift, codes, image);
    else
        write_codes<FULL, false>(x, layout, head, lift, codes, image);
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

// Bit `at` of a stream of bytes.
INLINE WORD stream_bits(const unsigned char *bytes, unsigned at, int width) {
    WORD made = 0;
    for (int b = 0; b < width; b++) made |= WORD(bytes[(at + b) / 8] >> ((at + b) % 8) & 1) << b;
    return made;
}

// Word w of a lane.
INLINE WORD lane_word(const unsigned char *packed, unsigned w, unsigned lane) {
    return got(packed + (w * ROW + lane) * (BITS / 8));
}

INLINE WORD fetch(const Layout &layout, const unsigned char *image, unsigned at) {
    const unsigned char *packed = image + layout.packed, *rest = image + layout.rest();
    if (at >= layout.rows * ROW) return stream_bits(rest, ROW * layout.odd + (at - layout.rows * ROW) * WIDTH, WIDTH);
    unsigned lane = at % ROW, bit = at / ROW * WIDTH, w = bit / BITS, off = bit % BITS;
    int here = BITS - int(off);
    WORD made = w < layout.whole ? lane_word(packed, w, lane) >> off : 0;
    if (w >= layout.whole) {
        made = stream_bits(rest, lane * layout.odd + bit - layout.whole * BITS, WIDTH);
    } else if (here < WIDTH) {
        WORD next = w + 1 < layout.whole ? lane_word(packed, w + 1, lane)
                                         : stream_bits(rest, lane * layout.odd, WIDTH - here);
        made |= next << here;
    }
    return made & mask(WIDTH);
}

// The same in a whole chunk: only the pieces that the code lies in.
INLINE WORD fetch_whole(const unsigned char *image, unsigned at) {
    constexpr Layout layout(CHUNK);
    constexpr int MOST_PIECES = WIDTH % 16 == 0 ? WIDTH / 16 : (WIDTH + 14) / 16 + 1;
    constexpr unsigned ALL = layout.whole * (BITS / 16);
    unsigned lane = at % ROW, bit = at / ROW * WIDTH, first = bit / 16;
    Word made = 0;
#pragma unroll
    for (int p = 0; p < MOST_PIECES; p++) {
        unsigned which = first + p < ALL ? first + p : ALL - 1;
        made |= Word(*reinterpret_cast<const unsigned short *>(image + layout.packed + piece(lane, which))) << (16 * p);
    }
    return WORD(made >> (bit % 16)) & mask(WIDTH);
}

template <bool FULL>
INLINE void decode_chunk(REAL *to, const unsigned char *from, unsigned count, unsigned char *raw) {
    const Layout layout = layout_of<FULL>(count);
    unsigned phase = unsigned(reinterpret_cast<Word>(from) % 16);
    unsigned char *image = raw + phase;
    copy(image, from, layout.bytes(), phase);
    __syncthreads();
    Head head = read_head(image);
    REAL lower = power(head.lifted ? -LIFT : 0);
#pragma unroll 4
    for (int i = 0; i < EACH; i++) {
        unsigned at = i * WORKERS + threadIdx.x;
        if (FULL || at < layout.count) {
            WORD code;
            if constexpr (FULL && WIDTH <= 48)
                code = fetch_whole(image, at);
            else
                code = fetch(layout, image, at);
#if BLOCK
            to[at] = decode(code, image[2 + at / ROW], head, lower);
#else
            to[at] = decode(code, head, lower);
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(WORKERS, DECODERS)
    decode_chunks(const Part *parts, int count, REAL *values, const unsigned char *bytes) {
    extern __shared__ __align__(16) unsigned char raw[];
    Word chunk;
    Part part = find(parts, count, chunk);
    unsigned numbers = length(part, chunk);
    REAL *to = values + part.stage + chunk * CHUNK;
    const unsigned char *from = bytes + part.bytes + chunk * SLOT;
    if (numbers == CHUNK && reinterpret_cast<Word>(from) % 2 == 0)
        decode_chunk<true>(to, from, numbers, raw);
    else
        decode_chunk<false>(to, from, numbers, raw);
}
