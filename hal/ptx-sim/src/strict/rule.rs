//! Rules of the strict level.

use std::fmt;

/// Violations that the strict level reports: behaviour that PTX's manual leaves undefined or unspecified, and that the
/// simulator tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PtxRule {
    /// A register or shared memory that nothing has written decides an address, a branch or the like.
    UndefinedValue,
    /// Some lanes of a wave do not execute an instruction with `.aligned`.
    Aligned,
    /// A mask of lanes does not contain the lane, or contains lanes that do not execute the instruction.
    SyncMask,
    /// A lane reads the register of a lane that does not take part.
    LaneSource,
    /// A number of threads that no barrier can wait for.
    BarrierCount,
    /// Shared memory is accessed while an asynchronous copy to it is pending.
    AsyncCopy,
    /// A register is accessed while an asynchronous matrix product uses it.
    WarpgroupWait,
    /// A register is accessed before an asynchronous matrix product without a fence between both.
    WarpgroupFence,
    /// Memory is used as an mbarrier object although it is none, or the other way round.
    PhaseBarrier,
    /// An integer is divided by zero.
    DivisionByZero,
}

impl PtxRule {
    /// All rules.
    pub const ALL: [PtxRule; 10] = [
        PtxRule::UndefinedValue,
        PtxRule::Aligned,
        PtxRule::SyncMask,
        PtxRule::LaneSource,
        PtxRule::BarrierCount,
        PtxRule::AsyncCopy,
        PtxRule::WarpgroupWait,
        PtxRule::WarpgroupFence,
        PtxRule::PhaseBarrier,
        PtxRule::DivisionByZero,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            PtxRule::UndefinedValue => "undefined-value",
            PtxRule::Aligned => "aligned",
            PtxRule::SyncMask => "sync-mask",
            PtxRule::LaneSource => "lane-source",
            PtxRule::BarrierCount => "barrier-count",
            PtxRule::AsyncCopy => "async-copy",
            PtxRule::WarpgroupWait => "wgmma-wait",
            PtxRule::WarpgroupFence => "wgmma-fence",
            PtxRule::PhaseBarrier => "mbarrier",
            PtxRule::DivisionByZero => "division-by-zero",
        }
    }

    /// The remedy.
    pub(super) fn advice(self) -> &'static str {
        match self {
            PtxRule::UndefinedValue => {
                "initialize the register or shared memory on every path to this instruction"
            }
            PtxRule::Aligned => {
                "move the instruction to a place that all lanes of the wave reach together, or omit `.aligned` \
                 where PTX permits it"
            }
            PtxRule::SyncMask => "name exactly the lanes that execute the instruction together",
            PtxRule::LaneSource => {
                "read only from lanes that execute the instruction and are in its mask"
            }
            PtxRule::BarrierCount => "pass a multiple of 32 threads, at least 32",
            PtxRule::AsyncCopy => {
                "wait with cp.async.wait_group or cp.async.wait_all, in the thread that copies"
            }
            PtxRule::WarpgroupWait => "wait with wgmma.commit_group and wgmma.wait_group",
            PtxRule::WarpgroupFence => "insert wgmma.fence before the first wgmma.mma_async",
            PtxRule::PhaseBarrier => {
                "initialize the object once with mbarrier.init, access it only with mbarrier instructions, and \
                 let as many arrivals follow as it expects"
            }
            PtxRule::DivisionByZero => "test the divisor",
        }
    }

    /// The section of PTX's manual.
    pub(super) fn source(self) -> &'static str {
        match self {
            PtxRule::UndefinedValue => {
                "PTX ISA 9.1, \"Register State Space\", \"Shared State Space\""
            }
            PtxRule::Aligned => {
                "PTX ISA 9.1, \"bar, barrier\", \"mma\", \"wgmma\" and others, \".aligned\""
            }
            PtxRule::SyncMask => {
                "PTX ISA 9.1, \"shfl.sync\", \"vote.sync\" and others, \"membermask\""
            }
            PtxRule::LaneSource => "PTX ISA 9.1, \"shfl.sync\"",
            PtxRule::BarrierCount => "PTX ISA 9.1, \"bar, barrier\"",
            PtxRule::AsyncCopy => "PTX ISA 9.1, \"cp.async.wait_group, cp.async.wait_all\"",
            PtxRule::WarpgroupWait => "PTX ISA 9.1, \"wgmma.mma_async\", \"wgmma.wait_group\"",
            PtxRule::WarpgroupFence => "PTX ISA 9.1, \"wgmma.fence\"",
            PtxRule::PhaseBarrier => "PTX ISA 9.1, \"mbarrier\"",
            PtxRule::DivisionByZero => "PTX ISA 9.1, \"div\", \"rem\"",
        }
    }
}

impl fmt::Display for PtxRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
