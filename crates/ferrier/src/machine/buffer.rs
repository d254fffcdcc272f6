//! Memory that a plan owns: aligned, in huge pages where it is large.

use super::pages::HUGE_FROM;
use std::alloc::{Layout as Request, alloc, dealloc};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

use crate::{Error, Real, Result};

const HUGE_PAGE: usize = 2 << 20;
const CACHE_LINE: usize = 64;

/// Memory that the ranks of a node share, zero at first.
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    /// Its destructor releases the memory.
    _owner: Box<dyn Any + Send + Sync>,
}

impl SharedMemory {
    /// `owner` keeps the memory at `start` mapped while it lives.
    pub fn new(start: NonNull<u8>, owner: Box<dyn Any + Send + Sync>) -> SharedMemory {
        SharedMemory { start, _owner: owner }
    }
}

/// An array of scalars, zero at first, aligned to a cache line or a huge page.
pub(crate) struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    /// The shared memory it is in, if any.
    shared: Option<SharedMemory>,
}

// SAFETY: a Buffer owns its memory as a Vec does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above; shared access is read-only.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Real> Buffer<T> {
    fn request(len: usize) -> Option<Request> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let align = if bytes >= HUGE_FROM { HUGE_PAGE } else { CACHE_LINE };
        // Whole cache lines, so that vectors may read to the end of the last.
        Request::from_size_align(bytes.checked_next_multiple_of(CACHE_LINE)?, align).ok()
    }

    /// A block of `len` zeros.
    pub fn new(len: usize, what: &'static str) -> Result<Buffer<T>> {
        let failed = || Error::Memory { bytes: len.saturating_mul(size_of::<T>()), what };
        let request = Self::request(len).ok_or_else(failed)?;
        if request.size() == 0 {
            return Ok(Buffer { start: NonNull::dangling(), len: 0, shared: None });
        }
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc(request) }).ok_or_else(failed)?;
        if request.align() == HUGE_PAGE {
            // SAFETY: the range was allocated above; the advice changes only its page size.
            unsafe { crate::machine::pages::advise_huge_pages(start.as_ptr(), request.size()) };
        }
        // SAFETY: the range was allocated above and is not shared; this touches every page.
        unsafe { start.write_bytes(0, request.size()) };
        Ok(Buffer { start: start.cast(), len, shared: None })
    }

    /// A block of `len` zeros, set by all cores: for large arrays of one rank.
    #[cfg(feature = "cuda")]
    pub fn by_all_cores(len: usize, what: &'static str) -> Result<Buffer<T>> {
        let failed = || Error::Memory { bytes: len.saturating_mul(size_of::<T>()), what };
        let request = Self::request(len).ok_or_else(failed)?;
        if request.align() != HUGE_PAGE {
            return Buffer::new(len, what);
        }
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc(request) }).ok_or_else(failed)?;
        // SAFETY: the range was allocated above; the advice changes only its page size.
        unsafe { crate::machine::pages::advise_huge_pages(start.as_ptr(), request.size()) };
        let share = request.size().div_ceil(crate::machine::info::cores()).next_multiple_of(HUGE_PAGE);
        let base = crate::machine::send_ptr::SendPtr(start.as_ptr());
        std::thread::scope(|scope| {
            for first in (0..request.size()).step_by(share) {
                let bytes = share.min(request.size() - first);
                // SAFETY: disjoint parts of the range that was allocated above.
                scope.spawn(move || unsafe { base.get().add(first).write_bytes(0, bytes) });
            }
        });
        Ok(Buffer { start: start.cast(), len, shared: None })
    }

    /// A block of `len` zeros in the memory that `allocate` returns for its bytes; private memory where that is
    /// `None`.
    ///
    /// # Errors
    /// [`Error::Memory`] and those of `allocate`.
    pub fn shared(
        len: usize,
        what: &'static str,
        allocate: impl FnOnce(usize) -> Result<Option<SharedMemory>>,
    ) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes > isize::MAX as usize / 2 {
            return Err(Error::Memory { bytes, what });
        }
        match allocate(bytes.next_multiple_of(CACHE_LINE))? {
            Some(shared) => Ok(Buffer { start: shared.start.cast(), len, shared: Some(shared) }),
            None => Buffer::new(len, what),
        }
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Pointer to the first scalar.
    pub fn as_ptr(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// All scalars.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `start` points to `len` scalars, which `new` initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All scalars.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} scalars", self.len)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let bytes = (self.len * size_of::<T>()).next_multiple_of(CACHE_LINE);
        if bytes > 0 && self.shared.is_none() {
            let align = if self.len * size_of::<T>() >= HUGE_FROM { HUGE_PAGE } else { CACHE_LINE };
            // SAFETY: the same size and alignment as in `new`.
            unsafe { dealloc(self.start.as_ptr().cast(), Request::from_size_align_unchecked(bytes, align)) };
        }
    }
}
