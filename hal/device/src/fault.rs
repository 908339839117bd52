//! How a device stops a dispatch.

use crate::kernarg::host_is_called;
use crate::{Address, Stall, WaveId};
use flipwave_isa::{Lane, Pc};
use std::fmt;

/// A dispatch ended by the device: why, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFault {
    /// What happened.
    pub cause: FaultCause,
    /// Where it happened.
    pub place: WaveLocation,
}

/// The instruction that was being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLocation {
    /// Its address, as the code object's ELF virtual address where it lies in one, else as the
    /// device address.
    pub pc: Pc,
    /// The wave.
    pub wave: WaveId,
}

/// Direction of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AccessKind {
    Read,
    Write,
    Atomic,
    Fetch,
}

/// Why the device stopped a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// An access outside everything mapped, or a write to code.
    MemoryViolation {
        /// Address of the first byte that was not accessible.
        address: Address,
        /// Direction.
        access: AccessKind,
        /// The lane, where the access was a lane's.
        lane: Option<Lane>,
    },
    /// An address that the access does not allow.
    Misaligned {
        /// The address.
        address: Address,
        /// The alignment it needs, in bytes.
        alignment: u32,
        /// The lane, where the access was a lane's.
        lane: Option<Lane>,
    },
    /// Bytes that are no instruction.
    IllegalInstruction {
        /// The first word.
        word: u32,
    },
    /// Bytes that begin no instruction of the decoder, although the hardware may have one: a gap,
    /// and no outcome of a run in which nothing was struck. See [`FaultCause::of_struck_run`].
    NotDecoded {
        /// The first word.
        word: u32,
    },
    /// `s_trap`: 2 is the ABI's abort, 3 its debug trap.
    Trap {
        /// The trap's number.
        id: u8,
    },
    /// The instruction limit was reached.
    Watchdog {
        /// Wave instructions executed.
        executed: u64,
    },
    /// Nothing can happen any more, which is certain before the limit is reached. It is filed as what
    /// the watchdog ends.
    Stalled(Box<Stall>),
    /// An instruction that decodes and that is never executed: what the processor lacks, what is left to
    /// other waves than those of a compute dispatch, and what the embedded GPU has no unit for.
    NotCompute {
        /// The instruction, as the assembler prints it.
        instruction: Box<str>,
        /// Whether the processor or the embedded GPU lacks the instruction.
        absence: Absence,
        /// Why.
        reason: Box<str>,
    },
    /// A gap of the embedded GPU, never an outcome: an instruction it does not execute yet.
    Unimplemented {
        /// The instruction, as the assembler prints it.
        instruction: Box<str>,
        /// What of it is missing.
        reason: Box<str>,
    },
}

/// Reasons why an instruction that decodes is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The processor: its hardware has no such instruction.
    FromProcessor,
    /// Compute waves: the processor has it, for waves of another kind.
    FromCompute,
    /// The embedded GPU: compute waves of the processor can execute it.
    FromTool,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Absence::FromProcessor => "no instruction of this processor",
            Absence::FromCompute => "no compute instruction",
            Absence::FromTool => "gap of the embedded GPU",
        })
    }
}

/// What a driver makes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// An address that cannot be accessed.
    Access,
    /// An address that the access does not allow.
    Alignment,
    /// An instruction that cannot be executed.
    Instruction,
    /// The code, or what watches it, ended the dispatch.
    Exception,
    /// None of hardware: something that the device cannot do.
    Gap,
}

impl DeviceFault {
    /// The same fault with every place in it as `place` says that it is.
    pub fn map_places(mut self, place: impl Fn(WaveLocation) -> WaveLocation) -> DeviceFault {
        if let FaultCause::Stalled(stall) = &mut self.cause {
            stall.map_places(&place);
        }
        DeviceFault { place: place(self.place), ..self }
    }
}

impl FaultCause {
    /// Whether the dispatch was ended because it hung.
    pub fn is_hang(&self) -> bool {
        matches!(self, FaultCause::Watchdog { .. } | FaultCause::Stalled(_))
    }

