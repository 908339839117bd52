//! The state of a wave without what it does not use: a [`Wave`] has room for all registers that a
//! wave can have.

use crate::machine::Machine;
use crate::private::Private;
use crate::wave::{Mode, Row, RowIndex, ScalarIndex, Status, Wave};
use flipwave_device::WaveId;

/// A wave put away between two instructions.
#[derive(Clone, Debug)]
pub struct WaveCopy {
    machine: Machine,
    id: WaveId,
    pc: u64,
    vgprs: Box<[Row]>,
    acc_vgprs: Box<[Row]>,
    scalars: Box<[u32; ScalarIndex::COUNT]>,
    scc: bool,
    mode: Mode,
    lds_size: u32,
    private: Private,
    status: Status,
    waits_at: u64,
    executed: u64,
}

impl WaveCopy {
    /// Instructions that it has executed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// The state of a wave.
    pub fn of(wave: &Wave) -> WaveCopy {
        let first = usize::from(RowIndex::FIRST_ACCUMULATION);
        WaveCopy {
            machine: wave.machine,
            id: wave.id,
            pc: wave.pc,
            vgprs: wave.rows[..usize::from(wave.vgpr_count)].into(),
            acc_vgprs: wave.rows[first..first + usize::from(wave.acc_vgpr_count)].into(),
            scalars: Box::new(wave.scalars),
            scc: wave.scc,
            mode: wave.mode,
            lds_size: wave.lds_size,
            private: wave.private,
            status: wave.status,
            waits_at: wave.waits_at,
            executed: wave.executed,
        }
    }

    /// Bytes of its registers.
    pub fn state_bytes(&self) -> u64 {
        let rows = self.vgprs.len() + self.acc_vgprs.len();
        (rows * size_of::<Row>() + size_of_val(&*self.scalars)) as u64
    }

    /// Whether `wave` is in this state, whatever it has executed.
    pub fn is_state_of(&self, wave: &Wave) -> bool {
        let rows = |first: u16, rows: &[Row]| {
            let first = usize::from(first);
            wave.rows.get(first..first + rows.len()) == Some(rows)
        };
        wave.pc == self.pc
            && wave.scc == self.scc
            && wave.mode == self.mode
            && wave.status == self.status
            && wave.scalars == *self.scalars
            && rows(0, &self.vgprs)
            && rows(RowIndex::FIRST_ACCUMULATION, &self.acc_vgprs)
    }

    /// Makes `wave` this one.
    pub fn restore(&self, wave: &mut Wave) {
        let first = usize::from(RowIndex::FIRST_ACCUMULATION);
        let counts = [&self.vgprs, &self.acc_vgprs].map(|rows| rows.len() as u16);
        wave.reset(self.machine, self.id, counts[0], counts[1]);
        wave.rows[..self.vgprs.len()].copy_from_slice(&self.vgprs);
        wave.rows[first..first + self.acc_vgprs.len()].copy_from_slice(&self.acc_vgprs);
        wave.pc = self.pc;
        wave.scalars = *self.scalars;
        wave.set_exec(wave.exec());
        wave.scc = self.scc;
        wave.mode = self.mode;
        wave.lds_size = self.lds_size;
        wave.private = self.private;
        wave.status = self.status;
        wave.waits_at = self.waits_at;
        wave.executed = self.executed;
    }
}
