//! Memory that several processes map: an anonymous file (`memfd`) that one
//! of them makes and the others open through `/proc`.
//!
//! It needs no room in `/dev/shm`, is gone when the last process has unmapped
//! it, whatever became of them, and unmapping takes nobody's help.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

/// Parts of ranks begin on a page, large ones on a huge page.
pub(super) const PAGE: usize = 4096;
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// Of Linux 6.1; not every C library knows it.
const MADV_COLLAPSE: libc::c_int = 25;

/// A file without a name, as long as asked for.
pub(super) fn create(bytes: usize) -> io::Result<File> {
    // SAFETY: the name ends with a zero; a new descriptor belongs to nobody else.
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

/// The file that another process of this machine has open under a number.
pub(super) fn open(process: u64, descriptor: u64) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{process}/fd/{descriptor}"))
}

/// A mapped file. Others write to it: it is reached by pointer only.
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address range that stays mapped as long as this lives.
unsafe impl Send for Mapping {}
// SAFETY: as above; who uses the pointers orders the accesses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of a file, at an address where huge pages can be.
    pub fn new(file: &File, bytes: usize) -> io::Result<Mapping> {
        let length = file.metadata()?.len();
        if length < bytes as u64 {
            return Err(io::Error::other(format!("a file of {length} bytes instead of {bytes}")));
        }
        let (none, shared) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, libc::MAP_SHARED);
        let failed = |address: *mut libc::c_void| address == libc::MAP_FAILED;
        // SAFETY: a fresh range is reserved, the file is put inside it, and what
        // is left of it on both sides is given back.
        unsafe {
            let room = bytes + HUGE_PAGE;
            let reserved = libc::mmap(std::ptr::null_mut(), room, libc::PROT_NONE, none, -1, 0);
            if failed(reserved) {
                return Err(io::Error::last_os_error());
            }
            let start = (reserved as usize).next_multiple_of(HUGE_PAGE);
            let (before, end) = (start - reserved as usize, reserved as usize + room);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let at = start as *mut libc::c_void;
            if failed(libc::mmap(at, bytes, access, shared | libc::MAP_FIXED, file.as_raw_fd(), 0)) {
                let error = io::Error::last_os_error();
                libc::munmap(reserved, room);
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

    /// Takes the pages of a part now, so that they lie near this process, and
    /// memory that is not there is an error, not the end of the process.
    pub fn populate(&self, at: usize, bytes: usize) -> io::Result<()> {
        assert!(at + bytes <= self.bytes && at.is_multiple_of(PAGE), "a part of the mapping");
        if at.is_multiple_of(HUGE_PAGE) && huge_pages_allowed() {
            self.populate_huge(at, bytes - bytes % HUGE_PAGE)?;
        }
        self.advise(at, bytes, libc::MADV_POPULATE_WRITE).or_else(|error| match error.raw_os_error() {
            // Linux before 5.14. Where the memory is there, the first touch will do.
            Some(libc::EINVAL) => Ok(()),
            _ => Err(error),
        })
    }

    /// Takes huge pages, as far as there are any. Most systems give none to
    /// shared files by themselves (`shmem_enabled` is `never`), but do when
    /// asked to join the pages that are there (since Linux 6.1): one small page
    /// of each is enough for that, the rest of it is zeros.
    fn populate_huge(&self, at: usize, bytes: usize) -> io::Result<()> {
        for start in (at..at + bytes).step_by(HUGE_PAGE) {
            match self.advise(start, PAGE, libc::MADV_POPULATE_WRITE) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
                outcome => outcome?,
            }
        }
        // Refused where there are none, and then small pages do.
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

    /// Gives the pages back while the range stays mapped: nobody needs them.
    pub fn discard(&self) {
        // SAFETY: our range; who still maps it does not look at it any more.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_REMOVE) };
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our range, used by nobody any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Those asked for by hand come even where the system is set to give none: that is respected.
fn huge_pages_allowed() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|text| !text.contains("[never]"))
}

/// Bytes that may still be shared.
pub(super) fn available() -> u64 {
    // A limit that the user sets, such as to leave room for other programs.
    let limit = std::env::var("FERRIER_SHARED_LIMIT").ok().and_then(|text| text.parse().ok());
    crate::machine::memory_left().min(limit.unwrap_or(u64::MAX))
}
