// Transforms between boxes of ranks, complex ones and those of cosines and sines.
#ifndef HEFFTE_FFT3D_H
#define HEFFTE_FFT3D_H

#include "heffte_plan_logic.h"

namespace heffte {

// The type of the spectrum of elements of a type.
template <typename scalar_type>
struct fft_output {
  using type = scalar_type;
};
template <>
struct fft_output<float> {
  using type = std::complex<float>;
};
template <>
struct fft_output<double> {
  using type = std::complex<double>;
};

// The same for a backend: that of cosine and sine transforms is real.
template <typename scalar_type, typename backend_tag>
struct transform_output {
  using type = typename std::conditional<backend::uses_fft_types<backend_tag>::value,
                                         typename fft_output<scalar_type>::type, scalar_type>::type;
};

namespace detail {
template <typename scalar_type>
struct real_part {
  using type = scalar_type;
};
template <typename number>
struct real_part<std::complex<number>> {
  using type = number;
};
}  // namespace detail

// The real numbers that a spectrum of a type can come from.
template <typename scalar_type, typename backend_tag>
struct transform_real_type {
  using type = typename detail::real_part<typename define_standard_type<scalar_type>::type>::type;
};

namespace detail {

// What fft3d and fft3d_r2c have in common: `in` and `out` are types of elements of the inbox and the outbox.
template <typename backend_tag, typename index>
class fft_base : public backend::device_instance<typename backend::buffer_traits<backend_tag>::location> {
 public:
  using location_tag = typename backend::buffer_traits<backend_tag>::location;
  using stream_type = typename backend::device_instance<location_tag>::stream_type;
  template <typename T>
  using buffer_container = typename backend::buffer_traits<backend_tag>::template container<T>;

  long long size_inbox() const { return boxes->in[0].count(); }
  long long size_outbox() const { return boxes->out[0].count(); }
  box3d<index> inbox() const { return boxes->in[0]; }
  box3d<index> outbox() const { return boxes->out[0]; }
  // Elements of a workspace that calls may be given. Plans have their own: it is not looked at.
  std::size_t size_workspace() const { return static_cast<std::size_t>(std::max(size_inbox(), size_outbox())); }
  std::size_t size_comm_buffers() const { return 0; }
  double get_scale_factor(scale scaling) const { return scaling == scale::symmetric ? std::sqrt(scale_factor) : scale_factor; }
  // Ferrier's own: options that it serves in another way, and notes of its plans so far, one per line.
  std::string notes() const { return held.notes(); }

 protected:
  fft_base(stream_type stream, box3d<index> const &in, box3d<index> const &out, kind which, int halved_dimension,
           MPI_Comm const comm, plan_options const options)
      : backend::device_instance<location_tag>(stream),
        boxes(new ioboxes<index>{{in}, {out}}),
        held(description(in, out, which, halved_dimension, options), &comm) {
    static_assert(backend::is_enabled<backend_tag>::value, "the backend is not enabled");
    static_assert(std::is_same<index, int>::value || std::is_same<index, long long>::value,
                  "indices are int or long long");
    scale_factor = 1.0;
    for (long long length : held.world) {
      long long const period = which == cosine1 ? length - 1 : which == sine1 ? length + 1 : length;
      double const doubled = which == complex || which == halved ? 1.0 : 2.0;
      scale_factor /= static_cast<double>(period) * doubled * backend_of<backend_tag>::backward_factor;
    }
  }

  template <typename in, typename out>
  void run(direction way, int batch, void const *input, void *output, scale scaling) const {
    add_trace const timed(way == direction::forward ? "forward" : "backward");
    double factor = scaling == scale::none ? 1.0 : get_scale_factor(scaling);
    double const one = backend_of<backend_tag>::backward_factor;
    if (way == direction::backward) factor *= one * one * one;
    held.template run<in, out>(way, batch, input, output, static_cast<void *>(this->stream()), factor);
  }

  template <typename container>
  static void check_size(container const &input, long long needed) {
    if (input.size() < static_cast<std::size_t>(needed))
      throw std::invalid_argument("the input has " + std::to_string(input.size()) + " elements, the box has " +
                                  std::to_string(needed));
  }

 private:
  static ferrier_heffte_description description(box3d<index> const &in, box3d<index> const &out, kind which,
                                                int halved_dimension, plan_options const &options) {
    auto result = describe(in, out, which, halved_dimension);
    result.options = ferrier_heffte_options{static_cast<std::int32_t>(options.algorithm), options.use_reorder,
                                            options.use_pencils, options.use_gpu_aware, options.get_subranks()};
    return result;
  }
  // Boxes cannot be assigned, transforms can be moved.
  std::unique_ptr<ioboxes<index>> boxes;
  transform<location_tag> held;
  double scale_factor;
};

}  // namespace detail

// A transform from the inboxes of ranks to their outboxes, and back.
template <typename backend_tag, typename index = int>
class fft3d : public detail::fft_base<backend_tag, index> {
  using base = detail::fft_base<backend_tag, index>;

