//! Placements of functions: which functions move, and which stay.

use crate::flow::{Disassembly, Function, FunctionIndex, IndexVec, InstIndex};
use crate::layout::Placement;
use std::collections::BTreeMap;

/// Chooses the placement of each function: the `requested` one; otherwise, a function moves if it can be
/// moved and no function that stays has a fixed reference to it.
pub fn choose(
    program: &Disassembly,
    requested: &BTreeMap<FunctionIndex, Placement>,
) -> IndexVec<FunctionIndex, Placement> {
    let initial = |(index, function): (FunctionIndex, &Function)| {
        let default =
            if function.unresolved.is_empty() { Placement::Inline } else { Placement::Trampoline };
        requested.get(&index).copied().unwrap_or(default)
    };
    let mut chosen: IndexVec<FunctionIndex, Placement> =
        program.functions.enumerated().map(initial).collect();
    if !chosen.contains(&Placement::Trampoline) {
        return chosen;
    }
    let references = fixed_references(program);
    loop {
        let stays = |index: &FunctionIndex| chosen[*index] == Placement::Trampoline;
        let must_stay = |(from, to): &&(FunctionIndex, FunctionIndex)| {
            stays(from) && !stays(to) && !requested.contains_key(to)
        };
        match references.iter().find(must_stay) {
            Some((_, to)) => chosen[*to] = Placement::Trampoline,
            None => return chosen,
        }
    }
}

/// References between functions, from the first to the second, that may not be redirectable: direct
/// branches, which may not reach new code, and address chains without literals.
fn fixed_references(program: &Disassembly) -> Vec<(FunctionIndex, FunctionIndex)> {
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
