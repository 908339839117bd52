//! What the inputs of a hook are made from.

use super::dialect::example;
use super::homes::Home;
use super::point::{CallRefusal, InsertionPoint, SiteCall};
use crate::hook::InputValue;
use flipwave_isa::{Pc, RegisterRange, RegisterSet};

/// What an input of a body is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSource {
    /// Registers, the program's or a home.
    Registers(RegisterRange),
    /// A number.
    Constant(u64),
    /// A home that is not registers in a row.
    Home(Home),
    /// An address after one that a register pair holds.
    Beyond { base: RegisterRange, distance: u32 },
    /// An address that is computed from the PC.
    Address(Pc),
}

impl InputSource {
    /// Registers that hold it.
    pub fn registers(self) -> RegisterSet {
        match self {
            InputSource::Registers(range) => [range].into_iter().collect(),
            InputSource::Home(home) => home.registers(),
            InputSource::Constant(_) | InputSource::Beyond { .. } | InputSource::Address(_) => {
                RegisterSet::EMPTY
            }
        }
    }

    /// Whether SCC is lost where it is made.
    pub fn loses_scc(self) -> bool {
        matches!(self, InputSource::Beyond { .. } | InputSource::Address(_))
    }

    /// A word of its number; zero where it has none.
    pub fn number(self, word: u8) -> u32 {
        match self {
            InputSource::Constant(number) => {
                number.checked_shr(32 * u32::from(word)).unwrap_or(0) as u32
            }
            InputSource::Beyond { distance, .. } => distance,
            InputSource::Registers(_) | InputSource::Home(_) | InputSource::Address(_) => 0,
        }
    }

    /// The same with examples for its numbers, see [`dialect::example`].
    pub fn example(self) -> InputSource {
        match self {
            InputSource::Constant(_) => {
                let [low, high] = [0, 1].map(|word| u64::from(example(self.number(word))));
                InputSource::Constant(high << 32 | low)
            }
            InputSource::Beyond { base, distance } => {
                InputSource::Beyond { base, distance: example(distance) }
            }
            other => other,
        }
    }
}

/// Where an input's value is.
pub fn resolve(
    value: &InputValue,
    site: &InsertionPoint<'_>,
    call: &SiteCall<'_>,
) -> Result<InputSource, CallRefusal> {
    Ok(match value {
        InputValue::Registers(range) => InputSource::Registers(*range),
        InputValue::Constant(number) => InputSource::Constant(*number),
        InputValue::Entry(entry) => match site.homes.entry.get(entry) {
            Some(home) => home.range().map_or(InputSource::Home(*home), InputSource::Registers),
            None => return Err(CallRefusal::Registers("register for the whole kernel")),
        },
        InputValue::Data { symbol, offset } => {
            let symbol = call.symbols.symbols.get(symbol).ok_or_else(|| {
                CallRefusal::Value(format!("the hooks' source has no variable `{symbol}`"))
            })?;
            let wanted = call.data.0.wrapping_add(symbol.offset).wrapping_add(*offset);
            match site.homes.data {
                Some((base, at)) if at.0 == wanted => InputSource::Registers(base),
                Some((base, at)) if wanted.wrapping_sub(at.0) <= u64::from(u32::MAX) => {
                    InputSource::Beyond { base, distance: wanted.wrapping_sub(at.0) as u32 }
                }
                _ => InputSource::Address(Pc(wanted)),
            }
        }
    })
}
