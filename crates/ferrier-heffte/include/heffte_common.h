// Backends: tags that name where arrays are and which transform is meant. Ferrier serves all that are enabled.
#ifndef HEFFTE_COMMON_H
#define HEFFTE_COMMON_H

#include "ferrier_heffte.h"
#include "heffte_geometry.h"
#include "heffte_trace.h"

#ifdef Heffte_ENABLE_FFTW
#include <fftw3.h>
#endif
#ifdef Heffte_ENABLE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace heffte {

namespace tag {
struct cpu {};
struct gpu {};
}  // namespace tag

namespace detail {

// Kinds of transforms, as ferrier_heffte.h numbers them.
enum kind : std::int32_t { complex = 0, halved = 1, cosine2 = 2, sine2 = 3, cosine1 = 4, sine1 = 5 };

template <kind which, typename place, bool is_fftw>
struct served {
  static constexpr kind transform = which;
  using location = place;
  // Backward cosine and sine transforms of all backends but FFTW's are 2 times as large in each dimension.
  static constexpr double backward_factor = which == complex || is_fftw ? 1.0 : 2.0;
};

template <typename backend_tag>
struct backend_of {};

}  // namespace detail

namespace backend {

template <typename backend_tag>
struct is_enabled : std::false_type {};

template <typename backend_tag>
std::string name() {
  return "unknown";
}

#define FERRIER_HEFFTE_TAG(tag_name, text) \
  struct tag_name {};                      \
  template <>                              \
  inline std::string name<tag_name>() {    \
    return text;                           \
  }
FERRIER_HEFFTE_TAG(stock, "stock")
FERRIER_HEFFTE_TAG(stock_cos, "stock-cos-type-II")
FERRIER_HEFFTE_TAG(stock_sin, "stock-sin-type-II")
FERRIER_HEFFTE_TAG(stock_cos1, "stock-cos-type-I")
FERRIER_HEFFTE_TAG(fftw, "fftw")
FERRIER_HEFFTE_TAG(fftw_cos, "fftw-cos-type-II")
FERRIER_HEFFTE_TAG(fftw_sin, "fftw-sin-type-II")
FERRIER_HEFFTE_TAG(fftw_cos1, "fftw-cos-type-I")
FERRIER_HEFFTE_TAG(fftw_sin1, "fftw-sin-type-I")
FERRIER_HEFFTE_TAG(mkl, "mkl")
FERRIER_HEFFTE_TAG(mkl_cos, "mkl-cos")
FERRIER_HEFFTE_TAG(mkl_sin, "mkl-sin")
FERRIER_HEFFTE_TAG(cufft, "cufft")
FERRIER_HEFFTE_TAG(cufft_cos, "cufft-cos-type-II")
FERRIER_HEFFTE_TAG(cufft_sin, "cufft-sin-type-II")
FERRIER_HEFFTE_TAG(cufft_cos1, "cufft-cos-type-I")
FERRIER_HEFFTE_TAG(rocfft, "rocfft")
FERRIER_HEFFTE_TAG(rocfft_cos, "rocfft-cos")
FERRIER_HEFFTE_TAG(rocfft_sin, "rocfft-sin")
FERRIER_HEFFTE_TAG(rocfft_cos1, "rocfft-sin")
FERRIER_HEFFTE_TAG(onemkl, "onemkl")
FERRIER_HEFFTE_TAG(onemkl_cos, "onemkl-cos")
FERRIER_HEFFTE_TAG(onemkl_sin, "onemkl-sin")
#undef FERRIER_HEFFTE_TAG
template <>
inline std::string name<tag::cpu>() {
  return "cpu";
}
template <>
inline std::string name<tag::gpu>() {
  return "gpu";
}

}  // namespace backend

