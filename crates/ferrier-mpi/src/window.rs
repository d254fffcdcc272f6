//! Memory that other ranks can put into.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::Handle;
use crate::comm::Comm;
use crate::data::{Op, Plain, sent_from};
use crate::error::{Error, Result};
use crate::ffi::{Aint, Calls, Int};
use crate::library::{Library, counted};
use crate::table::Table;

/// A window: bytes on each rank that the others can put into.
///
/// The memory is zero at first. Since others write to it at any time, there are no references to it: it is copied
/// from. Allocating and dropping a window are collective. (Dropped while a panic unwinds, it is leaked: the other
/// ranks would not take part.)
pub struct Window {
    comm: Comm,
    raw: Handle,
    /// This rank's bytes.
    base: *mut u8,
    /// Bytes of each rank.
    sizes: Vec<usize>,
    locked: Cell<bool>,
}

// SAFETY: a handle and a pointer to memory that belongs to the window; not `Sync`, so two threads never copy at once.
unsafe impl Send for Window {}

/// MPICH 4.0 lets the parts of ranks of one node overlap by some bytes where lengths are not multiples of 16 (seen with
/// a C program as well).
const PAGE: usize = 4096;

impl Window {
    /// `bytes` on this rank (any number on each) that others can put into.
    /// Collective.
    ///
    /// # Errors
    /// Those of MPI, on every rank where one fails: Open MPI 4.1 makes no
    /// windows over TCP by default.
    pub fn allocate(comm: &Comm, bytes: usize) -> Result<Window> {
        let sizes = gather_sizes(comm, bytes)?;
        let (raw, base) = make(comm, bytes.next_multiple_of(PAGE))?;
        let mpi = comm.library();
        mpi.windows.fetch_add(1, Ordering::Relaxed);
        let window = Window { comm: comm.clone(), raw, base, sizes, locked: Cell::new(false) };
        {
            let _guard = mpi.enter()?;
            // SAFETY: valid handles.
            let code = unsafe { (mpi.calls().win_set_errhandler)(raw, mpi.h.errors_return) };
            mpi.check("MPI_Win_set_errhandler", code)?;
        }
        if bytes > 0 {
            // SAFETY: this rank's own bytes; no other rank accesses them before the barrier. The
            // first access places the pages near this rank.
            unsafe { base.write_bytes(0, bytes) };
        }
        comm.barrier()?;
        Ok(window)
    }

    /// Bytes of a rank.
    pub fn len(&self, rank: usize) -> usize {
        self.sizes.get(rank).copied().unwrap_or(0)
    }

    /// Copies out of this rank's bytes.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are not as many.
    pub fn read<T: Plain>(&self, at: usize, into: &mut [T]) -> Result<()> {
        self.inside(self.comm.rank(), at, size_of_val(into))?;
        // SAFETY: inside the window, as just checked; `T` is plain data.
        unsafe { into.as_mut_ptr().cast::<u8>().copy_from(self.base.wrapping_add(at), size_of_val(into)) };
        Ok(())
    }

    /// The address of this rank's bytes; others may write to them at any time.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are not as many.
    pub fn address(&self, at: usize, length: usize) -> Result<*mut u8> {
        self.inside(self.comm.rank(), at, length)?;
        Ok(self.base.wrapping_add(at))
    }

    /// An aligned word of this rank's, which other ranks may change meanwhile: what was put before it is seen after it.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is not in the window or not at a multiple of 8.
    pub fn load(&self, at: usize) -> Result<u64> {
        self.inside(self.comm.rank(), at, 8)?;
        let word = self.base.wrapping_add(at).cast::<u64>();
        if !word.is_aligned() {
            return Err(Error::Argument(format!("a word at {at}, which is not a multiple of 8")));
        }
        // SAFETY: aligned, inside the window, and lives as long as it.
        Ok(unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire))
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

    /// Starts to put bytes at `at` of a rank's; `request` tells when they may change. They have arrived after
    /// [`Window::flush`]. Needs [`Window::lock_all`].
    ///
    /// # Errors
    /// [`Error::Argument`] where the window is not open or too small, or the put of `request` is in flight; those of
    /// MPI.
    ///
    /// # Safety
    /// The bytes live and stay as they are until [`PutRequest::test`] returns true or an error, or the request is
    /// dropped.
    pub unsafe fn request_put(
        &self,
        request: &mut PutRequest,
        from: *const u8,
        length: usize,
        rank: usize,
        at: usize,
    ) -> Result<()> {
        self.expect_locked(true)?;
        self.inside(rank, at, length)?;
        if !request.0.is_empty() {
            return Err(Error::Argument("a put of this request is in flight".into()));
        }
        let (mpi, to) = (self.mpi(), rank as Int);
        let (byte, raw) = (mpi.h.byte, self.raw);
        (0..length).step_by(mpi.limit()).try_for_each(|done| {
            let (place, n) = ((at + done) as Aint, mpi.limit().min(length - done));
            let mut made = 0;
            // SAFETY: inside the window; by this function's contract the bytes live until completion.
            unsafe {
                let (from, made) = (from.add(done).cast(), &mut made);
                counted!(mpi, "MPI_Rput", rput(from, n as _, byte, to, place, n as _, byte, raw, made))?;
            }
            request.0.push(made, false);
            Ok(())
        })
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

/// A put in flight at a time; see [`Window::request_put`]. Dropping it waits.
pub struct PutRequest(Table);

impl PutRequest {
    /// For windows of this communicator's library.
    pub fn new(comm: &Comm) -> PutRequest {
        PutRequest(Table::with_capacity(comm.library(), 1))
    }

    /// Makes progress; whether the bytes that were put may change.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
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

fn make(comm: &Comm, bytes: usize) -> Result<(Handle, *mut u8)> {
    const CALL: &str = "MPI_Win_allocate";
    let mpi = comm.library();
    let (mut raw, mut base): (Handle, *mut c_void) = (0, ptr::null_mut());
    let made = {
        let _guard = mpi.enter()?;
        let (size, info, make) = (bytes as Aint, mpi.h.info_null, mpi.calls().win_allocate);
        // SAFETY: valid handles and out-parameters; a null info is allowed.
        mpi.check(CALL, unsafe { make(size, 1, info, comm.raw(), &mut base, &mut raw) })
    };
    // All ranks return an error where one fails, since the others would wait for it
    // later. A window that only some ranks have is leaked: freeing it is collective.
    let mut failed = [i32::from(made.is_err())];
    comm.all_reduce(&mut failed, Op::Max)?;
    made?;
    if failed[0] != 0 {
        return Err(Error::Argument(format!("{CALL} failed on another rank")));
    }
    Ok((raw, base.cast()))
}
