//! MPI as users see it: initialised once, finalized when its last handle is dropped.

use std::ffi::c_void;
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use crate::abi::{Abi, Handle};
use crate::attribute;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::ffi::Int;
use crate::find::{Found, find, find_loaded};
use crate::level::Level;
use crate::library::Library;

/// Numbers of live handles, for leak tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Communicators that were made (not world).
    pub communicators: usize,
    /// Windows.
    pub windows: usize,
    /// Requests in flight.
    pub requests: usize,
}

/// MPI, loaded and initialised. Clones are handles on the same library. It is
/// finalized when the last handle, communicators and windows included, is
/// dropped (where this crate initialised it).
#[derive(Clone)]
pub struct Mpi {
    library: Arc<Library>,
}

/// The library of this process; MPI can be initialised only once.
static USED: Mutex<Option<Weak<Library>>> = Mutex::new(None);

impl Mpi {
    /// The MPI that the host program has initialised. Else finds, loads and
    /// initialises that of this process's launcher; `None` where [`find`] finds
    /// none. `FERRIER_MPI` goes before the host's. Collective over all processes of
    /// the launch.
    ///
    /// # Errors
    /// Those of [`find`] and [`Mpi::load`].
    pub fn init(level: Level) -> Result<Option<Mpi>> {
        if std::env::var_os("FERRIER_MPI").is_none_or(|value| value.is_empty()) {
            match Mpi::host(std::ptr::null()) {
                Err(Error::NotLoaded | Error::NotInitialised | Error::Finalized) => {}
                outcome => return outcome.map(Some),
            }
        }
        find()?.map(|found| Mpi::load(found, level)).transpose()
    }

    /// Loads and initialises a library. Where MPI is initialised already, by this
    /// crate or the host program, it is used as it is and `level` is ignored;
    /// [`Mpi::level`] returns the level that was granted.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::SecondLibrary`], [`Error::Finalized`] where MPI
    /// was finalized before, [`Error::Mpi`] where it does not initialise.
    pub fn load(found: Found, level: Level) -> Result<Mpi> {
        Mpi::open(found, Some(level))
    }

    /// The MPI that the host program (or this crate) has loaded and initialised,
    /// at the level that it has; see [`find_loaded`](crate::find_loaded) for
    /// `function`, which may be null.
    ///
    /// # Errors
    /// [`Error::NotLoaded`], [`Error::NotInitialised`], [`Error::Finalized`];
    /// [`Error::SecondLibrary`].
    pub fn host(function: *const c_void) -> Result<Mpi> {
        Mpi::open(find_loaded(function).ok_or(Error::NotLoaded)?, None)
    }

    fn open(found: Found, level: Option<Level>) -> Result<Mpi> {
        let mut used = USED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(library) = used.as_ref().and_then(Weak::upgrade) {
            let same = |a: &Path, b: &Path| {
                a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
            };
            if !same(&library.found.path, &found.path) {
                return Err(Error::SecondLibrary { loaded: library.found.path.clone(), asked: found.path });
            }
            return Ok(Mpi { library });
        }
        let library = Arc::new(Library::initialise(found, level)?);
        *used = Some(Arc::downgrade(&library));
        Ok(Mpi { library })
    }

