//! Initial state of waves (AMDGPUUsage, "Initial Kernel Execution State").

use super::{Launch, UserSgprs};
use crate::memory::aperture;
use crate::wave::private::Private;
use crate::wave::{Mode, Row, RowIndex, ScalarIndex, Wave};
use flipwave_codeobj::InitialValue;
use flipwave_device::{Dim3, WaveId};
use flipwave_isa::{AccVgprs, FlatScratch, Generation, LaneMask};
use std::sync::OnceLock;

/// Initial state that all waves of a launch share.
#[derive(Debug, Default)]
pub(super) struct Start {
    vgprs: u16,
    acc_vgprs: u16,
    /// `true` if `v0` holds the whole work-item position.
    packs_positions: bool,
    /// Number of vector registers, from `v0`, that hold the work-item position.
    positions: u16,
    /// Values of these registers in each wave of a full workgroup, computed for the first such
    /// workgroup.
    whole: Vec<OnceLock<Vec<Row>>>,
    /// Scalar registers in the order in which they are written.
    scalars: Vec<(ScalarIndex, Scalar)>,
}

/// Initial value of a scalar register.
#[derive(Clone, Copy, Debug)]
enum Scalar {
    /// A constant.
    Word(u32),
    /// The workgroup's index in a dimension.
    Workgroup(usize),
    /// The workgroup's index in y, and in z in the high half.
    WorkgroupYz,
    /// The workgroup information word.
    WorkgroupInfo,
    /// The wave's number in its workgroup.
    WaveNumber,
    /// Offset of the wave's private memory in that of the launch.
    ScratchOffset,
    /// A word of the address of the wave's private memory, relative to `from`.
    Scratch { from: u64, word: u32 },
}

impl Launch {
    /// Sets up a wave as the hardware starts it. `slot` is the workgroup's slot among the resident
    /// ones.
    pub fn start(&self, wave: &mut Wave, position: Dim3, index: u32, slot: usize) {
        let rsrc1 = &self.descriptor.rsrc1;
        let id = WaveId { workgroup: position, wave: index };
        wave.reset(self.machine, id, self.start_state.vgprs, self.start_state.acc_vgprs);
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
        for (register, scalar) in &self.start_state.scalars {
            let word = match *scalar {
                Scalar::Word(word) => word,
                Scalar::Workgroup(dimension) => position[dimension],
                Scalar::WorkgroupYz => position[1] | position[2] << 16,
                Scalar::WorkgroupInfo => self.waves(position),
                Scalar::WaveNumber => (index & 31) << 25,
                Scalar::ScratchOffset => offset,
                Scalar::Scratch { from, word } => {
                    (from.wrapping_add(offset.into()) >> (32 * word)) as u32
                }
            };
            wave.write_scalar(*register, word);
        }
    }

    /// Computes the initial state once the launch's memory is placed.
    pub(super) fn start_state(&self) -> Start {
        let (vgprs, acc_vgprs) = self.registers();
        Start {
            vgprs,
            acc_vgprs,
            packs_positions: self.target.packs_work_item_ids(),
            positions: if self.target.packs_work_item_ids() {
                1
            } else {
                u16::from(self.descriptor.rsrc2.vgpr_workitem_id) + 1
            },
            whole: (0..self.waves_of(self.workgroup)).map(|_| OnceLock::new()).collect(),
            scalars: self.scalars(),
        }
    }

    /// Numbers of architectural and accumulation registers of a wave; registers with names of both
    /// kinds count as accumulation registers (AMDGPUUsage, "compute_pgm_rsrc1",
    /// `GRANULATED_WORKITEM_VGPR_COUNT`).
    fn registers(&self) -> (u16, u16) {
        let vgprs = self.descriptor.rsrc1.vgprs;
        let most = RowIndex::UPPER_HALF.0;
        match self.target.acc_vgprs() {
            AccVgprs::None => (vgprs.min(self.target.max_vgprs()), 0),
            AccVgprs::Separate => (vgprs.min(most), vgprs.min(most)),
            AccVgprs::Unified => {
                let arch = self.descriptor.acc_vgpr_base().unwrap_or(vgprs).min(most);
                (arch, (vgprs - arch).min(most))
            }
        }
    }

    /// Sets EXEC and the work-item positions: ten bits per dimension in `v0`, or the dimensions
    /// that the kernel asks for in `v0` to `v2`.
    fn work_items(&self, wave: &mut Wave, position: Dim3, index: u32) {
        let extent = self.extent(position);
        let start = &self.start_state;
        let partial;
        let rows = match start.whole.get(index as usize) {
            Some(whole) if extent == self.workgroup => {
                whole.get_or_init(|| self.positions(extent, index))
            }
            _ => {
                partial = self.positions(extent, index);
                &partial
            }
        };
        for (register, row) in (0..start.positions).zip(rows) {
            *wave.row_mut(RowIndex(register)) = *row;
        }
        let count = self.work_items_of(extent, index);
        let exec = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        wave.set_exec(LaneMask(exec));
    }

    /// Number of work-items of a wave of a workgroup of this extent.
    fn work_items_of(&self, [x, y, z]: Dim3, index: u32) -> u32 {
        let lanes = u32::from(self.machine.lanes);
        (x * y * z).saturating_sub(index * lanes).min(lanes)
    }

