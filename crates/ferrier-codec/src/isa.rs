//! Instruction sets: the same code compiled for each, chosen at run time.
//!
//! No intrinsics: the loops over the 16 lanes of a row are plain arrays that
//! the compiler turns into vectors. They use IEEE operations without
//! contraction and integers only, and add lane by lane in a fixed order, so
//! every instruction set gives the same bits.

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 (F, BW, DQ, VL).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The baseline of the compilation target.
    Portable,
}

/// Work that is compiled once per instruction set.
pub(crate) trait Job {
    type Out;
    /// Must be `#[inline(always)]`, and so must everything it calls; otherwise
    /// it is compiled for the baseline.
    fn run(self) -> Self::Out;
}

impl Isa {
    /// All compiled instruction sets, best first.
    const ALL: &[Isa] = &[
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2,
        Isa::Portable,
    ];

    /// The instruction sets of this processor, best first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.iter().copied().filter(|isa| isa.is_available())
    }

    /// The best instruction set of this processor.
    pub fn best() -> Isa {
        Isa::available().next().unwrap_or(Isa::Portable)
    }

    fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2"),
            Isa::Portable => true,
        }
    }

    /// Runs jobs with this instruction set; with the portable one if this processor does not have it.
    pub(crate) fn runner(self) -> Runner {
        Runner(if self.is_available() { self } else { Isa::Portable })
    }
}

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runner(Isa);

impl Runner {
    /// Runs `job`, compiled for this instruction set.
    #[inline]
    pub fn run<J: Job>(self, job: J) -> J::Out {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Runner` is only made by `Isa::runner`, which checks that the processor has the instruction set.
            Isa::Avx512 => unsafe { in_avx512(job) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Runner` is only made by `Isa::runner`, which checks that the processor has the instruction set.
            Isa::Avx2 => unsafe { in_avx2(job) },
            Isa::Portable => job.run(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn in_avx512<J: Job>(job: J) -> J::Out {
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn in_avx2<J: Job>(job: J) -> J::Out {
    job.run()
}
