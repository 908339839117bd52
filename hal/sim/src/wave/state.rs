//! The architectural state of one wave.

use super::joined::Joined;
use super::level::Level;
use super::machine::Machine;
use super::mode::Mode;
use super::private::Private;
use super::registers::{Row, RowIndex, ScalarIndex, blend};
use super::rows::Rows;
use flipwave_device::WaveId;
use flipwave_isa::{Generation, Lane, LaneMask, Register, VgprMsb};
use std::fmt;
use std::ops::Range;

/// The architectural state of a wave, and its progress.
pub struct Wave {
    /// Vector extensions of the executing host.
    pub level: Level,
    /// Properties of the target and the wave size.
    pub machine: Machine,
    /// Identity of the wave.
    pub id: WaveId,
    /// Device address of the next instruction.
    pub pc: u64,
    /// Vector registers, see [`RowIndex`].
    pub rows: Rows,
    /// Rows for intermediate values: broadcasts and modified sources.
    pub scratch: Box<[Row; SCRATCH_ROWS]>,
    /// Scalar registers, see [`ScalarIndex`]. EXEC must be written through
    /// [`Wave::write_scalar`] or [`Wave::set_exec`].
    pub scalars: [u32; ScalarIndex::COUNT],
    /// EXEC as a row with a word per lane.
    exec_row: Row,
    /// Number of active lanes.
    active_lanes: u32,
    /// Scalar condition code (SCC).
    pub scc: bool,
    /// MODE register.
    pub mode: Mode,
    /// Architectural vector registers allocated.
    pub vgpr_count: u16,
    /// Accumulation vector registers allocated.
    pub acc_vgpr_count: u16,
    /// Number of rows of each half of the file, from its first row on, that may be in use:
    /// allocated registers, and registers beyond them that invalid code wrote.
    pub rows_used: [u16; 2],
    /// LDS bytes of the workgroup.
    pub lds_size: u32,
    /// Private memory of the wave.
    pub private: Private,
    /// Lanes whose per-lane destinations the last instruction wrote, if it selected the lanes
    /// itself.
    pub written_lanes: Option<LaneMask>,
    /// Number of completions of the split barrier that the wave has seen.
    pub barriers_passed: u32,
    /// Named barrier that the wave has joined.
    pub joined: Joined,
    /// Execution status.
    pub status: Status,
    /// Device address of the instruction at which the wave waits, if it waits.
    pub waits_at: u64,
    /// Instructions executed.
    pub executed: u64,
    /// Number of executed instructions at which the wave's [progress](Wave::progress) starts.
    pub aligned_at: u64,
}

impl Clone for Wave {
    /// Copies only the allocated registers; the others stay untouched memory.
    fn clone(&self) -> Wave {
        let mut rows = Rows::zeroed();
        for range in self.allocated() {
            rows[range.clone()].copy_from_slice(&self.rows[range]);
        }
        Wave { rows, scratch: self.scratch.clone(), ..*self }
    }
}

impl fmt::Debug for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wave")
            .field("id", &self.id)
            .field("pc", &self.pc)
            .field("status", &self.status)
            .field("executed", &self.executed)
            .finish_non_exhaustive()
    }
}

/// Execution status of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Ready to execute.
    Ready,
    /// Waiting at a barrier.
    AtBarrier,
    /// Waiting until all waves of the workgroup have signalled a split barrier.
    AtSplitBarrier,
    /// Waiting for a resource of global wave sync.
    AtGlobalSync,
    /// Halted by an instruction, and never resumed by the host.
    Halted,
    /// Ended.
    Ended,
}

/// Rows of [`Wave::scratch`]: three sources of up to two words, and the same number of intermediate
/// copies.
pub const SCRATCH_ROWS: usize = 8;

impl Wave {
    /// A wave with no registers allocated.
    pub fn new(level: Level) -> Wave {
        Wave {
            level,
            machine: Machine::default(),
            id: WaveId { workgroup: [0; 3], wave: 0 },
            pc: 0,
            rows: Rows::zeroed(),
            scratch: Box::new([Row::ZERO; SCRATCH_ROWS]),
            scalars: [0; ScalarIndex::COUNT],
            exec_row: Row::ZERO,
            active_lanes: 0,
            scc: false,
            mode: Mode::default(),
            vgpr_count: 0,
            acc_vgpr_count: 0,
            rows_used: [0; 2],
            lds_size: 0,
            private: Private::default(),
            written_lanes: None,
            barriers_passed: 0,
            joined: Joined::default(),
            status: Status::Ended,
            waits_at: 0,
            executed: 0,
            aligned_at: 0,
        }
    }

