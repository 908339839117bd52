//! The code of a module that a tool instruments.

use crate::CodeScope;
use flipwave_device::matching_kernels;
use flipwave_hooks::flow::{InstIndex, Key};
use flipwave_ptx::{CallGraph, Code};
use std::collections::BTreeSet;

/// The functions of a module that a tool instruments.
#[derive(Clone, Debug)]
pub struct PtxScope<'a> {
    code: &'a Code,
    functions: BTreeSet<usize>,
}

impl<'a> PtxScope<'a> {
    /// The kernels that `kernel` selects, or all if it is `None`, and the functions that they may call.
    pub fn new(code: &'a Code, kernel: Option<&str>) -> PtxScope<'a> {
        let names: Vec<&str> = code.kernels().map(|function| &*function.name).collect();
        let selected: BTreeSet<&str> = match kernel {
            Some(pattern) => {
                let found = matching_kernels(names.iter().copied(), pattern);
                found.into_iter().map(|index| names[index]).collect()
            }
            None => names.into_iter().collect(),
        };
        let graph = CallGraph::of(code);
        let all = code.functions.iter().enumerate();
        let kernels = all.filter(|(_, function)| selected.contains(&*function.name));
        let functions = kernels.flat_map(|(number, _)| graph.reachable(number)).collect();
        PtxScope { code, functions }
    }

    /// The code.
    pub fn code(&self) -> &'a Code {
        self.code
    }

    /// Numbers of the functions, in ascending order.
    pub fn functions(&self) -> impl Iterator<Item = usize> {
        self.functions.iter().copied()
    }
}

impl CodeScope for PtxScope<'_> {
    fn contains(&self, at: InstIndex) -> bool {
        let inst = self.code.instructions.get(at.number());
        inst.is_some_and(|inst| self.functions.contains(&inst.function))
    }
}
