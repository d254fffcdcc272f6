// Ferrier for C++17: header-only, on top of ferrier.h.
//
//   ferrier::Comm comm = ferrier::Comm::from_mpi(MPI_COMM_WORLD);        // or ferrier::Comm::one()
//   ferrier::Plan<double> plan(comm, ferrier::Problem::r2c({256, 256, 256}).bricks(ferrier::Side::input));
//   std::vector<double> field(plan.input_size());
//   std::vector<std::complex<double>> modes(plan.output_size());
//   plan.forward(field, modes);
//
// Objects own what they stand for and can be moved, not copied. Errors are exceptions (ferrier::Error); functions whose
// names begin with try_ return a Status instead and throw nothing. Functions marked collective must be called by all
// ranks. See ferrier.h for what each call means.
#ifndef FERRIER_HPP
#define FERRIER_HPP

#include <array>
#include <complex>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferrier.h"

namespace ferrier {

using Status = ferrier_status;
using Shape = std::array<std::uint64_t, 3>;

enum class Side : std::int32_t { input = FERRIER_SIDE_INPUT, output = FERRIER_SIDE_OUTPUT };
enum class Scale : std::int32_t {
  none = FERRIER_SCALE_NONE,
  full = FERRIER_SCALE_FULL,
  symmetric = FERRIER_SCALE_SYMMETRIC
};
enum class Effort : std::int32_t {
  estimate = FERRIER_EFFORT_ESTIMATE,
  measure = FERRIER_EFFORT_MEASURE,
  patient = FERRIER_EFFORT_PATIENT,
  online = FERRIER_EFFORT_ONLINE
};

// An error of the library: its status and text.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// Throws where a call of ferrier.h failed.
inline void check(Status status) {
  if (status != FERRIER_STATUS_OK) throw Error(status, ferrier_last_error());
}

// The text of the last error in this thread.
inline std::string last_error() { return ferrier_last_error(); }

// A view of contiguous elements: pointer and number. Made from vectors, arrays and anything else with data() and size().
template <class E>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(E *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), E *>>>
  constexpr Span(C &container) noexcept : data_(container.data()), size_(container.size()) {}
  constexpr E *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr std::uint64_t bytes() const noexcept { return size_ * sizeof(E); }
  constexpr E &operator[](std::size_t at) const noexcept { return data_[at]; }
  constexpr E *begin() const noexcept { return data_; }
  constexpr E *end() const noexcept { return data_ + size_; }

 private:
  E *data_ = nullptr;
  std::size_t size_ = 0;
};

// A box of global indices: lo <= index < hi.
struct Box : ferrier_box {
  Box() : ferrier_box{} {}
  Box(const ferrier_box &box) : ferrier_box(box) {}
  Box(const Shape &lo_, const Shape &hi_) : ferrier_box{{lo_[0], lo_[1], lo_[2]}, {hi_[0], hi_[1], hi_[2]}} {}
  std::uint64_t size(int axis) const noexcept { return hi[axis] > lo[axis] ? hi[axis] - lo[axis] : 0; }
  std::uint64_t volume() const noexcept { return size(0) * size(1) * size(2); }
  bool contains(const Shape &at) const noexcept {
    bool inside = true;
    for (int axis = 0; axis < 3; axis++) inside = inside && lo[axis] <= at[axis] && at[axis] < hi[axis];
    return inside;
  }
};

namespace detail {
template <class Raw, ferrier_status (*Free)(Raw *)>
struct Deleter {
  void operator()(Raw *raw) const noexcept { Free(raw); }
};
template <class Raw, ferrier_status (*Free)(Raw *)>
using Owner = std::unique_ptr<Raw, Deleter<Raw, Free>>;

// The text that a function gives.
template <class F>
std::string text(F &&give) {
  char *raw = nullptr;
  check(give(&raw));
  std::string text(raw);
  ferrier_string_free(raw);
  return text;
}

template <class T>
constexpr std::int32_t precision() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "plans are of float or double");
  return std::is_same_v<T, float> ? FERRIER_PRECISION_F32 : FERRIER_PRECISION_F64;
}
}  // namespace detail

inline std::string version() { return ferrier_version(); }
// The machine and what the library can do on it, as JSON.
inline std::string info() { return detail::text(ferrier_info); }
// The number of CUDA devices.
inline std::uint64_t cuda_count() {
  std::uint64_t count = 0;
  check(ferrier_cuda_count(&count));
  return count;
}
// The name of a status.
inline std::string status_name(Status status) { return ferrier_status_name(status); }
// The user's wisdom file.
inline std::string wisdom_file() { return detail::text(ferrier_wisdom_file); }
// Adds the entries of a wisdom file to another one.
inline void wisdom_merge(const std::string &from, const std::string &to) {
  check(ferrier_wisdom_merge(from.c_str(), to.c_str()));
}

