//! Fixed point of liveness: the live registers at the entry of every block and at the returns of every
//! function.

use super::live::Live;
use super::transfer::Transfers;
use crate::flow::{Block, BlockEnd, BlockIndex, Disassembly, FunctionIndex, IndexVec};
use std::collections::BTreeMap;

/// Live registers at the boundaries of blocks and functions.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Registers that are live before the first instruction of each block.
    pub entries: IndexVec<BlockIndex, Live>,
    /// Registers that are live after the returns of each function.
    exits: IndexVec<FunctionIndex, Live>,
}

impl Solution {
    /// Computes the fixed point.
    pub fn new(program: &Disassembly, transfers: &Transfers) -> Solution {
        let calls = CallGraph::new(program);
        let mut solution = Solution {
            entries: IndexVec::filled(transfers.always_live(), program.blocks.len()),
            exits: initial_exits(program, transfers, &calls),
        };
        // A stack that starts with the last block on top, as liveness flows backwards.
        let mut worklist = Worklist::of_all(program);
        while let Some(at) = worklist.pop() {
            let block = &program.blocks[at];
            let mut live = solution.at_end(program, transfers, at);
            for inst in block.instructions.iter().rev() {
                transfers.apply(program, inst, &mut live);
            }
            if solution.entries[at] == live {
                continue;
            }
            solution.entries[at] = live;
            block.predecessors.iter().for_each(|block| worklist.push(*block));
            if program.functions[block.function].blocks.start == at {
                let callers = calls.callers.get(&block.function).into_iter().flatten();
                callers.for_each(|block| worklist.push(*block));
            }
            // Registers that are live after a call are live at the callee's returns.
            for callee in block.predecessors.iter().filter_map(|call| calls.callees.get(call)) {
                solution.extend_exit(program, &calls, *callee, live, &mut worklist);
            }
        }
        solution
    }

    /// Adds live registers to the exit of a function, and to the exits of the functions that it tail-calls.
    fn extend_exit(
        &mut self,
        program: &Disassembly,
        calls: &CallGraph,
        function: FunctionIndex,
        live: Live,
        worklist: &mut Worklist,
    ) {
        let extended = self.exits[function].union(live);
        if extended == self.exits[function] {
            return;
        }
        self.exits[function] = extended;
        for at in program.functions[function].blocks.iter() {
            match program.blocks[at].end {
                BlockEnd::Return => worklist.push(at),
                BlockEnd::TailCall => {
                    if let Some(callee) = calls.callees.get(&at) {
                        self.extend_exit(program, calls, *callee, extended, worklist);
                    }
                }
                _ => {}
            }
        }
    }

    /// Registers that are live after the last instruction of a block.
    pub fn at_end(&self, program: &Disassembly, transfers: &Transfers, at: BlockIndex) -> Live {
        let block = &program.blocks[at];
        match block.end {
            BlockEnd::Edges => block
                .successors
                .iter()
                .map(|edge| self.entries[edge.to])
                .fold(transfers.always_live(), Live::union),
            BlockEnd::EndOfProgram => transfers.always_live(),
            BlockEnd::Unknown => transfers.everything(block.function),
            BlockEnd::Return => self.exits[block.function],
            BlockEnd::Call | BlockEnd::TailCall => match callee(program, block) {
                Some(callee) => self.entries[program.functions[callee].blocks.start],
                None => transfers.everything(block.function),
            },
        }
    }
}

/// All registers after the returns of functions that unknown code may call, and none after other returns.
fn initial_exits(
    program: &Disassembly,
    transfers: &Transfers,
    calls: &CallGraph,
) -> IndexVec<FunctionIndex, Live> {
    let executable = program.executable();
    let exits = program.functions.enumerated().map(|(index, function)| {
        let has_known_callers = function.kernel.is_none()
            && !function.address_taken
            && calls.callers.contains_key(&index);
        if has_known_callers || !executable.contains(&index) {
            transfers.always_live()
        } else {
            transfers.everything(index)
        }
    });
    exits.collect()
}

/// A stack of blocks without duplicates.
struct Worklist {
    blocks: Vec<BlockIndex>,
    is_waiting: IndexVec<BlockIndex, bool>,
}

impl Worklist {
    fn of_all(program: &Disassembly) -> Worklist {
        let blocks: Vec<BlockIndex> = program.blocks.indices().iter().collect();
        Worklist { is_waiting: IndexVec::filled(true, blocks.len()), blocks }
    }

    fn push(&mut self, block: BlockIndex) {
        if !std::mem::replace(&mut self.is_waiting[block], true) {
            self.blocks.push(block);
        }
    }

    fn pop(&mut self) -> Option<BlockIndex> {
        let block = self.blocks.pop()?;
        self.is_waiting[block] = false;
        Some(block)
    }
}

/// The direct calls of a program.
struct CallGraph {
    /// The blocks that call a function with their last instruction.
    callers: BTreeMap<FunctionIndex, Vec<BlockIndex>>,
    /// The function that a block calls with its last instruction.
    callees: BTreeMap<BlockIndex, FunctionIndex>,
}

impl CallGraph {
    fn new(program: &Disassembly) -> CallGraph {
        let mut graph = CallGraph { callers: BTreeMap::new(), callees: BTreeMap::new() };
        for call in program.functions.iter().flat_map(|function| &function.calls) {
            if let Some(callee) = call.callee {
                let block = program.block_of(call.at);
                graph.callers.entry(callee).or_default().push(block);
                graph.callees.insert(block, callee);
            }
        }
        graph
    }
}

/// The function that a block calls with its last instruction; `None` for an unknown pointer.
fn callee(program: &Disassembly, block: &Block) -> Option<FunctionIndex> {
    let calls = &program.functions[block.function].calls;
    let index = calls.binary_search_by_key(&block.last(), |call| call.at).ok()?;
    calls[index].callee
}
