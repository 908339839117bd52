//! Products of warpgroups, whose matrices are in shared memory (PTX ISA, "wgmma.mma_async").

use super::operand::{Addresses, Destination, Source, destination, elements, source};
use crate::Gap;
use crate::compute::exactness;
use flipwave_machine::Exactness;
use flipwave_ptx::{Argument, Inst, ScalarType, WarpgroupForm};

/// A product D = A * B + D.
pub(crate) struct WarpgroupProduct {
    /// Dimensions and types.
    pub form: WarpgroupForm,
    /// A.
    pub left: WarpgroupLeft,
    /// B.
    pub right: SharedMatrix,
    /// The predicate that decides whether D is added.
    pub accumulates: Source,
    /// Registers of D.
    pub destinations: Vec<Destination>,
    /// Exactness of the results.
    pub exactness: Exactness,
}

/// The matrix A of a product.
pub(crate) enum WarpgroupLeft {
    /// Registers of the wave hold its 16 rows.
    Registers {
        /// The registers.
        sources: Vec<Source>,
        /// `true` to change the signs of the elements.
        is_negated: bool,
    },
    /// Shared memory holds the 64 rows of the warpgroup.
    Shared(SharedMatrix),
}

/// A matrix in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedMatrix {
    /// The descriptor.
    pub descriptor: Source,
    /// `true` if rows of A or columns of B are consecutive in memory, instead of the factors of a sum.
    pub is_transposed: bool,
    /// `true` to change the signs of the elements.
    pub is_negated: bool,
}

/// A matrix descriptor (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Address in shared memory.
    start: u64,
    /// Leading dimension byte offset.
    leading: u64,
    /// Stride dimension byte offset.
    stride: u64,
    /// Phase of the swizzling pattern at its start, in units of 128 bytes.
    phase: u64,
    /// Bytes within which 16-byte units are exchanged; 16 for none.
    swizzle: u64,
}

impl Descriptor {
    /// The descriptor with these bits.
    pub fn of(bits: u64) -> Descriptor {
        let bytes = |shift: u32| (bits >> shift & 0x3fff) << 4;
        let swizzle = match bits >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        let (start, leading, stride) = (bytes(0), bytes(16), bytes(32));
        Descriptor { start, leading, stride, phase: bits >> 49 & 7, swizzle }
    }

    /// Address of element `inner`, a factor of the sum, of row or column `outer`. Elements have `bytes` bytes.
    pub fn address(&self, outer: u64, inner: u64, bytes: u64, is_transposed: bool) -> u64 {
        let Descriptor { leading, stride, swizzle, .. } = *self;
        let offset = match (is_transposed, swizzle) {
            (false, 16) => {
                let inner = inner * bytes;
                outer % 8 * 16 + outer / 8 * stride + inner / 16 * leading + inner % 16
            }
            (false, _) => outer % 8 * swizzle + outer / 8 * stride + inner * bytes,
            (true, 16) => {
                let outer = outer * bytes;
                outer % 16 + outer / 16 * stride + inner % 8 * 16 + inner / 8 * leading
            }
            (true, _) => {
                let outer = outer * bytes;
                outer % swizzle
                    + outer / swizzle * leading
                    + inner % 8 * swizzle
                    + inner / 8 * stride
            }
        };
        let linear = self.start + offset;
        let pattern = (linear >> 7).wrapping_sub(self.phase) & (swizzle / 16 - 1);
        linear ^ pattern << 4
    }
}

