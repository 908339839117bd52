//! The tool `branch-divergence`: divergent branches of waves.

use super::scope::{counter_array_length, counters, variable_address};
use super::{InstLocation, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, Role, Value};
use serde::Serialize;

/// Counts how often a new value of EXEC splits the active lanes.
///
/// The lanes of an AMD wave do not branch individually: a condition is written to EXEC, and the branch
/// after it only skips code without active lanes. So this tool counts at scalar instructions that write
/// an intersection of masks, or a mask, to EXEC. Instructions that reactivate lanes (`s_or`) or switch to
/// the other lanes (`s_xor`) do not split them. `v_cmpx`, which compilers use from gfx10 on, is not
/// counted.
#[derive(Clone, Debug)]
pub struct BranchDivergence {
    sites: Vec<InstIndex>,
}

/// The effect of an instruction on EXEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BranchCounts {
    /// Executions by waves.
    pub executions: u64,
    /// Executions after which a nonempty proper subset of the previously active lanes is active.
    pub divergent: u64,
}

/// The size of `struct branch` of `branch_divergence.c` in bytes.
const COUNTER: usize = 16;

/// The hook function that computes the new EXEC, and its two mask arguments.
type NewExec = (&'static str, [Argument; 2]);

/// The computation of EXEC by an instruction; `None` if this tool does not count the instruction.
fn new_exec(inst: &Inst) -> Option<NewExec> {
    let exec = inst.writes.iter().find(|range| range.first == Register::ExecLo)?;
    let mut sources = (0..).zip(&inst.operands).filter(|(_, operand)| operand.role == Role::Source);
    let mut source = || {
        let (index, operand) = sources.next()?;
        // A constant, or registers of the size of EXEC.
        let is_mask = match operand.value {
            Value::Register(range) => range.words == exec.words,
            Value::Integer(_) => true,
            _ => false,
        };
        is_mask.then_some(Argument::Operand(index))
    };
    let active = Argument::Register(RegisterRange::new(Register::ExecLo, exec.words));
    Some(match inst.operation.opcode() {
        Opcode::SAndSaveexec => ("branch_and", [active, source()?]),
        Opcode::SAndn1Saveexec | Opcode::SAndn1Wrexec => ("branch_and_not", [active, source()?]),
        Opcode::SAnd => ("branch_and", [source()?, source()?]),
        Opcode::SAndn2 => ("branch_and_not", [source()?, source()?]),
        Opcode::SMov => {
            let mask = source()?;
            ("branch_and", [mask.clone(), mask])
        }
        _ => return None,
    })
}

impl Tool for BranchDivergence {
    type Row = (InstLocation, BranchCounts);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "executions", "divergent"];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<BranchDivergence, ToolError> {
        let program = requests.scope().program();
        let sites = requests.scope().select(|inst| new_exec(inst).is_some());
        let macros = [("COUNTERS", counter_array_length(sites.len()))];
        let source = requests.source("branch_divergence", &macros)?;
        for (&at, number) in sites.iter().zip(0..) {
            let Some((function, masks)) = program.inst(at).and_then(new_exec) else { continue };
            let [first, second] = masks;
            let counter = variable_address("counters", COUNTER * number);
            let arguments = vec![Argument::Exec, first, second, counter];
            requests.call_before(at, source, function, Mask::Single, arguments);
        }
        Ok(BranchDivergence { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstLocation, BranchCounts)>, ToolError> {
        let numbers = counters(variables, "counters")?;
        let (counts, _) = numbers.as_chunks();
        let row = |(&at, &[executions, divergent]): (&InstIndex, &[u64; 2])| {
            Some((scope.location(at)?, BranchCounts { executions, divergent }))
        };
        Ok(self.sites.iter().zip(counts).filter_map(row).collect())
    }
}
