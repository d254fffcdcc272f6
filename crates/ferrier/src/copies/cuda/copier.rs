//! Copies boxes by launches on a stream; messages are staged in main memory where MPI cannot access the GPU's.

use std::marker::PhantomData;
use std::sync::Arc;

use super::sums::DeviceSum;
use super::sweep::{CopyLaunch, DeviceSweep, KernelVariant, Launches, SweepBinder, unit_bytes};
use crate::copies::bound_route::BoundRoute;
use crate::copies::copier::{Copier, CopyBackend, Incoming, Mark, MessageSpan, RouteCounts, SweepKind};
use crate::copies::sweep::Task;
use crate::exchange::ExchangeEntry;
use crate::exec::cuda::{
    AddressSet, AddressSets, Block, COMMON, Cuda, Event, Function, Gpu, Grid, MOVE, MOVE_THREADS, Pinned,
    Stream, TableBuffer, argument, share_marks,
};
use crate::{Comm, Element, Error, Result};

impl CopyBackend for Cuda {
    type Copier<E: Element> = CudaCopier<E>;
}

/// The exchange whose messages go from GPU to GPU where MPI accesses their memory.
const AWARE: &str = "point_to_point";

/// Copies elements in the memory of a GPU.
#[doc(hidden)]
pub struct CudaCopier<E> {
    gpu: Gpu,
    stream: Stream,
    /// Type and bytes of the scalars, if what arrives is added.
    sum: Option<(&'static str, usize)>,
    /// What binding collects; on the GPU when it has ended.
    tables: TableBuffer,
    block: Block,
    variants: Vec<(KernelVariant, Option<Function>)>,
    /// Addresses of what is packed, and of what is stored.
    packs: AddressSets,
    stores: AddressSets,
    /// Copies of the send and the receive buffer in main memory, if messages are staged.
    staging: Option<[Pinned; 2]>,
    /// The events of this rank, by [`Mark`], and those of all ranks.
    marks: Arc<[Event; 2]>,
    peers: Vec<Arc<[Event; 2]>>,
    memory: usize,
    element: PhantomData<fn() -> E>,
}

impl<E: Element> CudaCopier<E> {
    /// Copies on this stream, or on one of its own.
    pub fn new(gpu: &Gpu, stream: Option<&Stream>) -> Result<Self> {
        let stream = stream.map_or_else(|| Stream::new(gpu), |stream| Ok(stream.twin()))?;
        Ok(CudaCopier {
            gpu: gpu.clone(),
            stream,
            sum: None,
            tables: TableBuffer::default(),
            block: Block::new(gpu, 0, "tables")?,
            variants: Vec::new(),
            packs: AddressSets::default(),
            stores: AddressSets::default(),
            staging: None,
            marks: Arc::new([Event::mark(gpu)?, Event::mark(gpu)?]),
            peers: Vec::new(),
            memory: 0,
            element: PhantomData,
        })
    }

    /// The same; what arrives is added.
    pub fn adding(gpu: &Gpu) -> Result<Self>
    where
        E: DeviceSum,
    {
        Ok(CudaCopier { sum: Some(E::SCALAR), ..CudaCopier::new(gpu, None)? })
    }

    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sets the stream, when what was enqueued before is complete.
    pub fn set_stream(&mut self, stream: Stream) -> Result<()> {
        self.stream.synchronize()?;
        self.stream = stream;
        Ok(())
    }

    fn finish_binding(&mut self, counts: RouteCounts, messages: Option<[usize; 2]>) -> Result<()> {
        let RouteCounts { fields, outgoing, incoming } = counts;
        let (packed, stored) = (fields * (1 + outgoing), fields * (1 + 2 * incoming));
        let [packs_at, stores_at] = [packed, stored].map(|len| self.tables.reserve(AddressSets::words(len)));
        self.packs = AddressSets::new(packs_at, packed);
        self.stores = AddressSets::new(stores_at, stored);
        let tables = std::mem::take(&mut self.tables);
        self.block = Block::new(&self.gpu, tables.bytes.len(), "the tables of a plan")?;
        self.block.upload(0, &tables.bytes)?;
        self.memory = tables.bytes.len();
        if let Some([send, recv]) = messages {
            self.staging = Some([Pinned::new(&self.gpu, send)?, Pinned::new(&self.gpu, recv)?]);
            self.memory += send + recv;
        }
        for (variant, function) in &mut self.variants {
            *function = Some(kernel(&self.gpu, variant)?);
        }
        Ok(())
    }

