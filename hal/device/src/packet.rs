//! Kernel dispatch packets (HSA Runtime specification 1.2, `hsa_kernel_dispatch_packet_t`).

use crate::{Address, Dim3};

/// A kernel dispatch packet. All addresses are in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPacket {
    /// Workgroup size, in work-items per dimension.
    pub workgroup: Dim3,
    /// Grid size, in work-items per dimension.
    pub grid: Dim3,
    /// Private memory of a work-item, in bytes.
    pub private_bytes: u32,
    /// LDS of a workgroup, in bytes, including the kernel's static LDS.
    pub lds_bytes: u32,
    /// Address of the kernel's descriptor.
    pub kernel: Address,
    /// Address of the kernel's arguments.
    pub kernarg: Address,
    /// Address of the completion signal; 0 for none.
    pub completion: Address,
}

/// Location of a packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket {
    /// Address of the packet.
    pub packet: Address,
    /// Address of the queue, an `amd_queue_t`.
    pub queue: Address,
    /// Index of the packet in the queue.
    pub number: u64,
}

impl KernelPacket {
    /// Size of a packet in bytes.
    pub const SIZE: usize = 64;
    /// `HSA_PACKET_TYPE_KERNEL_DISPATCH`.
    pub const TYPE: u8 = 2;
    /// Packet header: the type, the barrier bit (8), and acquire and release fences (bits 9 and 10, 11
    /// and 12) with system scope, `HSA_FENCE_SCOPE_SYSTEM`. AMD's HIP runtime uses this header by
    /// default.
    pub const HEADER: u16 = KernelPacket::TYPE as u16 | 1 << 8 | 2 << 9 | 2 << 11;
    /// Setup field: the number of dimensions.
    const SETUP: u16 = 3;

    /// Encodes the packet with [`KernelPacket::HEADER`].
    pub fn to_bytes(&self) -> [u8; KernelPacket::SIZE] {
        let mut bytes = [0; KernelPacket::SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &KernelPacket::HEADER.to_le_bytes());
        put(2, &KernelPacket::SETUP.to_le_bytes());
        for dimension in 0..3 {
            put(4 + 2 * dimension, &(self.workgroup[dimension] as u16).to_le_bytes());
            put(12 + 4 * dimension, &self.grid[dimension].to_le_bytes());
        }
        put(24, &self.private_bytes.to_le_bytes());
        put(28, &self.lds_bytes.to_le_bytes());
        put(32, &self.kernel.0.to_le_bytes());
        put(40, &self.kernarg.0.to_le_bytes());
        put(56, &self.completion.0.to_le_bytes());
        bytes
    }

    /// Decodes a packet without checking its type. Sizes of unused dimensions are 1.
    pub fn from_bytes(bytes: &[u8; KernelPacket::SIZE]) -> KernelPacket {
        fn get<const N: usize>(bytes: &[u8; KernelPacket::SIZE], at: usize) -> [u8; N] {
            std::array::from_fn(|index| bytes[at + index])
        }
        let word = |at| u32::from_le_bytes(get(bytes, at));
        let address = |at| Address(u64::from_le_bytes(get(bytes, at)));
        let dimensions = usize::from(bytes[2] & 3);
        let extent = |size: &dyn Fn(usize) -> u32| {
            std::array::from_fn(
                |dimension| if dimension < dimensions { size(dimension) } else { 1 },
            )
        };
        KernelPacket {
            workgroup: extent(&|dimension| {
                u16::from_le_bytes(get(bytes, 4 + 2 * dimension)).into()
            }),
            grid: extent(&|dimension| word(12 + 4 * dimension)),
            private_bytes: word(24),
            lds_bytes: word(28),
            kernel: address(32),
            kernarg: address(40),
            completion: address(56),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_round_trips() {
        let packet = KernelPacket {
            workgroup: [64, 2, 1],
            grid: [0x1_0001, 6, 1],
            private_bytes: 16,
            lds_bytes: 1024,
            kernel: Address(0x7f00_0000_0040),
            kernarg: Address(0x7f00_0020_0000),
            completion: Address(0x7f00_0040_0000),
        };
        assert_eq!(KernelPacket::from_bytes(&packet.to_bytes()), packet);
    }

    #[test]
    fn unused_dimensions_are_one() {
        let mut bytes =
            KernelPacket { workgroup: [64, 7, 7], grid: [128, 7, 7], ..Default::default() }
                .to_bytes();
        bytes[2] = 1;
        let packet = KernelPacket::from_bytes(&bytes);
        assert_eq!((packet.workgroup, packet.grid), ([64, 1, 1], [128, 1, 1]));
    }
}
