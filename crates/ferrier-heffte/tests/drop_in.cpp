// The headers against sums by definition, on any number of ranks, with the calls that known programs make. The argument is the
// number of random cases.
#include <cstdlib>
#include <cstring>
#include <random>

// Each by itself, as programs include them.
#include "heffte_backends.h"
#include "heffte_fft3d.h"
#include "heffte_fft3d_r2c.h"
#include "heffte.h"

namespace {

using complex = std::complex<double>;
using shape = std::array<int, 3>;
int rank = 0, ranks = 1, failures = 0;

void expect(bool right, std::string const &what) {
  if (right) return;
  failures++;
  std::cerr << "rank " << rank << ": " << what << "\n";
}

heffte::box3d<> whole(shape size, shape order = {{0, 1, 2}}) {
  return heffte::box3d<>({0, 0, 0}, {size[0] - 1, size[1] - 1, size[2] - 1}, order);
}

// The value of an element of the input.
complex value(int i, int j, int k, int array = 0) {
  return complex(std::sin(1.0 + i + 2.3 * j + 5.7 * k + array), std::cos(0.3 * i - 1.1 * j * k + 2 * array));
}

// Elements of a box in its memory order.
template <typename T, typename F>
std::vector<T> fill(heffte::box3d<> const &box, F &&at) {
  std::vector<T> data;
  for (int c = 0; c < box.osize(2); c++)
    for (int b = 0; b < box.osize(1); b++)
      for (int a = 0; a < box.osize(0); a++) {
        int index[3];
        int const place[3] = {a, b, c};
        for (int n = 0; n < 3; n++) index[box.order[n]] = box.low[box.order[n]] + place[n];
        data.push_back(static_cast<T>(at(index[0], index[1], index[2])));
      }
  return data;
}

// Sums by definition along each dimension; `term(n, k, x)` is what point x adds to mode k.
template <typename F>
std::vector<complex> transformed(shape size, std::vector<complex> data, F &&term) {
  int const strides[3] = {1, size[0], size[0] * size[1]};
  for (int d = 0; d < 3; d++) {
    std::vector<complex> next(data.size());
    for (std::size_t at = 0; at < data.size(); at++) {
      int const mode = static_cast<int>(at / strides[d]) % size[d];
      std::size_t const first = at - static_cast<std::size_t>(mode) * strides[d];
      for (int x = 0; x < size[d]; x++) next[at] += term(size[d], mode, x) * data[first + x * strides[d]];
    }
    data = next;
  }
  return data;
}

complex fourier(int n, int mode, int x) { return std::polar(1.0, -2 * M_PI * (mode * x % n) / n); }

std::vector<complex> spectrum(shape size, bool real, int array = 0) {
  auto data = fill<complex>(whole(size), [&](int i, int j, int k) { return value(i, j, k, array); });
  if (real)
    for (auto &one : data) one = one.real();
  return transformed(size, data, fourier);
}

template <typename T>
std::vector<T> part(heffte::box3d<> const &box, shape size, std::vector<complex> const &all) {
  return fill<T>(box, [&](int i, int j, int k) { return all[i + size[0] * (j + static_cast<std::size_t>(size[1]) * k)]; });
}

template <typename A, typename B>
double distance(std::vector<A> const &a, std::vector<B> const &b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); i++) most = std::max(most, double(std::abs(a[i] - A(b[i]))));
  return most;
}

// Boxes of this rank, those of the spectrum on another rank than those of the input, and in another order.
heffte::box3d<> box_of(shape size, int turn, shape order) {
  auto const world = whole(size, order);
  return heffte::split_world(world, heffte::proc_setup_min_surface(world, ranks))[(rank + turn) % ranks];
}

