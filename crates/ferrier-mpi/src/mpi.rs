//! The library in use: initialised once, finalized when its last handle goes.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::ThreadId;

use crate::abi::{Abi, Handle, LONGEST_STRING};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::ffi::{Calls, Int, Loaded, Wide};
use crate::find::{Found, find};
use crate::request::Slot;

/// How threads may call MPI. Ask for the least that serves: some libraries
/// lose features above it (Open MPI 4.1 makes no windows over TCP under
/// [`Level::Multiple`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The process has one thread.
    Single,
    /// Only the thread that initialised calls MPI; calls of others are refused.
    Funneled,
    /// Any thread, one at a time: a lock is held for the length of each call,
    /// so a thread must not wait in MPI for what another thread of the same
    /// rank has yet to send.
    Serialized,
    /// Any thread at any time.
    Multiple,
}

/// How many handles are alive; for tests of leaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Communicators that were made (not world).
    pub communicators: usize,
    /// Windows.
    pub windows: usize,
    /// Requests: those in flight, and persistent ones.
    pub requests: usize,
}

/// MPI, loaded and initialised. Clones are handles on the same; the last one
/// to go, communicators and windows included, finalizes (where this crate
/// initialised).
#[derive(Clone)]
pub struct Mpi {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    loaded: Loaded,
    pub abi: &'static Abi,
    pub h: Handles,
    found: Found,
    level: Level,
    /// This crate called `MPI_Init_thread`, not the program around it.
    ours: bool,
    thread: ThreadId,
    gate: Mutex<()>,
    pub communicators: AtomicUsize,
    pub windows: AtomicUsize,
    pub requests: AtomicUsize,
    /// Largest count in one call; `usize::MAX` where 64-bit calls are used.
    limit: AtomicUsize,
    /// Tables of scopes that ended, so that the next one allocates nothing.
    pub spare: Mutex<Vec<Vec<Slot>>>,
}

/// Predefined handles, looked up.
pub(crate) struct Handles {
    pub world: Handle,
    pub own: Handle,
    pub comm_null: Handle,
    pub info_null: Handle,
    pub errors_return: Handle,
    pub byte: Handle,
    pub int32: Handle,
    pub int64: Handle,
    pub uint64: Handle,
    pub float: Handle,
    pub double: Handle,
    pub sum: Handle,
    pub min: Handle,
    pub max: Handle,
}

/// How counts are passed.
pub(crate) enum Counting<'a> {
    /// As 64 bits.
    Wide(&'a Wide),
    /// As 32 bits, in pieces of at most so many.
    Split(usize),
}

impl Counting<'_> {
    /// Can a count be this?
    pub fn takes(&self, count: usize) -> bool {
        match self {
            Counting::Wide(_) => true,
            Counting::Split(limit) => count <= *limit,
        }
    }
}

/// What was initialised in this process; MPI can be only once.
static USED: Mutex<Option<Weak<Inner>>> = Mutex::new(None);

impl Mpi {
    /// Finds, loads and initialises the MPI of this process's launcher; `None`
    /// where [`find`] finds none. Collective over all processes of the launch.
    ///
    /// # Errors
    /// Those of [`find`] and [`Mpi::load`].
    pub fn init(level: Level) -> Result<Option<Mpi>> {
        find()?.map(|found| Mpi::load(found, level)).transpose()
    }

    /// Loads and initialises a library. Where MPI is in use already, through
    /// this crate or the program around it, that one is used and `level` is
    /// what it was initialised with. Ask [`Mpi::level`] what was granted.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::SecondLibrary`], [`Error::Finalized`] where MPI
    /// was used and finalized before, [`Error::Mpi`] where it does not start.
    pub fn load(found: Found, level: Level) -> Result<Mpi> {
        let mut used = USED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(inner) = used.as_ref().and_then(Weak::upgrade) {
            if inner.found.path != found.path {
                return Err(Error::SecondLibrary { loaded: inner.found.path.clone(), asked: found.path });
            }
            return Ok(Mpi { inner });
        }
        let inner = Arc::new(Inner::start(found, level)?);
        *used = Some(Arc::downgrade(&inner));
        Ok(Mpi { inner })
    }

