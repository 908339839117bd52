//! The state that waves start in (AMDGPUUsage, "Initial Kernel Execution State").

use super::Launch;
use crate::memory::aperture;
use crate::wave::private::Private;
use crate::wave::{Mode, RowIndex, ScalarIndex, Wave};
use flipwave_codeobj::InitialValue;
use flipwave_device::{Address, Dim3, WaveId};
use flipwave_isa::{AccVgprs, FlatScratch, Generation, LaneMask};

impl Launch {
    /// Sets up a wave as the hardware starts it. `slot` is the workgroup's place among
    /// those under way.
    pub fn start(&self, wave: &mut Wave, position: Dim3, index: u32, slot: usize) {
        let rsrc1 = &self.descriptor.rsrc1;
        let (arch, accumulation) = self.registers();
        let id = WaveId { workgroup: position, wave: index };
        wave.reset(self.machine, id, arch, accumulation);
        wave.pc = self.start;
        wave.mode = Mode(
            u32::from(rsrc1.float_mode.mode())
                | u32::from(rsrc1.dx10_clamp) << 8
                | u32::from(rsrc1.ieee_mode) << 9
                | if rsrc1.fp16_overflow { Mode::FP16_OVERFLOW } else { 0 }
                | Mode::always_set(self.machine.generation),
        );
        wave.lds_size = self.lds_bytes;
        let offset = self.scratch_offset(slot, index);
        wave.private = Private {
            base: self.scratch.base.0.wrapping_add(offset.into()),
            bytes: self.scratch.bytes_per_lane,
            launch: self.scratch.base.0,
            launch_bytes: self.scratch.bytes,
            wave_bytes: self.scratch.bytes_per_wave,
        };
        self.work_items(wave, position, index);
        self.scalars(position, index, offset, |register, word| wave.write_scalar(register, word));
    }

    /// Architectural and accumulation registers of a wave, those that have names of both kinds among
    /// the latter (AMDGPUUsage, "compute_pgm_rsrc1", `GRANULATED_WORKITEM_VGPR_COUNT`).
    fn registers(&self) -> (u16, u16) {
        let vgprs = self.descriptor.rsrc1.vgprs;
        let most = RowIndex::UPPER_HALF.0;
        match self.target.acc_vgprs() {
            AccVgprs::None => (vgprs.min(self.target.max_vgprs()), 0),
            AccVgprs::Separate => (vgprs.min(most), vgprs.min(most)),
            AccVgprs::Unified => {
                let arch = self.descriptor.shared_vgprs_from().unwrap_or(vgprs).min(most);
                (arch, (vgprs - arch).min(most))
            }
        }
    }

    /// EXEC, and the work-items' positions: ten bits each in `v0`, or in `v0` to `v2` as far as
    /// the kernel asks for them.
    fn work_items(&self, wave: &mut Wave, position: Dim3, index: u32) {
        let [x, y, z] = self.extent(position);
        let total = x * y * z;
        let lanes = u32::from(self.machine.lanes);
        let packed = self.target.packs_work_item_ids();
        let dimensions = self.vgprs_set();
        let mut exec = 0u64;
        for lane in 0..lanes {
            let item = index * lanes + lane;
            if item >= total {
                break;
            }
            exec |= 1 << lane;
            let place = [item % x, item / x % y, item / (x * y)];
            if packed {
                let packed = place[0] | place[1] << 10 | place[2] << 20;
                wave.row_mut(RowIndex(0)).0[lane as usize] = packed;
                continue;
            }
            for (register, place) in (0..dimensions).zip(place) {
                wave.row_mut(RowIndex(register)).0[lane as usize] = place;
            }
        }
        wave.set_exec(LaneMask(exec));
    }

    /// The scalar registers that a wave starts with.
    pub fn scalars_set(&self) -> Vec<ScalarIndex> {
        let mut set = Vec::new();
        self.scalars([0; 3], 0, 0, |register, _| set.push(register));
        set
    }

