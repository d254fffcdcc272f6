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

#define WORKERS 128
#define ROW 16
// A thread has 32 numbers of a whole chunk: so many rows of some lanes that the codes of a lane fill pieces of 32 bits, and
// where each begins is known to the compiler.
#define ROWS (WIDTH % 2 ? 32 : WIDTH % 4 ? 16 : 8)
#define LANES (32 / ROWS)
#define SETS (ROW / LANES)
// Numbers that are loaded or stored at once: up to 16 bytes.
#define VECTOR (LANES * BITS > 128 ? 128 / BITS : LANES)

// A run of numbers and the bytes of its chunks.
struct Part {
    Word first;  // Chunks of all parts before.
    Word numbers, stage, bytes;
};

#if BITS == 64
#define PRODUCT __dmul_rn
#define FUSED __fma_rn
#define ABSOLUTE fabs
#else
#define PRODUCT __fmul_rn
#define FUSED __fmaf_rn
#define ABSOLUTE fabsf
#endif

constexpr int BIAS = (1 << (EXPONENT - 1)) - 1;
constexpr WORD ONE = 1;
constexpr WORD SIGN = ONE << (BITS - 1), MAGNITUDE = SIGN - 1;
constexpr WORD INFINITE = ((ONE << EXPONENT) - 1) << MANTISSA;
constexpr WORD MAGIC = WORD(MANTISSA + BIAS) << MANTISSA;

// What a code fits into.
#if WIDTH <= 32
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
// |x| times a power of two, and added: what is lost of a product that is too small for REAL cannot be seen in the sum.
INLINE REAL added(REAL x, REAL factor, REAL to) { return FUSED(ABSOLUTE(x), factor, to); }
// A number below 2^MANTISSA, rounded to an integer, and back.
INLINE WORD integer(REAL x) { return word(x + number(MAGIC)) - MAGIC; }
INLINE REAL of_integer(WORD q) { return number(MAGIC + q) - number(MAGIC); }

// The upper 32 bits of a number: its exponent, and more of it than decides which exponent is largest.
constexpr int UPPER = MANTISSA - (BITS - 32);
INLINE unsigned upper(REAL x) { return unsigned(word(x) >> (BITS - 32)); }

// The sign of a number where its code has it, and back; codes may have more bits above them.
#if WIDTH <= 32
INLINE Code sign_of(REAL x) { return upper(x) >> (32 - WIDTH) & 1u << (WIDTH - 1); }
INLINE WORD sign_of(Code code) { return WORD(code << (32 - WIDTH) & 0x80000000) << (BITS - 32); }
#else
INLINE Code sign_of(REAL x) { return Code(upper(x) >> 31) << (WIDTH - 1); }
INLINE WORD sign_of(Code code) { return WORD(code >> (WIDTH - 1)) << (BITS - 1); }
#endif

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
constexpr int SPECIAL_GROUP = 255;
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

INLINE int depth_of(int field, const Head &head) { return min(head.field - field, deepest(head)); }

// How deep a group is whose largest magnitude is `top`.
INLINE int depth_of(WORD top, const Head &head, REAL lift) {
    if (top >= INFINITE) return SPECIAL_GROUP;
    return depth_of(int(word(product(number(top), lift)) >> MANTISSA), head);
}

INLINE WORD encode(REAL x, int depth, const Head &head, REAL lift) {
    if (depth == SPECIAL_GROUP) return special_code(x, head, lift);
    WORD bits = word(x), nearest = integer(product(product(number(bits & MAGNITUDE), lift), power(-unit(head, depth))));
    return (nearest < MOST ? nearest : MOST) | (bits >> (BITS - 1)) << (WIDTH - 1);
}

// The same in a chunk that is plain, where powers of two are ordinary ones.
INLINE REAL plain_factor(const Head &head, int depth) {
    return number(WORD(unsigned(BIAS - unit(head, depth))) << MANTISSA);
}

INLINE REAL plain_step(const Head &head, int depth) {
    return number(WORD(unsigned(BIAS + unit(head, depth))) << MANTISSA);
}

// Are powers of two ordinary ones?
INLINE bool is_plain(const Head &head) { return head.field >= WIDTH; }

INLINE Code encode_plain(REAL x, REAL factor) {
    WORD shifted = word(added(x, factor, number(MAGIC)));
    Code code;
    if constexpr (BITS == 64 && WIDTH <= 32)
        code = min(unsigned(shifted), unsigned(MOST));
    else
        code = Code(min(shifted, MAGIC + MOST) & MOST);
    return code | sign_of(x);
}

