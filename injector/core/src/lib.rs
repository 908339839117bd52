//! Fault injection into running GPU programs: what a fault is, what can be struck (profile), where
//! it strikes (site), one injection, and how its fault propagates (trace).
//!
//! The population is every (dynamic instruction x word x lane x bit) of what a fault's target and
//! scope name in the instructions selected. A site is absolute: it names the same event on every
//! run and device.

mod attendance;
mod boundaries;
mod cell;
mod change;
mod device_side;
mod fate;
mod fault;
mod fault_observer;
mod fidelity;
mod foresight;
mod golden;
mod injection;
mod injector;
mod kernel_name;
mod landmarks;
mod output;
mod population;
mod program;
mod rehearsal;
mod restart;
mod run;
mod site;
mod stored;
mod stream;
mod survey;
#[cfg(test)]
mod testing;
mod trace;
mod workload;

pub use attendance::{Attendance, Attended, Running};
pub use boundaries::Boundaries;
pub use change::Changes;
pub use device_side::{
    HookInjector, HookedCode, LaunchShape, OrderError, Refusal, SiteHooks, supports,
    unreached_by_hooks,
};
pub use fate::Fate;
pub use fault::{
    Action, Duration, Fault, FaultError, FaultModel, FaultTarget, FloatFormat, Intermittent,
    MaskDistribution, MasksError, MeasuredPair, MeasuredValues, RelativeError, Results, Scope,
    UnknownTarget, ValuesError, WrittenFaultModel,
};
pub use fault_observer::FaultObserver;
pub use fidelity::{
    DecisionRecord, DoubtRecord, Exactness, FidelityCounts, FidelityRecord, NoExactness,
    OperationRecord,
};
pub use foresight::foresee;
pub use golden::{Golden, GoldenError, instruction_limit};
pub use injection::{Ending, Injection, InjectionError, Struck};
pub use injector::{Accelerations, Injector};
pub use kernel_name::{demangled_kernel, kernel_is_called};
pub use landmarks::{Landmarks, landmarks};
pub use output::Output;
pub use population::{
    Allocation, Counting, Draw, DrawnPlace, EmptyPopulation, Foresight, Group, GroupPopulation,
    InstructionPopulation, KnownMasked, KnownPlaces, Lines, Plan, PlanError, Planned, Population,
    Profile, ProfileError, Sampling, Selection, Stage, Stratification, Stratum, StruckWorkgroups,
    UnknownGroup, UnknownStratification, Unreached, profile,
};
pub use program::{Buffer, Program};
pub use rehearsal::{Rehearsal, RehearsalLimits};
pub use restart::SavedStates;
pub use run::inject;
pub use site::{Event, Lanes, Place, Site, SiteError, SumPlace, Unit, When};
pub use stored::{StoredProfile, StoredTouched};
pub use survey::{Inquiry, Recorded, Survey, Touched, survey};
pub use trace::{
    Event as TraceEvent, Gone, LeftOut, Sample, Spread, Step, Trace, TraceEnding, TraceError, What,
    Wrong, WrongOutput, trace,
};
pub use workload::Workload;
