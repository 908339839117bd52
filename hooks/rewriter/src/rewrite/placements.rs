//! Which functions move, and which stay.

use crate::flow::{Disassembly, Function, FunctionIndex, IndexVec, InstIndex};
use crate::layout::Placement;
use std::collections::BTreeMap;

/// Where the code of each function goes: as `asked`; else it moves where it can be moved and no
/// function that stays leads to it in a way that may not be mended.
pub fn choose(
    program: &Disassembly,
    asked: &BTreeMap<FunctionIndex, Placement>,
) -> IndexVec<FunctionIndex, Placement> {
    let own = |(index, function): (FunctionIndex, &Function)| {
        let able = match function.unresolved.is_empty() {
            true => Placement::Inline,
            false => Placement::Trampoline,
        };
        asked.get(&index).copied().unwrap_or(able)
    };
    let mut chosen: IndexVec<FunctionIndex, Placement> =
        program.functions.enumerated().map(own).collect();
    if !chosen.contains(&Placement::Trampoline) {
        return chosen;
    }
    let ways = fixed_ways(program);
    loop {
        let stays = |index: &FunctionIndex| chosen[*index] == Placement::Trampoline;
        let must_stay = |(from, to): &&(FunctionIndex, FunctionIndex)| {
            stays(from) && !stays(to) && !asked.contains_key(to)
        };
        match ways.iter().find(must_stay) {
            Some((_, to)) => chosen[*to] = Placement::Trampoline,
            None => return chosen,
        }
    }
}

/// From function to function: direct branches, which may not reach new code, and addresses without
/// room for others.
fn fixed_ways(program: &Disassembly) -> Vec<(FunctionIndex, FunctionIndex)> {
    let between = |from: InstIndex, to| {
        let (from, to) = (program.function_of(from), program.function_of(program.at(to)?));
        (from != to).then_some((from, to))
    };
    // An addition with a literal has two words.
    let has_no_literal = |at: InstIndex| program.instructions[at].size == 4;
    let addresses = program.addresses.iter();
    let addresses =
        addresses.filter(|chain| has_no_literal(chain.low) || has_no_literal(chain.high));
    let branches = program.insts().filter_map(|(at, inst)| between(at, inst.branch_target?));
    branches.chain(addresses.filter_map(|chain| between(chain.getpc, chain.target))).collect()
}
