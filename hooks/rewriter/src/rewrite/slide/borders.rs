//! Where blocks meet: on all ways that control can take from one to another, state must be found
//! where it was left.

use super::Ground;
use crate::flow::{BlockEnd, BlockIndex, Disassembly, EdgeKind, FunctionIndex, Key};
use petgraph::unionfind::UnionFind;

/// The ends of blocks, in classes that control connects.
pub struct Borders {
    classes: UnionFind<usize>,
    blocks: usize,
}

impl Borders {
    /// The borders of all blocks of the ground.
    pub fn of(ground: &Ground<'_>) -> Borders {
        let program = ground.program;
        let blocks = program.blocks.len();
        let classes = UnionFind::new(2 * blocks + program.functions.len());
        let mut borders = Borders { classes, blocks };
        for at in ground.blocks() {
            borders.connect(program, at);
        }
        borders
    }

    /// The class of a block's beginning.
    pub fn arrival(&mut self, block: BlockIndex) -> usize {
        self.classes.find_mut(beginning(block))
    }

    /// The class of a block's end; nothing where the program ends.
    pub fn departure(&mut self, program: &Disassembly, block: BlockIndex) -> Option<usize> {
        let goes_on = program.blocks[block].end != BlockEnd::EndOfProgram;
        goes_on.then(|| self.classes.find_mut(end(block)))
    }

    fn connect(&mut self, program: &Disassembly, at: BlockIndex) {
        let block = &program.blocks[at];
        let end = end(at);
        let after_returns = self.returns(block.function);
        for edge in &block.successors {
            if edge.kind != EdgeKind::Return {
                self.classes.union(end, beginning(edge.to));
            }
        }
        if block.end == BlockEnd::Return {
            self.classes.union(end, after_returns);
        }
        if !matches!(block.end, BlockEnd::Call | BlockEnd::TailCall) {
            return;
        }
        let last = block.last();
        let calls = program.functions[block.function].calls.iter();
        let callees = calls.filter(|call| call.at == last).flat_map(|call| program.callees(call));
        for callee in callees {
            self.classes.union(end, beginning(program.functions[callee].blocks.start));
            let back = self.returns(callee);
            for edge in &block.successors {
                self.classes.union(back, beginning(edge.to));
            }
            if block.end == BlockEnd::TailCall {
                self.classes.union(back, after_returns);
            }
        }
    }

    /// Where a function returns.
    fn returns(&self, function: FunctionIndex) -> usize {
        2 * self.blocks + function.number()
    }
}

/// The beginning of a block.
fn beginning(block: BlockIndex) -> usize {
    2 * block.number()
}

/// The end of a block.
fn end(block: BlockIndex) -> usize {
    2 * block.number() + 1
}
