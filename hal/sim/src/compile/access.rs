//! Accesses to memory that are compiled: those whose lanes mostly fall into one stretch of memory.

use crate::execute::lds::two_offsets;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Op, Run, Word};
use crate::wave::{Machine, ScalarIndex};
use flipwave_isa::Generation;

/// An access that is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    pub direction: Direction,
    pub element: Element,
    /// What is added to a lane's address: for each element. Of 64 bits in device memory, of 32 in LDS.
    pub offsets: [u64; 2],
    /// 1 or 2.
    pub elements: u8,
    /// Whether lanes have offsets in a buffer, which has no records.
    pub is_in_buffer: bool,
}

/// An access to private memory: compiled for lanes whose words are where the last ones were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateAccess {
    pub direction: Direction,
    /// Words of a lane.
    pub words: u8,
}

impl PrivateAccess {
    /// What an instruction accesses of private memory; nothing if it is not likely to be that, or if the
    /// interpreter is to do it anyway.
    pub fn of(op: &Op, machine: Machine) -> Option<PrivateAccess> {
        let Run::VectorMemory(VectorAccess { space, transfer }) = op.run else { return None };
        let (direction, words) = match transfer {
            Transfer::Load(Element::Words(words)) => (Direction::Load, words),
            Transfer::Store(Element::Words(words)) => (Direction::Store, words),
            _ => return None,
        };
        let is_scalar = |word| matches!(word, Word::Scalar(_) | Word::Constant(_));
        let is_private = match space {
            Space::Scratch => is_scalar(op.sources[2].words[0]),
            Space::Buffer { index: false, .. } => {
                is_private_buffer(op, machine) && is_scalar(op.sources[3].words[0])
            }
            _ => false,
        };
        let has_data = direction == Direction::Load || op.sources[1].row().is_some();
        (is_private && has_data).then_some(PrivateAccess { direction, words })
    }

    /// The same of a flat access that leads to private memory.
    pub fn of_flat(op: &Op, Access { direction, element, .. }: Access) -> Option<PrivateAccess> {
        let Run::VectorMemory(VectorAccess { space: Space::Flat, .. }) = op.run else {
            return None;
        };
        let has_base = !matches!(op.sources[2].words[0], Word::Constant(_));
        match element {
            Element::Words(words) if !has_base => Some(PrivateAccess { direction, words }),
            _ => None,
        }
    }
}

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory.
    Global,
    /// The local data share.
    Lds,
}

/// To where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To registers.
    Load,
    /// To memory.
    Store,
}

impl Access {
    /// What an instruction accesses; nothing if the interpreter is to do it.
    pub fn of(op: &Op, machine: Machine) -> Option<Access> {
        let one = |place, direction, element, offset: u64| Access {
            place,
            direction,
            element,
            offsets: [offset; 2],
            elements: 1,
            is_in_buffer: false,
        };
        let access = match op.run {
            Run::VectorMemory(VectorAccess { space, transfer }) => {
                let is_in_buffer = matches!(space, Space::Buffer { index: false, .. });
                let is_known =
                    if is_in_buffer { has_known_buffers(op, machine) } else { is_global(space) };
                if !is_known {
                    return None;
                }
                let (direction, element) = match transfer {
                    Transfer::Load(element) => (Direction::Load, element),
                    Transfer::Store(element) => (Direction::Store, element),
                    _ => return None,
                };
                // The offset in a buffer is part of what a lane has.
                let offset = if is_in_buffer { 0 } else { op.immediate as u64 };
                Access { is_in_buffer, ..one(Place::Global, direction, element, offset) }
            }
            Run::Lds(access) => {
                let offset = u64::from(op.immediate as u32);
                let two = |direction, words, scale| Access {
                    place: Place::Lds,
                    direction,
                    element: Element::Words(words),
                    offsets: two_offsets(op).map(|at| u64::from(at * scale)),
                    elements: 2,
                    is_in_buffer: false,
                };
                match access {
                    LdsAccess::Read(element) => one(Place::Lds, Direction::Load, element, offset),
                    LdsAccess::Write(element) => one(Place::Lds, Direction::Store, element, offset),
                    LdsAccess::Read2 { words, scale } => two(Direction::Load, words, scale),
                    LdsAccess::Write2 { words, scale } => two(Direction::Store, words, scale),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let mut data = op.sources[1..].iter().take(access.elements.into());
        let has_data = access.direction == Direction::Load || data.all(|own| own.row().is_some());
        let has_addresses = access.is_in_buffer || op.sources[0].row().is_some();
        (has_data && has_addresses).then_some(access)
    }
}

/// Whether addresses are those of device memory, or of a window that code which is compiled finds no
/// memory in.
fn is_global(space: Space) -> bool {
    matches!(
        space,
        Space::Global | Space::Flat | Space::FlatWithGlobalScratch { signed_offset: None }
    )
}

/// Whether code knows how the buffer of an instruction is described.
fn has_known_buffers(op: &Op, machine: Machine) -> bool {
    let [resource, offset] = [2, 3].map(|source| op.sources[source].words[0]);
    matches!(resource, Word::Scalar(_))
        && machine.generation < Generation::Gfx125
        && !is_private_buffer(op, machine)
        && matches!(offset, Word::Scalar(_) | Word::Constant(_))
}

/// Whether the buffer of an instruction is likely to be private memory: where there is no instruction for
/// that, it is in the first registers, as functions expect it, or among the last ones (AMDGPUUsage,
/// "Non-Kernel Functions"; LLVM, `getReservedPrivateSegmentBufferReg`).
fn is_private_buffer(op: &Op, machine: Machine) -> bool {
    let has_private_buffers = machine.generation == Generation::Gfx10
        || machine.flat_scratch == ScalarIndex::FLAT_SCRATCH;
    has_private_buffers
        && matches!(op.sources[2].words[0], Word::Scalar(first) if first.0 == 0 || first.0 >= 96)
}
