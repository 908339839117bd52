//! The rules of the strict level.

use std::fmt;

/// What strict execution looks for: what hardware does not forgive, or forgives without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A register is read or overwritten while the result of a memory operation is on its way
    /// to it.
    WaitCounter,
    /// Instructions that hardware does not keep apart follow each other too closely.
    ManualHazard,
    /// A value that nothing has written decides something: an address, EXEC, a branch.
    UndefinedValue,
    /// An access to LDS beyond what the workgroup has.
    LdsBounds,
    /// An access to private memory beyond what a work-item has.
    PrivateBounds,
    /// An access to device memory beyond an allocation, though inside its last page.
    MemoryBounds,
    /// An address whose lowest bits hardware drops.
    Alignment,
    /// A register that the wave does not have.
    RegisterAllocation,
    /// LDS is accessed after a barrier while an access from before it is under way.
    LdsAtBarrier,
    /// Waves of a workgroup wait at different barriers, and pass.
    DifferentBarriers,
    /// Waves wait at a barrier that another never reaches.
    BarrierNotReached,
    /// An instruction stands in a clause of another kind.
    Clause,
    /// Vector registers are given back while private memory is being stored.
    Deallocation,
    /// The two operations of a dual instruction read from the same bank of registers.
    DualBanks,
    /// An instruction triggers a known bug of the processor.
    ChipBug,
    /// Two waves access the same bytes, one of them writes, and nothing orders the two.
    DataRace,
}

impl Rule {
    /// All of them.
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

    /// Its name in reports.
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

    /// Where it is written.
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

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::WaitCounter => "put a wait with this count, or a lower one, before it",
            Rule::ManualHazard => {
                "put what is needed, or other independent instructions, between the two"
            }
            Rule::UndefinedValue => {
                "write the register, the LDS or the private memory before, on every path that leads \
                 here"
            }
            Rule::LdsBounds => "give the kernel more LDS, or mend the address",
            Rule::PrivateBounds => "give the kernel more private memory, or mend the address",
            Rule::MemoryBounds => "allocate more, or mend the address",
            Rule::Alignment => "mend the address: the access goes to the dword below it",
            Rule::RegisterAllocation => "allocate more registers in the kernel descriptor",
            Rule::LdsAtBarrier => "wait for LDS (lgkmcnt(0), on gfx12 dscnt 0) before the barrier",
            Rule::DifferentBarriers => "have all waves of a workgroup reach the same barrier",
            Rule::BarrierNotReached => "have all waves of a workgroup reach the barrier, or end",
            Rule::Clause => "take the s_clause away, or make it shorter",
            Rule::DualBanks => {
                "take other registers, whose numbers differ in their lowest two bits, or two \
                 instructions"
            }
            Rule::ChipBug => "use another instruction or another operand",
            Rule::DataRace => "put a barrier between the two, or make both atomic operations",
            Rule::Deallocation => "take the s_sendmsg away, or wait for the stores before it",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