namespace detail {
#define FERRIER_HEFFTE_SERVES(tag_name, which, place, is_fftw) \
  template <>                                                  \
  struct backend_of<backend::tag_name> : served<which, place, is_fftw> {};
FERRIER_HEFFTE_SERVES(stock, complex, tag::cpu, false)
FERRIER_HEFFTE_SERVES(stock_cos, cosine2, tag::cpu, false)
FERRIER_HEFFTE_SERVES(stock_sin, sine2, tag::cpu, false)
FERRIER_HEFFTE_SERVES(stock_cos1, cosine1, tag::cpu, false)
FERRIER_HEFFTE_SERVES(fftw, complex, tag::cpu, true)
FERRIER_HEFFTE_SERVES(fftw_cos, cosine2, tag::cpu, true)
FERRIER_HEFFTE_SERVES(fftw_sin, sine2, tag::cpu, true)
FERRIER_HEFFTE_SERVES(fftw_cos1, cosine1, tag::cpu, true)
FERRIER_HEFFTE_SERVES(fftw_sin1, sine1, tag::cpu, true)
FERRIER_HEFFTE_SERVES(mkl, complex, tag::cpu, false)
FERRIER_HEFFTE_SERVES(mkl_cos, cosine2, tag::cpu, false)
FERRIER_HEFFTE_SERVES(mkl_sin, sine2, tag::cpu, false)
FERRIER_HEFFTE_SERVES(cufft, complex, tag::gpu, false)
FERRIER_HEFFTE_SERVES(cufft_cos, cosine2, tag::gpu, false)
FERRIER_HEFFTE_SERVES(cufft_sin, sine2, tag::gpu, false)
FERRIER_HEFFTE_SERVES(cufft_cos1, cosine1, tag::gpu, false)
#undef FERRIER_HEFFTE_SERVES
}  // namespace detail

namespace backend {

#define FERRIER_HEFFTE_ENABLE(tag_name) \
  template <>                           \
  struct is_enabled<tag_name> : std::true_type {};
FERRIER_HEFFTE_ENABLE(stock)
FERRIER_HEFFTE_ENABLE(stock_cos)
FERRIER_HEFFTE_ENABLE(stock_sin)
FERRIER_HEFFTE_ENABLE(stock_cos1)
FERRIER_HEFFTE_ENABLE(fftw)
FERRIER_HEFFTE_ENABLE(fftw_cos)
FERRIER_HEFFTE_ENABLE(fftw_sin)
FERRIER_HEFFTE_ENABLE(fftw_cos1)
FERRIER_HEFFTE_ENABLE(fftw_sin1)
FERRIER_HEFFTE_ENABLE(mkl)
FERRIER_HEFFTE_ENABLE(mkl_cos)
FERRIER_HEFFTE_ENABLE(mkl_sin)
#ifdef Heffte_ENABLE_CUDA
FERRIER_HEFFTE_ENABLE(cufft)
FERRIER_HEFFTE_ENABLE(cufft_cos)
FERRIER_HEFFTE_ENABLE(cufft_sin)
FERRIER_HEFFTE_ENABLE(cufft_cos1)
#endif
#undef FERRIER_HEFFTE_ENABLE

// The backend of a place where a program does not name one.
template <typename location_tag>
struct default_backend {
#if defined(Heffte_ENABLE_MKL)
  using type = mkl;
#elif defined(Heffte_ENABLE_FFTW)
  using type = fftw;
#else
  using type = stock;
#endif
};

// Copies between arrays in a place and main memory.
template <typename location_tag>
struct data_manipulator {};

template <>
struct data_manipulator<tag::cpu> {
  using stream_type = void *;
  template <typename source_type, typename destination_type>
  static void copy_n(source_type const source[], std::size_t num_entries, destination_type destination[]) {
    std::copy_n(source, num_entries, destination);
  }
  template <typename source_type, typename destination_type>
  static void copy_n(void *, source_type const source[], std::size_t num_entries, destination_type destination[]) {
    std::copy_n(source, num_entries, destination);
  }
  template <typename source_type, typename destination_type>
  static void copy_device_to_host(void *, source_type const source[], std::size_t num_entries,
                                  destination_type destination[]) {
    std::copy_n(source, num_entries, destination);
  }
  template <typename source_type, typename destination_type>
  static void copy_device_to_device(void *, source_type const source[], std::size_t num_entries,
                                    destination_type destination[]) {
    std::copy_n(source, num_entries, destination);
  }
  template <typename source_type, typename destination_type>
  static void copy_host_to_device(void *, source_type const source[], std::size_t num_entries,
                                  destination_type destination[]) {
    std::copy_n(source, num_entries, destination);
  }
};

// A queue of work; main memory has none.
template <typename location_tag>
struct device_instance {
  using stream_type = void *;
  device_instance(void * = nullptr) {}
  virtual ~device_instance() = default;
  device_instance(device_instance const &) = default;
  device_instance &operator=(device_instance const &) = default;
  void *stream() const { return nullptr; }
  void synchronize_device() const {}
};

// Where the arrays of a backend are, and what holds them.
template <typename backend_tag, typename = void>
struct buffer_traits {
  using location = tag::cpu;
  template <typename T>
  using container = std::vector<T>;
};

template <typename backend_tag, typename = void>
struct uses_gpu : std::false_type {};
template <typename backend_tag>
struct uses_gpu<backend_tag, typename std::enable_if<std::is_same<typename buffer_traits<backend_tag>::location,
                                                                  tag::gpu>::value>::type> : std::true_type {};

// Whether the spectrum is complex; else it is real: cosine and sine transforms.
template <typename backend_tag, typename = void>
struct uses_fft_types : std::true_type {};
template <typename backend_tag>
struct uses_fft_types<backend_tag,
                      typename std::enable_if<detail::backend_of<backend_tag>::transform != detail::complex>::type>
    : std::false_type {};

// Whether forward can go from one type to the other.
template <typename backend_tag, typename input, typename output>
struct check_types
    : std::integral_constant<
          bool, uses_fft_types<backend_tag>::value
                    ? (is_ccomplex<output>::value && (is_ccomplex<input>::value || std::is_same<input, float>::value)) ||
                          (is_zcomplex<output>::value && (is_zcomplex<input>::value || std::is_same<input, double>::value))
                    : std::is_same<input, output>::value &&
                          (std::is_same<input, float>::value || std::is_same<input, double>::value)> {};

}  // namespace backend

