// Lines along one axis: loaded from wherever they lie, transformed in
// registers and shared memory, stored wherever they are wanted. Packing,
// unpacking, transposing and scaling are its loads and stores.
//
// POINTS    of a line          RADICES  whose product is POINTS, STAGES of them
// THREADS   on a line          LINES    of a block
// KIND      0 complex, 1 real to complex, 2 complex to real, 3 real to complex and back
// ROWS      1: neighbouring threads have neighbouring points (lines lie densely);
//           0: neighbouring threads have neighbouring lines
// TURN      1: stored the other way
// FROM, TO  the most strips of a line before and after; 0: one that holds all of it
// BLOCKS    that should fit on a multiprocessor
// LONE      1: all lines are of one cell, each in one strip before and after (FROM and TO are 0)
// FLOWING   1: what is loaded is not wanted again, and leaves the cache first
// FUSED_OP     what `fused_op.cuh` does: 0 nothing, 1 before the transform, 2 after it,
//           3 after it, and then the line is transformed back

// Lines side by side in neighbouring planes, all with the same strips.
struct Cell {
    Word first;  // Blocks of all cells before.
    unsigned lanes, planes, blocks;
    unsigned from, from_end, to, to_end;
    unsigned lane, plane;  // Of its first line.
    unsigned near;  // Arrays that lie side by side: their blocks follow each other, so that they share cache lines.
};

// A run of a line of a cell; distances in numbers.
struct Strip {
    Word offset, step, lane, plane, batch;
    unsigned base, at, end;
    unsigned array;  // Of the batch, that `offset` is in.
};

// What a launch of LONE lines is handed: no tables to look into.
struct Lone {
    Cell cell;
    Strip from, to;
    REAL *bases[2];
};

// A strip of this block's first line.
struct Run {
    REAL *start;
    long long step, lane;
    int at, end;
};

constexpr int OUT = KIND == 1 ? POINTS / 2 + 1 : POINTS;
constexpr int HALF = POINTS / 2;
constexpr int SIZE = THREADS * LINES;

template <int S> __host__ __device__ constexpr int radix() {
    constexpr int all[] = {RADICES};
    return all[S];
}

template <int S> __host__ __device__ constexpr int rounds() {
    return (POINTS / radix<S>() + THREADS - 1) / THREADS;
}

template <int S = 0> __host__ __device__ constexpr int most() {
    constexpr int here = rounds<S>() * radix<S>();
    if constexpr (S + 1 < STAGES)
        return here > most<S + 1>() ? here : most<S + 1>();
    else
        return here;
}

// Where element k of line l waits between two stages: no two threads of a
// quarter warp meet in a bank.
constexpr int PAD = 128 / sizeof(Pair);
constexpr int PITCH = (POINTS + POINTS / PAD) | 1;
INLINE unsigned place(unsigned l, unsigned k) { return ROWS ? l * PITCH + k + k / PAD : k * (LINES + TURN) + l; }

// Element k + t * STEP, where that of k is at `first`.
template <int STEP> INLINE unsigned further(unsigned first, unsigned l, unsigned k, unsigned t) {
    if constexpr (!ROWS) return first + t * (STEP * (LINES + TURN));
    if constexpr (STEP % PAD == 0) return first + t * (STEP + STEP / PAD);
    return place(l, k + t * STEP);
}

struct Job {
    Run from[FROM ? FROM : 1], to[TO ? TO : 1];
    int strips_in, strips_out, lanes;
    // Where its first line is: across the lines, and which array.
    int across[2], batch;
};

#if FUSED_OP
// What becomes of element k of line l, which a transform has left, or will be handed.
INLINE Pair mode(Pair z, int k, int l, const Job &job, const FusedOp &op) {
    int across[2] = {job.across[0] + l, job.across[1]};
    return fused(z, k, across, job.batch, op);
}
#else
struct FusedOp {};
#endif

// Where element k of line l lies, or nowhere. Without branches: threads look in parallel.
template <int MOST> INLINE REAL *find(const Run (&runs)[MOST], int count, int l, int k) {
    REAL *found = nullptr;
#pragma unroll
    for (int s = 0; s < MOST; s++) {
        bool here = s < count && k >= runs[s].at && k < runs[s].end;
        REAL *there = runs[s].start + (k - runs[s].at) * runs[s].step + l * runs[s].lane;
        found = here ? there : found;
    }
    return found;
}

