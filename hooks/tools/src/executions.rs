//! Numbers of executions of instructions, counted by the shipped tool `instruction-count`.

use super::{Cell, DispatchTable, Options, Replacer, ToolError, ToolFile, measure_with};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, Dispatch, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_isa::Pc;

/// The number of executions of an instruction in a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstExecutions {
    /// The kernel or device function that contains the instruction.
    pub function: String,
    /// The address of the instruction in the original code object.
    pub pc: Pc,
    /// Executions by waves, independent of EXEC.
    pub executions: u64,
}

/// Counts the executions of all instructions in each dispatch. Returns the table of each dispatch with its
/// counts.
///
/// # Errors
/// See [`measure_with`].
pub fn count_executions<'a, D: Device>(
    device: &mut D,
    code_of: impl Fn(ModuleId) -> Option<&'a CodeObject>,
    dispatches: &[Dispatch],
    compiler: &HookCompiler,
    replacer: Option<&dyn Replacer>,
) -> Result<Vec<(DispatchTable, Vec<InstExecutions>)>, ToolError> {
    let file = ToolFile::shipped("instruction-count")?;
    let options = Options::default();
    let found = measure_with(device, code_of, dispatches, &file, &options, compiler, replacer)?;
    let counted = |table: DispatchTable| {
        let counts = table.rows.iter().filter_map(|row| InstExecutions::from_row(row)).collect();
        (table, counts)
    };
    Ok(found.tables.into_iter().map(counted).collect())
}

impl InstExecutions {
    /// Reads a row of `instruction-count`: function, PC, text, executions. `None` if the executions are unknown.
    pub fn from_row(row: &[Cell]) -> Option<InstExecutions> {
        let [function, pc, _, executions] = row else { return None };
        let pc = pc.to_string();
        let pc = u64::from_str_radix(pc.strip_prefix("0x")?, 16).ok()?;
        let executions = executions.number()?;
        Some(InstExecutions { function: function.to_string(), pc: Pc(pc), executions })
    }
}
