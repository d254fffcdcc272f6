// Arrays on CUDA devices, by CUDA's runtime. Included by heffte_common.h where Heffte_ENABLE_CUDA is defined.
#ifndef HEFFTE_BACKEND_CUDA_H
#define HEFFTE_BACKEND_CUDA_H

#include "heffte_common.h"

#ifdef Heffte_ENABLE_CUDA

#include <cuComplex.h>

#include <iterator>

namespace heffte {

template <>
struct is_ccomplex<cuFloatComplex> : std::true_type {};
template <>
struct is_zcomplex<cuDoubleComplex> : std::true_type {};

namespace cuda {
inline void check_error(cudaError_t status, char const *function_name) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(function_name) + ": " + cudaGetErrorString(status));
}
}  // namespace cuda

namespace backend {

template <>
struct default_backend<tag::gpu> {
  using type = cufft;
};

template <>
struct device_instance<tag::gpu> {
  using stream_type = cudaStream_t;
  device_instance(cudaStream_t new_stream = nullptr) : _stream(new_stream) {}
  cudaStream_t stream() const { return _stream; }
  void synchronize_device() const { cuda::check_error(cudaStreamSynchronize(_stream), "cudaStreamSynchronize"); }
  cudaStream_t _stream;
};

template <>
struct data_manipulator<tag::gpu> {
  using stream_type = cudaStream_t;
  using backend_device = device_instance<tag::gpu>;

  template <typename scalar_type>
  static scalar_type *allocate(cudaStream_t, std::size_t num_entries) {
    void *memory = nullptr;
    cuda::check_error(cudaMalloc(&memory, num_entries * sizeof(scalar_type)), "cudaMalloc");
    return static_cast<scalar_type *>(memory);
  }
  template <typename scalar_type>
  static void free(cudaStream_t, scalar_type *memory) {
    if (memory != nullptr) cuda::check_error(cudaFree(memory), "cudaFree");
  }
  template <typename scalar_type>
  static void copy_n(cudaStream_t stream, scalar_type const source[], std::size_t num_entries, scalar_type destination[]) {
    copy(stream, source, num_entries, destination, cudaMemcpyDeviceToDevice);
  }
  // Real parts, and complex numbers without imaginary parts.
  template <typename scalar_type>
  static void copy_n(cudaStream_t stream, std::complex<scalar_type> const source[], std::size_t num_entries,
                     scalar_type destination[]) {
    spread(stream, source, 2, num_entries, destination, 1, sizeof(scalar_type));
  }
  template <typename scalar_type>
  static void copy_n(cudaStream_t stream, scalar_type const source[], std::size_t num_entries,
                     std::complex<scalar_type> destination[]) {
    cuda::check_error(cudaMemsetAsync(destination, 0, num_entries * sizeof(std::complex<scalar_type>), stream),
                      "cudaMemsetAsync");
    spread(stream, source, 1, num_entries, destination, 2, sizeof(scalar_type));
  }
  template <typename scalar_type>
  static void copy_device_to_device(cudaStream_t stream, scalar_type const source[], std::size_t num_entries,
                                    scalar_type destination[]) {
    copy(stream, source, num_entries, destination, cudaMemcpyDeviceToDevice);
  }
  template <typename scalar_type>
  static void copy_device_to_host(cudaStream_t stream, scalar_type const source[], std::size_t num_entries,
                                  scalar_type destination[]) {
    copy(stream, source, num_entries, destination, cudaMemcpyDeviceToHost);
  }
  template <typename scalar_type>
  static void copy_host_to_device(cudaStream_t stream, scalar_type const source[], std::size_t num_entries,
                                  scalar_type destination[]) {
    copy(stream, source, num_entries, destination, cudaMemcpyHostToDevice);
  }

  // Numbers of `bytes` bytes, one of every so many.
  static void spread(cudaStream_t stream, void const *source, std::size_t from_step, std::size_t count, void *destination,
                     std::size_t to_step, std::size_t bytes) {
    // Rows of one number: a copy has as many of them as an int holds.
    std::size_t const most = std::size_t(1) << 30;
    for (std::size_t first = 0; first < count; first += most) {
      auto const *from = static_cast<char const *>(source) + first * from_step * bytes;
      auto *to = static_cast<char *>(destination) + first * to_step * bytes;
      cuda::check_error(cudaMemcpy2DAsync(to, to_step * bytes, from, from_step * bytes, bytes,
                                          std::min(most, count - first), cudaMemcpyDeviceToDevice, stream),
                        "cudaMemcpy2DAsync");
    }
  }

 private:
  template <typename scalar_type>
  static void copy(cudaStream_t stream, scalar_type const source[], std::size_t num_entries, scalar_type destination[],
                   cudaMemcpyKind way) {
    cuda::check_error(cudaMemcpyAsync(destination, source, num_entries * sizeof(scalar_type), way, stream),
                      "cudaMemcpyAsync");
  }
};

}  // namespace backend

