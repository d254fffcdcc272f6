//! Neither encoding nor decoding allocates.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{data, names};
use ferrier_codec::{Scalar, codec};

struct Counting;

thread_local! {
    /// Allocations of this thread: the test harness allocates on others.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: `alloc`'s contract: the layout has a nonzero size.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `dealloc`'s contract: `at` was allocated by `alloc` above with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count<T: Scalar>() {
    for name in names::<T>() {
        for kind in 0..common::KINDS {
            let codec = codec::<T>(&name).expect("a codec");
            let values = data::<T>(kind, 1000);
            let mut bytes = vec![0; codec.max_bytes(1000)];
            let mut scratch = vec![0; codec.scratch(1000)];
            let mut back = vec![T::default(); 1000];
            let before = CALLS.get();
            let encoded = codec.encode(&values, &mut bytes, &mut scratch);
            let result = codec.decode(&bytes[..encoded.bytes], &mut back, &mut scratch);
            assert_eq!(CALLS.get() - before, 0, "{name}, data of kind {kind}");
            result.expect("what was encoded");
        }
    }
}

#[test]
fn nothing_is_allocated() {
    count::<f64>();
    count::<f32>();
}
