//! Fault injection into running GPU programs: what can be hit (profile), what a fault does
//! (model), where it strikes (site), and one injection.
//!
//! The population is every (dynamic instruction x written lane x destination bit) of the
//! instructions selected. A site is absolute: it names the same event on every run and device.

mod group;
mod injection;
mod model;
mod plan;
mod profile;
mod site;
mod workload;

pub use group::{Group, UnknownGroup};
pub use injection::{Ending, Injection, InjectionError, inject};
pub use model::{Action, FaultModel, UnknownModel};
pub use plan::{PlanError, plan};
pub use profile::{Population, Profile, profile};
pub use site::{Site, SiteSyntaxError};
pub use workload::{Golden, GoldenError, Output, Workload};
