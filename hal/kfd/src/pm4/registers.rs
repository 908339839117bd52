//! The registers that launches are built from ("SH" registers; names and positions as in Mesa's and
//! Linux's register headers, fields as in AMDGPUUsage, "Kernel Descriptor").

use super::launch::RegisterLaunch;
use super::packet::Initiator;
use crate::refusal::QueueError;
use flipwave_device::Dim3;
use flipwave_isa::Generation;

/// Number of a register, counted in dwords from the start of the SH registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Register {
    StartX = 0x204,
    NumThreadX = 0x207,
    PgmLo = 0x20c,
    PgmRsrc1 = 0x212,
    PgmRsrc2 = 0x213,
    TmpringSize = 0x218,
    PgmRsrc3Gfx11 = 0x228,
    PgmRsrc3Gfx9 = 0x22d,
    UserData0 = 0x240,
}

/// Number of SH registers.
const COUNT: usize = 0x400;
/// Size in bytes of the unit of `COMPUTE_PGM_RSRC2.LDS_SIZE`.
const LDS_UNIT: u32 = 512;

/// The SH registers of a queue.
#[derive(Clone, Debug)]
pub struct ShRegisters(Box<[u32; COUNT]>);

impl Default for ShRegisters {
    fn default() -> ShRegisters {
        ShRegisters(Box::new([0; COUNT]))
    }
}

impl ShRegisters {
    /// Sets consecutive registers.
    ///
    /// # Errors
    /// [`QueueError::Packet`] beyond the last register; none is set then.
    pub fn set(&mut self, first: u16, values: &[u32]) -> Result<(), QueueError> {
        let first = usize::from(first);
        let registers = self.0.get_mut(first..first + values.len()).ok_or(QueueError::Packet)?;
        registers.copy_from_slice(values);
        Ok(())
    }

    fn get(&self, register: Register) -> u32 {
        self.0[register as usize]
    }

    /// Three consecutive registers, one per dimension.
    fn dimensions(&self, first: Register) -> Dim3 {
        std::array::from_fn(|dimension| self.0[first as usize + dimension])
    }

    /// The launch that the registers describe, of a number of workgroups per dimension.
    ///
    /// # Errors
    /// [`QueueError::Packet`] for an unsupported initiator or start, [`QueueError::Dimensions`] for a
    /// grid with too many work-items.
    pub fn launch(
        &self,
        generation: Generation,
        workgroups: Dim3,
        initiator: Initiator,
    ) -> Result<RegisterLaunch, QueueError> {
        let start = self.dimensions(Register::StartX);
        if initiator.is_partial() || !(initiator.starts_at_zero() || start == [0; 3]) {
            return Err(QueueError::Packet);
        }
        // The upper half has the size of partial workgroups.
        let workgroup = self.dimensions(Register::NumThreadX).map(|size| size & 0xffff);
        let mut grid = [0; 3];
        for (items, (count, size)) in grid.iter_mut().zip(workgroups.into_iter().zip(workgroup)) {
            *items = count.checked_mul(size).ok_or(QueueError::Dimensions)?;
        }
        let [low, high] = [0, 1].map(|word| u64::from(self.0[Register::PgmLo as usize + word]));
        let rsrc3 = if generation >= Generation::Gfx11 {
            Register::PgmRsrc3Gfx11
        } else {
            Register::PgmRsrc3Gfx9
        };
        let rsrc2 = self.get(Register::PgmRsrc2);
        let lanes = if initiator.has_wave32() { 32 } else { 64 };
        let user_sgprs = (rsrc2 >> 1 & 0x1f) as usize;
        let user_data = Register::UserData0 as usize;
        Ok(RegisterLaunch {
            entry: (low | (high & 0xff) << 32) << 8,
            rsrc1: self.get(Register::PgmRsrc1),
            rsrc2,
            rsrc3: self.get(rsrc3),
            lanes,
            workgroup,
            grid,
            lds_bytes: (rsrc2 >> 15 & 0x1ff) * LDS_UNIT,
            private_bytes: self.wave_scratch_bytes(generation) / u32::from(lanes),
            user_data: self.0[user_data..user_data + user_sgprs].to_vec(),
        })
    }