namespace gpu {

// An array on a device that owns its memory.
template <typename scalar_type, typename manipulator>
class device_vector {
 public:
  using value_type = scalar_type;
  using backend_device = typename manipulator::backend_device;
  using stream_type = typename backend_device::stream_type;

  device_vector(std::size_t num_entries = 0) : device_vector(backend_device(), num_entries) {}
  device_vector(backend_device const &new_device, std::size_t num_entries = 0)
      : device(new_device),
        entries(num_entries),
        memory(manipulator::template allocate<scalar_type>(device.stream(), num_entries)) {}
  // Copies from the device.
  device_vector(scalar_type const *begin, scalar_type const *end) : device_vector(backend_device(), begin, end) {}
  device_vector(backend_device const &new_device, scalar_type const *begin, scalar_type const *end)
      : device_vector(new_device, static_cast<std::size_t>(std::distance(begin, end))) {
    manipulator::copy_device_to_device(device.stream(), begin, entries, memory);
  }
  // Takes memory over.
  device_vector(scalar_type *&&raw_pointer, std::size_t num_entries)
      : device_vector(backend_device(), std::move(raw_pointer), num_entries) {}
  device_vector(backend_device const &new_device, scalar_type *&&raw_pointer, std::size_t num_entries)
      : device(new_device), entries(num_entries), memory(raw_pointer) {
    raw_pointer = nullptr;
  }
  device_vector(device_vector const &other) : device_vector(other.device, other.memory, other.memory + other.entries) {}
  device_vector(device_vector &&other) noexcept : device(other.device), entries(other.entries), memory(other.release()) {}
  device_vector &operator=(device_vector other) noexcept {
    std::swap(device, other.device);
    std::swap(entries, other.entries);
    std::swap(memory, other.memory);
    return *this;
  }
  ~device_vector() {
    // The end of a program may come before that of its vectors; then the memory is gone.
    if (memory != nullptr) cudaFree(memory);
  }

  scalar_type *data() { return memory; }
  scalar_type const *data() const { return memory; }
  std::size_t size() const { return entries; }
  bool empty() const { return entries == 0; }
  scalar_type *release() {
    scalar_type *const raw = memory;
    entries = 0;
    memory = nullptr;
    return raw;
  }
  stream_type device_stream() const { return device.stream(); }

 private:
  backend_device device;
  std::size_t entries;
  scalar_type *memory;
};

template <typename scalar_type>
using vector = device_vector<scalar_type, backend::data_manipulator<tag::gpu>>;

// Copies between main memory and a device; those to main memory are complete when they return.
struct transfer {
  using manipulator = backend::data_manipulator<tag::gpu>;
  using stream_type = cudaStream_t;

  template <typename scalar_type>
  static void load(stream_type stream, scalar_type const *cpu_source, std::size_t num_entries, scalar_type *gpu_destination) {
    manipulator::copy_host_to_device(stream, cpu_source, num_entries, gpu_destination);
  }
  template <typename scalar_type>
  static vector<scalar_type> load(stream_type stream, scalar_type const *cpu_source, std::size_t num_entries) {
    vector<scalar_type> result(backend::device_instance<tag::gpu>(stream), num_entries);
    load(stream, cpu_source, num_entries, result.data());
    return result;
  }
  template <typename scalar_type>
  static vector<scalar_type> load(scalar_type const *cpu_source, std::size_t num_entries) {
    return load(stream_type(), cpu_source, num_entries);
  }
  template <typename scalar_type>
  static vector<scalar_type> load(std::vector<scalar_type> const &cpu_source) {
    return load(cpu_source.data(), cpu_source.size());
  }
  template <typename scalar_type>
  static void load(stream_type stream, std::vector<scalar_type> const &cpu_source, scalar_type gpu_destination[]) {
    load(stream, cpu_source.data(), cpu_source.size(), gpu_destination);
  }
  template <typename scalar_type>
  static void load(std::vector<scalar_type> const &cpu_source, scalar_type gpu_destination[]) {
    load(stream_type(), cpu_source, gpu_destination);
  }
  template <typename scalar_type>
  static void load(std::vector<scalar_type> const &source, std::vector<scalar_type> &destination) {
    destination = source;
  }

