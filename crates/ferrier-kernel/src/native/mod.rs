//! Kernel `native`: many lines at once, side by side in SIMD vectors.
//!
//! A group of as many lines as a vector has complex numbers goes through its
//! passes together: element `k` of all lines is one vector. So a strided axis
//! costs no shuffles, every length runs the same code, and a line's result
//! does not depend on its neighbours: places without a line are computed and
//! thrown away.
//!
//! Backward butterflies run forward and hand out their results in reverse order.

mod along;
mod along_real;
mod butterfly;
mod factor;
mod fft;
mod lines;
mod moves;
mod pocket;
mod portable;
mod ports;
mod prime;
mod real;
mod touch;
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
    /// Those that this processor has, best first.
    pub fn available() -> Vec<Isa> {
        let mut found = vec![];
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            // Sanitizers check one kind of vector: the others run the same code, and take long to compile.
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

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(all(target_arch = "x86_64", not(ferrier_lean)))]
            Isa::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        }
    }

    /// The one that `FERRIER_SIMD` names, else the best; none where this processor has not what it names.
    pub fn chosen() -> Option<Isa> {
        let mut available = Isa::available().into_iter();
        match std::env::var_os("FERRIER_SIMD") {
            Some(name) if !name.is_empty() => available.find(|isa| *isa.name() == *name),
            _ => available.next(),
        }
    }
}

/// Constructors for one precision: on the chosen instruction set, and on a given
/// one that this processor must have.
macro_rules! constructors {
    ($t:ty, $best:ident, $on:ident, $avx512:ident, $avx2:ident) => {
        pub(super) fn $best(spec: &LinesSpec) -> Box<dyn Lines<$t>> {
            $on(Isa::chosen().unwrap_or(Isa::Portable), spec)
        }

        /// On an instruction set that this processor must have.
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
