//! State that a communicator shares with its duplicates: which ranks are on
//! this node, and the memory that they share.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ferrier_mpi::{Comm, Op};

use super::error::mpi_error;
use super::mapping::{self, HUGE_PAGE, Mapping, PAGE};
use crate::machine::own_socket;
use crate::machine::waiting::BusyThreads;
use crate::transport::interface::number_nodes;
use crate::{Error, Result};

/// One for each adopted communicator and all its duplicates.
pub(super) struct NodeShared {
    node: Comm,
    /// The node of each rank of the communicator.
    pub nodes: Vec<usize>,
    /// The socket of each rank on its node; 0 for ranks that are not bound to one.
    pub sockets: Vec<usize>,
    /// The ranks of this node.
    pub ranks: Vec<usize>,
    regions: Mutex<Regions>,
    /// Windows that this rank has dropped; see [`NodeShared::free_deferred`].
    deferred: Mutex<DeferredWindows>,
    /// Whether this MPI supports windows over these ranks; determined once.
    has_windows: OnceLock<bool>,
    /// Cores of the node that its ranks may use.
    pub cores: usize,
    /// Prevents spinning where ranks outnumber cores.
    _busy: BusyThreads,
}

#[derive(Default)]
struct Regions {
    /// Regions created so far.
    created: u64,
    all: Vec<Arc<Region>>,
}

#[derive(Default)]
struct DeferredWindows {
    /// Windows created so far.
    created: u64,
    /// With their numbers.
    windows: Vec<(u64, ferrier_mpi::Window)>,
}

/// Memory of the ranks of a node, with a part for each.
pub(super) struct Region {
    id: u64,
    mapping: Mapping,
    /// Where the part of each rank of the node begins, and its length.
    spans: Vec<(usize, usize)>,
}

impl Region {
    /// How many ranks still use it: the first word, which is in no part.
    fn holders(&self) -> &AtomicU64 {
        // SAFETY: aligned, inside the mapping, and only used as an atomic.
        unsafe { AtomicU64::from_ptr(self.mapping.start().as_ptr().cast()) }
    }

    /// The second word: shows that all ranks mapped the same file.
    fn mark(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.mapping.start().as_ptr().cast::<u64>().add(1)) }
    }

    /// The part of a rank, by its number on the node.
    fn part(&self, rank: usize) -> NonNull<u8> {
        // SAFETY: `spans` lie inside the mapping.
        unsafe { self.mapping.start().add(self.spans[rank].0) }
    }
}

/// A region that this rank uses.
pub(super) struct RegionRef {
    node_shared: Arc<NodeShared>,
    region: Arc<Region>,
}

impl RegionRef {
    /// The part of a rank, by its number on the node.
    pub fn part(&self, rank: usize) -> NonNull<u8> {
        self.region.part(rank)
    }
}

impl Drop for RegionRef {
    fn drop(&mut self) {
        if self.region.holders().fetch_sub(1, Ordering::SeqCst) == 1 {
            self.region.mapping.discard();
        }
        // It stays mapped here while others use it: they may expose their parts.
        lock(&self.node_shared.regions).all.retain(|region| region.holders().load(Ordering::SeqCst) > 0);
    }
}

/// Outcomes of creating a region; the worst of all ranks decides.
const FINE: u64 = 0;
const NO_MEMORY: u64 = 1;
const INACCESSIBLE: u64 = 2;

