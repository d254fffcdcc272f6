//! The loaded and initialised library.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::ThreadId;

use crate::abi::{Abi, Handle, Handles, LONGEST_STRING};
use crate::error::{Error, Result};
use crate::ffi::{Calls, Int, Loaded, Wide};
use crate::find::Found;
use crate::level::Level;

/// The initialised library.
pub(crate) struct Library {
    pub loaded: Loaded,
    pub abi: &'static Abi,
    pub h: Handles,
    pub found: Found,
    pub level: Level,
    /// This crate called `MPI_Init_thread`, not the host program.
    initialised_here: bool,
    thread: ThreadId,
    /// Held during calls under [`Level::Serialized`].
    call_lock: Mutex<()>,
    pub communicators: AtomicUsize,
    pub windows: AtomicUsize,
    pub requests: AtomicUsize,
    /// Largest count in one call; `usize::MAX` where 64-bit calls are used.
    pub limit: AtomicUsize,
}

/// Makes a call with counts (written `count as _`): of 64 bits where the library
/// has such calls, else of 32 bits.
macro_rules! counted {
    ($mpi:expr, $name:literal, $call:ident($($argument:expr),* $(,)?)) => {{
        let mpi = $mpi;
        let _guard = mpi.enter()?;
        match mpi.wide() {
            Some(wide) => mpi.check(concat!($name, "_c"), (wide.$call)($($argument),*)),
            None => mpi.check($name, (mpi.loaded.narrow.$call)($($argument),*)),
        }
    }};
}
pub(crate) use counted;

impl Library {
    /// Loads `found` and initialises it, or uses it as the host program has
    /// initialised it; without a `level` only that.
    pub fn initialise(found: Found, level: Option<Level>) -> Result<Library> {
        let abi = Abi::of(found.family);
        let loaded = Loaded::open(&found.path)?;
        let handle = |predefined| {
            let missing = || Error::Load { path: found.path.clone(), why: format!("has no {predefined:?}") };
            loaded.handle(predefined).ok_or_else(missing)
        };
        let h = Handles::new(abi, handle)?;
        let limit = if loaded.wide.is_some() { usize::MAX } else { i32::MAX as usize };
        let mut library = Library {
            loaded,
            abi,
            h,
            found,
            level: level.unwrap_or(Level::Single),
            initialised_here: false,
            thread: std::thread::current().id(),
            call_lock: Mutex::new(()),
            communicators: AtomicUsize::new(0),
            windows: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        };
        if library.finalized() {
            return Err(Error::Finalized);
        }
        let calls = &library.loaded.calls;
        let (mut initialized, mut granted) = (0, abi.thread_single);
        // SAFETY: may be called at any time; the out-parameter is valid.
        let code = unsafe { (calls.initialized)(&mut initialized) };
        library.check("MPI_Initialized", code)?;
        if initialized != 0 {
            // SAFETY: MPI is initialised; the out-parameter is valid.
            let code = unsafe { (calls.query_thread)(&mut granted) };
            library.check("MPI_Query_thread", code)?;
        } else {
            let requested = match level.ok_or(Error::NotInitialised)? {
                Level::Single => abi.thread_single,
                Level::Funneled => abi.thread_funneled,
                Level::Serialized => abi.thread_serialized,
                Level::Multiple => abi.thread_multiple,
            };
            // SAFETY: not initialised and not finalized; MPI allows null for the arguments.
            let code =
                unsafe { (calls.init_thread)(ptr::null_mut(), ptr::null_mut(), requested, &mut granted) };
            library.check("MPI_Init_thread", code)?;
            library.initialised_here = true;
            // Errors that belong to no communicator go to world's handler, since MPI 4 to self's.
            library.return_errors(library.h.comm_world)?;
            library.return_errors(library.h.comm_self)?;
        }
        library.level = match granted {
            granted if granted >= abi.thread_multiple => Level::Multiple,
            granted if granted >= abi.thread_serialized => Level::Serialized,
            granted if granted >= abi.thread_funneled => Level::Funneled,
            _ => Level::Single,
        };
        Ok(library)
    }

    pub fn calls(&self) -> &Calls {
        &self.loaded.calls
    }

