//! Where control may come to an instruction from elsewhere than the one before it.

use super::lookup::Lookup;
use crate::flow::{Disassembly, InstIndex};
use std::collections::BTreeSet;

/// The instructions that branches and calls lead to, as far as `is_there` says that those are
/// still there; those whose address the program computes; and the first of each function.
pub(super) fn joined(
    program: &Disassembly,
    lookup: &Lookup<'_>,
    is_there: impl Fn(InstIndex) -> bool,
) -> BTreeSet<InstIndex> {
    let branches = program.insts().filter(|(index, _)| is_there(*index));
    let targets = branches.filter_map(|(_, inst)| inst.branch_target);
    let targets = targets.chain(program.addresses.iter().map(|chain| chain.target));
    let mut joined: BTreeSet<InstIndex> = targets.filter_map(|target| lookup.at(target)).collect();
    joined.extend(program.functions.iter().map(|own| own.instructions.start));
    joined
}
