//! The operations of vector memory.

use super::element::Element;
use crate::memory::atomic;
use crate::memory::atomic::Atomic;
use flipwave_isa::{BufferFormat, Family, Inst, Modifiers};

/// A vector memory operation. Sources: 0 the address register, 1 the data, 2 the scalar base or
/// buffer resource, 3 the scalar offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// How addresses are made.
    pub space: Space,
    /// What is done there.
    pub transfer: Transfer,
}

/// How addresses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 64-bit address, or scalar base plus 32-bit offset.
    Global,
    /// Scalar base plus four bytes for each lane before.
    GlobalByThread,
    /// As [`Space::Global`], of a load whose elements the lanes of a wave of 32 then exchange.
    GlobalTransposed {
        /// The elements.
        elements: Transposed,
        /// As [`Space::FlatWithGlobalScratch`] has it.
        signed_offset: Option<u8>,
    },
    /// 64-bit address whose window decides, or scalar base plus 32-bit offset.
    Flat,
    /// The same where private memory has addresses that all waves share.
    FlatWithGlobalScratch {
        /// With a scalar base, how far the register is shifted, which is signed.
        signed_offset: Option<u8>,
    },
    /// Scalar base plus a signed 32-bit register, shifted.
    GlobalWithSignedOffset {
        /// How far.
        shift: u8,
    },
    /// Offset in the lane's private memory, of which the register's part is shifted.
    ScaledScratch {
        /// How far.
        shift: u8,
    },
    /// Offset in the lane's private memory.
    Scratch,
    /// Buffer resource; with an offset register, with an index register.
    Buffer {
        /// The address register holds an offset.
        offset: bool,
        /// The address register holds an index, before the offset if both are there.
        index: bool,
    },
}

impl Space {
    /// Whether each address says what memory is meant.
    pub fn is_flat(self) -> bool {
        matches!(self, Space::Flat | Space::FlatWithGlobalScratch { .. })
    }

    /// How far the signed register that is added to a scalar base is shifted; nothing where the
    /// address is made otherwise.
    pub fn signed_offset(self) -> Option<u8> {
        match self {
            Space::GlobalWithSignedOffset { shift } => Some(shift),
            Space::FlatWithGlobalScratch { signed_offset }
            | Space::GlobalTransposed { signed_offset, .. } => signed_offset,
            _ => None,
        }
    }
}

/// What is done at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Memory to registers.
    Load(Element),
    /// Registers to memory.
    Store(Element),
    /// Read, modify, write; the old value is returned or not.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// Whether the old value is returned.
        returns: bool,
    },
    /// Memory to registers, converted.
    LoadFormat(Formatted),
    /// Registers to memory, converted.
    StoreFormat(Formatted),
    /// Memory to those of 32 registers whose bits are set in M0, the words side by side.
    LoadBlock,
    /// Those registers to memory.
    StoreBlock,
    /// Memory to LDS, the lanes' side by side: a dword per lane, or three or four dwords, for which
    /// there is the room of four. Or where a register says, if the data are in one.
    LoadToLds(Element),
    /// The same, converted.
    LoadFormatToLds(Formatted),
    /// LDS to memory, likewise.
    StoreFromLds(Element),
}

/// The elements of a load whose lanes exchange what they have loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// Of a byte.
    Bytes,
    /// Of a half word.
    Halves,
    /// Of four bits.
    Nibbles,
    /// Of six bits.
    Sixes,
}

impl Transposed {
    /// What follows `load_` in names of gfx12 and of gfx1250, as what is loaded and how it is exchanged.
    pub fn named(what: &str) -> Option<(&'static str, Transposed)> {
        Some(match what {
            "tr4_b64" => ("b64", Transposed::Nibbles),
            "tr6_b96" => ("b96", Transposed::Sixes),
            "tr_b64" | "tr8_b64" => ("b64", Transposed::Bytes),
            "tr_b128" | "tr16_b128" => ("b128", Transposed::Halves),
            _ => return None,
        })
    }

    /// Elements that each lane loads and gets, as many as the lanes that exchange elements of one
    /// number.
    pub fn count(self) -> usize {
        match self {
            Transposed::Bytes | Transposed::Halves => 8,
            Transposed::Nibbles | Transposed::Sixes => 16,
        }
    }

    /// Bits of an element.
    pub fn bits(self) -> u8 {
        match self {
            Transposed::Bytes => 8,
            Transposed::Halves => 16,
            Transposed::Nibbles => 4,
            Transposed::Sixes => 6,
        }
    }

    /// Registers that they fill.
    pub fn words(self) -> u8 {
        self.count() as u8 * self.bits() / 32
    }

    /// The lane that has loaded element number `element` of what a lane gets, as its element of the
    /// number of this lane among eight or, of elements of less than a byte, sixteen. Half words are
    /// exchanged among eight lanes each (measured on gfx1250; Triton and MLIR,
    /// `amdgpu.global_transpose_load`, rely on it for gfx12); bytes among the sixteen lanes that load 16
    /// rows of a matrix of eight bits, as WMMA wants its columns (measured on gfx1201). Those of four and of six bits are as AMD's rocjitsu has them (`ds_transpose.h`).
    pub fn source(self, lane: usize, element: usize) -> usize {
        match self {
            Transposed::Halves => lane & !7 | element,
            Transposed::Nibbles => (element & 8) << 1 | (lane & 16) >> 1 | element & 7,
            Transposed::Sixes => (element & 12) << 1 | element & 3 | (lane & 16) >> 2,
            Transposed::Bytes => lane & !15 | (element & 4) << 1 | (lane & 8) >> 1 | element & 3,
        }
    }
}

