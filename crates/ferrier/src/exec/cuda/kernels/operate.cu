// The modes of whole lines that lie densely, line after line: for lines that
// cuFFT transforms, which has no place for formulas.

// `rows` by `lanes` lines of `len` modes each, of some arrays; `low` says which
// lines these are. `edges`: of the modes of a real line of so many points those
// that have no conjugate are made real.
extern "C" __global__ void __launch_bounds__(256)
    operate_lines(Pair *modes, Word count, unsigned len, unsigned rows, unsigned lanes, unsigned low_row, unsigned low_lane,
                  unsigned edges, const FusedOp op) {
    Word at = Word(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    int k = int(at % len);
    Word line = at / len;
    int across[2] = {int(low_lane + unsigned(line % lanes)), int(low_row + unsigned(line / lanes % rows))};
    Pair value = fused(modes[at], k, across, int(line / lanes / rows), op);
    if (edges && (k == 0 || 2 * unsigned(k) == edges)) value.y = 0;
    modes[at] = value;
}
