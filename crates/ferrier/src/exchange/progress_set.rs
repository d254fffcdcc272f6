//! The movers of a plan: several may be in flight at once, and who waits for
//! one looks after all, so that ranks may wait in different orders.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{BufferLayout, Coder, Exchange, ExchangeBuffers, RemoteBuffers, Volumes};
use crate::transport::{Call, Part, Transfer, Transport, WakeHint};
use crate::{Comm, Error, Result};

/// What a member does to move bytes; see [`Exchange`] for what holds for the buffers.
pub(super) trait Craft: Send + Sync {
    /// See [`Exchange::open`].
    fn open(&self) -> Result<()> {
        Ok(())
    }
    /// Starts.
    ///
    /// # Safety
    /// As [`Exchange::start`].
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()>;
    /// Makes progress without waiting; whether all is done. Where it returns
    /// an error, nothing of it touches the buffers any more.
    fn advance(&self) -> Result<bool>;
    /// What the next advance would find.
    fn news(&self) -> WakeHint;
    /// May wait for the next step, where nothing else is in flight.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Starts and waits, if it can do better than those two.
    ///
    /// # Safety
    /// As [`Exchange::start`].
    unsafe fn run(&self, _send: *const u8, _recv: *mut u8) -> Option<Result<()>> {
        None
    }
}

impl Craft for Box<dyn Transfer> {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, _: Option<&Arc<dyn Coder>>) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { (**self).start(send, recv) }
    }

    fn advance(&self) -> Result<bool> {
        self.test()
    }

    fn news(&self) -> WakeHint {
        (**self).news()
    }

    fn settle(&self) -> Result<()> {
        self.wait()
    }

    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Option<Result<()>> {
        // SAFETY: the caller's word.
        Some(unsafe { (**self).run(send, recv) })
    }
}

/// A flight whose parts are as long as they were encoded.
pub(super) struct Measured(pub Box<dyn Transfer>);

impl Craft for Measured {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let Some(coder) = coder else {
            return Err(Error::transport("an exchange of encoded parts was started without its coder"));
        };
        // SAFETY: the caller's word.
        unsafe { self.0.start_measured(send, recv, &|peer| coder.len(peer)) }
    }

    fn advance(&self) -> Result<bool> {
        self.0.test()
    }

    fn news(&self) -> WakeHint {
        self.0.news()
    }

    fn settle(&self) -> Result<()> {
        self.0.wait()
    }
}

/// A mover to be.
pub(super) struct Hull {
    pub buffers: ExchangeBuffers,
    pub window: usize,
    pub note: Option<String>,
    pub craft: Box<dyn Craft>,
}

impl Hull {
    /// One that moves these parts by this call or, where they can be loaded
    /// where they are, only tells of them.
    pub fn of_parts(
        group: &Comm,
        volumes: &Volumes,
        call: Call,
        (send, recv): (BufferLayout, BufferLayout),
        (sent, received): (&[Part], &[Part]),
        loans: impl FnOnce() -> RemoteBuffers,
    ) -> Result<Hull> {
        let transport = group.transport();
        // What is encoded is decoded out of a buffer of this rank's.
        let loan = match volumes.encoded.is_some() || volumes.via_host {
            false => transport.loan(sent, received)?,
            true => None,
        };
        Ok(match loan {
            Some(flight) => {
                let nowhere = BufferLayout { offsets: vec![0; recv.offsets.len()], len: 0 };
                let mut hull = Hull::new(send, nowhere, Box::new(flight));
                hull.buffers.remote = Some(loans());
                hull
            }
            None => Hull::new(send, recv, Box::new(transport.flight(call, sent, received)?)),
        })
    }

    pub fn new(send: BufferLayout, recv: BufferLayout, craft: Box<dyn Craft>) -> Hull {
        let buffers = ExchangeBuffers { send, recv, sharing: None, remote: None, encodes: false };
        Hull { buffers, window: 0, note: None, craft }
    }
}

struct Fleet {
    transport: Arc<dyn Transport>,
    ships: Vec<Afloat>,
}

struct Afloat {
    hull: Hull,
    aloft: AtomicBool,
    /// A progress thread tests as well: not while a start or another test is under way, lest it
    /// take the end of the last flight for that of the next.
    turn: Mutex<()>,
    /// What went wrong in the air: told in every test until the next start.
    failure: Mutex<Option<Error>>,
}

impl Afloat {
    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is over.
    fn land(&self, outcome: &Result<()>) {
        *self.failure() = outcome.as_ref().err().cloned();
        self.aloft.store(false, SeqCst);
    }

    fn test(&self) -> Result<bool> {
        if !self.aloft.load(SeqCst) {
            return self.failure().clone().map_or(Ok(true), Err);
        }
        let _turn = self.turn();
        if !self.aloft.load(SeqCst) {
            return self.failure().clone().map_or(Ok(true), Err);
        }
        let outcome = self.hull.craft.advance();
        match &outcome {
            Ok(false) => {}
            Ok(true) => self.land(&Ok(())),
            Err(error) => self.land(&Err(error.clone())),
        }
        outcome
    }
}

