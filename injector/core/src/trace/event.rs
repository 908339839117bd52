//! What a trace records: steps of the faulty run, and what happened at them.

use super::Spread;
use flipwave_codeobj::SourceLine;
use flipwave_device::{Address, WaveId};
use flipwave_isa::{Lane, Operation, Pc, Register};

/// One executed instruction of the faulty run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Wave instructions that the faulty run has executed since the fault, over all waves: 0 for
    /// the instruction that was struck first.
    pub time: u64,
    /// Index of the dispatch in the workload.
    pub dispatch: u32,
    /// The wave that executed it.
    pub wave: WaveId,
    /// Its address.
    pub pc: Pc,
    /// What it does.
    pub operation: Operation,
    /// The assembler's text.
    pub text: String,
    /// Where it is from, if the code says so.
    pub line: Option<SourceLine>,
}

/// Something that happened on the way of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// After which instruction.
    pub step: Step,
    /// What happened.
    pub what: What,
    /// What differed then.
    pub spread: Spread,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The fault struck for the first time, and left this wrong; nothing where it changed no value
    /// that lasts: a source operand, an instruction, a branch.
    Fault(Option<Wrong>),
    /// An instruction wrote another value than in the golden run, for the first time.
    Value(Wrong),
    /// An instruction read a wrong register, for the first time, and all that it wrote was right.
    Masked,
    /// A wave other than the first one has a difference for the first time.
    Wave,
    /// A byte of LDS is wrong for the first time.
    Lds(Wrong),
    /// A wave goes another way than in the golden run: the first time that this wave does. Its
    /// registers are not compared from there on.
    Path {
        /// Where the golden run goes on.
        golden: Pc,
        /// Where the faulty run goes on.
        faulty: Pc,
    },
    /// A wrong value was stored to device memory that outlasts the dispatch, for the first time.
    Escape {
        /// The first wrong byte.
        wrong: Wrong,
        /// How many bytes the instruction made wrong.
        bytes: u64,
    },
    /// The golden run has stored what the faulty run has not, for the first time.
    Missing(Wrong),
    /// A byte of an output is wrong for the first time.
    Output {
        /// Index of the output in the workload's.
        output: usize,
        /// Byte offset in it.
        offset: u64,
    },
    /// No difference is left.
    Gone(Gone),
}

/// A difference, and the two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// In a register of the wave.
    Register {
        /// The register.
        register: Register,
        /// The lowest wrong lane, where each has its own.
        lane: Option<Lane>,
        /// The value in the golden run.
        golden: u32,
        /// The value in the faulty run.
        faulty: u32,
    },
    /// In the LDS of the workgroup.
    Lds {
        /// Byte offset.
        offset: u32,
        /// The byte in the golden run.
        golden: u8,
        /// The byte in the faulty run.
        faulty: u8,
    },
    /// In device memory.
    Memory {
        /// Where.
        address: Address,
        /// The byte in the golden run.
        golden: u8,
        /// The byte in the faulty run.
        faulty: u8,
    },
}

/// What the instruction did that left no difference, or what was done after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It wrote the right value in the place of a wrong one that it did not read.
    Overwritten,
    /// It read a wrong value, and what it wrote was right all the same.
    Masked,
    /// It ended a wave, and the wrong values were the wave's own; or the dispatch ended.
    Ended,
    /// It was the last of its dispatch. Then the host or a copy wrote over what was wrong, or the
    /// memory went.
    Changed,
}
