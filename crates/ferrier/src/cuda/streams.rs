//! Methods that redistributions and ghost cells on GPUs have in common.

/// Streams and events of a type; `$all`: its copiers, `$one`: one of them.
macro_rules! stream_methods {
    ($name:ident, |$all:ident| $copiers:expr, |$one:ident| $copier:expr) => {
        impl<E: crate::Element> $name<E, crate::cuda::Cuda> {
            /// Sets the stream of its GPU that calls use.
            ///
            /// # Errors
            /// Where work that was enqueued before failed.
            pub fn set_stream(&mut self, stream: &std::sync::Arc<cudarc::driver::CudaStream>) -> Result<()> {
                let $all = self;
                $copiers
                    .into_iter()
                    .try_for_each(|copier| copier.set_stream(Stream::of_user(copier.gpu(), stream)))
            }

            /// Sets the stream that calls use.
            ///
            /// # Errors
            /// Where work that was enqueued before failed.
            ///
            /// # Safety
            /// It is a stream (`CUstream`, `cudaStream_t`) of the primary context of its GPU and lives until it gets another
            /// one or is dropped.
            pub unsafe fn set_raw_stream(&mut self, stream: *mut std::ffi::c_void) -> Result<()> {
                let $all = self;
                $copiers.into_iter().try_for_each(|copier| {
                    // SAFETY: this function's contract.
                    let stream = unsafe { Stream::of_raw(copier.gpu(), stream.cast()) };
                    copier.set_stream(stream)
                })
            }

            /// Waits until all enqueued work is complete.
            ///
            /// # Errors
            /// Where the GPU failed.
            pub fn synchronize(&self) -> Result<()> {
                let $one = self;
                $copier.stream().synchronize()
            }

            /// Records an event on its stream.
            ///
            /// # Errors
            /// Where the driver refuses.
            pub fn record(&self, event: &crate::cuda::Event) -> Result<()> {
                let $one = self;
                $copier.gpu().enter()?;
                event.record($copier.stream())
            }

            /// The GPU of this rank.
            pub fn gpu(&self) -> &crate::cuda::Gpu {
                let $one = self;
                $copier.gpu()
            }
        }
    };
}

pub(super) use stream_methods;