    /// # Safety
    /// The addresses of the set are those that the launch was bound to, of memory that [`Copier::pack`] and
    /// [`Copier::store`] describe.
    unsafe fn launch(&self, launch: &CopyLaunch, set: AddressSet) -> Result<()> {
        let known = self.variants.iter().find(|(variant, _)| *variant == launch.variant);
        let function = known.and_then(|(_, function)| *function);
        let function = function.ok_or_else(|| Error::device("a kernel was not compiled"))?;
        let mut boxes = self.block.start() + launch.at as u64;
        let mut count = launch.count as i32;
        let mut bases = set.start;
        // Of any type of scalars.
        let mut scale = [0_u64; 2];
        let mut arguments =
            [argument(&mut boxes), argument(&mut count), argument(&mut bases), argument(&mut scale)];
        let grid = Grid { blocks: launch.blocks as u32, threads: MOVE_THREADS, shared: 0 };
        // SAFETY: the arguments are those of `move.cu`; this function's contract covers the memory.
        unsafe { function.launch(grid, self.stream.raw(), &mut arguments, false) }
    }

    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_all(&self, all: &[Launches], set: AddressSet) -> Result<()> {
        // SAFETY: this function's contract.
        all.iter().try_for_each(|launches| unsafe {
            self.launch(if set.aligned { &launches.aligned } else { &launches.any }, set)
        })
    }
}

/// The kernel `move.cu` for elements of any type.
fn kernel(gpu: &Gpu, variant: &KernelVariant) -> Result<Function> {
    let (scalar, numbers) = match (variant.sum, variant.unit) {
        (Some(scalar), _) => (scalar, 1),
        (None, 1) => ("Word8", 1),
        (None, 2) => ("Word16", 1),
        (None, 4) => ("Word32", 1),
        (None, unit) => ("Word", unit / 8),
    };
    let macros = [
        ("PLAIN", "1".into()),
        ("REAL", scalar.into()),
        ("UNIT", variant.unit.to_string()),
        ("NUMBERS", numbers.to_string()),
        ("TURN", u8::from(variant.turn).to_string()),
        ("SCALED", "0".into()),
        ("ADDED", u8::from(variant.sum.is_some()).to_string()),
    ];
    gpu.kernel("move", &[COMMON, MOVE], &macros, 0)
}

impl<E: Element> Copier for CudaCopier<E> {
    type Buffer = Block;
    type Sweep = DeviceSweep;
    // Each costs launches and copies between memories.
    const GROUPS: usize = 4;
    const IN_PIECES: bool = false;

    fn element_bytes(&self) -> usize {
        size_of::<E>()
    }

    fn alignment(&self) -> usize {
        unit_bytes(size_of::<E>())
    }

    fn can_share(&self, comm: &Comm, named: Option<&ExchangeEntry>) -> Result<bool> {
        let near = comm.transport_name() == "threads";
        let Some(entry) = named.filter(|_| comm.size() > 1) else { return Ok(near) };
        let shares = entry.mechanism.on_nodes(comm.node_count()).shares();
        if shares && !(near && comm.node_count() == 1) {
            return Err(Error::choice(
                "exchange",
                format!(
                    "exchange `{}` on GPUs needs ranks that are threads of one process on one node; others send \
                     messages",
                    entry.name
                ),
            ));
        }
        Ok(near)
    }

    fn buffer(&self, comm: &Comm, bytes: usize, _shared: bool, what: &'static str) -> Result<Block> {
        Block::new(&self.gpu, bytes, what).inspect_err(|error| comm.fail(&error.to_string()))
    }

    fn span(buffer: &Block) -> [usize; 2] {
        [buffer.start() as usize, buffer.bytes()]
    }

    fn bind_sweep(&mut self, tasks: &[Task], kind: SweepKind, counts: RouteCounts) -> DeviceSweep {
        let (element_bytes, sum) = (size_of::<E>(), self.sum);
        let mut binder = SweepBinder { tables: &mut self.tables, element_bytes, sum, counts };
        let sweep = binder.bind(tasks, kind);
        for layer in &sweep.layers {
            for launches in layer.direct.iter().chain(&layer.packed) {
                for variant in [launches.any.variant, launches.aligned.variant] {
                    if !self.variants.iter().any(|(known, _)| *known == variant) {
                        self.variants.push((variant, None));
                    }
                }
            }
        }
        sweep
    }

