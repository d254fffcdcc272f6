//! Other libraries, timed in the same run: loaded when asked for, never linked.
//!
//! A peer is one file and one line in [`PEERS`].

mod fftw;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod fftw_mpi;
mod library;
mod mkl;
mod pages;

use ferrier::Precision;
use num_complex::Complex;

use crate::failure::{Failure, Outcome, fail};
use crate::parts::Number;
use crate::session::launched::Launched;
use pages::Pages;

/// A line of the table of peers.
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    make: Make,
}

/// Who runs a peer.
enum Make {
    /// One process, with the threads of all ranks.
    Alone(fn(&Task, Arena) -> Outcome<Peer>),
    /// All processes of a launch together.
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    Together(fn(&Task, &Launched) -> Outcome<Peer>),
    /// One GPU; with `--device cuda` only.
    Gpu,
}

impl Member {
    /// Do all processes of a launch run it together?
    pub fn is_together(&self) -> bool {
        !matches!(self.make, Make::Alone(_) | Make::Gpu)
    }

    /// Does it run on a GPU?
    pub fn is_on_gpu(&self) -> bool {
        matches!(self.make, Make::Gpu)
    }
}

/// All peers.
pub static PEERS: &[Member] = &[
    Member { name: "fftw", summary: "FFTW 3, FFTW_MEASURE", make: Make::Alone(fftw::measure) },
    Member {
        name: "fftw-patient",
        summary: "FFTW 3, FFTW_PATIENT, at most a minute each",
        make: Make::Alone(fftw::patient),
    },
    Member { name: "mkl", summary: "Intel MKL's DFTI", make: Make::Alone(mkl::make) },
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    Member {
        name: "fftw-mpi",
        summary: "FFTW 3's own distributed transform, FFTW_MEASURE, under mpiexec only",
        make: Make::Together(fftw_mpi::make),
    },
    Member {
        name: "cufft",
        summary: "NVIDIA's cuFFT on one GPU, out of place and in place; with --device cuda only",
        make: Make::Gpu,
    },
];

/// The member called `name`.
///
/// # Errors
/// Lists the names there are.
pub fn find(name: &str) -> Outcome<&'static Member> {
    PEERS.iter().find(|member| member.name == name).ok_or_else(|| {
        let known = PEERS.iter().map(|member| member.name).collect::<Vec<_>>().join(", ");
        Failure::new(format!("unknown peer `{name}`; known are: {known}"))
    })
}

/// The transform that a peer is asked for: natural order in and, unless transposed, out.
#[derive(Clone, Debug)]
pub struct Task {
    /// Before the transform.
    pub shape: [usize; 3],
    /// The axes to transform, the halved one last.
    pub axes: Vec<usize>,
    /// Real input.
    pub real: bool,
    /// Arrays.
    pub batch: usize,
    /// Of the numbers.
    pub precision: Precision,
    /// How many axes the user has.
    pub ndim: usize,
    /// A peer that can may leave the first two axes of the spectrum swapped.
    pub transposed: bool,
    /// Threads that the peer may use, in all processes together.
    pub threads: usize,
}

impl Task {
    /// The shape after the transform.
    pub fn spectrum(&self) -> [usize; 3] {
        let mut shape = self.shape;
        if let (true, Some(&halved)) = (self.real, self.axes.last()) {
            shape[halved] = shape[halved] / 2 + 1;
        }
        shape
    }

    /// Both arrays as a single process holds them.
    fn whole(&self) -> (Held, Held) {
        (Held::whole(self.shape, self.strides_in(false)), Held::whole(self.spectrum(), self.strides_out()))
    }

    /// Numbers per element of the input.
    fn width(&self) -> usize {
        if self.real { 1 } else { 2 }
    }

    /// Can a real transform be made in place, in rows padded as FFTW lays
    /// them out? Complex ones always can.
    fn fits_in_place(&self) -> bool {
        !self.real || self.axes.last() == Some(&2)
    }

    /// Numbers (not elements) from one to the next along each axis, and from
    /// array to array, of the input. `padded`: as it lies in place.
    fn strides_in(&self, padded: bool) -> [usize; 4] {
        let mut shape = self.shape;
        if padded && self.real {
            shape[2] = 2 * (shape[2] / 2 + 1);
        }
        strides(shape, self.width())
    }

