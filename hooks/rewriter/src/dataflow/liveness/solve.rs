//! The fixed point: what is live at every block's entry and at every function's return.

use super::Live;
use super::transfer::Transfers;
use crate::flow::{Block, BlockEnd, BlockIndex, Disassembly, FunctionIndex, IndexVec};
use std::collections::BTreeMap;

/// What is live before the first instruction of each block, and after the returns of each
/// function.
pub fn solve(
    program: &Disassembly,
    transfers: &Transfers,
) -> (IndexVec<BlockIndex, Live>, IndexVec<FunctionIndex, Live>) {
    let mut entries = IndexVec::filled(transfers.nothing(), program.blocks.len());
    let callers = Callers::of(program);
    let executable = program.executable();
    let mut exits: IndexVec<FunctionIndex, Live> = program
        .functions
        .enumerated()
        .map(|(index, function)| {
            let is_known = function.kernel.is_none()
                && !function.address_taken
                && callers.callers.contains_key(&index);
            // Nothing matters after code that never runs.
            if is_known || !executable.contains(&index) {
                transfers.nothing()
            } else {
                transfers.everything(index)
            }
        })
        .collect();
    // Last in, first out: blocks near the end first.
    let mut open: Vec<BlockIndex> = program.blocks.indices().iter().collect();
    let mut is_open = IndexVec::filled(true, open.len());
    while let Some(at) = open.pop() {
        let block = &program.blocks[at];
        is_open[at] = false;
        let mut live = leaving(program, transfers, &entries, &exits, at);
        for inst in block.instructions.iter().rev() {
            transfers.step(program, inst, &mut live);
        }
        if entries[at] == live {
            continue;
        }
        entries[at] = live;
        let mut push = |block: BlockIndex| {
            if !std::mem::replace(&mut is_open[block], true) {
                open.push(block);
            }
        };
        block.predecessors.iter().copied().for_each(&mut push);
        // What is live at a function's entry is live where it is called.
        if program.functions[block.function].blocks.start == at {
            callers.callers.get(&block.function).into_iter().flatten().copied().for_each(&mut push);
        }
        // What is live where a call comes back is live at the callee's returns.
        for callee in block.predecessors.iter().filter_map(|call| callers.callees.get(call)) {
            spread(program, &callers, &mut exits, *callee, live, &mut push);
        }
    }
    (entries, exits)
}

/// Adds to what is live after a function's returns, and after those of the functions that
/// return in its place.
fn spread(
    program: &Disassembly,
    callers: &Callers,
    exits: &mut IndexVec<FunctionIndex, Live>,
    function: FunctionIndex,
    live: Live,
    push: &mut impl FnMut(BlockIndex),
) {
    let more = exits[function].union(live);
    if more == exits[function] {
        return;
    }
    exits[function] = more;
    for at in program.functions[function].blocks.iter() {
        match program.blocks[at].end {
            BlockEnd::Return => push(at),
            BlockEnd::TailCall => {
                if let Some(callee) = callers.callees.get(&at) {
                    spread(program, callers, exits, *callee, more, push);
                }
            }
            _ => {}
        }
    }
}

/// Who calls whom, where that is known.
struct Callers {
    /// The blocks that end with a call of a function.
    callers: BTreeMap<FunctionIndex, Vec<BlockIndex>>,
    /// The function that a block ends with a call of.
    callees: BTreeMap<BlockIndex, FunctionIndex>,
}

impl Callers {
    fn of(program: &Disassembly) -> Callers {
        let mut result = Callers { callers: BTreeMap::new(), callees: BTreeMap::new() };
        for call in program.functions.iter().flat_map(|function| &function.calls) {
            if let Some(callee) = call.callee {
                let block = program.block_of(call.at);
                result.callers.entry(callee).or_default().push(block);
                result.callees.insert(block, callee);
            }
        }
        result
    }
}

/// What is live after the last instruction of a block.
pub fn leaving(
    program: &Disassembly,
    transfers: &Transfers,
    entries: &IndexVec<BlockIndex, Live>,
    exits: &IndexVec<FunctionIndex, Live>,
    at: BlockIndex,
) -> Live {
    let block = &program.blocks[at];
    match block.end {
        BlockEnd::Edges => block
            .successors
            .iter()
            .map(|edge| entries[edge.to])
            .fold(transfers.nothing(), Live::union),
        BlockEnd::EndOfProgram => transfers.nothing(),
        BlockEnd::Unknown => transfers.everything(block.function),
        BlockEnd::Return => exits[block.function],
        BlockEnd::Call | BlockEnd::TailCall => match callee(program, block) {
            Some(callee) => entries[program.functions[callee].blocks.start],
            None => transfers.everything(block.function),
        },
    }
}

/// The function that a block ends with a call of, if that is known.
fn callee(program: &Disassembly, block: &Block) -> Option<FunctionIndex> {
    let calls = &program.functions[block.function].calls;
    let index = calls.binary_search_by_key(&block.last(), |call| call.at).ok()?;
    calls[index].callee
}