    fn complete(
        &mut self,
        comm: &Comm,
        counts: RouteCounts,
        shares: bool,
        exchange: &str,
        messages: [usize; 2],
    ) -> Result<()> {
        let sends = comm.size() > 1 && !(shares && comm.node_count() == 1);
        let staged = sends && !(exchange == AWARE && comm.transport().reaches_gpus()?);
        self.finish_binding(counts, staged.then_some(messages))
            .inspect_err(|error| comm.fail(&error.to_string()))?;
        if shares {
            self.peers = share_marks(comm, &self.gpu, &self.marks)?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        match self.staging.is_some() {
            true => vec!["messages are staged in main memory: MPI does not access GPU memory".into()],
            false => Vec::new(),
        }
    }

    fn memory(&self) -> usize {
        self.memory
    }

    unsafe fn pack(&mut self, sweep: &DeviceSweep, sources: &[usize], outgoing: &[BoundRoute]) -> Result<()> {
        if sweep.routes.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        let fields = sources.len();
        let segments = outgoing
            .iter()
            .flat_map(|route| (0..fields).map(|field| route.segment + field * route.volume * size_of::<E>()));
        let set = self.packs.find(sources.iter().copied().chain(segments), &self.block, &self.stream)?;
        // SAFETY: this function's contract; the addresses are in the order of `SweepBinder::pack`.
        sweep.layers.iter().try_for_each(|layer| unsafe { self.launch_all(&layer.direct, set) })
    }

    unsafe fn store(&mut self, sweep: &DeviceSweep, incoming: Incoming<'_>) -> Result<()> {
        if sweep.routes.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        let Incoming { from, packed, targets } = incoming;
        let fields = targets.len();
        // Boxes without a source are not copied.
        let of = |wanted: bool| {
            from.iter().enumerate().map(
                move |(number, &address)| {
                    if packed[number / fields] == wanted { address } else { 0 }
                },
            )
        };
        let addresses = of(false).chain(of(true)).chain(targets.iter().copied());
        let set = self.stores.find(addresses, &self.block, &self.stream)?;
        let [direct, segments] =
            [false, true].map(|wanted| sweep.routes.iter().any(|&route| packed[route] == wanted));
        for layer in &sweep.layers {
            // SAFETY: this function's contract; the addresses are in the order of `SweepBinder::store`.
            unsafe {
                if direct {
                    self.launch_all(&layer.direct, set)?;
                }
                if segments {
                    self.launch_all(&layer.packed, set)?;
                }
            }
        }
        Ok(())
    }

    unsafe fn begin_messages(
        &mut self,
        buffers: &[Block; 2],
        span: MessageSpan,
        poll: &mut dyn FnMut(),
    ) -> Result<[*mut u8; 2]> {
        let ends = match &self.staging {
            None => [0, 1].map(|end| (buffers[end].start() as usize + span.at[end]) as *mut u8),
            Some(staging) => {
                let ends = [0, 1].map(|end| staging[end].at(span.at[end]));
                // SAFETY: the staging is as long as the buffer; no exchange of this part is in flight.
                unsafe {
                    self.stream.download(buffers[0].start() + span.at[0] as u64, ends[0], span.len[0])?;
                }
                ends
            }
        };
        // The transport reads memory that the stream has written.
        while !self.stream.is_idle()? {
            poll();
        }
        Ok(ends)
    }

    unsafe fn end_messages(&mut self, buffers: &[Block; 2], span: MessageSpan) -> Result<()> {
        let Some(staging) = &self.staging else { return Ok(()) };
        self.gpu.enter()?;
        let to = buffers[1].start() + span.at[1] as u64;
        // SAFETY: as in `begin_messages`; the exchange is complete, and the next one starts when the stream is idle.
        unsafe { self.stream.upload(staging[1].at(span.at[1]), to, span.len[1]) }
    }

    fn mark(&mut self, mark: Mark) -> Result<()> {
        self.gpu.enter()?;
        self.marks[mark as usize].record(&self.stream)
    }

    fn wait_for(&mut self, ranks: &[usize], mark: Mark) -> Result<()> {
        self.gpu.enter()?;
        for &rank in ranks {
            // SAFETY: the event lives: `peers` holds a reference to it.
            unsafe { self.stream.wait(self.peers[rank][mark as usize].raw())? };
        }
        Ok(())
    }

    fn abandon(&mut self) {
        let _ = self.gpu.synchronize();
    }
}