template <typename tag>
void complex_transforms() {
  shape const size = {{6, 5, 8}};
  double const points = 6 * 5 * 8;
  using heffte::reshape_algorithm;
  for (auto algorithm : {reshape_algorithm::alltoallv, reshape_algorithm::alltoall, reshape_algorithm::p2p_plined,
                         reshape_algorithm::p2p}) {
    auto const in = box_of(size, 0, {{0, 1, 2}}), out = box_of(size, 1, {{2, 0, 1}});
    heffte::plan_options options = heffte::default_options<tag>();
    options.algorithm = algorithm;
    options.use_pencils = algorithm != reshape_algorithm::p2p;
    heffte::fft3d<tag> made(in, out, MPI_COMM_WORLD, options);
    // Plans are moved, and used where they are constant.
    heffte::fft3d<tag> const fft = std::move(made);
    auto const input = fill<complex>(in, [](int i, int j, int k) { return value(i, j, k); });
    auto const expected = part<complex>(out, size, spectrum(size, false));
    std::vector<complex> output(fft.size_outbox()), back(fft.size_inbox()), work(fft.size_workspace());
    fft.forward(input.data(), output.data(), work.data());
    expect(distance(output, expected) < 1e-12 * points, "forward");
    fft.backward(output.data(), back.data(), work.data(), heffte::scale::full);
    expect(distance(back, input) < 1e-13, "backward");

    // The other precision, in place, of the same plan.
    std::vector<std::complex<float>> same(std::max(fft.size_inbox(), fft.size_outbox()));
    std::copy(input.begin(), input.end(), same.begin());
    fft.forward(same.data(), same.data(), heffte::scale::symmetric);
    std::vector<std::complex<float>> scaled(same.begin(), same.begin() + fft.size_outbox());
    for (auto &one : scaled) one *= std::sqrt(float(points));
    expect(distance(scaled, expected) < 1e-5 * points, "forward in place, float");
    fft.backward(same.data(), same.data(), heffte::scale::symmetric);
    same.resize(fft.size_inbox());
    expect(distance(same, input) < 1e-5, "backward in place, float");

    // Real input has a whole spectrum; real output is the real part, also where it was read from.
    auto const real = fill<double>(in, [](int i, int j, int k) { return value(i, j, k).real(); });
    fft.forward(real.data(), output.data());
    expect(distance(output, part<complex>(out, size, spectrum(size, true))) < 1e-12 * points, "forward, real");
    output.resize(std::max(output.size(), back.size()));
    auto *over = reinterpret_cast<double *>(output.data());
    fft.backward(output.data(), over, heffte::scale::full);
    expect(distance(std::vector<double>(over, over + fft.size_inbox()), real) < 1e-13, "backward, real, in place");

    // Three arrays.
    std::vector<complex> batch, batch_expected, batch_output(3 * fft.size_outbox());
    for (int array = 0; array < 3; array++) {
      auto const one = fill<complex>(in, [&](int i, int j, int k) { return value(i, j, k, array); });
      auto const its = part<complex>(out, size, spectrum(size, false, array));
      batch.insert(batch.end(), one.begin(), one.end());
      batch_expected.insert(batch_expected.end(), its.begin(), its.end());
    }
    fft.forward(3, batch.data(), batch_output.data());
    expect(distance(batch_output, batch_expected) < 1e-12 * points, "batch");
    if (ranks > 1 && algorithm == reshape_algorithm::p2p_plined)
      expect(fft.notes().find("p2p_plined") != std::string::npos, "notes: " + fft.notes());
  }
}

