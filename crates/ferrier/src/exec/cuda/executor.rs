//! Runs plans on a GPU: launches on a stream, messages staged in main memory where MPI cannot access the GPU's.

use std::sync::Arc;

use super::address_sets::AddressSets;
use super::array::{DeviceArray, DeviceData, DeviceDataMut};
use super::binder::{CudaBinder, set_len};
use super::codec::DeviceCodec;
use super::coding::{CudaCoding, PacketRun, Records};
use super::formulas::Formulas;
use super::fused_op::{Code, Operand};
use super::gpu::Gpu;
use super::launch::{self, CallArguments};
use super::marks::share_marks;
use super::memory::{Block, Event, Pinned, Stream};
use super::norm::NormSum;
use super::work::CudaWork;
use crate::exec::backend::{
    ArrayShape, Backend, Executor, MessageBuffers, PassEnds, PollPolicy, TileToCode, VariantOf,
};
use crate::exec::data::{Input, Output, Span};
use crate::exec::field_table::{FieldTable, LISTED};
use crate::exec::memory::Memory;
use crate::exec::operator::Operator;
use crate::exec::variant::BoundStep;
use crate::transport::Exposed;
use crate::{Comm, Error, Real, Result};
use ferrier_codec::Norm;
use ferrier_plan::geometry::Geometry;
use ferrier_plan::lowering::RankContext;
use ferrier_plan::messages::Encoding;
use ferrier_plan::schedule::Schedule;

/// NVIDIA GPUs: a backend of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuda;

impl Backend for Cuda {
    type Handle = Gpu;
    type Access = Stream;
    type Executor<T: Real> = CudaExecutor<T>;
}

impl<T: Real, D: DeviceData<T>> Input<T, Cuda> for D {
    fn with_span<R>(
        &self,
        stream: &Stream,
        fields: &mut FieldTable,
        work: impl FnOnce(Span, &FieldTable) -> R,
    ) -> R {
        fields.clear();
        self.each_field(stream, &mut |span| fields.push(span.start, span.scalars));
        let outcome =
            DeviceData::with_span(self, stream, |span| work(Span { fields: fields.spans(), ..span }, fields));
        // What others do to the fields follows.
        self.each_field(stream, &mut |_| {});
        outcome
    }
}

impl<T: Real, D: DeviceDataMut<T>> Output<T, Cuda> for D {
    fn with_span_mut<R>(
        &mut self,
        stream: &Stream,
        fields: &mut FieldTable,
        work: impl FnOnce(Span, &FieldTable) -> R,
    ) -> R {
        fields.clear();
        self.each_field_mut(stream, &mut |span| fields.push(span.start, span.scalars));
        let outcome = DeviceDataMut::with_span_mut(self, stream, |span| {
            work(Span { fields: fields.spans(), ..span }, fields)
        });
        self.each_field_mut(stream, &mut |_| {});
        outcome
    }
}

/// Kernels load and store up to 16 bytes at once.
const ALIGNMENT: usize = 16;

/// What encodes and decodes the messages of a plan.
struct Coded<T> {
    codec: DeviceCodec<T>,
    norms: NormSum<T>,
    records: Arc<Records>,
    /// Decodes packets while the stream of the plan encodes others.
    stream: Arc<Stream>,
    /// How far the stream of the plan was when packets were begun, and that of packets when they ended.
    marks: [Event; 2],
    /// Exchanges that were begun.
    runs: u64,
}