// One side of a line: elements k, k + STEP, k + 2 STEP, ... of line l.
template <bool WHOLE, int STEP, int MOST> struct Side {
    const Run (&runs)[MOST];
    int count, l, k;
    REAL *first;
    long long jump;

    INLINE Side(const Run (&runs)[MOST], int count, int l, int k) : runs(runs), count(count), l(l), k(k) {
        if constexpr (WHOLE) {
            first = runs[0].start + k * runs[0].step + l * runs[0].lane;
            jump = STEP * runs[0].step;
        }
    }
    INLINE REAL *operator[](int t) const {
        if constexpr (WHOLE) return first + t * jump;
        return find(runs, count, l, k + t * STEP);
    }
};

// A number that is loaded once.
INLINE REAL flown(const REAL *from) { return __ldcs(from); }
INLINE Pair flown(const Pair *from) {
    if constexpr (sizeof(REAL) == 8) {
        double2 value = __ldcs(reinterpret_cast<const double2 *>(from));
        return {REAL(value.x), REAL(value.y)};
    } else {
        float2 value = __ldcs(reinterpret_cast<const float2 *>(from));
        return {value.x, value.y};
    }
}

INLINE Pair load(const REAL *from, bool swap) {
    Pair value = {0, 0};
    if (FROM == 0 || from) {
        if constexpr (KIND % 2 == 1)
            value.x = FLOWING ? flown(from) : *from;
        else
            value = FLOWING ? flown(reinterpret_cast<const Pair *>(from)) : *reinterpret_cast<const Pair *>(from);
    }
    return swap ? swapped(value) : value;
}

INLINE void store(REAL *to, Pair value, bool swap, REAL scale) {
    if (TO != 0 && !to) return;
    Pair turned = swap ? swapped(value) : value;
    turned = turned * scale;
    if constexpr (KIND >= 2)
        *to = turned.x;
    else
        *reinterpret_cast<Pair *>(to) = turned;
}

// The first registers of a thread.
INLINE void fetch(Pair (&x)[most()], const Job &job, int p, int l, bool swap, const FusedOp &op) {
    constexpr int R = radix<0>(), M = POINTS / R;
    // A block that is not full loads its last line more than once.
    int line = l < job.lanes ? l : job.lanes - 1;
#pragma unroll
    for (int c = 0; c < rounds<0>(); c++) {
        int j = p + c * THREADS;
        bool used = M % THREADS == 0 || j < M;
        if constexpr (KIND == 2) {
#pragma unroll
            for (int t = 0; t < R; t++) {
                int k = used ? j + t * M : 0;
                Side<FROM == 0, 1, FROM ? FROM : 1> side(job.from, job.strips_in, line, k > HALF ? POINTS - k : k);
                Pair value = load(side[0], false);
#if FUSED_OP == 1
                value = mode(value, k > HALF ? POINTS - k : k, line, job, op);
#endif
                if (k > HALF) value.y = -value.y;
                if (k == 0 || 2 * k == POINTS) value.y = 0;
                x[c * R + t] = swapped(value);
            }
        } else {
            Side<FROM == 0, M, FROM ? FROM : 1> side(job.from, job.strips_in, line, used ? j : 0);
#pragma unroll
            for (int t = 0; t < R; t++) {
#if FUSED_OP == 1
                Pair value = mode(load(side[t], false), used ? j + t * M : 0, line, job, op);
                x[c * R + t] = swap ? swapped(value) : value;
#else
                x[c * R + t] = load(side[t], swap);
#endif
            }
        }
    }
}

// Where output 0 of butterfly j of stage S belongs; the others follow NS apart.
template <int S, int NS> INLINE unsigned target(unsigned j) { return (j / NS) * (NS * radix<S>()) + j % NS; }

// From the registers of stage S to shared memory.
template <int S, int NS> INLINE void put(const Pair (&x)[most()], Pair *shared, unsigned p, unsigned l) {
    constexpr int R = radix<S>(), M = POINTS / R;
#pragma unroll
    for (int c = 0; c < rounds<S>(); c++) {
        unsigned j = p + c * THREADS;
        if (M % THREADS == 0 || j < M) {
            unsigned k = target<S, NS>(j), first = place(l, k);
#pragma unroll
            for (int t = 0; t < R; t++) shared[further<NS>(first, l, k, t)] = x[c * R + t];
        }
    }
}

