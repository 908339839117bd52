//! Edge bundles: equivalence classes of block starts and ends connected by control flow. A word must be in
//! the same register at all starts and ends of a bundle (see LLVM's `EdgeBundles`).

use super::scope::SplitScope;
use crate::flow::{BlockEnd, BlockIndex, Disassembly, EdgeKind, FunctionIndex, Key};
use petgraph::unionfind::UnionFind;

/// The starts and ends of blocks, in bundles.
pub struct EdgeBundles {
    bundles: UnionFind<usize>,
    blocks: usize,
}

impl EdgeBundles {
    /// Computes the bundles of all blocks in a scope.
    pub fn new(scope: &SplitScope<'_>) -> EdgeBundles {
        let program = scope.program;
        let blocks = program.blocks.len();
        let nodes = UnionFind::new(2 * blocks + program.functions.len());
        let mut bundles = EdgeBundles { bundles: nodes, blocks };
        for at in scope.blocks() {
            bundles.connect(program, at);
        }
        bundles
    }

    /// The bundle of a block's start.
    pub fn start(&mut self, block: BlockIndex) -> usize {
        self.bundles.find_mut(start(block))
    }

    /// The bundle of a block's end; `None` if the program ends there.
    pub fn end(&mut self, program: &Disassembly, block: BlockIndex) -> Option<usize> {
        let continues = program.blocks[block].end != BlockEnd::EndOfProgram;
        continues.then(|| self.bundles.find_mut(end(block)))
    }

    /// Merges the bundles that the edges of a block connect.
    fn connect(&mut self, program: &Disassembly, at: BlockIndex) {
        let block = &program.blocks[at];
        let end = end(at);
        let after_returns = self.returns(block.function);
        for edge in &block.successors {
            if edge.kind != EdgeKind::Return {
                self.bundles.union(end, start(edge.to));
            }
        }
        if block.end == BlockEnd::Return {
            self.bundles.union(end, after_returns);
        }
        if !matches!(block.end, BlockEnd::Call | BlockEnd::TailCall) {
            return;
        }
        let last = block.last();
        let calls = program.functions[block.function].calls.iter();
        let callees = calls.filter(|call| call.at == last).flat_map(|call| program.callees(call));
        for callee in callees {
            self.bundles.union(end, start(program.functions[callee].blocks.start));
            let back = self.returns(callee);
            for edge in &block.successors {
                self.bundles.union(back, start(edge.to));
            }
            if block.end == BlockEnd::TailCall {
                self.bundles.union(back, after_returns);
            }
        }
    }

    /// The node of a function's returns.
    fn returns(&self, function: FunctionIndex) -> usize {
        2 * self.blocks + function.number()
    }
}

/// The node of a block's start.
fn start(block: BlockIndex) -> usize {
    2 * block.number()
}

/// The node of a block's end.
fn end(block: BlockIndex) -> usize {
    2 * block.number() + 1
}