// A group of ranks.
class Comm {
 public:
  // This process alone.
  static Comm one() { return make(ferrier_comm_one); }
  // All processes of this launch, or this one alone. Collective.
  static Comm world() { return make(ferrier_comm_world); }
  static Comm from_fortran(std::int32_t handle, const void *mpi_function = nullptr) {
    return make([&](ferrier_comm **comm) { return ferrier_comm_from_fortran(handle, mpi_function, comm); });
  }
#if defined(MPI_VERSION)
  // Collective over the communicator.
  static Comm from_mpi(MPI_Comm mpi) {
    return make([&](ferrier_comm **comm) { return ferrier_comm_from_mpi(mpi, comm); });
  }
#endif
  std::uint64_t rank() const { return number(ferrier_comm_rank); }
  std::uint64_t size() const { return number(ferrier_comm_size); }
  std::uint64_t nodes() const { return number(ferrier_comm_nodes); }
  std::uint64_t threads() const { return number(ferrier_comm_threads); }
  void set_threads(std::uint64_t threads) { check(ferrier_comm_set_threads(raw(), threads)); }
  // Collective.
  void barrier() const { check(ferrier_comm_barrier(raw())); }
  // Sums and maxima over ranks, in the place of the values. Collective.
  void sum(Span<double> values) const { check(ferrier_comm_sum(raw(), values.data(), values.size())); }
  void max(Span<double> values) const { check(ferrier_comm_max(raw(), values.data(), values.size())); }
  double sum(double value) const {
    sum(Span<double>(&value, 1));
    return value;
  }
  double max(double value) const {
    max(Span<double>(&value, 1));
    return value;
  }
  std::string json() const {
    return detail::text([&](char **text) { return ferrier_comm_json(raw(), text); });
  }
  // Measures the machine under these ranks and keeps the result in a wisdom file (empty: the user's). Collective.
  std::string measure_machine(const std::string &wisdom = std::string()) const {
    const char *path = wisdom.empty() ? nullptr : wisdom.c_str();
    return detail::text([&](char **text) { return ferrier_measure_machine(raw(), path, text); });
  }
  ferrier_comm *raw() const noexcept { return raw_.get(); }
  // Takes over a handle.
  explicit Comm(ferrier_comm *raw) : raw_(raw) {}

 private:
  template <class F>
  static Comm make(F &&make) {
    ferrier_comm *raw = nullptr;
    check(make(&raw));
    return Comm(raw);
  }
  template <class F>
  std::uint64_t number(F &&get) const {
    std::uint64_t value = 0;
    check(get(raw(), &value));
    return value;
  }
  detail::Owner<ferrier_comm, ferrier_comm_free> raw_;
};

// Runs a function on so many ranks inside this process, one thread each, without MPI. An exception of the function on any
// rank ends the others' collective calls, and is thrown here (that of the lowest such rank).
inline void run_ranks(std::uint64_t ranks, const std::function<void(Comm &)> &function, std::uint64_t threads = 0,
                      std::uint64_t nodes = 1) {
  struct Work {
    const std::function<void(Comm &)> &function;
    std::vector<std::exception_ptr> thrown;
    static std::int32_t run(void *data, ferrier_comm *raw) noexcept {
      Work &work = *static_cast<Work *>(data);
      std::uint64_t rank = 0;
      Comm comm(raw);
      if (ferrier_comm_rank(raw, &rank) != FERRIER_STATUS_OK) return 1;
      try {
        work.function(comm);
        return 0;
      } catch (...) {
        work.thrown[rank] = std::current_exception();
        return 1;
      }
    }
  };
  Work work{function, std::vector<std::exception_ptr>(ranks)};
  const Status status = ferrier_run_ranks(ranks, nodes, threads, &Work::run, &work);
  // Errors of ranks that only say that another one failed come last.
  std::exception_ptr echo;
  for (const std::exception_ptr &thrown : work.thrown) {
    if (!thrown) continue;
    try {
      std::rethrow_exception(thrown);
    } catch (const Error &error) {
      if (error.status() != FERRIER_STATUS_RANK) throw;
      if (!echo) echo = thrown;
    }
  }
  if (echo) std::rethrow_exception(echo);
  check(status);
}

// A transform and the layouts of its arrays. Setters can be chained.
class Problem {
 public:
  static Problem c2c(const Shape &shape) {
    return make([&](ferrier_problem **problem) { return ferrier_problem_c2c(shape.data(), problem); });
  }
  static Problem r2c(const Shape &shape) {
    return make([&](ferrier_problem **problem) { return ferrier_problem_r2c(shape.data(), problem); });
  }
  static Problem mixed(const Shape &shape, const std::array<ferrier_kind, 3> &kinds) {
    std::int32_t list[3] = {kinds[0], kinds[1], kinds[2]};
    return make([&](ferrier_problem **problem) { return ferrier_problem_mixed(shape.data(), list, problem); });
  }
  // No transform: for Redistribution.
  static Problem redistribute(const Shape &shape) {
    return make([&](ferrier_problem **problem) { return ferrier_problem_redistribute(shape.data(), problem); });
  }
  static Problem c2c_1d(std::uint64_t n) {
    return make([&](ferrier_problem **problem) { return ferrier_problem_c2c_1d(n, problem); });
  }
  static Problem from_json(const std::string &json) {
    return make([&](ferrier_problem **problem) { return ferrier_problem_from_json(json.c_str(), problem); });
  }
  Problem clone() const {
    return make([&](ferrier_problem **problem) { return ferrier_problem_clone(raw(), problem); });
  }

