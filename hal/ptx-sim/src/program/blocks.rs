//! Blocks of a program, and the regions in which they are compiled together.

use super::{Op, Step};
use flipwave_ptx::{Code, ControlFlow};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Instructions of a region, unless a block is longer. LLVM needs more than linear time for long functions.
const REGION: usize = 512;

/// Straight-line code, perhaps with a branch at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Numbers of the instructions.
    pub instructions: Range<usize>,
    /// The function.
    pub function: usize,
}

/// The blocks of a program. They do not depend on what is compiled, because the turns of waves end at them.
#[derive(Default)]
pub(crate) struct Blocks {
    /// By ascending number of their first instruction.
    pub all: Vec<Block>,
    /// Numbers of the blocks that are compiled together.
    pub regions: Vec<Range<usize>>,
    /// By instruction: the block that begins there, or its place in relation to blocks.
    starts: Vec<Start>,
    /// By instruction: number of the access to device memory.
    pub sites: Vec<usize>,
    /// Number of accesses to device memory.
    pub site_count: usize,
    /// Number of the first block, which is unique in the process.
    pub first_number: u64,
}

/// Relation of an instruction to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// It is the first instruction of a block in a region.
    Block { block: u32, region: u32 },
    /// It is in a block, but not the first.
    Inside,
    /// It is in no block.
    Outside,
}

/// Returns `true` for instructions after which the next one follows, in all lanes.
fn is_straight(step: &Step) -> bool {
    match step.op {
        Op::Compute { .. }
        | Op::Product(_)
        | Op::Warpgroup(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Copy(_)
        | Op::Matrix(_)
        | Op::PhaseBarrier(_)
        | Op::Nothing => true,
        Op::Branch { .. }
        | Op::IndexedBranch { .. }
        | Op::Call(_)
        | Op::Return
        | Op::Exit
        | Op::Trap(_)
        | Op::Barrier(_)
        | Op::Gap(_) => false,
    }
}

/// Returns `true` for loads and stores of memory that may be device memory.
fn reaches_device(step: &Step) -> bool {
    match &step.op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.reaches_device(),
        _ => false,
    }
}

impl Blocks {
    /// The blocks of a program with these steps.
    pub fn of(code: &Code, flows: &[ControlFlow], steps: &[Step]) -> Blocks {
        let mut blocks = Blocks { starts: vec![Start::Outside; steps.len()], ..Blocks::default() };
        for (function, flow) in flows.iter().enumerate() {
            debug_assert!(function < code.functions.len());
            let first = blocks.all.len();
            for basic in &flow.blocks {
                blocks.split(basic.instructions.clone(), function, steps);
            }
            blocks.divide(first);
        }
        for step in steps {
            blocks.sites.push(blocks.site_count);
            blocks.site_count += usize::from(reaches_device(step));
        }
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        blocks.first_number = NUMBERS.fetch_add(blocks.all.len() as u64, Ordering::Relaxed);
        blocks
    }

    /// Splits a basic block at instructions that only the interpreter executes.
    fn split(&mut self, basic: Range<usize>, function: usize, steps: &[Step]) {
        let mut start = basic.start;
        for number in basic.clone() {
            let ends = !is_straight(&steps[number]);
            let end = match steps[number].op {
                Op::Branch { .. } => number + 1,
                _ if ends => number,
                _ if number + 1 == basic.end => number + 1,
                _ => continue,
            };
            if start < end {
                self.all.push(Block { instructions: start..end, function });
            }
            start = number + 1;
        }
    }

    /// Divides the blocks from a number on into regions.
    fn divide(&mut self, first: usize) {
        let (mut start, mut length) = (first, 0);
        let mut ranges = Vec::new();
        for (number, block) in self.all.iter().enumerate().skip(first) {
            if length > 0 && length + block.instructions.len() > REGION {
                ranges.push(start..number);
                (start, length) = (number, 0);
            }
            length += block.instructions.len();
        }
        ranges.extend((start < self.all.len()).then_some(start..self.all.len()));
        for range in ranges {
            for number in range.clone() {
                let instructions = self.all[number].instructions.clone();
                self.starts[instructions.clone()].fill(Start::Inside);
                let (block, region) = (number as u32, self.regions.len() as u32);
                self.starts[instructions.start] = Start::Block { block, region };
            }
            self.regions.push(range);
        }
    }

    /// The block that begins at an instruction, and its region.
    pub fn at(&self, number: usize) -> Option<(usize, usize)> {
        match self.starts.get(number)? {
            Start::Block { block, region } => Some((*block as usize, *region as usize)),
            Start::Inside | Start::Outside => None,
        }
    }

    /// Returns `true` for an instruction in a block that is not its first.
    pub fn is_inside(&self, number: usize) -> bool {
        self.starts.get(number) == Some(&Start::Inside)
    }

    /// The block of an instruction.
    pub fn around(&self, number: usize) -> Option<&Block> {
        let after = self.all.partition_point(|block| block.instructions.start <= number);
        let block = self.all.get(after.checked_sub(1)?)?;
        block.instructions.contains(&number).then_some(block)
    }
}
