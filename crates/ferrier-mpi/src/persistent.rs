//! Persistent collectives (`MPI_Alltoallv_init`).

use std::mem::{forget, take};
use std::sync::atomic::Ordering;

use crate::abi::Handle;
use crate::data::{received_at, sent_from};
use crate::error::{Error, Result};
use crate::exchange::AllToAllV;

/// A prepared exchange bound to its buffers. It owns them, so that they live
/// as long as MPI may use them.
pub struct Persistent {
    exchange: AllToAllV,
    send: Vec<u8>,
    recv: Vec<u8>,
    request: Handle,
    active: bool,
}

impl Persistent {
    /// Binds an exchange to buffers. Collective.
    ///
    /// # Errors
    /// [`Error::Missing`] where the library has no such call
    /// ([`Mpi::has_persistent`](crate::Mpi::has_persistent)) or the exchange
    /// goes by messages; [`Error::Argument`] where a buffer is too short for the
    /// segments; those of MPI.
    pub fn new(exchange: AllToAllV, send: Vec<u8>, mut recv: Vec<u8>) -> Result<Persistent> {
        exchange.check(send.len(), recv.len())?;
        let to = received_at(recv.as_mut_ptr(), recv.len());
        // SAFETY: the buffers hold all segments, as just checked; they and the exchange live in
        // `self`, which frees the request first.
        let request = unsafe { exchange.init_persistent(sent_from(&send), to)? };
        exchange.comm().library().requests.fetch_add(1, Ordering::Relaxed);
        Ok(Persistent { exchange, send, recv, request, active: false })
    }

    /// Starts it. Collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is started already; those of MPI.
    pub fn start(&mut self) -> Result<()> {
        self.idle("started")?;
        let mpi = self.exchange.comm().library();
        let _guard = mpi.enter()?;
        // SAFETY: a persistent request that is not active.
        let code = unsafe { (mpi.calls().start)(&mut self.request) };
        self.active = true;
        mpi.check("MPI_Start", code)
    }

    /// Whether it is complete (or was not started).
    ///
    /// # Errors
    /// Those of MPI.
    pub fn test(&mut self) -> Result<bool> {
        self.advance(false)
    }

    /// Returns when it is complete.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn wait(&mut self) -> Result<()> {
        self.advance(true).map(drop)
    }

    fn advance(&mut self, wait: bool) -> Result<bool> {
        if !self.active {
            return Ok(true);
        }
        let (complete, result) = self.exchange.comm().library().advance(&mut self.request, wait);
        self.active = !complete;
        result.map(|()| complete)
    }

    /// The send buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] while it is active.
    pub fn send_buffer(&mut self) -> Result<&mut [u8]> {
        self.idle("in use")?;
        Ok(&mut self.send)
    }

    /// The receive buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] while it is active.
    pub fn received(&self) -> Result<&[u8]> {
        self.idle("in use")?;
        Ok(&self.recv)
    }

    fn idle(&self, what: &str) -> Result<()> {
        if self.active { Err(Error::Argument(format!("the exchange is {what} already"))) } else { Ok(()) }
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        let waited = self.wait();
        let mpi = self.exchange.comm().library();
        match mpi.enter() {
            Ok(_guard) if waited.is_ok() => {
                // SAFETY: a persistent request that is not active.
                unsafe { (mpi.calls().request_free)(&mut self.request) };
                mpi.requests.fetch_sub(1, Ordering::Relaxed);
            }
            // MPI may still use the buffers: leak them.
            _ => [&mut self.send, &mut self.recv].into_iter().for_each(|bytes| forget(take(bytes))),
        }
    }
}