    /// Resets to the initial state, with zeroed registers of this many rows.
    pub fn reset(&mut self, machine: Machine, id: WaveId, vgpr_count: u16, acc_vgpr_count: u16) {
        self.machine = machine;
        self.vgpr_count = vgpr_count;
        self.acc_vgpr_count = acc_vgpr_count;
        let allocated = RowIndex::halves(self.allocated());
        for ((first, count), used) in
            [RowIndex(0), RowIndex::UPPER_HALF].into_iter().zip(allocated).zip(self.rows_used)
        {
            let (first, count) = (usize::from(first.0), usize::from(count.max(used)));
            self.rows.zero(first..first + count);
        }
        self.rows_used = allocated;
        self.id = id;
        self.scalars = [0; ScalarIndex::COUNT];
        self.scc = false;
        self.written_lanes = None;
        self.barriers_passed = 0;
        self.joined = Joined::default();
        self.status = Status::Ready;
        self.waits_at = 0;
        self.executed = 0;
        self.aligned_at = 0;
        self.set_exec(LaneMask::EMPTY);
    }

    /// Number of instructions executed since the workgroup started or passed a barrier, for
    /// comparing waves of a workgroup.
    pub fn progress(&self) -> u64 {
        self.executed.wrapping_sub(self.aligned_at)
    }

    /// Sets the progress, after a wait.
    pub fn set_progress(&mut self, progress: u64) {
        self.aligned_at = self.executed.wrapping_sub(progress);
    }

    /// Starts a wait at the instruction at address `pc`.
    pub fn wait(&mut self, status: Status, pc: u64) {
        (self.status, self.waits_at) = (status, pc);
    }

    /// Rows of the allocated registers.
    pub fn allocated(&self) -> [Range<usize>; 2] {
        let [vgprs, first, count] =
            [self.vgpr_count, self.machine.accumulation.0, self.acc_vgpr_count];
        let end = usize::from(first + count).min(RowIndex::COUNT);
        [0..usize::from(vgprs), usize::from(first).min(end)..end]
    }

    /// The EXEC mask.
    #[inline(always)]
    pub fn exec(&self) -> LaneMask {
        LaneMask(self.scalar_pair(ScalarIndex::EXEC))
    }

    /// EXEC as a row with all ones in active lanes.
    #[inline(always)]
    pub fn exec_row(&self) -> &Row {
        &self.exec_row
    }

    /// Returns the scratch rows mutably, together with EXEC.
    #[inline(always)]
    pub fn scratch_and_exec(&mut self) -> (&mut [Row; SCRATCH_ROWS], &Row) {
        (&mut self.scratch, &self.exec_row)
    }

    /// Returns the rows of consecutive vector registers mutably.
    pub fn rows_mut(&mut self, first: RowIndex, count: u8) -> &mut [Row] {
        self.rows_and_exec(first, count).0
    }

    /// Returns the rows of consecutive vector registers mutably, together with EXEC.
    #[inline(always)]
    pub fn rows_and_exec(&mut self, first: RowIndex, count: u8) -> (&mut [Row], &Row) {
        let start = usize::from(first.0).min(RowIndex::COUNT);
        let end = (start + usize::from(count)).min(RowIndex::COUNT);
        (&mut self.rows[start..end], &self.exec_row)
    }

    /// Rows of consecutive vector registers.
    #[inline(always)]
    pub fn rows_of(&self, first: RowIndex, count: u8) -> &[Row] {
        let start = usize::from(first.0).min(RowIndex::COUNT);
        &self.rows[start..(start + usize::from(count)).min(RowIndex::COUNT)]
    }

    /// Writes EXEC, limited to the lanes of the wave.
    pub fn set_exec(&mut self, mask: LaneMask) {
        let mask = LaneMask(mask.0 & self.machine.all_lanes().0);
        let index = usize::from(ScalarIndex::EXEC.0);
        self.scalars[index] = mask.0 as u32;
        self.scalars[index + 1] = (mask.0 >> 32) as u32;
        self.exec_row = Row::expand(mask);
        self.active_lanes = mask.count();
    }

    /// High bits of the vector register numbers.
    #[inline(always)]
    pub fn banks(&self) -> VgprMsb {
        match self.machine.generation {
            Generation::Gfx125 => VgprMsb::from_mode(self.mode.0),
            _ => VgprMsb::default(),
        }
    }

    /// Number of active lanes.
    #[inline(always)]
    pub fn active_lanes(&self) -> u32 {
        self.active_lanes
    }