    /// All processes of the launch. Where the program around us initialised
    /// MPI this is a duplicate, made collectively, so that its own error
    /// handler and messages stay untouched.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn world(&self) -> Result<Comm> {
        Comm::world(&self.inner)
    }

    /// A communicator made elsewhere (C, mpi4py's `MPI._handleof`), given by
    /// its raw handle: a duplicate over the same ranks, so that neither its
    /// messages nor its error handler meet ours. Collective over it.
    ///
    /// # Errors
    /// Those of MPI.
    ///
    /// # Safety
    /// `raw` is a valid communicator of the library that is loaded.
    pub unsafe fn adopt(&self, raw: Handle) -> Result<Comm> {
        Comm::duplicate_of(&self.inner, raw)
    }

    /// [`Mpi::adopt`] for a handle of Fortran (or `MPI_Comm_toint`).
    ///
    /// # Errors
    /// Those of MPI.
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn adopt_fortran(&self, fortran: i32) -> Result<Comm> {
        let raw = match self.inner.loaded.comm_of_int {
            // SAFETY: the caller says that the handle is valid.
            Some(convert) => unsafe { convert(fortran) },
            // MPICH 4: the same number, and a macro.
            None => fortran as u32 as Handle,
        };
        Comm::duplicate_of(&self.inner, raw & self.inner.handle_mask())
    }

    /// The thread level that was granted.
    pub fn level(&self) -> Level {
        self.inner.level
    }

    /// Which library this is, and why.
    pub fn found(&self) -> &Found {
        &self.inner.found
    }

    /// Its constants.
    pub fn abi(&self) -> &'static Abi {
        self.inner.abi
    }

    /// The version of the standard: (4, 1).
    ///
    /// # Errors
    /// Those of MPI.
    pub fn version(&self) -> Result<(i32, i32)> {
        let (mut major, mut minor) = (0, 0);
        let _gate = self.inner.enter()?;
        // SAFETY: out-parameters are valid.
        let code = unsafe { (self.inner.calls().get_version)(&mut major, &mut minor) };
        self.inner.check("MPI_Get_version", code)?;
        Ok((major, minor))
    }

    /// Name and version of the library in its own words, first line.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn library_version(&self) -> Result<String> {
        let _gate = self.inner.enter()?;
        let text = self.inner.text("MPI_Get_library_version", |text, length| {
            // SAFETY: `text` is as long as any library writes.
            unsafe { (self.inner.calls().get_library_version)(text, length) }
        })?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// What MPI calls this machine.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn processor_name(&self) -> Result<String> {
        let _gate = self.inner.enter()?;
        self.inner.text("MPI_Get_processor_name", |text, length| {
            // SAFETY: `text` is as long as any library writes.
            unsafe { (self.inner.calls().get_processor_name)(text, length) }
        })
    }

    /// Handles that are alive.
    pub fn live(&self) -> Live {
        Live {
            communicators: self.inner.communicators.load(Ordering::Relaxed),
            windows: self.inner.windows.load(Ordering::Relaxed),
            requests: self.inner.requests.load(Ordering::Relaxed),
        }
    }

    /// Whether persistent exchanges exist ([`crate::Persistent`]).
    pub fn has_persistent(&self) -> bool {
        self.inner.loaded.alltoallv_init.is_some()
    }

    /// Does the library say that sends and receives take pointers into the memory
    /// of CUDA's GPUs? (Of collectives that do not block, no library says so.)
    pub fn reaches_gpus(&self) -> bool {
        /// `MPIX_GPU_SUPPORT_CUDA`.
        const CUDA: Int = 0;
        let Ok(_gate) = self.inner.enter() else { return false };
        if let Some(query) = self.inner.loaded.gpu_support {
            let mut supported = 0;
            // SAFETY: the out-parameter is valid; MPI is initialised.
            return unsafe { query(CUDA, &mut supported) } == 0 && supported != 0;
        }
        // SAFETY: MPI is initialised.
        self.inner.loaded.cuda_support.is_some_and(|query| unsafe { query() } == 1)
    }

    /// Whether counts are passed as 64 bits; otherwise long messages are split.
    pub fn has_wide_counts(&self) -> bool {
        matches!(self.inner.counting(), Counting::Wide(_))
    }

    /// For tests: counts are passed as 32 bits and messages above `limit` are
    /// split, as if `limit` were 2^31 - 1. The same on every rank.
    #[doc(hidden)]
    pub fn lower_count_limit(&self, limit: usize) {
        self.inner.limit.store(limit.clamp(1, i32::MAX as usize), Ordering::Relaxed);
    }

    /// Finalizes now, and says what MPI says. Collective.
    ///
    /// # Errors
    /// [`Error::InUse`] where other handles are alive (nothing happens then),
    /// and those of MPI.
    pub fn finalize(self) -> Result<()> {
        let live = self.live();
        match Arc::try_unwrap(self.inner) {
            Ok(mut inner) => inner.finalize(),
            Err(_) => Err(Error::InUse(format!(
                "other handles on it are alive ({} communicators, {} windows, {} requests)",
                live.communicators, live.windows, live.requests
            ))),
        }
    }

    pub(crate) fn of(inner: &Arc<Inner>) -> Mpi {
        Mpi { inner: inner.clone() }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPI from {}", self.inner.found.path.display())
    }
}

