//! Memory that other ranks can put into, or share.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::Handle;
use crate::comm::Comm;
use crate::data::{Op, Plain, sent_from};
use crate::error::{Error, Result};
use crate::ffi::{Aint, Calls, Int};
use crate::library::{Library, counted};

/// A window: bytes on each rank that the others can put into and, where it is
/// shared, read and write directly.
///
/// The memory is zero at first. Since others write to it at any time, there are
/// no references to it: it is copied to and from, or accessed by pointer.
/// Allocating and dropping a window are collective. (Dropped while a panic
/// unwinds, it is leaked: the other ranks would not take part.)
pub struct Window {
    comm: Comm,
    raw: Handle,
    /// The address of each rank's bytes in this process (its own, and all of a
    /// shared window) and their number.
    ranges: Vec<(Option<NonNull<u8>>, usize)>,
    locked: Cell<bool>,
}

// SAFETY: a handle and pointers to memory that belongs to the window; not
// `Sync`, so two threads never copy at once.
unsafe impl Send for Window {}

/// Each rank's part of a shared window begins on a page. MPI promises no
/// alignment (MPICH: 16 bytes), so a page more is asked for and skipped as far
/// as needed; where a page begins is the same in every process that maps it.
const PAGE: usize = 4096;

fn with_slack(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE) + PAGE
}

impl Window {
    /// `bytes` on this rank (any number on each) that others can put into.
    /// Collective.
    ///
    /// # Errors
    /// Those of MPI, on every rank where one fails: Open MPI 4.1 makes no
    /// windows over TCP by default.
    pub fn allocate(comm: &Comm, bytes: usize) -> Result<Window> {
        let sizes = gather_sizes(comm, bytes)?;
        let call = comm.library().calls().win_allocate;
        // MPICH 4.0 lets the parts of ranks of one node overlap by some bytes
        // where lengths are not multiples of 16 (seen with a C program as well).
        let (raw, base) = make(comm, bytes.next_multiple_of(PAGE), "MPI_Win_allocate", call)?;
        let mut ranges: Vec<_> = sizes.iter().map(|&size| (None, size)).collect();
        ranges[comm.rank()].0 = NonNull::new(base);
        Window::initialise(comm, raw, ranges)
    }

    /// `bytes` on this rank that all ranks of `comm` can read and write as
    /// their own memory; `comm` is (part of) [`Comm::split_node`]. Collective.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] on every rank where `/dev/shm` is too small (a
    /// write to it would end the process); those of MPI.
    pub fn allocate_shared(comm: &Comm, bytes: usize) -> Result<Window> {
        let sizes = gather_sizes(comm, bytes)?;
        let needed = sizes.iter().map(|&size| with_slack(size) as u64).sum();
        // One rank reads it: others may have begun to allocate when they do.
        let mut free = [if comm.rank() == 0 { free_shared_memory() } else { 0 }];
        comm.broadcast(&mut free, 0)?;
        if needed > free[0] {
            return Err(Error::SharedMemory { needed, free: free[0] });
        }
        let mpi = comm.library();
        let length = with_slack(bytes);
        let (raw, _) = make(comm, length, "MPI_Win_allocate_shared", mpi.calls().win_allocate_shared)?;
        let mut ranges = Vec::with_capacity(sizes.len());
        for (rank, &size) in sizes.iter().enumerate() {
            let (mut length, mut unit, mut base): (Aint, Int, *mut c_void) = (0, 0, ptr::null_mut());
            let _guard = mpi.enter()?;
            // SAFETY: a valid window and out-parameters.
            let code = unsafe {
                (mpi.calls().win_shared_query)(raw, rank as Int, &mut length, &mut unit, &mut base)
            };
            mpi.check("MPI_Win_shared_query", code)?;
            let base = base.cast::<u8>();
            ranges.push((NonNull::new(base.wrapping_add(base.align_offset(PAGE))), size));
        }
        Window::initialise(comm, raw, ranges)
    }

    fn initialise(comm: &Comm, raw: Handle, ranges: Vec<(Option<NonNull<u8>>, usize)>) -> Result<Window> {
        let mpi = comm.library();
        mpi.windows.fetch_add(1, Ordering::Relaxed);
        let window = Window { comm: comm.clone(), raw, ranges, locked: Cell::new(false) };
        {
            let _guard = mpi.enter()?;
            // SAFETY: valid handles.
            let code = unsafe { (mpi.calls().win_set_errhandler)(raw, mpi.h.errors_return) };
            mpi.check("MPI_Win_set_errhandler", code)?;
        }
        if let (Some(start), length) = window.ranges[comm.rank()] {
            // SAFETY: this rank's own bytes; no other rank accesses them before the barrier. The
            // first access places the pages near this rank.
            unsafe { start.as_ptr().write_bytes(0, length) };
        }
        comm.barrier()?;
        Ok(window)
    }

    /// Its ranks.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Bytes of a rank.
    pub fn len(&self, rank: usize) -> usize {
        self.ranges.get(rank).map_or(0, |range| range.1)
    }

