// What `encode.cu` and `decode.cu` share: numbers to fewer bytes and back, chunk by
// chunk, a block of threads for each: bit for bit what the codecs on the CPU
// write and read.
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

// The upper half of a magnitude: its exponent, and more of it than decides which exponent is largest.
constexpr int UPPER = MANTISSA - (BITS - 32);
INLINE unsigned upper(REAL x) { return unsigned(word(x) >> (BITS - 32)) & 0x7fffffff; }

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

// What a group may be below the largest of its chunk.
INLINE int deepest(const Head &head) {
    int depth = head.field - WIDTH;
    return depth < 0 ? 0 : depth > 254 ? 254 : depth;
}

// The code of a number of a group whose largest magnitude is `top`, and the depth of the group.
INLINE WORD encode(REAL x, WORD top, const Head &head, REAL lift, int &depth) {
    if (top >= INFINITE) {
        depth = SPECIAL_GROUP;
        return special_code(x, head, lift);
    }
    int field = int(word(product(number(top), lift)) >> MANTISSA);
    depth = min(head.field - field, deepest(head));
    WORD bits = word(x), nearest = integer(product(product(number(bits & MAGNITUDE), lift), power(-unit(head, depth))));
    return (nearest < MOST ? nearest : MOST) | (bits >> (BITS - 1)) << (WIDTH - 1);
}

// The same in a chunk that is plain, where the largest of the group has this exponent: powers of two are ordinary ones.
INLINE WORD encode_plain(REAL x, int field, const Head &head, int &depth) {
    depth = min(head.field - field, deepest(head));
    WORD bits = word(x);
    REAL factor = number(WORD(unsigned(BIAS - unit(head, depth))) << MANTISSA);
    WORD shifted = word(product(number(bits & MAGNITUDE), factor) + number(MAGIC));
    if constexpr (WIDTH <= 32) {
        unsigned nearest = unsigned(shifted) - unsigned(MAGIC), most = unsigned(MOST);
        return WORD((nearest < most ? nearest : most) | unsigned(bits >> (BITS - 1)) << (WIDTH - 1));
    } else {
        WORD nearest = shifted - MAGIC;
        return (nearest < MOST ? nearest : MOST) | (bits >> (BITS - 1)) << (WIDTH - 1);
    }
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
    if (!PLAIN) a = a < LARGEST ? a : LARGEST;
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
