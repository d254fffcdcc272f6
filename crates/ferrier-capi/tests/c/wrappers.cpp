// ferrier.hpp beyond transforms: drafts, redistribution, ghost cells and their sums, lists of fields. Run by scripts/check-c.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ferrier.hpp>
#include <stdexcept>
#include <string>

using ferrier::Side;
using Complex = std::complex<double>;

namespace {
void want(bool condition, const char *what) {
  if (!condition) throw std::runtime_error(what);
}
#define WANT(condition) want(condition, #condition)

// Calls a function for each cell of a box.
template <class F>
void each(const ferrier::Box &box, F &&visit) {
  for (auto i = box.lo[0]; i < box.hi[0]; i++)
    for (auto j = box.lo[1]; j < box.hi[1]; j++)
      for (auto k = box.lo[2]; k < box.hi[2]; k++) visit(i, j, k);
}

void moves(const ferrier::Comm &comm) {
  auto problem = ferrier::Problem::redistribute({6, 5, 4});
  problem.pencils(Side::output, 0).order(Side::output, {2, 1, 0});
  ferrier::Redistribution<std::int32_t> moving(comm, problem);
  auto from = moving.make(Side::input);
  std::vector<std::int32_t> to(moving.size(Side::output));
  std::size_t at = 0;
  each(moving.box(Side::input), [&](auto i, auto j, auto k) { from[at++] = std::int32_t(100 * i + 10 * j + k); });
  moving.run(from, to);
  const auto box = moving.box(Side::output);
  each(box, [&](auto i, auto j, auto k) {
    const auto place = (k - box.lo[2]) * box.size(1) * box.size(0) + (j - box.lo[1]) * box.size(0) + i - box.lo[0];
    WANT(to[place] == std::int32_t(100 * i + 10 * j + k));
  });

  ferrier::Ghosts ghosts(1);
  ghosts.periodic = {true, true, true};
  ferrier::Halo<double> halo(comm, problem, Side::input, ghosts);
  auto field = halo.make();
  const auto own = halo.box();
  const auto strides = halo.strides();
  const auto place = [&](auto i, auto j, auto k) {
    return (i - own.lo[0] + 1) * strides[0] + (j - own.lo[1] + 1) * strides[1] + (k - own.lo[2] + 1) * strides[2];
  };
  each(own, [&](auto i, auto j, auto k) { field[place(i, j, k)] = double(10 * j + k); });
  halo.start({field});
  halo.finish();
  // Axes 1 and 2 are whole: their ghost cells are the cells of the other end.
  each(own, [&](auto i, auto, auto) { WANT(field[place(i, own.lo[1] - 1, own.lo[2])] == 40); });
  std::fill(field.begin(), field.end(), 1.0);
  ferrier::GhostSum<double> sum(comm, problem, Side::input, ghosts);
  WANT(sum.size() == halo.size() && sum.shape() == halo.shape());
  WANT(halo.notes() == sum.notes() && halo.memory_bytes() < 1 << 30 && sum.memory_bytes() < 1 << 30);
  sum.run({field});
  std::array<double, 2> cells{0, double(sum.size())};
  each(own, [&](auto i, auto j, auto k) { cells[0] += field[place(i, j, k)]; });
  comm.sum(cells);
  WANT(cells[0] == cells[1]);
  bool refused = false;
  try {
    halo.exchange({field, field});
  } catch (const ferrier::Error &error) {
    refused = error.status() == FERRIER_STATUS_ARGUMENT || error.status() == FERRIER_STATUS_ARRAY;
  }
  WANT(refused || sum.size() == 0);
}

void fields(const ferrier::Comm &comm) {
  auto problem = ferrier::Problem::r2c({4, 4, 4});
  problem.batch(2).scale(ferrier::Scale::symmetric, ferrier::Scale::symmetric);
  ferrier::Draft<double> draft(comm, problem);
  WANT(draft.seconds() > 0 && draft.json("recipe").size() > 2);
  const auto bytes = draft.memory_bytes();
  auto plan = std::move(draft).build();
  WANT(plan.memory_bytes() == bytes && !plan.is_tuning());
  std::vector<double> a(plan.field_size(Side::input), 1.0), b(a.size(), 2.0), c(a.size());
  std::vector<Complex> u(plan.field_size(Side::output)), v(u.size());
  using Real = ferrier::Span<double>;
  using Modes = ferrier::Span<Complex>;
  plan.forward_fields<double, Complex>({Real(a), Real(b)}, {Modes(u), Modes(v)});
  for (std::size_t i = 0; i < u.size(); i++) WANT(std::abs(v[i] - 2.0 * u[i]) < 1e-12);
  plan.backward_fields<Complex, double>({Modes(v), Modes(u)}, {Real(a), Real(c)});
  for (std::size_t i = 0; i < a.size(); i++) WANT(std::fabs(a[i] - 2) < 1e-12 && std::fabs(c[i] - 1) < 1e-12);

  auto sphere = ferrier::Problem::c2c({8, 8, 8});
  sphere.keep_ellipsoid({2, 2, 2});
  WANT(sphere.kept_modes(0).size() == 5 && sphere.columns().size() % 2 == 0 && !sphere.columns().empty());
  sphere.check();
  const auto signed_one = ferrier::Problem::c2c_1d(35);
  WANT(signed_one.mode(34)[2] == 6);
}
}  // namespace

int main() {
  try {
    for (std::uint64_t ranks : {1, 3}) {
      ferrier::run_ranks(
          ranks,
          [](ferrier::Comm &comm) {
            moves(comm);
            fields(comm);
          },
          1);
    }
    bool thrown = false;
    try {
      ferrier::run_ranks(2, [](ferrier::Comm &comm) {
        if (comm.rank() == 1) throw std::domain_error("of rank 1");
        comm.barrier();
      });
    } catch (const std::domain_error &) {
      thrown = true;
    }
    WANT(thrown);
    WANT(ferrier::status_name(FERRIER_STATUS_OK) == "FERRIER_STATUS_OK" && ferrier::cuda_count() < 1000);
    WANT(ferrier::predict<float>(ferrier::Problem::c2c({64, 64, 64}), 64, 8, 2).find("prediction") != std::string::npos);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "failed: %s\n", error.what());
    return 1;
  }
  std::printf("ferrier.hpp: ok\n");
}
