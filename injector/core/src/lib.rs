//! Fault injection into running GPU programs: fault models, the fault space (profile), fault sites,
//! injections, and the propagation of faults (trace).
//!
//! The fault space is every (dynamic instruction × word × lane × bit) that a fault's target and scope select
//! in the selected instructions. A site is absolute: it denotes the same event on every run and device.

mod cancellation;
mod checkpoints;
mod fault;
mod fault_space;
mod fidelity;
mod golden;
pub mod hooks;
mod inject;
pub mod method;
mod resolve;
mod site;
#[cfg(test)]
mod testing;
mod trace;
mod workload;

pub use cancellation::{CancellationToken, Running};
pub use checkpoints::Checkpoints;
pub use fault::{
    Action, Duration, Fault, FaultError, FaultFunction, FaultModel, FaultTarget, FloatFormat,
    FunctionCaller, FunctionError, FunctionInput, FunctionSource, FunctionValues, Intermittent,
    MaskDistribution, MasksError, MeasuredPair, MeasuredValues, RelativeError, Results, Scope,
    UnknownTarget, ValuesError, WrittenFaultModel,
};
pub use fault_space::{
    Allocation, Counting, Draw, DrawnSite, EmptyFaultSpace, FaultSpace, Group, GroupFaultSpace,
    InstructionFaultSpace, KnownMasked, Lines, MaskedSites, Plan, PlanError, Planned, Profile,
    ProfileError, Sampling, Selection, SiteAnalysis, Stage, Stratification, Stratum,
    StruckWorkgroups, UnknownGroup, UnknownStratification, Unreached, profile,
};
pub use fidelity::{DecisionRecord, DoubtRecord, FidelityCounts, FidelityRecord, OperationRecord};
pub use flipwave_machine::{Exactness, NoExactness};
pub use golden::checkpoints::DispatchCheckpoints;
pub use golden::profiling::{
    ProfiledRun, ProfilingOptions, RecordedRun, WorkgroupFootprints, run_with_profiling,
};
pub use golden::stored::{StoredFootprints, StoredProfile};
pub use golden::{Golden, GoldenError, instruction_limit};
pub use inject::fault_observer::FaultObserver;
pub use inject::injection::{Ending, InjectedChange, Injection, InjectionError};
pub use inject::injector::{Accelerations, Injector};
pub use inject::run::inject;
pub use resolve::def_use::NextUse;
pub use resolve::landmarks::{Landmarks, landmarks};
pub use resolve::resolving::{ResolvingLimits, ResolvingRun};
pub use resolve::site_analysis::analyze_site;
pub use site::{Event, Lanes, Place, Site, SiteError, SumPlace, UndeclaredRegister, Unit, When};
pub use trace::{
    Event as TraceEvent, Gone, LeftOut, Sample, Spread, Step, Trace, TraceEnding, TraceError, What,
    Wrong, WrongOutput, trace,
};
pub use workload::Workload;
pub use workload::change::Changes;
pub use workload::output::Output;
pub use workload::program::{Buffer, Program};
