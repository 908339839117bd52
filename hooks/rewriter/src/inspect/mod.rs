//! What a code object's code looks like, as data for people and programs.

mod code;
mod inspector;
mod registers;

pub use code::{
    BlockFacts, CallFacts, EdgeFacts, FunctionFacts, InstFacts, LoopFacts, MemoryFacts,
    UnresolvedFacts,
};
pub use inspector::Inspector;
pub use registers::{Counts, FreeFacts, LiveFacts, RegisterFacts, Spread};

use crate::flow::{FlowError, FunctionIndex};
use crate::registers::Allocation;
use code::Context;
use flipwave_codeobj::{CodeObject, CodeObjectError, InitialValue, Kernel};
use flipwave_isa::{Register, RegisterRange, Target};
use serde::Serialize;

/// What to show besides the kernels and functions there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InspectOptions {
    /// Only of this kernel, and of what it may call.
    pub kernel: Option<String>,
    /// Blocks, edges, loops, calls, instructions.
    pub cfg: bool,
    /// Which registers are live and free.
    pub registers: bool,
    /// The source line of each instruction.
    pub lines: bool,
}

impl InspectOptions {
    /// Whether instructions are shown.
    pub fn lists_code(&self) -> bool {
        self.cfg || self.registers || self.lines
    }
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
    /// What of its own flow is not understood; its function has it, too.
    #[serde(skip)]
    pub unresolved: Vec<UnresolvedFacts>,
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
pub fn inspect(object: &CodeObject, wanted: &InspectOptions) -> Result<Inspection, InspectError> {
    let inspector = Inspector::new(object, wanted)?;
    Ok(Inspection {
        target: object.target().to_string(),
        version: object.version(),
        wave_size: inspector.wave_size(),
        kernels: inspector.kernels().collect(),
        functions: inspector.functions(true).collect(),
    })
}

fn preloaded(kernel: &Kernel, target: &Target) -> Option<String> {
    let initial = kernel.descriptor.initial_sgprs(target);
    let own = initial.iter().find(|own| own.value == InitialValue::Arguments)?;
    Some(RegisterRange::new(Register::Sgpr(own.first), own.words).to_string())
}

fn kernel(
    context: &Context<'_>,
    object: &CodeObject,
    index: usize,
    function: FunctionIndex,
) -> KernelFacts {
    let (program, liveness) = (context.program, context.liveness);
    let kernel = &object.kernels()[index];
    let reachable = program.reachable(function);
    let functions = || reachable.iter().map(|own| &program.functions[*own]);
    let called = functions().filter(|own| own.kernel != Some(index));
    KernelFacts {
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
        unresolved: code::unresolved(program, &program.functions[function]),
    }
}