// Vectors, a duplicated communicator, 64-bit indices: IPPL's types; orders and r2c boxes: ESPResSo's.
void real_transforms() {
  using tag = heffte::backend::default_backend<heffte::tag::cpu>::type;
  shape const size = {{6, 5, 8}};
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int dimension = 0; dimension < 3; dimension++) {
    shape halved = size;
    halved[dimension] = size[dimension] / 2 + 1;
    expect(whole(size).r2c(dimension) == whole(halved), "r2c box");
    auto const in = box_of(size, 0, {{2, 1, 0}}), out = box_of(halved, 1, {{2, 1, 0}});
    auto const expected = part<complex>(out, size, spectrum(size, true));
    std::vector<double> const input = fill<double>(in, [](int i, int j, int k) { return value(i, j, k).real(); });
    heffte::fft3d_r2c<tag> fft(in, out, dimension, comm);
    auto const output = fft.forward(input);
    static_assert(std::is_same<decltype(output), std::vector<complex> const>::value, "complex output");
    expect(distance(output, expected) < 1e-10, "r2c forward");
    expect(distance(fft.backward(output, heffte::scale::full), input) < 1e-13, "r2c backward");

    using wide = heffte::box3d<long long>;
    wide const in64({in.low[0], in.low[1], in.low[2]}, {in.high[0], in.high[1], in.high[2]}, in.order);
    wide const out64({out.low[0], out.low[1], out.low[2]}, {out.high[0], out.high[1], out.high[2]}, out.order);
    auto const fft64 = std::make_shared<heffte::fft3d_r2c<tag, long long>>(in64, out64, dimension, comm);
    heffte::fft3d_r2c<tag, long long>::buffer_container<complex> work(fft64->size_workspace());
    std::vector<complex> modes(fft64->size_outbox());
    fft64->forward(input.data(), modes.data(), work.data(), heffte::scale::full);
    for (auto &one : modes) one *= 6 * 5 * 8;
    expect(distance(modes, expected) < 1e-10, "r2c forward, long long");
  }
  MPI_Comm_free(&comm);
}

template <typename tag, typename F>
void waves(double extra, double period, F &&term) {
  shape const size = {{4, 3, 5}};
  auto const in = box_of(size, 0, {{0, 1, 2}}), out = box_of(size, 1, {{0, 1, 2}});
  auto const all = fill<complex>(whole(size), [](int i, int j, int k) { return value(i, j, k).real(); });
  auto const sums = transformed(size, all, term);
  auto const input = fill<double>(in, [](int i, int j, int k) { return value(i, j, k).real(); });
  auto const expected =
      fill<double>(out, [&](int i, int j, int k) { return sums[i + size[0] * (j + size[1] * k)].real(); });
  heffte::rtransform<tag> const fft(in, out, MPI_COMM_WORLD);
  std::vector<double> output(fft.size_outbox()), back(fft.size_inbox());
  fft.forward(input.data(), output.data());
  expect(distance(output, expected) < 1e-12, heffte::backend::name<tag>() + " forward");
  fft.backward(output.data(), back.data(), heffte::scale::full);
  expect(distance(back, input) < 1e-13, heffte::backend::name<tag>() + " backward");
  fft.backward(output.data(), back.data());
  double factor = 8 * extra;
  for (int length : size) factor *= length + period;
  for (auto &one : back) one /= factor;
  expect(distance(back, input) < 1e-13, heffte::backend::name<tag>() + " backward, unscaled");
}

void cosines_and_sines() {
  auto const cosine2 = [](int n, int mode, int x) { return 2 * std::cos(M_PI * mode * (x + 0.5) / n); };
  auto const sine2 = [](int n, int mode, int x) { return 2 * std::sin(M_PI * (mode + 1) * (x + 0.5) / n); };
  auto const cosine1 = [](int n, int mode, int x) {
    return (x == 0 || x == n - 1 ? 1 : 2) * std::cos(M_PI * mode * x / (n - 1));
  };
  auto const sine1 = [](int n, int mode, int x) { return 2 * std::sin(M_PI * (mode + 1) * (x + 1) / (n + 1)); };
  waves<heffte::backend::fftw_cos>(1, 0, cosine2);
  waves<heffte::backend::stock_cos>(8, 0, cosine2);
  waves<heffte::backend::mkl_sin>(8, 0, sine2);
  waves<heffte::backend::fftw_sin>(1, 0, sine2);
  waves<heffte::backend::fftw_cos1>(1, -1, cosine1);
  waves<heffte::backend::stock_cos1>(8, -1, cosine1);
  waves<heffte::backend::fftw_sin1>(1, 1, sine1);
}

