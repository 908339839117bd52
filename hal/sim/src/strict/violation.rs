//! What strict execution reports.

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
    /// What was found, the first time.
    pub finding: Finding,
    /// The instruction that breaks the rule.
    pub place: Instruction,
    /// Source line of the instruction, where the code object has line tables.
    pub line: Option<SourceLine>,
    /// The wave that broke it first.
    pub wave: WaveId,
    /// The lanes in which it did; none where the rule is not about lanes.
    pub lanes: LaneMask,
    /// How often it was broken here.
    pub count: u64,
}

/// An instruction of a loaded code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The code object.
    pub module: ModuleId,
    /// Its ELF virtual address.
    pub pc: Pc,
    /// As the assembler prints it.
    pub text: String,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Finding {
    /// A register whose new value is on its way.
    NotWaited {
        /// The registers.
        registers: RegisterRange,
        /// Whether the instruction reads them, or overwrites them.
        is_read: bool,
        /// The counts that had to be reached, each at most this.
        counts: Vec<(Counter, u8)>,
        /// What waits for them, as the assembler writes it.
        wait: String,
        /// The operation under way.
        operation: Instruction,
    },
    /// A source overwritten before an operation under way has taken it.
    StillASource {
        /// The registers.
        registers: RegisterRange,
        /// The counter that tells, and what it must have reached.
        count: (Counter, u8),
        /// What waits for it, as the assembler writes it.
        wait: String,
        /// The operation under way.
        operation: Instruction,
    },
    /// In expert scheduling mode, a result of vector arithmetic, or a source of a memory instruction,
    /// that the hardware does not wait for.
    NotWaitedByExpert {
        /// The register.
        register: Vgpr,
        /// The instruction that writes the result or reads the source.
        operation: Instruction,
        /// What `s_wait_alu` must wait for.
        needed: AluCounter,
        /// The highest count that proves it.
        count: u8,
    },
    /// A known bug of the processor.
    ChipBug(ChipBug),
    /// Two instructions too close to each other.
    TooClose {
        /// The row of the table.
        hazard: &'static Hazard,
        /// Registers in which they meet.
        registers: Vec<RegisterRange>,
        /// Wait states between them.
        distance: u8,
        /// What must lie between them.
        needed: Mitigation,
        /// The first instruction.
        trigger: Instruction,
    },
    /// A scalar register that vector operations have read before, read before its new value has
    /// arrived.
    ReadLate {
        /// The register.
        registers: RegisterRange,
        /// What must be waited for.
        needed: Mitigation,
        /// What wrote it.
        writer: Instruction,
    },
    /// Sources of a dual instruction in the same bank.
    SameBank {
        /// One of each operation.
        sources: [RegisterRange; 2],
    },
    /// A value that nothing has written.
    Undefined {
        /// The registers that hold it.
        registers: Vec<RegisterRange>,
        /// What it decides.
        purpose: Purpose,
    },
    /// An access beyond the workgroup's LDS.
    OutsideLds {
        /// First byte of the access.
        address: u32,
        /// Its length in bytes.
        bytes: u32,
        /// Bytes that the workgroup has.
        size: u32,
    },
    /// An access beyond a work-item's private memory.
    OutsidePrivate {
        /// First byte of the access in the work-item's private memory.
        offset: i64,
        /// Its length in bytes.
        bytes: u32,
        /// Bytes that a work-item has.
        size: u32,
    },
    /// An access beyond an allocation.
    OutsideAllocation {
        /// First byte of the access.
        address: Address,
        /// Its length in bytes.
        bytes: u64,
        /// The allocation: start and length.
        allocation: (Address, u64),
    },
    /// An address whose lowest bits are dropped.
    Misaligned {
        /// The address.
        address: Address,
        /// What it must be a multiple of.
        alignment: u32,
    },
    /// A register that the wave does not have.
    NotAllocated {
        /// The registers.
        registers: RegisterRange,
        /// How many the wave has of this file.
        allocated: u16,
    },
    /// The amount of a shift in a register after which none is allocated.
    NextNotAllocated {
        /// The register.
        amount: Vgpr,
        /// How many the wave has.
        allocated: u16,
    },
    /// An access to LDS that was under way when its wave passed a barrier.
    UnderWayAtBarrier {
        /// Bytes of LDS that both touch.
        address: u32,
        /// The access under way.
        operation: Instruction,
        /// Its wave.
        wave: WaveId,
    },
    /// Waves at different barriers.
    OtherBarrier {
        /// Where the first other wave waits.
        other: Instruction,
        /// That wave.
        wave: WaveId,
    },
    /// An instruction that must not stand in a clause.
    BreaksClause {
        /// The `s_clause`.
        clause: Instruction,
        /// What the clause is of; `None` for the first instruction of it.
        kind: Option<Kind>,
    },
    /// An access that nothing orders with that of another wave.
    Race {
        /// The memory.
        space: SharedMemory,
        /// A dword that both access.
        address: u64,
        /// Whether this access writes.
        is_write: bool,
        /// The earlier access.
        other: Instruction,
        /// Its source line, where the code object has line tables.
        other_line: Option<SourceLine>,
        /// Whether that one writes.
        other_is_write: bool,
        /// Its wave.
        wave: WaveId,
    },
    /// A private store under way when vector registers are given back.
    StoresUnderWay {
        /// The store.
        operation: Instruction,
    },
    /// Waves that wait while another one of their workgroup does not end.
    Waiting {
        /// A wave that waits here.
        wave: WaveId,
    },
}

