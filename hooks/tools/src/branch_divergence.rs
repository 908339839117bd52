//! How often the lanes of a wave part.

use super::scope::{data, of, room};
use super::{InstPlace, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_hooks::rewrite::When;
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, Role, Value};
use serde::Serialize;

/// Counts how often a new EXEC divides the lanes that run.
///
/// Lanes of an AMD wave do not branch: a condition is written into EXEC, and the branch after it
/// only skips code that no lane wants. So this looks at the scalar instructions that put an
/// intersection of masks, or a mask as it is, into EXEC. What brings lanes back (`s_or`) or
/// changes sides (`s_xor`) divides nothing; `v_cmpx`, which compilers use from gfx10 on, is not
/// looked at.
#[derive(Clone, Debug)]
pub struct BranchDivergence {
    sites: Vec<InstIndex>,
}

/// What an instruction makes of EXEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BranchCounts {
    /// Executions by waves.
    pub executions: u64,
    /// Those after which some but not all lanes run that ran before, and no others.
    pub divergent: u64,
}

/// Bytes of `struct branch` of `branch_divergence.c`.
const COUNTER: usize = 16;

/// How the new EXEC follows from two masks: the hook's function, and the masks.
type NewExec = (&'static str, [Argument; 2]);

/// How an instruction makes its EXEC, where this tool looks at it.
fn new_exec(inst: &Inst) -> Option<NewExec> {
    let exec = inst.writes.iter().find(|range| range.first == Register::ExecLo)?;
    let mut sources = (0..).zip(&inst.operands).filter(|(_, own)| own.role == Role::Source);
    let mut source = || {
        let (index, operand) = sources.next()?;
        // A constant of a mask's size, or registers of it.
        let is_mask = match operand.value {
            Value::Register(range) => range.words == exec.words,
            Value::Integer(_) => true,
            _ => false,
        };
        is_mask.then_some(Argument::Operand(index))
    };
    let running = Argument::Register(RegisterRange::new(Register::ExecLo, exec.words));
    Some(match inst.operation.opcode() {
        Opcode::SAndSaveexec => ("branch_and", [running, source()?]),
        Opcode::SAndn1Saveexec | Opcode::SAndn1Wrexec => ("branch_and_not", [running, source()?]),
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
    type Row = (InstPlace, BranchCounts);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "executions", "divergent"];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<BranchDivergence, ToolError> {
        let program = asking.scope().program();
        let sites = asking.scope().select(|inst| new_exec(inst).is_some());
        let source = asking.source("branch_divergence", &[("COUNTERS", room(sites.len()))])?;
        for (&at, number) in sites.iter().zip(0..) {
            let Some((function, masks)) = program.inst(at).and_then(new_exec) else { continue };
            let [one, other] = masks;
            let arguments = vec![Argument::Exec, one, other, data("counters", COUNTER * number)];
            asking.call((at, When::Before), (source, function), Mask::Single, arguments);
        }
        Ok(BranchDivergence { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstPlace, BranchCounts)>, ToolError> {
        let numbers = of(variables, "counters")?;
        let (counts, _) = numbers.as_chunks();
        let row = |(&at, &[executions, divergent]): (&InstIndex, &[u64; 2])| {
            Some((scope.place(at)?, BranchCounts { executions, divergent }))
        };
        Ok(self.sites.iter().zip(counts).filter_map(row).collect())
    }
}
