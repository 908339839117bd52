//! Queue packets (HSA Runtime specification 1.2, "Architected Queuing Language packets").

use crate::hsa_signal_t;

/// A queue packet of any type.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AqlPacket(pub [u8; 64]);

/// Packet type: not yet valid.
pub const HSA_PACKET_TYPE_INVALID: u8 = 1;
/// Packet type: kernel dispatch.
pub const HSA_PACKET_TYPE_KERNEL_DISPATCH: u8 = 2;
/// Packet type: barrier that waits until all its signals are 0.
pub const HSA_PACKET_TYPE_BARRIER_AND: u8 = 3;
/// Header bit: wait for all preceding packets.
pub const HSA_PACKET_HEADER_BARRIER: u16 = 1 << 8;
/// Header field: acquire fence with system scope.
pub const HSA_FENCE_ACQUIRE_SYSTEM: u16 = 2 << 9;
/// Header field: release fence with system scope.
pub const HSA_FENCE_RELEASE_SYSTEM: u16 = 2 << 11;

/// Offset of the completion signal in kernel dispatches and barriers.
const COMPLETION: usize = 56;

impl AqlPacket {
    /// A barrier packet that waits for all preceding packets, and then until up to five signals are 0.
    pub fn barrier(signals: &[hsa_signal_t], completion: hsa_signal_t) -> AqlPacket {
        let mut packet = AqlPacket([0; 64]);
        packet.set_header(u16::from(HSA_PACKET_TYPE_BARRIER_AND) | HSA_PACKET_HEADER_BARRIER);
        for (field, signal) in packet.0[8..48].chunks_exact_mut(8).zip(signals) {
            field.copy_from_slice(&signal.handle.to_le_bytes());
        }
        packet.set_completion(completion);
        packet
    }

    /// The packet type.
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    /// The packet header.
    pub fn header(&self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]])
    }

    /// Sets the packet header.
    pub fn set_header(&mut self, header: u16) {
        self.0[..2].copy_from_slice(&header.to_le_bytes());
    }

    /// The completion signal.
    pub fn completion(&self) -> hsa_signal_t {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[COMPLETION..]);
        hsa_signal_t { handle: u64::from_le_bytes(bytes) }
    }

    /// Sets the completion signal, which is decremented when the packet completes.
    pub fn set_completion(&mut self, signal: hsa_signal_t) {
        self.0[COMPLETION..].copy_from_slice(&signal.handle.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barrier_packet_has_its_signals() {
        let signal = |handle| hsa_signal_t { handle };
        let packet = AqlPacket::barrier(&[signal(7)], signal(9));
        assert_eq!((packet.kind(), packet.header()), (HSA_PACKET_TYPE_BARRIER_AND, 0x103));
        assert_eq!(packet.0[8..16], [7, 0, 0, 0, 0, 0, 0, 0]);
        assert!(packet.0[16..56].iter().all(|byte| *byte == 0));
        assert_eq!(packet.completion(), signal(9));
    }
}
