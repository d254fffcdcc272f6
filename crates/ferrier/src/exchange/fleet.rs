//! The movers of a plan: several may be in flight at once, and who waits for
//! one looks after all, so that ranks may wait in different orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::{Mover, Places, Sharing};
use crate::transport::{Flight, News, Transport};
use crate::{Error, Result};

/// What a member does to move bytes; see [`Mover`] for what holds for the buffers.
pub(super) trait Craft: Send + Sync {
    /// See [`Mover::open`].
    fn open(&self) -> Result<()> {
        Ok(())
    }
    /// Starts.
    ///
    /// # Safety
    /// As [`Mover::start`].
    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()>;
    /// Makes progress without waiting; whether all is done. Where it returns
    /// an error, nothing of it touches the buffers any more.
    fn advance(&self) -> Result<bool>;
    /// What the next advance would find.
    fn news(&self) -> News;
    /// May wait for the next step, where nothing else is in flight.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Starts and waits, if it can do better than those two.
    ///
    /// # Safety
    /// As [`Mover::start`].
    unsafe fn run(&self, _send: *const u8, _recv: *mut u8) -> Option<Result<()>> {
        None
    }
}

impl Craft for Box<dyn Flight> {
    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { (**self).start(send, recv) }
    }

    fn advance(&self) -> Result<bool> {
        self.test()
    }

    fn news(&self) -> News {
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

/// A mover to be.
pub(super) struct Hull {
    pub send: Places,
    pub recv: Places,
    pub sharing: Option<Sharing>,
    pub window: usize,
    pub note: Option<&'static str>,
    pub craft: Box<dyn Craft>,
}

impl Hull {
    pub fn new(send: Places, recv: Places, craft: Box<dyn Craft>) -> Hull {
        Hull { send, recv, sharing: None, window: 0, note: None, craft }
    }
}

struct Fleet {
    transport: Arc<dyn Transport>,
    ships: Vec<(Hull, AtomicBool)>,
}

/// One of a fleet.
struct Ship {
    fleet: Arc<Fleet>,
    number: usize,
}

/// Movers that look after each other. Rests are those of `transport`.
pub(super) fn fleet(transport: &Arc<dyn Transport>, hulls: Vec<Hull>) -> Vec<Box<dyn Mover>> {
    let ships = hulls.into_iter().map(|hull| (hull, AtomicBool::new(false))).collect();
    let fleet = Arc::new(Fleet { transport: transport.clone(), ships });
    let ship = |number| -> Box<dyn Mover> { Box::new(Ship { fleet: fleet.clone(), number }) };
    (0..fleet.ships.len()).map(ship).collect()
}

impl Fleet {
    fn aloft(&self) -> impl Iterator<Item = usize> {
        (0..self.ships.len()).filter(|&number| self.ships[number].1.load(SeqCst))
    }

    fn test(&self, number: usize) -> Result<bool> {
        let (hull, aloft) = &self.ships[number];
        if !aloft.load(SeqCst) {
            return Ok(true);
        }
        let outcome = hull.craft.advance();
        if !matches!(outcome, Ok(false)) {
            aloft.store(false, SeqCst);
        }
        outcome
    }
}

impl Ship {
    fn hull(&self) -> &Hull {
        &self.fleet.ships[self.number].0
    }

    fn take_off(&self) -> Result<&AtomicBool> {
        let aloft = &self.fleet.ships[self.number].1;
        match aloft.swap(true, SeqCst) {
            true => Err(Error::Transport("an exchange was started that is in flight".into())),
            false => Ok(aloft),
        }
    }
}

impl Mover for Ship {
    fn send(&self) -> &Places {
        &self.hull().send
    }

    fn recv(&self) -> &Places {
        &self.hull().recv
    }

    fn sharing(&self) -> Option<&Sharing> {
        self.hull().sharing.as_ref()
    }

    fn window(&self) -> usize {
        self.hull().window
    }

    fn open(&self) -> Result<()> {
        self.hull().craft.open()
    }

    fn note(&self) -> Option<&'static str> {
        self.hull().note
    }

    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        let aloft = self.take_off()?;
        // SAFETY: the caller's word.
        unsafe { self.hull().craft.start(send, recv) }.inspect_err(|_| aloft.store(false, SeqCst))
    }

    fn test(&self) -> Result<bool> {
        self.fleet.test(self.number)
    }

    fn wait(&self) -> Result<()> {
        let fleet = &self.fleet;
        while !self.test()? {
            let mut alone = true;
            for number in fleet.aloft().filter(|&number| number != self.number) {
                alone = false;
                fleet.test(number)?;
            }
            if alone {
                self.hull()
                    .craft
                    .settle()
                    .inspect_err(|_| fleet.ships[self.number].1.store(false, SeqCst))?;
            }
            let soonest = || fleet.aloft().map(|number| fleet.ships[number].0.craft.news()).min();
            fleet.transport.rest(&mut || soonest().unwrap_or(News::Now));
        }
        Ok(())
    }

    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        let aloft = self.take_off()?;
        // SAFETY: the caller's word.
        let outcome = unsafe { self.hull().craft.run(send, recv) };
        aloft.store(false, SeqCst);
        match outcome {
            Some(outcome) => outcome,
            None => {
                // SAFETY: the caller's word.
                unsafe { self.start(send, recv)? };
                self.wait()
            }
        }
    }
}
