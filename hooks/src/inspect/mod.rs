//! What a code object's code looks like, as data for people and programs.

mod code;
mod registers;

pub use code::{
    BlockFacts, CallFacts, EdgeFacts, FunctionFacts, InstFacts, LoopFacts, MemoryFacts,
    UnresolvedFacts,
};
pub use registers::{Counts, FreeFacts, LiveFacts, RegisterFacts, Spread};

use crate::dataflow::Liveness;
use crate::flow::{FlowError, FunctionIndex, Program};
use crate::registers::Allocation;
use flipwave_codeobj::{CodeObject, CodeObjectError, InitialValue, Kernel, LineTable};
use flipwave_isa::{Register, RegisterRange, Target};
use serde::Serialize;

/// What to tell besides the kernels and functions there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only of this kernel, and of what it may call.
    pub kernel: Option<String>,
    /// Blocks, edges, loops, calls, instructions.
    pub cfg: bool,
    /// Which registers are live and free.
    pub registers: bool,
    /// The source line of each instruction.
    pub lines: bool,
}

/// What a code object's code looks like. Addresses are ELF virtual addresses, written as `0x1900`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// What it is compiled for.
    pub target: String,
    /// Version of the code object's format.
    pub version: u8,
    /// Lanes of its waves.
    pub wave_size: u8,
    /// Its kernels.
    pub kernels: Vec<KernelFacts>,
    /// Its functions, kernels too, by ascending address.
    pub functions: Vec<FunctionFacts>,
}

/// A kernel, by its descriptor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelFacts {
    /// Its name.
    pub name: String,
    /// Where its code lies.
    pub entry: String,
    /// Where waves begin: after the entry if arguments are preloaded.
    pub start: String,
    /// The registers that arguments are preloaded into.
    pub preloaded: Option<String>,
    /// What its waves have of each register file.
    pub allocated: Counts,
    /// LDS of a workgroup, in bytes, as far as it is fixed.
    pub lds_bytes: u32,
    /// Private memory of a lane, in bytes, as far as it is fixed.
    pub scratch_bytes: u32,
    /// Its arguments, in bytes.
    pub kernarg_bytes: u32,
    /// Registers that hold something when it starts.
    pub initialised: String,
    /// Functions that it may call, directly or not.
    pub calls: Vec<String>,
    /// Instructions of the kernel and of all that it may call.
    pub instructions: usize,
    /// What it uses and leaves of the registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<RegisterFacts>,
}

/// Why a code object cannot be inspected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// Its code cannot be read.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Its line tables cannot be read.
    #[error(transparent)]
    Lines(#[from] CodeObjectError),
    /// It has no kernel of this name.
    #[error("no kernel `{wanted}`; it has: {}", if present.is_empty() { "none".to_owned() } else { present.join(", ") })]
    UnknownKernel {
        /// The name.
        wanted: String,
        /// The names there are.
        present: Vec<String>,
    },
}

/// Looks at a code object.
///
/// # Errors
/// [`InspectError`].
pub fn inspect(object: &CodeObject, wanted: &Wanted) -> Result<Inspection, InspectError> {
    let program = Program::read(object)?;
    let lines = if wanted.lines { object.lines()? } else { LineTable::default() };
    let selected = match &wanted.kernel {
        Some(name) => Some(selected(object, &program, name)?),
        None => None,
    };
    let is_selected =
        |index| selected.as_ref().is_none_or(|(_, functions)| functions.contains(&index));
    let liveness = wanted.registers.then(|| Liveness::new(&program));
    let kernels = object
        .kernels()
        .iter()
        .enumerate()
        .filter(|(index, _)| selected.as_ref().is_none_or(|(kernel, _)| kernel == index))
        .filter_map(|(index, own)| kernel(object, &program, liveness.as_ref(), index, own))
        .collect();
    let context =
        code::Context { program: &program, liveness: liveness.as_ref(), lines: &lines, wanted };
    let functions = program
        .functions
        .enumerated()
        .filter(|(index, _)| is_selected(*index))
        .map(|(index, own)| {
            let default = common_allocation(object, &program, index);
            code::function(&context, own, [default, Allocation::maximal(object.target())])
        })
        .collect();
    Ok(Inspection {
        target: object.target().to_string(),
        version: object.version(),
        wave_size: program.wave_size,
        kernels,
        functions,
    })
}

/// The registers that all kernels have that run a function.
fn common_allocation(
    object: &CodeObject,
    program: &Program,
    function: FunctionIndex,
) -> Allocation {
    let most = Allocation::maximal(object.target());
    let runs = |index: usize| {
        program.kernel(index).is_some_and(|own| program.reachable(own).contains(&function))
    };
    let kernels = object.kernels().iter().enumerate().filter(|(index, _)| runs(*index));
    kernels.map(|(_, kernel)| Allocation::of(kernel, object.target())).fold(most, Allocation::least)
}

/// A kernel by its name, and the functions that run when it does.
fn selected(
    object: &CodeObject,
    program: &Program,
    name: &str,
) -> Result<(usize, Vec<FunctionIndex>), InspectError> {
    let kernel = object
        .kernels()
        .iter()
        .position(|kernel| &*kernel.name == name || &*kernel.symbol == name)
        .ok_or_else(|| InspectError::UnknownKernel {
            wanted: name.to_owned(),
            present: object.kernels().iter().map(|kernel| kernel.name.to_string()).collect(),
        })?;
    Ok((kernel, program.kernel(kernel).map_or_else(Vec::new, |own| program.reachable(own))))
}

fn preloaded(kernel: &Kernel, target: &Target) -> Option<String> {
    let initial = kernel.descriptor.initial_sgprs(target);
    let own = initial.iter().find(|own| own.value == InitialValue::Arguments)?;
    Some(RegisterRange::new(Register::Sgpr(own.first), own.words).to_string())
}

fn kernel(
    object: &CodeObject,
    program: &Program,
    liveness: Option<&Liveness<'_>>,
    index: usize,
    kernel: &Kernel,
) -> Option<KernelFacts> {
    let function = program.kernel(index)?;
    let reachable = program.reachable(function);
    let functions = || reachable.iter().map(|own| &program.functions[*own]);
    let called = functions().filter(|own| own.kernel != Some(index));
    Some(KernelFacts {
        name: kernel.name.to_string(),
        entry: kernel.entry().to_string(),
        start: kernel.start().to_string(),
        preloaded: preloaded(kernel, object.target()),
        allocated: Allocation::of(kernel, object.target()).into(),
        lds_bytes: kernel.descriptor.group_segment_fixed_size,
        scratch_bytes: kernel.descriptor.private_segment_fixed_size,
        kernarg_bytes: kernel.descriptor.kernarg_size,
        initialised: crate::dataflow::initialised(kernel, object.target()).to_string(),
        calls: called.map(|own| own.name.to_string()).collect(),
        instructions: functions().map(|own| own.instructions.len()).sum(),
        registers: liveness.map(|own| registers::of(own, function, kernel, object.target())),
    })
}
