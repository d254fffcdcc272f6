//! Memory that several processes map: an anonymous file (`memfd`) that one
//! process creates and the others open through `/proc`.
//!
//! It uses no space of `/dev/shm`. The system frees it when the last process
//! has unmapped it or ended; unmapping is not collective.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

/// Parts of ranks are aligned to pages, large ones to huge pages.
pub(super) const PAGE: usize = 4096;
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// Since Linux 6.1; not every C library defines it.
const MADV_COLLAPSE: libc::c_int = 25;

/// An anonymous file of this length.
pub(super) fn create(bytes: usize) -> io::Result<File> {
    // SAFETY: the name ends with a zero; the new descriptor has no other owner.
    let file = unsafe {
        let descriptor = libc::memfd_create(c"ferrier".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor)
    };
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// The file that another process of this machine has open as this descriptor.
pub(super) fn open(process: u64, descriptor: u64) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{process}/fd/{descriptor}"))
}

/// A mapped file. Other processes write to it, so it is accessed by pointer only.
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address range that stays mapped as long as this lives.
unsafe impl Send for Mapping {}
// SAFETY: as above; users of the pointer synchronise their accesses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of a file, at an address where huge pages can be.
    pub fn new(file: &File, bytes: usize) -> io::Result<Mapping> {
        let length = file.metadata()?.len();
        if length < bytes as u64 {
            return Err(io::Error::other(format!("the shared file has {length} bytes instead of {bytes}")));
        }
        let (none, shared) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, libc::MAP_SHARED);
        let failed = |address: *mut libc::c_void| address == libc::MAP_FAILED;
        // SAFETY: reserves a new range, maps the file inside it, and unmaps the rest of the range on both sides.
        unsafe {
            let reservation = bytes + HUGE_PAGE;
            let reserved = libc::mmap(std::ptr::null_mut(), reservation, libc::PROT_NONE, none, -1, 0);
            if failed(reserved) {
                return Err(io::Error::last_os_error());
            }
            let start = (reserved as usize).next_multiple_of(HUGE_PAGE);
            let (before, end) = (start - reserved as usize, reserved as usize + reservation);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let at = start as *mut libc::c_void;
            if failed(libc::mmap(at, bytes, access, shared | libc::MAP_FIXED, file.as_raw_fd(), 0)) {
                let error = io::Error::last_os_error();
                libc::munmap(reserved, reservation);
                return Err(error);
            }
            if before > 0 {
                libc::munmap(reserved, before);
            }
            let used = start + bytes.next_multiple_of(PAGE);
            if end > used {
                libc::munmap(used as *mut libc::c_void, end - used);
            }
            let mapping = Mapping { start: NonNull::new_unchecked(at.cast()), bytes };
            crate::machine::advise_huge_pages(mapping.start.as_ptr(), bytes);
            Ok(mapping)
        }
    }

    /// Allocates the pages of a part now, so that they are local to this process,
    /// and a lack of memory is an error instead of a signal.
    pub fn populate(&self, at: usize, bytes: usize) -> io::Result<()> {
        assert!(at + bytes <= self.bytes && at.is_multiple_of(PAGE), "a part of the mapping");
        if at.is_multiple_of(HUGE_PAGE) && huge_pages_allowed() {
            self.populate_huge(at, bytes - bytes % HUGE_PAGE)?;
        }
        self.advise(at, bytes, libc::MADV_POPULATE_WRITE).or_else(|error| match error.raw_os_error() {
            // Linux before 5.14: pages are allocated at the first access.
            Some(libc::EINVAL) => Ok(()),
            _ => Err(error),
        })
    }

    /// Allocates huge pages, as far as available. By default most systems use none
    /// for shared files (`shmem_enabled` is `never`), but collapse allocated
    /// pages on request (since Linux 6.1): one small page of each huge page is
    /// enough for that.
    fn populate_huge(&self, at: usize, bytes: usize) -> io::Result<()> {
        for start in (at..at + bytes).step_by(HUGE_PAGE) {
            match self.advise(start, PAGE, libc::MADV_POPULATE_WRITE) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
                outcome => outcome?,
            }
        }
        // Refused where no huge pages are available; small pages are used then.
        let _ = self.advise(at, bytes, MADV_COLLAPSE);
        Ok(())
    }

    fn advise(&self, at: usize, bytes: usize, advice: libc::c_int) -> io::Result<()> {
        assert!(at + bytes <= self.bytes, "a part of the mapping");
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: inside the mapping, as just checked; the advice changes no contents.
        match unsafe { libc::madvise(self.start.as_ptr().add(at).cast(), bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Frees the pages while the range stays mapped.
    pub fn discard(&self) {
        // SAFETY: our range; processes that still map it do not access it any more.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_REMOVE) };
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our range; `self` owned the last pointer to it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// `MADV_COLLAPSE` ignores the system's setting; this respects it.
fn huge_pages_allowed() -> bool {
    matches!(crate::machine::huge_page_setting(), "always" | "madvise")
}

/// Bytes that can still be shared.
pub(super) fn available() -> u64 {
    // A limit set by the user, such as to leave memory for other programs.
    let limit = std::env::var("FERRIER_SHARED_LIMIT").ok().and_then(|text| text.parse().ok());
    crate::machine::memory_left().min(limit.unwrap_or(u64::MAX))
}
