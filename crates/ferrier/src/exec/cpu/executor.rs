//! Runs plans on the threads of a rank.

use std::sync::Arc;

use super::coding::{CpuCoding, WorkPointers};
use super::norm::NormSum;
use super::pass::PassWork;
use super::shares::Shares;
use super::tables::KernelTables;
use super::worker::{CallAddresses, WorkerState};
use crate::codec::CodecInstance;
use crate::exec::array::{Array, Workspace};
use crate::exec::backend::{
    ArrayShape, Backend, Executor, MessageBuffers, PassEnds, PollPolicy, TileToCode, VariantOf,
};
use crate::exec::field_table::table_at;
use crate::exec::memory::Memory;
use crate::exec::operator::Operator;
use crate::machine::SendPtr;
use crate::machine::buffer::Buffer;
use crate::machine::pool::Pool;
use crate::transport::{Exposed, shared_buffer};
use crate::{Comm, Real, Recipe, Result};
use ferrier_codec::Norm;
use ferrier_plan::geometry::Geometry;
use ferrier_plan::messages::Encoding;

/// The processor's cores and main memory: the backend of plans by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu;

impl Backend for Cpu {
    type Handle = ();
    type Access = ();
    type Executor<T: Real> = CpuExecutor<T>;
}

/// The codec of a plan's segments and its work pointers.
pub(super) struct WireCodec<T> {
    pub codec: CodecInstance<T>,
    pub encoding: Encoding,
    pub pointers: Arc<WorkPointers<T>>,
}

/// Binds passes to main memory.
pub struct CpuBinder<T> {
    tables: KernelTables<T>,
    codec: Option<WireCodec<T>>,
    batch: usize,
    /// Scalars of scratch of each thread.
    scratch: usize,
}

impl<T: Real> CpuBinder<T> {
    /// A binder for a recipe; segments are encoded as the encoding says.
    pub(crate) fn new(comm: &Comm, recipe: &Recipe, codec: Option<(CodecInstance<T>, Encoding)>) -> Self {
        let wire = |(codec, encoding)| {
            let pointers = Arc::new(WorkPointers::new(comm.size()));
            WireCodec { codec, encoding, pointers }
        };
        let (tables, batch) = (KernelTables::new(&recipe.kernel), recipe.batch);
        CpuBinder { tables, codec: codec.map(wire), batch, scratch: 0 }
    }
}

/// Runs the passes of a plan on its threads.
pub struct CpuExecutor<T: Real> {
    pool: Pool,
    shares: Shares,
    workers: Vec<WorkerState<T>>,
    addresses: CallAddresses<T>,
    work: Option<Workspace<T>>,
    /// Where the scratch of the first thread begins in the workspace, and scalars of each.
    scratch_at: usize,
    scratch: usize,
    /// The workspace of the current call.
    current: *mut T,
    pub(crate) pointers: Option<Arc<WorkPointers<T>>>,
    norms: Option<NormSum<T>>,
}

// SAFETY: the pointers are used only during a call, when they are set anew.
unsafe impl<T: Real> Send for CpuExecutor<T> {}

impl<T: Real> Executor<T> for CpuExecutor<T> {
    type Backend = Cpu;
    type Binder = CpuBinder<T>;
    type Work = PassWork<T>;
    type Coding = Arc<CpuCoding<T>>;
    type Buffer = Workspace<T>;
    type Array = Array<T>;

    const NEEDS_RECEIVE_BUFFERS: bool = false;
    const SYNCHRONOUS: bool = true;
    const HELPS: bool = true;

    fn encoding(binder: &CpuBinder<T>) -> Option<&Encoding> {
        binder.codec.as_ref().map(|codec| &codec.encoding)
    }

    fn bind_pass(binder: &mut CpuBinder<T>, ends: &PassEnds<'_>) -> Result<PassWork<T>> {
        PassWork::new(ends, &mut binder.tables)
    }

    fn share_pass(work: &mut PassWork<T>, counter: usize, peers: Vec<(usize, PassWork<T>)>) {
        work.set_help(counter, peers);
    }

    fn bind_coding(binder: &mut CpuBinder<T>, tile: TileToCode<'_>) -> Arc<CpuCoding<T>> {
        let WireCodec { codec, pointers, .. } = binder.codec.as_ref().expect("segments are encoded");
        Arc::new(CpuCoding::new(codec, pointers, tile))
    }

