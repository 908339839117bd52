//! Fault-injection campaigns: a YAML file in, a plan, runs on worker threads, outcomes, CSV out.
//!
//! A campaign is a function of its file and seed. The fault-free (golden) run gives the right
//! outputs, a profile gives the population of faults, a plan draws sites from it, and each
//! injection ends in exactly one outcome. `results.csv` has no wall-clock value and its rows
//! stand in the plan's order, so it is the same file for every number of workers.
//!
//! The library prints nothing: it tells a [`Progress`] what happens.

mod buffers;
mod campaign;
mod compare;
mod compile;
mod digest;
mod element;
mod error;
mod folder;
mod location;
mod outcome;
mod prepare;
mod profile;
mod progress;
mod record;
mod reorder;
mod replay;
mod results;
mod run;
mod schema;
mod workers;

pub use buffers::Init;
pub use campaign::{Argument, Buffer, Campaign, Code, Faults, FileError, Launch, SampleSize};
pub use compare::{Difference, Tolerance, compare};
pub use compile::{CompileError, Compiler, Language};
pub use element::{ElementType, Number};
pub use error::CampaignError;
pub use folder::FolderError;
pub use outcome::{Verdict, classify};
pub use prepare::{OutputFormat, PrepareError, Prepared, prepare};
pub use profile::profile;
pub use progress::{Phase, Progress, Silent};
pub use record::{Record, Status, Timings, Versions};
pub use replay::{Replay, replay};
pub use run::{Report, RunOptions, run};
