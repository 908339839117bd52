//! Memory accesses that are compiled: accesses whose lanes mostly lie in one window of memory.

use crate::execute::lds::two_offsets;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Op, Run, Word};
use crate::wave::{Machine, ScalarIndex};
use flipwave_isa::Generation;

/// A compiled access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub space: AccessSpace,
    pub direction: Direction,
    pub element: Element,
    /// Offset added to a lane's address, for each element: 64 bits for device memory, 32 bits for
    /// LDS.
    pub offsets: [u64; 2],
    /// Number of elements: 1 or 2.
    pub elements: u8,
    /// `true` if lanes have offsets in a buffer without records.
    pub is_in_buffer: bool,
}

/// An access to private memory, compiled for lanes whose words lie in the windows of earlier
/// accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateAccess {
    pub direction: Direction,
    /// Words per lane.
    pub words: u8,
}

impl PrivateAccess {
    /// The private memory access of an instruction; `None` if the instruction probably accesses
    /// other memory, or the interpreter has to execute it.
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

    /// The private memory access of a flat access that resolved to non-global memory.
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

/// Memory that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessSpace {
    /// Device memory.
    Global,
    /// The local data share.
    Lds,
}

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Memory to registers.
    Load,
    /// Registers to memory.
    Store,
}

impl Access {
    /// The access of an instruction; `None` if the interpreter has to execute it.
    pub fn of(op: &Op, machine: Machine) -> Option<Access> {
        let one = |space, direction, element, offset: u64| Access {
            space,
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
                // The offset in a buffer is part of the lane's address.
                let offset = if is_in_buffer { 0 } else { op.immediate as u64 };
                Access { is_in_buffer, ..one(AccessSpace::Global, direction, element, offset) }
            }
            Run::Lds(access) => {
                let offset = u64::from(op.immediate as u32);
                let two = |direction, words, scale| Access {
                    space: AccessSpace::Lds,
                    direction,
                    element: Element::Words(words),
                    offsets: two_offsets(op).map(|at| u64::from(at * scale)),
                    elements: 2,
                    is_in_buffer: false,
                };
                match access {
                    LdsAccess::Read(element) => {
                        one(AccessSpace::Lds, Direction::Load, element, offset)
                    }
                    LdsAccess::Write(element) => {
                        one(AccessSpace::Lds, Direction::Store, element, offset)
                    }
                    LdsAccess::Read2 { words, scale } => two(Direction::Load, words, scale),
                    LdsAccess::Write2 { words, scale } => two(Direction::Store, words, scale),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let mut data = op.sources[1..].iter().take(access.elements.into());
        let has_data =
            access.direction == Direction::Load || data.all(|source| source.row().is_some());
        let has_addresses = access.is_in_buffer || op.sources[0].row().is_some();
        (has_data && has_addresses).then_some(access)
    }
}

/// Returns `true` if addresses are device addresses, or lie in an aperture for which compiled code
/// finds no window.
fn is_global(space: Space) -> bool {
    matches!(
        space,
        Space::Global | Space::Flat | Space::FlatWithGlobalScratch { signed_offset: None }
    )
}

/// Returns `true` if compiled code can interpret the instruction's buffer resource.
fn has_known_buffers(op: &Op, machine: Machine) -> bool {
    let [resource, offset] = [2, 3].map(|source| op.sources[source].words[0]);
    matches!(resource, Word::Scalar(_))
        && machine.generation < Generation::Gfx125
        && !is_private_buffer(op, machine)
        && matches!(offset, Word::Scalar(_) | Word::Constant(_))
}

/// Returns `true` if the instruction's buffer is probably private memory: on targets without
/// scratch instructions, its resource is in the first registers, as functions expect it, or among
/// the last ones (AMDGPUUsage, "Non-Kernel Functions"; LLVM, `getReservedPrivateSegmentBufferReg`).
fn is_private_buffer(op: &Op, machine: Machine) -> bool {
    let has_private_buffers = machine.generation == Generation::Gfx10
        || machine.flat_scratch == ScalarIndex::FLAT_SCRATCH;
    has_private_buffers
        && matches!(op.sources[2].words[0], Word::Scalar(first) if first.0 == 0 || first.0 >= 96)
}
