//! Faults that end a dispatch.

use crate::fault_context::INDENT;
use crate::kernarg::host_service_at;
use crate::{Address, FaultContext, Stall, WaveId};
use flipwave_codeobj::SourceLine;
use flipwave_isa::{Lane, Pc};
use std::fmt;
use std::str::FromStr;

/// A fault that ended a dispatch. Faults with the same cause at the same place are equal, whatever their
/// context: registers and frames differ between original and rewritten code.
#[derive(Clone, Debug)]
pub struct DeviceFault {
    /// Cause of the fault.
    pub cause: FaultCause,
    /// The instruction and wave that caused the fault.
    pub place: WaveLocation,
    /// State of the wave, if the device knows it.
    pub context: Option<Box<FaultContext>>,
}

impl PartialEq for DeviceFault {
    fn eq(&self, other: &DeviceFault) -> bool {
        (&self.cause, self.place) == (&other.cause, other.place)
    }
}

impl Eq for DeviceFault {}

/// An instruction executed by a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLocation {
    /// Address of the instruction: an ELF virtual address if it is in a code object, otherwise a
    /// device address.
    pub pc: Pc,
    /// The wave.
    pub wave: WaveId,
}

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AccessKind {
    Read,
    Write,
    Atomic,
    Fetch,
}

/// Cause of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// An access to unmapped memory, or a write to code.
    MemoryViolation {
        /// Address of the first inaccessible byte.
        address: Address,
        /// Kind of the access.
        access: AccessKind,
        /// The lane, if the access belongs to one.
        lane: Option<Lane>,
    },
    /// A misaligned access.
    Misaligned {
        /// The address.
        address: Address,
        /// The required alignment, in bytes.
        alignment: u32,
        /// The lane, if the access belongs to one.
        lane: Option<Lane>,
    },
    /// An illegal instruction.
    IllegalInstruction {
        /// The first word.
        word: u32,
    },
    /// A word that the decoder does not know, although the hardware may have an instruction: a gap,
    /// never an outcome of a fault-free run. See [`FaultCause::in_faulty_run`].
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
    /// A deadlock, detected before the instruction limit. Reported under the name of
    /// [`FaultCause::Watchdog`].
    Stalled(Box<Stall>),
    /// An instruction that decodes but is never executed: the processor lacks it, only waves of
    /// other than compute dispatches can execute it, or the embedded GPU has no unit for it.
    NotCompute {
        /// The instruction, as printed by the assembler.
        instruction: Box<str>,
        /// The component that lacks the instruction.
        absence: Absence,
        /// Explanation.
        reason: Box<str>,
    },
    /// A gap of the embedded GPU, never an outcome: an instruction that is not implemented yet.
    Unimplemented {
        /// The instruction, as printed by the assembler.
        instruction: Box<str>,
        /// The missing part.
        reason: Box<str>,
    },
}

/// The component that lacks an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The processor: the hardware has no such instruction.
    FromProcessor,
    /// Compute waves: only other waves of the processor can execute the instruction.
    FromCompute,
    /// The embedded GPU: compute waves of the processor can execute the instruction.
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

/// Kind of a [`FaultCause`], without its details: the part that results and processes exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// [`FaultCause::MemoryViolation`].
    MemoryViolation,
    /// [`FaultCause::Misaligned`].
    Misaligned,
    /// [`FaultCause::IllegalInstruction`].
    IllegalInstruction,
    /// [`FaultCause::Trap`].
    Trap,
    /// [`FaultCause::Watchdog`] and [`FaultCause::Stalled`].
    Watchdog,
    /// [`FaultCause::NotCompute`].
    NotCompute,
    /// [`FaultCause::Unimplemented`].
    Unimplemented,
    /// [`FaultCause::NotDecoded`].
    NotDecoded,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 8] = [
        FaultKind::MemoryViolation,
        FaultKind::Misaligned,
        FaultKind::IllegalInstruction,
        FaultKind::Trap,
        FaultKind::Watchdog,
        FaultKind::NotCompute,
        FaultKind::Unimplemented,
        FaultKind::NotDecoded,
    ];

    /// Name in results.
    pub fn name(self) -> &'static str {
        self.name_and_class().0
    }

    /// The class of the fault as seen by a driver.
    pub fn class(self) -> FaultClass {
        self.name_and_class().1
    }

    fn name_and_class(self) -> (&'static str, FaultClass) {
        match self {
            FaultKind::MemoryViolation => ("memory_violation", FaultClass::Access),
            FaultKind::Misaligned => ("misaligned", FaultClass::Alignment),
            FaultKind::IllegalInstruction => ("illegal_instruction", FaultClass::Instruction),
            FaultKind::Trap => ("trap", FaultClass::Exception),
            FaultKind::Watchdog => ("watchdog", FaultClass::Exception),
            FaultKind::NotCompute => ("not_compute", FaultClass::Instruction),
            FaultKind::Unimplemented => ("unimplemented", FaultClass::Gap),
            FaultKind::NotDecoded => ("not_decoded", FaultClass::Gap),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error returned for an unknown name of a fault kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of device fault `{0}`")]
pub struct UnknownFaultKind(pub String);

impl FromStr for FaultKind {
    type Err = UnknownFaultKind;

    fn from_str(name: &str) -> Result<FaultKind, UnknownFaultKind> {
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownFaultKind(name.to_owned()))
    }
}

/// Classes of faults that a driver distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// An inaccessible address.
    Access,
    /// A misaligned access.
    Alignment,
    /// An instruction that cannot be executed.
    Instruction,
    /// A trap, or the watchdog.
    Exception,
    /// Not a hardware fault: a gap of the device.
    Gap,
}

