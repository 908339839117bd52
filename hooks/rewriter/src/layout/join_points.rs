//! Join points: instructions that control may reach other than by falling through.

use super::lookup::Lookup;
use crate::flow::{Disassembly, InstIndex};
use std::collections::BTreeSet;

/// The targets of branches and calls for which `is_present` returns `true`, the targets of address
/// chains, and the first instruction of each function.
pub(super) fn join_points(
    program: &Disassembly,
    lookup: &Lookup<'_>,
    is_present: impl Fn(InstIndex) -> bool,
) -> BTreeSet<InstIndex> {
    let branches = program.insts().filter(|(index, _)| is_present(*index));
    let targets = branches.filter_map(|(_, inst)| inst.branch_target);
    let targets = targets.chain(program.addresses.iter().map(|chain| chain.target));
    let mut points: BTreeSet<InstIndex> = targets.filter_map(|target| lookup.at(target)).collect();
    points.extend(program.functions.iter().map(|function| function.instructions.start));
    points
}
