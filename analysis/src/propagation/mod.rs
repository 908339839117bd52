//! The propagation of one fault: the rows of `trace.csv` and their plot.

mod plot;

pub use plot::propagation_svg;

use crate::Workgroup;
use crate::hexadecimal;
use serde::{Deserialize, Serialize};

/// The difference between a faulty run and the golden run after one instruction: a line of `trace.csv`. The
/// fields are the columns, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropagationRow {
    /// Wave instructions executed by all waves of the faulty run since the fault.
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
    /// Canonical opcode of the instruction.
    pub opcode: String,
    /// Wrong 32-bit words in registers; a VGPR counts one word per wrong lane.
    pub wrong_words: u64,
    /// Wrong registers, counted per wave.
    pub wrong_registers: u64,
    /// Lanes with a wrong VGPR, counted per wave.
    pub wrong_lanes: u64,
    /// Waves with a wrong register or on another control-flow path.
    pub wrong_waves: u64,
    /// Waves on another control-flow path.
    pub waves_on_other_path: u64,
    /// Workgroups with wrong waves.
    pub wrong_workgroups: u64,
    /// Wrong bytes of LDS.
    pub wrong_lds_bytes: u64,
    /// Wrong bytes of device memory, except scratch.
    pub wrong_memory_bytes: u64,
    /// Wrong bytes of scratch.
    pub wrong_scratch_bytes: u64,
    /// Event at this instruction: `fault`, `value`, `masked`, `wave`, `lds`, `path`, `escape`, `missing`,
    /// `output` or `gone`; the end of the run in the last row; empty if only the numbers changed.
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
