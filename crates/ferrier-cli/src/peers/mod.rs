//! Other libraries, timed in the same run: loaded when asked for, never linked.
//!
//! A peer is one file and one line in [`PEERS`].

mod fftw;
mod library;
mod mkl;
mod pages;

use ferrier::Precision;
use num_complex::Complex;

use crate::failure::{Failure, Outcome};
use crate::parts::Number;
use pages::Pages;

/// A line of the table of peers.
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    make: fn(&Task, Arena) -> Outcome<Peer>,
}

/// All peers.
pub static PEERS: &[Member] = &[
    Member { name: "fftw", summary: "FFTW 3, FFTW_MEASURE", make: fftw::measure },
    Member {
        name: "fftw-patient",
        summary: "FFTW 3, FFTW_PATIENT, at most a minute each",
        make: fftw::patient,
    },
    Member { name: "mkl", summary: "Intel MKL's DFTI", make: mkl::make },
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

/// The transform that a peer is asked for: natural order in and out.
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
    /// Threads that the peer may use.
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
        strides(shape, if self.real { 1 } else { 2 })
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
        value: impl Fn(usize, [usize; 3]) -> Complex<T>,
    ) -> Outcome<Self> {
        let mut peer = (member.make)(task, Arena::new(task)?)?;
        peer.name = member.name;
        // After planning, which overwrites the arrays.
        let numbers = peer.arena.input.numbers_mut::<T>();
        let mut at = 0;
        for b in 0..task.batch {
            for i in 0..task.shape[0] {
                for j in 0..task.shape[1] {
                    for k in 0..task.shape[2] {
                        let value = value(b, [i, j, k]);
                        numbers[at] = value.re;
                        at += 1;
                        if !task.real {
                            numbers[at] = value.im;
                            at += 1;
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
        let (row, padded) = (task.strides_in(false)[1], task.strides_in(true)[1]);
        let rows = input.numbers_mut::<T>().chunks_exact(row);
        for (from, to) in rows.zip(place.numbers_mut::<T>().chunks_exact_mut(padded)) {
            to[..row].copy_from_slice(from);
        }
    }

    /// Does the transform.
    pub fn run(&mut self, variant: usize) {
        (self.variants[variant].run)();
    }

    /// The value at an index of the spectrum, after [`run`](Peer::run).
    pub fn result<T: Number>(
        &mut self,
        variant: usize,
        task: &Task,
        array: usize,
        index: [usize; 3],
    ) -> Complex<T> {
        let strides = task.strides_out();
        let at = array * strides[3] + (0..3).map(|axis| index[axis] * strides[axis]).sum::<usize>();
        let pages = match &mut self.arena {
            Arena { place: Some(place), .. } if self.variants[variant].in_place => place,
            arena => &mut arena.output,
        };
        let numbers = pages.numbers_mut::<T>();
        Complex::new(numbers[at], numbers[at + 1])
    }
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
                    let task =
                        |precision| Task { shape, axes: axes.to_vec(), real, batch, precision, threads: 2 };
                    check::<f32>(member, &task(Precision::F32));
                    check::<f64>(member, &task(Precision::F64));
                }
            }
        }
    }

    fn check<T: Real + Number + Into<f64>>(member: &'static Member, task: &Task) {
        let noise = Noise::new(task.shape, 7);
        let mut peer = match Peer::new::<T>(member, task, |b, index| rounded(noise.at(b, index))) {
            Ok(peer) => peer,
            Err(failure) => {
                let known = ["was not found", "only transforms of all axes"];
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
            };
            let wanted = Wanted { shape: task.shape, spectrum: task.spectrum(), axes: &task.axes };
            let reference = Reference::new(&Comm::solo(), &wanted, &view).unwrap();
            for way in 0..peer.variants() {
                peer.prepare::<T>(way, task);
                peer.run(way);
                let (distance, norm) = reference.distance(|index| {
                    let value = peer.result::<T>(way, task, b, index);
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