  Problem &slabs(Side side, std::uint64_t axis) { return did(ferrier_problem_slabs(raw(), number(side), axis)); }
  Problem &pencils(Side side, std::uint64_t axis) { return did(ferrier_problem_pencils(raw(), number(side), axis)); }
  Problem &bricks(Side side) { return did(ferrier_problem_bricks(raw(), number(side))); }
  Problem &unconstrained(Side side) { return did(ferrier_problem_unconstrained(raw(), number(side))); }
  Problem &local_box(Side side, const Box &box) { return did(ferrier_problem_local_box(raw(), number(side), &box)); }
  Problem &boxes(Side side, const std::vector<ferrier_box> &boxes) {
    return did(ferrier_problem_boxes(raw(), number(side), boxes.data(), boxes.size()));
  }
  Problem &grid(Side side, const Shape &grid) { return did(ferrier_problem_grid(raw(), number(side), grid.data())); }
  // Axes from the slowest to the fastest.
  Problem &order(Side side, const Shape &axes) { return did(ferrier_problem_order(raw(), number(side), axes.data())); }
  // In elements; batch 0: arrays one after the other.
  Problem &strides(Side side, const Shape &strides, std::uint64_t offset = 0, std::uint64_t batch = 0) {
    return did(ferrier_problem_strides(raw(), number(side), strides.data(), offset, batch));
  }
  // Inside a larger array, such as ghost cells; set the order before.
  Problem &inside(Side side, const Shape &outer, const Shape &margin) {
    return did(ferrier_problem_inside(raw(), number(side), outer.data(), margin.data()));
  }
  // Pencils of a family over one grid of ranks, as in 2DECOMP&FFT; a grid of 0 times 0 is chosen.
  Problem &pencil_family(Side side, std::uint64_t axis, const Comm &comm, std::uint64_t rows = 0,
                         std::uint64_t columns = 0, bool contiguous = false) {
    return did(
        ferrier_problem_pencil_family(raw(), number(side), axis, comm.size(), rows, columns, contiguous));
  }
  Problem &axes(const std::vector<std::uint64_t> &axes) {
    return did(ferrier_problem_axes(raw(), axes.data(), axes.size()));
  }
  Problem &halved(std::uint64_t axis) { return did(ferrier_problem_halved(raw(), axis)); }
  Problem &complex_values() { return did(ferrier_problem_complex_values(raw())); }
  // The sign of the exponent of forward: -1 or 1.
  Problem &sign(std::int32_t sign) { return did(ferrier_problem_sign(raw(), sign)); }
  Problem &real_input(bool yes = true) { return did(ferrier_problem_real_input(raw(), yes)); }
  Problem &batch(std::uint64_t arrays) { return did(ferrier_problem_batch(raw(), arrays)); }
  Problem &scale(Scale forward, Scale backward) {
    return did(ferrier_problem_scale(raw(), static_cast<std::int32_t>(forward), static_cast<std::int32_t>(backward)));
  }
  Problem &keep_lowest(std::uint64_t axis, std::uint64_t modes) {
    return did(ferrier_problem_keep_lowest(raw(), axis, modes));
  }
  Problem &keep_range(std::uint64_t axis, std::uint64_t first, std::uint64_t end) {
    return did(ferrier_problem_keep_range(raw(), axis, first, end));
  }
  Problem &keep_ellipsoid(const std::array<double, 3> &radii) {
    return did(ferrier_problem_keep_ellipsoid(raw(), radii.data()));
  }
  Problem &support(std::uint64_t axis, std::uint64_t first, std::uint64_t end) {
    return did(ferrier_problem_support(raw(), axis, first, end));
  }
  Problem &tolerance(double error) { return did(ferrier_problem_tolerance(raw(), error)); }
  Problem &reproducible(bool yes = true) { return did(ferrier_problem_reproducible(raw(), yes)); }
  Problem &operators(bool yes = true) { return did(ferrier_problem_operators(raw(), yes)); }

  Shape spectrum_shape() const {
    Shape shape{};
    ferrier::check(ferrier_problem_spectrum_shape(raw(), shape.data()));
    return shape;
  }
  // The modes of the whole axis that the spectrum holds.
  std::vector<std::uint64_t> kept_modes(std::uint64_t axis) const {
    return list(1, [&](std::uint64_t *modes, std::uint64_t room, std::uint64_t *count) {
      return ferrier_problem_kept_modes(raw(), axis, modes, room, count);
    });
  }
  // Of an ellipsoid: pairs of indices in the kept modes of axes 1 and 2.
  std::vector<std::uint64_t> columns() const {
    return list(2, [&](std::uint64_t *pairs, std::uint64_t room, std::uint64_t *count) {
      return ferrier_problem_columns(raw(), pairs, room, count);
    });
  }
  // Where mode k of a long transform lies.
  Shape mode(std::uint64_t k) const {
    Shape index{};
    ferrier::check(ferrier_problem_mode(raw(), k, index.data()));
    return index;
  }
  // Throws where no plan can be made, whatever the ranks.
  void check() const { ferrier::check(ferrier_problem_check(raw())); }
  std::string json() const {
    return detail::text([&](char **text) { return ferrier_problem_json(raw(), text); });
  }
  ferrier_problem *raw() const noexcept { return raw_.get(); }