// Shapes, grids, orders and owners of boxes at random; the same on all ranks.
void random_cases(int count) {
  std::minstd_rand draw(11);
  auto const below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  auto const boxes = [&](shape size, std::vector<int> const &owners) {
    shape grid = {{1, 1, 1}}, order = {{0, 1, 2}};
    for (int rest = ranks, factor = 2; rest > 1; factor++)
      while (rest % factor == 0) {
        grid[below(3)] *= factor;
        rest /= factor;
      }
    for (int i = 2; i > 0; i--) std::swap(order[i], order[below(i + 1)]);
    // Some boxes are empty where a dimension has more parts than points.
    return heffte::split_world(whole(size, order), grid)[owners[rank]];
  };
  std::vector<int> owners(ranks);
  std::iota(owners.begin(), owners.end(), 0);
  for (int at = 0; at < count; at++) {
    shape const size = {{1 + below(9), 1 + below(9), 1 + below(9)}};
    int const dimension = below(3);
    shape halved = size;
    halved[dimension] = size[dimension] / 2 + 1;
    bool const real = below(2) == 1;
    for (int i = ranks - 1; i > 0; i--) std::swap(owners[i], owners[below(i + 1)]);
    auto const in = boxes(size, owners);
    for (int i = ranks - 1; i > 0; i--) std::swap(owners[i], owners[below(i + 1)]);
    auto const out = boxes(real ? halved : size, owners);
    auto const expected = part<complex>(out, size, spectrum(size, real));
    std::vector<complex> output(static_cast<std::size_t>(out.count()));
    double worst = 0;
    if (real) {
      auto const input = fill<double>(in, [](int i, int j, int k) { return value(i, j, k).real(); });
      std::vector<double> back(input.size());
      heffte::fft3d_r2c<heffte::backend::stock> const fft(in, out, dimension, MPI_COMM_WORLD);
      fft.forward(input.data(), output.data());
      fft.backward(output.data(), back.data(), heffte::scale::full);
      worst = distance(back, input);
    } else {
      auto const input = fill<complex>(in, [](int i, int j, int k) { return value(i, j, k); });
      std::vector<complex> back(input.size());
      heffte::fft3d<heffte::backend::stock> const fft(in, out, MPI_COMM_WORLD);
      fft.forward(input.data(), output.data());
      fft.backward(output.data(), back.data(), heffte::scale::full);
      worst = distance(back, input);
    }
    expect(worst < 1e-13 && distance(output, expected) < 1e-10, "random case " + std::to_string(at));
  }
}

// Numbers that programs lay out memory by.
void geometry() {
  expect(heffte::make_procgrid(12) == std::array<int, 2>{{3, 4}}, "make_procgrid");
  expect(heffte::proc_setup_min_surface(whole({{10, 20, 30}}), 6) == shape{{1, 2, 3}}, "proc_setup_min_surface");
  auto const boxes = heffte::split_world(whole({{7, 4, 3}}), {{2, 2, 1}});
  expect(boxes.size() == 4 && boxes[1] == heffte::box3d<>({4, 0, 0}, {6, 1, 2}), "split_world");
  heffte::box2d<> const flat(std::array<int, 2>{{1, 2}}, std::array<int, 2>{{3, 5}});
  expect(flat.count() == 12 && flat.is2d() && !flat.empty(), "box2d");
  expect(heffte::backend::name<heffte::backend::fftw_sin>() == "fftw-sin-type-II", "name");
  expect(heffte::backend::is_enabled<heffte::backend::mkl>::value, "mkl is served");
  expect(!heffte::backend::is_enabled<heffte::backend::rocfft>::value, "rocfft is not");
  std::vector<complex> line = {1, 2, 3, 4};
  auto const executor = heffte::make_executor<heffte::backend::stock>(nullptr, whole({{4, 1, 1}}), 0);
  executor->forward(line.data(), static_cast<complex *>(nullptr));
  expect(distance(line, std::vector<complex>{10, complex(-2, 2), -2, complex(-2, -2)}) < 1e-14, "executor");
}

