//! A compact copy of a wave's state: unlike a [`Wave`], which has room for all possible registers,
//! it stores only the allocated ones.

use super::joined::Joined;
use super::machine::Machine;
use super::mode::Mode;
use super::private::Private;
use super::registers::{Row, ScalarIndex};
use super::state::{Status, Wave};
use flipwave_device::WaveId;

/// The state of a wave between two instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct WaveCopy {
    machine: Machine,
    id: WaveId,
    pc: u64,
    vgpr_count: u16,
    acc_vgpr_count: u16,
    /// Rows of the allocated registers.
    rows: [Box<[Row]>; 2],
    scalars: Box<[u32; ScalarIndex::COUNT]>,
    scc: bool,
    mode: Mode,
    lds_size: u32,
    private: Private,
    barriers_passed: u32,
    joined: Joined,
    status: Status,
    waits_at: u64,
    executed: u64,
    aligned_at: u64,
}

impl WaveCopy {
    /// Number of instructions that the wave has executed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Copies the state of a wave.
    pub fn of(wave: &Wave) -> WaveCopy {
        WaveCopy {
            machine: wave.machine,
            id: wave.id,
            pc: wave.pc,
            vgpr_count: wave.vgpr_count,
            acc_vgpr_count: wave.acc_vgpr_count,
            rows: wave.allocated().map(|range| wave.rows[range].into()),
            scalars: Box::new(wave.scalars),
            scc: wave.scc,
            mode: wave.mode,
            lds_size: wave.lds_size,
            private: wave.private,
            barriers_passed: wave.barriers_passed,
            joined: wave.joined,
            status: wave.status,
            waits_at: wave.waits_at,
            executed: wave.executed,
            aligned_at: wave.aligned_at,
        }
    }

    /// Size of the registers in bytes.
    pub fn state_bytes(&self) -> u64 {
        let rows: usize = self.rows.iter().map(|rows| rows.len()).sum();
        (rows * size_of::<Row>() + size_of_val(&*self.scalars)) as u64
    }

    /// Returns `true` if `wave` is in this state, ignoring its count of executed instructions.
    pub fn is_state_of(&self, wave: &Wave) -> bool {
        let allocated = wave.allocated().map(|range| &wave.rows[range]);
        wave.pc == self.pc
            && wave.scc == self.scc
            && wave.mode == self.mode
            && wave.status == self.status
            && wave.scalars == *self.scalars
            && allocated.iter().zip(&self.rows).all(|(now, then)| **now == **then)
    }

    /// Restores this state into `wave`.
    pub fn restore(&self, wave: &mut Wave) {
        wave.reset(self.machine, self.id, self.vgpr_count, self.acc_vgpr_count);
        for (range, rows) in wave.allocated().into_iter().zip(&self.rows) {
            wave.rows[range].copy_from_slice(rows);
        }
        wave.pc = self.pc;
        wave.scalars = *self.scalars;
        wave.set_exec(wave.exec());
        wave.scc = self.scc;
        wave.mode = self.mode;
        wave.lds_size = self.lds_size;
        wave.private = self.private;
        wave.barriers_passed = self.barriers_passed;
        wave.joined = self.joined;
        wave.status = self.status;
        wave.waits_at = self.waits_at;
        wave.executed = self.executed;
        wave.aligned_at = self.aligned_at;
    }
}