/// Prepares a product.
pub(super) fn product(inst: &Inst, addresses: &dyn Addresses) -> Result<WarpgroupProduct, Gap> {
    let form = WarpgroupForm::of(&inst.form).ok_or_else(Gap::form)?;
    let [d, a, b, accumulates, rest @ ..] = &inst.operands[..] else { return Err(Gap::form()) };
    let constant = |operand: &Argument| match source(operand, ScalarType::S32, addresses)? {
        Source::Constant(value) => Ok(value as u32 as i32),
        _ => Err(Gap::because("a constant was expected")),
    };
    let constants = rest.iter().map(constant).collect::<Result<Vec<i32>, _>>()?;
    let a_is_shared = !matches!(a, Argument::Vector(_));
    let [_, kind, ..] = form.part.types;
    let (signs, transposed) = match &constants[..] {
        [] if kind.is_integer() => ([1, 1], [0, 0]),
        [a, b] if !kind.is_integer() && kind.bits() != 16 => ([*a, *b], [0, 0]),
        [a, b, transposed] if kind.bits() == 16 && !a_is_shared => ([*a, *b], [0, *transposed]),
        [a, b, left, right] if kind.bits() == 16 && a_is_shared => ([*a, *b], [*left, *right]),
        _ => return Err(Gap::because("other constants were expected")),
    };
    if signs.iter().any(|sign| sign.abs() != 1) || transposed.iter().any(|bit| *bit & !1 != 0) {
        return Err(Gap::because("other constants were expected"));
    }
    let shared = |operand: &Argument, place: usize| {
        Ok(SharedMatrix {
            descriptor: source(operand, ScalarType::B64, addresses)?,
            is_transposed: transposed[place] == 1,
            is_negated: signs[place] == -1,
        })
    };
    let left = if a_is_shared {
        WarpgroupLeft::Shared(shared(a, 0)?)
    } else {
        let sources = elements(a).into_iter().map(|part| source(&part, ScalarType::B32, addresses));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        WarpgroupLeft::Registers { sources, is_negated: signs[0] == -1 }
    };
    let destinations = elements(d).iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let [count, left_count, ..] = form.part.registers();
    let has_left = match &left {
        WarpgroupLeft::Registers { sources, .. } => sources.len() == left_count,
        WarpgroupLeft::Shared(_) => true,
    };
    if !has_left || destinations.len() != count * form.columns / 8 {
        return Err(Gap::because("another number of registers was expected"));
    }
    Ok(WarpgroupProduct {
        form,
        left,
        right: shared(b, 1)?,
        accumulates: source(accumulates, ScalarType::Pred, addresses)?,
        destinations,
        exactness: exactness(&form.part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element has an address of its own, and 16-byte units stay whole.
    #[test]
    fn elements_fill_the_matrix() {
        for (mode, swizzle) in [(0u64, 16u64), (1, 128), (2, 64), (3, 32)] {
            for is_transposed in [false, true] {
                // Rows follow each other, then blocks of eight.
                let (leading, stride) = match (is_transposed, mode) {
                    (false, 0) => (1024, 128),
                    (false, _) => (0, 8 * swizzle),
                    (true, 0) => (1024, 128),
                    (true, _) => (16 * swizzle, 8 * swizzle),
                };
                let bits = mode << 62 | (stride >> 4) << 32 | (leading >> 4) << 16 | 64;
                let descriptor = Descriptor::of(bits);
                let mut all: Vec<u64> = (0..64)
                    .flat_map(|outer| (0..16).map(move |inner| (outer, inner)))
                    .map(|(outer, inner)| descriptor.address(outer, inner, 2, is_transposed))
                    .collect();
                let units = all.iter().map(|address| address % 16 / 2).sum::<u64>();
                assert_eq!(units, 1024 / 8 * 28);
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), 1024, "{mode} {is_transposed}");
                assert_eq!(all[0], 1024);
            }
        }
    }

    /// The manual's figure of 128-byte swizzling: unit `u` of row `r` is at unit `u ^ r`.
    #[test]
    fn units_are_exchanged_within_rows() {
        let descriptor = Descriptor::of(1 << 62 | 64 << 32);
        for row in 0..8 {
            assert_eq!(descriptor.address(row, 8, 2, false), row * 128 + (1 ^ row) * 16);
        }
    }
}