/// One of a fleet.
struct Ship {
    fleet: Arc<Fleet>,
    number: usize,
}

/// Movers that look after each other. Rests are those of `transport`.
pub(super) fn fleet(transport: &Arc<dyn Transport>, hulls: Vec<Hull>) -> Vec<Box<dyn Exchange>> {
    let ready = |hull| Afloat {
        hull,
        aloft: AtomicBool::new(false),
        turn: Mutex::default(),
        failure: Mutex::default(),
    };
    let ships = hulls.into_iter().map(ready).collect();
    let fleet = Arc::new(Fleet { transport: transport.clone(), ships });
    let ship = |number| -> Box<dyn Exchange> { Box::new(Ship { fleet: fleet.clone(), number }) };
    (0..fleet.ships.len()).map(ship).collect()
}

impl Fleet {
    fn aloft(&self) -> impl Iterator<Item = &Afloat> {
        self.ships.iter().filter(|ship| ship.aloft.load(SeqCst))
    }
}

impl Ship {
    fn own(&self) -> &Afloat {
        &self.fleet.ships[self.number]
    }

    fn take_off(&self) -> Result<()> {
        match self.own().aloft.swap(true, SeqCst) {
            true => Err(Error::transport("an exchange was started that is in flight")),
            false => {
                *self.own().failure() = None;
                Ok(())
            }
        }
    }
}

impl Exchange for Ship {
    fn buffers(&self) -> &ExchangeBuffers {
        &self.own().hull.buffers
    }

    fn window(&self) -> usize {
        self.own().hull.window
    }

    fn open(&self) -> Result<()> {
        self.own().hull.craft.open()
    }

    fn note(&self) -> Option<&str> {
        self.own().hull.note.as_deref()
    }

    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let _turn = self.own().turn();
        self.take_off()?;
        // SAFETY: the caller's word.
        let started = unsafe { self.own().hull.craft.start(send, recv, coder) };
        if started.is_err() {
            self.own().land(&started);
        }
        started
    }

    fn test(&self) -> Result<bool> {
        let was_aloft = self.own().aloft.load(SeqCst);
        let outcome = self.own().test();
        if was_aloft && !self.own().aloft.load(SeqCst) {
            // Its rank may be asleep in the wait for it, where this is a progress thread.
            self.fleet.transport.nudge();
        }
        outcome
    }

    fn wait(&self) -> Result<()> {
        let (fleet, own) = (&self.fleet, self.own());
        while !own.test()? {
            let mut alone = true;
            for other in fleet.aloft().filter(|other| !std::ptr::eq(*other, own)) {
                alone = false;
                // What goes wrong with it comes out in the wait for it.
                let _ = other.test();
            }
            if alone {
                let settled = own.hull.craft.settle();
                if settled.is_err() {
                    own.land(&settled);
                }
                settled?;
            }
            let soonest = || fleet.aloft().map(|ship| ship.hull.craft.news()).min();
            // A progress thread may land it at any moment: what the others wait for may then be us.
            fleet.transport.rest(&mut || match own.aloft.load(SeqCst) {
                true => soonest().unwrap_or(WakeHint::Now),
                false => WakeHint::Now,
            });
        }
        Ok(())
    }

    unsafe fn run(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let turn = self.own().turn();
        self.take_off()?;
        // SAFETY: the caller's word.
        let outcome = unsafe { self.own().hull.craft.run(send, recv) };
        self.own().land(&Ok(()));
        drop(turn);
        match outcome {
            Some(outcome) => outcome,
            None => {
                // SAFETY: the caller's word.
                unsafe { self.start(send, recv, coder)? };
                self.wait()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    /// Done when it is looked at so many times.
    struct Looks(AtomicUsize);

    impl Craft for Looks {
        unsafe fn start(&self, _: *const u8, _: *mut u8, _: Option<&Arc<dyn Coder>>) -> Result<()> {
            Ok(())
        }

        fn advance(&self) -> Result<bool> {
            let left = self.0.load(SeqCst);
            self.0.store(left.saturating_sub(1), SeqCst);
            Ok(left == 0)
        }

        fn news(&self) -> WakeHint {
            WakeHint::Nothing
        }
    }

    /// A rank that rests in the wait for one goes on when a progress thread
    /// has landed it, though another one, which may wait for this rank, still flies.
    #[test]
    fn what_a_progress_thread_lands_is_not_waited_for() {
        let _watchdog = ferrier_test::watchdog(20);
        let comm = Comm::one_rank();
        let hull = |looks: usize| {
            let nowhere = || BufferLayout { offsets: vec![0], len: 0 };
            Hull::new(nowhere(), nowhere(), Box::new(Looks(AtomicUsize::new(looks))))
        };
        let movers = fleet(comm.transport(), vec![hull(1), hull(usize::MAX)]);
        for mover in &movers {
            // SAFETY: nothing is moved.
            unsafe { mover.start(std::ptr::null(), std::ptr::null_mut(), None).unwrap() };
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                while !movers[0].test().unwrap() {}
            });
            movers[0].wait().unwrap();
        });
    }
}
