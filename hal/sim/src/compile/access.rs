//! Accesses to memory that are compiled: those whose lanes mostly fall into one stretch of memory.

use crate::execute::lds::two_offsets;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer};
use crate::instruction::{Element, Op, Run};

/// An access that is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    pub direction: Direction,
    /// Words of an element.
    pub words: u8,
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
        let one = |place, direction, words, offset: u64| Access {
            place,
            direction,
            words,
            offsets: [offset; 2],
            elements: 1,
        };
        let access = match op.run {
            Run::VectorMemory(access) if access.space == Space::Global => match access.transfer {
                Transfer::Load(Element::Words(words)) => {
                    one(Place::Global, Direction::Load, words, op.immediate as u64)
                }
                Transfer::Store(Element::Words(1)) => {
                    one(Place::Global, Direction::Store, 1, op.immediate as u64)
                }
                _ => return None,
            },
            Run::Lds(access) => {
                let offset = u64::from(op.immediate as u32);
                match access {
                    LdsAccess::Read(Element::Words(words)) => {
                        one(Place::Lds, Direction::Load, words, offset)
                    }
                    LdsAccess::Write(Element::Words(1)) => {
                        one(Place::Lds, Direction::Store, 1, offset)
                    }
                    LdsAccess::Read2 { words, scale } => Access {
                        place: Place::Lds,
                        direction: Direction::Load,
                        words,
                        offsets: two_offsets(op).map(|at| u64::from(at * scale)),
                        elements: 2,
                    },
                    LdsAccess::Write2 { words: 1, scale } => Access {
                        place: Place::Lds,
                        direction: Direction::Store,
                        words: 1,
                        offsets: two_offsets(op).map(|at| u64::from(at * scale)),
                        elements: 2,
                    },
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