    /// The same of the output.
    fn strides_out(&self) -> [usize; 4] {
        strides(self.spectrum(), 2)
    }
}

/// Numbers from one element to the next along the three axes, and from array to array.
fn strides(shape: [usize; 3], width: usize) -> [usize; 4] {
    let [n0, n1, n2] = shape;
    [n1 * n2 * width, n2 * width, width, n0 * n1 * n2 * width]
}

/// The part of an array that this process holds, and how it lies.
struct Held {
    /// First index along each axis.
    lo: [usize; 3],
    /// One past the last.
    hi: [usize; 3],
    /// Numbers from one element to the next along the three axes, and from array to array.
    strides: [usize; 4],
}

impl Held {
    /// All of it.
    fn whole(shape: [usize; 3], strides: [usize; 4]) -> Held {
        Held { lo: [0; 3], hi: shape, strides }
    }

    /// Where an element lies, if it is here.
    fn place(&self, array: usize, index: [usize; 3]) -> Option<usize> {
        let here = (0..3).all(|axis| (self.lo[axis]..self.hi[axis]).contains(&index[axis]));
        let along = |axis: usize| (index[axis] - self.lo[axis]) * self.strides[axis];
        here.then(|| array * self.strides[3] + (0..3).map(along).sum::<usize>())
    }
}

/// The arrays of a peer, on the same kind of pages as ours.
pub struct Arena {
    input: Pages,
    output: Pages,
    place: Option<Pages>,
}

impl Arena {
    fn new(task: &Task) -> Outcome<Self> {
        let bytes = task.precision.bytes() * task.batch;
        let input = Pages::new(bytes * task.strides_in(false)[3])?;
        let output = Pages::new(bytes * task.strides_out()[3])?;
        let place =
            if task.fits_in_place() { Some(Pages::new(bytes * task.strides_out()[3])?) } else { None };
        Ok(Arena { input, output, place })
    }
}

/// One way in which a peer does the transform.
struct Variant {
    name: &'static str,
    in_place: bool,
    run: Box<dyn FnMut()>,
}

/// A peer, planned and ready.
pub struct Peer {
    /// The name users type.
    pub name: &'static str,
    /// As the library tells it.
    pub version: String,
    // Before the arena: plans refer to its arrays.
    variants: Vec<Variant>,
    arena: Arena,
    input: Held,
    output: Held,
}

impl Peer {
    /// Loads the library, plans (which may take a while) and fills the input
    /// with `value(array, index)`.
    ///
    /// # Errors
    /// The library is not there, or cannot do this transform.
    pub fn new<T: Number>(
        member: &'static Member,
        task: &Task,
        launched: Option<&Launched>,
        value: impl Fn(usize, [usize; 3]) -> Complex<T>,
    ) -> Outcome<Self> {
        let mut peer = match (&member.make, launched) {
            (Make::Alone(make), _) => make(task, Arena::new(task)?)?,
            (Make::Gpu, _) => return fail(format!("peer {} needs --device cuda", member.name)),
            #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
            (Make::Together(make), Some(launched)) => make(task, launched)?,
            #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
            (Make::Together(_), None) => return fail(needs_launcher(member.name)),
        };
        peer.name = member.name;
        // After planning, which overwrites the arrays.
        let (numbers, held) = (peer.arena.input.numbers_mut::<T>(), &peer.input);
        for b in 0..task.batch {
            for i in held.lo[0]..held.hi[0] {
                for j in held.lo[1]..held.hi[1] {
                    for k in held.lo[2]..held.hi[2] {
                        let (value, at) = (value(b, [i, j, k]), held.place(b, [i, j, k]).unwrap_or(0));
                        numbers[at] = value.re;
                        if !task.real {
                            numbers[at + 1] = value.im;
                        }
                    }
                }
            }
        }
        Ok(peer)
    }

    /// How many ways there are to do the transform.
    pub fn variants(&self) -> usize {
        self.variants.len()
    }