    fn notes(_binder: &CpuBinder<T>, memory: &Memory) -> Vec<String> {
        crate::machine::huge_pages_note(memory.total()).into_iter().collect()
    }

    fn memory(binder: &mut CpuBinder<T>, comm: &Comm, variants: &[VariantOf<T, Self>]) -> Memory {
        let passes = variants.iter().flat_map(|variant| &variant.passes);
        let scratch = passes.map(|pass| pass.work.scratch()).max().unwrap_or(0);
        let coding = binder.codec.as_ref().map_or(0, |wire| super::coding::scratch(&*wire.codec.codec));
        // An odd number of cache lines apart, so that the threads' scratches do not share sets.
        let scratch = ((scratch.max(coding) * size_of::<T>()).div_ceil(64) | 1) * (64 / size_of::<T>());
        // One more for exchanges that encode while the threads run a pass.
        let count = comm.threads() + usize::from(coding > 0);
        binder.scratch = scratch;
        Memory { scratch: scratch * count * size_of::<T>(), ..Memory::of(variants, size_of::<T>()) }
    }

    fn allocate(_: &CpuBinder<T>, comm: &Comm, memory: &Memory, exposed: bool) -> Result<Workspace<T>> {
        Workspace::allocate(comm, memory.workspace(), exposed, "the buffers of a plan")
    }

    fn build(
        binder: CpuBinder<T>,
        comm: &Comm,
        variants: &mut [VariantOf<T, Self>],
        memory: &Memory,
        work: Option<Workspace<T>>,
        _exposed: bool,
    ) -> Result<Self> {
        let pool = Pool::new(comm.threads())?;
        let passes = || variants.iter().flat_map(|variant| &variant.passes);
        let strips = passes().map(|pass| pass.work.most_strips()).max().unwrap_or(0);
        let exchanges = variants.iter().flat_map(|variant| variant.exchanges.iter());
        let window = exchanges.map(|exchange| exchange.window_address()).find(|address| *address != 0);
        let window = window.unwrap_or(0) as *mut T;
        let outputs = || variants.iter().map(|variant| &variant.output);
        // The same on every rank: schedules are.
        let counters = passes().filter_map(|pass| pass.work.counter()).max();
        let counters =
            counters.map(|last| comm.transport().node_counters((last / comm.size() + 1) * comm.size()));
        Ok(CpuExecutor {
            workers: (0..pool.threads()).map(|_| WorkerState::new(strips, comm.size(), window)).collect(),
            addresses: CallAddresses::new(comm.size()),
            shares: Shares::new(pool.threads(), counters.transpose()?),
            pool,
            work,
            scratch_at: (memory.workspace() - memory.scratch) / size_of::<T>(),
            scratch: binder.scratch,
            current: std::ptr::null_mut(),
            norms: binder.codec.as_ref().map(|wire| NormSum::new(wire.codec.norm, binder.batch, outputs())),
            pointers: binder.codec.map(|wire| wire.pointers),
        })
    }

    fn make_array(&self, comm: &Comm, shape: ArrayShape, exposed: bool) -> Result<Array<T>> {
        Array::new(shape, |scalars, what| match exposed {
            true => shared_buffer(&**comm.transport(), scalars, what),
            false => Buffer::new(scalars, what),
        })
    }

    fn access(&self) {}

    fn workspace(&self) -> Option<usize> {
        self.work.as_ref().map(|work| work.address().0)
    }

    fn reset_claims(&mut self, variants: [&VariantOf<T, Self>; 2]) {
        let passes = variants.into_iter().flat_map(|variant| &variant.passes);
        self.shares.reset_counters(passes.filter_map(|pass| pass.work.counter()));
    }

    fn begin(&mut self, _which: usize, rank: usize, exposed: &[Exposed]) -> Result<()> {
        let work = exposed[rank][2] as *mut T;
        self.current = work;
        // The workspace was sized for a scratch for each thread, and one more where segments are encoded.
        let scratch = |thread: usize| work.wrapping_add(self.scratch_at + thread * self.scratch);
        self.addresses.set(exposed, scratch(0), self.scratch);
        if let Some(pointers) = &self.pointers {
            exposed.iter().enumerate().for_each(|(rank, own)| pointers.set(rank, own[2] as *mut T));
            pointers.set_scratch(scratch(self.workers.len()));
            pointers.set_pool(&raw const self.pool, scratch(0), self.scratch);
        }
        Ok(())
    }

