//! How one fault spread: the rows of `trace.csv`.

mod plot;

pub use plot::propagation_svg;

use crate::Workgroup;
use crate::hexadecimal;
use serde::{Deserialize, Serialize};

/// What differed between the run with a fault and the golden one after one instruction: a line of
/// `trace.csv`. The fields are the columns, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropagationRow {
    /// Wave instructions that the faulty run had executed since the fault, over all waves.
    pub time: u64,
    /// Index of the dispatch; empty for the end of the run.
    pub dispatch: Option<u32>,
    /// Position of the workgroup in the grid.
    pub workgroup: Option<Workgroup>,
    /// Index of the wave in its workgroup.
    pub wave: Option<u32>,
    /// ELF virtual address of the instruction.
    #[serde(with = "hexadecimal::address")]
    pub pc: Option<u64>,
    /// Canonical name of its operation.
    pub opcode: String,
    /// Words of registers that were wrong: of a register that each lane has its own of, one per
    /// wrong lane.
    pub wrong_words: u64,
    /// Registers that were wrong, each wave's counted for itself.
    pub wrong_registers: u64,
    /// Lanes with a wrong register of their own, each wave's counted for itself.
    pub wrong_lanes: u64,
    /// Waves with a wrong register, or on another path.
    pub wrong_waves: u64,
    /// Of these, waves that went another way.
    pub waves_on_other_path: u64,
    /// Workgroups with such waves.
    pub wrong_workgroups: u64,
    /// Bytes of LDS.
    pub wrong_lds_bytes: u64,
    /// Bytes of device memory that outlasts the dispatch.
    pub wrong_memory_bytes: u64,
    /// Bytes of scratch.
    pub wrong_scratch_bytes: u64,
    /// What happened then: `fault`, `value`, `masked`, `wave`, `lds`, `path`, `escape`, `missing`,
    /// `output`, `gone`; of the last row how the run ended. Empty where only the numbers changed.
    pub event: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::columns;

    #[test]
    fn traces_have_fixed_columns() {
        assert_eq!(
            columns(&PropagationRow::default()),
            "time,dispatch,workgroup,wave,pc,opcode,wrong_words,wrong_registers,wrong_lanes,\
             wrong_waves,waves_on_other_path,wrong_workgroups,wrong_lds_bytes,wrong_memory_bytes,\
             wrong_scratch_bytes,event"
        );
    }
}