#ifdef Heffte_ENABLE_FFTW
template <>
struct is_ccomplex<fftwf_complex> : std::true_type {};
template <>
struct is_zcomplex<fftw_complex> : std::true_type {};
#endif
#if defined(__GNUC__) && !defined(__CUDACC__)
__extension__ template <>
struct is_ccomplex<float _Complex> : std::true_type {};
__extension__ template <>
struct is_zcomplex<double _Complex> : std::true_type {};
#endif

template <typename scalar_type>
std::vector<scalar_type> make_buffer_container(void *, std::size_t size) {
  return std::vector<scalar_type>(size);
}

// Multiplies an array by a number.
struct data_scaling {
  template <typename scalar_type, typename index>
  static void apply(index num_entries, scalar_type *data, double factor) {
    using number = typename define_standard_type<scalar_type>::type;
    number *standard = convert_to_standard(data);
    for (index i = 0; i < num_entries; i++) standard[i] *= static_cast<decltype(std::abs(number()))>(factor);
  }
  template <typename scalar_type, typename index>
  static void apply(void *, index num_entries, scalar_type *data, double factor) {
    apply(num_entries, data, factor);
  }
#ifdef Heffte_ENABLE_CUDA
  // By way of main memory: a call's own scale costs nothing, this one is for programs that do without.
  template <typename scalar_type, typename index>
  static void apply(cudaStream_t stream, index num_entries, scalar_type *data, double factor);
#endif
};

enum class direction { forward, backward };

enum class scale { none, full, symmetric };

