//! Special registers (PTX ISA, "Special Registers").

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SpecialRegister {
    Tid,
    Ntid,
    LaneId,
    WarpId,
    NwarpId,
    CtaId,
    NctaId,
    SmId,
    NsmId,
    GridId,
    IsExplicitCluster,
    ClusterId,
    NclusterId,
    ClusterCtaId,
    ClusterNctaId,
    ClusterCtaRank,
    ClusterNctaRank,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    TotalSharedBytes,
    AggregateSharedBytes,
    DynamicSharedBytes,
    CurrentGraphExec,
    /// `%envreg0` to `%envreg31`.
    Environment(u8),
    /// `%pm0` to `%pm7`.
    PerformanceCounter(u8),
}

/// Special registers with fixed names.
const NAMES: [(SpecialRegister, &str); 32] = [
    (SpecialRegister::Tid, "%tid"),
    (SpecialRegister::Ntid, "%ntid"),
    (SpecialRegister::LaneId, "%laneid"),
    (SpecialRegister::WarpId, "%warpid"),
    (SpecialRegister::NwarpId, "%nwarpid"),
    (SpecialRegister::CtaId, "%ctaid"),
    (SpecialRegister::NctaId, "%nctaid"),
    (SpecialRegister::SmId, "%smid"),
    (SpecialRegister::NsmId, "%nsmid"),
    (SpecialRegister::GridId, "%gridid"),
    (SpecialRegister::IsExplicitCluster, "%is_explicit_cluster"),
    (SpecialRegister::ClusterId, "%clusterid"),
    (SpecialRegister::NclusterId, "%nclusterid"),
    (SpecialRegister::ClusterCtaId, "%cluster_ctaid"),
    (SpecialRegister::ClusterNctaId, "%cluster_nctaid"),
    (SpecialRegister::ClusterCtaRank, "%cluster_ctarank"),
    (SpecialRegister::ClusterNctaRank, "%cluster_nctarank"),
    (SpecialRegister::LaneMaskEq, "%lanemask_eq"),
    (SpecialRegister::LaneMaskLe, "%lanemask_le"),
    (SpecialRegister::LaneMaskLt, "%lanemask_lt"),
    (SpecialRegister::LaneMaskGe, "%lanemask_ge"),
    (SpecialRegister::LaneMaskGt, "%lanemask_gt"),
    (SpecialRegister::Clock, "%clock"),
    (SpecialRegister::ClockHi, "%clock_hi"),
    (SpecialRegister::Clock64, "%clock64"),
    (SpecialRegister::GlobalTimer, "%globaltimer"),
    (SpecialRegister::GlobalTimerLo, "%globaltimer_lo"),
    (SpecialRegister::GlobalTimerHi, "%globaltimer_hi"),
    (SpecialRegister::TotalSharedBytes, "%total_smem_size"),
    (SpecialRegister::AggregateSharedBytes, "%aggr_smem_size"),
    (SpecialRegister::DynamicSharedBytes, "%dynamic_smem_size"),
    (SpecialRegister::CurrentGraphExec, "%current_graph_exec"),
];

impl SpecialRegister {
    /// The special register with a name, which begins with `%`.
    pub fn parse(name: &str) -> Option<SpecialRegister> {
        let numbered = |prefix: &str, count: u8| {
            let number: u8 = name.strip_prefix(prefix)?.parse().ok()?;
            (number < count).then_some(number)
        };
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known
            .map(|(register, _)| *register)
            .or_else(|| numbered("%envreg", 32).map(SpecialRegister::Environment))
            .or_else(|| numbered("%pm", 8).map(SpecialRegister::PerformanceCounter))
    }
}

/// An element of a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpecialOperand {
    /// The register.
    pub register: SpecialRegister,
    /// The element of a vector: 0 for `.x`; 0 for scalars.
    pub element: u8,
}
