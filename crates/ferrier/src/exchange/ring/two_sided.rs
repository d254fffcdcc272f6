//! The ring by messages, a step at a time: where there are no windows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::progress_set::{Craft, Hull};
use super::super::{Coder, Volumes, packed, parts};
use super::step;
use crate::transport::{Call, Transfer, WakeHint};
use crate::{Comm, Result};

/// What is sent and received in one step after the other.
struct TwoSided {
    steps: Vec<Box<dyn Transfer>>,
    /// Are parts as long as they were encoded?
    varies: bool,
    state: Mutex<Steps>,
}

struct Steps {
    now: usize,
    send: *const u8,
    recv: *mut u8,
    coder: Option<Arc<dyn Coder>>,
}

// SAFETY: the pointers are used as the caller of `start` allows, by whoever holds the steps.
unsafe impl Send for Steps {}

pub(super) fn two_sided(comm: &Comm, volumes: &Volumes) -> Result<Hull> {
    let (nodes, rank) = (comm.nodes(), comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (sent, received) = (parts(&send, &volumes.to), parts(&recv, &volumes.from));
    let last = nodes.iter().max().map_or(1, |last| last + 1);
    let mut steps = Vec::new();
    for now in 1..=last {
        let to = sent.iter().filter(|part| step(nodes, rank, part.peer) == now).copied().collect::<Vec<_>>();
        let from =
            received.iter().filter(|part| step(nodes, part.peer, rank) == now).copied().collect::<Vec<_>>();
        steps.push(comm.transport().flight(Call::Messages, &to, &from)?);
    }
    let state = Mutex::new(Steps { now: 0, send: std::ptr::null(), recv: std::ptr::null_mut(), coder: None });
    let library = comm.transport().version();
    let note =
        Some(format!("ring goes by two-sided messages: {library} makes no windows between these ranks"));
    Ok(Hull { note, ..Hull::new(send, recv, Box::new(TwoSided { steps, varies: volumes.vary(), state })) })
}

impl TwoSided {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the step that it has come to.
    ///
    /// # Safety
    /// As [`Craft::start`].
    unsafe fn step(&self, Steps { now, send, recv, coder }: &Steps) -> Result<()> {
        match coder.as_ref().filter(|_| self.varies) {
            // SAFETY: the caller's word.
            None => unsafe { (*self.steps[*now]).start(*send, *recv) },
            // SAFETY: the caller's word.
            Some(coder) => unsafe { self.steps[*now].start_measured(*send, *recv, &|peer| coder.len(peer)) },
        }
    }
}

impl Craft for TwoSided {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut steps = self.steps();
        *steps = Steps { now: 0, send, recv, coder: coder.cloned() };
        // SAFETY: the caller's word.
        unsafe { self.step(&steps) }
    }

    fn advance(&self) -> Result<bool> {
        let mut steps = self.steps();
        while self.steps[steps.now].test()? {
            if steps.now + 1 == self.steps.len() {
                return Ok(true);
            }
            steps.now += 1;
            // SAFETY: the caller of `start` keeps the buffers until the last step is done.
            unsafe { self.step(&steps)? };
        }
        Ok(false)
    }

    fn news(&self) -> WakeHint {
        let now = self.steps().now;
        self.steps[now].news()
    }

    fn settle(&self) -> Result<()> {
        let now = self.steps().now;
        self.steps[now].wait()
    }
}
