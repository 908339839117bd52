//! Builds the copy of an instruction.

use super::results::ResultRegister;
use flipwave_ptx::{Instruction, Name};
use flipwave_ptx_hooks::for_each_name;
use std::collections::HashMap;

/// The copy of an instruction that writes `shadows` in place of its results, and reads the registers in
/// `sources` in place of others.
pub fn copy(
    inst: &Instruction,
    results: &[ResultRegister],
    shadows: &[Name],
    written_operands: usize,
    sources: &HashMap<Name, Name>,
) -> Instruction {
    let written: HashMap<&Name, &Name> =
        results.iter().map(|result| &result.name).zip(shadows).collect();
    let mut copy = inst.clone();
    for (number, operand) in copy.operands.iter_mut().enumerate() {
        for_each_name(operand, &mut |name| {
            let is_written = number < written_operands;
            let new = if is_written { written.get(name).copied() } else { sources.get(name) };
            if let Some(new) = new {
                *name = new.clone();
            }
        });
    }
    copy
}