// What heFFTe's benchmarks reach for.
template <typename tag>
void benchmarks() {
  namespace backend = heffte::backend;
  static_assert(!backend::uses_gpu<tag>::value, "in main memory");
  static_assert(std::is_same<typename backend::buffer_traits<tag>::location, heffte::tag::cpu>::value, "in main memory");
  static_assert(std::is_same<typename heffte::fft_output<float>::type, std::complex<float>>::value, "complex output");
  shape const size = {{6, 4, 10}};
  auto const world = whole(size);
  auto const bricks = heffte::split_world(world, heffte::proc_setup_min_surface(world, ranks));
  auto const options = heffte::default_options<tag>();
  heffte::logic_plan3d<int> const logic = heffte::plan_operations<int>({bricks, bricks}, -1, options, rank);
  auto const grids = heffte::compute_grids(logic);
  expect(grids.size() == 5 && grids.front() == heffte::proc_setup_min_surface(world, ranks), "compute_grids");
  // Each of the three shapes between bricks has one dimension whole, and all points.
  for (int i = 0; i < 3; i++) {
    long long points = 0;
    for (auto const &box : logic.out_shape[i]) points += box.count();
    expect(points == world.count() && grids[i + 1][logic.fft_direction[i]] == 1, "plan_operations");
  }
  expect(logic.fft_sizes == size && logic.index_count == world.count() && logic.mpi_rank == rank, "logic_plan3d");

  // Executors of the shapes, one after the other, are the transform; scaled, it is undone by those backward.
  backend::device_instance<heffte::tag::cpu> const queue;
  using executor = typename heffte::one_dim_backend<tag>::executor;
  std::array<std::unique_ptr<executor>, 3> const executors = {{heffte::make_executor<tag>(queue.stream(), world, 0),
                                                               heffte::make_executor<tag>(queue.stream(), world, 1),
                                                               heffte::make_executor<tag>(queue.stream(), world, 2)}};
  typename backend::buffer_traits<tag>::template container<complex> work(heffte::get_max_work_size(executors));
  auto const input = fill<complex>(world, [](int i, int j, int k) { return value(i, j, k); });
  auto data = input;
  for (auto const &one : executors) one->forward(data.data(), work.data());
  expect(distance(data, spectrum(size, false)) < 1e-10, "executors forward");
  for (auto const &one : executors) one->backward(data.data(), work.data());
  heffte::data_scaling::apply(queue.stream(), world.count(), data.data(), 1.0 / static_cast<double>(world.count()));
  queue.synchronize_device();
  expect(distance(data, input) < 1e-13, "data_scaling");

  double most = rank;
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, heffte::mpi::type_from<double>(), MPI_MAX, MPI_COMM_WORLD);
  expect(most == ranks - 1 && heffte::mpi::world_rank() == rank && heffte::mpi::world_rank(rank), "world_rank");
  heffte::init_tracing("drop_in");
  { heffte::add_trace const timed("nothing"); }
  heffte::finalize_tracing();
}

// Cabana: shared plans with a stream and all options, arrays of numbers that are read as complex ones, in place with a workspace.
void cabana() {
  using fft = heffte::fft3d<heffte::backend::fftw>;
  shape const size = {{4, 6, 5}};
  auto const box = box_of(size, 0, {{0, 1, 2}});
  heffte::plan_options options = heffte::default_options<heffte::backend::fftw>();
  options.algorithm = heffte::reshape_algorithm::p2p;
  options.use_pencils = options.use_reorder = true;
  options.use_gpu_aware = false;
  auto const plan = std::make_shared<fft>(fft::stream_type(), box, box, MPI_COMM_WORLD, options);
  auto const input = fill<complex>(box, [](int i, int j, int k) { return value(i, j, k); });
  std::vector<double> numbers(2 * input.size());
  std::memcpy(numbers.data(), input.data(), input.size() * sizeof(complex));
  fft::buffer_container<complex> work(plan->size_workspace());
  auto *const data = reinterpret_cast<complex *>(numbers.data());
  plan->forward(data, data, work.data(), heffte::scale::none);
  expect(distance(std::vector<complex>(data, data + input.size()), part<complex>(box, size, spectrum(size, false))) < 1e-10,
         "Cabana forward");
  plan->backward(data, data, work.data(), heffte::scale::full);
  expect(distance(std::vector<complex>(data, data + input.size()), input) < 1e-13, "Cabana backward");
}

