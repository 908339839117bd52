//! Blocks that load many registers, whose loads are executed as a batch at the end of the segment.

use super::{access, blocks, difference, machines, sequence};
use crate::compile::testing::{Direction, Plan};
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Transfer, VectorAccess};
use crate::instruction::{Element, Op, Run, Word};
use crate::tests::operations::Random;
use crate::wave::{Machine, RowIndex};

/// First of the loaded registers. [`sequence`] does not use these, so all may be new.
const FIRST: u16 = 16;
const LAST: u16 = 31;

/// Returns a load of words to consecutive registers from `to`, and their number.
fn load(random: &mut Random, machine: Machine, to: u16) -> ((Op, Plan), u16) {
    loop {
        let (mut op, plan) = access(random, machine);
        let rows = match op.run {
            Run::Lds(LdsAccess::Read(Element::Words(words))) => words,
            Run::Lds(LdsAccess::Read2 { words, .. }) => 2 * words,
            Run::VectorMemory(VectorAccess {
                transfer: Transfer::Load(Element::Words(words)),
                ..
            }) => words,
            _ => continue,
        };
        // Some loads overwrite address registers.
        if op.destination < RowIndex(10) {
            op.destination = RowIndex(to);
        }
        return ((op, plan), rows.into());
    }
}

/// Returns a store of registers that were not loaded, or only partly.
fn store(random: &mut Random, machine: Machine) -> (Op, Plan) {
    loop {
        let (mut op, plan) = access(random, machine);
        if matches!(plan, Plan::Access(access) if access.direction == Direction::Store) {
            if random.next() & 1 == 0 {
                let first = FIRST - 3 + random.next() as u16 % 8;
                op.sources[1].words = [Word::Row(RowIndex(first)); 2];
            }
            return (op, plan);
        }
    }
}

/// Makes an instruction read or write one of the loaded registers.
fn use_loaded_row(random: &mut Random, op: &mut Op) {
    let mut loaded = || RowIndex(FIRST + random.next() as u16 % (LAST - FIRST - 4));
    if op.destination < RowIndex(10) {
        op.destination = loaded();
    }
    for source in &mut op.sources {
        if matches!(source.words[0], Word::Row(row) if row < RowIndex(10)) {
            let first = loaded();
            source.words = [Word::Row(first), Word::Row(first.plus(1))];
        }
    }
}

#[test]
fn batched_loads_match_single_loads() {
    for seed in 0..blocks() {
        let mut random = Random(seed ^ 0x70_0002);
        let machine = machines()[seed as usize % 4];
        let mut operations = match random.next() % 3 {
            0 => sequence(&mut random, machine, 4),
            _ => Vec::new(),
        };
        // A write to EXEC would end the block.
        operations.retain(|(op, _)| op.inst.writes.is_empty());
        let mut to = FIRST;
        while to + 8 <= LAST {
            let (load, rows) = load(&mut random, machine, to);
            operations.push(load);
            // Rarely, load a register again.
            to += rows.saturating_sub(u16::from(random.next().is_multiple_of(16)));
        }
        if random.next() & 1 == 0 {
            operations.push(store(&mut random, machine));
        }
        for (mut op, plan) in sequence(&mut random, machine, 6) {
            use_loaded_row(&mut random, &mut op);
            operations.push((op, plan));
        }
        if let Some(difference) = difference(&mut random, machine, operations, 8) {
            panic!("seed {seed}: {difference}");
        }
    }
}
