// Boxes of indices, and how a box is split over ranks.
#ifndef HEFFTE_GEOMETRY_H
#define HEFFTE_GEOMETRY_H

#include "heffte_utils.h"

namespace heffte {

// A box of indices with inclusive bounds. `order` lists dimensions from the fastest to the slowest in memory.
template <typename index = int>
struct box3d {
  box3d(std::array<index, 3> clow, std::array<index, 3> chigh) : box3d(clow, chigh, std::array<int, 3>{{0, 1, 2}}) {}
  box3d(std::array<index, 3> clow, std::array<index, 3> chigh, std::array<int, 3> corder)
      : low(clow), high(chigh), size(lengths(clow, chigh)), order(corder) {}
  box3d(std::array<index, 2> clow, std::array<index, 2> chigh)
      : box3d(std::array<index, 3>{{clow[0], clow[1], 0}}, std::array<index, 3>{{chigh[0], chigh[1], 0}}) {}
  box3d(std::array<index, 2> clow, std::array<index, 2> chigh, std::array<int, 2> corder)
      : box3d(std::array<index, 3>{{clow[0], clow[1], 0}}, std::array<index, 3>{{chigh[0], chigh[1], 0}},
              std::array<int, 3>{{corder[0], corder[1], 2}}) {}

  bool empty() const { return size[0] <= 0 || size[1] <= 0 || size[2] <= 0; }
  long long count() const {
    long long product = 1;
    for (index length : size) product *= length;
    return empty() ? 0 : product;
  }
  // The common part; empty where there is none.
  box3d collide(box3d const other) const {
    if (empty() || other.empty()) return none();
    std::array<index, 3> first = low, last = high;
    for (int i = 0; i < 3; i++) {
      first[i] = std::max(first[i], other.low[i]);
      last[i] = std::min(last[i], other.high[i]);
    }
    return box3d(first, last, order);
  }
  // The box of the spectrum of real data that is halved in a dimension.
  box3d r2c(int dimension) const {
    if (empty()) return none();
    std::array<index, 3> last = high;
    last[dimension] = low[dimension] + size[dimension] / 2;
    return box3d(low, last, order);
  }
  bool is2d() const { return size[0] == 1 || size[1] == 1 || size[2] == 1; }
  // Bounds only, not the order.
  bool operator==(box3d const &other) const { return low == other.low && high == other.high; }
  bool operator!=(box3d const &other) const { return !(*this == other); }
  bool ordered_same_as(box3d const &other) const { return order == other.order; }
  // The place of a dimension in the order.
  int find_order(int dimension) const {
    return static_cast<int>(std::find(order.begin(), order.begin() + 2, dimension) - order.begin());
  }
  // The length of the dimension at a place of the order.
  index osize(int place) const { return size[order[place]]; }

  std::array<index, 3> const low;
  std::array<index, 3> const high;
  std::array<index, 3> const size;
  std::array<int, 3> const order;

 private:
  static std::array<index, 3> lengths(std::array<index, 3> const &from, std::array<index, 3> const &to) {
    return std::array<index, 3>{{to[0] - from[0] + 1, to[1] - from[1] + 1, to[2] - from[2] + 1}};
  }
  static box3d none() { return box3d(std::array<index, 3>{{0, 0, 0}}, std::array<index, 3>{{-1, -1, -1}}); }
};

template <typename index = int>
using box2d = box3d<index>;

template <typename index>
std::ostream &operator<<(std::ostream &stream, box3d<index> const box) {
  for (int i = 0; i < 3; i++) stream << box.low[i] << "  " << box.high[i] << "  (" << box.size[i] << ")\n";
  return stream << "(" << box.order[0] << "," << box.order[1] << "," << box.order[2] << ")\n\n";
}

// The boxes of all ranks.
template <typename index = int>
struct ioboxes {
  std::vector<box3d<index>> in;
  std::vector<box3d<index>> out;
};

// The smallest box that holds all.
template <typename index>
box3d<index> find_world(std::vector<box3d<index>> const &boxes) {
  std::array<index, 3> low = boxes.at(0).low, high = boxes[0].high;
  for (auto const &box : boxes) {
    for (int i = 0; i < 3; i++) {
      low[i] = std::min(low[i], box.low[i]);
      high[i] = std::max(high[i], box.high[i]);
    }
  }
  return box3d<index>(low, high);
}

template <typename index>
bool match(std::vector<box3d<index>> const &one, std::vector<box3d<index>> const &other) {
  return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin());
}

