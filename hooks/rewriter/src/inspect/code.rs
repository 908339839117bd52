//! Facts about functions, blocks and instructions.

use super::registers::{Allocations, LiveFacts};
use crate::dataflow::Liveness;
use crate::flow::{
    BlockEnd, BlockIndex, Disassembly, EdgeKind, Function, FunctionIndex, InstIndex,
};
use flipwave_codeobj::LineTable;
use flipwave_isa::{Inst, MemoryKind, MemorySpace, RegisterRange};
use serde::Serialize;

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionFacts {
    /// Name.
    pub name: String,
    /// `true` for kernels, `false` for device functions.
    pub is_kernel: bool,
    /// Address of the first instruction.
    pub entry: String,
    /// Size of the code in bytes.
    pub bytes: u64,
    /// Number of instructions.
    pub instructions: usize,
    /// Number of basic blocks.
    pub blocks: usize,
    /// Natural loops, outer loops first.
    pub loops: Vec<LoopFacts>,
    /// Calls.
    pub calls: Vec<CallFacts>,
    /// An indirect call may reach the function.
    pub address_taken: bool,
    /// Instructions whose control flow is unresolved.
    pub unresolved: Vec<UnresolvedFacts>,
    /// Blocks, by ascending address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Vec<BlockFacts>>,
}

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopFacts {
    /// The block through which all paths enter the loop.
    pub header: u32,
    /// Blocks of the loop.
    pub blocks: Vec<u32>,
    /// Nesting depth; 1 for outermost loops.
    pub depth: u32,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallFacts {
    /// Address.
    pub pc: String,
    /// The called function; `None` for an unknown pointer.
    pub callee: Option<String>,
    /// All functions that the call may reach.
    pub may_reach: Vec<String>,
}

/// An instruction whose control flow is unresolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnresolvedFacts {
    /// Address.
    pub pc: String,
    /// The instruction's assembly.
    pub text: String,
    /// Why it is unresolved.
    pub reason: String,
}

/// A basic block. Block numbers are relative to the function's first block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockFacts {
    /// Number of the block.
    pub index: u32,
    /// Number of loops that contain the block.
    pub loop_depth: u32,
    /// Blocks with an edge to this one.
    pub predecessors: Vec<u32>,
    /// Edges to other blocks.
    pub successors: Vec<EdgeFacts>,
    /// The way control leaves the block: `edges`, `call`, `tail call`, `return`, `end of program`, `unknown`.
    pub end: &'static str,
    /// Instructions.
    pub instructions: Vec<InstFacts>,
}

/// An edge of the control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeFacts {
    /// The destination block.
    pub to: u32,
    /// `fall through`, `taken`, or `return` for the edge across a call.
    pub kind: &'static str,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstFacts {
    /// Address.
    pub pc: String,
    /// Assembly.
    pub text: String,
    /// Memory access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFacts>,
    /// Source location: file, line and column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Registers that are live before the instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFacts>,
}

/// A memory access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryFacts {
    /// `buffer`, `flat`, `global`, `scratch`, `scalar` or `lds`.
    pub space: &'static str,
    /// `load`, `store` or `atomic`.
    pub kind: &'static str,
    /// Bytes per lane; for scalar accesses, per wave.
    pub bytes: u8,
    /// Registers of the address.
    pub address: Vec<String>,
    /// Constant offsets in bytes.
    pub offsets: Vec<i64>,
    /// Registers that receive the loaded value.
    pub loaded: Option<String>,
    /// Registers that are stored.
    pub stored: Vec<String>,
}

/// The amount of facts about a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Everything except blocks and instructions.
    Summary,
    /// Everything.
    Code,
}

/// The analyses of a program from which facts are collected.
pub(super) struct Analyses<'a> {
    pub program: &'a Disassembly,
    /// `None` if register facts are not requested.
    pub liveness: Option<&'a Liveness<'a>>,
    pub lines: &'a LineTable,
    pub detail: Detail,
}

/// The unresolved instructions of a function.
pub(super) fn unresolved(program: &Disassembly, function: &Function) -> Vec<UnresolvedFacts> {
    let facts = function.unresolved.iter().map(|unresolved| UnresolvedFacts {
        pc: program.instructions[unresolved.at].pc.to_string(),
        text: program.instructions[unresolved.at].text.clone(),
        reason: unresolved.reason.clone(),
    });
    facts.collect()
}