 private:
  explicit Problem(ferrier_problem *raw) : raw_(raw) {}
  template <class F>
  static Problem make(F &&make) {
    ferrier_problem *raw = nullptr;
    ferrier::check(make(&raw));
    return Problem(raw);
  }
  template <class F>
  static std::vector<std::uint64_t> list(std::size_t width, F &&get) {
    std::uint64_t count = 0;
    ferrier::check(get(nullptr, 0, &count));
    std::vector<std::uint64_t> values(width * count);
    ferrier::check(get(values.data(), count, &count));
    return values;
  }
  static std::int32_t number(Side side) { return static_cast<std::int32_t>(side); }
  Problem &did(Status status) {
    ferrier::check(status);
    return *this;
  }
  detail::Owner<ferrier_problem, ferrier_problem_free> raw_;
};

// How plans are made. Setters can be chained.
class Options {
 public:
  Options() {
    ferrier_options *raw = nullptr;
    check(ferrier_options_create(&raw));
    raw_.reset(raw);
  }
  Options &set(const std::string &key, const std::string &value) {
    return did(ferrier_options_set(raw(), key.c_str(), value.c_str()));
  }
  Options &json(const std::string &json) { return did(ferrier_options_set_json(raw(), json.c_str())); }
  Options &effort(Effort effort, double seconds = 0) {
    return did(ferrier_options_effort(raw(), static_cast<std::int32_t>(effort), seconds));
  }
  Options &wisdom(const std::string &path) { return did(ferrier_options_wisdom(raw(), path.c_str())); }
  Options &without_wisdom() { return did(ferrier_options_wisdom(raw(), nullptr)); }
  Options &cuda(std::int32_t device) { return did(ferrier_options_cuda(raw(), device)); }
  ferrier_options *raw() const noexcept { return raw_.get(); }

 private:
  Options &did(Status status) {
    check(status);
    return *this;
  }
  detail::Owner<ferrier_options, ferrier_options_free> raw_;
};

// Memory that a plan made; elements of type E.
template <class E>
class Array {
 public:
  explicit Array(ferrier_array *raw) : raw_(raw) {
    void *data = nullptr;
    std::uint64_t bytes = 0;
    check(ferrier_array_data(raw, &data));
    check(ferrier_array_bytes(raw, &bytes));
    view_ = Span<E>(static_cast<E *>(data), static_cast<std::size_t>(bytes / sizeof(E)));
  }
  E *data() const noexcept { return view_.data(); }
  std::size_t size() const noexcept { return view_.size(); }
  E &operator[](std::size_t at) const noexcept { return view_[at]; }
  E *begin() const noexcept { return view_.begin(); }
  E *end() const noexcept { return view_.end(); }
  // From and to main memory; the array may be on a GPU (then only its address can be used here).
  void upload(Span<const E> from) { check(ferrier_array_upload(raw_.get(), from.data(), from.bytes())); }
  void download(Span<E> to) const { check(ferrier_array_download(raw_.get(), to.data(), to.bytes())); }

 private:
  detail::Owner<ferrier_array, ferrier_array_free> raw_;
  Span<E> view_;
};

// Memory that several plans can use in turn.
class Workspace {
 public:
  explicit Workspace(ferrier_workspace *raw) : raw_(raw) {}
  ferrier_workspace *raw() const noexcept { return raw_.get(); }

 private:
  detail::Owner<ferrier_workspace, ferrier_workspace_free> raw_;
};

// A pointwise function of the modes of a spectrum.
class Operator {
 public:
  // Calls `function` for runs of modes, from several threads at once; it must not throw.
  static Operator callback(std::function<void(const ferrier_mode_run &)> function) {
    auto held = std::make_unique<std::function<void(const ferrier_mode_run &)>>(std::move(function));
    ferrier_operator *raw = nullptr;
    check(ferrier_operator_callback(&Operator::call, held.get(), &raw));
    return Operator(raw, std::move(held));
  }
  explicit Operator(ferrier_operator *raw) : raw_(raw) {}
  ferrier_operator *raw() const noexcept { return raw_.get(); }

 private:
  using Function = std::function<void(const ferrier_mode_run &)>;
  Operator(ferrier_operator *raw, std::unique_ptr<Function> held) : held_(std::move(held)), raw_(raw) {}
  static void call(void *data, const ferrier_mode_run *run) noexcept { (*static_cast<Function *>(data))(*run); }
  std::unique_ptr<Function> held_;
  detail::Owner<ferrier_operator, ferrier_operator_free> raw_;
};

// What a call has besides its arrays.
struct Call {
  double scale = 1.0;
  const Operator *op = nullptr;
  const Workspace *workspace = nullptr;
};

template <class T>
class Plan;

// A plan of which everything is decided, and nothing allocated.
template <class T>
class Draft {
 public:
  // Collective.
  Draft(const Comm &comm, const Problem &problem) : Draft(comm, problem, nullptr) {}
  Draft(const Comm &comm, const Problem &problem, const Options &options) : Draft(comm, problem, options.raw()) {}
  std::uint64_t memory_bytes() const { return number<std::uint64_t>(ferrier_draft_memory_bytes); }
  // On any rank. Collective.
  std::uint64_t largest_memory_bytes() const { return number<std::uint64_t>(ferrier_draft_largest_memory_bytes); }
  // Predicted for forward.
  double seconds(bool in_place = false) const {
    return number<double>(
        [&](ferrier_draft *raw, double *value) { return ferrier_draft_seconds(raw, in_place, value); });
  }
  // A part, as ferrier_draft_json names them.
  std::string json(const std::string &what) const {
    return detail::text([&](char **text) { return ferrier_draft_json(raw(), what.c_str(), text); });
  }
  // Uses the draft up. Without a workspace every call needs one. Collective.
  Plan<T> build(bool workspace = true) &&;
  ferrier_draft *raw() const noexcept { return raw_.get(); }

