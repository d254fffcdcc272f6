//! Copies in main memory, by the threads of a rank.

use super::bound_route::BoundRoute;
use super::box_copy::BoxCopy;
use super::copier::{Copier, CopyBackend, Incoming, MessageSpan, RouteCounts, SweepKind};
use super::node_link::shared_words;
use super::sweep::{Sweep, Task};
use crate::exchange::ExchangeEntry;
use crate::machine::buffer::Buffer;
use crate::machine::pool::Pool;
use crate::{Comm, Cpu, Element, Result};

impl CopyBackend for Cpu {
    type Copier<E: Element> = CpuCopier<E>;
}

/// Memory of a plan.
#[doc(hidden)]
pub struct HostBuffer(Buffer<f64>);

/// Copies elements in main memory.
#[doc(hidden)]
pub struct CpuCopier<E> {
    pool: Pool,
    /// [`BoxCopy::copy`] or [`BoxCopy::add`].
    store: unsafe fn(&BoxCopy, *const E, *mut E),
}

impl<E: Element> CpuCopier<E> {
    /// `store`: what is done with what arrives.
    pub fn new(comm: &Comm, store: unsafe fn(&BoxCopy, *const E, *mut E)) -> Result<Self> {
        let pool = Pool::new(comm.threads()).inspect_err(|error| comm.fail(&error.to_string()))?;
        Ok(CpuCopier { pool, store })
    }
}

impl<E: Element> Copier for CpuCopier<E> {
    type Buffer = HostBuffer;
    type Sweep = Sweep;
    const GROUPS: usize = 16;
    const IN_PIECES: bool = true;

    fn element_bytes(&self) -> usize {
        size_of::<E>()
    }

    fn alignment(&self) -> usize {
        align_of::<E>()
    }

    fn can_share(&self, _comm: &Comm, _named: Option<&ExchangeEntry>) -> Result<bool> {
        Ok(true)
    }

    fn buffer(&self, comm: &Comm, bytes: usize, shared: bool, what: &'static str) -> Result<HostBuffer> {
        let words = bytes.div_ceil(8);
        let buffer = match shared {
            true => shared_words(comm, words, what),
            // Where it cannot be had, the other ranks would wait for this one.
            false => Buffer::new(words, what).inspect_err(|error| comm.fail(&error.to_string())),
        };
        buffer.map(HostBuffer)
    }

    fn span(HostBuffer(buffer): &HostBuffer) -> [usize; 2] {
        // Buffers are whole cache lines.
        [buffer.as_ptr() as usize, (buffer.len() * 8).next_multiple_of(64)]
    }

    fn bind_sweep(&mut self, tasks: &[Task], kind: SweepKind, _counts: RouteCounts) -> Sweep {
        match kind {
            SweepKind::Pack | SweepKind::Store => Sweep::by_volume(tasks, self.pool.threads()),
            SweepKind::Ordered(planes) => Sweep::by_plane(tasks, self.pool.threads(), planes),
        }
    }

    fn complete(
        &mut self,
        _: &Comm,
        _: RouteCounts,
        _shares: bool,
        _exchange: &str,
        _messages: [usize; 2],
    ) -> Result<()> {
        Ok(())
    }

    unsafe fn pack(&mut self, sweep: &Sweep, sources: &[usize], outgoing: &[BoundRoute]) -> Result<()> {
        sweep.run(&self.pool, |task| {
            let route = &outgoing[task.route];
            for (field, &source) in sources.iter().enumerate() {
                let to = (route.segment as *mut E).wrapping_add(field * route.volume);
                // SAFETY: this function's contract.
                unsafe { task.packed.copy(source as *const E, to) };
            }
        });
        Ok(())
    }

    unsafe fn store(&mut self, sweep: &Sweep, incoming: Incoming<'_>) -> Result<()> {
        let (store, fields) = (self.store, incoming.targets.len());
        sweep.run(&self.pool, |task| {
            let copy = if incoming.packed[task.route] { &task.packed } else { &task.direct };
            for (field, &target) in incoming.targets.iter().enumerate() {
                let source = incoming.from[task.route * fields + field] as *const E;
                // SAFETY: this function's contract.
                unsafe { store(copy, source, target as *mut E) };
            }
        });
        Ok(())
    }

    fn park(&mut self) {
        self.pool.park_if_crowded();
    }

    unsafe fn begin_messages(
        &mut self,
        buffers: &[HostBuffer; 2],
        span: MessageSpan,
        _poll: &mut dyn FnMut(),
    ) -> Result<[*mut u8; 2]> {
        Ok([0, 1].map(|end| buffers[end].0.as_ptr().cast::<u8>().wrapping_add(span.at[end])))
    }
}
