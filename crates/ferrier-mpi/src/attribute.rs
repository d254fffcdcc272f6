//! Values that are kept with communicators of the host program, as attributes.
//!
//! The attribute is a number; the values are in a table here. They are dropped
//! when the host frees the communicator, and all of them when it finalizes MPI:
//! an attribute of `MPI_COMM_SELF` is deleted first then, while MPI still works.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::Handle;
use crate::error::Result;
use crate::ffi::{DeleteAttribute, Int};
use crate::library::Library;

/// By the number of the communicator: in the order in which they were kept, which is the same on every rank.
type Values = BTreeMap<(usize, TypeId), Box<dyn Any + Send>>;

/// Never locked during a call of MPI: the functions below lock it inside such calls.
static KEPT: Mutex<(usize, Values)> = Mutex::new((0, Values::new()));

/// The key of the attributes, created at first use.
static KEY: Mutex<Option<Int>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Duplicates of a communicator begin without attributes.
extern "C" fn not_copied(
    _: Handle,
    _: Int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut Int,
) -> Int {
    // SAFETY: MPI passes a valid out-parameter.
    unsafe { *flag = 0 };
    0
}

/// A communicator is freed.
extern "C" fn freed(_: Handle, _: Int, attribute: *mut c_void, _: *mut c_void) -> Int {
    let number = attribute as usize;
    forget(|(kept, _)| *kept == number)
}

/// MPI is being finalized.
extern "C" fn finalized(_: Handle, _: Int, _: *mut c_void, _: *mut c_void) -> Int {
    forget(|_| true)
}

/// Drops values outside the lock: dropping them calls MPI.
fn forget(which: impl Fn(&(usize, TypeId)) -> bool) -> Int {
    let gone: Values = {
        let values = &mut lock(&KEPT).1;
        let (gone, rest) = std::mem::take(values).into_iter().partition(|(key, _)| which(key));
        *values = rest;
        gone
    };
    Int::from(catch_unwind(AssertUnwindSafe(|| drop(gone))).is_err())
}

/// The key; `None` before anything was kept.
fn key() -> Option<Int> {
    *lock(&KEY)
}

fn make_key(mpi: &Library) -> Result<Int> {
    let mut key = lock(&KEY);
    if let Some(key) = *key {
        return Ok(key);
    }
    let create = |delete: DeleteAttribute| {
        let mut made = 0;
        // SAFETY: functions of the types of the standard, which live as long as the process.
        let code =
            unsafe { (mpi.calls().comm_create_keyval)(not_copied, delete, &mut made, ptr::null_mut()) };
        mpi.check("MPI_Comm_create_keyval", code).map(|()| made)
    };
    let (made, end) = (create(freed)?, create(finalized)?);
    // SAFETY: a communicator that always exists, and the key just made.
    let code = unsafe { (mpi.calls().comm_set_attr)(mpi.h.comm_self, end, ptr::null_mut()) };
    mpi.check("MPI_Comm_set_attr", code)?;
    *key = Some(made);
    Ok(made)
}

/// The number of a communicator that something was kept with.
fn number_of(mpi: &Library, raw: Handle, key: Int) -> Result<Option<usize>> {
    let (mut attribute, mut flag) = (ptr::null_mut::<c_void>(), 0);
    // SAFETY: a valid communicator (`kept` and `keep`'s contract), key and out-parameters.
    let code = unsafe { (mpi.calls().comm_get_attr)(raw, key, &mut attribute, &mut flag) };
    mpi.check("MPI_Comm_get_attr", code)?;
    Ok((flag != 0).then_some(attribute as usize))
}

/// What [`keep`] has stored; not collective.
///
/// # Safety
/// `raw` is a valid communicator.
pub(crate) unsafe fn kept<V: Clone + Send + 'static>(mpi: &Library, raw: Handle) -> Result<Option<V>> {
    let _guard = mpi.enter()?;
    let Some(number) = key().map(|key| number_of(mpi, raw, key)).transpose()?.flatten() else {
        return Ok(None);
    };
    let kept = lock(&KEPT);
    Ok(kept.1.get(&(number, TypeId::of::<V>())).and_then(|value| value.downcast_ref()).cloned())
}

/// Keeps a value until the communicator is freed or MPI finalized.
///
/// # Safety
/// `raw` is a valid communicator.
pub(crate) unsafe fn keep<V: Clone + Send + 'static>(mpi: &Library, raw: Handle, value: V) -> Result<()> {
    let guard = mpi.enter()?;
    let key = make_key(mpi)?;
    let number = match number_of(mpi, raw, key)? {
        Some(number) => number,
        None => {
            let number = {
                let mut kept = lock(&KEPT);
                kept.0 += 1;
                kept.0
            };
            // SAFETY: a valid communicator and key.
            let code = unsafe { (mpi.calls().comm_set_attr)(raw, key, ptr::without_provenance_mut(number)) };
            mpi.check("MPI_Comm_set_attr", code)?;
            number
        }
    };
    let before = lock(&KEPT).1.insert((number, TypeId::of::<V>()), Box::new(value));
    // Dropping calls MPI, and so does not happen under its lock.
    drop(guard);
    drop(before);
    Ok(())
}