    /// All processes of the launch. Where the host program initialised MPI, this
    /// is a duplicate, made collectively, so that the error handler and the
    /// messages of the program are not affected.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn world(&self) -> Result<Comm> {
        Comm::world(&self.library)
    }

    /// A communicator made elsewhere (C, mpi4py's `MPI._handleof`), given by
    /// its raw handle: a duplicate over the same ranks, with its own messages and
    /// error handler. Collective over it.
    ///
    /// # Errors
    /// [`Error::Argument`] for the null communicator and inter-communicators; those
    /// of MPI.
    ///
    /// # Safety
    /// `raw` is a communicator of the library that is loaded. (Most libraries
    /// notice what is none, and return an error.)
    pub unsafe fn adopt(&self, raw: Handle) -> Result<Comm> {
        let raw = raw & self.library.handle_mask();
        self.library.check_communicator(raw)?;
        Comm::duplicate_of(&self.library, raw)
    }

    /// Rank and size of a communicator made elsewhere. Not collective.
    ///
    /// # Errors
    /// As [`Mpi::adopt`].
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn rank_and_size(&self, raw: Handle) -> Result<(usize, usize)> {
        let raw = raw & self.library.handle_mask();
        self.library.check_communicator(raw)?;
        let (mut rank, mut size) = (0, 0);
        let _guard = self.library.enter()?;
        let calls = self.library.calls();
        // SAFETY: a valid communicator, as just checked; valid out-parameters.
        self.library.check("MPI_Comm_rank", unsafe { (calls.comm_rank)(raw, &mut rank) })?;
        // SAFETY: as above.
        self.library.check("MPI_Comm_size", unsafe { (calls.comm_size)(raw, &mut size) })?;
        Ok((rank as usize, size as usize))
    }

    /// The value of this type that [`Mpi::keep`] has stored with a communicator of
    /// the host program. Not collective.
    ///
    /// # Errors
    /// As [`Mpi::adopt`].
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn kept<V: Clone + Send + 'static>(&self, raw: Handle) -> Result<Option<V>> {
        let raw = raw & self.library.handle_mask();
        self.library.check_communicator(raw)?;
        // SAFETY: a valid communicator, as just checked.
        unsafe { attribute::kept(&self.library, raw) }
    }

    /// Keeps a value as an attribute of a communicator of the host program, until
    /// that is freed or MPI is finalized: what would otherwise be made anew for each
    /// use of it, such as a duplicate. Not collective; the ranks must keep values
    /// in the same order. A value may hold [`Comm`]s and [`Window`](crate::Window)s.
    ///
    /// Does nothing where this crate has initialised MPI: a kept handle would keep
    /// MPI from being finalized.
    ///
    /// # Errors
    /// As [`Mpi::adopt`].
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn keep<V: Clone + Send + 'static>(&self, raw: Handle, value: V) -> Result<()> {
        if self.is_initialised_here() {
            return Ok(());
        }
        let raw = raw & self.library.handle_mask();
        self.library.check_communicator(raw)?;
        // SAFETY: a valid communicator, as just checked.
        unsafe { attribute::keep(&self.library, raw, value) }
    }

    /// Did this crate initialise MPI, not the host program?
    pub fn is_initialised_here(&self) -> bool {
        self.library.initialised_here()
    }

    /// [`Mpi::adopt`] for a handle of Fortran (or `MPI_Comm_toint`).
    ///
    /// # Errors
    /// Those of MPI.
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn adopt_fortran(&self, fortran: i32) -> Result<Comm> {
        // SAFETY: the contract of this function.
        unsafe { self.adopt(self.handle_of_fortran(fortran)?) }
    }

    /// The handle behind one of Fortran (`MPI_Comm_f2c`).
    ///
    /// # Errors
    /// Where the thread level does not allow the call, or MPI is finalized.
    pub fn handle_of_fortran(&self, fortran: i32) -> Result<Handle> {
        let _guard = self.library.enter()?;
        let raw = match self.library.loaded.comm_of_int {
            // SAFETY: MPI is initialised; it looks the number up in a table.
            Some(convert) => unsafe { convert(fortran) },
            // MPICH 4: the same number, and a macro.
            None => fortran as u32 as Handle,
        };
        Ok(raw & self.library.handle_mask())
    }

    /// The thread level that was granted.
    pub fn level(&self) -> Level {
        self.library.level
    }

    /// The library, and why it was chosen.
    pub fn found(&self) -> &Found {
        &self.library.found
    }

    /// Its constants.
    pub fn abi(&self) -> &'static Abi {
        self.library.abi
    }

    /// The version of the standard: (4, 1).
    ///
    /// # Errors
    /// Those of MPI.
    pub fn version(&self) -> Result<(i32, i32)> {
        let (mut major, mut minor) = (0, 0);
        let _guard = self.library.enter()?;
        // SAFETY: out-parameters are valid.
        let code = unsafe { (self.library.calls().get_version)(&mut major, &mut minor) };
        self.library.check("MPI_Get_version", code)?;
        Ok((major, minor))
    }

    /// Name and version of the library, as it reports them; first line.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn library_version(&self) -> Result<String> {
        let _guard = self.library.enter()?;
        let text = self.library.text("MPI_Get_library_version", |text, length| {
            // SAFETY: `text` is as long as any library writes.
            unsafe { (self.library.calls().get_library_version)(text, length) }
        })?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// Numbers of live handles.
    pub fn live(&self) -> Live {
        Live {
            communicators: self.library.communicators.load(Ordering::Relaxed),
            windows: self.library.windows.load(Ordering::Relaxed),
            requests: self.library.requests.load(Ordering::Relaxed),
        }
    }

    /// Does the library say that sends and receives take pointers into the memory
    /// of CUDA's GPUs? (No library documents it for non-blocking collectives.)
    pub fn reaches_gpus(&self) -> bool {
        /// `MPIX_GPU_SUPPORT_CUDA`.
        const CUDA: Int = 0;
        let Ok(_guard) = self.library.enter() else { return false };
        if let Some(query) = self.library.loaded.gpu_support {
            let mut supported = 0;
            // SAFETY: the out-parameter is valid; MPI is initialised.
            return unsafe { query(CUDA, &mut supported) } == 0 && supported != 0;
        }
        // SAFETY: MPI is initialised.
        self.library.loaded.cuda_support.is_some_and(|query| unsafe { query() } == 1)
    }

    /// Whether counts are passed as 64 bits; otherwise long messages are split.
    pub fn has_wide_counts(&self) -> bool {
        self.library.wide().is_some()
    }

    /// For tests: counts are passed as 32 bits and messages above `limit` are
    /// split, as if `limit` were 2^31 - 1. The same on every rank.
    #[doc(hidden)]
    pub fn lower_count_limit(&self, limit: usize) {
        self.library.limit.store(limit.clamp(1, i32::MAX as usize), Ordering::Relaxed);
    }

    /// Finalizes now. Collective.
    ///
    /// # Errors
    /// [`Error::InUse`] where other handles are alive (MPI stays initialised then);
    /// those of MPI.
    pub fn finalize(self) -> Result<()> {
        let live = self.live();
        match Arc::try_unwrap(self.library) {
            Ok(mut library) => library.finalize(),
            Err(_) => Err(Error::InUse(format!(
                "other handles on it are alive ({} communicators, {} windows, {} requests)",
                live.communicators, live.windows, live.requests
            ))),
        }
    }
}

impl Comm {
    /// The library it belongs to.
    pub fn mpi(&self) -> Mpi {
        Mpi { library: self.library().clone() }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPI from {}", self.library.found.path.display())
    }
}
