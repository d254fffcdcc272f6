//! Packets: the parts of a segment that an exchange encodes, sends and decodes one by one.

use std::time::Instant;

use crate::Choice;

/// How exchange `ring` cuts segments into packets; `None`: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketPolicy {
    /// Bytes of a packet.
    pub bytes: Option<usize>,
    /// Packets in flight at once.
    pub in_flight: Option<usize>,
}

impl PacketPolicy {
    pub fn of(choice: &Choice) -> PacketPolicy {
        PacketPolicy { bytes: choice.packet, in_flight: choice.packets }
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketWork {
    Encode,
    /// From its start until it is known to have arrived.
    Transfer,
    Decode,
}

/// When something happened to a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketTiming {
    pub work: PacketWork,
    /// Its number among those that this rank sends, or receives, in this run.
    pub packet: usize,
    /// Its bytes, encoded.
    pub bytes: usize,
    pub start: Instant,
    pub end: Instant,
}
