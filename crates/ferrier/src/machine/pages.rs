//! Huge pages.

/// Asks the system for huge pages; does nothing if it has none.
///
/// # Safety
/// The range is allocated and belongs to the caller.
pub(crate) unsafe fn advise_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: by this function's contract the range is allocated and the caller's; MADV_HUGEPAGE does not change its
    // contents.
    unsafe {
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}