 private:
  Draft(const Comm &comm, const Problem &problem, ferrier_options *options) {
    ferrier_draft *raw = nullptr;
    check(ferrier_draft_create(comm.raw(), problem.raw(), detail::precision<T>(), options, &raw));
    raw_.reset(raw);
  }
  template <class V, class F>
  V number(F &&get) const {
    V value = 0;
    check(get(raw(), &value));
    return value;
  }
  detail::Owner<ferrier_draft, ferrier_draft_free> raw_;
};

// An executable transform of precision T.
template <class T>
class Plan {
 public:
  // Collective.
  Plan(const Comm &comm, const Problem &problem) : Plan(comm, problem, nullptr) {}
  Plan(const Comm &comm, const Problem &problem, const Options &options) : Plan(comm, problem, options.raw()) {}
  // Without exceptions: where the status is not FERRIER_STATUS_OK the plan must not be used. Collective.
  static Plan create(const Comm &comm, const Problem &problem, Status &status, const Options *options = nullptr) {
    ferrier_plan *raw = nullptr;
    status = ferrier_plan_create(comm.raw(), problem.raw(), detail::precision<T>(), options ? options->raw() : nullptr,
                                 &raw);
    return Plan(raw);
  }

  // Collective. Elements are T or std::complex<T>, as the plan's are.
  template <class In, class Out>
  void forward(const In &input, Out &&output) {
    check(try_forward(input, output));
  }
  template <class In, class Out>
  void backward(const In &input, Out &&output) {
    check(try_backward(input, output));
  }
  template <class A>
  void forward_in_place(A &&array) {
    auto view = span(array);
    check(ferrier_plan_forward_in_place(raw(), view.data(), view.bytes()));
  }
  template <class A>
  void backward_in_place(A &&array) {
    auto view = span(array);
    check(ferrier_plan_backward_in_place(raw(), view.data(), view.bytes()));
  }
  // Forward, the operator, backward.
  template <class In, class Out>
  void apply(const Operator &op, const In &input, Out &&output) {
    Call call;
    call.op = &op;
    execute(FERRIER_ACTION_APPLY, call, input, output);
  }
  template <class In, class Out>
  void execute(ferrier_action action, const Call &call, const In &input, Out &&output) {
    check(try_execute(action, call, input, output));
  }

  template <class In, class Out>
  [[nodiscard]] Status try_forward(const In &input, Out &&output) noexcept {
    auto from = span(input);
    auto to = span(output);
    return ferrier_plan_forward(raw(), from.data(), from.bytes(), to.data(), to.bytes());
  }
  template <class In, class Out>
  [[nodiscard]] Status try_backward(const In &input, Out &&output) noexcept {
    auto from = span(input);
    auto to = span(output);
    return ferrier_plan_backward(raw(), from.data(), from.bytes(), to.data(), to.bytes());
  }
  template <class In, class Out>
  [[nodiscard]] Status try_execute(ferrier_action action, const Call &call, const In &input, Out &&output) noexcept {
    auto from = span(input);
    auto to = span(output);
    const ferrier_call given = raw_call(call);
    return ferrier_plan_execute(raw(), action, &given, from.data(), from.bytes(), to.data(), to.bytes());
  }

  // The arrays of a batch, each with memory of its own; In and Out are T or std::complex<T>, as the plan's are. In place the
  // inputs are ignored.
  template <class In, class Out>
  void execute_fields(ferrier_action action, const Call &call, const std::vector<Span<In>> &inputs,
                      const std::vector<Span<Out>> &outputs) {
    element_of<In>();
    element_of<Out>();
    const bool in_place = action >= FERRIER_ACTION_FORWARD_IN_PLACE;
    if (!in_place && inputs.size() != outputs.size())
      throw Error(FERRIER_STATUS_ARRAY, "there must be as many inputs as outputs");
    std::vector<const void *> from;
    std::vector<void *> to;
    for (const Span<In> &field : inputs) from.push_back(field.data());
    for (const Span<Out> &field : outputs) to.push_back(field.data());
    const ferrier_call given = raw_call(call);
    check(ferrier_plan_execute_fields(raw(), action, &given, to.size(), from.data(), shortest(inputs), to.data(),
                                      shortest(outputs)));
  }
  template <class In, class Out>
  void forward_fields(const std::vector<Span<In>> &inputs, const std::vector<Span<Out>> &outputs) {
    execute_fields(FERRIER_ACTION_FORWARD, Call(), inputs, outputs);
  }
  template <class In, class Out>
  void backward_fields(const std::vector<Span<In>> &inputs, const std::vector<Span<Out>> &outputs) {
    execute_fields(FERRIER_ACTION_BACKWARD, Call(), inputs, outputs);
  }
  // Elements of each array of a batch, where each has memory of its own.
  std::size_t field_size(Side side) const {
    std::uint64_t bytes = 0;
    check(ferrier_plan_field_bytes(raw(), static_cast<std::int32_t>(side), &bytes));
    return bytes / element(side);
  }

