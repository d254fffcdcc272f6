//! Segments as sequences of packets.

use std::ops::Range;

/// A segment to send.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    /// The number of the step among those in which this rank sends.
    pub step: usize,
    pub peer: usize,
    /// Offset in the send buffer.
    pub from: usize,
    /// Offset in the window of the peer.
    pub to: usize,
    pub span: Span,
}

/// A segment as a sequence of packets, the bytes of one put each. Packets of an encoded segment begin where they would
/// if all chunks before had the maximum length; fewer bytes may be sent.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub len: usize,
    /// Bytes of a packet.
    pub packet: usize,
    /// Its chunks; 0 where it is not encoded.
    pub chunks: usize,
    /// Chunks of a packet.
    pub per_packet: usize,
}

impl Span {
    pub fn packets(&self) -> usize {
        match self.chunks {
            0 => self.len.div_ceil(self.packet),
            chunks => chunks.div_ceil(self.per_packet),
        }
    }

    /// The bytes of some packets.
    pub fn bytes(&self, packets: Range<usize>) -> Range<usize> {
        let at = |packet: usize| self.len.min(packet * self.packet);
        at(packets.start)..at(packets.end)
    }

    /// The chunks of a packet.
    pub fn chunks(&self, packet: usize) -> Range<usize> {
        let at = |packet: usize| self.chunks.min(packet * self.per_packet);
        at(packet)..at(packet + 1)
    }
}

/// A segment to receive.
#[derive(Clone, Copy)]
pub(super) struct Incoming {
    pub peer: usize,
    /// Offset in the receive buffer.
    pub offset: usize,
    pub span: Span,
}

/// A position in the packets sent: segments before it, packets of the next one, and packets in all.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub segment: usize,
    pub packet: usize,
    pub number: usize,
}

impl Cursor {
    pub fn next(self, sent: &[Outgoing]) -> Cursor {
        let number = self.number + 1;
        match self.packet + 1 < sent[self.segment].span.packets() {
            true => Cursor { packet: self.packet + 1, number, ..self },
            false => Cursor { segment: self.segment + 1, packet: 0, number },
        }
    }
}
