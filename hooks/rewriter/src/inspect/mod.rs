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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counts(vgprs: u16) -> Counts {
        Counts { vgprs, acc_vgprs: 2, sgprs: 3 }
    }

    #[test]
    fn inspections_have_fixed_names() {
        let free = || FreeFacts {
            allocated: counts(1),
            globally_free: counts(1),
            globally_free_registers: "v9".to_owned(),
            locally_free: Spread { least: counts(1), median: counts(2), most: counts(3) },
            persistent: counts(1),
            persistent_registers: "v10".to_owned(),
        };
        let kernel = KernelFacts {
            name: "add".to_owned(),
            entry: "0x100".to_owned(),
            start: "0x80".to_owned(),
            preloaded: Some("s[0:1]".to_owned()),
            allocated: counts(1),
            lds_bytes: 4,
            scratch_bytes: 5,
            kernarg_bytes: 6,
            initialised: "s[4:5]".to_owned(),
            calls: vec!["helper".to_owned()],
            instructions: 7,
            registers: Some(RegisterFacts { default: free(), maximal: free() }),
            unresolved: Vec::new(),
        };
        let memory = MemoryFacts {
            space: "global",
            kind: "load",
            bytes: 4,
            address: vec!["v0".to_owned()],
            offsets: vec![8],
            loaded: Some("v1".to_owned()),
            stored: vec!["v2".to_owned()],
        };
        let live = LiveFacts {
            counts: counts(1),
            active: "v0".to_owned(),
            masked: "v1".to_owned(),
            free_default: counts(1),
            free_maximal: counts(1),
        };
        let inst = InstFacts {
            pc: "0x100".to_owned(),
            text: "s_endpgm".to_owned(),
            memory: Some(memory),
            line: Some("add.cl:3".to_owned()),
            live: Some(live),
        };
        let block = BlockFacts {
            index: 0,
            loop_depth: 1,
            predecessors: vec![1],
            successors: vec![EdgeFacts { to: 2, kind: "jump" }],
            end: "branch",
            instructions: vec![inst],
        };
        let function = FunctionFacts {
            name: "add".to_owned(),
            is_kernel: true,
            entry: "0x100".to_owned(),
            bytes: 8,
            instructions: 9,
            blocks: 1,
            loops: vec![LoopFacts { header: 0, blocks: vec![0], depth: 1 }],
            calls: vec![CallFacts {
                pc: "0x104".to_owned(),
                callee: Some("helper".to_owned()),
                may_reach: vec!["helper".to_owned()],
            }],
            address_taken: false,
            unresolved: vec![UnresolvedFacts {
                pc: "0x108".to_owned(),
                text: "s_setpc_b64 s[0:1]".to_owned(),
                reason: "unknown".to_owned(),
            }],
            code: Some(vec![block]),
        };
        let inspection = Inspection {
            target: "gfx90a".to_owned(),
            version: 5,
            wave_size: 64,
            kernels: vec![kernel],
            functions: vec![function],
        };
        let counts = |vgprs| json!({"vgprs": vgprs, "acc_vgprs": 2, "sgprs": 3});
        let free = json!({
            "allocated": counts(1),
            "globally_free": counts(1),
            "globally_free_registers": "v9",
            "locally_free": {"least": counts(1), "median": counts(2), "most": counts(3)},
            "persistent": counts(1),
            "persistent_registers": "v10",
        });
        let kernel = json!({
            "name": "add", "entry": "0x100", "start": "0x80", "preloaded": "s[0:1]",
            "allocated": counts(1), "lds_bytes": 4, "scratch_bytes": 5, "kernarg_bytes": 6,
            "initialised": "s[4:5]", "calls": ["helper"], "instructions": 7,
            "registers": {"default": free, "maximal": free},
        });
        let inst = json!({
            "pc": "0x100", "text": "s_endpgm", "line": "add.cl:3",
            "memory": {
                "space": "global", "kind": "load", "bytes": 4, "address": ["v0"], "offsets": [8],
                "loaded": "v1", "stored": ["v2"],
            },
            "live": {
                "counts": counts(1), "active": "v0", "masked": "v1", "free_default": counts(1),
                "free_maximal": counts(1),
            },
        });
        let block = json!({
            "index": 0, "loop_depth": 1, "predecessors": [1],
            "successors": [{"to": 2, "kind": "jump"}], "end": "branch", "instructions": [inst],
        });
        let function = json!({
            "name": "add", "is_kernel": true, "entry": "0x100", "bytes": 8, "instructions": 9,
            "blocks": 1, "loops": [{"header": 0, "blocks": [0], "depth": 1}],
            "calls": [{"pc": "0x104", "callee": "helper", "may_reach": ["helper"]}],
            "address_taken": false,
            "unresolved": [{"pc": "0x108", "text": "s_setpc_b64 s[0:1]", "reason": "unknown"}],
            "code": [block],
        });
        let expected = json!({
            "target": "gfx90a", "version": 5, "wave_size": 64, "kernels": [kernel],
            "functions": [function],
        });
        assert_eq!(serde_json::to_value(&inspection).expect("JSON"), expected);
    }
}
