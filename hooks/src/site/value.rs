//! What the inputs of a hook are made from.

use super::dialect::example;
use super::homes::Home;
use super::weave::{Call, Refusal, Site};
use crate::hook::InputValue;
use flipwave_isa::{Pc, RegisterRange, RegisterSet};

/// What an input of a body is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Registers, the program's or a home.
    Registers(RegisterRange),
    /// A number.
    Constant(u64),
    /// A home that is not registers in a row.
    Home(Home),
    /// An address behind one that a register pair holds.
    Beyond { base: RegisterRange, distance: u32 },
    /// An address that is computed from the PC.
    Address(Pc),
}

impl Value {
    /// Registers that hold it.
    pub fn registers(self) -> RegisterSet {
        match self {
            Value::Registers(range) => [range].into_iter().collect(),
            Value::Home(home) => home.registers(),
            Value::Constant(_) | Value::Beyond { .. } | Value::Address(_) => RegisterSet::EMPTY,
        }
    }

    /// Whether SCC is lost where it is made.
    pub fn loses_scc(self) -> bool {
        matches!(self, Value::Beyond { .. } | Value::Address(_))
    }

    /// A word of its number; zero where it has none.
    pub fn number(self, word: u8) -> u32 {
        match self {
            Value::Constant(number) => number.checked_shr(32 * u32::from(word)).unwrap_or(0) as u32,
            Value::Beyond { distance, .. } => distance,
            Value::Registers(_) | Value::Home(_) | Value::Address(_) => 0,
        }
    }

    /// The same with examples for its numbers, see [`dialect::example`].
    pub fn example(self) -> Value {
        match self {
            Value::Constant(_) => {
                let [low, high] = [0, 1].map(|word| u64::from(example(self.number(word))));
                Value::Constant(high << 32 | low)
            }
            Value::Beyond { base, distance } => Value::Beyond { base, distance: example(distance) },
            other => other,
        }
    }
}

/// Where an input's value is.
pub fn resolve(value: &InputValue, site: &Site<'_>, call: &Call<'_>) -> Result<Value, Refusal> {
    Ok(match value {
        InputValue::Registers(range) => Value::Registers(*range),
        InputValue::Constant(number) => Value::Constant(*number),
        InputValue::Entry(entry) => match site.homes.entry.get(entry) {
            Some(home) => home.range().map_or(Value::Home(*home), Value::Registers),
            None => return Err(Refusal::Registers("register for the whole kernel")),
        },
        InputValue::Data { symbol, offset } => {
            let symbol = call.symbols.symbols.get(symbol).ok_or_else(|| {
                Refusal::Value(format!("the hooks' source has no variable `{symbol}`"))
            })?;
            let wanted = call.data.0.wrapping_add(symbol.offset).wrapping_add(*offset);
            match site.homes.data {
                Some((base, at)) if at.0 == wanted => Value::Registers(base),
                Some((base, at)) if wanted.wrapping_sub(at.0) <= u64::from(u32::MAX) => {
                    Value::Beyond { base, distance: wanted.wrapping_sub(at.0) as u32 }
                }
                _ => Value::Address(Pc(wanted)),
            }
        }
    })
}