    /// VCC, limited to the lanes of the wave.
    #[inline(always)]
    pub fn vcc(&self) -> u64 {
        self.scalar_pair(ScalarIndex::VCC) & self.machine.all_lanes().0
    }

    /// Reads a 32-bit scalar.
    #[inline(always)]
    pub fn scalar(&self, index: ScalarIndex) -> u32 {
        self.scalars[usize::from(index.0)]
    }

    /// Reads a 64-bit scalar from two consecutive registers.
    #[inline(always)]
    pub fn scalar_pair(&self, index: ScalarIndex) -> u64 {
        let low = u64::from(self.scalar(index));
        low | u64::from(self.scalar(ScalarIndex(index.0 + 1))) << 32
    }

    /// Writes a 32-bit scalar.
    #[inline(always)]
    pub fn write_scalar(&mut self, index: ScalarIndex, word: u32) {
        self.scalars[usize::from(index.0)] = word;
        if index.is_exec() {
            self.set_exec(self.exec());
        }
    }

    /// Writes a 64-bit scalar to two consecutive registers.
    #[inline(always)]
    pub fn write_scalar_pair(&mut self, index: ScalarIndex, value: u64) {
        self.scalars[usize::from(index.0)] = value as u32;
        self.write_scalar(ScalarIndex(index.0 + 1), (value >> 32) as u32);
    }

    /// Writes a lane mask to the registers of its two words, see [`Machine::mask_destination`].
    #[inline(always)]
    pub fn write_mask(&mut self, [low, high]: [ScalarIndex; 2], mask: LaneMask) {
        self.scalars[usize::from(low.0)] = mask.0 as u32;
        self.scalars[usize::from(high.0)] = (mask.0 >> 32) as u32;
        if low.is_exec() {
            self.set_exec(self.exec());
        }
    }

    /// Reads a vector register.
    #[inline(always)]
    pub fn row(&self, index: RowIndex) -> &Row {
        &self.rows[index.slot()]
    }

    /// Returns a vector register for writing, regardless of EXEC.
    #[inline(always)]
    pub fn row_mut(&mut self, index: RowIndex) -> &mut Row {
        &mut self.rows[index.slot()]
    }

    /// Writes the active lanes of a vector register.
    #[inline(always)]
    pub fn write_row(&mut self, index: RowIndex, value: &Row) {
        let row = &mut self.rows[index.slot()];
        if self.scalars[126] & self.scalars[127] == u32::MAX {
            *row = *value;
        } else {
            blend(row, value, &self.exec_row);
        }
    }

    /// Writes the active lanes of consecutive vector registers.
    #[inline(always)]
    pub fn write_rows<const ROWS: usize>(&mut self, first: RowIndex, values: &[Row; ROWS]) {
        for (words, value) in (0..).zip(values) {
            self.write_row(first.plus(words), value);
        }
    }

    /// Reads a register by name; `None` if it is not allocated or has no storage.
    pub fn read_register(&self, register: Register, lane: Lane) -> Option<u32> {
        if let Some(row) = self.allocated_row(register) {
            return self.row(row).0.get(usize::from(lane.0)).copied();
        }
        match register {
            Register::Scc => Some(self.scc.into()),
            Register::Mode => Some(self.mode.0),
            other => self.machine.scalar(other).map(|index| self.scalar(index)),
        }
    }

    /// Reads all lanes of an allocated per-lane register.
    pub fn read_lanes(&self, register: Register) -> Option<&[u32; 64]> {
        self.allocated_row(register).map(|row| &self.row(row).0)
    }

    /// Writes a register by name; returns `false` if [`Wave::read_register`] returns `None`.
    pub fn write_register(&mut self, register: Register, lane: Lane, value: u32) -> bool {
        if let Some(row) = self.allocated_row(register) {
            return match self.row_mut(row).0.get_mut(usize::from(lane.0)) {
                Some(word) => {
                    *word = value;
                    true
                }
                None => false,
            };
        }
        match register {
            Register::Scc => self.scc = value & 1 != 0,
            Register::Mode => self.mode = Mode(value),
            other => match self.machine.scalar(other) {
                Some(index) => self.write_scalar(index, value),
                None => return false,
            },
        }
        true
    }

    fn allocated_row(&self, register: Register) -> Option<RowIndex> {
        let is_there = match register {
            Register::Vgpr(v) => v.0 < self.vgpr_count,
            Register::AccVgpr(a) => u16::from(a.0) < self.acc_vgpr_count,
            _ => false,
        };
        self.machine.row(register).filter(|_| is_there)
    }
}
