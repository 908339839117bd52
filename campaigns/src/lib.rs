#![doc = include_str!("../../docs/campaigns.md")]
//!
//! # The library
//!
//! [`Campaign::read`] checks a file; [`run()`], [`replay()`], [`trace()`], [`profile()`], [`strict()`] and
//! [`measure()`] carry it out. The library prints nothing: it reports to a [`Progress`] what
//! happens, and to the campaign's [`Attendance`] what runs; that can also stop it.
//! [`json_schema()`] is what a file may say.

mod about;
mod application;
mod attached;
mod buffers;
mod campaign;
mod capture;
mod check;
mod check_launches;
mod compare;
mod compared;
mod compile;
mod compiler_options;
mod context;
mod device;
mod device_libraries;
mod digest;
mod doctor;
mod dry_run;
mod element;
mod emulate;
mod error;
mod expected;
mod experiment;
mod extents;
mod failures;
mod fault_tables;
mod faults;
mod fidelity;
mod folder;
mod golden;
mod harden;
mod injection_path;
mod json_schema;
mod launch;
mod location;
mod lock;
mod number;
mod object_file;
mod outcome;
mod prepare;
mod process_site;
mod profile;
mod program;
mod progress;
mod read;
mod record;
mod reorder;
mod replay;
mod results;
mod resume;
mod row;
mod run;
mod runners;
mod sample;
mod save;
mod schema;
mod self_test;
mod severity;
mod shards;
mod strict;
mod submit;
mod suspicion;
mod tool;
mod trace;
mod triton;
mod vary;
mod windows;
mod workers;
mod yaml;

pub use about::{AboutError, about};
pub use application::{
    Application, ApplicationError, ApplicationGolden, CommandLine, Compared, Comparison, Ended,
    Format, Judged, Limits, Nondeterminism, Output, Pattern, ProcessChoice, Ran, Similarity,
};
pub use attached::AttachError;
pub use buffers::Init;
pub use campaign::{
    Argument, Buffer, BufferRole, Campaign, CampaignWorkload, CaptureSource, Code, Kernels, Launch,
};
pub use capture::ReplayError;
pub use compare::{Difference, OutputFormat, OutputRole, Tolerance};
pub use compile::{CompileError, Compiler, Language};
pub use device::CampaignDevice;
pub use doctor::{Finding, doctor};
pub use dry_run::{DryRun, dry_run};
pub use element::ElementType;
pub use emulate::{EmulatedInstruction, Emulation, Executed, emulate};
pub use error::CampaignError;
pub use expected::Unexpected;
pub use extents::Extents;
pub use failures::failures;
pub use faults::Faults;
pub use fidelity::fidelity;
pub use flipwave_sim::strict::StrictOptions;
pub use folder::FolderError;
pub use harden::{
    Escape, HardenOptions, HardeningError, Hardenings, InStep, RankedInstruction, harden,
};
pub use injection_path::InjectionPath;
pub use json_schema::json_schema;
pub use launch::{LaunchError, Launched, launch};
pub use location::FileError;
pub use lock::LockError;
pub use number::Number;
pub use object_file::{ObjectFileError, map_code_object, read_code_object};
pub use outcome::{Classifier, CompletedRun, MaskedCause, Verdict};
pub use prepare::{Origin, PrepareError, Prepared, prepare};
pub use process_site::{OtherProcessError, ProcessSite};
pub use profile::profile;
pub use progress::{Phase, Progress, Silent};
pub use record::{Record, Status, Timings, Versions};
pub use replay::{Replay, replay};
pub use resume::ResumeError;
pub use run::{Report, RunOptions, run};
pub use sample::{Allocation, Per, Sample, SampleSize};
pub use save::{SavedComparison, SavedGolden, SavedOutput, save_golden};
pub use schema::ResultsFormat;
pub use self_test::SelfTest;
pub use severity::{JudgeSettings, JudgeSource, Judgement, SeverityError};
pub use shards::{
    AttemptState, FolderStatus, MergeOptions, Merged, MergedFolder, Part, PartState, PartStatus,
    ShardError, ShardOptions, ShardPlan, ShardReport, ShardsStatus, VariantShard, VariantStatus,
    VariantsStatus, folder_status, merge, merge_folder, run_shard, run_variant_shards,
    shards_status,
};
pub use strict::strict;
pub use submit::{Engine, SubmitError, SubmitOptions, Submitted, submit};
pub use suspicion::{Suspicion, SuspicionError};
pub use tool::measure;
pub use trace::{Traced, trace};
pub use vary::{CampaignFile, FinishedVariant, Variant, Variants, VariantsReport, run_variants};

pub use flipwave_harden::Comparing;
pub use flipwave_injector::{Attendance, Running};
pub use flipwave_sim::{EnvironmentError, check_environment};
