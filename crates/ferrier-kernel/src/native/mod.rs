//! Kernel `native`: many lines at once, one in each complex lane of SIMD vectors.
//!
//! A group has as many lines as a vector has complex numbers; element `k` of
//! all its lines is one vector. So a strided axis needs no shuffles, every
//! length runs the same code, and a line's result does not depend on its
//! neighbours: lanes without a line are computed and dropped.
//!
//! Backward transforms use forward butterflies and store their results in
//! reverse order.

mod block_plan;
mod butterfly;
mod cache_hint;
mod contiguous;
mod contiguous_lines;
mod contiguous_long;
mod contiguous_parts;
mod contiguous_real;
mod convolution;
mod factorization;
mod fft;
mod gather_scatter;
mod group_set;
mod line_io;
mod lines;
mod pairs;
mod passes;
mod planes;
mod portable;
mod prefetch;
mod real;
mod short_real;
mod single_pass;
mod staging;
mod two_pass;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use lines::NativeLines;
use portable::Portable;

use crate::lines::Lines;
use crate::spec::LinesSpec;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Isa {
    #[cfg(all(target_arch = "x86_64", not(ferrier_lean)))]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    /// The instruction sets of this processor, best first.
    pub fn available() -> Vec<Isa> {
        let mut found = vec![];
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            // Builds with sanitizers check one vector type: the others run the same code and take long to compile.
            #[cfg(not(ferrier_lean))]
            if fma && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                found.push(Isa::Avx512);
            }
            if fma {
                found.push(Isa::Avx2);
            }
        }
        found.push(Isa::Portable);
        found
    }

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(all(target_arch = "x86_64", not(ferrier_lean)))]
            Isa::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        }
    }

    /// The instruction set that `FERRIER_SIMD` names, else the best; `None` if this processor does not have it.
    pub fn chosen() -> Option<Isa> {
        let mut available = Isa::available().into_iter();
        match std::env::var_os("FERRIER_SIMD") {
            Some(name) if !name.is_empty() => available.find(|isa| *isa.name() == *name),
            _ => available.next(),
        }
    }
}

/// Constructors for one precision: on the chosen instruction set, and on a given
/// one, which this processor must have.
macro_rules! constructors {
    ($t:ty, $best:ident, $on:ident, $avx512:ident, $avx2:ident) => {
        pub(super) fn $best(spec: &LinesSpec) -> Box<dyn Lines<$t>> {
            $on(Isa::chosen().unwrap_or(Isa::Portable), spec)
        }

        /// Lines on an instruction set, which this processor must have.
        pub fn $on(isa: Isa, spec: &LinesSpec) -> Box<dyn Lines<$t>> {
            match isa {
                #[cfg(all(target_arch = "x86_64", not(ferrier_lean)))]
                Isa::Avx512 => Box::new(NativeLines::<x86::$avx512>::new(spec)),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => Box::new(NativeLines::<x86::$avx2>::new(spec)),
                Isa::Portable => Box::new(NativeLines::<Portable<$t>>::new(spec)),
            }
        }
    };
}

constructors!(f32, lines_f32, lines_f32_on, Z32, Y32);
constructors!(f64, lines_f64, lines_f64_on, Z64, Y64);
