//! The fault space: every site that a fault can hit, counted, numbered and resolved.
//!
//! A profile counts sites; a plan draws site numbers and resolves them, a batch at a time, in one more
//! run.

mod collected;
mod counter;
mod draw;
mod execution_sites;
mod instructions;
mod passages;
mod permanent;
mod permutation;
mod plan;
mod planned;
mod profile;
mod resolver;
mod selection;
mod size;
mod strata;
mod struck;
mod unreached;
mod unread;
mod words;

pub use flipwave_arch::{Group, UnknownGroup};
pub(crate) use instructions::Frame;
pub use instructions::KnownMasked;
pub use plan::{DrawnSite, Plan, PlanError, Sampling, Stage};
pub(crate) use plan::{FaultsOfWaves, Search};
pub use planned::{Planned, SiteAnalysis};
pub use profile::{Counting, Profile, ProfileError, Stratum, profile};
pub(crate) use profile::{Profiler, StratumSites};
pub use selection::{Lines, Selection};
pub use size::{EmptyFaultSpace, FaultSpace, GroupFaultSpace, InstructionFaultSpace, MaskedSites};
pub use strata::{Allocation, Stratification, UnknownStratification};
pub use struck::StruckWorkgroups;
pub use unreached::Unreached;

#[cfg(test)]
pub(crate) use counter::Execution;
pub(crate) use counter::FaultSpaceCounter;
pub use execution_sites::Draw;
pub(crate) use execution_sites::ExecutionSites;
pub(crate) use permanent::workgroups;
pub use words::{Resources, Words, result_word, words};
