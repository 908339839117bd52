//! Calls between functions.

use crate::{Argument, Class, Code, Symbol};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::BTreeSet;

/// The call graph of a module. Functions are numbers in [`Code::functions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// Functions that each function may call. An indirect call without a list of targets may call all
    /// functions whose address the module takes.
    pub callees: Vec<BTreeSet<usize>>,
    /// Functions that may call themselves, directly or through others.
    pub recursive: BTreeSet<usize>,
}

impl CallGraph {
    /// The call graph of a module.
    pub fn of(code: &Code) -> CallGraph {
        let addressed = addressed(code);
        let mut callees = vec![BTreeSet::new(); code.functions.len()];
        for inst in &code.instructions {
            if inst.form.class() != Some(Class::Call) {
                continue;
            }
            let called = &mut callees[inst.function];
            let mut is_known = false;
            for operand in &inst.operands {
                match operand {
                    Argument::Symbol(Symbol::Function(number), _) => {
                        called.insert(*number);
                        is_known = true;
                    }
                    Argument::Functions(numbers) => {
                        called.extend(numbers.iter().copied());
                        is_known = true;
                    }
                    Argument::Symbol(Symbol::External(_), _) => is_known = true,
                    _ => {}
                }
            }
            if !is_known {
                called.extend(addressed.iter().copied());
            }
        }
        let recursive = recursive(&callees);
        CallGraph { callees, recursive }
    }

    /// A function and all functions that it may reach.
    pub fn reachable(&self, function: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![function];
        while let Some(next) = waiting.pop() {
            if found.insert(next) {
                waiting.extend(self.callees.get(next).into_iter().flatten().copied());
            }
        }
        found
    }
}

/// Functions whose address is taken by instructions or by initial values.
fn addressed(code: &Code) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for inst in &code.instructions {
        let is_call = inst.form.class() == Some(Class::Call);
        for operand in inst.operands.iter().filter(|_| !is_call) {
            if let Argument::Symbol(Symbol::Function(number), _) = operand {
                found.insert(*number);
            }
        }
    }
    for relocation in code.variables.iter().flat_map(|variable| &variable.relocations) {
        if let Symbol::Function(number) = relocation.symbol {
            found.insert(number);
        }
    }
    found
}

fn recursive(callees: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<NodeIndex> = callees.iter().map(|_| graph.add_node(())).collect();
    for (caller, called) in callees.iter().enumerate() {
        for callee in called {
            graph.add_edge(nodes[caller], nodes[*callee], ());
        }
    }
    let is_cycle = |part: &Vec<NodeIndex>| match part[..] {
        [single] => callees[single.index()].contains(&single.index()),
        _ => true,
    };
    tarjan_scc(&graph).into_iter().filter(is_cycle).flatten().map(NodeIndex::index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, resolve};

    #[test]
    fn direct_indirect_and_recursive_calls_are_found() {
        let text = ".version 8.0
            .global .u64 table[1] = {d};
            .func a() { call b; ret; }
            .func b() { call a; ret; }
            .func c() { ret; }
            .func d() { ret; }
            .extern .func e();
            .entry k() { .reg .u64 %rd1; p: .callprototype _ (); call c; call e; call %rd1, p; ret; }
            .entry l() { .reg .u64 %rd1; t: .calltargets a; call %rd1, t; ret; }";
        let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let code = resolve(&module).unwrap_or_else(|error| panic!("{error}"));
        let graph = CallGraph::of(&code);
        assert_eq!(graph.callees[4], [2, 3].into());
        assert_eq!(graph.callees[5], [0].into());
        assert_eq!(graph.recursive, [0, 1].into());
        assert_eq!(graph.reachable(5), [0, 1, 5].into());
    }
}
