//! The arrays of a peer, on huge pages if the system supports them.

use std::ptr::NonNull;

use ferrier::Real;

use super::problem::PeerProblem;
use crate::failure::{Failure, Outcome, io_text};

/// The arrays of a peer, on the same kind of pages as Ferrier's.
pub struct Arena {
    /// The input.
    pub(super) input: Pages,
    /// The spectrum of transforms out of place.
    pub(super) output: Pages,
    /// Input and spectrum of transforms in place, if the transform can run in place.
    pub(super) in_place: Option<Pages>,
}

impl Arena {
    /// Allocates the arrays.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(problem: &PeerProblem) -> Outcome<Self> {
        let bytes = problem.precision.bytes() * problem.batch;
        let spectrum = || Pages::new(bytes * problem.strides_out()[3]);
        Ok(Arena {
            input: Pages::new(bytes * problem.strides_in(false)[3])?,
            output: spectrum()?,
            in_place: problem.fits_in_place().then(spectrum).transpose()?,
        })
    }

    /// Addresses of input and output.
    pub(super) fn addresses(&self, in_place: bool) -> (*mut u8, *mut u8) {
        match &self.in_place {
            Some(pages) if in_place => (pages.address(), pages.address()),
            _ => (self.input.address(), self.output.address()),
        }
    }
}

const HUGE: usize = 2 << 20;

/// Zeroed memory that begins at a multiple of 2 MiB.
pub struct Pages {
    map: NonNull<u8>,
    map_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps memory and touches every page, so that no page fault is part of a timing.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(bytes: usize) -> Outcome<Self> {
        let map_bytes = bytes.next_multiple_of(HUGE) + HUGE;
        // SAFETY: a new anonymous mapping at an address that the system chooses; it overlaps nothing.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                map_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if map == libc::MAP_FAILED {
            let why = io_text(&std::io::Error::last_os_error());
            return Err(Failure::new(format!("no memory for a peer's array of {bytes} bytes: {why}")));
        }
        let map = NonNull::new(map.cast::<u8>()).expect("mmap does not give null");
        let skip = map.as_ptr().align_offset(HUGE);
        // SAFETY: the mapping is longer than `bytes` by HUGE, and `skip` is below that.
        let start = unsafe { map.add(skip) };
        #[cfg(target_os = "linux")]
        // SAFETY: the range lies in the mapping. The system may refuse the advice, which is no error.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes.next_multiple_of(HUGE), libc::MADV_HUGEPAGE);
        }
        // SAFETY: `bytes` bytes from `start` lie in the mapping, which nothing else refers to yet.
        unsafe {
            std::ptr::write_bytes(start.as_ptr(), 0, bytes);
        }
        Ok(Pages { map, map_bytes, start, bytes })
    }

    /// The address of the first byte.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All of it as scalars.
    pub fn scalars_mut<T: Real>(&mut self) -> &mut [T] {
        // SAFETY: `start` is aligned to 2 MiB and its bytes are initialised; `Real` is sealed to
        // `f32` and `f64`, of which every bit pattern is valid; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, and no reference to it is left.
        unsafe {
            libc::munmap(self.map.as_ptr().cast(), self.map_bytes);
        }
    }
}