 public:
  using typename base::location_tag;
  using typename base::stream_type;
  using backend_executor = typename one_dim_backend<backend_tag>::executor;
  template <typename T>
  using buffer_container = typename backend::buffer_traits<backend_tag>::template container<T>;
  template <typename T>
  using real_buffer_container = buffer_container<typename transform_real_type<T, backend_tag>::type>;
  template <typename T>
  using output_buffer_container = buffer_container<typename transform_output<T, backend_tag>::type>;

  // Collective.
  fft3d(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
        plan_options const options = default_options<backend_tag>())
      : fft3d(stream_type(), inbox, outbox, comm, options) {}
  fft3d(stream_type gpu_stream, box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
        plan_options const options = default_options<backend_tag>())
      : base(gpu_stream, inbox, outbox, detail::backend_of<backend_tag>::transform, -1, comm,
             set_options<backend_tag>(options)) {}
  // Low, high and order of inbox and outbox.
  fft3d(int il0, int il1, int il2, int ih0, int ih1, int ih2, int io0, int io1, int io2, int ol0, int ol1, int ol2,
        int oh0, int oh1, int oh2, int oo0, int oo1, int oo2, MPI_Comm const comm, bool use_reorder, int algorithm,
        bool use_pencils)
      : fft3d(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}, {io0, io1, io2}),
              box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}, {oo0, oo1, oo2}), comm,
              plan_options(use_reorder, static_cast<reshape_algorithm>(algorithm), use_pencils)) {}
  fft3d(int il0, int il1, int il2, int ih0, int ih1, int ih2, int io0, int io1, int io2, int ol0, int ol1, int ol2,
        int oh0, int oh1, int oh2, int oo0, int oo1, int oo2, MPI_Comm const comm)
      : fft3d(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}, {io0, io1, io2}),
              box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}, {oo0, oo1, oo2}), comm) {}
  fft3d(int il0, int il1, int il2, int ih0, int ih1, int ih2, int ol0, int ol1, int ol2, int oh0, int oh1, int oh2,
        MPI_Comm const comm)
      : fft3d(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}), box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}), comm) {}

  // From the inbox to the outbox. Types: complex or real to complex, of either precision; real to real for cosines and sines.
  // The first call with a precision and a batch makes a plan. Collective.
  template <typename input_type, typename output_type>
  void forward(input_type const input[], output_type output[], scale scaling = scale::none) const {
    forward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(input_type const input[], output_type output[], output_type[], scale scaling = scale::none) const {
    forward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(int const batch_size, input_type const input[], output_type output[], output_type[],
               scale scaling = scale::none) const {
    forward(batch_size, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(int const batch_size, input_type const input[], output_type output[], scale scaling = scale::none) const {
    static_assert(backend::check_types<backend_tag, input_type, output_type>::value,
                  "forward does not go from this type to that one");
    this->template run<input_type, output_type>(direction::forward, batch_size, input, output, scaling);
  }
  template <typename input_type>
  output_buffer_container<input_type> forward(buffer_container<input_type> const &input, scale scaling = scale::none) {
    base::check_size(input, this->size_inbox());
    auto output = make_buffer_container<typename transform_output<input_type, backend_tag>::type>(
        this->stream(), static_cast<std::size_t>(this->size_outbox()));
    forward(input.data(), output.data(), scaling);
    return output;
  }

  // From the outbox to the inbox. Real results of a complex transform are the real parts. Collective.
  template <typename input_type, typename output_type>
  void backward(input_type const input[], output_type output[], scale scaling = scale::none) const {
    backward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(input_type const input[], output_type output[], input_type[], scale scaling = scale::none) const {
    backward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(int const batch_size, input_type const input[], output_type output[], input_type[],
                scale scaling = scale::none) const {
    backward(batch_size, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(int const batch_size, input_type const input[], output_type output[], scale scaling = scale::none) const {
    static_assert(backend::check_types<backend_tag, output_type, input_type>::value,
                  "backward does not go from this type to that one");
    this->template run<output_type, input_type>(direction::backward, batch_size, input, output, scaling);
  }
  template <typename scalar_type>
  buffer_container<scalar_type> backward(buffer_container<scalar_type> const &input, scale scaling = scale::none) {
    base::check_size(input, this->size_outbox());
    auto result = make_buffer_container<scalar_type>(this->stream(), static_cast<std::size_t>(this->size_inbox()));
    backward(input.data(), result.data(), scaling);
    return result;
  }
  template <typename scalar_type>
  real_buffer_container<scalar_type> backward_real(buffer_container<scalar_type> const &input,
                                                   scale scaling = scale::none) {
    base::check_size(input, this->size_outbox());
    auto result = make_buffer_container<typename transform_real_type<scalar_type, backend_tag>::type>(
        this->stream(), static_cast<std::size_t>(this->size_inbox()));
    backward(input.data(), result.data(), scaling);
    return result;
  }
};

template <typename backend_tag, typename index = int>
using fft2d = fft3d<backend_tag, index>;

// Cosine and sine transforms.
template <typename backend_tag, typename index = int>
using rtransform = fft3d<backend_tag, index>;

template <typename backend_tag, typename index>
fft3d<backend_tag, index> make_fft3d(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
                                     plan_options const options = default_options<backend_tag>()) {
  return fft3d<backend_tag, index>(inbox, outbox, comm, options);
}

}  // namespace heffte

#endif