    /// Scratch of a wave in bytes (`COMPUTE_TMPRING_SIZE.WAVESIZE`), if the kernel has any.
    fn wave_scratch_bytes(&self, generation: Generation) -> u32 {
        const SCRATCH_EN: u32 = 1;
        if self.get(Register::PgmRsrc2) & SCRATCH_EN == 0 {
            return 0;
        }
        let (bits, unit) = match generation {
            _ if generation >= Generation::Gfx12 => (18, 256),
            _ if generation >= Generation::Gfx11 => (15, 256),
            _ => (13, 1024),
        };
        (self.get(Register::TmpringSize) >> 12 & ((1 << bits) - 1)) * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENABLED: u32 = 0b101;

    fn registers(values: &[(Register, u32)]) -> ShRegisters {
        let mut registers = ShRegisters::default();
        for (register, value) in values {
            registers.set(*register as u16, &[*value]).unwrap();
        }
        registers
    }

    #[test]
    fn registers_beyond_the_last_are_refused() {
        let mut registers = ShRegisters::default();
        assert_eq!(registers.set(0x3ff, &[1]), Ok(()));
        assert_eq!(registers.set(0x3ff, &[1, 2]), Err(QueueError::Packet));
        assert_eq!(registers.set(0xffff, &[1]), Err(QueueError::Packet));
        assert_eq!(registers.0[0x3ff], 1);
    }

    #[test]
    fn a_launch_has_the_sizes_of_its_registers() {
        let mut registers = registers(&[
            (Register::PgmRsrc1, 7),
            // Scratch, three user SGPRs, 2 KiB of LDS.
            (Register::PgmRsrc2, 1 | 3 << 1 | 4 << 15),
            (Register::TmpringSize, 32 << 12 | 0xfff),
            (Register::PgmRsrc3Gfx11, 11),
            (Register::PgmRsrc3Gfx9, 9),
        ]);
        registers.set(Register::NumThreadX as u16, &[64, 2, 1]).unwrap();
        registers.set(Register::PgmLo as u16, &[0x1234_5678, 0xffff_ff7f]).unwrap();
        registers.set(Register::UserData0 as u16, &[1, 2, 3, 4]).unwrap();
        let launch = |generation, initiator| {
            registers.launch(generation, [3, 5, 1], Initiator(initiator)).unwrap()
        };
        let wave32 = launch(Generation::Gfx11, ENABLED | 1 << 15);
        assert_eq!(wave32.entry, 0x7f12_3456_7800);
        assert_eq!([wave32.rsrc1, wave32.rsrc3], [7, 11]);
        assert_eq!((wave32.workgroup, wave32.grid), ([64, 2, 1], [192, 10, 1]));
        assert_eq!((wave32.lds_bytes, wave32.private_bytes), (2048, 256));
        assert_eq!(wave32.user_data, [1, 2, 3]);
        let wave64 = launch(Generation::Gfx940, ENABLED);
        assert_eq!((wave64.lanes, wave64.rsrc3, wave64.private_bytes), (64, 9, 512));
    }

    #[test]
    fn unsupported_grids_are_refused() {
        let registers = registers(&[(Register::NumThreadX, 0x1_0002), (Register::StartX, 1)]);
        let launch = |workgroups, initiator| {
            let launch = registers.launch(Generation::Gfx11, workgroups, Initiator(initiator));
            launch.map(|launch| launch.grid)
        };
        assert_eq!(launch([4, 1, 1], ENABLED), Ok([8, 0, 0]));
        assert_eq!(launch([4, 1, 1], 1), Err(QueueError::Packet));
        assert_eq!(launch([4, 1, 1], ENABLED | 1 << 1), Err(QueueError::Packet));
        assert_eq!(launch([4, 1, 1], ENABLED | 1 << 5), Err(QueueError::Packet));
        assert_eq!(launch([0x8000_0000, 1, 1], ENABLED), Err(QueueError::Dimensions));
    }
}
