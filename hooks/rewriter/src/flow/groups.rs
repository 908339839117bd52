//! Functions that may run in the same wave.

use super::{Disassembly, Function, FunctionIndex, IndexVec, Key, UnresolvedKind};
use petgraph::unionfind::UnionFind;

impl Function {
    /// Whether control may leave it for an unknown place, or enter it from one.
    pub fn has_unknown_control(&self) -> bool {
        self.unresolved.iter().any(|own| own.kind != UnresolvedKind::Address)
    }
}

/// A program's functions, divided so that no call or jump leads from one group to another.
#[derive(Clone, Debug)]
pub struct Groups {
    groups: Vec<Vec<FunctionIndex>>,
    /// By function: the number of its group.
    numbers: IndexVec<FunctionIndex, usize>,
}

impl Groups {
    /// Divides the functions of a program.
    ///
    /// A call through an unknown pointer may reach every function whose address is taken, and so
    /// may a jump to an unknown place; the latter may also reach labels whose address is taken.
    pub fn of(program: &Disassembly) -> Groups {
        let mut classes: UnionFind<usize> = UnionFind::new(program.functions.len());
        let mut unknown: Option<FunctionIndex> = None;
        for (index, function) in program.functions.enumerated() {
            let mut leaves_known = true;
            for call in &function.calls {
                match call.callee {
                    Some(callee) => _ = classes.union(index.number(), callee.number()),
                    None => leaves_known = false,
                }
            }
            if !leaves_known || function.address_taken || function.has_unknown_control() {
                let first = *unknown.get_or_insert(index);
                classes.union(first.number(), index.number());
            }
        }
        let mut groups: Vec<Vec<FunctionIndex>> = Vec::new();
        let mut numbers = IndexVec::filled(usize::MAX, program.functions.len());
        let mut by_leader = vec![None; program.functions.len()];
        for index in program.functions.indices().iter() {
            let leader = classes.find_mut(index.number());
            let number = *by_leader[leader].get_or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[number].push(index);
            numbers[index] = number;
        }
        Groups { groups, numbers }
    }

    /// All groups by their first function, the functions of each by ascending index.
    pub fn iter(&self) -> impl Iterator<Item = &[FunctionIndex]> {
        self.groups.iter().map(Vec::as_slice)
    }

    /// Number of a function's group, in the order of [`Groups::iter`].
    pub fn number(&self, function: FunctionIndex) -> usize {
        self.numbers[function]
    }
}
