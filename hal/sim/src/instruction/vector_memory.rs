//! Operations of vector memory.

use super::element::Element;
use crate::memory::atomic;
use crate::memory::atomic::Atomic;
use flipwave_isa::{BufferFormat, Family, Inst, Modifiers};

/// A vector memory operation. Sources: 0 the address register, 1 the data, 2 the scalar base or
/// buffer resource, 3 the scalar offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// Addressing mode.
    pub space: Space,
    /// Operation at the address.
    pub transfer: Transfer,
}

/// Addressing mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 64-bit address, or scalar base plus 32-bit offset.
    Global,
    /// Scalar base plus four bytes per lane.
    GlobalByThread,
    /// Like [`Space::Global`], for a load whose elements are exchanged between the lanes of a wave of
    /// 32.
    GlobalTransposed {
        /// The elements.
        elements: Transposed,
        /// Shift as in [`Space::FlatWithGlobalScratch`].
        signed_offset: Option<u8>,
    },
    /// 64-bit address whose window selects the memory, or scalar base plus 32-bit offset.
    Flat,
    /// Like [`Space::Flat`], on targets where private memory has addresses that all waves share.
    FlatWithGlobalScratch {
        /// Shift of the signed offset register, if there is a scalar base.
        signed_offset: Option<u8>,
    },
    /// Scalar base plus a signed 32-bit register, shifted.
    GlobalWithSignedOffset {
        /// Shift of the register.
        shift: u8,
    },
    /// Offset in the lane's private memory, with a shifted register part.
    ScaledScratch {
        /// Shift of the register.
        shift: u8,
    },
    /// Offset in the lane's private memory.
    Scratch,
    /// Buffer resource with optional offset and index registers.
    Buffer {
        /// `true` if the address register holds an offset.
        offset: bool,
        /// `true` if the address register holds an index, before the offset if both exist.
        index: bool,
    },
}

impl Space {
    /// Returns `true` if the address selects the kind of memory.
    pub fn is_flat(self) -> bool {
        matches!(self, Space::Flat | Space::FlatWithGlobalScratch { .. })
    }

    /// Shift of the signed register that is added to a scalar base; `None` in other addressing
    /// modes.
    pub fn signed_offset(self) -> Option<u8> {
        match self {
            Space::GlobalWithSignedOffset { shift } => Some(shift),
            Space::FlatWithGlobalScratch { signed_offset }
            | Space::GlobalTransposed { signed_offset, .. } => signed_offset,
            _ => None,
        }
    }
}

/// Operation at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Memory to registers.
    Load(Element),
    /// Registers to memory.
    Store(Element),
    /// Read, modify, write.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// `true` if the old value is returned.
        returns: bool,
    },
    /// Memory to registers, converted.
    LoadFormat(Formatted),
    /// Registers to memory, converted.
    StoreFormat(Formatted),
    /// Memory to those of 32 registers whose bits are set in M0, with contiguous words.
    LoadBlock,
    /// Registers to memory, for those of 32 registers whose bits are set in M0.
    StoreBlock,
    /// Memory to LDS, with the lanes side by side: a dword per lane, or three or four dwords in the
    /// room of four. If there is a data operand, it holds the LDS address.
    LoadToLds(Element),
    /// Memory to LDS, converted.
    LoadFormatToLds(Formatted),
    /// LDS to memory, with the layout of [`Transfer::LoadToLds`].
    StoreFromLds(Element),
}

/// Elements of a load whose lanes exchange the loaded data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// Elements of a byte.
    Bytes,
    /// Elements of a half word.
    Halves,
    /// Elements of four bits.
    Nibbles,
    /// Elements of six bits.
    Sixes,
}

impl Transposed {
    /// Decodes the name after `load_` on gfx12 and gfx1250 into the loaded type and the exchange.
    pub fn named(what: &str) -> Option<(&'static str, Transposed)> {
        Some(match what {
            "tr4_b64" => ("b64", Transposed::Nibbles),
            "tr6_b96" => ("b96", Transposed::Sixes),
            "tr_b64" | "tr8_b64" => ("b64", Transposed::Bytes),
            "tr_b128" | "tr16_b128" => ("b128", Transposed::Halves),
            _ => return None,
        })
    }