    /// Computes the initial vector registers of a wave.
    fn positions(&self, extent: Dim3, index: u32) -> Vec<Row> {
        let start = &self.start_state;
        let mut rows = vec![Row::ZERO; start.positions.into()];
        let [x, y, _] = extent;
        let first = index * u32::from(self.machine.lanes);
        let mut place = [first % x, first / x % y, first / (x * y)];
        for lane in 0..self.work_items_of(extent, index) as usize {
            if start.packs_positions {
                rows[0].0[lane] = place[0] | place[1] << 10 | place[2] << 20;
            } else {
                for (row, place) in rows.iter_mut().zip(place) {
                    row.0[lane] = place;
                }
            }
            place[0] += 1;
            if place[0] == x {
                (place[0], place[1]) = (0, place[1] + 1);
                if place[1] == y {
                    (place[1], place[2]) = (0, place[2] + 1);
                }
            }
        }
        rows
    }

    /// Scalar registers that are initialized.
    pub fn scalars_set(&self) -> Vec<ScalarIndex> {
        self.start_state.scalars.iter().map(|(register, _)| *register).collect()
    }

    /// Number of vector registers, from v0, that are initialized.
    pub fn vgprs_set(&self) -> u16 {
        self.start_state.positions
    }

    /// Number of scalar registers of a wave.
    pub fn sgprs(&self) -> u16 {
        self.descriptor.rsrc1.sgprs
    }

    /// Number of user SGPRs and of SGPRs with the workgroup's position.
    pub fn initial_sgprs(&self) -> u8 {
        let rsrc2 = &self.descriptor.rsrc2;
        let system = [
            rsrc2.workgroup_id_x,
            rsrc2.workgroup_id_y,
            rsrc2.workgroup_id_z,
            rsrc2.workgroup_info,
        ];
        rsrc2.user_sgprs + system.into_iter().filter(|is_set| *is_set).count() as u8
    }

    /// Initial values of user and system SGPRs.
    fn scalars(&self) -> Vec<(ScalarIndex, Scalar)> {
        let mut scalars = Vec::new();
        let words = |words: &[u32]| words.iter().copied().map(Scalar::Word).collect();
        let pair = |value: u64| words(&[value as u32, (value >> 32) as u32]);
        if let UserSgprs::Words(words) = &self.user_sgprs {
            let registers = (0..self.descriptor.rsrc2.user_sgprs).map(ScalarIndex);
            scalars.extend(registers.zip(words.iter().copied().map(Scalar::Word)));
        }
        for initial in self.descriptor.initial_sgprs(&self.target) {
            let values: Vec<Scalar> = match initial.value {
                InitialValue::PrivateSegmentBuffer => words(&self.scratch_resource()),
                InitialValue::DispatchPointer => pair(self.places.packet.0),
                InitialValue::QueuePointer => pair(self.places.queue.0),
                InitialValue::KernargPointer => pair(self.places.kernarg.0),
                InitialValue::DispatchId => pair(self.places.dispatch_id),
                InitialValue::FlatScratchInit => pair(self.scratch.base.0),
                InitialValue::PrivateSegmentSize => words(&[self.scratch.bytes_per_lane]),
                InitialValue::Arguments => words(&self.preloaded),
                InitialValue::WorkgroupIdX => vec![Scalar::Workgroup(0)],
                InitialValue::WorkgroupIdY => vec![Scalar::Workgroup(1)],
                InitialValue::WorkgroupIdZ => vec![Scalar::Workgroup(2)],
                InitialValue::WorkgroupInfo => vec![Scalar::WorkgroupInfo],
                InitialValue::ScratchOffset => vec![Scalar::ScratchOffset],
            };
            let registers = (initial.first.0..).map(ScalarIndex);
            scalars.extend(registers.zip(values));
        }
        // LLVM, `SITargetLowering::allocateSystemSGPRs` and `lowerWaveID`: "architected SGPRs".
        if self.machine.generation >= Generation::Gfx12 {
            let trap_register = |number| ScalarIndex(ScalarIndex::TTMP.0 + number);
            scalars.extend([
                (trap_register(7), Scalar::WorkgroupYz),
                (trap_register(8), Scalar::WaveNumber),
                (trap_register(9), Scalar::Workgroup(0)),
            ]);
        }
        let mut put_scratch = |low: ScalarIndex, from| {
            for word in 0..2 {
                let value = Scalar::Scratch { from, word: word.into() };
                scalars.push((ScalarIndex(low.0 + word), value));
            }
        };
        let base = self.scratch.base.0;
        if self.target.flat_scratch() == FlatScratch::Architected {
            put_scratch(self.machine.flat_scratch, base);
        }
        if self.target.has_globally_addressable_scratch() {
            put_scratch(ScalarIndex::FLAT_SCRATCH_BASE, aperture::GLOBAL_PRIVATE | base);
        }
        scalars
    }

    /// Buffer resource of private memory: swizzled by dword, with the wave's size as index stride,
    /// and the thread number added.
    fn scratch_resource(&self) -> [u32; 4] {
        const SWIZZLE: u32 = 1 << 31;
        const ADD_THREAD: u32 = 1 << 23;
        let base = self.scratch.base.0;
        let bytes = u32::try_from(self.scratch.bytes).unwrap_or(u32::MAX);
        let index_stride = if self.machine.lanes == 32 { 2 << 21 } else { 3 << 21 };
        // From gfx10 on the resource selects the range check: here none.
        let is_rdna = self.machine.generation >= Generation::Gfx10;
        let range = if is_rdna { 2 << 28 } else { 0 };
        let flags = index_stride | ADD_THREAD | range;
        [base as u32, (base >> 32) as u32 & 0xffff | SWIZZLE, bytes, flags]
    }
}
