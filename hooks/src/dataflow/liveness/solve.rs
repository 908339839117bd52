//! The fixed point: what is wanted at every block's entry and at every function's return.

use super::Live;
use super::transfer::Transfers;
use crate::flow::{BlockEnd, BlockIndex, Call, FunctionIndex, InstIndex, Program};
use std::collections::BTreeMap;

/// What is wanted before the first instruction of each block, and behind the returns of each
/// function.
pub fn solve(program: &Program, transfers: &Transfers) -> (Vec<Live>, Vec<Live>) {
    let mut entries = vec![transfers.nothing(); program.blocks.len()];
    let callers = Callers::of(program);
    let mut exits: Vec<Live> = (0..)
        .map(FunctionIndex)
        .zip(&program.functions)
        .map(|(index, function)| {
            let is_known = function.kernel.is_none()
                && !function.address_taken
                && callers.callers.contains_key(&index);
            if is_known { transfers.nothing() } else { transfers.everything() }
        })
        .collect();
    // Last in, first out: blocks near the end first.
    let mut open: Vec<BlockIndex> = (0..program.blocks.len() as u32).map(BlockIndex).collect();
    let mut is_open = vec![true; open.len()];
    while let Some(at) = open.pop() {
        let index = at.0 as usize;
        let Some(block) = program.blocks.get(index) else { continue };
        if let Some(own) = is_open.get_mut(index) {
            *own = false;
        }
        let mut live = leaving(program, transfers, &entries, &exits, at);
        for inst in block.instructions.clone().rev() {
            transfers.step(program, InstIndex(inst), &mut live);
        }
        let Some(entry) = entries.get_mut(index) else { continue };
        if *entry == live {
            continue;
        }
        *entry = live;
        let mut push = |block: BlockIndex| {
            if let Some(own) = is_open.get_mut(block.0 as usize).filter(|own| !**own) {
                *own = true;
                open.push(block);
            }
        };
        block.predecessors.iter().copied().for_each(&mut push);
        // What is wanted at a function's entry is wanted where it is called.
        let function = program.function(block.function);
        if function.is_some_and(|own| own.blocks.start == at.0) {
            callers.callers.get(&block.function).into_iter().flatten().copied().for_each(&mut push);
        }
        // What is wanted where a call comes back is wanted at the callee's returns.
        for callee in block.predecessors.iter().filter_map(|call| callers.callees.get(call)) {
            spread(program, &callers, &mut exits, *callee, live, &mut push);
        }
    }
    (entries, exits)
}

/// Adds to what is wanted behind a function's returns, and behind those of the functions that
/// return in its place.
fn spread(
    program: &Program,
    callers: &Callers,
    exits: &mut [Live],
    function: FunctionIndex,
    live: Live,
    push: &mut impl FnMut(BlockIndex),
) {
    let Some(exit) = exits.get_mut(function.0 as usize) else { return };
    let more = exit.union(live);
    if more == *exit {
        return;
    }
    *exit = more;
    let Some(blocks) = program.function(function).map(|own| own.blocks.clone()) else { return };
    for at in blocks.map(BlockIndex) {
        match program.block(at).map(|block| block.end) {
            Some(BlockEnd::Return) => push(at),
            Some(BlockEnd::TailCall) => {
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
    fn of(program: &Program) -> Callers {
        let mut result = Callers { callers: BTreeMap::new(), callees: BTreeMap::new() };
        for call in program.functions.iter().flat_map(|function| &function.calls) {
            if let Some((block, callee)) = program.block_of(call.at).zip(call.callee) {
                result.callers.entry(callee).or_default().push(block);
                result.callees.insert(block, callee);
            }
        }
        result
    }
}

/// What is wanted behind the last instruction of a block.
pub fn leaving(
    program: &Program,
    transfers: &Transfers,
    entries: &[Live],
    exits: &[Live],
    at: BlockIndex,
) -> Live {
    let Some(block) = program.block(at) else { return transfers.everything() };
    let entry = |block: BlockIndex| {
        entries.get(block.0 as usize).copied().unwrap_or_else(|| transfers.everything())
    };
    match block.end {
        BlockEnd::Edges => block
            .successors
            .iter()
            .map(|edge| entry(edge.to))
            .fold(transfers.nothing(), Live::union),
        BlockEnd::EndOfProgram => transfers.nothing(),
        BlockEnd::Unknown => transfers.everything(),
        BlockEnd::Return => {
            let exit = exits.get(block.function.0 as usize).copied();
            exit.unwrap_or_else(|| transfers.everything())
        }
        BlockEnd::Call | BlockEnd::TailCall => {
            let last = InstIndex(block.instructions.end.saturating_sub(1));
            let callee = call_at(program, block.function, last).and_then(|call| call.callee);
            match callee.and_then(|callee| program.function(callee)) {
                Some(callee) => entry(BlockIndex(callee.blocks.start)),
                None => transfers.everything(),
            }
        }
    }
}

fn call_at(program: &Program, function: FunctionIndex, at: InstIndex) -> Option<&Call> {
    let calls = &program.function(function)?.calls;
    calls.binary_search_by_key(&at, |call| call.at).ok().and_then(|index| calls.get(index))
}