namespace detail {

// What differs between main memory and a GPU.
template <typename location_tag>
struct place {};

template <>
struct place<tag::cpu> {
  static std::int32_t device(kind) { return -1; }
  static char const *note(kind) { return ""; }
  static int run(ferrier_heffte_transform const *transform, ferrier_heffte_call const &call, kind,
                 std::array<std::size_t, 2> const &) {
    return ferrier_heffte_run(transform, &call);
  }
};

[[noreturn]] inline void fail(char const *what) {
  throw std::runtime_error(std::string(what) + ": " + ferrier_heffte_error());
}

template <typename index>
ferrier_heffte_box plain(box3d<index> const &box) {
  ferrier_heffte_box result{};
  for (int i = 0; i < 3; i++) {
    result.low[i] = box.low[i];
    result.high[i] = box.high[i];
    result.order[i] = box.order[i];
  }
  return result;
}

template <typename index>
ferrier_heffte_description describe(box3d<index> const &inbox, box3d<index> const &outbox, kind which, int halved_dimension) {
  ferrier_heffte_description result{};
  result.size = sizeof(result);
  result.inbox = plain(inbox);
  result.outbox = plain(outbox);
  result.kind = which;
  result.halved = halved_dimension;
  result.dimensions = 7;
  result.options = ferrier_heffte_options{0, 1, 1, 1, -1};
  return result;
}

// A transform of the library, and calls of it with any types.
template <typename location_tag>
class transform {
 public:
  transform(ferrier_heffte_description description, MPI_Comm const *comm)
      : which(static_cast<kind>(description.kind)), elements{{count(description.inbox), count(description.outbox)}} {
    description.device = place<location_tag>::device(which);
    description.alone = comm == nullptr;
    // Any function of the MPI in use tells the library which one that is.
    union {
      int (*function)(MPI_Comm, int *);
      void const *address;
    } any;
    any.function = MPI_Comm_size;
    std::int32_t const handle = comm == nullptr ? 0 : static_cast<std::int32_t>(comm_to_int(*comm));
    ferrier_heffte_transform *made = nullptr;
    if (ferrier_heffte_create(&description, handle, any.address, &made) != 0) fail("heffte plan");
    held.reset(made);
    std::int64_t lengths[3];
    ferrier_heffte_world(made, lengths);
    for (int i = 0; i < 3; i++) world[i] = static_cast<long long>(lengths[i]);
  }

  // `inside` is a number or complex number of the inbox, `outside` one of the outbox.
  template <typename inside, typename outside>
  void run(direction way, int batch, void const *input, void *output, void *stream, double factor) const {
    using standard = typename define_standard_type<outside>::type;
    ferrier_heffte_call call{};
    call.size = sizeof(call);
    call.input = input;
    call.output = output;
    call.stream = stream;
    call.scale = factor;
    call.batch = batch;
    call.backward = way == direction::backward;
    call.double_precision = std::is_same<standard, double>::value || std::is_same<standard, std::complex<double>>::value;
    call.real = which == complex && (std::is_same<inside, float>::value || std::is_same<inside, double>::value);
    if (place<location_tag>::run(held.get(), call, which, elements) != 0)
      fail(way == direction::forward ? "heffte forward" : "heffte backward");
  }

  std::string notes() const { return std::string(place<location_tag>::note(which)) + ferrier_heffte_notes(held.get()); }
  kind which;
  std::array<long long, 3> world{{0, 0, 0}};

 private:
  static std::size_t count(ferrier_heffte_box const &box) {
    std::size_t elements = 1;
    for (int i = 0; i < 3; i++)
      elements *= box.high[i] < box.low[i] ? 0 : static_cast<std::size_t>(box.high[i] - box.low[i] + 1);
    return elements;
  }
  // The standard ABI of MPI 5 has its own name for it.
#if defined(MPI_ABI_VERSION) && !defined(MPI_Comm_c2f)
  static int comm_to_int(MPI_Comm comm) { return MPI_Comm_toint(comm); }
#else
  static MPI_Fint comm_to_int(MPI_Comm comm) { return MPI_Comm_c2f(comm); }
#endif
  struct deleter {
    void operator()(ferrier_heffte_transform *raw) const noexcept { ferrier_heffte_free(raw); }
  };
  // Of inbox and outbox on this rank.
  std::array<std::size_t, 2> elements;
  std::unique_ptr<ferrier_heffte_transform, deleter> held;
};

}  // namespace detail

// Transforms of one box, without other ranks.
class executor_base {
 public:
  virtual ~executor_base() = default;
  virtual int box_size() const { return 0; }
  virtual int complex_size() const { return box_size(); }
  virtual std::size_t workspace_size() const { return 0; }
};

namespace detail {

// One, two or three dimensions of a box on this rank.
template <typename backend_tag, bool is_halved>
class executor : public executor_base {
 public:
  using location = typename backend::buffer_traits<backend_tag>::location;
  using stream_type = typename backend::device_instance<location>::stream_type;

  template <typename index>
  executor(stream_type active, box3d<index> const box, int dimension) : executor(active, box, 1u << dimension, dimension) {}
  template <typename index>
  executor(stream_type active, box3d<index> const box, int one, int other)
      : executor(active, box, 1u << one | 1u << other, -1) {}
  template <typename index>
  executor(stream_type active, box3d<index> const box) : executor(active, box, 7u, -1) {}

