//! Handles of objects.
//!
//! A handle is a number in the shape of a pointer: never an address, never used twice. The objects are in a table. So
//! a handle that was destroyed, or never was one, is always recognised, and destroying an object that another thread
//! uses frees it when that thread is done.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use crate::status::{Failure, Outcome, Status};

/// A kind of object that C holds handles of.
pub trait Object: Send + Sync + 'static {
    /// The word for it in messages.
    const NAME: &'static str;
    /// Part of its handles, different for each kind.
    const TAG: usize;
}

/// A handle of an object of kind `K`, as C has it: anything at all.
#[repr(transparent)]
pub struct Handle<K>(*mut K);

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Handle<K> {}

/// Not an address of this process on any 64-bit machine that we know; its lowest bytes are the tag.
const MARK: usize = 0xFE << 56;
const TAG_BITS: u32 = 8;

type Table = HashMap<usize, Arc<dyn Any + Send + Sync>>;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);
static MADE: AtomicUsize = AtomicUsize::new(1);

impl<K: Object> Handle<K> {
    /// No object.
    pub const NULL: Handle<K> = Handle(std::ptr::null_mut());

    /// Puts an object into the table.
    pub(crate) fn new(object: K) -> Handle<K> {
        let number = MARK | MADE.fetch_add(1, Ordering::Relaxed) << TAG_BITS | K::TAG;
        TABLE.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(object));
        Handle(std::ptr::without_provenance_mut(number))
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The object; `name` is that of the argument.
    pub(crate) fn get(self, name: &str) -> Outcome<Arc<K>> {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        let found = table.get(&self.0.addr()).cloned();
        drop(table);
        found.and_then(|object| object.downcast().ok()).ok_or_else(|| self.unknown(name))
    }

    /// Takes the object out of the table.
    pub(crate) fn take(self, name: &str) -> Outcome<Arc<K>> {
        let object = self.get(name)?;
        TABLE.write().unwrap_or_else(PoisonError::into_inner).remove(&self.0.addr());
        Ok(object)
    }

    /// Destroys the object; nothing for NULL.
    pub(crate) fn destroy(self, name: &str) -> Outcome {
        if self.is_null() {
            return Ok(());
        }
        // Dropped outside the lock: objects may take long to go.
        self.take(name).map(drop)
    }

    fn unknown(self, name: &str) -> Failure {
        let article = if K::NAME.starts_with(['a', 'o']) { "an" } else { "a" };
        let (kind, number) = (format!("{article} {}", K::NAME), self.0.addr());
        let ours = number & MARK == MARK && (number & !MARK) >> TAG_BITS < MADE.load(Ordering::Relaxed);
        let message = if self.is_null() {
            format!("argument `{name}` is NULL, {kind} was expected")
        } else if !ours {
            format!("argument `{name}` is not a handle of this library, {kind} was expected")
        } else if number & ((1 << TAG_BITS) - 1) == K::TAG {
            format!("argument `{name}` is {kind} that was destroyed")
        } else {
            format!("argument `{name}` is a handle of another kind, {kind} was expected")
        };
        Failure::new(Status::Handle, message)
    }
}

/// Locks an object for one call; another thread that uses it is the caller's error.
pub(crate) fn locked<'a, T: ?Sized>(mutex: &'a Mutex<T>, name: &str) -> Outcome<MutexGuard<'a, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        // A call that panicked has returned FERRIER_STATUS_PANIC; the object is as it left it.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::argument(name, "is in use by another call: one thread at a time may use it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;
    struct Two;
    impl Object for One {
        const NAME: &'static str = "thing";
        const TAG: usize = 201;
    }
    impl Object for Two {
        const NAME: &'static str = "two";
        const TAG: usize = 202;
    }

    fn refused<K: Object>(handle: Handle<K>) -> String {
        match handle.get("it") {
            Ok(_) => panic!("not refused"),
            Err(failure) => {
                assert_eq!(failure.status(), Status::Handle);
                format!("{failure:?}")
            }
        }
    }

    #[test]
    fn what_is_no_handle_is_recognised() {
        let handle = Handle::new(One);
        assert!(handle.get("it").is_ok());
        let other = Handle::<Two>(handle.0.cast());
        assert!(refused(other).contains("another kind"));
        assert!(refused(Handle::<One>::NULL).contains("is NULL, a thing was expected"));
        let local = 5_u64;
        for address in [&raw const local as usize, 1, usize::MAX, MARK | usize::MAX >> 10] {
            let foreign = Handle::<One>(std::ptr::without_provenance_mut(address));
            assert!(refused(foreign).contains("not a handle of this library"), "{address:#x}");
        }
        handle.destroy("it").expect("alive");
        assert!(refused(handle).contains("a thing that was destroyed"));
        assert!(handle.destroy("it").is_err() && Handle::<One>::NULL.destroy("it").is_ok());
    }

    #[test]
    fn one_thread_at_a_time() {
        let mutex = Mutex::new(1);
        let held = locked(&mutex, "plan").expect("free");
        assert!(locked(&mutex, "plan").is_err());
        drop(held);
        assert!(locked(&mutex, "plan").is_ok());
    }
}
