//! Functions, blocks and instructions.

use super::registers::LiveFacts;
use crate::dataflow::Liveness;
use crate::flow::{
    BlockEnd, BlockIndex, Disassembly, EdgeKind, Function, FunctionIndex, InstIndex,
};
use crate::registers::Allocation;
use flipwave_codeobj::LineTable;
use flipwave_isa::{Inst, MemoryKind, MemorySpace, RegisterRange};
use serde::Serialize;

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionFacts {
    /// Its name.
    pub name: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// Where it begins.
    pub entry: String,
    /// How long its code is.
    pub bytes: u64,
    /// How many instructions it has.
    pub instructions: usize,
    /// How many blocks it has.
    pub blocks: usize,
    /// Its natural loops, outer before inner.
    pub loops: Vec<LoopFacts>,
    /// Its calls.
    pub calls: Vec<CallFacts>,
    /// Whether a call by a pointer may reach it.
    pub address_taken: bool,
    /// What of its flow is not understood.
    pub unresolved: Vec<UnresolvedFacts>,
    /// Its blocks, by ascending address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Vec<BlockFacts>>,
}

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopFacts {
    /// The block that all ways into it go through.
    pub header: u32,
    /// Its blocks.
    pub blocks: Vec<u32>,
    /// How many loops it lies in, itself included.
    pub depth: u32,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallFacts {
    /// Where it is.
    pub pc: String,
    /// The function called; nothing for a pointer that is not known.
    pub callee: Option<String>,
    /// The functions that it may reach.
    pub may_reach: Vec<String>,
}

/// A place that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnresolvedFacts {
    /// Where it is.
    pub pc: String,
    /// The instruction.
    pub text: String,
    /// What is not known of it.
    pub reason: String,
}

/// A basic block. Blocks are counted from the function's first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockFacts {
    /// Its number.
    pub index: u32,
    /// How many loops it lies in.
    pub loop_depth: u32,
    /// Blocks that lead to it.
    pub predecessors: Vec<u32>,
    /// Blocks that it leads to.
    pub successors: Vec<EdgeFacts>,
    /// How it ends: `edges`, `call`, `tail call`, `return`, `end of program`, `unknown`.
    pub end: &'static str,
    /// Its instructions.
    pub instructions: Vec<InstFacts>,
}

/// A way out of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeFacts {
    /// The block it leads to.
    pub to: u32,
    /// `fall through`, `taken`, or `return`: over a call that comes back.
    pub kind: &'static str,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstFacts {
    /// Where it is.
    pub pc: String,
    /// The assembler's text.
    pub text: String,
    /// What of memory it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFacts>,
    /// The source line: file, line and column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What is live before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFacts>,
}

/// What of memory an instruction touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryFacts {
    /// `buffer`, `flat`, `global`, `scratch`, `scalar` or `lds`.
    pub space: &'static str,
    /// `load`, `store` or `atomic`.
    pub kind: &'static str,
    /// Bytes of a lane, or of the wave for scalar accesses.
    pub bytes: u8,
    /// Registers that make the address.
    pub address: Vec<String>,
    /// Constants in the address, in bytes.
    pub offsets: Vec<i64>,
    /// Registers that receive what memory held.
    pub loaded: Option<String>,
    /// Registers that go to memory.
    pub stored: Vec<String>,
}

/// What is said of a function besides its code.
pub(super) struct Context<'a> {
    pub program: &'a Disassembly,
    pub liveness: Option<&'a Liveness<'a>>,
    pub lines: &'a LineTable,
    /// Whether instructions are listed.
    pub with_code: bool,
}

/// What of a function is not understood.
pub(super) fn unresolved(program: &Disassembly, own: &Function) -> Vec<UnresolvedFacts> {
    let facts = own.unresolved.iter().map(|own| UnresolvedFacts {
        pc: program.instructions[own.at].pc.to_string(),
        text: program.instructions[own.at].text.clone(),
        reason: own.reason.clone(),
    });
    facts.collect()
}

pub(super) fn function(
    context: &Context<'_>,
    own: &Function,
    allocations: [Allocation; 2],
) -> FunctionFacts {
    let program = context.program;
    let entry = program.entry(own).0;
    let last = program.instructions[own.instructions].last();
    let end = last.map_or(entry, |inst| inst.pc.0 + u64::from(inst.size));
    let pc = |at: InstIndex| program.instructions[at].pc.to_string();
    let name = |index: FunctionIndex| program.functions[index].name.to_string();
    let local = |block: BlockIndex| block.0 - own.blocks.start.0;
    FunctionFacts {
        name: own.name.to_string(),
        is_kernel: own.kernel.is_some(),
        entry: format!("{entry:#x}"),
        bytes: end - entry,
        instructions: own.instructions.len(),
        blocks: own.blocks.len(),
        loops: own
            .loops
            .iter()
            .map(|own| LoopFacts {
                header: local(own.header),
                blocks: own.blocks.iter().map(|block| local(*block)).collect(),
                depth: own.depth,
            })
            .collect(),
        calls: own
            .calls
            .iter()
            .map(|call| CallFacts {
                pc: pc(call.at),
                callee: call.callee.map(name),
                may_reach: program.callees(call).into_iter().map(name).collect(),
            })
            .collect(),
        address_taken: own.address_taken,
        unresolved: unresolved(program, own),
        code: context
            .with_code
            .then(|| own.blocks.iter().map(|at| block(context, own, at, allocations)).collect()),
    }
}

fn block(
    context: &Context<'_>,
    function: &Function,
    index: BlockIndex,
    allocations: [Allocation; 2],
) -> BlockFacts {
    let own = &context.program.blocks[index];
    let local = |block: BlockIndex| block.0 - function.blocks.start.0;
    let around = function.loops.iter().filter(|own| own.blocks.contains(&index));
    BlockFacts {
        index: local(index),
        loop_depth: around.map(|own| own.depth).max().unwrap_or(0),
        predecessors: own.predecessors.iter().map(|block| local(*block)).collect(),
        successors: own
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
        end: match own.end {
            BlockEnd::Edges => "edges",
            BlockEnd::Call => "call",
            BlockEnd::TailCall => "tail call",
            BlockEnd::Return => "return",
            BlockEnd::EndOfProgram => "end of program",
            BlockEnd::Unknown => "unknown",
        },
        instructions: context
            .program
            .insts_of(own.instructions)
            .map(|(index, inst)| InstFacts {
                pc: inst.pc.to_string(),
                text: inst.text.replace('\t', " "),
                memory: memory(inst),
                line: context.lines.lookup(inst.pc).filter(|line| line.line > 0).map(|line| {
                    match line.column {
                        0 => format!("{}:{}", line.file, line.line),
                        column => format!("{}:{}:{column}", line.file, line.line),
                    }
                }),
                live: context
                    .liveness
                    .map(|liveness| LiveFacts::of(&liveness.before(index), allocations)),
            })
            .collect(),
    }
}

fn memory(inst: &Inst) -> Option<MemoryFacts> {
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