  Box box(Side side) const {
    Box box;
    check(ferrier_plan_box(raw(), static_cast<std::int32_t>(side), &box));
    return box;
  }
  Box box(Side side, std::uint64_t rank) const {
    Box box;
    check(ferrier_plan_box_of(raw(), static_cast<std::int32_t>(side), rank, &box));
    return box;
  }
  Shape order(Side side) const {
    Shape axes{};
    check(ferrier_plan_order(raw(), static_cast<std::int32_t>(side), axes.data()));
    return axes;
  }
  bool is_real(Side side) const {
    std::int32_t real = 0;
    check(ferrier_plan_is_real(raw(), static_cast<std::int32_t>(side), &real));
    return real != 0;
  }
  // Elements (T or std::complex<T>) of the arrays on this rank.
  std::size_t input_size() const { return bytes(ferrier_plan_input_bytes) / element(Side::input); }
  std::size_t output_size() const { return bytes(ferrier_plan_output_bytes) / element(Side::output); }
  // Scalars T of an array for transforms in place.
  std::size_t in_place_scalars() const { return bytes(ferrier_plan_in_place_bytes) / sizeof(T); }
  std::uint64_t memory_bytes() const { return bytes(ferrier_plan_memory_bytes); }
  std::uint64_t wire_bytes() const { return bytes(ferrier_plan_wire_bytes); }
  // While the plan looks for a faster choice (Effort::online).
  bool is_tuning() const {
    std::int32_t tuning = 0;
    check(ferrier_plan_is_tuning(raw(), &tuning));
    return tuning != 0;
  }

  // Memory that the ranks of a node share, E is T or std::complex<T>. Collective.
  template <class E>
  Array<E> make_input() const {
    return array<E>(ferrier_plan_make_input);
  }
  template <class E>
  Array<E> make_output() const {
    return array<E>(ferrier_plan_make_output);
  }
  template <class E>
  Array<E> make_in_place() const {
    return array<E>(ferrier_plan_make_in_place);
  }
  Workspace make_workspace() const {
    ferrier_workspace *made = nullptr;
    check(ferrier_plan_make_workspace(raw(), &made));
    return Workspace(made);
  }
  // One of Ferrier's operators; see ferrier_operator_named.
  Operator named(const std::string &name, const std::array<double, 3> &lengths,
                 const std::vector<double> &parameters = {}) const {
    ferrier_operator *made = nullptr;
    check(ferrier_operator_named(raw(), name.c_str(), lengths.data(), parameters.data(), parameters.size(), &made));
    return Operator(made);
  }

  ferrier_certificate certificate() const {
    ferrier_certificate certificate;
    check(ferrier_plan_certificate(raw(), &certificate));
    return certificate;
  }
  std::string notes() const {
    return detail::text([&](char **text) { return ferrier_plan_notes(raw(), text); });
  }
  // "recipe", "memory", "notes", "events", "profile", "certificate".
  std::string json(const std::string &what) const {
    return detail::text([&](char **text) { return ferrier_plan_json(raw(), what.c_str(), text); });
  }
  void set_stream(void *stream) { check(ferrier_plan_set_stream(raw(), stream)); }
  void synchronize() const { check(ferrier_plan_synchronize(raw())); }
  ferrier_plan *raw() const noexcept { return raw_.get(); }

 private:
  friend class Draft<T>;
  explicit Plan(ferrier_plan *raw) : raw_(raw) {}
  Plan(const Comm &comm, const Problem &problem, ferrier_options *options) {
    ferrier_plan *raw = nullptr;
    check(ferrier_plan_create(comm.raw(), problem.raw(), detail::precision<T>(), options, &raw));
    raw_.reset(raw);
  }
  template <class E>
  static constexpr void element_of() noexcept {
    static_assert(std::is_same_v<std::remove_const_t<E>, T> || std::is_same_v<std::remove_const_t<E>, std::complex<T>>,
                  "elements are those of the plan's precision, real or complex");
  }
  template <class C>
  static auto span(C &container) noexcept {
    using E = std::remove_pointer_t<decltype(container.data())>;
    element_of<E>();
    return Span<E>(container.data(), container.size());
  }
  static ferrier_call raw_call(const Call &call) noexcept {
    ferrier_call given = FERRIER_CALL_DEFAULT;
    given.scale = call.scale;
    given.op = call.op ? call.op->raw() : nullptr;
    given.workspace = call.workspace ? call.workspace->raw() : nullptr;
    return given;
  }
  template <class E>
  static std::uint64_t shortest(const std::vector<Span<E>> &fields) noexcept {
    std::uint64_t bytes = fields.empty() ? 0 : fields.front().bytes();
    for (const Span<E> &field : fields) bytes = field.bytes() < bytes ? field.bytes() : bytes;
    return bytes;
  }
  template <class F>
  std::uint64_t bytes(F &&get) const {
    std::uint64_t value = 0;
    check(get(raw(), &value));
    return value;
  }
  std::size_t element(Side side) const { return is_real(side) ? sizeof(T) : 2 * sizeof(T); }
  template <class E, class F>
  Array<E> array(F &&make) const {
    ferrier_array *made = nullptr;
    check(make(raw(), &made));
    return Array<E>(made);
  }
  detail::Owner<ferrier_plan, ferrier_plan_free> raw_;
};