impl NodeShared {
    /// Collective.
    pub fn new(comm: &Comm) -> Result<Arc<NodeShared>> {
        let node = comm.split_node().map_err(mpi_error)?;
        let mut first = [comm.rank() as u64];
        node.broadcast(&mut first, 0).map_err(mpi_error)?;
        let mut places = vec![0; 2 * comm.size()];
        let socket = own_socket(Path::new("/sys")).unwrap_or(0);
        comm.all_gather(&[first[0], socket as u64], &mut places).map_err(mpi_error)?;
        let of = |which: usize| places.iter().skip(which).step_by(2).copied();
        let nodes = number_nodes(&of(0).collect::<Vec<_>>());
        let sockets = of(1).map(|socket| socket as usize).collect();
        let ranks: Vec<usize> = (0..comm.size()).filter(|&rank| nodes[rank] == nodes[comm.rank()]).collect();
        let cores = super::cores::of_node(&node)?;
        let crowded = ranks.len() > cores;
        let _busy = BusyThreads::new(if crowded { crate::machine::cores() } else { 0 });
        let (regions, deferred, has_windows) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Ok(Arc::new(NodeShared { node, nodes, sockets, ranks, regions, deferred, has_windows, cores, _busy }))
    }

    /// This rank's number on its node.
    pub fn own(&self) -> usize {
        self.node.rank()
    }

    /// Gives MPI a call in which it can make progress on messages in flight.
    pub fn make_progress(&self) {
        // The next call with a result reports what is wrong.
        let _ = self.node.progress();
    }

    /// Memory for this rank and the others of its node. Collective over `comm`,
    /// which has the same ranks; an error is returned on every rank.
    pub fn region(self: &Arc<Self>, comm: &Comm, bytes: usize, what: &'static str) -> Result<RegionRef> {
        let mut sizes = vec![0; self.ranks.len()];
        self.node.all_gather(&[bytes as u64], &mut sizes).map_err(mpi_error)?;
        let align = if sizes.iter().any(|&size| size >= 1 << 20) { HUGE_PAGE } else { PAGE };
        let mut end = align;
        let mut span = |size: &u64| {
            let start = end;
            end = (end + *size as usize).next_multiple_of(align);
            (start, *size as usize)
        };
        let spans: Vec<_> = sizes.iter().map(&mut span).collect();
        let (made, outcome) = self.map(end, spans)?;
        let mut agreed = [outcome, end as u64];
        comm.all_reduce(&mut agreed, Op::Max).map_err(mpi_error)?;
        match (made, agreed[0]) {
            (Some(region), FINE) => {
                let region = Arc::new(region);
                lock(&self.regions).all.push(region.clone());
                Ok(RegionRef { node_shared: self.clone(), region })
            }
            (_, NO_MEMORY) => Err(Error::Memory { bytes: agreed[1] as usize, what }),
            _ => Err(Error::transport(
                "the ranks of a node cannot map each other's memory (/proc of the other processes is not accessible)",
            )),
        }
    }

    /// The first rank of the node creates a file; all map it and populate their pages.
    fn map(&self, bytes: usize, spans: Vec<(usize, usize)>) -> Result<(Option<Region>, u64)> {
        let id = {
            let mut regions = lock(&self.regions);
            regions.created += 1;
            regions.created
        };
        let map = |file: &std::fs::File| Mapping::new(file, bytes).map_err(|_| NO_MEMORY);
        let region = |mapping| Region { id, mapping, spans: spans.clone() };
        // Process, descriptor, mark, outcome.
        let mut message = [0_u64; 4];
        let mut own = None;
        if self.own() == 0 {
            let enough = if mapping::available() < bytes as u64 { Err(NO_MEMORY) } else { Ok(()) };
            let made = enough.and_then(|()| {
                let file = mapping::create(bytes).map_err(|_| NO_MEMORY)?;
                let region = region(map(&file)?);
                region.holders().store(self.ranks.len() as u64, Ordering::SeqCst);
                let mark = u64::from(std::process::id()) << 32 ^ region.mapping.start().as_ptr() as u64 ^ id;
                region.mark().store(mark, Ordering::SeqCst);
                let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
                message = [std::process::id().into(), descriptor, mark, FINE];
                Ok((file, region))
            });
            own = made.map_err(|code| message[3] = code).ok();
        }
        self.node.broadcast(&mut message, 0).map_err(mpi_error)?;
        let [process, descriptor, mark, code] = message;
        if code != FINE {
            return Ok((None, code));
        }
        let opened = match own {
            Some(pair) => Ok(pair),
            None => mapping::open(process, descriptor)
                .map_err(|_| INACCESSIBLE)
                .and_then(|file| map(&file).map(|mapping| (file, region(mapping)))),
        };
        let checked = opened.and_then(|(file, region)| {
            let same = region.mark().load(Ordering::SeqCst) == mark;
            if same { Ok((file, region)) } else { Err(INACCESSIBLE) }
        });
        let filled = checked.and_then(|(file, region)| {
            let (at, length) = region.spans[self.own()];
            region.mapping.populate(at, length).map_err(|_| NO_MEMORY).map(|()| (file, region))
        });
        // The file stays open until all ranks have opened it through this process.
        self.node.barrier().map_err(mpi_error)?;
        Ok(match filled {
            Ok((_, region)) => (Some(region), FINE),
            Err(code) => (None, code),
        })
    }