impl DeviceFault {
    /// Creates a fault without context.
    pub fn new(cause: FaultCause, place: WaveLocation) -> DeviceFault {
        DeviceFault { cause, place, context: None }
    }

    /// Sets the context. The wait of a stall that the context belongs to gets the context's source line,
    /// which may be that of a caller.
    pub fn set_context(&mut self, context: FaultContext) {
        let pc = self.place.pc;
        if let FaultCause::Stalled(stall) = &mut self.cause
            && context.frames.first().is_some_and(|frame| frame.pc == pc)
        {
            let own = stall.waits.iter_mut().filter(|waiting| waiting.pc == pc);
            own.for_each(|waiting| waiting.line = context.line().cloned().or(waiting.line.take()));
        }
        self.context = Some(Box::new(context));
    }

    /// A report for people: the fault, its source line, and its context. `line` is the source line to
    /// print if the context has none.
    pub fn report<'a>(&'a self, line: Option<&'a SourceLine>) -> FaultReport<'a> {
        FaultReport { fault: self, line }
    }

    /// Applies `map` to every location in the fault.
    pub fn map_locations(mut self, map: impl Fn(WaveLocation) -> WaveLocation) -> DeviceFault {
        if let FaultCause::Stalled(stall) = &mut self.cause {
            stall.map_locations(&map);
        }
        if let Some(context) = &mut self.context {
            context.map_addresses(|pc| map(WaveLocation { pc, wave: self.place.wave }).pc);
        }
        DeviceFault { place: map(self.place), ..self }
    }
}

impl FaultCause {
    /// Returns `true` if the dispatch hung.
    pub fn is_hang(&self) -> bool {
        matches!(self, FaultCause::Watchdog { .. } | FaultCause::Stalled(_))
    }

    /// The number of wave instructions that a hung dispatch executed.
    pub fn executed_mut(&mut self) -> Option<&mut u64> {
        match self {
            FaultCause::Watchdog { executed } => Some(executed),
            FaultCause::Stalled(stall) => Some(&mut stall.executed),
            _ => None,
        }
    }

    /// The kind of the cause.
    pub fn kind(&self) -> FaultKind {
        match self {
            FaultCause::MemoryViolation { .. } => FaultKind::MemoryViolation,
            FaultCause::Misaligned { .. } => FaultKind::Misaligned,
            FaultCause::IllegalInstruction { .. } => FaultKind::IllegalInstruction,
            FaultCause::Trap { .. } => FaultKind::Trap,
            FaultCause::Watchdog { .. } | FaultCause::Stalled(_) => FaultKind::Watchdog,
            FaultCause::NotCompute { .. } => FaultKind::NotCompute,
            FaultCause::Unimplemented { .. } => FaultKind::Unimplemented,
            FaultCause::NotDecoded { .. } => FaultKind::NotDecoded,
        }
    }

    /// The cause's name in results.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The class of the fault as seen by a driver.
    pub fn class(&self) -> FaultClass {
        self.kind().class()
    }

    /// Converts the cause for a run with an injected fault: [`FaultCause::NotDecoded`] becomes
    /// [`FaultCause::IllegalInstruction`]. The golden run decoded everything that it executed, so the
    /// injected fault produced the undecodable word or branched to it.
    pub fn in_faulty_run(self) -> FaultCause {
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
                match host_service_at(*address) {
                    Some(service) => write!(
                        f,
                        ": the kernel calls the host for {service}, which works only in applications \
                         (`flipwave exec`, or a campaign with `application`); to run the kernel \
                         alone, compile it without {service} (`-DNDEBUG` removes `assert`)"
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
                 {word:#010x}; this is a gap of the tool"
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

/// A fault with everything known about it, on several lines.
#[derive(Clone, Copy, Debug)]
pub struct FaultReport<'a> {
    fault: &'a DeviceFault,
    line: Option<&'a SourceLine>,
}

impl fmt::Display for FaultReport<'_> {
    /// The fault and its source line, then the lines of the [`FaultContext`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = self.fault.context.as_deref();
        if let FaultCause::Stalled(stall) = &self.fault.cause {
            // The waits have their own places and lines.
            stall.fmt_lines(f, INDENT)?;
            return context.map_or(Ok(()), |context| context.fmt(f));
        }
        write!(f, "{}", self.fault)?;
        if let Some(line) = context.and_then(FaultContext::line).or(self.line) {
            write!(f, " ({line})")?;
        }
        context.map_or(Ok(()), |context| context.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_kind_names_round_trip() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("Trap".parse::<FaultKind>().is_err());
    }
}