/// Memory that waves share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// LDS.
    Lds,
    /// Device memory.
    Memory,
}

impl Finding {
    /// The rule that it breaks.
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
            Finding::UnderWayAtBarrier { .. } => Rule::LdsAtBarrier,
            Finding::OtherBarrier { .. } => Rule::DifferentBarriers,
            Finding::Waiting { .. } => Rule::BarrierNotReached,
            Finding::BreaksClause { .. } => Rule::Clause,
            Finding::StoresUnderWay { .. } => Rule::Deallocation,
            Finding::Race { .. } => Rule::DataRace,
        }
    }
}

impl Violation {
    /// The rule that is broken.
    pub fn rule(&self) -> Rule {
        self.finding.rule()
    }
}

/// The violations of a dispatch, one per rule and instruction, in the order they were met.
#[derive(Debug, Default)]
pub struct Report {
    violations: Vec<Violation>,
    /// Index of each rule's violation at each place.
    known: HashMap<(Rule, ModuleId, Pc), usize>,
}

impl Report {
    /// Adds a finding, or counts it if it is known.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// All of them.
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
                    "{registers} is {verb} before the result of {operation} has arrived; it has \
                     once {wait} is passed",
                )
            }
            Finding::StillASource { registers, wait, operation, .. } => write!(
                f,
                "{registers} is overwritten before {operation} has taken it; it has once {wait} is \
                 passed"
            ),
            Finding::NotWaitedByExpert { register: Vgpr(number), operation, needed, count } => {
                write!(
                    f,
                    "in expert scheduling mode, v{number} is {} before {operation} has {} it; it has \
                     once s_wait_alu depctr_{needed}({count}) is passed",
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
                write!(f, ": {needed} needed after {trigger}")?;
                match needed {
                    Mitigation::WaitStates(_) => write!(f, ", there are {distance}"),
                    Mitigation::Instruction(_) => Ok(()),
                }
            }
            Finding::ReadLate { registers, needed, writer } => write!(
                f,
                "{registers}, which vector operations have read before, is read before what {writer} \
                 writes has arrived: {needed} needed"
            ),
            Finding::SameBank { sources: [first, second] } => {
                write!(f, "{first} and {second} are read at once from the same bank")
            }
            Finding::Undefined { registers, purpose } => {
                write!(f, "{} {purpose}, but nothing has written all of it", list(registers))
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
                "{bytes} bytes at {address} are accessed; the allocation there has {length} bytes \
                 from {start} on"
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
            Finding::UnderWayAtBarrier { address, operation, wave } => write!(
                f,
                "{address:#x} of LDS is accessed after a barrier, while {operation} of {wave}, \
                 from before the barrier, may still be under way"
            ),
            Finding::OtherBarrier { other, wave } => {
                write!(
                    f,
                    "this wave and {wave} pass a barrier together, but that one is at {other}"
                )
            }
            Finding::BreaksClause { clause, kind } => {
                write!(f, "it stands in the clause that {clause} begins")?;
                match kind {
                    Some(kind) => write!(f, ", which is one of {kind}"),
                    None => f.write_str(", but belongs to no clause"),
                }
            }
            Finding::StoresUnderWay { operation } => {
                write!(f, "{operation} may still be under way")
            }
            Finding::Race { space, address, is_write, other, other_line, other_is_write, wave } => {
                let verb = |is_write: bool| if is_write { "writes" } else { "reads" };
                let space = match space {
                    SharedMemory::Lds => "LDS",
                    SharedMemory::Memory => "memory",
                };
                let (own, others) = (verb(*is_write), verb(*other_is_write));
                write!(f, "it {own} {address:#x} of {space}, which {other}")?;
                if let Some(line) = other_line {
                    write!(f, " ({}:{})", line.file, line.line)?;
                }
                write!(f, " of {wave} {others}; no barrier and no atomic operation orders the two")
            }
            Finding::Waiting { wave } => write!(
                f,
                "{wave} waits here until the watchdog ends the dispatch: another wave of its \
                 workgroup neither comes nor ends"
            ),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule();
        writeln!(f, "{rule} at {}", self.place)?;
        if let Some(line) = &self.line {
            writeln!(f, "  source: {}:{}", line.file, line.line)?;
        }
        writeln!(f, "  found:  {}", self.finding)?;
        let lanes = match self.lanes.lanes().next() {
            Some(first) => format!(", {} lanes from lane {first} on", self.lanes.count()),
            None => String::new(),
        };
        writeln!(f, "  where:  {}{lanes}; times met: {}", self.wave, self.count)?;
        writeln!(f, "  to do:  {}", rule.advice())?;
        write!(f, "  rule:   {}", rule.source())
    }
}
