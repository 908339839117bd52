//! Accesses to memory that are compiled: those whose lanes mostly fall into one stretch of memory.

use crate::execute::lds::two_offsets;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Op, Run};

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
    pub fn of(op: &Op) -> Option<Access> {
        let one = |place, direction, element, offset: u64| Access {
            place,
            direction,
            element,
            offsets: [offset; 2],
            elements: 1,
        };
        let access = match op.run {
            Run::VectorMemory(VectorAccess { space, transfer }) if is_global(space) => {
                let offset = op.immediate as u64;
                match transfer {
                    Transfer::Load(element) => one(Place::Global, Direction::Load, element, offset),
                    Transfer::Store(element) => {
                        one(Place::Global, Direction::Store, element, offset)
                    }
                    _ => return None,
                }
            }
            Run::Lds(access) => {
                let offset = u64::from(op.immediate as u32);
                let two = |direction, words, scale| Access {
                    place: Place::Lds,
                    direction,
                    element: Element::Words(words),
                    offsets: two_offsets(op).map(|at| u64::from(at * scale)),
                    elements: 2,
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
        (has_data && op.sources[0].row().is_some()).then_some(access)
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
