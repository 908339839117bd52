//! Sources of the inputs of a hook.

use super::dialect::example;
use super::point::{CallRefusal, InsertionPoint, SiteCall};
use super::reserved::ReservedValue;
use crate::hook::InputValue;
use flipwave_isa::{Pc, RegisterRange, RegisterSet};

/// Source of an input of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSource {
    /// Registers of the program, or reserved registers.
    Registers(RegisterRange),
    /// A constant.
    Constant(u64),
    /// A reserved value that is not in consecutive registers.
    Reserved(ReservedValue),
    /// An address at a distance from the address in a register pair.
    Offset { base: RegisterRange, distance: u32 },
    /// An address, computed from the PC.
    Address(Pc),
}

impl InputSource {
    /// The registers that hold the value.
    pub fn registers(self) -> RegisterSet {
        match self {
            InputSource::Registers(range) => [range].into_iter().collect(),
            InputSource::Reserved(value) => value.registers(),
            InputSource::Constant(_) | InputSource::Offset { .. } | InputSource::Address(_) => {
                RegisterSet::EMPTY
            }
        }
    }

    /// Returns `true` if computing the value clobbers SCC.
    pub fn clobbers_scc(self) -> bool {
        matches!(self, InputSource::Offset { .. } | InputSource::Address(_))
    }

    /// A word of the constant; zero if there is none.
    pub fn number(self, word: u8) -> u32 {
        match self {
            InputSource::Constant(number) => {
                number.checked_shr(32 * u32::from(word)).unwrap_or(0) as u32
            }
            InputSource::Offset { distance, .. } => distance,
            InputSource::Registers(_) | InputSource::Reserved(_) | InputSource::Address(_) => 0,
        }
    }

    /// The source with examples instead of constants, see [`example`].
    pub fn example(self) -> InputSource {
        match self {
            InputSource::Constant(_) => {
                let [low, high] = [0, 1].map(|word| u64::from(example(self.number(word))));
                InputSource::Constant(high << 32 | low)
            }
            InputSource::Offset { base, distance } => {
                InputSource::Offset { base, distance: example(distance) }
            }
            source => source,
        }
    }
}

/// Finds the source of an input's value.
///
/// # Errors
/// [`CallRefusal`] if the value is not available at the site.
pub fn resolve(
    value: &InputValue,
    site: &InsertionPoint<'_>,
    call: &SiteCall<'_>,
) -> Result<InputSource, CallRefusal> {
    Ok(match value {
        InputValue::Registers(range) => InputSource::Registers(*range),
        InputValue::Constant(number) => InputSource::Constant(*number),
        InputValue::Entry(entry) => match site.reserved.entry.get(entry) {
            Some(value) => {
                value.range().map_or(InputSource::Reserved(*value), InputSource::Registers)
            }
            None => return Err(CallRefusal::Registers("register for the whole kernel")),
        },
        InputValue::Data { symbol, offset } => {
            let symbol = call.symbols.symbols.get(symbol).ok_or_else(|| {
                CallRefusal::Value(format!("the hooks' source has no variable `{symbol}`"))
            })?;
            let wanted = call.data.0.wrapping_add(symbol.offset).wrapping_add(*offset);
            match site.reserved.data {
                Some((base, at)) if at.0 == wanted => InputSource::Registers(base),
                Some((base, at)) if wanted.wrapping_sub(at.0) <= u64::from(u32::MAX) => {
                    InputSource::Offset { base, distance: wanted.wrapping_sub(at.0) as u32 }
                }
                _ => InputSource::Address(Pc(wanted)),
            }
        }
    })
}
