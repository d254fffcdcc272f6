//! Plans of this library, known by their addresses.
//!
//! `fftw_execute` and `fftw_destroy_plan` get plans of this library and of FFTW's. A plan of this library is the address
//! of a slot in a static array, so that one comparison tells them apart, and a plan that was destroyed is noticed.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Plans that can exist at once.
const SLOTS: usize = 1 << 16;

/// The slots of one precision.
pub struct Registry<P> {
    slots: [AtomicPtr<P>; SLOTS],
    /// Where the search for a free slot begins.
    hint: AtomicUsize,
}

impl<P> Registry<P> {
    /// Without plans.
    #[expect(clippy::new_without_default, reason = "for statics")]
    pub const fn new() -> Registry<P> {
        Registry { slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS], hint: AtomicUsize::new(0) }
    }

    /// Keeps a plan; its address for the caller, or `None` where all slots are taken.
    pub fn insert(&'static self, plan: P) -> Option<*mut c_void> {
        let plan = Box::into_raw(Box::new(plan));
        let start = self.hint.load(Ordering::Relaxed);
        for step in 0..SLOTS {
            let at = (start + step) % SLOTS;
            let slot = &self.slots[at];
            if slot.compare_exchange(ptr::null_mut(), plan, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.hint.store((at + 1) % SLOTS, Ordering::Relaxed);
                return Some(ptr::from_ref(slot).cast_mut().cast());
            }
        }
        // SAFETY: made above, and not published.
        drop(unsafe { Box::from_raw(plan) });
        None
    }

    /// The slot that an address is; `None` for plans of others.
    fn slot(&'static self, address: *const c_void) -> Option<&'static AtomicPtr<P>> {
        let offset = (address as usize).checked_sub(self.slots.as_ptr() as usize)?;
        let size = size_of::<AtomicPtr<P>>();
        self.slots.get(offset / size).filter(|_| offset.is_multiple_of(size))
    }

    /// The plan at an address: the outer `None` for plans of others, the inner one for plans that were destroyed.
    pub fn get(&'static self, address: *const c_void) -> Option<Option<*mut P>> {
        let plan = self.slot(address)?.load(Ordering::Acquire);
        Some((!plan.is_null()).then_some(plan))
    }

    /// Takes the plan out, to be dropped; as [`get`](Self::get).
    ///
    /// # Safety
    /// No call uses it.
    pub unsafe fn remove(&'static self, address: *const c_void) -> Option<Option<Box<P>>> {
        let plan = self.slot(address)?.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `insert`, taken out once.
        Some((!plan.is_null()).then(|| unsafe { Box::from_raw(plan) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_plans_and_those_that_were_destroyed() {
        static PLANS: Registry<u64> = Registry::new();
        let (a, b) = (PLANS.insert(1).unwrap(), PLANS.insert(2).unwrap());
        assert_ne!(a, b);
        let other = 7_u64;
        assert_eq!(PLANS.get(ptr::from_ref(&other).cast()), None);
        assert_eq!(PLANS.get(ptr::null()), None);
        assert_eq!(PLANS.get(a.cast::<u8>().wrapping_add(1).cast()), None);
        // SAFETY: nothing uses them.
        unsafe {
            assert_eq!(*PLANS.get(b).unwrap().unwrap(), 2);
            assert_eq!(PLANS.remove(a), Some(Some(Box::new(1))));
            assert_eq!(PLANS.get(a), Some(None));
            assert_eq!(PLANS.remove(a), Some(None));
            assert_eq!(PLANS.remove(b), Some(Some(Box::new(2))));
        }
    }
}