/// Runs the passes of a plan on its GPU.
pub struct CudaExecutor<T: Real> {
    pub(super) gpu: Gpu,
    pub(super) stream: Stream,
    pub(super) work: Block,
    tables: Block,
    staging: Pinned,
    rank: usize,
    /// Two events of this rank, used in turn, and those of all ranks.
    marks: Arc<[Event; 2]>,
    peers: Vec<Arc<[Event; 2]>>,
    turn: usize,
    /// The addresses of all arrays, for each kind of call.
    addresses: Vec<AddressSets>,
    /// Lists of arrays, of input and output.
    lists: [AddressSets; 2],
    scratch: [u64; 2],
    /// Offset of cuFFT's work area.
    cufft: u64,
    coded: Option<Coded<T>>,
    formulas: Formulas<T>,
    /// The current call, and its kind.
    call: CallArguments<T>,
    which: usize,
    /// The workspace of the current call.
    current: u64,
    /// Events between steps, where they are timed.
    pub(super) clock: Option<Vec<Event>>,
}

impl<T: Real> Executor<T> for CudaExecutor<T> {
    type Backend = Cuda;
    type Binder = CudaBinder<T>;
    type Work = CudaWork;
    type Coding = CudaCoding;
    type Buffer = Block;
    type Array = DeviceArray<T>;

    const NEEDS_RECEIVE_BUFFERS: bool = true;
    const SYNCHRONOUS: bool = false;

    fn encoding(binder: &CudaBinder<T>) -> Option<&Encoding> {
        binder.codec.as_ref().map(|(_, encoding)| encoding)
    }

    fn bind_pass(binder: &mut CudaBinder<T>, ends: &PassEnds<'_>) -> Result<CudaWork> {
        binder.pass(ends)
    }

    fn bind_whole(
        binder: &mut CudaBinder<T>,
        schedule: &Schedule,
        context: &RankContext<'_>,
        ends: [&Geometry; 2],
    ) -> Result<Option<CudaWork>> {
        binder.whole(schedule, context, ends)
    }

    fn bind_coding(binder: &mut CudaBinder<T>, tile: TileToCode<'_>) -> CudaCoding {
        binder.coding(tile)
    }

    fn memory(binder: &mut CudaBinder<T>, comm: &Comm, variants: &[VariantOf<T, Self>]) -> Memory {
        binder.memory(comm, variants)
    }

    fn notes(binder: &CudaBinder<T>, _memory: &Memory) -> Vec<String> {
        match binder.staged {
            true => vec!["messages are staged in main memory: MPI does not access GPU memory".into()],
            false => Vec::new(),
        }
    }

    fn check_room(binder: &CudaBinder<T>, comm: &Comm, memory: &Memory) -> Result<()> {
        let gpu = &binder.gpu;
        let (free, _) = gpu.memory()?;
        let own = [memory.total(), free, gpu.index()].map(|value| (value as u64).to_le_bytes());
        let words = |bytes: &Vec<u8>| -> [u64; 3] {
            let words = bytes.as_chunks::<8>().0;
            std::array::from_fn(|i| words.get(i).map_or(0, |word| u64::from_le_bytes(*word)))
        };
        let all: Vec<[u64; 3]> = comm.all_gather(own.as_flattened())?.iter().map(words).collect();
        let nodes = comm.nodes();
        for (rank, [_, free, gpu]) in all.iter().enumerate() {
            let shares = |other: &usize| nodes[*other] == nodes[rank] && all[*other][2] == *gpu;
            let needed: u64 = (0..all.len()).filter(shares).map(|other| all[other][0]).sum();
            if needed > *free {
                return Err(Error::device(format!(
                    "out of memory: the plan needs {needed} bytes on GPU {gpu} for its {} ranks there, {free} are \
                     free",
                    (0..all.len()).filter(shares).count()
                )));
            }
        }
        Ok(())
    }

    fn allocate(binder: &CudaBinder<T>, _comm: &Comm, memory: &Memory, _exposed: bool) -> Result<Block> {
        Block::new(&binder.gpu, memory.workspace(), "the buffers of a plan")
    }