// IPPL: 64-bit indices, also of cosine and sine transforms; each `comm` option of its plans.
template <typename tag>
void ippl() {
  using box = heffte::box3d<long long>;
  using fft = heffte::rtransform<tag, long long>;
  auto const mine = box_of({{5, 4, 6}}, 0, {{0, 1, 2}});
  std::array<long long, 3> const low = {{mine.low[0], mine.low[1], mine.low[2]}};
  std::array<long long, 3> const high = {{mine.high[0], mine.high[1], mine.high[2]}};
  box const inbox = {low, high}, outbox = {low, high};
  heffte::plan_options options = heffte::default_options<tag>();
  options.algorithm = heffte::reshape_algorithm::alltoall;
  auto const plan = std::make_shared<fft>(inbox, outbox, MPI_COMM_WORLD, options);
  typename fft::template buffer_container<double> work(plan->size_workspace());
  auto const input = fill<double>(mine, [](int i, int j, int k) { return value(i, j, k).real(); });
  std::vector<double> data = input;
  plan->forward(data.data(), data.data(), work.data(), heffte::scale::full);
  plan->backward(data.data(), data.data(), work.data(), heffte::scale::none);
  expect(distance(data, input) < 1e-13, "IPPL " + heffte::backend::name<tag>());
}

// OpenPFC: a constant member of a constant object.
struct spectral_model {
  heffte::fft3d_r2c<heffte::backend::fftw> const fft;
  std::vector<double> round_trip(std::vector<double> const &field) const {
    std::vector<complex> modes(fft.size_outbox()), work(fft.size_workspace());
    std::vector<double> back(fft.size_inbox());
    fft.forward(field.data(), modes.data(), work.data());
    fft.backward(modes.data(), back.data(), work.data(), heffte::scale::full);
    return back;
  }
};

void open_pfc() {
  auto const in = box_of({{8, 3, 4}}, 0, {{0, 1, 2}}), out = box_of({{5, 3, 4}}, 0, {{0, 1, 2}});
  spectral_model const model{{in, out, 0, MPI_COMM_WORLD}};
  auto const field = fill<double>(in, [](int i, int j, int k) { return value(i, j, k).real(); });
  expect(distance(model.round_trip(field), field) < 1e-13, "OpenPFC");
}

void errors() {
  bool thrown = false;
  try {
    // All ranks have the whole.
    heffte::fft3d<heffte::backend::stock> fft(whole({{4, 4, 4}}), whole({{4, 4, 5}}), MPI_COMM_WORLD);
  } catch (std::runtime_error const &error) {
    thrown = std::strstr(error.what(), "outboxes") != nullptr;
  }
  expect(thrown, "boxes that do not fit");
}

}  // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  rank = heffte::mpi::comm_rank(MPI_COMM_WORLD);
  ranks = heffte::mpi::comm_size(MPI_COMM_WORLD);
  geometry();
  complex_transforms<heffte::backend::stock>();
  complex_transforms<heffte::backend::fftw>();
  real_transforms();
  cosines_and_sines();
  benchmarks<heffte::backend::stock>();
  cabana();
  ippl<heffte::backend::stock_cos>();
  ippl<heffte::backend::fftw_sin>();
  ippl<heffte::backend::fftw_cos1>();
  open_pfc();
  random_cases(argc > 1 ? std::atoi(argv[1]) : 20);
  errors();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::cout << (failures ? "failures: " + std::to_string(failures) : "all right") << "\n";
  MPI_Finalize();
  return failures != 0;
}