impl Inner {
    fn start(found: Found, level: Level) -> Result<Inner> {
        let abi = Abi::of(found.family);
        let loaded = Loaded::open(&found.path)?;
        let handle = |predefined| {
            let missing = || Error::Load { path: found.path.clone(), why: format!("has no {predefined:?}") };
            loaded.handle(predefined).ok_or_else(missing)
        };
        let h = Handles {
            world: handle(abi.comm_world)?,
            own: handle(abi.comm_self)?,
            comm_null: handle(abi.comm_null)?,
            info_null: handle(abi.info_null)?,
            errors_return: handle(abi.errors_return)?,
            byte: handle(abi.byte)?,
            int32: handle(abi.int32_t)?,
            int64: handle(abi.int64_t)?,
            uint64: handle(abi.uint64_t)?,
            float: handle(abi.float)?,
            double: handle(abi.double)?,
            sum: handle(abi.sum)?,
            min: handle(abi.min)?,
            max: handle(abi.max)?,
        };
        let limit = if loaded.wide.is_some() { usize::MAX } else { i32::MAX as usize };
        let mut inner = Inner {
            loaded,
            abi,
            h,
            found,
            level,
            ours: false,
            thread: std::thread::current().id(),
            gate: Mutex::new(()),
            communicators: AtomicUsize::new(0),
            windows: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            spare: Mutex::new(Vec::new()),
        };
        if inner.finalized() {
            return Err(Error::Finalized);
        }
        let asked = match level {
            Level::Single => abi.thread_single,
            Level::Funneled => abi.thread_funneled,
            Level::Serialized => abi.thread_serialized,
            Level::Multiple => abi.thread_multiple,
        };
        let calls = &inner.loaded.calls;
        let (mut initialized, mut granted) = (0, asked);
        // SAFETY: may be called at any time; the out-parameter is valid.
        let code = unsafe { (calls.initialized)(&mut initialized) };
        inner.check("MPI_Initialized", code)?;
        if initialized != 0 {
            // SAFETY: MPI is initialised; the out-parameter is valid.
            let code = unsafe { (calls.query_thread)(&mut granted) };
            inner.check("MPI_Query_thread", code)?;
        } else {
            // SAFETY: not initialised and not finalized; MPI allows null for the arguments.
            let code = unsafe { (calls.init_thread)(ptr::null_mut(), ptr::null_mut(), asked, &mut granted) };
            inner.check("MPI_Init_thread", code)?;
            inner.ours = true;
            // Errors that belong to no communicator go to world's handler, since MPI 4 to self's.
            inner.return_errors(inner.h.world)?;
            inner.return_errors(inner.h.own)?;
        }
        inner.level = match granted {
            granted if granted >= abi.thread_multiple => Level::Multiple,
            granted if granted >= abi.thread_serialized => Level::Serialized,
            granted if granted >= abi.thread_funneled => Level::Funneled,
            _ => Level::Single,
        };
        Ok(inner)
    }