    fn build(
        binder: CudaBinder<T>,
        comm: &Comm,
        variants: &mut [VariantOf<T, Self>],
        memory: &Memory,
        work: Option<Block>,
        exposed: bool,
    ) -> Result<Self> {
        let scratch_at = binder.scratch_at(memory);
        let CudaBinder { gpu, tables, addresses_at, lists_at, formulas, codec, recipe, records, .. } = binder;
        let coded = |(codec, _)| -> Result<Coded<T>> {
            Ok(Coded {
                codec,
                norms: NormSum::new(&gpu)?,
                records: Arc::new(Records::new(&gpu, records)?),
                stream: Arc::new(Stream::new(&gpu)?),
                marks: [Event::mark(&gpu)?, Event::mark(&gpu)?],
                runs: 0,
            })
        };
        let coded = codec.map(coded).transpose()?;
        let work = work.ok_or_else(|| Error::device("a plan on a GPU has a workspace of its own"))?;
        let block = Block::new(&gpu, memory.tables, "the tables of a plan")?;
        block.upload(0, &tables.bytes)?;
        for pass in variants.iter_mut().flat_map(|variant| &mut variant.passes) {
            // Kernels with an operator are compiled when the operator is known.
            if !pass.work.has_operator() {
                pass.work.functions = launch::kernels::<T>(&gpu, &pass.work, Code::NONE)?;
            }
        }
        let marks = Arc::new([Event::mark(&gpu)?, Event::mark(&gpu)?]);
        let peers = if exposed { share_marks(comm, &gpu, &marks)? } else { Vec::new() };
        let sets = |at| AddressSets::new(at, set_len(comm.size()));
        let cufft = work.start() + (memory.workspace() - memory.cufft) as u64;
        let executor = CudaExecutor {
            stream: Stream::new(&gpu)?,
            staging: Pinned::new(&gpu, memory.staging)?,
            rank: comm.rank(),
            turn: 0,
            addresses: addresses_at.into_iter().map(sets).collect(),
            lists: lists_at.map(|at| AddressSets::new(at, recipe.batch)),
            scratch: scratch_at.map(|at| work.start() + at as u64),
            coded,
            formulas: Formulas::new(formulas, variants.len()),
            call: CallArguments::default(),
            which: 0,
            current: 0,
            clock: None,
            tables: block,
            marks,
            peers,
            cufft,
            work,
            gpu,
        };
        let passes = variants.iter().flat_map(|variant| &variant.passes);
        executor.bind_cufft(passes.map(|pass| &pass.work))?;
        Ok(executor)
    }

    fn make_array(&self, _comm: &Comm, shape: ArrayShape, _exposed: bool) -> Result<DeviceArray<T>> {
        DeviceArray::new(&self.gpu, shape)
    }

    fn access(&self) -> Stream {
        self.stream.twin()
    }

    fn workspace(&self) -> Option<usize> {
        Some(self.work.start() as usize)
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }

    fn list(&mut self, end: usize, fields: &FieldTable) -> Result<usize> {
        if let Some(wrong) = fields.starts().iter().find(|start| !start.is_multiple_of(ALIGNMENT)) {
            let name = if end == 0 { "input" } else { "output" };
            let expected = format!("at a multiple of {ALIGNMENT} bytes");
            return Err(Error::array(name, self.rank, expected, format!("{wrong:#x}")));
        }
        let starts = fields.starts().iter().copied();
        let set = self.lists[end].find(starts, &self.tables, &self.stream)?;
        Ok(set.start as usize | LISTED)
    }