/// What a formatted access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// Components in registers.
    pub components: u8,
    /// How they lie there.
    pub part: Part,
    /// The instruction's own format; without, the resource has it.
    pub format: Option<BufferFormat>,
    /// Whether half words without a component become zero.
    pub in_whole_registers: bool,
}

/// How components lie in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One per register.
    Words,
    /// Two per register.
    Halves,
    /// One in the high half.
    HighHalf,
}

/// The vector memory operation of an instruction.
pub fn find(inst: &Inst) -> Option<VectorAccess> {
    let Modifiers { offen, idxen, lds, buffer_format, .. } = inst.modifiers;
    // Whatever the modifier is called that asks for it.
    let returns = inst.destinations().next().is_some();
    let (space, rest) = inst.operation.name().split_once('_')?;
    let typed = (space == "tbuffer").then(|| buffer_format.unwrap_or_default());
    let space = match space {
        "global" if inst.operation.is(Family::AddTid) => Space::GlobalByThread,
        "global" => Space::Global,
        "flat" => Space::Flat,
        "scratch" => Space::Scratch,
        "buffer" | "tbuffer" => Space::Buffer { offset: offen, index: idxen },
        _ => return None,
    };
    let (verb, what) = rest.split_once('_')?;
    let what = what.trim_end_matches("_addtid");
    let what = what.trim_start_matches("monitor_");
    let (what, space) = match Transposed::named(what) {
        Some((what, elements)) => (what, Space::GlobalTransposed { elements, signed_offset: None }),
        None => (what, space),
    };
    let formatted = what.strip_prefix("format_").and_then(|layout| formatted(layout, typed));
    let transfer = match (verb, formatted) {
        ("load", Some(formatted)) if lds => Transfer::LoadFormatToLds(formatted),
        ("load", Some(formatted)) => Transfer::LoadFormat(formatted),
        ("store", Some(formatted)) => Transfer::StoreFormat(formatted),
        ("load", None) if lds => Transfer::LoadToLds(Element::named(what)?),
        ("load", None) if what == "block" => Transfer::LoadBlock,
        ("store", None) if what == "block" => Transfer::StoreBlock,
        ("load", None) => match in_lds(what, "async_to_lds_") {
            Some(what) => Transfer::LoadToLds(Element::named(what)?),
            None => Transfer::Load(Element::named(what)?),
        },
        ("store", None) => match in_lds(what, "async_from_lds_") {
            Some(what) => Transfer::StoreFromLds(Element::named(what)?),
            None => Transfer::Store(Element::named(what)?),
        },
        ("atomic", _) => Transfer::Atomic { atomic: atomic::find_memory(what)?, returns },
        _ => return None,
    };
    Some(VectorAccess { space, transfer })
}

/// What is moved between memory and LDS, of an instruction that does so.
fn in_lds<'a>(what: &'a str, asynchronous: &str) -> Option<&'a str> {
    what.strip_prefix("lds_").or_else(|| what.strip_prefix(asynchronous))
}

/// What `xyz`, `d16_xy` and `d16_hi_x` name.
fn formatted(layout: &str, format: Option<BufferFormat>) -> Option<Formatted> {
    let (part, names) = if let Some(names) = layout.strip_prefix("d16_hi_") {
        (Part::HighHalf, names)
    } else if let Some(names) = layout.strip_prefix("d16_") {
        (Part::Halves, names)
    } else {
        (Part::Words, layout)
    };
    let components = ["x", "xy", "xyz", "xyzw"].iter().position(|known| *known == names)? as u8 + 1;
    Some(Formatted { components, part, format, in_whole_registers: false })
}

impl Transfer {
    /// The same where loads write whole registers.
    pub fn in_whole_registers(self) -> Transfer {
        match self {
            Transfer::Load(element) => Transfer::Load(element.in_whole_registers()),
            Transfer::LoadFormat(formatted) => {
                Transfer::LoadFormat(Formatted { in_whole_registers: true, ..formatted })
            }
            other => other,
        }
    }

    /// Bytes that a lane accesses.
    pub fn bytes(self) -> usize {
        match self {
            Transfer::Load(element)
            | Transfer::Store(element)
            | Transfer::LoadToLds(element)
            | Transfer::StoreFromLds(element) => element.bytes(),
            Transfer::Atomic { atomic, .. } => atomic.bytes.into(),
            // None that can be scaled.
            _ => 1,
        }
    }

    /// Whether registers are read.
    pub fn has_data(self) -> bool {
        matches!(
            self,
            Transfer::Store(_)
                | Transfer::StoreFormat(_)
                | Transfer::StoreBlock
                | Transfer::Atomic { .. }
        )
    }
}
