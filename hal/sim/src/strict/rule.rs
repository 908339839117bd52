//! Rules of the strict level.

use std::fmt;

/// Violations that strict execution checks for: errors that hardware does not detect, or silently
/// tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A register is read or overwritten while the result of a memory operation is pending.
    WaitCounter,
    /// Instructions that hardware does not interlock follow each other too closely.
    ManualHazard,
    /// An unwritten value decides an address, EXEC, a branch or the like.
    UndefinedValue,
    /// An access beyond the workgroup's LDS.
    LdsBounds,
    /// An access beyond the work-item's private memory.
    PrivateBounds,
    /// An access beyond an allocation in device memory, but inside its last page.
    MemoryBounds,
    /// An address whose lowest bits hardware drops.
    Alignment,
    /// A register that is not allocated to the wave.
    RegisterAllocation,
    /// LDS is accessed after a barrier while an access from before the barrier is pending.
    LdsAtBarrier,
    /// Waves of a workgroup wait at different barriers, and continue.
    DifferentBarriers,
    /// Waves wait at a barrier that another wave never reaches.
    BarrierNotReached,
    /// An instruction is in a clause of another kind.
    Clause,
    /// Vector registers are deallocated while a store to private memory is pending.
    Deallocation,
    /// The two operations of a dual instruction read from the same register bank.
    DualBanks,
    /// An instruction triggers a known bug of the processor.
    ChipBug,
    /// Two waves access the same bytes, one of them writes, and nothing orders the accesses.
    DataRace,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 16] = [
        Rule::WaitCounter,
        Rule::ManualHazard,
        Rule::UndefinedValue,
        Rule::LdsBounds,
        Rule::PrivateBounds,
        Rule::MemoryBounds,
        Rule::Alignment,
        Rule::RegisterAllocation,
        Rule::LdsAtBarrier,
        Rule::DifferentBarriers,
        Rule::BarrierNotReached,
        Rule::Clause,
        Rule::Deallocation,
        Rule::DualBanks,
        Rule::ChipBug,
        Rule::DataRace,
    ];

    /// Name of the rule in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::WaitCounter => "wait-counter",
            Rule::ManualHazard => "manual-hazard",
            Rule::UndefinedValue => "undefined-value",
            Rule::LdsBounds => "lds-bounds",
            Rule::PrivateBounds => "private-bounds",
            Rule::MemoryBounds => "memory-bounds",
            Rule::Alignment => "alignment",
            Rule::RegisterAllocation => "register-allocation",
            Rule::LdsAtBarrier => "lds-at-barrier",
            Rule::DifferentBarriers => "different-barriers",
            Rule::BarrierNotReached => "barrier-not-reached",
            Rule::Clause => "clause",
            Rule::Deallocation => "deallocation",
            Rule::DualBanks => "dual-banks",
            Rule::ChipBug => "chip-bug",
            Rule::DataRace => "data-race",
        }
    }

    /// Document that states the rule.
    pub fn source(self) -> &'static str {
        match self {
            Rule::WaitCounter => {
                "the ISA documents, \"Data dependency resolution\"; LLVM, SIInsertWaitcnts"
            }
            Rule::ManualHazard => {
                "the ISA documents, \"Manually inserted wait states\"; LLVM, GCNHazardRecognizer"
            }
            Rule::UndefinedValue => "AMDGPUUsage, \"Initial Kernel Execution State\"",
            Rule::LdsBounds => "the ISA documents, \"LDS out-of-range behavior\"",
            Rule::PrivateBounds => "AMDGPUUsage, \"Private\"; the kernel descriptor's private size",
            Rule::MemoryBounds => "the host's allocations",
            Rule::Alignment => "the ISA documents, \"Scalar memory operations\"",
            Rule::RegisterAllocation => {
                "the ISA documents, \"Out-of-range VGPRs\" and \"SGPR allocation\""
            }
            Rule::LdsAtBarrier => "AMDGPUUsage, \"Memory Model\", fences at workgroup scope",
            Rule::Clause => "RDNA ISA documents, \"S_CLAUSE\"; LLVM, SIInsertHardClauses",
            Rule::Deallocation => "LLVM, SIInsertWaitcnts, MSG_DEALLOC_VGPRS",
            Rule::DualBanks => "RDNA ISA documents, \"VOPD\"",
            Rule::ChipBug => {
                "LLVM, features and methods of `GCNSubtarget` (docs/strict.md lists them)"
            }
            Rule::DataRace => "AMDGPUUsage, \"Memory Model\"",
            Rule::DifferentBarriers | Rule::BarrierNotReached => "the ISA documents, \"S_BARRIER\"",
        }
    }

    /// Advice for fixing a violation.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::WaitCounter => {
                "insert a wait with this count, or a lower one, before the instruction"
            }
            Rule::ManualHazard => {
                "insert the required instructions, or independent ones, between the two"
            }
            Rule::UndefinedValue => {
                "initialize the register, LDS or private memory on every path to this instruction"
            }
            Rule::LdsBounds => "allocate more LDS for the kernel, or correct the address",
            Rule::PrivateBounds => {
                "allocate more private memory for the kernel, or correct the address"
            }
            Rule::MemoryBounds => "enlarge the allocation, or correct the address",
            Rule::Alignment => "correct the address: the access goes to the dword that contains it",
            Rule::RegisterAllocation => "allocate more registers in the kernel descriptor",
            Rule::LdsAtBarrier => "wait for LDS (lgkmcnt(0), on gfx12 dscnt 0) before the barrier",
            Rule::DifferentBarriers => "make all waves of a workgroup reach the same barrier",
            Rule::BarrierNotReached => "make all waves of a workgroup reach the barrier, or end",
            Rule::Clause => "remove or shorten the s_clause",
            Rule::DualBanks => {
                "use registers whose numbers differ in their lowest two bits, or two separate \
                 instructions"
            }
            Rule::ChipBug => "use another instruction or another operand",
            Rule::DataRace => "insert a barrier between the two accesses, or make both atomic",
            Rule::Deallocation => "remove the s_sendmsg, or wait for the stores before it",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
