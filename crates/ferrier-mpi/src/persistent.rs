//! Persistent collectives (`MPI_Alltoallv_init`).

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::abi::Handle;
use crate::data::received_at;
use crate::error::{Error, Result};
use crate::exchange::AllToAllV;
use crate::ffi::Int;
use crate::library::Counting;

/// A prepared exchange bound to its buffers. It owns them, so that they live
/// as long as MPI may use them.
pub struct Persistent {
    exchange: AllToAllV,
    send: Buffer,
    recv: Buffer,
    request: Handle,
    active: bool,
}

struct Buffer {
    start: NonNull<u8>,
    length: usize,
    owned: bool,
}

// SAFETY: exclusive owners of their buffers, as a `Vec` is.
unsafe impl Send for Persistent {}

impl Buffer {
    fn own(bytes: Vec<u8>) -> Buffer {
        let bytes = Box::leak(bytes.into_boxed_slice());
        Buffer { length: bytes.len(), start: NonNull::from(bytes).cast(), owned: true }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: made by `own` from a box of that length, and freed once.
            drop(unsafe { Box::from_raw(NonNull::slice_from_raw_parts(self.start, self.length).as_ptr()) });
        }
    }
}

impl Persistent {
    /// Binds an exchange to buffers. Collective.
    ///
    /// # Errors
    /// [`Error::Missing`] where the library has no such call
    /// ([`Mpi::has_persistent`](crate::Mpi::has_persistent)) or the exchange
    /// goes by messages; [`Error::Argument`] where a buffer is too short for the
    /// segments; those of MPI.
    pub fn new(exchange: AllToAllV, send: Vec<u8>, recv: Vec<u8>) -> Result<Persistent> {
        Persistent::bind(exchange, Buffer::own(send), Buffer::own(recv))
    }

    /// [`Persistent::new`] with memory that lives elsewhere.
    ///
    /// # Errors
    /// As [`Persistent::new`].
    ///
    /// # Safety
    /// Both buffers outlive the result. While it is active, nothing writes to
    /// `send` or accesses `recv`.
    pub unsafe fn with_memory(
        exchange: AllToAllV,
        send: NonNull<[u8]>,
        recv: NonNull<[u8]>,
    ) -> Result<Persistent> {
        let borrow = |bytes: NonNull<[u8]>| Buffer { start: bytes.cast(), length: bytes.len(), owned: false };
        Persistent::bind(exchange, borrow(send), borrow(recv))
    }

    fn bind(exchange: AllToAllV, send: Buffer, recv: Buffer) -> Result<Persistent> {
        const CALL: &str = "MPI_Alltoallv_init";
        exchange.check(send.length, recv.length)?;
        let comm = exchange.comm().clone();
        let mpi = comm.library();
        let (byte, raw, info) = (mpi.h.byte, comm.raw(), mpi.h.info_null);
        let (from, to): (*const c_void, *mut c_void) = (
            received_at(send.start.as_ptr(), send.length).cast(),
            received_at(recv.start.as_ptr(), recv.length).cast(),
        );
        let mut request = 0;
        let code = match (exchange.narrow(), exchange.wide(), mpi.counting(), mpi.alltoallv_init()) {
            (Some(n), _, _, Some(init)) => {
                let _guard = mpi.enter()?;
                // SAFETY: segments lie inside the buffers; lists and buffers live in `self`.
                unsafe {
                    let (send, send_at) = (n.send.as_ptr(), n.send_at.as_ptr());
                    let (recv, recv_at) = (n.recv.as_ptr(), n.recv_at.as_ptr());
                    init(from, send, send_at, byte, to, recv, recv_at, byte, raw, info, &mut request)
                }
            }
            (_, Some(w), Counting::Wide(wide), _) => {
                let _guard = mpi.enter()?;
                // SAFETY: as above.
                unsafe {
                    let (send, send_at) = (w.send.as_ptr(), w.send_at.as_ptr());
                    let (recv, recv_at) = (w.recv.as_ptr(), w.recv_at.as_ptr());
                    (wide.alltoallv_init)(
                        from,
                        send,
                        send_at,
                        byte,
                        to,
                        recv,
                        recv_at,
                        byte,
                        raw,
                        info,
                        &mut request,
                    )
                }
            }
            (_, _, _, None) => {
                return Err(Error::Missing { call: CALL, why: "this library does not have it" });
            }
            _ => return Err(Error::Missing { call: CALL, why: "this exchange goes by messages" }),
        };
        mpi.check(CALL, code)?;
        mpi.requests.fetch_add(1, Ordering::Relaxed);
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
        let mpi = self.exchange.comm().library();
        let _guard = mpi.enter()?;
        let mut flag: Int = 1;
        let (call, code) = if wait {
            // SAFETY: an active request; a status to ignore.
            ("MPI_Wait", unsafe { (mpi.calls().wait)(&mut self.request, mpi.status_ignore()) })
        } else {
            // SAFETY: as above.
            ("MPI_Test", unsafe { (mpi.calls().test)(&mut self.request, &mut flag, mpi.status_ignore()) })
        };
        self.active = flag == 0 && code == 0;
        mpi.check(call, code)?;
        Ok(!self.active)
    }

    /// The send buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] while it is active.
    pub fn send_buffer(&mut self) -> Result<&mut [u8]> {
        self.idle("in use")?;
        // SAFETY: not active, so MPI does not access it; `self` is borrowed.
        Ok(unsafe { NonNull::slice_from_raw_parts(self.send.start, self.send.length).as_mut() })
    }

    /// The receive buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] while it is active.
    pub fn received(&self) -> Result<&[u8]> {
        self.idle("in use")?;
        // SAFETY: not active, so MPI does not access it; `self` is borrowed.
        Ok(unsafe { NonNull::slice_from_raw_parts(self.recv.start, self.recv.length).as_ref() })
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
            _ => (self.send.owned, self.recv.owned) = (false, false),
        }
    }
}
