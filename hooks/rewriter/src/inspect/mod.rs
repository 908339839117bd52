//! Summaries of a code object's code, for printing and as JSON.

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
use code::Analyses;
use flipwave_codeobj::{CodeObject, CodeObjectError, InitialValue, Kernel};
use flipwave_isa::{Register, RegisterRange, Target};
use serde::Serialize;

/// Optional parts of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InspectOptions {
    /// Only this kernel and the functions it may call.
    pub kernel: Option<String>,
    /// Blocks, edges, loops, calls and instructions.
    pub cfg: bool,
    /// Live and free registers.
    pub registers: bool,
    /// The source line of each instruction.
    pub lines: bool,
}

impl InspectOptions {
    /// Returns `true` if instructions are included.
    pub fn lists_code(&self) -> bool {
        self.cfg || self.registers || self.lines
    }
}

/// Summary of a code object's code. Addresses are ELF virtual addresses, written as `0x1900`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The target.
    pub target: String,
    /// Version of the code object's format.
    pub version: u8,
    /// Number of lanes of a wave.
    pub wave_size: u8,
    /// Kernels.
    pub kernels: Vec<KernelFacts>,
    /// Kernels and device functions, by ascending address.
    pub functions: Vec<FunctionFacts>,
}

/// Facts about a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelFacts {
    /// Name.
    pub name: String,
    /// Address of the entry.
    pub entry: String,
    /// Address at which waves start; after the entry if arguments are preloaded.
    pub start: String,
    /// Registers with preloaded arguments.
    pub preloaded: Option<String>,
    /// Registers that the descriptor allocates.
    pub allocated: Counts,
    /// Statically allocated LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Statically allocated private memory of a lane in bytes.
    pub scratch_bytes: u32,
    /// Size of the arguments in bytes.
    pub kernarg_bytes: u32,
    /// Registers that are initialized when the kernel starts.
    pub initialised: String,
    /// Functions that the kernel may call, directly or indirectly.
    pub calls: Vec<String>,
    /// Number of instructions of the kernel and all functions it may call.
    pub instructions: usize,
    /// Used and free registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<RegisterFacts>,
    /// Unresolved control flow of the kernel's own function, which also lists it.
    #[serde(skip)]
    pub unresolved: Vec<UnresolvedFacts>,
}

/// Errors returned when inspecting a code object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The code cannot be analyzed.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The line tables cannot be read.
    #[error(transparent)]
    Lines(#[from] CodeObjectError),
    /// The code object has no kernel of this name.
    #[error("no kernel `{wanted}`; the code object has: {}", if present.is_empty() { "none".to_owned() } else { present.join(", ") })]
    UnknownKernel {
        /// The requested name.
        wanted: String,
        /// Names of all kernels.
        present: Vec<String>,
    },
}

/// Summarizes a code object.
///
/// # Errors
/// Returns an error if the code or its line tables cannot be read, or if the requested kernel does not
/// exist.
pub fn inspect(object: &CodeObject, options: &InspectOptions) -> Result<Inspection, InspectError> {
    let inspector = Inspector::new(object, options)?;
    Ok(Inspection {
        target: object.target().to_string(),
        version: object.version(),
        wave_size: inspector.wave_size(),
        kernels: inspector.kernels().collect(),
        functions: inspector.functions(true).collect(),
    })
}

/// Registers with preloaded arguments.
fn preloaded(kernel: &Kernel, target: &Target) -> Option<String> {
    let initial = kernel.descriptor.initial_sgprs(target);
    let arguments = initial.iter().find(|initial| initial.value == InitialValue::Arguments)?;
    Some(RegisterRange::new(Register::Sgpr(arguments.first), arguments.words).to_string())
}

/// Collects the facts about the kernel `index`, whose code is `function`.
fn kernel_facts(
    analyses: &Analyses<'_>,
    object: &CodeObject,
    index: usize,
    function: FunctionIndex,
) -> KernelFacts {
    let (program, liveness) = (analyses.program, analyses.liveness);
    let kernel = &object.kernels()[index];
    let reachable = program.reachable(function);
    let functions = || reachable.iter().map(|index| &program.functions[*index]);
    let called = functions().filter(|function| function.kernel != Some(index));
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
        calls: called.map(|function| function.name.to_string()).collect(),
        instructions: functions().map(|function| function.instructions.len()).sum(),
        registers: liveness
            .map(|liveness| registers::register_facts(liveness, function, kernel, object.target())),
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
    fn json_keys_are_stable() {
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
