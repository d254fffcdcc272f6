// Transforms of real elements to the half of their spectrum that is not redundant.
#ifndef HEFFTE_FFT3D_R2C_H
#define HEFFTE_FFT3D_R2C_H

#include "heffte_fft3d.h"

namespace heffte {

// The spectrum has n/2 + 1 modes in dimension `r2c_direction`.
template <typename backend_tag, typename index = int>
class fft3d_r2c : public detail::fft_base<backend_tag, index> {
  using base = detail::fft_base<backend_tag, index>;

 public:
  using typename base::location_tag;
  using typename base::stream_type;
  using backend_executor_c2c = typename one_dim_backend<backend_tag>::executor;
  using backend_executor_r2c = typename one_dim_backend<backend_tag>::executor_r2c;
  template <typename T>
  using buffer_container = typename backend::buffer_traits<backend_tag>::template container<T>;
  template <typename T>
  using real_buffer_container = buffer_container<typename transform_real_type<T, backend_tag>::type>;
  template <typename T>
  using output_buffer_container = buffer_container<typename fft_output<T>::type>;

  // Collective.
  fft3d_r2c(box3d<index> const inbox, box3d<index> const outbox, int r2c_direction, MPI_Comm const comm,
            plan_options const options = default_options<backend_tag>())
      : fft3d_r2c(stream_type(), inbox, outbox, r2c_direction, comm, options) {}
  fft3d_r2c(stream_type gpu_stream, box3d<index> const inbox, box3d<index> const outbox, int r2c_direction,
            MPI_Comm const comm, plan_options const options = default_options<backend_tag>())
      : base(gpu_stream, inbox, outbox, detail::halved, r2c_direction, comm, set_options<backend_tag, true>(options)) {}
  // Low, high and order of inbox and outbox.
  fft3d_r2c(int il0, int il1, int il2, int ih0, int ih1, int ih2, int io0, int io1, int io2, int ol0, int ol1, int ol2,
            int oh0, int oh1, int oh2, int oo0, int oo1, int oo2, int r2c_direction, MPI_Comm const comm,
            bool use_reorder, int algorithm, bool use_pencils)
      : fft3d_r2c(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}, {io0, io1, io2}),
                  box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}, {oo0, oo1, oo2}), r2c_direction, comm,
                  plan_options(use_reorder, static_cast<reshape_algorithm>(algorithm), use_pencils)) {}
  fft3d_r2c(int il0, int il1, int il2, int ih0, int ih1, int ih2, int io0, int io1, int io2, int ol0, int ol1, int ol2,
            int oh0, int oh1, int oh2, int oo0, int oo1, int oo2, int r2c_direction, MPI_Comm const comm)
      : fft3d_r2c(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}, {io0, io1, io2}),
                  box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}, {oo0, oo1, oo2}), r2c_direction, comm) {}
  fft3d_r2c(int il0, int il1, int il2, int ih0, int ih1, int ih2, int ol0, int ol1, int ol2, int oh0, int oh1, int oh2,
            int r2c_direction, MPI_Comm const comm)
      : fft3d_r2c(box3d<index>({il0, il1, il2}, {ih0, ih1, ih2}), box3d<index>({ol0, ol1, ol2}, {oh0, oh1, oh2}),
                  r2c_direction, comm) {}

  // From the inbox to the outbox. Collective.
  template <typename input_type, typename output_type>
  void forward(input_type const input[], output_type output[], scale scaling = scale::none) const {
    forward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(input_type const input[], output_type output[], output_type[], scale scaling = scale::none) const {
    forward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(int batch_size, input_type const input[], output_type output[], output_type[],
               scale scaling = scale::none) const {
    forward(batch_size, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void forward(int batch_size, input_type const input[], output_type output[], scale scaling = scale::none) const {
    check<input_type, output_type>();
    this->template run<input_type, output_type>(direction::forward, batch_size, input, output, scaling);
  }
  template <typename input_type>
  output_buffer_container<input_type> forward(buffer_container<input_type> const &input, scale scaling = scale::none) {
    base::check_size(input, this->size_inbox());
    auto output = make_buffer_container<typename fft_output<input_type>::type>(
        this->stream(), static_cast<std::size_t>(this->size_outbox()));
    forward(input.data(), output.data(), scaling);
    return output;
  }

  // From the outbox to the inbox. Collective.
  template <typename input_type, typename output_type>
  void backward(input_type const input[], output_type output[], scale scaling = scale::none) const {
    backward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(input_type const input[], output_type output[], input_type[], scale scaling = scale::none) const {
    backward(1, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(int batch_size, input_type const input[], output_type output[], input_type[],
                scale scaling = scale::none) const {
    backward(batch_size, input, output, scaling);
  }
  template <typename input_type, typename output_type>
  void backward(int batch_size, input_type const input[], output_type output[], scale scaling = scale::none) const {
    check<output_type, input_type>();
    this->template run<output_type, input_type>(direction::backward, batch_size, input, output, scaling);
  }
  template <typename scalar_type>
  real_buffer_container<scalar_type> backward(buffer_container<scalar_type> const &input, scale scaling = scale::none) {
    base::check_size(input, this->size_outbox());
    auto result = make_buffer_container<typename transform_real_type<scalar_type, backend_tag>::type>(
        this->stream(), static_cast<std::size_t>(this->size_inbox()));
    backward(input.data(), result.data(), scaling);
    return result;
  }

 private:
  template <typename real_type, typename complex_type>
  static void check() {
    static_assert((std::is_same<real_type, float>::value && is_ccomplex<complex_type>::value) ||
                      (std::is_same<real_type, double>::value && is_zcomplex<complex_type>::value),
                  "real elements are float or double, their spectra complex of the same precision");
  }
};

template <typename backend_tag, typename index = int>
using fft2d_r2c = fft3d_r2c<backend_tag, index>;

template <typename backend_tag, typename index>
fft3d_r2c<backend_tag, index> make_fft3d_r2c(box3d<index> const inbox, box3d<index> const outbox, int r2c_direction,
                                             MPI_Comm const comm,
                                             plan_options const options = default_options<backend_tag>()) {
  return fft3d_r2c<backend_tag, index>(inbox, outbox, r2c_direction, comm, options);
}

}  // namespace heffte

#endif
