//! Operations of the local data share.

use super::element::Element;
use super::vector_memory::Transposed;
use crate::memory::atomic;
use crate::memory::atomic::Atomic;

/// An LDS operation. Sources: 0 the address, 1 and 2 the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LdsAccess {
    /// Memory to registers.
    Read(Element),
    /// Memory to registers, with a subsequent exchange of the elements between lanes (gfx1250).
    ReadExchanged(Transposed),
    /// Memory to registers, with elements transposed among 16 lanes.
    ReadTransposed {
        /// Bits per element.
        bits: u8,
        /// Words that each lane reads.
        words: u8,
    },
    /// Registers to memory.
    Write(Element),
    /// Two elements per lane, at offsets in units of `scale` bytes.
    Read2 {
        /// Words per element.
        words: u8,
        /// Unit of the offsets, in bytes.
        scale: u32,
    },
    /// Two elements per lane.
    Write2 {
        /// Words per element.
        words: u8,
        /// Unit of the offsets, in bytes.
        scale: u32,
    },
    /// Read, modify, write.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// `true` if the old value is returned.
        returns: bool,
    },
    /// Two exchanges, as [`LdsAccess::Read2`] and [`LdsAccess::Write2`] address them.
    Exchange2 {
        /// The exchange.
        atomic: Atomic,
        /// Unit of the offsets, in bytes.
        scale: u32,
    },
    /// Two words, each replaced by the data with the highest bit cleared, if that bit is set;
    /// returns the old ones.
    ExchangeIf,
    /// Reads a word per lane, contiguously, at the address in M0.
    ReadByThread,
    /// Writes a word per lane, contiguously, at the address in M0.
    WriteByThread,
    /// Adds the number of active lanes to a counter (or subtracts it), and returns the old value to
    /// all of them.
    Count {
        /// `true` if the number is subtracted.
        subtract: bool,
    },
    /// Each lane sends its data to another.
    Permute,
    /// Each lane fetches another lane's data.
    BackwardPermute,
    /// Each lane fetches another lane's data, including that of inactive lanes.
    BackwardPermuteAny,
    /// Lane exchange by a fixed pattern.
    Swizzle,
}

impl LdsAccess {
    /// Returns `true` if the operation exchanges words between lanes without accessing LDS.
    pub fn is_exchange(self) -> bool {
        matches!(
            self,
            LdsAccess::Permute
                | LdsAccess::BackwardPermute
                | LdsAccess::BackwardPermuteAny
                | LdsAccess::Swizzle
        )
    }
}

/// Returns the LDS operation with a canonical name.
pub fn find(name: &str) -> Option<LdsAccess> {
    let name = name.strip_prefix("ds_")?;
    let access = match name {
        "read2_b32" => LdsAccess::Read2 { words: 1, scale: 4 },
        "read2_b64" => LdsAccess::Read2 { words: 2, scale: 8 },
        "read2st64_b32" => LdsAccess::Read2 { words: 1, scale: 4 * 64 },
        "read2st64_b64" => LdsAccess::Read2 { words: 2, scale: 8 * 64 },
        "write2_b32" => LdsAccess::Write2 { words: 1, scale: 4 },
        "write2_b64" => LdsAccess::Write2 { words: 2, scale: 8 },
        "write2st64_b32" => LdsAccess::Write2 { words: 1, scale: 4 * 64 },
        "write2st64_b64" => LdsAccess::Write2 { words: 2, scale: 8 * 64 },
        "wrxchg2_rtn_b32" => LdsAccess::Exchange2 { atomic: Atomic::EXCHANGE_B32, scale: 4 },
        "wrxchg2_rtn_b64" => LdsAccess::Exchange2 { atomic: Atomic::EXCHANGE_B64, scale: 8 },
        "wrxchg2st64_rtn_b32" => {
            LdsAccess::Exchange2 { atomic: Atomic::EXCHANGE_B32, scale: 4 * 64 }
        }
        "wrxchg2st64_rtn_b64" => {
            LdsAccess::Exchange2 { atomic: Atomic::EXCHANGE_B64, scale: 8 * 64 }
        }
        "read_b64_tr_b16" => LdsAccess::ReadTransposed { bits: 16, words: 2 },
        "read_b64_tr_b8" => LdsAccess::ReadTransposed { bits: 8, words: 2 },
        "read_b96_tr_b6" => LdsAccess::ReadTransposed { bits: 6, words: 3 },
        "read_b64_tr_b4" => LdsAccess::ReadTransposed { bits: 4, words: 2 },
        "condxchg32_rtn_b64" => LdsAccess::ExchangeIf,
        "read_addtid_b32" => LdsAccess::ReadByThread,
        "write_addtid_b32" => LdsAccess::WriteByThread,
        "append" => LdsAccess::Count { subtract: false },
        "consume" => LdsAccess::Count { subtract: true },
        "permute_b32" => LdsAccess::Permute,
        "bpermute_b32" => LdsAccess::BackwardPermute,
        "bpermute_fi_b32" => LdsAccess::BackwardPermuteAny,
        "swizzle_b32" => LdsAccess::Swizzle,
        _ => {
            let exchanged = name.strip_prefix("load_").and_then(Transposed::named);
            if let Some((_, elements)) = exchanged {
                LdsAccess::ReadExchanged(elements)
            } else if let Some(what) = name.strip_prefix("read_") {
                LdsAccess::Read(Element::named(what)?)
            } else if let Some(what) = name.strip_prefix("write_") {
                LdsAccess::Write(Element::named(what)?)
            } else if let Some((base, kind)) = name.split_once("_rtn_") {
                let atomic = atomic::find_lds(&format!("{base}_{kind}"))?;
                LdsAccess::Atomic { atomic, returns: true }
            } else {
                LdsAccess::Atomic { atomic: atomic::find_lds(name)?, returns: false }
            }
        }
    };
    Some(access)
}
