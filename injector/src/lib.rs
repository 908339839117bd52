//! Fault injection into running GPU programs: what can be hit (profile), what a fault does
//! (model), where it strikes (site), and one injection.
//!
//! The population is every (dynamic instruction x written lane x destination bit) of the
//! instructions selected. A site is absolute: it names the same event on every run and device.

mod destinations;
mod group;
mod injection;
mod instructions;
mod model;
mod plan;
mod population;
mod profile;
mod site;
mod stream;
#[cfg(test)]
mod testing;
mod workload;

pub use group::{Group, UnknownGroup};
pub use injection::{Ending, Injection, InjectionError, inject};
pub use model::{Action, FaultModel, UnknownModel};
pub use plan::{PlanError, Planned, plan};
pub use population::{GroupPopulation, InstructionPopulation, Population};
pub use profile::{Profile, profile};
pub use site::{Site, SiteError};
pub use workload::{Golden, GoldenError, Output, Workload, instruction_limit};
