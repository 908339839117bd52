//! Parts: the unit of a move, at the low end of a register's word; and the bits of the register
//! that it occupies.

use crate::instruction::{Element, Half};
use crate::wave::{LANES, Row};

/// The low bits of a word, as memory stores them; every bit pattern is valid.
pub trait Part: Copy {
    /// Truncates a word.
    fn of(word: u32) -> Self;

    /// Zero-extends to a word.
    fn word(self) -> u32;
}

macro_rules! parts {
    ($($part:ty)*) => {$(
        impl Part for $part {
            #[inline(always)]
            fn of(word: u32) -> $part {
                (word as $part).to_le()
            }

            #[inline(always)]
            fn word(self) -> u32 {
                <$part>::from_le(self).into()
            }
        }
    )*};
}

parts!(u8 u16 u32);

/// Extends the loaded values, which have zeros above the part, and inserts them at the element's
/// position in the active lanes of a register: [`Element::extend`] for all lanes.
#[inline(always)]
pub fn extend(element: Element, row: &mut Row, loaded: &Row, active: &Row) {
    let (unused, used, kept, up) = match element {
        Element::Words(_) => (0, !0, 0, 0),
        Element::Part { bytes, signed, half } => {
            let (used, kept, up) = match half {
                Half::Whole => (!0, 0, 0),
                Half::Low => (0xffff, 0xffff_0000, 0),
                Half::High => (0xffff, 0xffff, 16),
                Half::LowAlone => (0xffff, 0, 0),
                Half::HighAlone => (0xffff, 0, 16),
            };
            (if signed { 32 - 8 * u32::from(bytes) } else { 0 }, used, kept, up)
        }
    };
    for lane in 0..LANES {
        let value = ((loaded.0[lane] << unused) as i32 >> unused) as u32 & used;
        let changed = active.0[lane] & !kept;
        row.0[lane] = (value << up) & changed | row.0[lane] & !changed;
    }
}

/// Moves the bits to store to the low end of the words: [`Element::part`] for all lanes.
#[inline(always)]
pub fn parts(element: Element, row: &Row) -> Row {
    let down = match element {
        Element::Part { half: Half::High | Half::HighAlone, .. } => 16,
        _ => 0,
    };
    let mut parts = Row::ZERO;
    for lane in 0..LANES {
        parts.0[lane] = row.0[lane] >> down;
    }
    parts
}