// Boxes must fill the world, which begins at 0, and must not overlap: throws where they do not.
template <typename index>
bool world_complete(std::vector<box3d<index>> const &boxes, box3d<index> const world) {
  long long filled = 0;
  for (std::size_t i = 0; i < boxes.size(); i++) {
    filled += boxes[i].count();
    for (std::size_t j = 0; j < i; j++)
      if (!boxes[i].collide(boxes[j]).empty()) throw std::invalid_argument("boxes of ranks overlap");
  }
  if (filled < world.count()) throw std::invalid_argument("boxes of ranks do not fill the world");
  if (world.low != std::array<index, 3>{{0, 0, 0}}) throw std::invalid_argument("indices of the world must begin at 0");
  return true;
}

// All pairs of factors.
inline std::vector<std::array<int, 2>> get_factors(int const n) {
  std::vector<std::array<int, 2>> pairs;
  for (int i = 1; i <= n; i++)
    if (n % i == 0) pairs.push_back(std::array<int, 2>{{i, n / i}});
  return pairs;
}

inline int get_area(std::array<int, 2> const &dims) { return dims[0] * dims[1] + dims[0] + dims[1]; }

// The most square grid of so many ranks; of two the one with the smaller first number.
inline std::array<int, 2> make_procgrid(int const num_procs) {
  auto const pairs = get_factors(num_procs);
  return *std::min_element(pairs.begin(), pairs.end(), [](std::array<int, 2> const &a, std::array<int, 2> const &b) {
    return get_area(a) < get_area(b);
  });
}

// Splits a box as evenly as can be; longer parts first. The first dimension of the grid runs fastest over ranks.
template <typename index>
std::vector<box3d<index>> split_world(box3d<index> const world, std::array<int, 3> const proc_grid) {
  auto const start = [&](int dimension, index part) -> index {
    index const parts = proc_grid[dimension], length = world.size[dimension];
    return world.low[dimension] + part * (length / parts) + std::min<index>(part, length % parts);
  };
  std::vector<box3d<index>> boxes;
  boxes.reserve(static_cast<std::size_t>(proc_grid[0]) * proc_grid[1] * proc_grid[2]);
  for (index k = 0; k < proc_grid[2]; k++)
    for (index j = 0; j < proc_grid[1]; j++)
      for (index i = 0; i < proc_grid[0]; i++)
        boxes.push_back(box3d<index>(std::array<index, 3>{{start(0, i), start(1, j), start(2, k)}},
                                     std::array<index, 3>{{start(0, i + 1) - 1, start(1, j + 1) - 1, start(2, k + 1) - 1}},
                                     world.order));
  return boxes;
}

template <typename index>
bool is_pencils(box3d<index> const world, std::vector<box3d<index>> const &boxes, int dimension) {
  return std::all_of(boxes.begin(), boxes.end(),
                     [&](box3d<index> const &box) { return box.size[dimension] == world.size[dimension]; });
}

// The grid of ranks whose boxes have the least surface; of equal ones the first, the first dimension varying slowest. Only
// whole divisors of the lesser of ranks and length are tried in the second dimension.
template <typename index>
std::array<int, 3> proc_setup_min_surface(box3d<index> const world, int num_procs) {
  std::array<int, 3> best{{1, 1, 1}};
  auto least = std::numeric_limits<index>::max();
  for (int i = 1; i <= std::min<index>(num_procs, world.size[0]); i++) {
    if (num_procs % i != 0) continue;
    int const rest = num_procs / i;
    int const most = static_cast<int>(std::min<index>(rest, world.size[1]));
    for (int j = 1; j <= most; j++) {
      int const k = rest / j;
      if (most % j != 0 || j * k != rest || k > world.size[2]) continue;
      index const a = world.size[0] / i, b = world.size[1] / j, c = world.size[2] / k;
      index const surface = a * b + b * c + c * a;
      if (surface < least) {
        least = surface;
        best = std::array<int, 3>{{i, j, k}};
      }
    }
  }
  return best;
}

namespace mpi {

// The boxes of all ranks. Collective.
template <typename index>
ioboxes<index> gather_boxes(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm) {
  static_assert(std::is_trivially_copyable<box3d<index>>::value, "boxes travel as bytes");
  constexpr std::size_t bytes = sizeof(box3d<index>);
  auto const all = [&](box3d<index> const &mine) {
    std::vector<box3d<index>> boxes(static_cast<std::size_t>(comm_size(comm)), mine);
    MPI_Allgather(&mine, static_cast<int>(bytes), MPI_BYTE, boxes.data(), static_cast<int>(bytes), MPI_BYTE, comm);
    return boxes;
  };
  return ioboxes<index>{all(inbox), all(outbox)};
}

}  // namespace mpi

}  // namespace heffte

#endif
