//! Reports of strict execution.

use super::expert::AluCounter;
use super::rule::Rule;
use crate::shadow::Purpose;
use flipwave_codeobj::SourceLine;
use flipwave_device::{Address, ModuleId, WaveId};
use flipwave_isa::clause::Kind;
use flipwave_isa::counter::Counter;
use flipwave_isa::hazard::{Hazard, Mitigation};
use flipwave_isa::{ChipBug, LaneMask, Pc, RegisterRange, Vgpr};
use std::collections::HashMap;
use std::fmt;

/// A rule broken at an instruction.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The first finding.
    pub finding: Finding,
    /// Instruction that breaks the rule.
    pub place: Instruction,
    /// Source line of the instruction, if the code object has line tables.
    pub line: Option<SourceLine>,
    /// Wave that broke the rule first.
    pub wave: WaveId,
    /// Lanes that broke the rule; empty if the rule does not concern lanes.
    pub lanes: LaneMask,
    /// Number of violations at this instruction.
    pub count: u64,
}

/// An instruction of a loaded code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The code object.
    pub module: ModuleId,
    /// ELF virtual address.
    pub pc: Pc,
    /// Assembly text.
    pub text: String,
}

/// Kind and details of a violation.
#[derive(Clone, Debug)]
pub enum Finding {
    /// A register whose new value is pending.
    NotWaited {
        /// The registers.
        registers: RegisterRange,
        /// `true` if the instruction reads the registers, `false` if it overwrites them.
        is_read: bool,
        /// Counts that must be reached, each at most this.
        counts: Vec<(Counter, u8)>,
        /// Assembly of the missing wait.
        wait: String,
        /// The pending operation.
        operation: Instruction,
    },
    /// A source overwritten before a pending operation has read it.
    StillASource {
        /// The registers.
        registers: RegisterRange,
        /// The counter, and the count that it must reach.
        count: (Counter, u8),
        /// Assembly of the missing wait.
        wait: String,
        /// The pending operation.
        operation: Instruction,
    },
    /// A result of vector arithmetic, or a source of a memory instruction, that the hardware does
    /// not wait for in expert scheduling mode.
    NotWaitedByExpert {
        /// The register.
        register: Vgpr,
        /// The instruction that writes the result or reads the source.
        operation: Instruction,
        /// Counter that `s_wait_alu` must wait for.
        needed: AluCounter,
        /// Highest count that is sufficient.
        count: u8,
    },
    /// A known bug of the processor.
    ChipBug(ChipBug),
    /// Two instructions that are too close to each other.
    TooClose {
        /// Row of the hazard table.
        hazard: &'static Hazard,
        /// Registers that both access.
        registers: Vec<RegisterRange>,
        /// Wait states between them.
        distance: u8,
        /// Required separation.
        needed: Mitigation,
        /// The first instruction.
        trigger: Instruction,
    },
    /// A scalar register that vector operations have read before, read before its new value has
    /// arrived.
    ReadLate {
        /// The register.
        registers: RegisterRange,
        /// Required wait.
        needed: Mitigation,
        /// Instruction that wrote it.
        writer: Instruction,
    },
    /// A dual-issue instruction whose operations read sources from the same register bank.
    SameBank {
        /// A source of each operation.
        sources: [RegisterRange; 2],
    },
    /// A value that nothing has written.
    Undefined {
        /// Registers that hold it.
        registers: Vec<RegisterRange>,
        /// Decision that uses it.
        purpose: Purpose,
    },
    /// An access beyond the workgroup's LDS.
    OutsideLds {
        /// First byte of the access.
        address: u32,
        /// Length in bytes.
        bytes: u32,
        /// Bytes of LDS that the workgroup has.
        size: u32,
    },
    /// An access beyond a work-item's private memory.
    OutsidePrivate {
        /// First byte of the access in the work-item's private memory.
        offset: i64,
        /// Length in bytes.
        bytes: u32,
        /// Bytes of private memory that a work-item has.
        size: u32,
    },
    /// An access beyond an allocation.
    OutsideAllocation {
        /// First byte of the access.
        address: Address,
        /// Length in bytes.
        bytes: u64,
        /// Start and length of the allocation.
        allocation: (Address, u64),
    },
    /// An address whose lowest bits are dropped.
    Misaligned {
        /// The address.
        address: Address,
        /// Required alignment.
        alignment: u32,
    },
    /// A register that is not allocated to the wave.
    NotAllocated {
        /// The registers.
        registers: RegisterRange,
        /// Number of allocated registers of this file.
        allocated: u16,
    },
    /// The amount of a shift in a register whose successor is not allocated.
    NextNotAllocated {
        /// The register.
        amount: Vgpr,
        /// Number of allocated registers.
        allocated: u16,
    },
    /// An access to LDS that was pending when its wave passed a barrier.
    PendingAtBarrier {
        /// Address of LDS bytes that both accesses touch.
        address: u32,
        /// The pending access.
        operation: Instruction,
        /// Wave of the pending access.
        wave: WaveId,
    },
    /// Waves at different barriers.
    OtherBarrier {
        /// Barrier at which another wave waits.
        barrier: Instruction,
        /// The other wave.
        wave: WaveId,
    },
    /// An instruction that is not allowed in the clause.
    BreaksClause {
        /// The `s_clause`.
        clause: Instruction,
        /// Kind of the clause; `None` if the instruction is its first.
        kind: Option<Kind>,
    },
    /// An access that is not ordered with another wave's access.
    Race {
        /// The memory.
        space: SharedMemory,
        /// Address of a dword that both access.
        address: u64,
        /// `true` if this access writes.
        is_write: bool,
        /// The earlier access.
        earlier: Instruction,
        /// Source line of the earlier access, if the code object has line tables.
        earlier_line: Option<SourceLine>,
        /// `true` if the earlier access writes.
        earlier_is_write: bool,
        /// Wave of the earlier access.
        wave: WaveId,
    },
    /// A store to private memory that is pending when vector registers are deallocated.
    StorePending {
        /// The store.
        operation: Instruction,
    },
    /// Waves that wait while another wave of their workgroup does not end.
    Waiting {
        /// A wave that waits at this barrier.
        wave: WaveId,
    },
}

