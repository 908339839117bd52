//! Functions that may execute in the same wave.

use super::{Disassembly, Function, FunctionIndex, IndexVec, Key, UnresolvedKind};
use petgraph::unionfind::UnionFind;

impl Function {
    /// Returns `true` if control may leave to an unknown address or enter from unknown code.
    pub fn has_unknown_control(&self) -> bool {
        self.unresolved.iter().any(|unresolved| unresolved.kind != UnresolvedKind::Address)
    }
}

/// A partition of a program's functions. No call or jump leads from one group to another.
#[derive(Clone, Debug)]
pub struct Groups {
    groups: Vec<Vec<FunctionIndex>>,
    /// The group of each function.
    numbers: IndexVec<FunctionIndex, usize>,
}

impl Groups {
    /// Partitions the functions of a program.
    ///
    /// An indirect call or a jump to an unknown address may reach every function whose address is taken. Such a
    /// jump may also reach labels whose address is taken.
    pub fn of(program: &Disassembly) -> Groups {
        let mut classes: UnionFind<usize> = UnionFind::new(program.functions.len());
        let mut unknown: Option<FunctionIndex> = None;
        for (index, function) in program.functions.enumerated() {
            let mut calls_unknown = false;
            for call in &function.calls {
                match call.callee {
                    Some(callee) => _ = classes.union(index.number(), callee.number()),
                    None => calls_unknown = true,
                }
            }
            if calls_unknown || function.address_taken || function.has_unknown_control() {
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

    /// All groups in the order of their first functions; each lists its functions by ascending index.
    pub fn iter(&self) -> impl Iterator<Item = &[FunctionIndex]> {
        self.groups.iter().map(Vec::as_slice)
    }

    /// The number of a function's group, in the order of [`Groups::iter`].
    pub fn number(&self, function: FunctionIndex) -> usize {
        self.numbers[function]
    }
}