  template <typename scalar_type>
  static void unload(stream_type stream, scalar_type const *gpu_source, std::size_t num_entries, scalar_type *cpu_result) {
    manipulator::copy_device_to_host(stream, gpu_source, num_entries, cpu_result);
    cuda::check_error(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  template <typename scalar_type>
  static std::vector<scalar_type> unload(stream_type stream, scalar_type const gpu_source[], std::size_t num_entries) {
    std::vector<scalar_type> result(num_entries);
    unload(stream, gpu_source, num_entries, result.data());
    return result;
  }
  template <typename scalar_type>
  static std::vector<scalar_type> unload(scalar_type const gpu_source[], std::size_t num_entries) {
    return unload(stream_type(), gpu_source, num_entries);
  }
  template <typename scalar_type>
  static void unload(vector<scalar_type> const &gpu_source, scalar_type *cpu_result) {
    unload(gpu_source.device_stream(), gpu_source.data(), gpu_source.size(), cpu_result);
  }
  template <typename scalar_type>
  static std::vector<scalar_type> unload(vector<scalar_type> const &gpu_source) {
    return unload(gpu_source.device_stream(), gpu_source.data(), gpu_source.size());
  }
  template <typename scalar_type>
  static std::vector<scalar_type> unload(std::vector<scalar_type> const &source) {
    return source;
  }
  template <typename scalar_type>
  static vector<scalar_type> capture(scalar_type *&&raw_pointer, std::size_t num_entries) {
    return vector<scalar_type>(std::move(raw_pointer), num_entries);
  }
};

inline int device_count() {
  int count = 0;
  cuda::check_error(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}
inline void device_set(int active_device) { cuda::check_error(cudaSetDevice(active_device), "cudaSetDevice"); }
inline void synchronize_default_stream() {
  cuda::check_error(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

}  // namespace gpu

namespace backend {

template <typename backend_tag>
struct buffer_traits<backend_tag, typename std::enable_if<std::is_same<
                                      typename detail::backend_of<backend_tag>::location, tag::gpu>::value>::type> {
  using location = tag::gpu;
  template <typename T>
  using container = gpu::vector<T>;
};

}  // namespace backend

template <typename scalar_type>
gpu::vector<scalar_type> make_buffer_container(cudaStream_t stream, std::size_t size) {
  return gpu::vector<scalar_type>(backend::device_instance<tag::gpu>(stream), size);
}

template <typename scalar_type, typename index>
void data_scaling::apply(cudaStream_t stream, index num_entries, scalar_type *data, double factor) {
  auto values = gpu::transfer::unload(stream, data, static_cast<std::size_t>(num_entries));
  apply(num_entries, values.data(), factor);
  gpu::transfer::load(stream, values, data);
  cuda::check_error(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

namespace detail {

template <>
struct place<tag::gpu> {
  // Cosine and sine transforms have no kernels on GPUs.
  static bool in_main_memory(kind which) { return which != complex && which != halved; }
  static char const *note(kind which) {
    return in_main_memory(which) ? "cosine and sine transforms of arrays on a GPU are computed in main memory\n" : "";
  }
  static std::int32_t device(kind which) {
    if (in_main_memory(which)) return -1;
    int current = 0;
    cuda::check_error(cudaGetDevice(&current), "cudaGetDevice");
    return current;
  }

  // Plans on a GPU take complex elements where the transform is complex, and arrays that are apart or one. `counts` are the
  // elements of inbox and outbox on this rank.
  static int run(ferrier_heffte_transform const *transform, ferrier_heffte_call call, kind which,
                 std::array<std::size_t, 2> const &counts) {
    std::size_t const width = call.double_precision ? sizeof(double) : sizeof(float);
    std::size_t const elements = counts[0] * static_cast<std::size_t>(call.batch);
    auto const stream = static_cast<cudaStream_t>(call.stream);
    if (in_main_memory(which)) {
      std::size_t const other = counts[1] * static_cast<std::size_t>(call.batch);
      auto *const target = static_cast<char *>(call.output);
      auto source = gpu::transfer::unload(stream, static_cast<char const *>(call.input),
                                          (call.backward ? other : elements) * width);
      std::vector<char> result((call.backward ? elements : other) * width);
      call.input = source.data();
      call.output = result.data();
      int const status = ferrier_heffte_run(transform, &call);
      if (status != 0) return status;
      gpu::transfer::load(stream, result, target);
      cuda::check_error(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      return 0;
    }
    bool const converts = call.real != 0, halves_in_place = which == halved && call.input == call.output;
    if (!converts && !halves_in_place) return ferrier_heffte_run(transform, &call);
    call.real = 0;
    std::size_t const bytes = elements * width * (converts ? 2 : 1);
    gpu::vector<char> between(backend::device_instance<tag::gpu>(stream), bytes);
    using copies = backend::data_manipulator<tag::gpu>;
    if (!call.backward) {
      if (converts) {
        cuda::check_error(cudaMemsetAsync(between.data(), 0, bytes, stream), "cudaMemsetAsync");
        copies::spread(stream, call.input, 1, elements, between.data(), 2, width);
      } else {
        copies::copy_n(stream, static_cast<char const *>(call.input), bytes, between.data());
      }
      call.input = between.data();
      return ferrier_heffte_run(transform, &call);
    }
    void *const output = call.output;
    call.output = between.data();
    int const status = ferrier_heffte_run(transform, &call);
    if (status != 0) return status;
    if (converts)
      copies::spread(stream, between.data(), 2, elements, output, 1, width);
    else
      copies::copy_n(stream, static_cast<char const *>(between.data()), bytes, static_cast<char *>(output));
    return 0;
  }
};

}  // namespace detail

}  // namespace heffte

#endif

#endif
