//! Huge pages.

use std::sync::OnceLock;

/// Smaller blocks gain nothing from huge pages.
pub(super) const HUGE_FROM: usize = 1 << 20;

/// The system's setting for transparent huge pages, such as `madvise`; `unknown` if it does not report one. Read once.
pub(crate) fn huge_page_setting() -> &'static str {
    static SETTING: OnceLock<String> = OnceLock::new();
    let read = || std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    SETTING.get_or_init(|| selected(&read()).to_string())
}

/// The word in brackets of a file such as `always [madvise] never`.
fn selected(text: &str) -> &str {
    text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("unknown")
}

/// A note for a plan that takes so many bytes, if it would use huge pages and the system has none.
pub(crate) fn huge_pages_note(bytes: usize) -> Option<String> {
    note(huge_page_setting(), bytes)
}

fn note(setting: &str, bytes: usize) -> Option<String> {
    let missing = setting == "never" && bytes >= HUGE_FROM;
    missing.then(|| format!("huge pages are not available: transparent_hugepage is `{setting}`"))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_large_buffers_notes_that_huge_pages_are_disabled() {
        let expected = "huge pages are not available: transparent_hugepage is `never`";
        assert_eq!(note(selected("always madvise [never]\n"), HUGE_FROM).as_deref(), Some(expected));
        assert_eq!(note(selected("always madvise [never]\n"), HUGE_FROM - 1), None);
        for text in ["always [madvise] never\n", "[always] madvise never\n", ""] {
            assert_eq!(note(selected(text), usize::MAX), None, "{text}");
        }
    }
}