template <class T>
Plan<T> Draft<T>::build(bool workspace) && {
  ferrier_plan *plan = nullptr;
  check(ferrier_draft_build(raw(), workspace, &plan));
  return Plan<T>(plan);
}

// Takes arrays of elements E (anything that can be copied byte by byte, of the sizes of ferrier_redistribution_create) from
// one layout to another.
template <class E>
class Redistribution {
  static_assert(std::is_trivially_copyable_v<E>, "elements are copied byte by byte");

 public:
  // Collective.
  Redistribution(const Comm &comm, const Problem &problem) : Redistribution(comm, problem, nullptr) {}
  Redistribution(const Comm &comm, const Problem &problem, const Options &options)
      : Redistribution(comm, problem, options.raw()) {}
  // Collective.
  void run(Span<const E> input, Span<E> output) {
    check(ferrier_redistribution_run(raw(), input.data(), input.bytes(), output.data(), output.bytes()));
  }
  void run_in_place(Span<E> array) {
    check(ferrier_redistribution_run_in_place(raw(), array.data(), array.bytes()));
  }
  Box box(Side side) const {
    Box box;
    check(ferrier_redistribution_box(raw(), static_cast<std::int32_t>(side), &box));
    return box;
  }
  // Elements on this rank, all arrays of a batch together.
  std::size_t size(Side side) const {
    std::uint64_t bytes = 0;
    check(ferrier_redistribution_bytes(raw(), static_cast<std::int32_t>(side), &bytes));
    return bytes / sizeof(E);
  }
  // Memory that the ranks of a node share. Collective.
  Array<E> make(Side side) const {
    ferrier_array *made = nullptr;
    check(ferrier_redistribution_make(raw(), static_cast<std::int32_t>(side), &made));
    return Array<E>(made);
  }
  std::string notes() const {
    return detail::text([&](char **text) { return ferrier_redistribution_notes(raw(), text); });
  }
  // On this rank.
  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = 0;
    check(ferrier_redistribution_memory_bytes(raw(), &bytes));
    return bytes;
  }
  // On a GPU.
  void set_stream(void *stream) { check(ferrier_redistribution_set_stream(raw(), stream)); }
  void synchronize() const { check(ferrier_redistribution_synchronize(raw())); }
  ferrier_redistribution *raw() const noexcept { return raw_.get(); }

 private:
  Redistribution(const Comm &comm, const Problem &problem, ferrier_options *options) {
    ferrier_redistribution *raw = nullptr;
    check(ferrier_redistribution_create(comm.raw(), problem.raw(), sizeof(E), options, &raw));
    raw_.reset(raw);
  }
  detail::Owner<ferrier_redistribution, ferrier_redistribution_free> raw_;
};

// Ghost cells around a box.
struct Ghosts {
  Shape low{}, high{};
  std::array<bool, 3> periodic{};
  bool faces_only = false;
  // Arrays that are exchanged together.
  std::uint64_t fields = 1;
  // Of messages between nodes; empty: chosen.
  std::string exchange;
  // The CUDA device whose memory the arrays are in; -1: main memory.
  int device = -1;

  Ghosts() = default;
  explicit Ghosts(std::uint64_t width) : low{width, width, width}, high{width, width, width} {}
  // Valid as long as this object.
  ferrier_ghosts raw() const noexcept {
    ferrier_ghosts raw = FERRIER_GHOSTS_DEFAULT;
    for (int axis = 0; axis < 3; axis++) {
      raw.low[axis] = low[axis];
      raw.high[axis] = high[axis];
      raw.periodic[axis] = periodic[axis];
    }
    raw.faces_only = faces_only;
    raw.fields = fields;
    raw.exchange = exchange.empty() ? nullptr : exchange.c_str();
    raw.device = device;
    return raw;
  }
};

namespace detail {
// What halos and ghost sums have in common: arrays of elements E with ghost cells.
template <class E, class Raw, ferrier_status (*Free)(Raw *), ferrier_status (*GetBox)(Raw *, ferrier_box *),
          ferrier_status (*GetShape)(Raw *, std::uint64_t *), ferrier_status (*GetStrides)(Raw *, std::uint64_t *),
          ferrier_status (*GetBytes)(Raw *, std::uint64_t *), ferrier_status (*Make)(Raw *, ferrier_array **),
          ferrier_status (*GetMemory)(Raw *, std::uint64_t *), ferrier_status (*GetNotes)(Raw *, char **),
          ferrier_status (*SetStream)(Raw *, void *), ferrier_status (*Synchronize)(Raw *)>
class Ghosted {
 public:
  // Of this rank, without ghost cells.
  Box box() const {
    Box box;
    check(GetBox(raw(), &box));
    return box;
  }
  // Of an array, ghost cells included.
  Shape shape() const { return three(GetShape); }
  Shape strides() const { return three(GetStrides); }
  // Elements of an array, ghost cells included.
  std::size_t size() const {
    std::uint64_t bytes = 0;
    check(GetBytes(raw(), &bytes));
    return bytes / sizeof(E);
  }
  // An array with ghost cells in memory that the ranks of a node share, or of the GPU. Collective.
  Array<E> make() const {
    ferrier_array *made = nullptr;
    check(Make(raw(), &made));
    return Array<E>(made);
  }
  // On this rank, without arrays.
  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = 0;
    check(GetMemory(raw(), &bytes));
    return bytes;
  }
  std::string notes() const {
    return text([&](char **text) { return GetNotes(raw(), text); });
  }
  // On a GPU.
  void set_stream(void *stream) { check(SetStream(raw(), stream)); }
  void synchronize() const { check(Synchronize(raw())); }
  Raw *raw() const noexcept { return raw_.get(); }

