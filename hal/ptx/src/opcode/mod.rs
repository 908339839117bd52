//! Facts about opcodes.

mod table;

pub use table::OPCODES;

/// Facts about an opcode: one row of the [table](OPCODES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeFacts {
    /// The opcode, if necessary with its first modifiers: `add`, `wmma.store`.
    pub name: &'static str,
    /// The class.
    pub class: Class,
    /// Number of leading operands that the instruction writes.
    pub destinations: u8,
}

/// Classes of opcodes. Data types follow from modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Arithmetic, on integers or floating-point numbers.
    Arithmetic,
    /// Operations on bits.
    Logic,
    /// Moves, selections and address conversions.
    Move,
    /// Conversions.
    Convert,
    /// Comparisons whose results are predicates.
    Compare,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomic operations that return the old value.
    Atomic,
    /// Atomic operations without result.
    Reduction,
    /// Copies between state spaces, some of them asynchronous.
    Copy,
    /// Hints about caches.
    Cache,
    /// Texture and surface accesses.
    Texture,
    /// Branches and returns.
    Control,
    /// Calls.
    Call,
    /// Barriers and fences.
    Synchronization,
    /// Exchange between lanes.
    Lanes,
    /// Matrix multiplication.
    Matrix,
    /// Allocation in the stack of a lane.
    Stack,
    /// Events and settings without effect on registers.
    Event,
}

impl OpcodeFacts {
    /// The facts of an instruction's name: the row with the longest matching name; `None` for an unknown
    /// opcode.
    pub fn of(name: &str) -> Option<&'static OpcodeFacts> {
        let mut prefix = name;
        loop {
            if let Ok(found) = OPCODES.binary_search_by(|row| row.name.cmp(prefix)) {
                return Some(&OPCODES[found]);
            }
            (prefix, _) = prefix.rsplit_once('.')?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found_by_their_longest_name() {
        assert!(OPCODES.windows(2).all(|rows| rows[0].name < rows[1].name));
        let name = |name: &str| OpcodeFacts::of(name).map(|row| row.name);
        assert_eq!(name("wmma.store.d.sync.aligned.row.m16n16k16.f32"), Some("wmma.store"));
        assert_eq!(name("wmma.load.a.sync"), Some("wmma"));
        assert_eq!(name("add"), Some("add"));
        assert_eq!(name("addd.s32"), None);
        assert_eq!(name(""), None);
    }
}
