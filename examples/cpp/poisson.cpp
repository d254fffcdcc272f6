// Solves laplace(u) = f in a periodic box of side 2 pi, distributed over ranks:
//
//   c++ -std=c++17 poisson.cpp -o poisson $(pkg-config --cflags --libs ferrier) && ./poisson
//   mpicxx -std=c++17 -DWITH_MPI poisson.cpp -o poisson $(pkg-config --cflags --libs ferrier) && mpiexec -n 4 ./poisson
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <cmath>
#include <cstdio>
#include <ferrier.hpp>
#include <vector>

namespace {
constexpr std::uint64_t n = 48;
const double pi = std::acos(-1.0);

double wave(std::uint64_t i, std::uint64_t j, std::uint64_t k) {
  const double h = 2 * pi / n;
  return std::sin(h * i) * std::cos(2 * h * j) * std::sin(3 * h * k);
}

double solve(const ferrier::Comm &comm) {
  using ferrier::Side;
  auto problem = ferrier::Problem::r2c({n, n, n});
  problem.bricks(Side::input).unconstrained(Side::output).operators();
  ferrier::Plan<double> plan(comm, problem);

  std::vector<double> f(plan.input_size()), u(plan.input_size());
  const auto box = plan.box(Side::input);
  std::size_t at = 0;
  for (auto i = box.lo[0]; i < box.hi[0]; i++)
    for (auto j = box.lo[1]; j < box.hi[1]; j++)
      for (auto k = box.lo[2]; k < box.hi[2]; k++) f[at++] = -14 * wave(i, j, k);

  plan.apply(plan.named("inverse_laplacian", {2 * pi, 2 * pi, 2 * pi}), f, u);

  double error = 0;
  at = 0;
  for (auto i = box.lo[0]; i < box.hi[0]; i++)
    for (auto j = box.lo[1]; j < box.hi[1]; j++)
      for (auto k = box.lo[2]; k < box.hi[2]; k++) error = std::fmax(error, std::fabs(u[at++] - wave(i, j, k)));

  // The same with the spectrum in between, in memory that the ranks of a node share.
  auto field = plan.make_input<double>();
  auto modes = plan.make_output<std::complex<double>>();
  std::copy(u.begin(), u.end(), field.begin());
  plan.forward(field, modes);
  plan.backward(modes, field);
  for (std::size_t i = 0; i < u.size(); i++) error = std::fmax(error, std::fabs(field[i] - u[i]));
  return error;
}
}  // namespace

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  double error = 1;
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
#endif
  try {
#ifdef WITH_MPI
    auto comm = ferrier::Comm::from_mpi(MPI_COMM_WORLD);
    error = solve(comm);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
#else
    auto comm = ferrier::Comm::one();
    error = solve(comm);
#endif
    if (comm.rank() == 0)
      std::printf("poisson in C++: %d^3, %d ranks, largest error %.1e\n", int(n), int(comm.size()), error);
  } catch (const ferrier::Error &failure) {
    std::fprintf(stderr, "%s: %s\n", ferrier_status_name(failure.status()), failure.what());
#ifdef WITH_MPI
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
  }
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return error < 1e-13 ? 0 : 1;
}
