//! MPI as users see it: initialised once, finalized when its last handle is dropped.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use crate::abi::{Abi, Handle};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::ffi::Int;
use crate::find::{Found, find};
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
    /// Finds, loads and initialises the MPI of this process's launcher; `None`
    /// where [`find`] finds none. Collective over all processes of the launch.
    ///
    /// # Errors
    /// Those of [`find`] and [`Mpi::load`].
    pub fn init(level: Level) -> Result<Option<Mpi>> {
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
        let mut used = USED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(library) = used.as_ref().and_then(Weak::upgrade) {
            if library.found.path != found.path {
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
    /// Those of MPI.
    ///
    /// # Safety
    /// `raw` is a valid communicator of the library that is loaded.
    pub unsafe fn adopt(&self, raw: Handle) -> Result<Comm> {
        Comm::duplicate_of(&self.library, raw)
    }

    /// [`Mpi::adopt`] for a handle of Fortran (or `MPI_Comm_toint`).
    ///
    /// # Errors
    /// Those of MPI.
    ///
    /// # Safety
    /// As [`Mpi::adopt`].
    pub unsafe fn adopt_fortran(&self, fortran: i32) -> Result<Comm> {
        let raw = match self.library.loaded.comm_of_int {
            // SAFETY: `adopt_fortran`'s contract: the handle is valid.
            Some(convert) => unsafe { convert(fortran) },
            // MPICH 4: the same number, and a macro.
            None => fortran as u32 as Handle,
        };
        Comm::duplicate_of(&self.library, raw & self.library.handle_mask())
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