  template <typename scalar_type>
  void forward(scalar_type data[], scalar_type *) const {
    held.template run<scalar_type, scalar_type>(direction::forward, 1, data, data, as_void(stream), 1.0);
  }
  template <typename scalar_type>
  void backward(scalar_type data[], scalar_type *) const {
    held.template run<scalar_type, scalar_type>(direction::backward, 1, data, data, as_void(stream), factor);
  }
  template <typename real_type>
  void forward(real_type const input[], std::complex<real_type> output[], std::complex<real_type> *) const {
    held.template run<real_type, std::complex<real_type>>(direction::forward, 1, input, output, as_void(stream), 1.0);
  }
  template <typename real_type>
  void backward(std::complex<real_type> input[], real_type output[], std::complex<real_type> *) const {
    held.template run<real_type, std::complex<real_type>>(direction::backward, 1, input, output, as_void(stream), 1.0);
  }
  int box_size() const override { return static_cast<int>(count); }
  int complex_size() const override { return static_cast<int>(halved_count); }

 private:
  template <typename index>
  executor(stream_type active, box3d<index> const box, unsigned dimensions, int dimension)
      : stream(active),
        count(box.count()),
        halved_count(is_halved ? box.r2c(dimension).count() : count),
        factor(dimensions == 7u ? cube(backend_of<backend_tag>::backward_factor)
                                : backend_of<backend_tag>::backward_factor *
                                      (dimension < 0 ? backend_of<backend_tag>::backward_factor : 1.0)),
        held(description(box, dimensions, dimension), nullptr) {}
  static constexpr double cube(double one) { return one * one * one; }
  static void *as_void(stream_type raw) { return static_cast<void *>(raw); }
  template <typename index>
  static ferrier_heffte_description description(box3d<index> const &box, unsigned dimensions, int dimension) {
    std::array<index, 3> const none{{0, 0, 0}}, last{{box.size[0] - 1, box.size[1] - 1, box.size[2] - 1}};
    box3d<index> const whole(none, last, box.order);
    auto result = describe(whole, is_halved ? whole.r2c(dimension) : whole,
                           is_halved ? halved : backend_of<backend_tag>::transform, dimension);
    result.dimensions = dimensions;
    return result;
  }
  stream_type stream;
  long long count, halved_count;
  double factor;
  transform<location> held;
};

}  // namespace detail

template <typename backend_tag>
struct one_dim_backend {
  using executor = detail::executor<backend_tag, false>;
  using executor_r2c = detail::executor<backend_tag, true>;
};

// Executors of a box, of one, two or all dimensions; none where the box is empty.
template <typename backend_tag, typename index, typename... dimensions>
std::unique_ptr<typename one_dim_backend<backend_tag>::executor> make_executor(
    typename one_dim_backend<backend_tag>::executor::stream_type stream, box3d<index> const box, dimensions... chosen) {
  using type = typename one_dim_backend<backend_tag>::executor;
  return std::unique_ptr<type>(box.empty() ? nullptr : new type(stream, box, chosen...));
}
template <typename backend_tag, typename index>
std::unique_ptr<typename one_dim_backend<backend_tag>::executor_r2c> make_executor_r2c(
    typename one_dim_backend<backend_tag>::executor_r2c::stream_type stream, box3d<index> const box, int dimension) {
  using type = typename one_dim_backend<backend_tag>::executor_r2c;
  return std::unique_ptr<type>(box.empty() ? nullptr : new type(stream, box, dimension));
}

template <typename backend_tag>
constexpr bool has_executor2d() {
  return true;
}
template <typename backend_tag>
constexpr bool has_executor3d() {
  return true;
}

template <typename backend_tag>
struct default_plan_options {
  static const bool use_reorder = true;
};
template <>
struct default_plan_options<backend::cufft> {
  static const bool use_reorder = false;
};
template <>
struct default_plan_options<backend::mkl> {
  static const bool use_reorder = false;
};

}  // namespace heffte

#ifdef Heffte_ENABLE_CUDA
#include "heffte_backend_cuda.h"
#endif

#endif
