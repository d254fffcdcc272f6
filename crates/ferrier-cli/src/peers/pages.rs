//! Arrays for peers, on huge pages where the system has them.

use std::ptr::NonNull;

use crate::failure::{Failure, Outcome, io_text};
use crate::parts::Number;

const HUGE: usize = 2 << 20;

/// Zeroed memory that begins at a multiple of 2 MiB.
pub struct Pages {
    map: NonNull<u8>,
    map_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Takes memory and touches it, so that no page is missing when time counts.
    ///
    /// # Errors
    /// There is not so much.
    pub fn new(bytes: usize) -> Outcome<Self> {
        let map_bytes = bytes.next_multiple_of(HUGE) + HUGE;
        // SAFETY: a fresh anonymous mapping; nothing else is at stake.
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
        // SAFETY: the range lies in the mapping. Advice may be refused; that is no error.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes.next_multiple_of(HUGE), libc::MADV_HUGEPAGE);
        }
        // SAFETY: as above.
        unsafe {
            std::ptr::write_bytes(start.as_ptr(), 0, bytes);
        }
        Ok(Pages { map, map_bytes, start, bytes })
    }

    /// Where it begins.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All of it as numbers.
    pub fn numbers_mut<T: Number>(&mut self) -> &mut [T] {
        // SAFETY: aligned, initialised, every bit pattern is a `T`, and
        // borrowed mutably from its owner.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe {
            libc::munmap(self.map.as_ptr().cast(), self.map_bytes);
        }
    }
}
