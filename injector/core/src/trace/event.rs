//! Trace records: steps of the faulty run, and events.

use super::Spread;
use flipwave_arch::{Lane, OperationName, Pc, RegisterId, SourceLine};
use flipwave_device::{Address, WaveId};

/// One executed instruction of the faulty run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Wave instructions executed by the faulty run since the fault, over all waves; 0 for the
    /// instruction struck first.
    pub time: u64,
    /// Index of the dispatch in the workload.
    pub dispatch: u32,
    /// The wave that executed the instruction.
    pub wave: WaveId,
    /// Address of the instruction.
    pub pc: Pc,
    /// OperationName of the instruction.
    pub operation: OperationName,
    /// Assembly text.
    pub text: String,
    /// Source line, if the code has line information.
    pub line: Option<SourceLine>,
}

/// An event during the propagation of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The instruction after which it happened.
    pub step: Step,
    /// The event.
    pub what: What,
    /// The differences at that time.
    pub spread: Spread,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The fault struck for the first time and caused this difference; `None` if it changed no lasting
    /// value: a source operand, an instruction, a branch.
    Fault(Option<Wrong>),
    /// An instruction wrote a different value than in the golden run, for the first time.
    Value(Wrong),
    /// An instruction read a wrong register, for the first time, but wrote only correct values.
    Masked,
    /// A wave other than the struck one has a difference for the first time.
    Wave,
    /// A byte of LDS is wrong for the first time.
    Lds(Wrong),
    /// A wave takes a different path than in the golden run, for the first time in this wave. Its
    /// registers are not compared from then on.
    Path {
        /// Next PC in the golden run.
        golden: Pc,
        /// Next PC in the faulty run.
        faulty: Pc,
    },
    /// A wrong value was stored to device memory that outlives the dispatch, for the first time.
    Escape {
        /// The first wrong byte.
        wrong: Wrong,
        /// Number of bytes that the instruction made wrong.
        bytes: u64,
    },
    /// The golden run has stored a value that the faulty run has not, for the first time.
    Missing(Wrong),
    /// A byte of an output is wrong for the first time.
    Output {
        /// Index of the output in the workload.
        output: usize,
        /// Byte offset in the output.
        offset: u64,
    },
    /// No differences are left.
    Gone(Gone),
}

impl What {
    /// The register whose value is wrong, if the event is about one.
    pub fn register(&self) -> Option<RegisterId> {
        match self {
            What::Fault(Some(Wrong::Register { register, .. }))
            | What::Value(Wrong::Register { register, .. }) => Some(*register),
            _ => None,
        }
    }
}

/// A difference and its two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A register of the wave differs.
    Register {
        /// The register.
        register: RegisterId,
        /// The lowest wrong lane, for per-lane registers.
        lane: Option<Lane>,
        /// The value in the golden run.
        golden: u32,
        /// The value in the faulty run.
        faulty: u32,
    },
    /// A byte of the workgroup's LDS differs.
    Lds {
        /// Byte offset.
        offset: u32,
        /// The byte in the golden run.
        golden: u8,
        /// The byte in the faulty run.
        faulty: u8,
    },
    /// A byte of device memory differs.
    Memory {
        /// Address of the byte.
        address: Address,
        /// The byte in the golden run.
        golden: u8,
        /// The byte in the faulty run.
        faulty: u8,
    },
}

/// Cause of the last difference's disappearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The instruction overwrote a wrong value, which it did not read, with the correct one.
    Overwritten,
    /// The instruction read a wrong value but wrote only correct ones.
    Masked,
    /// The instruction ended a wave whose registers were wrong, or ended the dispatch.
    Ended,
    /// The instruction was the last of its dispatch; then the host or a copy overwrote the wrong
    /// values, or the memory was unmapped.
    Changed,
}
