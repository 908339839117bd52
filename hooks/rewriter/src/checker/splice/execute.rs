//! Symbolic execution of one inserted instruction.

use super::content::Content;
use super::state::{Indexing, LaneContents, SymbolicState};
use super::{scalar, vector};
use crate::checker::facts::Facts;
use flipwave_isa::{Class, LanesWritten, Opcode, Register};

/// Executes the instruction at `pc`.
///
/// # Errors
/// Returns a message if the instruction must not be inserted here.
pub fn execute(facts: &Facts, pc: u64, state: &mut SymbolicState) -> Result<(), &'static str> {
    let is_vector = matches!(facts.inst.class(), Class::Valu | Class::Matrix);
    if is_vector && state.indexing() == Indexing::Guest {
        return Err("vector instruction where the original program may be in GPR-index mode");
    }
    match facts.opcode() {
        Opcode::SBarrier => return Err("barrier in inserted code"),
        _ if facts.inst.ends_wave() => return Err("inserted code ends the wave"),
        Opcode::SSetpc | Opcode::SCbranchFork | Opcode::SCbranchJoin => {
            return Err("control flow of inserted code cannot be followed");
        }
        _ => {}
    }
    let executed = match facts.inst.class() {
        Class::Salu | Class::Branch => scalar::execute(facts, pc, state),
        Class::Smem => scalar::load_arguments(&facts.inst, state),
        Class::Valu | Class::Vmem => vector::execute(facts, state),
        _ => None,
    };
    if executed.is_none() {
        forget_written(facts, state);
    }
    vector::indexed_writes(facts, state);
    Ok(())
}

/// Sets all registers that an instruction writes to unknown values.
fn forget_written(facts: &Facts, state: &mut SymbolicState) {
    for register in facts.writes.iter() {
        if !register.is_per_lane() {
            if !matches!(register, Register::Null) {
                state.set_scalar(register, Content::Unknown);
            }
        } else if facts.inst.lanes_written() == LanesWritten::All {
            state.forget_vector(register);
        } else {
            state.write_vector(register, LaneContents::UNKNOWN);
        }
    }
}
