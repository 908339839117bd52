//! Launches that registers describe, and their record in memory.

use crate::map::{GpuAddress, View, Violation};
use flipwave_codeobj::{DESCRIPTOR_SIZE, Descriptor, InitialValue};
use flipwave_device::{Address, Dim3, KernelPacket};
use flipwave_isa::Target;

/// A launch that registers describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterLaunch {
    /// Address of the first instruction.
    pub entry: u64,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Lanes of a wave: 32 or 64.
    pub lanes: u8,
    /// Work-items of a workgroup per dimension.
    pub workgroup: Dim3,
    /// Work-items of the grid per dimension.
    pub grid: Dim3,
    /// LDS of a workgroup, in bytes.
    pub lds_bytes: u32,
    /// Private memory of a work-item, in bytes.
    pub private_bytes: u32,
    /// Initial values of user SGPRs.
    pub user_data: Vec<u32>,
}

impl RegisterLaunch {
    /// The address of the arguments, in the user SGPRs where a kernel's descriptor expects it; 0
    /// without such SGPRs.
    pub fn kernarg(&self, kernel: &Descriptor, target: &Target) -> u64 {
        let initial = kernel.initial_sgprs(target);
        let pointer = initial.iter().find(|sgprs| sgprs.value == InitialValue::KernargPointer);
        let word = |index: u8| {
            pointer.and_then(|sgprs| self.user_data.get(usize::from(sgprs.first.0 + index)))
        };
        match [word(0), word(1)] {
            [Some(low), Some(high)] => u64::from(*low) | u64::from(*high) << 32,
            _ => 0,
        }
    }

    /// The kernel descriptor at `address` that describes the launch: its registers, and no user
    /// SGPRs, as their meaning is unknown.
    fn descriptor(&self, address: GpuAddress) -> [u8; DESCRIPTOR_SIZE] {
        const LDS_SIZE: u32 = 0x1ff << 15;
        const WAVEFRONT_SIZE_32: u32 = 1 << 10;
        let mut bytes = [0; DESCRIPTOR_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(16, &self.entry.wrapping_sub(address.0).to_le_bytes());
        put(44, &self.rsrc3.to_le_bytes());
        put(48, &self.rsrc1.to_le_bytes());
        // The packet has the size of LDS.
        put(52, &(self.rsrc2 & !LDS_SIZE).to_le_bytes());
        let properties = if self.lanes == 32 { WAVEFRONT_SIZE_32 } else { 0 };
        put(56, &properties.to_le_bytes());
        bytes
    }
}

/// Place in a GPU's memory where the driver describes the current launch of a queue by a dispatch
/// packet and a kernel descriptor. Everything that knows dispatches by their packets, such as
/// captures, handles launches from registers like all others.
///
/// The place is the queue's EOP buffer, in which hardware keeps records of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchRecord(GpuAddress);

impl LaunchRecord {
    const PACKET: u64 = 0;
    const DESCRIPTOR: u64 = KernelPacket::SIZE as u64;
    /// Size in bytes.
    const SIZE: u64 = LaunchRecord::DESCRIPTOR + DESCRIPTOR_SIZE as u64;

    /// Creates a record in an EOP buffer; `None` if the buffer is too small or misaligned.
    pub fn new(start: u64, bytes: u64) -> Option<LaunchRecord> {
        let is_valid = bytes >= LaunchRecord::SIZE && start.is_multiple_of(64);
        is_valid.then_some(LaunchRecord(GpuAddress(start)))
    }

    /// Checks that a GPU may access the record.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn check(self, view: &View<'_>) -> Result<(), Violation> {
        view.check(self.0, LaunchRecord::SIZE)
    }

    /// Address of the packet.
    pub fn packet(self) -> GpuAddress {
        self.0.plus(LaunchRecord::PACKET)
    }

    /// Writes the packet and the descriptor of a launch with arguments at `kernarg`.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the record any more.
    pub fn write(
        self,
        view: &View<'_>,
        launch: &RegisterLaunch,
        kernarg: u64,
    ) -> Result<(), Violation> {
        let descriptor = self.0.plus(LaunchRecord::DESCRIPTOR);
        let packet = KernelPacket {
            workgroup: launch.workgroup,
            grid: launch.grid,
            private_bytes: launch.private_bytes,
            lds_bytes: launch.lds_bytes,
            kernel: Address(descriptor.0),
            kernarg: Address(kernarg),
            completion: Address(0),
        };
        view.write(self.packet(), &packet.to_bytes())?;
        view.write(descriptor, &launch.descriptor(descriptor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Map;
    use crate::map::tests::{ALIAS, map_page};
    use flipwave_isa::Generation;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    fn launch() -> RegisterLaunch {
        RegisterLaunch {
            entry: 0x7f00_0000_1100,
            rsrc1: 3 | 1 << 20,
            rsrc2: 2 << 1 | 1 << 7 | 5 << 15,
            rsrc3: 0,
            lanes: 32,
            workgroup: [64, 1, 1],
            grid: [640, 1, 1],
            lds_bytes: 2560,
            private_bytes: 0,
            user_data: vec![0x1000, 0x7f],
        }
    }

    #[test]
    fn a_record_decodes_to_the_launch() {
        let mut page = Box::new(Page([0; 4096]));
        let start = page.0.as_mut_ptr() as u64;
        let map = Map::default();
        map.change(1..2, |memory| map_page(memory, start), |_, _| {});
        let record = LaunchRecord::new((ALIAS | start) + 64, 4096).unwrap();
        let view = map.view(1);
        record.check(&view).unwrap();
        record.write(&view, &launch(), 0x7f_0000_1000).unwrap();
        let mut bytes = [0; KernelPacket::SIZE];
        view.read(record.packet(), &mut bytes).unwrap();
        let packet = KernelPacket::from_bytes(&bytes);
        assert_eq!((packet.grid, packet.lds_bytes), ([640, 1, 1], 2560));
        assert_eq!(packet.kernarg, Address(0x7f_0000_1000));
        let mut bytes = [0; DESCRIPTOR_SIZE];
        view.read(GpuAddress(packet.kernel.0), &mut bytes).unwrap();
        let descriptor = Descriptor::decode(&bytes, packet.kernel.0, Generation::Gfx11);
        assert_eq!(descriptor.entry.0, launch().entry);
        assert_eq!((descriptor.wavefront_size(), descriptor.rsrc2.user_sgprs), (32, 2));
        assert!(descriptor.rsrc1.privileged && descriptor.rsrc2.workgroup_id_x);
        assert_eq!(descriptor.rsrc2.granulated_lds_size, 0);
    }

    #[test]
    fn small_and_misaligned_buffers_hold_no_record() {
        assert_eq!(LaunchRecord::new(0x1000, 127), None);
        assert_eq!(LaunchRecord::new(0x1001, 4096), None);
    }
}
