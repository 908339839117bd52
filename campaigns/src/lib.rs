#![doc = include_str!("../../docs/campaigns.md")]
//!
//! # The library
//!
//! [`Campaign::read`] reads and validates a file. [`run()`], [`replay()`], [`trace()`], [`profile()`],
//! [`strict()`] and [`measure()`] execute it. [`json_schema()`] describes valid files. The library prints
//! nothing: it reports events to a [`Progress`], and a [`CancellationToken`] in the campaign stops it.

mod application;
mod attached;
mod commands;
mod digest;
mod error;
mod file;
#[cfg(test)]
mod format_tests;
mod golden;
mod harden;
mod outputs;
mod platform;
mod program;
mod results;
mod run;
mod sample;
mod severity;
mod shards;
mod submit;
mod vary;

pub use application::{
    Application, ApplicationError, ApplicationGolden, ApplicationRun, CommandLine, Compared,
    Comparison, Ended, Format, JudgedOutputs, JudgedRun, Limits, Nondeterminism, Output, Pattern,
    ProcessChoice, Similarity,
};
pub use attached::AttachError;
pub use commands::doctor::{Finding, doctor};
pub use commands::dry_run::{DryRun, dry_run};
pub use commands::emulate::{EmulatedInstruction, Emulation, Executed, emulate};
pub use commands::fidelity::fidelity;
pub use commands::profile::profile;
pub use commands::replay::{Replay, replay};
pub use commands::strict::strict;
pub use commands::tool::measure;
pub use commands::trace::{Traced, trace};
pub use error::CampaignError;
pub use file::campaign::{Campaign, CampaignWorkload, CaptureSource};
pub use file::device::CampaignDevice;
pub use file::element::ElementType;
pub use file::failures::failures;
pub use file::faults::Faults;
pub use file::json_schema::json_schema;
pub use file::kernels::{Argument, Buffer, BufferRole, Code, Kernels, Launch, Pointer};
pub use file::location::FileError;
pub use file::number::Number;
pub use file::schema::ResultsFormat;
pub use flipwave_sim::strict::StrictOptions;
pub use golden::expected::Unexpected;
pub use golden::save::{SavedComparison, SavedGolden, SavedOutput, save_golden};
pub use golden::suspicion::{Suspicion, SuspicionError};
pub use harden::{Escape, HardenOptions, HardeningError, Hardenings, RankedInstruction, harden};
pub use outputs::compare::{Difference, OutputFormat, OutputRole, Tolerance};
pub use outputs::extents::Extents;
pub use platform::{
    Addresses, CampaignTarget, CodeFile, DetectorCounter, DetectorMethod, DifferenceCounter,
    EmulatedDispatch, EmulatedRun, EmulationError, EmulationMethod, ExecutedProxy, HardenedModule,
    HardeningMethod, HookInjection, HookMethod, HookMethodError, LoadedDetector, LoadedMachine,
    LockstepSummary, Platform, ProgramLoader, RuleViolation, StrictError, StrictMethod, ToolMethod,
    ToolRun, register_platform,
};
pub use program::buffers::Init;
pub use program::cancellable::CancellableDevice;
pub use program::capture::ReplayError;
pub use program::compile::{CompileError, Compiler, Language};
pub use program::error::PrepareError;
pub use program::image::Image;
pub use program::launch::error::LaunchError;
pub use program::launch::{Launched, launch};
pub use program::object_file::{
    ObjectFileError, map_code_object, read_code_object, read_code_object_at,
};
pub use program::prepare::{Origin, Prepared, prepare};
pub use results::about::{ReadCampaignError, about};
pub use results::folder::FolderError;
pub use results::lock::LockError;
pub use results::record::{Record, Status, Timings, Versions};
pub use run::due_cause::DueCause;
pub use run::injection_path::InjectionPath;
pub use run::outcome::{Classifier, CompletedRun, MaskedCause, Verdict};
pub use run::process_site::{OtherProcessError, ProcessSite};
pub use run::progress::{Phase, Progress, Silent};
pub use run::resume::ResumeError;
pub use run::self_test::SelfTest;
pub use run::{Report, RunOptions, run};
pub use sample::{Allocation, Per, Sample, SampleSize};
pub use severity::{JudgeSettings, JudgeSource, Judgement, SeverityError};
pub use shards::{
    AttemptState, FolderStatus, MergeOptions, Merged, MergedFolder, Part, PartState, PartStatus,
    ShardError, ShardOptions, ShardPlan, ShardReport, ShardsStatus, VariantShard, VariantStatus,
    VariantsStatus, folder_status, merge, merge_folder, run_shard, run_variant_shards,
    shards_status,
};
pub use submit::{Engine, SubmitError, SubmitOptions, Submitted, submit};
pub use vary::{CampaignFile, FinishedVariant, Variant, Variants, VariantsReport, run_variants};

pub use flipwave_harden::Comparing;
pub use flipwave_injector::{CancellationToken, Running};
pub use flipwave_sim::{EnvironmentError, check_environment};
