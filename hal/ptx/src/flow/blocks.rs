//! Basic blocks and their immediate post-dominators.

use crate::{Argument, Code, FunctionCode, Inst};
use flipwave_arch::Pc;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::BTreeSet;
use std::ops::Range;

/// A sequence of instructions that is entered at its first and left after its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicBlock {
    /// Numbers of the instructions in [`Code::instructions`].
    pub instructions: Range<usize>,
    /// Numbers of the blocks that may follow, without duplicates.
    pub successors: Vec<usize>,
    /// `true` if lanes may leave the function at the end of the block.
    pub leaves: bool,
    /// The first block that all paths from this block to the end of the function have in common; `None`
    /// if there is none.
    pub post_dominator: Option<usize>,
}

/// The control-flow graph of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlFlow {
    /// The blocks by ascending address. The first is the entry.
    pub blocks: Vec<BasicBlock>,
}

/// Continuation of an instruction.
struct Exits {
    targets: Vec<Pc>,
    /// `true` if the next instruction may follow.
    continues: bool,
    /// `true` if lanes may leave the function.
    leaves: bool,
}

impl Exits {
    /// Exits of an instruction; `None` if only the next instruction follows.
    fn of(inst: &Inst) -> Option<Exits> {
        let is_guarded = inst.guard.is_some();
        match inst.form.opcode() {
            "bra" => {
                let target = inst.operands.iter().find_map(|operand| match operand {
                    Argument::Label(target) => Some(*target),
                    _ => None,
                });
                let targets = target.into_iter().collect();
                Some(Exits { targets, continues: is_guarded, leaves: false })
            }
            "brx" => {
                let targets = inst.operands.iter().find_map(|operand| match operand {
                    Argument::Targets(targets) => Some(targets.clone()),
                    _ => None,
                });
                let targets = targets.unwrap_or_default();
                Some(Exits { targets, continues: is_guarded, leaves: false })
            }
            "ret" | "exit" | "trap" => {
                Some(Exits { targets: Vec::new(), continues: is_guarded, leaves: true })
            }
            _ => None,
        }
    }
}

impl ControlFlow {
    /// The control flow of a function.
    pub fn of(code: &Code, function: &FunctionCode) -> ControlFlow {
        let range = function.instructions.clone();
        let number = |pc: Pc| code.number_of(pc).filter(|number| range.contains(number));
        let mut starts = BTreeSet::from([range.start]);
        let exits =
            || range.clone().filter_map(|at| Some((at, Exits::of(&code.instructions[at])?)));
        for (at, exits) in exits() {
            starts.extend(exits.targets.iter().copied().filter_map(number));
            starts.insert(at + 1);
        }
        starts.retain(|start| range.contains(start));
        let starts: Vec<usize> = starts.into_iter().collect();
        let block_of = |at: usize| starts.binary_search(&at).ok();
        let ends = starts.iter().skip(1).copied().chain([range.end]);
        let blocks = starts.iter().copied().zip(ends).map(|(start, end)| {
            let exits = end.checked_sub(1).and_then(|last| Exits::of(&code.instructions[last]));
            let exits =
                exits.unwrap_or(Exits { targets: Vec::new(), continues: true, leaves: false });
            let next = Some(end).filter(|_| exits.continues);
            let targets = exits.targets.iter().copied().filter_map(number);
            let mut successors: Vec<usize> = targets.chain(next).filter_map(block_of).collect();
            successors.sort_unstable();
            successors.dedup();
            // Code that runs into the end of the function returns.
            let leaves = exits.leaves || exits.continues && end == range.end;
            BasicBlock { instructions: start..end, successors, leaves, post_dominator: None }
        });
        let mut flow = ControlFlow { blocks: blocks.collect() };
        if range.is_empty() {
            flow.blocks.clear();
        }
        flow.find_post_dominators();
        flow
    }

    fn find_post_dominators(&mut self) {
        let mut reversed = DiGraph::<(), ()>::new();
        let nodes: Vec<NodeIndex> = self.blocks.iter().map(|_| reversed.add_node(())).collect();
        let end = reversed.add_node(());
        for (number, block) in self.blocks.iter().enumerate() {
            for successor in &block.successors {
                reversed.add_edge(nodes[*successor], nodes[number], ());
            }
            if block.leaves {
                reversed.add_edge(end, nodes[number], ());
            }
        }
        let dominators = simple_fast(&reversed, end);
        for (number, block) in self.blocks.iter_mut().enumerate() {
            let found = dominators.immediate_dominator(nodes[number]);
            block.post_dominator = found.filter(|found| *found != end).map(NodeIndex::index);
        }
    }

    /// The block that contains an instruction.
    pub fn block_of(&self, instruction: usize) -> Option<&BasicBlock> {
        let after = self.blocks.partition_point(|block| block.instructions.start <= instruction);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        block.instructions.contains(&instruction).then_some(block)
    }

    /// Number of the instruction at which lanes that take different ways after an instruction meet again;
    /// `None` at the end of the function.
    pub fn reconvergence(&self, instruction: usize) -> Option<usize> {
        let block = self.blocks.get(self.block_of(instruction)?.post_dominator?)?;
        Some(block.instructions.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, resolve};

    fn flow(body: &str) -> ControlFlow {
        let text =
            format!(".version 8.0\n.entry k() {{ .reg .pred %p<4>; .reg .b32 %r<4>;\n{body}\n}}");
        let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let code = resolve(&module).unwrap_or_else(|error| panic!("{error}"));
        ControlFlow::of(&code, &code.functions[0])
    }

    /// Numbers of the instructions at which each instruction's lanes meet again.
    fn meetings(body: &str, count: usize) -> Vec<Option<usize>> {
        let flow = flow(body);
        (0..count).map(|number| flow.reconvergence(number)).collect()
    }

    #[test]
    fn branches_meet_at_their_post_dominator() {
        let diamond = "@%p1 bra A; mov.b32 %r1, 1; bra B; A: mov.b32 %r1, 2; B: ret;";
        assert_eq!(meetings(diamond, 5), [Some(4), Some(4), Some(4), Some(4), None]);
        let early = "@%p1 bra A; ret; A: @%p2 bra B; mov.b32 %r1, 2; B: exit;";
        assert_eq!(meetings(early, 5), [None, None, Some(4), Some(4), None]);
    }

    #[test]
    fn loops_meet_at_their_exit() {
        let inner = "A: mov.b32 %r1, 0; B: @%p1 bra B; @%p2 bra A; ret;";
        assert_eq!(meetings(inner, 4), [Some(1), Some(2), Some(3), None]);
        // Lanes that never leave do not meet the others.
        assert_eq!(meetings("A: bra A; ret;", 2), [None, None]);
    }

    #[test]
    fn indexed_branches_have_all_their_targets() {
        let body = "t: .branchtargets A, B, C; brx.idx %r1, t; A: mov.b32 %r1, 1; bra D; \
                    B: mov.b32 %r1, 2; bra D; C: mov.b32 %r1, 3; D: ret;";
        let flow = flow(body);
        assert_eq!(flow.blocks[0].successors, [1, 2, 3]);
        assert_eq!(flow.reconvergence(0), Some(6));
    }

    #[test]
    fn guarded_returns_leave_and_continue() {
        let flow = flow("@%p1 ret; mov.b32 %r1, 1; ret;");
        assert!(flow.blocks[0].leaves && flow.blocks[0].successors == [1]);
        assert_eq!(flow.reconvergence(0), None);
    }
}
