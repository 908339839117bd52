//! Which functions move, and which stay.

use crate::flow::{Function, FunctionIndex, InstIndex, Program};
use crate::layout::Placement;
use std::collections::BTreeMap;

/// Where the code of each function goes: as `asked`; else it moves where it can be moved and no
/// function that stays leads to it in a way that may not be mended.
pub fn choose(
    program: &Program,
    asked: &BTreeMap<FunctionIndex, Placement>,
) -> BTreeMap<FunctionIndex, Placement> {
    let own = |(index, function): (FunctionIndex, &Function)| {
        let able = match function.unresolved.is_empty() {
            true => Placement::Inline,
            false => Placement::Trampoline,
        };
        (index, asked.get(&index).copied().unwrap_or(able))
    };
    let functions = (0..).map(FunctionIndex).zip(&program.functions);
    let mut chosen: BTreeMap<FunctionIndex, Placement> = functions.map(own).collect();
    if !chosen.values().any(|placement| *placement == Placement::Trampoline) {
        return chosen;
    }
    let ways = fixed_ways(program);
    loop {
        let stays = |index: &FunctionIndex| chosen.get(index) == Some(&Placement::Trampoline);
        let must_stay = |(from, to): &&(FunctionIndex, FunctionIndex)| {
            stays(from) && !stays(to) && !asked.contains_key(to)
        };
        match ways.iter().find(must_stay) {
            Some((_, to)) => _ = chosen.insert(*to, Placement::Trampoline),
            None => return chosen,
        }
    }
}

/// From function to function: direct branches, which may not reach new code, and addresses without
/// room for others.
fn fixed_ways(program: &Program) -> Vec<(FunctionIndex, FunctionIndex)> {
    let between = |from: InstIndex, to| {
        let (from, to) = (program.function_of(from)?, program.function_of(program.at(to)?)?);
        (from != to).then_some((from, to))
    };
    // An addition with a literal has two words.
    let has_no_literal = |at| program.inst(at).is_some_and(|inst| inst.size == 4);
    let addresses = program.addresses.iter();
    let addresses =
        addresses.filter(|chain| has_no_literal(chain.low) || has_no_literal(chain.high));
    let branches = program.insts().filter_map(|(at, inst)| between(at, inst.branch_target?));
    branches.chain(addresses.filter_map(|chain| between(chain.getpc, chain.target))).collect()
}