    fn prepare(
        &mut self,
        variant: &mut VariantOf<T, Self>,
        which: usize,
        operator: Option<&dyn Operator<T>>,
        scaled: bool,
    ) -> Result<()> {
        self.gpu.enter()?;
        self.call.operand = match operator {
            None => Operand::default(),
            Some(operator) => {
                let memory = (&self.gpu, &self.stream, &self.tables);
                self.formulas.prepare(memory, which, &mut variant.passes, operator)?
            }
        };
        for step in variant.steps.iter().filter(|_| scaled) {
            let BoundStep::Run { bound, pass, .. } = *step else { continue };
            let work = &mut variant.passes[bound].work;
            if variant.last_pass == Some(pass) && work.scaled_moves.is_none() {
                work.scaled_moves = launch::scaled_moves::<T>(&self.gpu, work)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, which: usize, rank: usize, exposed: &[Exposed]) -> Result<()> {
        let arrays = exposed.as_flattened().iter().copied();
        let all = arrays.chain(self.scratch.map(|address| address as usize)).chain([0]);
        let set = self.addresses[which].find(all, &self.tables, &self.stream)?;
        let [input, output, work] = exposed[rank].map(|address| address as u64);
        (self.which, self.current) = (which, work);
        self.call = CallArguments {
            tables: self.tables.start(),
            addresses: set.start,
            input,
            output,
            scratch: self.scratch,
            operand: self.call.operand,
        };
        Ok(())
    }

    unsafe fn run(
        &mut self,
        work: &CudaWork,
        _poll: PollPolicy<'_>,
        _operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()> {
        let addresses = self.addresses[self.which].last();
        // In place one list is both.
        let lists = [0, 1].map(|end| match self.call.input == self.call.output {
            true => self.lists[0].last(),
            false => self.lists[end].last(),
        });
        // SAFETY: this function's contract.
        unsafe { launch::run::<T>(work, &self.call, (addresses, lists), &self.stream, scale) }
    }

    unsafe fn encode(&mut self, coding: &CudaCoding, _poll: PollPolicy<'_>) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.encode_to(coding, self.current, 0) }
    }

    unsafe fn decode(&mut self, coding: &CudaCoding, _poll: PollPolicy<'_>) -> Result<()> {
        let Some(coded) = &self.coded else { return Ok(()) };
        let chunks = coding.decode();
        // SAFETY: this function's contract; the chunks are in the plan's tables.
        unsafe {
            coded.codec.decoder().run(chunks, 0..chunks.chunks, self.call.tables, self.current, &self.stream)
        }
    }

    unsafe fn begin_packets(
        &mut self,
        coding: &CudaCoding,
        buffers: MessageBuffers,
        _poll: PollPolicy<'_>,
    ) -> Result<[*mut u8; 2]> {
        let Some(coded) = &mut self.coded else { return Err(Error::device("nothing is encoded")) };
        // Packets that were received before are read from the staging memory until then.
        coded.stream.synchronize()?;
        coded.runs += 1;
        let run = coded.runs;
        coded.marks[0].record(&self.stream)?;
        // SAFETY: the event lives.
        unsafe { coded.stream.wait(coded.marks[0].raw())? };
        // SAFETY: this function's contract. The staging memory is as long as the workspace; the send buffer lies apart
        // from those of exchanges in flight.
        unsafe { self.encode_to(coding, self.staging.at(0) as u64, run)? };
        Ok(buffers.at.map(|at| self.staging.at(at)))
    }

    unsafe fn end_packets(&mut self, _buffers: MessageBuffers) -> Result<()> {
        let Some(coded) = &self.coded else { return Ok(()) };
        coded.marks[1].record(&coded.stream)?;
        // SAFETY: the event lives.
        unsafe { self.stream.wait(coded.marks[1].raw()) }
    }

    unsafe fn begin_messages(
        &mut self,
        buffers: MessageBuffers,
        poll: PollPolicy<'_>,
    ) -> Result<[*mut u8; 2]> {
        let [send, _] = buffers.at;
        let ends = match self.staging.is_empty() {
            true => buffers.at.map(|at| (self.current + at as u64) as *mut u8),
            false => {
                let [to, from] = buffers.at.map(|at| self.staging.at(at));
                // SAFETY: the buffers lie in the workspace and at the same places of the staging memory, which is as
                // long, apart from those of exchanges in flight.
                unsafe { self.stream.download(self.current + send as u64, to, buffers.len[0])? };
                [to, from]
            }
        };
        // The transport reads memory that the stream has written.
        match poll.in_flight {
            false => self.stream.synchronize()?,
            true => {
                while !self.stream.is_idle()? {
                    (poll.poll)();
                }
            }
        }
        Ok(ends)
    }

    unsafe fn end_messages(&mut self, buffers: MessageBuffers) -> Result<()> {
        if self.staging.is_empty() {
            return Ok(());
        }
        let (at, len) = (buffers.at[1], buffers.len[1]);
        // SAFETY: as in `begin_messages`; the exchange is complete.
        unsafe { self.stream.upload(self.staging.at(at), self.current + at as u64, len) }
    }

    fn mark(&mut self) -> Result<()> {
        self.gpu.enter()?;
        self.marks[self.turn % 2].record(&self.stream)
    }

    fn wait_for_peers(&mut self) -> Result<()> {
        for (_, marks) in self.peers.iter().enumerate().filter(|(peer, _)| *peer != self.rank) {
            // SAFETY: the event lives: `peers` holds a reference to it.
            unsafe { self.stream.wait(marks[self.turn % 2].raw())? };
        }
        self.turn += 1;
        Ok(())
    }

    fn tick(&mut self, step: usize) -> Result<()> {
        match &self.clock {
            Some(clock) => clock[step].record(&self.stream),
            None => Ok(()),
        }
    }

    fn abandon(&mut self) {
        let _ = self.stream.synchronize();
        if let Some(coded) = &self.coded {
            let _ = coded.stream.synchronize();
        }
    }

    unsafe fn norm(&self, geometry: &Geometry, batch: usize, address: usize) -> Result<Norm> {
        let Some(coded) = &self.coded else { return Ok(Norm::ZERO) };
        // SAFETY: this function's contract; what the call enqueued is on this stream.
        let norm = |batch, address| unsafe { coded.norms.norm(geometry, batch, address, &self.stream) };
        if address & LISTED == 0 {
            return norm(batch, address as u64);
        }
        // In place one list is both.
        let output = address as u64 == self.call.output && self.call.input != self.call.output;
        self.lists[usize::from(output)].last().iter().map(|&array| norm(1, array)).sum()
    }
}

impl<T: Real> CudaExecutor<T> {
    /// Enqueues encoding the segments of an exchange to the workspace, or to the memory at `bytes` that stands for it.
    /// `run`: the number that marks chunks which the host may read.
    ///
    /// # Safety
    /// As [`Executor::encode`].
    unsafe fn encode_to(&self, coding: &CudaCoding, bytes: u64, run: u64) -> Result<()> {
        let Some(coded) = &self.coded else { return Ok(()) };
        coding.packets.set(PacketRun {
            gpu: self.gpu.clone(),
            records: coded.records.clone(),
            number: run,
            decoder: coded.codec.decoder(),
            tables: self.call.tables,
            work: self.current,
            staging: self.staging.at(0),
            stream: coded.stream.clone(),
        });
        let records = (coded.records.address(coding.first_record), run);
        let memory = (self.call.tables, self.current, bytes);
        // SAFETY: this function's contract; the chunks are in the plan's tables, and have records.
        unsafe { coded.codec.encode_segments(&coding.encode, memory, records, &self.stream) }
    }

    /// Sets cuFFT's stream and work area.
    pub(super) fn bind_cufft<'a>(&self, passes: impl Iterator<Item = &'a CudaWork>) -> Result<()> {
        for fft in passes.flat_map(CudaWork::cufft_plans) {
            // SAFETY: stream and workspace live as long as this executor, which outlives every call of the passes.
            unsafe { fft.bind(&self.stream, self.cufft)? };
        }
        Ok(())
    }
}

impl<T: Real> Drop for CudaExecutor<T> {
    fn drop(&mut self) {
        // Other ranks may still wait for our events, and kernels may still use our memory.
        self.abandon();
    }
}
