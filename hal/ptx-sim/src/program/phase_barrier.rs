//! Barriers in shared memory (PTX ISA, "mbarrier").

use super::Op;
use super::memory::{MemoryAccess, access};
use super::operand::{Addresses, Destination, Source, destination, source};
use crate::Gap;
use flipwave_ptx::{Argument, Code, Inst, ScalarType};

/// An operation on a barrier in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseBarrier {
    /// The barrier.
    pub access: MemoryAccess,
    /// The operation.
    pub kind: PhaseKind,
    /// Number of arrivals, or bytes of transactions, or the state or parity to test.
    pub operand: Source,
    /// Place of the state or of the result of a test.
    pub destination: Destination,
}

/// Operations on barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseKind {
    /// Begins the first phase.
    Initialize,
    /// Ends the use of the memory.
    Invalidate,
    /// Arrives.
    Arrive,
    /// Arrives, and takes no part in later phases.
    ArriveAndDrop,
    /// Expects bytes of transactions, then arrives.
    ArriveAndExpect,
    /// Expects bytes of transactions.
    Expect,
    /// Completes bytes of transactions.
    Complete,
    /// Tests whether the phase of a state has ended.
    TestState,
    /// Tests whether the phase with a parity has ended.
    TestParity,
}

/// A barrier's state: phase, expected and pending arrivals, and bytes of transactions. The manual leaves the
/// layout in memory open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// Number of the phase, whose lowest bit counts.
    pub number: u64,
    /// Arrivals that a phase needs.
    pub expected: u64,
    /// Arrivals that the phase still needs.
    pub pending: u64,
    /// Bytes that transactions still have to complete, below zero if they are ahead.
    pub transactions: i64,
}

/// Bits of a count.
const COUNT: u32 = 20;

impl Phase {
    /// Reads a barrier.
    pub fn of(word: u64) -> Phase {
        let count = |shift: u32| word >> shift & ((1 << COUNT) - 1);
        Phase {
            number: word & 1,
            expected: count(1),
            pending: count(1 + COUNT),
            transactions: word as i64 >> (1 + 2 * COUNT),
        }
    }

    /// The barrier in memory.
    pub fn word(self) -> u64 {
        let count = |value: u64, shift: u32| (value & ((1 << COUNT) - 1)) << shift;
        self.number & 1
            | count(self.expected, 1)
            | count(self.pending, 1 + COUNT)
            | (self.transactions as u64) << (1 + 2 * COUNT)
    }

    /// The state after an operation, and the result of the operation.
    pub fn apply(self, kind: PhaseKind, operand: u64) -> (Phase, u64) {
        let mut new = self;
        let operand_bytes = i64::from(operand as u32 as i32);
        let mut result = self.word();
        match kind {
            PhaseKind::Initialize => {
                new = Phase { number: 0, expected: operand, pending: operand, transactions: 0 };
            }
            PhaseKind::Invalidate => new = Phase::of(0),
            PhaseKind::Arrive => new.pending = new.pending.saturating_sub(operand),
            PhaseKind::ArriveAndDrop => {
                new.pending = new.pending.saturating_sub(operand);
                new.expected = new.expected.saturating_sub(operand);
            }
            PhaseKind::ArriveAndExpect => {
                new.transactions += operand_bytes;
                new.pending = new.pending.saturating_sub(1);
            }
            PhaseKind::Expect => new.transactions += operand_bytes,
            PhaseKind::Complete => new.transactions -= operand_bytes,
            PhaseKind::TestState => result = u64::from(Phase::of(operand).number != self.number),
            PhaseKind::TestParity => result = u64::from(operand & 1 != self.number),
        }
        let may_end = !matches!(
            kind,
            PhaseKind::Initialize
                | PhaseKind::Invalidate
                | PhaseKind::TestState
                | PhaseKind::TestParity
        );
        if may_end && new.pending == 0 && new.transactions == 0 {
            new = Phase { number: new.number ^ 1, pending: new.expected, ..new };
        }
        (new, result)
    }
}

/// Operations of `mbarrier` on barriers in shared memory.
pub(super) fn phase_barrier(
    inst: &Inst,
    code: &Code,
    addresses: &dyn Addresses,
) -> Result<Op, Gap> {
    let form = &inst.form;
    let operation = form.modifiers().next().unwrap_or_default();
    let is_remote = form.has("shared::cluster") || form.has("noComplete");
    if is_remote || form.has("cp_async_bulk") || form.has("pending_count") {
        return Err(Gap::form());
    }
    let expects = form.has("expect_tx");
    let has_result = matches!(operation, "arrive" | "arrive_drop" | "test_wait" | "try_wait");
    let (result, rest) = match &inst.operands[..] {
        [first, rest @ ..] if has_result && !matches!(first, Argument::Memory(_)) => {
            (destination(first)?, rest)
        }
        rest => (Destination::Sink, rest),
    };
    let [memory, operands @ ..] = rest else { return Err(Gap::form()) };
    let (kind, operand_type) = match operation {
        "init" => (PhaseKind::Initialize, ScalarType::U32),
        "inval" => (PhaseKind::Invalidate, ScalarType::U32),
        "arrive" if expects => (PhaseKind::ArriveAndExpect, ScalarType::U32),
        "arrive" => (PhaseKind::Arrive, ScalarType::U32),
        "arrive_drop" if !expects => (PhaseKind::ArriveAndDrop, ScalarType::U32),
        "expect_tx" => (PhaseKind::Expect, ScalarType::U32),
        "complete_tx" => (PhaseKind::Complete, ScalarType::U32),
        "test_wait" | "try_wait" if form.has("parity") => (PhaseKind::TestParity, ScalarType::U32),
        "test_wait" | "try_wait" => (PhaseKind::TestState, ScalarType::B64),
        _ => return Err(Gap::form()),
    };
    let operand = match operands.first() {
        Some(operand) => source(operand, operand_type, addresses)?,
        None if matches!(kind, PhaseKind::Arrive | PhaseKind::ArriveAndDrop) => Source::Constant(1),
        None if kind == PhaseKind::Invalidate => Source::Constant(0),
        None => return Err(Gap::form()),
    };
    let access = access(inst, memory, form.space, 8, code, addresses)?;
    Ok(Op::PhaseBarrier(PhaseBarrier { access, kind, operand, destination: result }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_end_after_all_arrivals_and_transactions() {
        let (mut phase, _) = Phase::of(0).apply(PhaseKind::Initialize, 2);
        let state = phase.word();
        for (kind, operand) in [(PhaseKind::ArriveAndExpect, 64), (PhaseKind::Complete, 100)] {
            (phase, _) = phase.apply(kind, operand);
            assert_eq!(Phase::of(phase.word()), phase);
        }
        (phase, _) = phase.apply(PhaseKind::Arrive, 1);
        assert_eq!(phase.apply(PhaseKind::TestState, state).1, 0);
        (phase, _) = phase.apply(PhaseKind::Expect, 36);
        assert_eq!(phase.apply(PhaseKind::TestState, state).1, 1);
        assert_eq!(phase.apply(PhaseKind::TestParity, 0).1, 1);
        assert_eq!(phase, Phase { number: 1, expected: 2, pending: 2, transactions: 0 });
    }
}
