//! Accesses to memory that are compiled: those whose lanes mostly fall into one stretch of memory.

use crate::execute::lds::two_offsets;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Op, Run, Word};
use crate::wave::{Machine, ScalarIndex, private};
use flipwave_isa::Generation;

/// An access that is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    pub direction: Direction,
    pub element: Element,
    /// What is added to a lane's address: for each element. Of 64 bits in device memory, of 32 in LDS.
    pub offsets: [u64; 4],
    /// 1 to 4, of LDS to 2.
    pub elements: u8,
}

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory.
    Global,
    /// The local data share.
    Lds,
    /// Private memory.
    Private(Private),
}

/// How an access makes its addresses in private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private {
    /// What has its place and the scalar part of the offset.
    pub base: PrivateBase,
    /// How far the register that each lane has is shifted, which is a part of the offset, if there is
    /// one.
    pub lanes: Option<u8>,
}

/// What has the place of private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateBase {
    /// The wave.
    FlatScratch,
    /// A buffer resource, which most likely is that of private memory.
    Resource,
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
    /// Whether it accesses whole rows of private memory.
    pub fn is_row(&self) -> bool {
        matches!(self.place, Place::Private(Private { lanes: None, .. }))
    }

    /// What an instruction accesses; nothing if the interpreter is to do it.
    pub fn of(op: &Op, machine: Machine) -> Option<Access> {
        let one = |place, direction, element, offset: u64| Access {
            place,
            direction,
            element,
            offsets: [offset; 4],
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
            Run::VectorMemory(VectorAccess { space, transfer }) => {
                let private = Private::of(op, space, machine)?;
                let (direction, element) = match transfer {
                    Transfer::Load(element) => (Direction::Load, element),
                    Transfer::Store(element) => (Direction::Store, element),
                    _ => return None,
                };
                private.access(op, machine, direction, element)?
            }
            Run::Lds(access) => {
                let offset = u64::from(op.immediate as u32);
                let two = |direction, words, scale| Access {
                    place: Place::Lds,
                    direction,
                    element: Element::Words(words),
                    offsets: {
                        let [first, second] = two_offsets(op).map(|at| u64::from(at * scale));
                        [first, second, 0, 0]
                    },
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
        let count = if access.place == Place::Lds { access.elements } else { 1 };
        let mut data = op.sources[1..].iter().take(count.into());
        let has_data = access.direction == Direction::Load || data.all(|own| own.row().is_some());
        let has_address = access.is_row() || op.sources[0].row().is_some();
        (has_data && has_address).then_some(access)
    }
}

impl Private {
    fn of(op: &Op, space: Space, machine: Machine) -> Option<Private> {
        let has_row = op.sources[0].row().is_some();
        Some(match space {
            Space::Scratch => {
                Private { base: PrivateBase::FlatScratch, lanes: has_row.then_some(0) }
            }
            Space::ScaledScratch { shift } => {
                Private { base: PrivateBase::FlatScratch, lanes: has_row.then_some(shift) }
            }
            // The resource of private memory is in the first registers, and what has been put there
            // since is found out.
            Space::Buffer { offset, index: false }
                if machine.generation < Generation::Gfx11
                    && op.sources[2].words[0] == Word::Scalar(ScalarIndex(0)) =>
            {
                Private { base: PrivateBase::Resource, lanes: offset.then_some(0) }
            }
            _ => return None,
        })
    }

    /// The access, by words; nothing if a part of a word is not of one word.
    fn access(
        self,
        op: &Op,
        machine: Machine,
        direction: Direction,
        element: Element,
    ) -> Option<Access> {
        let stride = i64::from(private::stride(machine.lanes));
        let (words, own) = match element {
            Element::Words(words) => (words, Element::Words(1)),
            part => (1, part),
        };
        // Where each lane has a part of the offset, what is constant is added to that.
        let offset = if self.lanes.is_some() { 0 } else { op.immediate };
        let (row, byte) = (offset.div_euclid(4), offset.rem_euclid(4));
        let is_row = self.lanes.is_none();
        if is_row && !(matches!(element, Element::Words(_)) && byte == 0) {
            return None;
        }
        Some(Access {
            place: Place::Private(self),
            direction,
            element: own,
            offsets: [0, 1, 2, 3].map(|word| ((row + word) * stride + byte) as u64),
            elements: words,
        })
    }
}

/// Whether addresses are those of device memory, or of a window that code which is compiled finds no
/// memory in.
pub fn is_global(space: Space) -> bool {
    matches!(
        space,
        Space::Global | Space::Flat | Space::FlatWithGlobalScratch { signed_offset: None }
    )
}