    /// The wave instructions that a dispatch which hung had executed.
    pub fn executed_mut(&mut self) -> Option<&mut u64> {
        match self {
            FaultCause::Watchdog { executed } => Some(executed),
            FaultCause::Stalled(stall) => Some(&mut stall.executed),
            _ => None,
        }
    }

    /// All names under which results are filed.
    pub const NAMES: [&'static str; 8] = [
        "memory_violation",
        "misaligned",
        "illegal_instruction",
        "trap",
        "watchdog",
        "not_compute",
        "unimplemented",
        "not_decoded",
    ];

    /// The name under which results are filed.
    pub fn name(&self) -> &'static str {
        FaultCause::NAMES[self.number_and_class().0]
    }

    /// What a driver makes of it.
    pub fn class(&self) -> FaultClass {
        self.number_and_class().1
    }

    /// The number of its name, and its class.
    fn number_and_class(&self) -> (usize, FaultClass) {
        match self {
            FaultCause::MemoryViolation { .. } => (0, FaultClass::Access),
            FaultCause::Misaligned { .. } => (1, FaultClass::Alignment),
            FaultCause::IllegalInstruction { .. } => (2, FaultClass::Instruction),
            FaultCause::Trap { .. } => (3, FaultClass::Exception),
            FaultCause::Watchdog { .. } | FaultCause::Stalled(_) => (4, FaultClass::Exception),
            FaultCause::NotCompute { .. } => (5, FaultClass::Instruction),
            FaultCause::Unimplemented { .. } => (6, FaultClass::Gap),
            FaultCause::NotDecoded { .. } => (7, FaultClass::Gap),
        }
    }

    /// The cause as it stands for a run in which a fault was injected. All that the fault-free run
    /// executed was decoded; so the fault has led to, or made, the bytes that are not, and they end
    /// the dispatch as an illegal instruction.
    pub fn of_struck_run(self) -> FaultCause {
        match self {
            FaultCause::NotDecoded { word } => FaultCause::IllegalInstruction { word },
            cause => cause,
        }
    }
}

impl fmt::Display for FaultCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane_text = |lane: &Option<Lane>| lane.map_or(String::new(), |l| format!(", lane {l}"));
        match self {
            FaultCause::MemoryViolation { address, access, lane } => {
                let access = match access {
                    AccessKind::Read => "read of",
                    AccessKind::Write => "write to",
                    AccessKind::Atomic => "atomic on",
                    AccessKind::Fetch => "instruction fetch from",
                };
                write!(f, "memory violation: {access} {address}{}", lane_text(lane))?;
                match host_is_called(*address) {
                    Some(wanted) => write!(
                        f,
                        ": the kernel calls the host for {wanted}, which is served in applications \
                         only (`flipwave exec`, or a campaign with `application`); for kernels alone, \
                         compile it without (`-DNDEBUG` leaves out `assert`)"
                    ),
                    None => Ok(()),
                }
            }
            FaultCause::Misaligned { address, alignment, lane } => write!(
                f,
                "misaligned access: {address} is not a multiple of {alignment}{}",
                lane_text(lane)
            ),
            FaultCause::IllegalInstruction { word } => {
                write!(f, "illegal instruction: {word:#010x}")
            }
            FaultCause::NotDecoded { word } => write!(
                f,
                "not decoded: LLVM 22 has no instruction of this target that begins with \
                 {word:#010x}, which is a gap of the tool"
            ),
            FaultCause::Trap { id } => write!(f, "trap {id}"),
            FaultCause::Watchdog { executed } => {
                write!(f, "watchdog: stopped after {executed} wave instructions")
            }
            FaultCause::Stalled(stall) => stall.fmt(f),
            FaultCause::NotCompute { instruction, absence, reason } => {
                write!(f, "{absence}: `{instruction}`: {reason}")
            }
            FaultCause::Unimplemented { instruction, reason } => {
                write!(f, "{}: `{instruction}`: {reason}", Absence::FromTool)
            }
        }
    }
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at pc {}, {}", self.cause, self.place.pc, self.place.wave)
    }
}