/// Memory shared by waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// LDS.
    Lds,
    /// Device memory.
    Memory,
}

impl Finding {
    /// The broken rule.
    pub fn rule(&self) -> Rule {
        match self {
            Finding::NotWaited { .. }
            | Finding::StillASource { .. }
            | Finding::NotWaitedByExpert { .. } => Rule::WaitCounter,
            Finding::ChipBug(_) => Rule::ChipBug,
            Finding::TooClose { .. } | Finding::ReadLate { .. } => Rule::ManualHazard,
            Finding::SameBank { .. } => Rule::DualBanks,
            Finding::Undefined { .. } => Rule::UndefinedValue,
            Finding::OutsideLds { .. } => Rule::LdsBounds,
            Finding::OutsidePrivate { .. } => Rule::PrivateBounds,
            Finding::OutsideAllocation { .. } => Rule::MemoryBounds,
            Finding::Misaligned { .. } => Rule::Alignment,
            Finding::NotAllocated { .. } | Finding::NextNotAllocated { .. } => {
                Rule::RegisterAllocation
            }
            Finding::PendingAtBarrier { .. } => Rule::LdsAtBarrier,
            Finding::OtherBarrier { .. } => Rule::DifferentBarriers,
            Finding::Waiting { .. } => Rule::BarrierNotReached,
            Finding::BreaksClause { .. } => Rule::Clause,
            Finding::StorePending { .. } => Rule::Deallocation,
            Finding::Race { .. } => Rule::DataRace,
        }
    }
}

impl Violation {
    /// The broken rule.
    pub fn rule(&self) -> Rule {
        self.finding.rule()
    }
}

/// Violations of a dispatch, one per rule and instruction, in order of occurrence.
#[derive(Debug, Default)]
pub struct Report {
    violations: Vec<Violation>,
    /// Index of the violation for each rule and instruction.
    known: HashMap<(Rule, ModuleId, Pc), usize>,
}

impl Report {
    /// Adds a finding, or increments the count of a known one.
    pub fn add(&mut self, place: Instruction, wave: WaveId, lanes: LaneMask, finding: Finding) {
        let key = (finding.rule(), place.module, place.pc);
        match self.known.get(&key) {
            Some(index) => self.violations[*index].count += 1,
            None => {
                self.known.insert(key, self.violations.len());
                let line = None;
                self.violations.push(Violation { finding, place, line, wave, lanes, count: 1 });
            }
        }
    }

    /// Returns `true` if there are no violations.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns all violations.
    pub fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        write!(f, "{}: {}", self.pc, words.join(" "))
    }
}

