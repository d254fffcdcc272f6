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
  ferrier_comm *raw() const noexcept { return raw_.get(); }

 private:
  explicit Comm(ferrier_comm *raw) : raw_(raw) {}
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
  Problem &axes(const std::vector<std::uint64_t> &axes) {
    return did(ferrier_problem_axes(raw(), axes.data(), axes.size()));
  }
  Problem &halved(std::uint64_t axis) { return did(ferrier_problem_halved(raw(), axis)); }
  Problem &complex_values() { return did(ferrier_problem_complex_values(raw())); }
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
    check(ferrier_problem_spectrum_shape(raw(), shape.data()));
    return shape;
  }
  std::string json() const {
    return detail::text([&](char **text) { return ferrier_problem_json(raw(), text); });
  }
  ferrier_problem *raw() const noexcept { return raw_.get(); }

 private:
  explicit Problem(ferrier_problem *raw) : raw_(raw) {}
  template <class F>
  static Problem make(F &&make) {
    ferrier_problem *raw = nullptr;
    check(make(&raw));
    return Problem(raw);
  }
  static std::int32_t number(Side side) { return static_cast<std::int32_t>(side); }
  Problem &did(Status status) {
    check(status);
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
    ferrier_call given = FERRIER_CALL_DEFAULT;
    given.scale = call.scale;
    given.op = call.op ? call.op->raw() : nullptr;
    given.workspace = call.workspace ? call.workspace->raw() : nullptr;
    return ferrier_plan_execute(raw(), action, &given, from.data(), from.bytes(), to.data(), to.bytes());
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
  explicit Plan(ferrier_plan *raw) : raw_(raw) {}
  Plan(const Comm &comm, const Problem &problem, ferrier_options *options) {
    ferrier_plan *raw = nullptr;
    check(ferrier_plan_create(comm.raw(), problem.raw(), detail::precision<T>(), options, &raw));
    raw_.reset(raw);
  }
  template <class C>
  static auto span(C &container) noexcept {
    using E = std::remove_pointer_t<decltype(container.data())>;
    static_assert(std::is_same_v<std::remove_const_t<E>, T> || std::is_same_v<std::remove_const_t<E>, std::complex<T>>,
                  "elements are those of the plan's precision, real or complex");
    return Span<E>(container.data(), container.size());
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
