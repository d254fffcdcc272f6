//! The table of peers.

use ferrier::Real;
use num_complex::Complex;

use super::arena::Arena;
use super::launch::MpiLaunch;
use super::peer::Peer;
use super::problem::PeerProblem;
use super::{fftw, mkl};
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
use super::{fftw_mpi, heffte, p3dfft};
use crate::failure::{self, Outcome, fail};

/// A peer: a line of [`PEERS`].
pub struct PeerEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    make: Make,
}

/// The processes that run a peer, and its constructor.
enum Make {
    /// One process, with the threads of all ranks.
    OneProcess(fn(&PeerProblem, Arena) -> Outcome<Peer>),
    /// All processes of a launch.
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    Distributed(fn(&PeerProblem, &MpiLaunch<'_>) -> Outcome<Peer>),
    /// One GPU; see `gpu::cufft`.
    Gpu,
}

impl PeerEntry {
    /// Do all processes of a launch run it together?
    pub fn is_distributed(&self) -> bool {
        !matches!(self.make, Make::OneProcess(_) | Make::Gpu)
    }

    /// Does it run on a GPU?
    pub fn is_on_gpu(&self) -> bool {
        matches!(self.make, Make::Gpu)
    }

    /// Loads the library, plans (which may take a while) and fills the input
    /// with `value(array, index)`.
    ///
    /// # Errors
    /// The library is missing, or cannot do this transform.
    pub fn load<T: Real>(
        &self,
        problem: &PeerProblem,
        launch: Option<&MpiLaunch<'_>>,
        value: impl Fn(usize, [usize; 3]) -> Complex<T>,
    ) -> Outcome<Peer> {
        let mut peer = match (&self.make, launch) {
            (Make::OneProcess(make), _) => make(problem, Arena::new(problem)?)?,
            (Make::Gpu, _) => return fail(format!("peer {} needs --device cuda", self.name)),
            #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
            (Make::Distributed(make), Some(launch)) => make(problem, launch)?,
            #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
            (Make::Distributed(_), None) => return fail(needs_launcher(self.name)),
        };
        // After planning, which overwrites the arrays.
        peer.fill(problem, value);
        Ok(peer)
    }
}

/// All peers.
pub static PEERS: &[PeerEntry] = &[
    PeerEntry { name: "fftw", summary: "FFTW 3, FFTW_MEASURE", make: Make::OneProcess(fftw::measure) },
    PeerEntry {
        name: "fftw-patient",
        summary: "FFTW 3, FFTW_PATIENT, at most a minute each",
        make: Make::OneProcess(fftw::patient),
    },
    PeerEntry { name: "mkl", summary: "Intel MKL's DFTI", make: Make::OneProcess(mkl::make) },
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    PeerEntry {
        name: "fftw-mpi",
        summary: "FFTW 3's distributed transform, FFTW_MEASURE, under mpiexec only",
        make: Make::Distributed(fftw_mpi::measure),
    },
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    PeerEntry {
        name: "fftw-mpi-patient",
        summary: "the same, FFTW_PATIENT, at most a minute each",
        make: Make::Distributed(fftw_mpi::patient),
    },
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    PeerEntry {
        name: "heffte",
        summary: "heFFTe 2 (libheffte.so.2) in slabs, with its default options, under mpiexec only",
        make: Make::Distributed(heffte::make),
    },
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    PeerEntry {
        name: "p3dfft",
        summary: "P3DFFT++ (libp3dfft.3.so) in slabs, under mpiexec only",
        make: Make::Distributed(p3dfft::make),
    },
    PeerEntry {
        name: "cufft",
        summary: "NVIDIA's cuFFT on one GPU, out of place and in place; with --device cuda only",
        make: Make::Gpu,
    },
];

/// The peer called `name`.
///
/// # Errors
/// Lists the known names.
pub fn find(name: &str) -> Outcome<&'static PeerEntry> {
    failure::find("peer", PEERS, |entry| entry.name, name)
}

/// The message that a distributed peer needs an MPI launch.
pub fn needs_launcher(name: &str) -> String {
    format!("peer {name} runs on the ranks of an MPI launch: start ferrier with mpiexec")
}

#[cfg(test)]
mod tests {
    use super::super::problem::strides;
    use super::*;
    use crate::noise::Noise;
    use crate::reference::{Reference, ReferenceProblem};
    use crate::scalars::{rounded, widened};
    use crate::view::View;
    use ferrier::{Comm, Precision};

    /// Every plan of every installed peer does the same transform as Ferrier.
    #[test]
    fn installed_peers_do_the_same_transform() {
        for entry in PEERS.iter().filter(|entry| entry.name != "fftw-patient") {
            for (shape, axes, batch) in [
                ([4, 6, 8], &[0, 1, 2][..], 1),
                ([5, 3, 7], &[0, 1, 2], 3),
                ([6, 5, 4], &[2, 0], 2),
                ([1, 9, 10], &[1, 2], 1),
            ] {
                for real in [false, true] {
                    let problem = |precision| PeerProblem {
                        shape,
                        axes: axes.to_vec(),
                        real,
                        batch,
                        precision,
                        ndim: 3,
                        transposed: false,
                        threads: 2,
                    };
                    check::<f32>(entry, &problem(Precision::F32));
                    check::<f64>(entry, &problem(Precision::F64));
                }
            }
        }
    }

    fn check<T: Real>(entry: &'static PeerEntry, problem: &PeerProblem) {
        let noise = Noise::new(problem.shape, 7);
        let mut peer = match entry.load::<T>(problem, None, |b, index| rounded(noise.at(b, index))) {
            Ok(peer) => peer,
            Err(failure) => {
                let known = [
                    "was not found",
                    "only transforms of three axes",
                    "only transforms of all",
                    "start ferrier with mpiexec",
                    "needs --device",
                ];
                assert!(known.iter().any(|part| failure.message.contains(part)), "{}", failure.message);
                println!("{}", failure.message);
                return;
            }
        };
        let width = if problem.real { 1 } else { 2 };
        let strides = strides(problem.shape, 1);
        let scalars = peer.arena.input.scalars_mut::<T>().to_vec();
        for b in 0..problem.batch {
            let view = View {
                scalars: &scalars[b * strides[3] * width..],
                width,
                lo: [0; 3],
                hi: problem.shape,
                strides: [strides[0], strides[1], strides[2]],
                array: 0,
                batch: 1,
                rows: None,
            };
            let wanted = ReferenceProblem::fourier(problem.shape, problem.spectrum(), &problem.axes);
            let reference = Reference::new(&Comm::one_rank(), &wanted, &view).unwrap();
            for plan in 0..peer.plan_count() {
                peer.prepare::<T>(plan, problem);
                peer.run(plan);
                let (distance, norm) =
                    reference.distance(|index| peer.result::<T>(plan, b, index).map(widened));
                let error = (distance / norm).sqrt();
                let allowed = 10.0 * problem.precision.epsilon();
                assert!(error < allowed, "{} {} {problem:?}: {error}", entry.name, peer.plan_name(plan));
            }
        }
        println!("{} {} {problem:?}: correct", entry.name, peer.version);
    }
}