    unsafe fn run(
        &mut self,
        work: &PassWork<T>,
        poll: PollPolicy<'_>,
        operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()> {
        let workers = SendPtr(self.workers.as_mut_ptr());
        let first = self.current.wrapping_add(self.scratch_at);
        let lend = |pool| self.pointers.iter().for_each(|own| own.set_pool(pool, first, self.scratch));
        // Exchanges that are polled while the threads run a pass encode on the thread that polls.
        lend(std::ptr::null());
        let workers = (workers, &self.addresses);
        // SAFETY: this function's contract; there is a worker for each thread.
        unsafe { work.run((&self.pool, &mut self.shares), workers, &poll, (operator, scale)) };
        lend(&raw const self.pool);
        Ok(())
    }

    unsafe fn encode(&mut self, coding: &Arc<CpuCoding<T>>, poll: PollPolicy<'_>) -> Result<()> {
        // SAFETY: this function's contract; each thread has its own scratch.
        unsafe { coding.encode_all(&self.pool, poll, &self.scratches()) };
        Ok(())
    }

    unsafe fn decode(&mut self, coding: &Arc<CpuCoding<T>>, poll: PollPolicy<'_>) -> Result<()> {
        // SAFETY: as above.
        unsafe { coding.decode_all(&self.pool, poll, &self.scratches()) }
    }

    unsafe fn begin_messages(
        &mut self,
        buffers: MessageBuffers,
        _poll: PollPolicy<'_>,
    ) -> Result<[*mut u8; 2]> {
        Ok(buffers.at.map(|at| self.current.cast::<u8>().wrapping_add(at)))
    }

    unsafe fn norm(&self, geometry: &Geometry, batch: usize, address: usize) -> Result<Norm> {
        let Some(norms) = &self.norms else { return Ok(Norm::ZERO) };
        // SAFETY: this function's contract.
        let norm =
            |batch, address: usize| unsafe { norms.norm(&self.pool, geometry, batch, address as *const T) };
        let Some(table) = table_at(address) else { return Ok(norm(batch, address)) };
        // SAFETY: this function's contract: the table has an entry for each array.
        Ok((0..batch).map(|array| norm(1, unsafe { *table.add(array) })).sum())
    }

    fn park(&self) {
        self.pool.park();
    }
}

impl<T: Real> CpuExecutor<T> {
    /// The scratch of each thread.
    fn scratches(&self) -> impl Fn(usize) -> *mut T + Sync + use<T> {
        let (first, len) = (SendPtr(self.current.wrapping_add(self.scratch_at)), self.scratch);
        move |thread| first.get().wrapping_add(thread * len)
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::data::Data;
    use crate::{Box3, Choice, Complex, LayoutSpec, Planner, Problem};

    /// Rank 0 has nearly all planes: the others do some of them, and the result is that of ranks with equal parts.
    #[test]
    fn ranks_with_little_work_help() {
        let _watchdog = ferrier_test::watchdog(120);
        let n = 48;
        let slabs = |cuts: [usize; 4]| {
            LayoutSpec::boxes((0..3).map(|r| Box3::new([cuts[r], 0, 0], [cuts[r + 1], n, n])).collect())
        };
        let run = |layout: LayoutSpec| {
            let spectra = crate::ranks(3).run(|comm| {
                let problem = Problem::c2c([n; 3]).input(layout.clone()).output(LayoutSpec::slabs(0));
                let choice = Choice::new().exchange("direct").axes([2, 1, 0]).threads(1);
                let mut plan = Planner::new(&problem).choice(choice).draft::<f64>(&comm)?.build()?;
                let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
                input.fill_complex(|_, [i, j, k]| {
                    Complex::new((i * 7 + j * 5 + k * 3) as f64 % 11.0, (i + j * k) as f64 % 13.0)
                });
                for _ in 0..20 {
                    plan.forward(&input, &mut output)?;
                }
                Ok((output.scalars().to_vec(), plan.executor.shares.helped()))
            });
            spectra.expect("no rank fails").into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
        };
        let (uneven, helped) = run(slabs([0, 46, 47, 48]));
        let (even, _) = run(slabs([0, 16, 32, 48]));
        assert!(helped[1] + helped[2] > 0, "units done for others: {helped:?}");
        assert!(uneven == even, "the bits differ");
    }
}
