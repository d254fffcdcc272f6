//! Other libraries' turns in a run of ours.

use std::time::{Duration, Instant};

use ferrier::{Comm, Real};

use crate::parts::Number;
use crate::peers::{Peer, Task};
use crate::reference::Reference;
use crate::timing::{median, timed};

/// Time for threads that still spin to go to sleep before another's turn: ours do so after four milliseconds at most.
/// (Those of GNU's OpenMP spin longer.) What is quick runs once untimed to wake them.
pub const SETTLE: Duration = Duration::from_millis(6);

/// What came out for a peer: its better way.
pub struct PeerMeasured {
    /// Its name and version.
    pub name: &'static str,
    /// As the library tells it.
    pub version: String,
    /// In place or out of place.
    pub way: &'static str,
    /// Seconds of each transform.
    pub seconds: Vec<f64>,
    /// Relative error of its spectrum, measured as ours.
    pub error: f64,
}

/// A peer and its times so far, for each of its ways.
pub struct Turns<'a> {
    peer: Peer,
    /// The ranks that run it together, where one does not do so alone.
    comm: Option<&'a Comm>,
    seconds: Vec<Vec<f64>>,
    errors: Vec<f64>,
}

impl<'a> Turns<'a> {
    /// Runs each way once, to warm up and to see that it is the same transform.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn new<T: Real + Number>(
        mut peer: Peer,
        comm: Option<&'a Comm>,
        task: &Task,
        references: &[(usize, Reference)],
    ) -> ferrier::Result<Self> {
        let ways = peer.variants();
        let mut errors = Vec::new();
        for way in 0..ways {
            peer.prepare::<T>(way, task);
            peer.run(way);
            let (mut distance, mut norm) = (0.0, 0.0);
            for (b, reference) in references {
                let part = reference.distance(|index| {
                    let value = peer.result::<T>(way, *b, index)?;
                    Some(num_complex::Complex::new(value.re.widened(), value.im.widened()))
                });
                distance += part.0;
                norm += part.1;
            }
            // As with ours: each has the whole norm, and its part of the distance.
            let distance = match comm {
                Some(comm) => comm.sum(&[distance])?[0],
                None => distance,
            };
            errors.push((distance / norm).sqrt());
        }
        Ok(Turns { peer, comm, seconds: vec![Vec::new(); ways], errors })
    }

    /// Times each way once.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn run<T: Number>(&mut self, task: &Task, quick: bool) -> ferrier::Result<()> {
        for way in 0..self.peer.variants() {
            self.peer.prepare::<T>(way, task);
            std::thread::sleep(SETTLE);
            if quick {
                self.peer.run(way);
                self.peer.prepare::<T>(way, task);
            }
            let seconds = match self.comm {
                Some(comm) => timed(comm, || {
                    self.peer.run(way);
                    Ok(())
                })?,
                None => {
                    let start = Instant::now();
                    self.peer.run(way);
                    start.elapsed().as_secs_f64()
                }
            };
            self.seconds[way].push(seconds);
        }
        Ok(())
    }

    /// The way with the lower median.
    pub fn better(self) -> PeerMeasured {
        let best = (0..self.seconds.len())
            .min_by(|&a, &b| median(&self.seconds[a]).total_cmp(&median(&self.seconds[b])))
            .unwrap_or(0);
        PeerMeasured {
            name: self.peer.name,
            way: self.peer.variant_name(best),
            seconds: self.seconds[best].clone(),
            error: self.errors.iter().copied().fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a }),
            version: self.peer.version,
        }
    }
}