/// Collects the facts about a function. `allocations` are the registers available in it.
pub(super) fn function_facts(
    analyses: &Analyses<'_>,
    function: &Function,
    allocations: Allocations,
) -> FunctionFacts {
    let program = analyses.program;
    let entry = program.entry(function).0;
    let last = program.instructions[function.instructions].last();
    let end = last.map_or(entry, |inst| inst.pc.0 + u64::from(inst.size));
    let pc = |at: InstIndex| program.instructions[at].pc.to_string();
    let name = |index: FunctionIndex| program.functions[index].name.to_string();
    let local = |block: BlockIndex| block.0 - function.blocks.start.0;
    FunctionFacts {
        name: function.name.to_string(),
        is_kernel: function.kernel.is_some(),
        entry: format!("{entry:#x}"),
        bytes: end - entry,
        instructions: function.instructions.len(),
        blocks: function.blocks.len(),
        loops: function
            .loops
            .iter()
            .map(|natural_loop| LoopFacts {
                header: local(natural_loop.header),
                blocks: natural_loop.blocks.iter().map(|block| local(*block)).collect(),
                depth: natural_loop.depth,
            })
            .collect(),
        calls: function
            .calls
            .iter()
            .map(|call| CallFacts {
                pc: pc(call.at),
                callee: call.callee.map(name),
                may_reach: program.callees(call).into_iter().map(name).collect(),
            })
            .collect(),
        address_taken: function.address_taken,
        unresolved: unresolved(program, function),
        code: (analyses.detail == Detail::Code).then(|| {
            let blocks = function.blocks.iter();
            blocks.map(|index| block_facts(analyses, function, index, allocations)).collect()
        }),
    }
}

fn block_facts(
    analyses: &Analyses<'_>,
    function: &Function,
    index: BlockIndex,
    allocations: Allocations,
) -> BlockFacts {
    let block = &analyses.program.blocks[index];
    let local = |block: BlockIndex| block.0 - function.blocks.start.0;
    let loops = function.loops.iter().filter(|candidate| candidate.blocks.contains(&index));
    BlockFacts {
        index: local(index),
        loop_depth: loops.map(|natural_loop| natural_loop.depth).max().unwrap_or(0),
        predecessors: block.predecessors.iter().map(|block| local(*block)).collect(),
        successors: block
            .successors
            .iter()
            .map(|edge| EdgeFacts {
                to: local(edge.to),
                kind: match edge.kind {
                    EdgeKind::FallThrough => "fall through",
                    EdgeKind::Taken => "taken",
                    EdgeKind::Return => "return",
                },
            })
            .collect(),
        end: match block.end {
            BlockEnd::Edges => "edges",
            BlockEnd::Call => "call",
            BlockEnd::TailCall => "tail call",
            BlockEnd::Return => "return",
            BlockEnd::EndOfProgram => "end of program",
            BlockEnd::Unknown => "unknown",
        },
        instructions: analyses
            .program
            .insts_of(block.instructions)
            .map(|(index, inst)| InstFacts {
                pc: inst.pc.to_string(),
                text: inst.text.replace('\t', " "),
                memory: memory_facts(inst),
                line: analyses.lines.lookup(inst.pc).filter(|line| line.line > 0).map(|line| {
                    match line.column {
                        0 => format!("{}:{}", line.file, line.line),
                        column => format!("{}:{}:{column}", line.file, line.line),
                    }
                }),
                live: analyses
                    .liveness
                    .map(|liveness| LiveFacts::new(&liveness.before(index), allocations)),
            })
            .collect(),
    }
}

fn memory_facts(inst: &Inst) -> Option<MemoryFacts> {
    let operand = inst.memory_operand()?;
    let names = |ranges: &[RegisterRange]| ranges.iter().map(RegisterRange::to_string).collect();
    let address = [operand.vaddr, operand.saddr, operand.resource, operand.soffset];
    let address: Vec<RegisterRange> = address.into_iter().flatten().collect();
    Some(MemoryFacts {
        space: match operand.access.space {
            MemorySpace::Buffer => "buffer",
            MemorySpace::Flat => "flat",
            MemorySpace::Global => "global",
            MemorySpace::Scratch => "scratch",
            MemorySpace::Scalar => "scalar",
            MemorySpace::Lds => "lds",
        },
        kind: match operand.access.kind {
            MemoryKind::Load => "load",
            MemoryKind::Store => "store",
            MemoryKind::Atomic => "atomic",
        },
        bytes: operand.access.bytes,
        address: names(&address),
        offsets: operand.offsets.clone(),
        loaded: operand.loaded.map(|range| range.to_string()),
        stored: names(&operand.stored),
    })
}
