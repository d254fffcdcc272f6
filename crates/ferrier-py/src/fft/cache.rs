//! Plans that were made before, for the next call of the same kind.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard};

use ferrier::{Comm, LayoutSpec, Plan, Problem, Real, Result, Scale, Sign};

use super::calls::{Call, Strides};

/// Most plans that are kept, and most bytes of all but the last.
const MOST_PLANS: usize = 128;
const MOST_BYTES: usize = 1 << 30;

/// What decides a plan; the precision is that of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub call: Call,
    /// Has the exponent of `forward` the positive sign?
    pub positive: bool,
    /// Do cosines and sines act on complex values?
    pub complex: bool,
    /// Are cosines and sines orthogonal?
    pub ortho: bool,
    pub workers: usize,
}

impl Key {
    pub fn problem(&self) -> Problem {
        let Call { shape, kinds, batch, strides, real_input } = &self.call;
        let scale = if self.ortho { Scale::Symmetric } else { Scale::Unscaled };
        let sign = if self.positive { Sign::Positive } else { Sign::Negative };
        let mut problem = Problem::mixed(*shape, *kinds).batch(*batch).sign(sign).real_input(*real_input);
        if self.complex {
            problem = problem.complex_values();
        }
        let layout = |strides: &Strides, lens| LayoutSpec::slabs(0).order(strides.order(lens));
        if let Some(strides) = &strides[0] {
            problem = problem.input(layout(strides, *shape)).input_strides(strides.of_arrays());
        }
        if let Some(strides) = &strides[1] {
            problem = problem.output(layout(strides, self.call.modes())).output_strides(strides.of_arrays());
        }
        problem.scale_forward(scale).scale_backward(scale)
    }

    fn make<T: Real>(&self) -> Result<Plan<T>> {
        Plan::new(&Comm::one_rank().with_threads(self.workers), &self.problem())
    }
}

/// Idle plans, the least recently used first to go. A plan in use is not here: a second thread with the same key gets
/// a plan of its own.
pub struct Cache<K, P> {
    idle: Mutex<Idle<K, P>>,
}

struct Idle<K, P> {
    plans: HashMap<K, Vec<Kept<P>>>,
    count: usize,
    bytes: usize,
    clock: u64,
}

struct Kept<P> {
    plan: Box<P>,
    bytes: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, P> Cache<K, P> {
    pub fn new() -> Self {
        Cache { idle: Mutex::new(Idle { plans: HashMap::new(), count: 0, bytes: 0, clock: 0 }) }
    }

    /// Runs `work` with a plan of this key; `make` makes one and tells its bytes.
    pub fn with<R>(
        &self,
        key: &K,
        make: impl FnOnce() -> Result<(P, usize)>,
        work: impl FnOnce(&mut P) -> Result<R>,
    ) -> Result<R> {
        let found = self.lock().take(key);
        let mut kept = match found {
            Some(kept) => kept,
            None => {
                let (plan, bytes) = make()?;
                Kept { plan: Box::new(plan), bytes, used: 0 }
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

    fn lock(&self) -> MutexGuard<'_, Idle<K, P>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<K: Clone + Eq + Hash, P> Idle<K, P> {
    fn take(&mut self, key: &K) -> Option<Kept<P>> {
        let kept = self.plans.get_mut(key)?.pop()?;
        self.count -= 1;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    /// Keeps a plan; the plans that must go for it.
    fn put(&mut self, key: &K, mut kept: Kept<P>) -> Vec<Kept<P>> {
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

/// Something that each process makes for itself, when it first needs it.
pub struct PerProcess<T>(AtomicPtr<T>);

impl<T> PerProcess<T> {
    pub const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    pub fn get(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let made = self.0.load(Ordering::Acquire);
        if !made.is_null() {
            // SAFETY: what was made is never freed.
            return unsafe { &*made };
        }
        let new = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: what was made is never freed.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: `new` was made above and has no other reference.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: what was made is never freed.
                unsafe { &*other }
            }
        }
    }

    /// In a process that was just forked: the plans of the parent have threads that are not here, and their locks may be
    /// held by threads that are not here. They are left where they are.
    pub fn leave_to_parent(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// The plans of both precisions.
pub struct Caches<K, S, D> {
    pub single: Cache<K, S>,
    pub double: Cache<K, D>,
}

impl<K: Clone + Eq + Hash, S, D> Caches<K, S, D> {
    pub fn new() -> Self {
        Caches { single: Cache::new(), double: Cache::new() }
    }

    /// Forgets all idle plans and returns their memory: how many, and their bytes.
    pub fn clear(&self) -> (usize, usize) {
        let (single, double) = (self.single.clear(), self.double.clear());
        (single.0 + double.0, single.1 + double.1)
    }
}

static CACHES: PerProcess<Caches<Key, Plan<f32>, Plan<f64>>> = PerProcess::new();

fn caches() -> &'static Caches<Key, Plan<f32>, Plan<f64>> {
    CACHES.get(Caches::new)
}

/// A precision that has a cache.
pub trait Cached: Real {
    fn cache() -> &'static Cache<Key, Plan<Self>>;

    /// Runs `work` with a plan of this key.
    fn with_plan<R>(key: &Key, work: impl FnOnce(&mut Plan<Self>) -> Result<R>) -> Result<R> {
        let make = || {
            key.make::<Self>().map(|plan| {
                let bytes = plan.memory().total();
                (plan, bytes)
            })
        };
        Self::cache().with(key, make, work)
    }
}

impl Cached for f32 {
    fn cache() -> &'static Cache<Key, Plan<f32>> {
        &caches().single
    }
}

impl Cached for f64 {
    fn cache() -> &'static Cache<Key, Plan<f64>> {
        &caches().double
    }
}

/// Forgets all idle plans and returns their memory: how many, and their bytes.
pub fn clear() -> (usize, usize) {
    caches().clear()
}

/// Called in a process that was just forked.
pub fn after_fork() {
    CACHES.leave_to_parent();
}