INLINE REAL decode_plain(Code code, REAL step) {
    return number(word(product(of_integer(code & MOST), step)) | sign_of(code));
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
constexpr int CUT = MANTISSA - SMALL, SMALL_EXPONENT = WIDTH - 1 - SMALL;
constexpr WORD HALF = CUT == 0 ? 0 : (ONE << (CUT > 0 ? CUT - 1 : 0)) - 1, EVEN = CUT == 0 ? 0 : 1;
constexpr WORD LARGEST = INFINITE - (ONE << CUT), SPECIAL = ((ONE << SMALL_EXPONENT) - 1) << SMALL;

INLINE int scale(const Head &head) { return SMALL + BIAS - head.field - 1; }

INLINE WORD encode(REAL x, const Head &head, REAL lift) {
    WORD bits = word(x), size = bits & MAGNITUDE, sign = (bits >> (BITS - 1)) << (WIDTH - 1);
    if (size >= INFINITE) return SPECIAL | WORD(size > INFINITE) << (SMALL - 1) | sign;
    WORD a = word(product(number(size), lift));
    a = a < LARGEST ? a : LARGEST;
    // Without a base the codes are the number's own leading bits, its subnormals included.
    if (head.field > 0 && a < WORD(head.field + 1) << MANTISSA)
        return integer(product(number(a), power(scale(head)))) | sign;
    return ((a + HALF + (a >> CUT & EVEN)) >> CUT) - (WORD(head.field) << SMALL) | sign;
}

// Is there no base, whatever the numbers are?
constexpr bool BASELESS = SMALL_EXPONENT == EXPONENT;

INLINE bool is_plain(const Head &head) { return !BASELESS || head.field == 0; }

// The same in a chunk that is plain; `factor` is 2^scale.
INLINE Code encode_plain(REAL x, const Head &head, REAL factor) {
    WORD a = (word(x) & MAGNITUDE) - (BASELESS ? 0 : WORD(head.field) << MANTISSA);
    Code code = Code((a + HALF + (a >> CUT & EVEN)) >> CUT);
    if constexpr (!BASELESS) {
        unsigned limit = head.field > 0 ? unsigned(head.field + 1) << UPPER : 0;
        Code low = Code(word(added(x, factor, number(MAGIC))) - MAGIC);
        code = (upper(x) & 0x7fffffff) < limit ? low : code;
    }
    return code | sign_of(x);
}

INLINE REAL decode(WORD code, const Head &head, REAL lower) {
    WORD sign = (code >> (WIDTH - 1)) << (BITS - 1), size = code & mask(WIDTH - 1);
    if (head.special && size >= SPECIAL) return number(INFINITE | (size == SPECIAL ? 0 : ONE << (MANTISSA - 1)) | sign);
    REAL x = size >> SMALL == 0 && head.field > 0 ? product(of_integer(size & mask(SMALL)), power(-scale(head)))
                                                  : number((size + (WORD(head.field) << SMALL)) << CUT & MAGNITUDE);
    return number(word(product(x, lower)) | sign);
}

// The same where nothing was lifted or is special; `step` is 2^-scale.
INLINE REAL decode_plain(Code code, const Head &head, REAL step) {
    Code size = code & Code(mask(WIDTH - 1));
    WORD bits = WORD(size) << CUT;
    if constexpr (!BASELESS) {
        bits += WORD(head.field) << MANTISSA;
        WORD low = word(product(of_integer(size & Code(mask(SMALL))), step));
        bits = size >> SMALL == 0 && head.field > 0 ? low : bits;
    }
    return number(bits & MAGNITUDE | sign_of(code));
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

// What a thread has of a whole chunk: rows from `row` on, and which lanes.
constexpr unsigned PER = ROWS * WIDTH / 32;
struct Share {
    unsigned set, group;
    __device__ Share() : set(threadIdx.x % SETS), group(threadIdx.x / SETS) {}
    INLINE unsigned row() const { return group * ROWS; }
    INLINE unsigned lane(int l) const { return l / VECTOR * (SETS * VECTOR) + set * VECTOR + l % VECTOR; }
    // Where 32 bits of a lane lie: `p` of its PER.
    INLINE unsigned piece(unsigned p, unsigned lane) const {
        unsigned at = group * PER + p;
        return BITS == 64 ? (at / 2 * ROW + lane) * 8 + at % 2 * 4 : (at * ROW + lane) * 4;
    }
};

// VECTOR numbers at once.
#if VECTOR == 1
typedef REAL Vector;
#elif BITS == 64
typedef double2 Vector;
#elif VECTOR == 2
typedef float2 Vector;
#else
typedef float4 Vector;
#endif
union Numbers {
    Vector all;
    REAL each[VECTOR];
};

// The part of a chunk that is counted over all parts, and its number there.
INLINE Part find(const Part *parts, int count, Word &chunk) {
    int low = 0, high = count;
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (parts[mid].first <= chunk)
            low = mid;
        else
            high = mid;
    }
    Part part = parts[low];
    chunk -= part.first;
    return part;
}

INLINE unsigned length(const Part &part, Word chunk) {
    Word left = part.numbers - chunk * CHUNK;
    return left < CHUNK ? unsigned(left) : CHUNK;
}

// A place that two bytes, or one, are read from or written to at a time: words lie at even ones, but for the odd chunk.
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