    /// How many vector registers, from v0 on, a wave starts with.
    pub fn vgprs_set(&self) -> u16 {
        if self.target.packs_work_item_ids() {
            1
        } else {
            u16::from(self.descriptor.rsrc2.vgpr_workitem_id) + 1
        }
    }

    /// Scalar registers of a wave.
    pub fn sgprs(&self) -> u16 {
        self.descriptor.rsrc1.sgprs
    }

    /// User and system SGPRs.
    fn scalars(
        &self,
        position: Dim3,
        wave: u32,
        scratch_offset: u32,
        mut write: impl FnMut(ScalarIndex, u32),
    ) {
        let pair = |address: Address| vec![address.0 as u32, (address.0 >> 32) as u32];
        for initial in self.descriptor.initial_sgprs(&self.target) {
            let words = match initial.value {
                InitialValue::PrivateSegmentBuffer => self.scratch_resource().to_vec(),
                InitialValue::DispatchPointer => pair(self.places.packet),
                InitialValue::QueuePointer => pair(self.places.queue),
                InitialValue::KernargPointer => pair(self.places.kernarg),
                InitialValue::DispatchId => pair(Address(self.places.dispatch_id)),
                InitialValue::FlatScratchInit => pair(self.scratch.base),
                InitialValue::PrivateSegmentSize => vec![self.scratch.bytes_per_lane],
                InitialValue::Arguments => self.preloaded.clone(),
                InitialValue::WorkgroupIdX => vec![position[0]],
                InitialValue::WorkgroupIdY => vec![position[1]],
                InitialValue::WorkgroupIdZ => vec![position[2]],
                InitialValue::WorkgroupInfo => vec![self.waves(position)],
                InitialValue::ScratchOffset => vec![scratch_offset],
            };
            for (word, register) in words.into_iter().zip(initial.first.0..) {
                write(ScalarIndex(register), word);
            }
        }
        // LLVM, `SITargetLowering::allocateSystemSGPRs` and `lowerWaveID`: "architected SGPRs".
        if self.machine.generation >= Generation::Gfx12 {
            let [x, y, z] = position;
            let trap_register = |number| ScalarIndex(ScalarIndex::TTMP.0 + number);
            write(trap_register(7), y | z << 16);
            write(trap_register(8), (wave & 31) << 25);
            write(trap_register(9), x);
        }
        let base = self.scratch.base.0.wrapping_add(scratch_offset.into());
        let mut write_pair = |low: ScalarIndex, value: u64| {
            write(low, value as u32);
            write(ScalarIndex(low.0 + 1), (value >> 32) as u32);
        };
        if self.target.flat_scratch() == FlatScratch::Architected {
            write_pair(self.machine.flat_scratch, base);
        }
        if self.target.has_global_scratch() {
            write_pair(ScalarIndex::FLAT_SCRATCH_BASE, aperture::GLOBAL_PRIVATE | base);
        }
    }

    /// The buffer resource of private memory: swizzled by dword, the index stride that of a
    /// wave, the thread added.
    fn scratch_resource(&self) -> [u32; 4] {
        const SWIZZLE: u32 = 1 << 31;
        const ADD_THREAD: u32 = 1 << 23;
        let base = self.scratch.base.0;
        let bytes = u32::try_from(self.scratch.bytes).unwrap_or(u32::MAX);
        let index_stride = if self.machine.lanes == 32 { 2 << 21 } else { 3 << 21 };
        // From gfx10 on it is chosen what is out of range: here nothing.
        let is_rdna = self.machine.generation >= Generation::Gfx10;
        let range = if is_rdna { 2 << 28 } else { 0 };
        let flags = index_stride | ADD_THREAD | range;
        [base as u32, (base >> 32) as u32 & 0xffff | SWIZZLE, bytes, flags]
    }
}