    /// What way number `variant` is called.
    pub fn variant_name(&self, variant: usize) -> &'static str {
        self.variants[variant].name
    }

    /// Gets ready for [`run`](Peer::run); not to be timed.
    pub fn prepare<T: Number>(&mut self, variant: usize, task: &Task) {
        if !self.variants[variant].in_place {
            return;
        }
        let Arena { input, place: Some(place), .. } = &mut self.arena else { return };
        // A line of several processes has another length than its task's.
        let row = self.input.strides[1].max(1);
        let padded = if task.real { task.strides_in(true)[1] } else { row };
        let rows = input.numbers_mut::<T>().chunks_exact(row);
        for (from, to) in rows.zip(place.numbers_mut::<T>().chunks_exact_mut(padded)) {
            to[..row].copy_from_slice(from);
        }
    }

    /// Does the transform.
    pub fn run(&mut self, variant: usize) {
        (self.variants[variant].run)();
    }

    /// The value at an index of the spectrum, after [`run`](Peer::run), if it is here.
    pub fn result<T: Number>(
        &mut self,
        variant: usize,
        array: usize,
        index: [usize; 3],
    ) -> Option<Complex<T>> {
        let at = self.output.place(array, index)?;
        let pages = match &mut self.arena {
            Arena { place: Some(place), .. } if self.variants[variant].in_place => place,
            arena => &mut arena.output,
        };
        let numbers = pages.numbers_mut::<T>();
        Some(Complex::new(numbers[at], numbers[at + 1]))
    }
}

/// That a peer which all processes run together was asked for without any.
pub fn needs_launcher(name: &str) -> String {
    format!("peer {name} runs on the ranks of an MPI launch: start ferrier with mpiexec")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use crate::reference::{Reference, Wanted};
    use crate::view::{View, rounded};
    use ferrier::{Comm, Real};

    /// Every way of every peer that is installed does the transform we mean.
    #[test]
    fn peers_do_our_transform() {
        for member in PEERS.iter().filter(|member| member.name != "fftw-patient") {
            for (shape, axes, batch) in [
                ([4, 6, 8], &[0, 1, 2][..], 1),
                ([5, 3, 7], &[0, 1, 2], 3),
                ([6, 5, 4], &[2, 0], 2),
                ([1, 9, 10], &[1, 2], 1),
            ] {
                for real in [false, true] {
                    let task = |precision| Task {
                        shape,
                        axes: axes.to_vec(),
                        real,
                        batch,
                        precision,
                        ndim: 3,
                        transposed: false,
                        threads: 2,
                    };
                    check::<f32>(member, &task(Precision::F32));
                    check::<f64>(member, &task(Precision::F64));
                }
            }
        }
    }

    fn check<T: Real + Number + Into<f64>>(member: &'static Member, task: &Task) {
        let noise = Noise::new(task.shape, 7);
        let mut peer = match Peer::new::<T>(member, task, None, |b, index| rounded(noise.at(b, index))) {
            Ok(peer) => peer,
            Err(failure) => {
                let known = [
                    "was not found",
                    "only transforms of all",
                    "start ferrier with mpiexec",
                    "needs --device",
                ];
                assert!(known.iter().any(|part| failure.message.contains(part)), "{}", failure.message);
                println!("{}", failure.message);
                return;
            }
        };
        let width = if task.real { 1 } else { 2 };
        let strides = strides(task.shape, 1);
        let numbers = peer.arena.input.numbers_mut::<T>().to_vec();
        for b in 0..task.batch {
            let view = View {
                numbers: &numbers[b * strides[3] * width..],
                width,
                lo: [0; 3],
                hi: task.shape,
                strides: [strides[0], strides[1], strides[2]],
                array: 0,
                batch: 1,
                rows: None,
            };
            let wanted = Wanted::fourier(task.shape, task.spectrum(), &task.axes);
            let reference = Reference::new(&Comm::one_rank(), &wanted, &view).unwrap();
            for way in 0..peer.variants() {
                peer.prepare::<T>(way, task);
                peer.run(way);
                let (distance, norm) = reference.distance(|index| {
                    let value = peer.result::<T>(way, b, index)?;
                    Some(Complex::new(value.re.widened(), value.im.widened()))
                });
                let error = (distance / norm).sqrt();
                let allowed = 10.0 * task.precision.epsilon();
                assert!(error < allowed, "{} {} {task:?}: {error}", member.name, peer.variant_name(way));
            }
        }
        println!("{} {} {task:?}: right", member.name, peer.version);
    }
}
