// Options of plans, and the shapes that a transform passes through.
#ifndef HEFFTE_PLAN_LOGIC_H
#define HEFFTE_PLAN_LOGIC_H

#include "heffte_common.h"

namespace heffte {

// The MPI calls that carry data. Ferrier chooses where it is alltoallv, the default. Otherwise it sends so between nodes;
// on a node it sends no messages.
enum class reshape_algorithm { alltoallv = 0, alltoall = 3, p2p_plined = 1, p2p = 2 };

struct plan_options {
  template <typename backend_tag>
  plan_options(backend_tag const)
      : plan_options(default_plan_options<backend_tag>::use_reorder, reshape_algorithm::alltoallv, true) {}
  plan_options(bool reorder, reshape_algorithm alg, bool pencils)
      : use_reorder(reorder), algorithm(alg), use_pencils(pencils), use_gpu_aware(true) {}

  // Contiguous lines. Ferrier's kernels decide themselves.
  bool use_reorder;
  reshape_algorithm algorithm;
  // false: slabs where they fit; true, the default: Ferrier chooses.
  bool use_pencils;
  // Ferrier asks MPI whether it takes addresses of a GPU.
  bool use_gpu_aware;

  // So many ranks hold data between the first and the last reshape.
  void use_num_subranks(int num_subranks) { subranks = num_subranks; }
  // As heFFTe has it: one rank.
  void use_subcomm(MPI_Comm) { subranks = 1; }
  int get_subranks() const { return subranks; }

 private:
  int subranks = -1;
};

inline std::ostream &operator<<(std::ostream &stream, plan_options const options) {
  char const *algorithm = "";
  switch (options.algorithm) {
    case reshape_algorithm::alltoallv: algorithm = "mpi:alltoallv"; break;
    case reshape_algorithm::alltoall: algorithm = "mpi:alltoall"; break;
    case reshape_algorithm::p2p_plined: algorithm = "mpi:point-to-point-pipelined"; break;
    case reshape_algorithm::p2p: algorithm = "mpi:point-to-point"; break;
  }
  return stream << "options = (" << (options.use_reorder ? "fft1d:contiguous" : "fft1d:strided") << ", " << algorithm
                << ", " << (options.use_pencils ? "decomposition:pencil" : "decomposition:slab") << ", "
                << (options.use_gpu_aware ? "mpi:from-gpu" : "mpi:from-cpu") << ")";
}

// The options that a backend makes of those of the user: cosine and sine transforms have contiguous lines.
template <typename backend_tag, bool use_r2c = false>
plan_options set_options(plan_options options) {
  options.use_reorder = options.use_reorder || !(detail::backend_of<backend_tag>::transform == detail::complex ||
                                                 detail::backend_of<backend_tag>::backward_factor == 1.0);
  return options;
}

template <typename backend_tag>
plan_options default_options() {
  return plan_options(backend_tag());
}

// The shapes between inboxes and outboxes, where three dimensions are transformed one after the other.
template <typename index>
struct logic_plan3d {
  std::vector<box3d<index>> in_shape[4];
  std::vector<box3d<index>> out_shape[4];
  std::array<index, 3> fft_sizes;
  std::array<int, 3> fft_direction;
  long long index_count;
  plan_options const options;
  int const mpi_rank;
};

// Pencils in each dimension, the halved one first (-1: none). For programs that print them: Ferrier's plans take other ways
// where they are faster.
template <typename index>
logic_plan3d<index> plan_operations(ioboxes<index> const &boxes, int r2c_direction, plan_options const options,
                                    int const mpi_rank) {
  box3d<index> const world_in = find_world(boxes.in), world_out = find_world(boxes.out);
  int const first = r2c_direction < 0 ? 0 : r2c_direction;
  std::array<int, 3> const directions{{first, first == 0 ? 1 : 0, first == 2 ? 1 : 2}};
  int const ranks = static_cast<int>(boxes.in.size());
  bool const fewer = options.get_subranks() > 0 && options.get_subranks() < ranks;
  std::array<int, 2> const grid = make_procgrid(fewer ? options.get_subranks() : ranks);
  auto const pencils = [&](box3d<index> const &world, int dimension) {
    std::array<int, 3> full{{grid[0], grid[0], grid[1]}};
    if (dimension == 2) full[1] = grid[1];
    full[dimension] = 1;
    std::vector<box3d<index>> shape = split_world(world, full);
    // Ranks that hold nothing. Boxes cannot be assigned.
    while (shape.size() < boxes.in.size())
      shape.push_back(box3d<index>(std::array<index, 3>{{0, 0, 0}}, std::array<index, 3>{{-1, -1, -1}}));
    return shape;
  };
  std::vector<box3d<index>> const first_shape =
      is_pencils(world_in, boxes.in, first) ? boxes.in : pencils(world_in, first);
  std::vector<box3d<index>> const second_shape = pencils(world_out, directions[1]);
  std::vector<box3d<index>> const third_shape =
      is_pencils(world_out, boxes.out, directions[2]) ? boxes.out : pencils(world_out, directions[2]);
  std::vector<box3d<index>> halved;
  for (auto const &box : first_shape) halved.push_back(r2c_direction < 0 ? box : box.r2c(r2c_direction));
  return logic_plan3d<index>{{boxes.in, halved, second_shape, third_shape},
                             {first_shape, second_shape, third_shape, boxes.out},
                             world_in.size,
                             directions,
                             world_in.count(),
                             options,
                             mpi_rank};
}

// The number of parts of each dimension in each of the five shapes.
template <typename index>
std::vector<std::array<int, 3>> compute_grids(logic_plan3d<index> const &plan) {
  std::vector<std::array<int, 3>> grids;
  for (int i = 0; i < 5; i++) {
    auto const &shape = i < 4 ? plan.in_shape[i] : plan.out_shape[3];
    std::array<int, 3> grid{{0, 0, 0}};
    for (int dimension = 0; dimension < 3; dimension++) {
      std::vector<index> starts;
      for (auto const &box : shape)
        if (!box.empty()) starts.push_back(box.low[dimension]);
      std::sort(starts.begin(), starts.end());
      grid[dimension] = static_cast<int>(std::unique(starts.begin(), starts.end()) - starts.begin());
    }
    grids.push_back(grid);
  }
  return grids;
}

}  // namespace heffte

#endif