    /// Whether no rank has bytes in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.iter().all(|range| range.1 == 0)
    }

    /// Where the bytes of a rank lie in this process: own ones always, those
    /// of others in a shared window. Valid while the window lives; what other
    /// ranks do to it is for the caller to order ([`Window::sync`], barriers).
    pub fn pointer(&self, rank: usize) -> Option<NonNull<u8>> {
        self.ranges.get(rank)?.0
    }

    /// Copies out of a rank's bytes; of another rank only in a shared window.
    ///
    /// # Errors
    /// [`Error::Argument`] where they are not here or not as many.
    pub fn read<T: Plain>(&self, rank: usize, at: usize, into: &mut [T]) -> Result<()> {
        let from = self.address(rank, at, size_of_val(into))?;
        // SAFETY: inside the window; any bytes are numbers.
        unsafe { into.as_mut_ptr().cast::<u8>().copy_from(from, size_of_val(into)) };
        Ok(())
    }

    /// Copies into a rank's bytes; of another rank only in a shared window.
    ///
    /// # Errors
    /// [`Error::Argument`] where they are not here or not as many.
    pub fn write<T: Plain>(&self, rank: usize, at: usize, from: &[T]) -> Result<()> {
        let to = self.address(rank, at, size_of_val(from))?;
        // SAFETY: inside the window, to which there are no references.
        unsafe { to.copy_from(from.as_ptr().cast(), size_of_val(from)) };
        Ok(())
    }

    /// An aligned word that other ranks may change meanwhile: what was put or
    /// stored before it is seen after it.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is not here or not a multiple of 8.
    pub fn load(&self, rank: usize, at: usize) -> Result<u64> {
        self.word(rank, at).map(|word| word.load(Ordering::Acquire))
    }

    /// Stores an aligned word; see [`Window::load`].
    ///
    /// # Errors
    /// [`Error::Argument`] where it is not here or not a multiple of 8.
    pub fn store(&self, rank: usize, at: usize, value: u64) -> Result<()> {
        self.word(rank, at).map(|word| word.store(value, Ordering::Release))
    }

    fn word(&self, rank: usize, at: usize) -> Result<&AtomicU64> {
        let word = self.address(rank, at, 8)?.cast::<u64>();
        if !word.is_aligned() {
            return Err(Error::Argument(format!("a word at {at}, which is not a multiple of 8")));
        }
        // SAFETY: aligned, inside the window, and lives as long as it.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }

    fn address(&self, rank: usize, at: usize, length: usize) -> Result<*mut u8> {
        self.inside(rank, at, length)?;
        match self.ranges[rank].0 {
            // SAFETY: inside the window, as just checked.
            Some(start) => Ok(unsafe { start.as_ptr().add(at) }),
            None if length == 0 => Ok(NonNull::dangling().as_ptr()),
            None => Err(Error::Argument(format!("the bytes of rank {rank} are not in this process"))),
        }
    }

    fn inside(&self, rank: usize, at: usize, length: usize) -> Result<()> {
        self.comm.peer(rank)?;
        let have = self.len(rank);
        if at.checked_add(length).is_none_or(|end| end > have) {
            return Err(Error::Argument(format!("{length} bytes at {at} of rank {rank}'s window of {have}")));
        }
        Ok(())
    }

    /// Opens the window for puts of this rank to all others, until
    /// [`Window::unlock_all`]. Not collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is open; those of MPI.
    pub fn lock_all(&self) -> Result<()> {
        self.expect_locked(false)?;
        let assert = self.mpi().abi.mode_nocheck; // no rank takes exclusive locks
        // SAFETY: a valid window that is not locked.
        self.call("MPI_Win_lock_all", |calls| unsafe { (calls.win_lock_all)(assert, self.raw) })?;
        self.locked.set(true);
        Ok(())
    }

    /// Completes all puts here and there, and closes the window. Not collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is not open; those of MPI.
    pub fn unlock_all(&self) -> Result<()> {
        self.expect_locked(true)?;
        // SAFETY: a valid window that is locked.
        self.call("MPI_Win_unlock_all", |calls| unsafe { (calls.win_unlock_all)(self.raw) })?;
        self.locked.set(false);
        Ok(())
    }

    /// Returns when all puts to a rank have arrived. Needs [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open; those of MPI.
    pub fn flush(&self, rank: usize) -> Result<()> {
        self.expect_locked(true)?;
        let rank = self.comm.peer(rank)?;
        // SAFETY: a valid window that is locked.
        self.call("MPI_Win_flush", |calls| unsafe { (calls.win_flush)(rank, self.raw) })
    }

    /// Returns when all puts to all ranks have arrived. Needs [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open; those of MPI.
    pub fn flush_all(&self) -> Result<()> {
        self.expect_locked(true)?;
        // SAFETY: a valid window that is locked.
        self.call("MPI_Win_flush_all", |calls| unsafe { (calls.win_flush_all)(self.raw) })
    }

    /// Makes puts and stores of others visible here, and makes progress. Needs
    /// [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open; those of MPI.
    pub fn sync(&self) -> Result<()> {
        self.expect_locked(true)?;
        // SAFETY: a valid window that is locked.
        self.call("MPI_Win_sync", |calls| unsafe { (calls.win_sync)(self.raw) })
    }

    /// Puts `data` at `at` of a rank's bytes; returns when `data` may change.
    /// It has arrived after [`Window::flush`]. Needs [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open or too small; those of MPI.
    pub fn put<T: Plain>(&self, data: &[T], rank: usize, at: usize) -> Result<()> {
        self.expect_locked(true)?;
        let to = self.comm.peer(rank)?;
        // SAFETY: complete here before this returns.
        let started = unsafe { self.start_put(sent_from(data), size_of_val(data), rank, at) };
        // Also after an error: a first piece may be in flight.
        // SAFETY: a valid window that is locked.
        self.call("MPI_Win_flush_local", |calls| unsafe { (calls.win_flush_local)(to, self.raw) })?;
        started
    }

    /// Starts to put bytes at `at` of a rank's; [`Window::put`] does it in safe
    /// code. They have arrived after [`Window::flush`]. Needs [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open or too small; those of MPI.
    ///
    /// # Safety
    /// The bytes live and stay as they are until a flush of that rank, or of
    /// all, or until the window is closed.
    pub unsafe fn begin_put(&self, from: *const u8, length: usize, rank: usize, at: usize) -> Result<()> {
        self.expect_locked(true)?;
        self.comm.peer(rank)?;
        // SAFETY: the contract of `begin_put`.
        unsafe { self.start_put(from, length, rank, at) }
    }

    /// # Safety
    /// The bytes live and stay as they are until the put is complete here.
    unsafe fn start_put(&self, from: *const u8, length: usize, rank: usize, at: usize) -> Result<()> {
        self.inside(rank, at, length)?;
        let (mpi, rank) = (self.mpi(), rank as Int);
        let (byte, raw) = (mpi.h.byte, self.raw);
        (0..length).step_by(mpi.limit()).try_for_each(|done| {
            let (place, n) = ((at + done) as Aint, mpi.limit().min(length - done));
            // SAFETY: inside the window; by this function's contract the bytes live until completion.
            unsafe {
                let from = from.add(done).cast();
                counted!(mpi, "MPI_Put", put(from, n as _, byte, rank, place, n as _, byte, raw))
            }
        })
    }

    fn expect_locked(&self, locked: bool) -> Result<()> {
        match (self.locked.get(), locked) {
            (true, false) => Err(Error::Argument("the window is open (lock_all) already".into())),
            (false, true) => Err(Error::Argument("the window is not open: lock_all comes first".into())),
            _ => Ok(()),
        }
    }

    fn call(&self, name: &'static str, make: impl FnOnce(&Calls) -> Int) -> Result<()> {
        let mpi = self.mpi();
        let _guard = mpi.enter()?;
        mpi.check(name, make(mpi.calls()))
    }

    fn mpi(&self) -> &Arc<Library> {
        self.comm.library()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if std::thread::panicking() || (self.locked.get() && self.unlock_all().is_err()) {
            return;
        }
        if let Ok(_guard) = self.mpi().enter() {
            let mut raw = self.raw;
            // SAFETY: an owned window, not locked, and no put is in flight.
            unsafe { (self.mpi().calls().win_free)(&mut raw) };
            self.mpi().windows.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn gather_sizes(comm: &Comm, bytes: usize) -> Result<Vec<usize>> {
    let mut sizes = vec![0; comm.size()];
    comm.all_gather(&[bytes], &mut sizes)?;
    match sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size)) {
        Some(sum) if sum < isize::MAX as usize / 2 => Ok(sizes),
        _ => Err(Error::Argument("a window larger than the address space".into())),
    }
}

type Allocate = unsafe extern "C" fn(Aint, Int, Handle, Handle, *mut *mut c_void, *mut Handle) -> Int;

fn make(comm: &Comm, bytes: usize, name: &'static str, call: Allocate) -> Result<(Handle, *mut u8)> {
    let mpi = comm.library();
    let (mut raw, mut base): (Handle, *mut c_void) = (0, ptr::null_mut());
    let made = {
        let _guard = mpi.enter()?;
        // SAFETY: valid handles and out-parameters; a null info is allowed.
        let code = unsafe { call(bytes as Aint, 1, mpi.h.info_null, comm.raw(), &mut base, &mut raw) };
        mpi.check(name, code)
    };
    // All ranks return an error where one fails, since the others would wait for it
    // later. A window that only some ranks have is leaked: freeing it is collective.
    let mut failed = [i32::from(made.is_err())];
    comm.all_reduce(&mut failed, Op::Max)?;
    made?;
    if failed[0] != 0 {
        return Err(Error::Argument(format!("{name} failed on another rank")));
    }
    Ok((raw, base.cast()))
}

/// Bytes left in `/dev/shm`; no limit where that is unknown.
fn free_shared_memory() -> u64 {
    // SAFETY: a plain structure of numbers, filled by the call; the path ends with a zero.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(c"/dev/shm".as_ptr(), &mut stat) != 0 {
            return u64::MAX;
        }
        stat.f_bavail * stat.f_frsize
    }
}
