//! Communicators.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::Handle;
use crate::error::{Error, Result};
use crate::ffi::Int;
use crate::library::Library;

/// A group of ranks that communicate with each other. Clones are handles on the
/// same communicator; the last one frees it.
///
/// Its error handler is set to return errors.
#[derive(Clone)]
pub struct Comm {
    shared: Arc<CommHandle>,
}

struct CommHandle {
    mpi: Arc<Library>,
    raw: Handle,
    rank: usize,
    size: usize,
    /// To be freed on drop: all but `MPI_COMM_WORLD`.
    owned: bool,
}

impl Comm {
    pub(crate) fn world(mpi: &Arc<Library>) -> Result<Comm> {
        if mpi.initialised_here() {
            Comm::wrap(mpi, mpi.h.comm_world, false)
        } else {
            Comm::duplicate_of(mpi, mpi.h.comm_world)
        }
    }

    pub(crate) fn duplicate_of(mpi: &Arc<Library>, raw: Handle) -> Result<Comm> {
        let made = Comm::made_by(mpi, "MPI_Comm_dup", |new| {
            // SAFETY: `raw` is a valid communicator, the out-parameter is valid.
            unsafe { (mpi.calls().comm_dup)(raw, new) }
        })?;
        made.ok_or_else(|| Error::Argument("the null communicator has no ranks".into()))
    }

    /// A communicator that a call makes; `None` where this rank is not in it.
    fn made_by(
        mpi: &Arc<Library>,
        call: &'static str,
        make: impl FnOnce(*mut Handle) -> Int,
    ) -> Result<Option<Comm>> {
        let mut raw = 0;
        {
            let _guard = mpi.enter()?;
            mpi.check(call, make(&mut raw))?;
        }
        raw &= mpi.handle_mask();
        if raw == mpi.h.comm_null {
            return Ok(None);
        }
        mpi.communicators.fetch_add(1, Ordering::Relaxed);
        Comm::wrap(mpi, raw, true).map(Some)
    }

    fn wrap(mpi: &Arc<Library>, raw: Handle, owned: bool) -> Result<Comm> {
        // Constructed first, so that an error below frees the communicator.
        let mut shared = CommHandle { mpi: mpi.clone(), raw, rank: 0, size: 0, owned };
        let (mut rank, mut size) = (0, 0);
        {
            let _guard = mpi.enter()?;
            mpi.return_errors(raw)?;
            // SAFETY: a valid communicator and out-parameters.
            mpi.check("MPI_Comm_rank", unsafe { (mpi.calls().comm_rank)(raw, &mut rank) })?;
            // SAFETY: as above.
            mpi.check("MPI_Comm_size", unsafe { (mpi.calls().comm_size)(raw, &mut size) })?;
        }
        shared.rank = rank as usize;
        shared.size = size as usize;
        Ok(Comm { shared: Arc::new(shared) })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.shared.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Its raw handle, for code that calls MPI itself. Valid while a clone of
    /// this communicator lives.
    pub fn raw(&self) -> Handle {
        self.shared.raw
    }

    /// The same ranks; messages of one never match those of the other.
    /// Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn duplicate(&self) -> Result<Comm> {
        Comm::duplicate_of(&self.shared.mpi, self.shared.raw)
    }

    /// Ranks that gave the same colour, ordered by key, then by rank; `None`
    /// for those that gave no colour. Collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where a colour or key exceeds 2^31 - 1; those of MPI.
    pub fn split(&self, color: Option<usize>, key: usize) -> Result<Option<Comm>> {
        let mpi = &self.shared.mpi;
        let small = |what, value| {
            Int::try_from(value)
                .map_err(|_| Error::Argument(format!("{what} {value} does not fit in 31 bits")))
        };
        let color = color.map_or(Ok(mpi.abi.undefined), |color| small("colour", color))?;
        let key = small("key", key)?;
        Comm::made_by(mpi, "MPI_Comm_split", |new| {
            // SAFETY: a valid communicator and out-parameter.
            unsafe { (mpi.calls().comm_split)(self.shared.raw, color, key, new) }
        })
    }

    /// Ranks that share this one's memory: those of its node, in order of
    /// rank. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn split_node(&self) -> Result<Comm> {
        let mpi = &self.shared.mpi;
        let made = Comm::made_by(mpi, "MPI_Comm_split_type", |new| {
            let kind = mpi.abi.comm_type_shared;
            // SAFETY: a valid communicator and out-parameter; a null info is allowed.
            unsafe { (mpi.calls().comm_split_type)(self.shared.raw, kind, 0, mpi.h.info_null, new) }
        })?;
        made.ok_or_else(|| Error::Argument("MPI_Comm_split_type left this rank out".into()))
    }

    /// Ends all processes of the launch with exit code `code`; at least this one,
    /// where `MPI_Abort` returns.
    pub fn abort(&self, code: i32) -> ! {
        let mpi = &self.shared.mpi;
        // The world, not this communicator: MPICH 4 does not end the other ranks of a duplicate.
        // SAFETY: a valid communicator; this call may be made from any thread that MPI allows.
        unsafe { (mpi.calls().abort)(mpi.h.comm_world, code) };
        std::process::exit(if code == 0 { 1 } else { code })
    }

    /// Makes progress on all operations in flight, puts of other ranks into windows
    /// included. Not collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn progress(&self) -> Result<()> {
        let mpi = &self.shared.mpi;
        let _guard = mpi.enter()?;
        let mut flag = 0;
        // SAFETY: a valid communicator and out-parameters; whether a message is there does not matter.
        let code = unsafe {
            (mpi.calls().iprobe)(mpi.abi.any_source, 0, self.raw(), &mut flag, mpi.status_ignore())
        };
        mpi.check("MPI_Iprobe", code)
    }

    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.shared.mpi
    }

    /// A rank of this communicator in MPI's type.
    pub(crate) fn peer(&self, rank: usize) -> Result<Int> {
        if rank < self.size() {
            Ok(rank as Int)
        } else {
            Err(Error::Argument(format!("rank {rank} of a communicator of {} ranks", self.size())))
        }
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} (MPI)", self.rank(), self.size())
    }
}

impl Drop for CommHandle {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // An error means that MPI is finalized and has freed it, or the job ends.
        if let Ok(_guard) = self.mpi.enter() {
            let mut raw = self.raw;
            // SAFETY: an owned communicator, and this is the last handle on it. Pending
            // messages keep it alive inside MPI.
            unsafe { (self.mpi.calls().comm_free)(&mut raw) };
            self.mpi.communicators.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
