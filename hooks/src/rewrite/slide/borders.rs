//! Where blocks meet: on all ways that control can take from one to another, state must be found
//! where it was left.

use super::Ground;
use crate::flow::{BlockEnd, BlockIndex, EdgeKind, FunctionIndex, InstIndex, Program};
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
        self.classes.find_mut(2 * block.0 as usize)
    }

    /// The class of a block's end; nothing where the program ends.
    pub fn departure(&mut self, program: &Program, block: BlockIndex) -> Option<usize> {
        let goes_on = program.block(block)?.end != BlockEnd::EndOfProgram;
        goes_on.then(|| self.classes.find_mut(2 * block.0 as usize + 1))
    }

    fn connect(&mut self, program: &Program, at: BlockIndex) {
        let Some(block) = program.block(at) else { return };
        let end = 2 * at.0 as usize + 1;
        let behind_returns = self.returns(block.function);
        for edge in &block.successors {
            if edge.kind != EdgeKind::Return {
                self.classes.union(end, 2 * edge.to.0 as usize);
            }
        }
        if block.end == BlockEnd::Return {
            self.classes.union(end, behind_returns);
        }
        if !matches!(block.end, BlockEnd::Call | BlockEnd::TailCall) {
            return;
        }
        let last = InstIndex(block.instructions.end.saturating_sub(1));
        let calls = program.function(block.function).into_iter().flat_map(|own| &own.calls);
        let callees = calls.filter(|call| call.at == last).flat_map(|call| program.callees(call));
        for callee in callees {
            let Some(entry) = program.function(callee).map(|own| own.blocks.start) else {
                continue;
            };
            self.classes.union(end, 2 * entry as usize);
            let back = self.returns(callee);
            for edge in &block.successors {
                self.classes.union(back, 2 * edge.to.0 as usize);
            }
            if block.end == BlockEnd::TailCall {
                self.classes.union(back, behind_returns);
            }
        }
    }

    /// Where a function returns.
    fn returns(&self, function: FunctionIndex) -> usize {
        2 * self.blocks + function.0 as usize
    }
}