    /// Elements per lane, which is also the number of lanes that exchange elements with one number.
    pub fn count(self) -> usize {
        match self {
            Transposed::Bytes | Transposed::Halves => 8,
            Transposed::Nibbles | Transposed::Sixes => 16,
        }
    }

    /// Bits per element.
    pub fn bits(self) -> u8 {
        match self {
            Transposed::Bytes => 8,
            Transposed::Halves => 16,
            Transposed::Nibbles => 4,
            Transposed::Sixes => 6,
        }
    }

    /// Registers per lane.
    pub fn words(self) -> u8 {
        self.count() as u8 * self.bits() / 32
    }

    /// Lane that has loaded element number `element` of a lane's result; the element's number there
    /// is this lane's number in its group of eight lanes or, for elements of less than a byte,
    /// sixteen. Half words are exchanged among eight lanes (measured on gfx1250; Triton and MLIR,
    /// `amdgpu.global_transpose_load`, rely on it for gfx12); bytes among the sixteen lanes that
    /// load 16 rows of a matrix of eight bits, as the columns of WMMA require (measured on
    /// gfx1201). Elements of four and of six bits follow AMD's rocjitsu (`ds_transpose.h`).
    pub fn source(self, lane: usize, element: usize) -> usize {
        match self {
            Transposed::Halves => lane & !7 | element,
            Transposed::Nibbles => (element & 8) << 1 | (lane & 16) >> 1 | element & 7,
            Transposed::Sixes => (element & 12) << 1 | element & 3 | (lane & 16) >> 2,
            Transposed::Bytes => lane & !15 | (element & 4) << 1 | (lane & 8) >> 1 | element & 3,
        }
    }
}

/// Data of a formatted access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// Number of components in registers.
    pub components: u8,
    /// Layout in registers.
    pub part: Part,
    /// The instruction's format; if absent, the resource specifies it.
    pub format: Option<BufferFormat>,
    /// `true` if half words without a component become zero.
    pub in_whole_registers: bool,
}

/// Layout of components in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One per register.
    Words,
    /// Two per register.
    Halves,
    /// One in the high half.
    HighHalf,
}

/// Returns the vector memory operation of an instruction.
pub fn find(inst: &Inst) -> Option<VectorAccess> {
    let Modifiers { offen, idxen, lds, buffer_format, .. } = inst.modifiers;
    // The modifier that requests the old value has several names.
    let returns = inst.destinations().next().is_some();
    let (space, rest) = inst.operation.name().split_once('_')?;
    let typed = (space == "tbuffer").then(|| buffer_format.unwrap_or_default());
    let space = match space {
        "global" if inst.operation.is(Family::AddTid) => Space::GlobalByThread,
        // Dispatches have no clusters, so that each workgroup is a cluster of its own, and loads its own data.
        "global" | "cluster" => Space::Global,
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

/// Data type of a move between memory and LDS, if the name is one.
fn in_lds<'a>(what: &'a str, asynchronous: &str) -> Option<&'a str> {
    what.strip_prefix("lds_").or_else(|| what.strip_prefix(asynchronous))
}

/// Decodes `xyz`, `d16_xy` and `d16_hi_x`.
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
    /// Transfer with halves converted for targets whose loads write whole registers.
    pub fn in_whole_registers(self) -> Transfer {
        match self {
            Transfer::Load(element) => Transfer::Load(element.in_whole_registers()),
            Transfer::LoadFormat(formatted) => {
                Transfer::LoadFormat(Formatted { in_whole_registers: true, ..formatted })
            }
            other => other,
        }
    }

    /// Bytes accessed per lane.
    pub fn bytes(self) -> usize {
        match self {
            Transfer::Load(element)
            | Transfer::Store(element)
            | Transfer::LoadToLds(element)
            | Transfer::StoreFromLds(element) => element.bytes(),
            Transfer::Atomic { atomic, .. } => atomic.bytes.into(),
            // Not scalable.
            _ => 1,
        }
    }

    /// Returns `true` if data registers are read.
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
