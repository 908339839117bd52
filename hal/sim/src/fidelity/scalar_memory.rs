//! Propagation of marks through scalar memory accesses, as in
//! [`vector_memory`](crate::shadow::vector_memory).

use crate::execute::scalar_memory::execute;
use crate::instruction::scalar_memory::{ScalarAccess, Transfer};
use crate::instruction::{Op, Word};
use crate::shadow::{MarkedMemory, Named, Shadow, copy_to_ghost};
use crate::wave::{ScalarIndex, Wave};
use std::ops::Range;

/// Data registers of the ghost wave, in place of the trap registers, which hold no program data.
const DATA: ScalarIndex = ScalarIndex::TTMP;
const FIRST: usize = DATA.0 as usize;

/// Propagates marks through an access by an instruction with these registers.
pub fn follow(
    shadow: &mut Shadow,
    ghost: &mut Wave,
    memory: &mut MarkedMemory,
    wave: &Wave,
    op: &Op,
    access: ScalarAccess,
    named: &Named,
) {
    copy_to_ghost(ghost, wave);
    let mut ghost_op = op.clone();
    ghost_op.scalar_destination = DATA;
    let data = match op.sources[2].words[0] {
        Word::Scalar(first) => usize::from(first.0)..ScalarIndex::COUNT,
        _ => 0..0,
    };
    ghost_op.sources[2].words = [Word::Scalar(DATA); 2];
    let data = |words: u8| -> &[u32] {
        let end = (data.start + usize::from(words)).min(data.end);
        &shadow.scalars[data.start.min(end)..end]
    };
    ghost.scalars[range(16)].fill(0);
    let execute = |ghost: &mut Wave, transfer, memory: &mut MarkedMemory| {
        // Unmapped memory is left for the wave's own execution to report.
        _ = execute(ghost, &ghost_op, ScalarAccess { transfer, ..access }, memory);
    };
    match access.transfer {
        Transfer::Store(words) => {
            ghost.scalars[FIRST..FIRST + data(words).len()].copy_from_slice(data(words));
            if !memory.is_empty() || data(words).iter().any(|marks| *marks != 0) {
                execute(ghost, access.transfer, memory);
            }
            return;
        }
        Transfer::Atomic { atomic, returns } => {
            let words = atomic.bytes / 4;
            execute(ghost, Transfer::Load(words), memory);
            let loaded = ghost.scalars[range(words)].to_vec();
            if loaded.iter().chain(data(2 * words)).any(|marks| *marks != 0) {
                ghost.scalars[range(words)].fill(!0);
                execute(ghost, Transfer::Store(words), memory);
            }
            if !returns {
                return;
            }
            ghost.scalars[range(words)].copy_from_slice(&loaded);
        }
        Transfer::Clock => {}
        transfer => execute(ghost, transfer, memory),
    }
    let mut marks = ghost.scalars[range(16)].iter();
    for (_, slots) in &named.writes {
        for index in slots.scalars() {
            shadow.scalars[index] = marks.next().copied().unwrap_or(0);
        }
    }
}

/// Indices of the ghost's data registers.
fn range(words: u8) -> Range<usize> {
    FIRST..FIRST + usize::from(words)
}
