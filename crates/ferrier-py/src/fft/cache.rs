//! Plans that were made before, for the next call of the same kind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

use ferrier::{Comm, Plan, Problem, Real, Result, Scale};

use super::calls::Call;

/// Most plans that are kept, and most bytes of all but the last.
const MOST_PLANS: usize = 128;
const MOST_BYTES: usize = 1 << 30;

/// What decides a plan; the precision is that of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub call: Call,
    /// Do cosines and sines act on complex values?
    pub complex: bool,
    /// Are cosines and sines orthogonal?
    pub ortho: bool,
    pub workers: usize,
}

impl Key {
    fn problem(&self) -> Problem {
        let scale = if self.ortho { Scale::Symmetric } else { Scale::Unscaled };
        let problem = Problem::mixed(self.call.shape, self.call.kinds).batch(self.call.batch);
        let problem = if self.complex { problem.complex_values() } else { problem };
        problem.scale_forward(scale).scale_backward(scale)
    }

    fn make<T: Real>(&self) -> Result<Plan<T>> {
        Plan::new(&Comm::one_rank().with_threads(self.workers), &self.problem())
    }
}

/// Idle plans, the least recently used first to go. A plan in use is not here: a second thread with the same key gets
/// a plan of its own.
pub struct Cache<T: Real> {
    idle: Mutex<Idle<T>>,
}

struct Idle<T: Real> {
    plans: HashMap<Key, Vec<Kept<T>>>,
    count: usize,
    bytes: usize,
    clock: u64,
}

struct Kept<T: Real> {
    plan: Box<Plan<T>>,
    bytes: usize,
    used: u64,
}

impl<T: Real> Cache<T> {
    fn new() -> Self {
        Cache { idle: Mutex::new(Idle { plans: HashMap::new(), count: 0, bytes: 0, clock: 0 }) }
    }

    /// Runs `work` with a plan of this key.
    pub fn with<R>(&self, key: &Key, work: impl FnOnce(&mut Plan<T>) -> Result<R>) -> Result<R> {
        let found = self.lock().take(key);
        let mut kept = match found {
            Some(kept) => kept,
            None => {
                let plan = Box::new(key.make::<T>()?);
                let bytes = plan.memory().total();
                Kept { plan, bytes, used: 0 }
            }
        };
        let result = work(&mut kept.plan);
        let evicted = self.lock().put(key, kept);
        drop(evicted);
        result
    }

    /// Forgets all idle plans: how many, and their bytes.
    pub fn clear(&self) -> (usize, usize) {
        let mut idle = self.lock();
        let plans = std::mem::take(&mut idle.plans);
        let counts = (std::mem::take(&mut idle.count), std::mem::take(&mut idle.bytes));
        drop(idle);
        drop(plans);
        counts
    }

    fn lock(&self) -> MutexGuard<'_, Idle<T>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T: Real> Idle<T> {
    fn take(&mut self, key: &Key) -> Option<Kept<T>> {
        let kept = self.plans.get_mut(key)?.pop()?;
        self.count -= 1;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    /// Keeps a plan; the plans that must go for it.
    fn put(&mut self, key: &Key, mut kept: Kept<T>) -> Vec<Kept<T>> {
        self.clock += 1;
        kept.used = self.clock;
        self.count += 1;
        self.bytes += kept.bytes;
        match self.plans.get_mut(key) {
            Some(list) => list.push(kept),
            None => {
                self.plans.insert(key.clone(), vec![kept]);
            }
        }
        let mut evicted = Vec::new();
        while self.count > MOST_PLANS || (self.bytes > MOST_BYTES && self.count > 1) {
            let oldest = self.plans.iter().filter_map(|(key, list)| Some((list.first()?.used, key)));
            let Some((_, key)) = oldest.min_by_key(|(used, _)| *used) else { break };
            let key = key.clone();
            let Some(list) = self.plans.get_mut(&key) else { break };
            let gone = list.remove(0);
            if list.is_empty() {
                self.plans.remove(&key);
            }
            self.count -= 1;
            self.bytes -= gone.bytes;
            evicted.push(gone);
        }
        evicted
    }
}

/// The caches of both precisions.
pub struct Caches {
    single: Cache<f32>,
    double: Cache<f64>,
}

static CACHES: AtomicPtr<Caches> = AtomicPtr::new(std::ptr::null_mut());

/// The caches of this process.
fn caches() -> &'static Caches {
    let made = CACHES.load(Ordering::Acquire);
    if !made.is_null() {
        // SAFETY: caches are never freed.
        return unsafe { &*made };
    }
    let new = Box::into_raw(Box::new(Caches { single: Cache::new(), double: Cache::new() }));
    match CACHES.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: caches are never freed.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: `new` was made above and has no other reference.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: caches are never freed.
            unsafe { &*other }
        }
    }
}

/// A precision that has a cache.
pub trait Cached: Real {
    fn cache() -> &'static Cache<Self>;
}

impl Cached for f32 {
    fn cache() -> &'static Cache<f32> {
        &caches().single
    }
}

impl Cached for f64 {
    fn cache() -> &'static Cache<f64> {
        &caches().double
    }
}

/// Forgets all idle plans and returns their memory: how many, and their bytes.
pub fn clear() -> (usize, usize) {
    let (single, double) = (f32::cache().clear(), f64::cache().clear());
    (single.0 + double.0, single.1 + double.1)
}

/// In a process that was just forked: the plans of the parent have threads that are not here, and their locks may be
/// held by threads that are not here. They are left where they are.
pub fn leave_to_parent() {
    CACHES.store(std::ptr::null_mut(), Ordering::Release);
}
