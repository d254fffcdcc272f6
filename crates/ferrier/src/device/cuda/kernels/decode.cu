// Bytes back to chunks of numbers.

// Blocks that should fit on a multiprocessor (measured on an H200).
#define DECODERS 6

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