// From shared memory to the registers of stage S.
template <int S> INLINE void get(Pair (&x)[most()], const Pair *shared, unsigned p, unsigned l) {
    constexpr int R = radix<S>(), M = POINTS / R;
#pragma unroll
    for (int c = 0; c < rounds<S>(); c++) {
        unsigned j = p + c * THREADS;
        if (M % THREADS == 0 || j < M) {
            unsigned first = place(l, j);
#pragma unroll
            for (int t = 0; t < R; t++) x[c * R + t] = shared[further<M>(first, l, j, t)];
        }
    }
}

// Multiplies input t by the root to the power t: powers of two are looked up,
// the others are products of two.
template <int R> INLINE void twiddle(Pair (&part)[R], const Pair *__restrict__ roots, unsigned k) {
    Pair power[R];
#pragma unroll
    for (int t = 1; t < R; t++) {
        int top = 1;
        while (2 * top <= t) top *= 2;
        power[t] = t == top ? roots[k * t] : power[top] * power[t - top];
        part[t] = part[t] * power[t];
    }
}

// Stage S and all after it; NS is the product of the radices before it.
template <int S, int NS>
INLINE void stages(Pair (&x)[most()], Pair *shared, unsigned p, unsigned l, const Pair *__restrict__ roots) {
    constexpr int R = radix<S>(), M = POINTS / R;
#pragma unroll
    for (int c = 0; c < rounds<S>(); c++) {
        unsigned j = p + c * THREADS;
        Pair part[R];
#pragma unroll
        for (int t = 0; t < R; t++) part[t] = x[c * R + t];
        if constexpr (NS > 1) twiddle<R>(part, roots, (M % THREADS == 0 || j < M ? j % NS : 0) * (POINTS / (NS * R)));
        dft<R>(part);
#pragma unroll
        for (int t = 0; t < R; t++) x[c * R + t] = part[t];
    }
    if constexpr (S + 1 < STAGES) {
        if (S > 0) __syncthreads();
        put<S, NS>(x, shared, p, l);
        __syncthreads();
        get<S + 1>(x, shared, p, l);
        stages<S + 1, NS * R>(x, shared, p, l, roots);
    }
}

// The kernel after this one may come onto the multiprocessors that have nothing left to do, and prepare itself; it touches
// arrays only when this one is through.
INLINE void let_follow() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
INLINE void wait_for_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Which lines of a cell a block has.
struct Lot {
    unsigned lane, plane, batch;
    INLINE Lot(const Cell &cell) {
        unsigned inside = unsigned(blockIdx.x - cell.first), side = 0;
        if (cell.near) {
            side = inside % cell.near;
            inside /= cell.near;
        }
        unsigned rest = inside / cell.blocks;
        lane = inside % cell.blocks * LINES;
        plane = rest % cell.planes;
        batch = rest / cell.planes + side;
    }
    INLINE Run run(const Strip &strip, REAL *base) const {
        Word offset = strip.offset + lane * strip.lane + plane * strip.plane;
        return {array_at(base, offset, strip.batch, strip.array, batch), (long long)strip.step, (long long)strip.lane, int(strip.at), int(strip.end)};
    }
    INLINE void place(Job &job, const Cell &cell) const {
        job.lanes = cell.lanes - lane < LINES ? cell.lanes - lane : LINES;
        job.across[0] = cell.lane + lane;
        job.across[1] = cell.plane + plane;
        job.batch = batch;
    }
};

INLINE void prepare(Job &job, const Lone &lone) {
    // Shared: registers are scarce.
    if (threadIdx.x == 0) {
        Lot lot(lone.cell);
        job.from[0] = lot.run(lone.from, lone.bases[0]);
        job.to[0] = lot.run(lone.to, lone.bases[1]);
        job.strips_in = job.strips_out = 1;
        lot.place(job, lone.cell);
    }
    __syncthreads();
}

// This block's lines: its cell by bisection, then the strips of its first line.
INLINE void prepare(Job &job, const Cell *cells, int count, const Strip *strips, REAL *const *bases) {
    int low = 0, high = count;
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if (cells[mid].first <= blockIdx.x)
            low = mid;
        else
            high = mid;
    }
    Cell cell = cells[low];
    Lot lot(cell);
    auto fill = [&](Run *runs, unsigned first, unsigned last) {
        for (unsigned s = first + threadIdx.x; s < last; s += blockDim.x) {
            Strip strip = strips[s];
            runs[s - first] = lot.run(strip, bases[strip.base]);
        }
    };
    fill(job.from, cell.from, cell.from_end);
    fill(job.to, cell.to, cell.to_end);
    if (threadIdx.x == 0) {
        job.strips_in = cell.from_end - cell.from;
        job.strips_out = cell.to_end - cell.to;
        lot.place(job, cell);
    }
    __syncthreads();
}