 protected:
  template <class F>
  explicit Ghosted(F &&create) {
    Raw *raw = nullptr;
    check(create(&raw));
    raw_.reset(raw);
  }
  // Calls a function with the addresses of the fields and their length.
  template <class F>
  void with(const std::vector<Span<E>> &fields, F &&call) {
    std::vector<void *> places;
    std::uint64_t bytes = fields.empty() ? 0 : fields.front().bytes();
    for (const Span<E> &field : fields) {
      places.push_back(field.data());
      bytes = field.bytes() < bytes ? field.bytes() : bytes;
    }
    check(call(raw(), places.data(), places.size(), bytes));
  }

 private:
  template <class F>
  Shape three(F &&get) const {
    Shape values{};
    check(get(raw(), values.data()));
    return values;
  }
  Owner<Raw, Free> raw_;
};

template <class E>
using GhostedHalo = Ghosted<E, ferrier_halo, ferrier_halo_free, ferrier_halo_box, ferrier_halo_shape,
                            ferrier_halo_strides, ferrier_halo_bytes, ferrier_halo_make, ferrier_halo_memory_bytes,
                            ferrier_halo_notes, ferrier_halo_set_stream, ferrier_halo_synchronize>;
template <class E>
using GhostedSum = Ghosted<E, ferrier_ghost_sum, ferrier_ghost_sum_free, ferrier_ghost_sum_box, ferrier_ghost_sum_shape,
                           ferrier_ghost_sum_strides, ferrier_ghost_sum_bytes, ferrier_ghost_sum_make,
                           ferrier_ghost_sum_memory_bytes, ferrier_ghost_sum_notes, ferrier_ghost_sum_set_stream,
                           ferrier_ghost_sum_synchronize>;

template <class E>
constexpr std::int32_t element() {
  if constexpr (std::is_same_v<E, float>) return FERRIER_ELEMENT_F32;
  if constexpr (std::is_same_v<E, double>) return FERRIER_ELEMENT_F64;
  if constexpr (std::is_same_v<E, std::complex<float>>) return FERRIER_ELEMENT_C32;
  if constexpr (std::is_same_v<E, std::complex<double>>) return FERRIER_ELEMENT_C64;
  if constexpr (std::is_same_v<E, std::int32_t>) return FERRIER_ELEMENT_I32;
  if constexpr (std::is_same_v<E, std::int64_t>) return FERRIER_ELEMENT_I64;
  return -1;
}
}  // namespace detail

// Fills the ghost cells around the boxes of one side of a problem. Fields are as many as the ghosts have.
template <class E>
class Halo : public detail::GhostedHalo<E> {
  static_assert(std::is_trivially_copyable_v<E>, "elements are copied byte by byte");

 public:
  // Collective.
  Halo(const Comm &comm, const Problem &problem, Side side, const Ghosts &ghosts)
      : detail::GhostedHalo<E>([&](ferrier_halo **halo) {
          const ferrier_ghosts raw = ghosts.raw();
          return ferrier_halo_create(comm.raw(), problem.raw(), static_cast<std::int32_t>(side), sizeof(E), &raw, halo);
        }) {}
  // Collective.
  void exchange(const std::vector<Span<E>> &fields) { this->with(fields, ferrier_halo_exchange); }
  // In two halves, between which the fields stay and can be read. Collective.
  void start(const std::vector<Span<E>> &fields) { this->with(fields, ferrier_halo_start); }
  void finish() { check(ferrier_halo_finish(this->raw())); }
};

// Adds ghost cells to the cells of their owners: float, double, complex of them, std::int32_t, std::int64_t.
template <class E>
class GhostSum : public detail::GhostedSum<E> {
  static_assert(detail::element<E>() >= 0, "elements are float, double, complex of them, int32_t or int64_t");

 public:
  // Collective.
  GhostSum(const Comm &comm, const Problem &problem, Side side, const Ghosts &ghosts)
      : detail::GhostedSum<E>([&](ferrier_ghost_sum **sum) {
          const ferrier_ghosts raw = ghosts.raw();
          return ferrier_ghost_sum_create(comm.raw(), problem.raw(), static_cast<std::int32_t>(side),
                                          detail::element<E>(), &raw, sum);
        }) {}
  // Collective.
  void run(const std::vector<Span<E>> &fields) { this->with(fields, ferrier_ghost_sum_run); }
};

// The plan that so many ranks would make, and the predicted times, as JSON.
template <class T>
std::string predict(const Problem &problem, std::uint64_t ranks, std::uint64_t nodes, std::uint64_t threads,
                    const Options *options = nullptr) {
  return detail::text([&](char **text) {
    return ferrier_predict(problem.raw(), detail::precision<T>(), options ? options->raw() : nullptr, ranks, nodes,
                           threads, text);
  });
}

}  // namespace ferrier

#endif  // FERRIER_HPP