fn list(ranges: &[RegisterRange]) -> String {
    ranges.iter().map(RegisterRange::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::NotWaited { registers, is_read, wait, operation, .. } => {
                let verb = if *is_read { "read" } else { "overwritten" };
                write!(
                    f,
                    "{registers} is {verb} before the result of {operation} has arrived; wait for \
                     {wait}",
                )
            }
            Finding::StillASource { registers, wait, operation, .. } => write!(
                f,
                "{registers} is overwritten before {operation} has read it; wait for {wait}"
            ),
            Finding::NotWaitedByExpert { register: Vgpr(number), operation, needed, count } => {
                write!(
                    f,
                    "in expert scheduling mode, v{number} is {} before {operation} has {} it; wait \
                     for s_wait_alu depctr_{needed}({count})",
                    if *needed == AluCounter::VaVdst { "accessed" } else { "overwritten" },
                    if *needed == AluCounter::VaVdst { "written" } else { "read" },
                )
            }
            Finding::ChipBug(bug) => write!(f, "{} ({})", bug.effect(), bug.llvm_name()),
            Finding::TooClose { hazard, registers, distance, needed, trigger } => {
                write!(f, "{}", hazard.name)?;
                if !registers.is_empty() {
                    write!(f, " ({})", list(registers))?;
                }
                write!(f, ": {needed} required after {trigger}")?;
                match needed {
                    Mitigation::WaitStates(_) => write!(f, ", found {distance}"),
                    Mitigation::Instruction(_) => Ok(()),
                }
            }
            Finding::ReadLate { registers, needed, writer } => write!(
                f,
                "{registers}, which vector operations have read earlier, is read before the value \
                 of {writer} has arrived: {needed} required"
            ),
            Finding::SameBank { sources: [first, second] } => {
                write!(f, "{first} and {second} are read from the same bank at the same time")
            }
            Finding::Undefined { registers, purpose } => {
                write!(f, "{} {purpose}, but is not fully initialized", list(registers))
            }
            Finding::OutsideLds { address, bytes, size } => write!(
                f,
                "{bytes} bytes at {address:#x} of LDS are accessed; the workgroup has {size} bytes"
            ),
            Finding::OutsidePrivate { offset, bytes, size } => write!(
                f,
                "{bytes} bytes at offset {offset} of private memory are accessed; a work-item has \
                 {size} bytes"
            ),
            Finding::OutsideAllocation { address, bytes, allocation: (start, length) } => write!(
                f,
                "{bytes} bytes at {address} are accessed; the allocation has {length} bytes starting \
                 at {start}"
            ),
            Finding::Misaligned { address, alignment } => {
                write!(f, "the address {address} is not a multiple of {alignment}")
            }
            Finding::NotAllocated { registers, allocated } => {
                write!(f, "{registers} is used; the wave has {allocated} registers of this kind")
            }
            Finding::NextNotAllocated { amount: Vgpr(amount), allocated } => write!(
                f,
                "the amount of a 64-bit shift is in v{amount}, which works on gfx90a only if the \
                 next register is allocated too; the wave has {allocated}"
            ),
            Finding::PendingAtBarrier { address, operation, wave } => write!(
                f,
                "{address:#x} of LDS is accessed after a barrier while {operation} of {wave}, \
                 issued before the barrier, may still be pending"
            ),
            Finding::OtherBarrier { barrier, wave } => {
                write!(
                    f,
                    "{wave} passes the barrier together with this wave, but waits at {barrier}"
                )
            }
            Finding::BreaksClause { clause, kind } => {
                write!(f, "the instruction is in the clause started by {clause}")?;
                match kind {
                    Some(kind) => write!(f, ", which is a clause of {kind}"),
                    None => f.write_str(", but is not allowed in any clause"),
                }
            }
            Finding::StorePending { operation } => {
                write!(f, "{operation} may still be pending")
            }
            Finding::Race {
                space,
                address,
                is_write,
                earlier,
                earlier_line,
                earlier_is_write,
                wave,
            } => {
                let verb = |is_write: bool| if is_write { "writes" } else { "reads" };
                let space = match space {
                    SharedMemory::Lds => "LDS",
                    SharedMemory::Memory => "memory",
                };
                let (verb, earlier_verb) = (verb(*is_write), verb(*earlier_is_write));
                write!(f, "this instruction {verb} {address:#x} of {space}, which {earlier}")?;
                if let Some(line) = earlier_line {
                    write!(f, " ({line})")?;
                }
                write!(
                    f,
                    " of {wave} {earlier_verb}; no barrier or atomic operation orders the two accesses"
                )
            }
            Finding::Waiting { wave } => write!(
                f,
                "{wave} waits here until the watchdog ends the dispatch: another wave of its \
                 workgroup neither reaches the barrier nor ends"
            ),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule();
        writeln!(f, "{rule} at {}", self.place)?;
        if let Some(line) = &self.line {
            writeln!(f, "  source: {line}")?;
        }
        writeln!(f, "  found:  {}", self.finding)?;
        let lanes = match self.lanes.lanes().next() {
            Some(first) => format!(", {} lanes starting at lane {first}", self.lanes.count()),
            None => String::new(),
        };
        writeln!(f, "  where:  {}{lanes}; occurrences: {}", self.wave, self.count)?;
        writeln!(f, "  fix:    {}", rule.advice())?;
        write!(f, "  rule:   {}", rule.source())
    }
}
