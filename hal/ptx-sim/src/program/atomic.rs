//! Atomic operations (PTX ISA, "atom", "red").

use super::{Destination, Source};
use crate::Gap;
use crate::compute::{Update, atomic_arithmetic};
use flipwave_ptx::{Form, ScalarType, Space};
use std::sync::Arc;

/// A value that an atomic operation changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtomicValue {
    /// Offset from the address of the access in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// The operands.
    pub sources: Vec<Source>,
    /// Place of the old value.
    pub destination: Destination,
}

/// An atomic operation.
#[derive(Clone)]
pub(crate) struct AtomicOperation {
    update: Update,
    operands: usize,
}

impl AtomicOperation {
    /// The operation of a form.
    ///
    /// # Errors
    /// A gap for forms that are not implemented.
    pub fn of(form: &Form) -> Result<AtomicOperation, Gap> {
        let kind = form.source().ok_or_else(Gap::form)?;
        let names = ["exch", "cas", "and", "or", "xor", "inc", "dec", "add", "min", "max"];
        let name = names.iter().find(|name| form.has(name)).ok_or_else(Gap::form)?;
        let operands = if *name == "cas" { 2 } else { 1 };
        let update: Update = match *name {
            "exch" => Arc::new(|_, [b, _]| b),
            "cas" => Arc::new(|old, [b, c]| if old == b { c } else { old }),
            "and" => Arc::new(|old, [b, _]| old & b),
            "or" => Arc::new(|old, [b, _]| old | b),
            "xor" => Arc::new(|old, [b, _]| old ^ b),
            "inc" => Arc::new(|old, [b, _]| if old >= b { 0 } else { old + 1 }),
            "dec" => Arc::new(|old, [b, _]| if old == 0 || old > b { b } else { old - 1 }),
            name => {
                // Sums of single precision in global memory flush subnormal numbers; in shared memory,
                // they do not.
                let flushes =
                    name == "add" && kind == ScalarType::F32 && form.space != Some(Space::Shared);
                atomic_arithmetic(name, kind, flushes)?
            }
        };
        Ok(AtomicOperation { update, operands })
    }

    /// Number of operands.
    pub fn operands(&self) -> usize {
        self.operands
    }

    /// The new value.
    pub fn apply(&self, old: u64, operands: [u64; 2]) -> u64 {
        (self.update)(old, operands)
    }
}