#if FUSED_OP >= 2
// The modes that a transform has left in registers.
INLINE void operate_modes(Pair (&x)[most()], const Job &job, int p, int l, bool swap, const FusedOp &op) {
    constexpr int R = radix<STAGES - 1>(), M = POINTS / R;
    int line = l < job.lanes ? l : job.lanes - 1;
#pragma unroll
    for (int c = 0; c < rounds<STAGES - 1>(); c++) {
        int j = p + c * THREADS;
        if (M % THREADS == 0 || j < M) {
#pragma unroll
            for (int t = 0; t < R; t++) {
                int k = j + t * M;
                Pair &value = x[c * R + t];
                if constexpr (KIND == 3) {
                    // The other half of a real line's modes are the conjugates of these.
                    value = mode(k > HALF ? conjugate(value) : value, k > HALF ? POINTS - k : k, line, job, op);
                    if (k > HALF) value.y = -value.y;
                    if (k == 0 || 2 * k == POINTS) value.y = 0;
                } else if (KIND != 1 || k < OUT) {
                    value = swap ? swapped(value) : value;
                    value = mode(value, k, line, job, op);
                    value = swap ? swapped(value) : value;
                }
            }
        }
    }
}

// The registers of the last stage become those of the first, and are transformed back.
INLINE void turn_back(Pair (&x)[most()], Pair *shared, unsigned p, unsigned l, const Pair *__restrict__ roots) {
    constexpr int R = radix<STAGES - 1>(), M = POINTS / R;
#pragma unroll
    for (int i = 0; i < most(); i++) x[i] = swapped(x[i]);
    if (STAGES > 1) __syncthreads();
    // Where the first and the last radix are the same, so are the places of all elements.
    if constexpr (radix<0>() != R) {
        put<STAGES - 1, M>(x, shared, p, l);
        __syncthreads();
        get<0>(x, shared, p, l);
        __syncthreads();
    }
    stages<0, 1>(x, shared, p, l, roots);
}
#endif

extern "C" __global__ void __launch_bounds__(SIZE, BLOCKS)
    lines(
#if LONE
        const __grid_constant__ Lone lone,
#else
        const Cell *cells, int count, const Strip *strips, REAL *const *bases,
#endif
        const Pair *__restrict__ roots, REAL scale, int swap
#if FUSED_OP
          ,
          const FusedOp op
#endif
    ) {
#if !FUSED_OP
    const FusedOp op = {};
#endif
    extern __shared__ __align__(16) unsigned char raw[];
    Pair *shared = reinterpret_cast<Pair *>(raw);
    __shared__ Job job;
    let_follow();
#if LONE
    prepare(job, lone);
#else
    prepare(job, cells, count, strips, bases);
#endif
    wait_for_last();
    int p = ROWS ? threadIdx.x % THREADS : threadIdx.x / LINES;
    int l = ROWS ? threadIdx.x / THREADS : threadIdx.x % LINES;
    constexpr int R = radix<STAGES - 1>(), M = POINTS / R;
    Pair x[most()];
    fetch(x, job, p, l, swap, op);
    stages<0, 1>(x, shared, p, l, roots);
#if FUSED_OP >= 2
    operate_modes(x, job, p, l, swap, op);
#endif
#if FUSED_OP == 3
    turn_back(x, shared, p, l, roots);
    swap = 1;
#endif
#if TURN
    // Through shared memory once more, so that stores are as dense as loads.
    if (STAGES > 1) __syncthreads();
    put<STAGES - 1, M>(x, shared, p, l);
    __syncthreads();
    for (int i = threadIdx.x; i < OUT * LINES; i += SIZE) {
        int line = ROWS ? i % LINES : i / OUT, k = ROWS ? i / LINES : i % OUT;
        Side<TO == 0, 1, TO ? TO : 1> side(job.to, job.strips_out, line, k);
        if (line < job.lanes) store(side[0], shared[place(line, k)], swap, scale);
    }
#else
    if (l >= job.lanes) return;
#pragma unroll
    for (int c = 0; c < rounds<STAGES - 1>(); c++) {
        int j = p + c * THREADS;
        if (M % THREADS == 0 || j < M) {
            Side<TO == 0, M, TO ? TO : 1> side(job.to, job.strips_out, l, j);
#pragma unroll
            for (int t = 0; t < R; t++)
                if (KIND != 1 || j + t * M < OUT) store(side[t], x[c * R + t], swap, scale);
        }
    }
#endif
}