    pub fn initialised_here(&self) -> bool {
        self.initialised_here
    }

    /// The largest count of one call.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// The calls with 64-bit counts, unless a test lowered the limit.
    pub fn wide(&self) -> Option<&Wide> {
        self.loaded.wide.as_ref().filter(|_| self.limit() == usize::MAX)
    }

    /// To be called before each call of MPI; the guard is held for its length.
    ///
    /// # Errors
    /// Where the thread level does not allow the call, or MPI is finalized.
    pub fn enter(&self) -> Result<Option<MutexGuard<'_, ()>>> {
        if !self.initialised_here && self.finalized() {
            return Err(Error::Finalized);
        }
        match self.level {
            Level::Multiple => Ok(None),
            Level::Serialized => {
                Ok(Some(self.call_lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())))
            }
            level if std::thread::current().id() != self.thread => Err(Error::WrongThread { level }),
            _ => Ok(None),
        }
    }

    /// Tests a request, or waits for it. Whether it is complete: after an error of
    /// MPI it is, too.
    pub fn advance(&self, request: &mut Handle, wait: bool) -> (bool, Result<()>) {
        let _guard = match self.enter() {
            Ok(guard) => guard,
            Err(error) => return (false, Err(error)),
        };
        let mut flag: Int = 1;
        let (call, code) = if wait {
            // SAFETY: a request that was started and is not complete.
            ("MPI_Wait", unsafe { (self.calls().wait)(request, self.status_ignore()) })
        } else {
            // SAFETY: as above.
            ("MPI_Test", unsafe { (self.calls().test)(request, &mut flag, self.status_ignore()) })
        };
        (code != 0 || flag != 0, self.check(call, code))
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

    pub fn text(
        &self,
        call: &'static str,
        fill: impl FnOnce(*mut c_char, *mut Int) -> Int,
    ) -> Result<String> {
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

    /// Is `raw` a communicator that a group of ranks can use? Not collective.
    ///
    /// # Errors
    /// [`Error::Argument`] for the null communicator and inter-communicators; MPI's own for what is no
    /// communicator, as far as it checks.
    pub fn check_communicator(&self, raw: Handle) -> Result<()> {
        let _guard = self.enter()?;
        if raw == 0 || raw == self.h.comm_null {
            return Err(Error::Argument("the null communicator has no ranks".into()));
        }
        // What belongs to no communicator goes to the handlers of these two, which end the job by default.
        let both = [self.h.comm_world, self.h.comm_self];
        let mut handlers = [0; 2];
        for (comm, handler) in both.into_iter().zip(&mut handlers) {
            // SAFETY: a communicator that always exists; the out-parameter is valid.
            let code = unsafe { (self.calls().comm_get_errhandler)(comm, handler) };
            self.check("MPI_Comm_get_errhandler", code)?;
            self.return_errors(comm)?;
        }
        let mut inter = 0;
        // SAFETY: MPI checks the handle; the out-parameter is valid.
        let code = unsafe { (self.calls().comm_test_inter)(raw, &mut inter) };
        let outcome = self.check("MPI_Comm_test_inter", code);
        for (comm, mut handler) in both.into_iter().zip(handlers) {
            // SAFETY: handles that MPI gave above; freed once.
            unsafe {
                (self.calls().comm_set_errhandler)(comm, handler);
                (self.calls().errhandler_free)(&mut handler);
            }
        }
        outcome?;
        match inter {
            0 => Ok(()),
            _ => Err(Error::Argument("an inter-communicator is not one group of ranks".into())),
        }
    }

    /// The bits of a handle that the library uses.
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

    pub fn finalize(&mut self) -> Result<()> {
        if !self.initialised_here || self.finalized() {
            return Ok(());
        }
        {
            let _guard = self.enter()?;
            // SAFETY: initialised by us, not finalized, and no handle is left.
            let code = unsafe { (self.loaded.calls.finalize)() };
            self.check("MPI_Finalize", code)?;
        }
        self.initialised_here = false;
        Ok(())
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // While a panic unwinds, finalizing would wait for the other ranks. The
        // launcher ends the job when this process ends.
        if !std::thread::panicking() {
            let _ = self.finalize();
        }
    }
}