    pub fn calls(&self) -> &Calls {
        &self.loaded.calls
    }

    pub fn alltoallv_init(&self) -> Option<crate::ffi::AlltoallvInit> {
        self.loaded.alltoallv_init
    }

    pub fn ours(&self) -> bool {
        self.ours
    }

    pub fn counting(&self) -> Counting<'_> {
        match (self.limit.load(Ordering::Relaxed), &self.loaded.wide) {
            (usize::MAX, Some(wide)) => Counting::Wide(wide),
            (limit, _) => Counting::Split(limit),
        }
    }

    /// To be held for the length of a call. Refuses calls that the thread
    /// level does not allow, and calls after the end.
    pub fn enter(&self) -> Result<Option<MutexGuard<'_, ()>>> {
        if !self.ours && self.finalized() {
            return Err(Error::Finalized);
        }
        match self.level {
            Level::Multiple => Ok(None),
            Level::Serialized => Ok(Some(self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))),
            level if std::thread::current().id() != self.thread => Err(Error::WrongThread { level }),
            _ => Ok(None),
        }
    }

    /// A return code as a result, with MPI's text.
    pub fn check(&self, call: &'static str, code: Int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut class = code;
        // SAFETY: the out-parameter is valid; these two calls may be made with any code.
        unsafe { (self.loaded.calls.error_class)(code, &mut class) };
        let text = self.text(call, |text, length| {
            // SAFETY: `text` is as long as any library writes.
            unsafe { (self.loaded.calls.error_string)(code, text, length) };
            0
        })?;
        Err(Error::Mpi { call, code, class, text: text.trim().replace('\n', " ") })
    }

    fn text(&self, call: &'static str, fill: impl FnOnce(*mut c_char, *mut Int) -> Int) -> Result<String> {
        let mut text = vec![0_u8; LONGEST_STRING + 1];
        let mut length = 0;
        let code = fill(text.as_mut_ptr().cast(), &mut length);
        if code != 0 {
            return Err(Error::Mpi { call, code, class: code, text: String::new() });
        }
        text.truncate(usize::try_from(length).unwrap_or(0).min(LONGEST_STRING));
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Makes errors on a communicator return instead of ending the job.
    pub fn return_errors(&self, comm: Handle) -> Result<()> {
        // SAFETY: both handles are valid.
        let code = unsafe { (self.loaded.calls.comm_set_errhandler)(comm, self.h.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    /// The bits of a handle that count.
    pub fn handle_mask(&self) -> usize {
        if self.abi.sizeof_handle == 4 { u32::MAX as usize } else { usize::MAX }
    }

    /// `MPI_STATUS_IGNORE`.
    pub fn status_ignore(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.abi.status_ignore)
    }

    /// `MPI_IN_PLACE`.
    pub fn in_place(&self) -> *const c_void {
        ptr::without_provenance(self.abi.in_place)
    }

    fn finalized(&self) -> bool {
        let mut flag = 0;
        // SAFETY: may be called at any time; the out-parameter is valid.
        let code = unsafe { (self.loaded.calls.finalized)(&mut flag) };
        code != 0 || flag != 0
    }

    fn finalize(&mut self) -> Result<()> {
        if !self.ours || self.finalized() {
            return Ok(());
        }
        {
            let _gate = self.enter()?;
            // SAFETY: initialised by us, not finalized, and no handle is left.
            let code = unsafe { (self.loaded.calls.finalize)() };
            self.check("MPI_Finalize", code)?;
        }
        self.ours = false;
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A rank that panics leaves the others waiting: finalizing would hang
        // here as well. The launcher ends the job when this process ends.
        if !std::thread::panicking() {
            let _ = self.finalize();
        }
    }
}