    /// The region of an address of this rank, and the offset in its part.
    pub fn find(&self, address: usize) -> Option<(u64, usize)> {
        let regions = lock(&self.regions);
        regions.all.iter().find_map(|region| {
            let start = region.part(self.own()).as_ptr() as usize;
            let inside = (start..=start + region.spans[self.own()].1).contains(&address);
            inside.then(|| (region.id, address - start))
        })
    }

    /// The address in this process of an offset in the part of a rank of the node;
    /// see [`NodeShared::find`].
    pub fn address(&self, (id, offset): (u64, usize), rank: usize) -> Option<usize> {
        let regions = lock(&self.regions);
        let region = regions.all.iter().find(|region| region.id == id)?;
        Some(region.part(rank).as_ptr() as usize + offset)
    }

    /// Does this MPI support windows over these ranks? Collective over `comm`.
    pub fn has_windows(&self, comm: &Comm) -> Result<bool> {
        if let Some(&known) = self.has_windows.get() {
            return Ok(known);
        }
        // An error is returned on every rank, unless communication itself has failed.
        let made = ferrier_mpi::Window::allocate(comm, 64);
        let mut agreed = [i32::from(made.is_ok())];
        drop(made);
        comm.all_reduce(&mut agreed, Op::Min).map_err(mpi_error)?;
        Ok(*self.has_windows.get_or_init(|| agreed[0] != 0))
    }

    /// A number for a window, the same on every rank.
    pub fn number_window(&self) -> u64 {
        let mut deferred = lock(&self.deferred);
        deferred.created += 1;
        deferred.created
    }

    /// Keeps a window that this rank has dropped: freeing it is collective,
    /// dropping a plan is not.
    pub fn defer_free(&self, number: u64, window: ferrier_mpi::Window) {
        lock(&self.deferred).windows.push((number, window));
    }

    /// Frees the windows that all ranks have dropped. Collective over `comm`.
    pub fn free_deferred(&self, comm: &Comm) -> Result<()> {
        let mut deferred = lock(&self.deferred);
        if deferred.created == 0 {
            return Ok(());
        }
        deferred.windows.sort_unstable_by_key(|(number, _)| *number);
        let mine: Vec<u8> = deferred.windows.iter().flat_map(|(number, _)| number.to_le_bytes()).collect();
        let all = comm.all_gather_bytes(&mine).map_err(mpi_error)?;
        let everywhere = |number: &u64| {
            all.iter().all(|list| list.chunks_exact(8).any(|other| other == number.to_le_bytes()))
        };
        // In order of number, the same on every rank.
        deferred.windows.retain(|(number, _)| !everywhere(number));
        Ok(())
    }
}

impl Drop for NodeShared {
    fn drop(&mut self) {
        // The last handle on these ranks; every rank drops its own, so freeing is collective.
        let windows = &mut self.deferred.get_mut().unwrap_or_else(PoisonError::into_inner).windows;
        windows.sort_unstable_by_key(|(number, _)| *number);
        windows.drain(..).for_each(drop);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
