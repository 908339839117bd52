//! Definitions of the command line.

use crate::cluster_arguments::{MergeArguments, StatusArguments, SubmitArguments};
use crate::gpus::{GpusArgument, parse_gpu};
use crate::results_arguments::{
    CompareArguments, ComparePublishedArguments, FitArguments, RatesArguments, ReportArguments,
};
use crate::tool_arguments::{InspectArguments, ToolArguments};
use clap::{Args, Parser, Subcommand, ValueEnum};
use flipwave_campaigns::{InjectionPath, Part};
use flipwave_injector::Accelerations;
use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Inject faults into GPU programs for AMD and PTX and classify the outcomes, without a GPU
#[derive(Debug, Parser)]
#[command(name = "flipwave", version, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Environment:
  FLIPWAVE_CLANG        compiler [default: clang-22, then older ones down to clang-18, then clang]
  FLIPWAVE_DEVICE_LIBS  folder of AMD's device libraries (ockl.bc and others)
  FLIPWAVE_LIBCLC       folder of libclc for OpenCL C on PTX [default: that of the package libclc-22]
  FLIPWAVE_CACHE        folder for compiled kernels [default: ~/.cache/flipwave]
  FLIPWAVE_PYTHON       Python interpreter for `severity: {python: ...}` [default: python3]
  FLIPWAVE_TIER         execution of GPU code: `interpreter` (no compilation to host code) or
                        `compiled-at-once` (compile in this process, before the second
                        execution) [default: compile frequent code in another process]
  FLIPWAVE_SIMD         host vector instructions: `avx2` or `plain` [default: the widest]
  NO_COLOR              disable colored output

Exit codes:
  0  success
  1  a check failed: --strict found a rule violation, emulate or golden a wrong output, harden
     an undetected SDC, or tool could not count everything
  2  any other error, explained on standard error";

/// Commands of earlier versions, with their present names.
const RENAMED: [(&str, &str); 2] = [("agreement", "compare-published"), ("failures", "fit")];

/// The present name of a renamed command.
pub fn renamed_command(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a fault-injection campaign and summarize its outcomes
    Run(RunArguments),
    /// Merge the shards of a campaign into one set of results
    Merge(MergeArguments),
    /// Show the progress of a sharded campaign
    Status(StatusArguments),
    /// Submit a sharded campaign to Slurm, HyperQueue or processes on this machine
    Submit(SubmitArguments),
    /// Run a campaign's kernels once on this machine's GPU through AMD's runtime
    Launch(LaunchArguments),
    /// Run a campaign's kernels once without faults and save their outputs
    Golden(GoldenArguments),
    /// Compare measured rates with published ones: intervals and rank correlation
    ComparePublished(ComparePublishedArguments),
    /// Print a campaign's outcome rates by kernel, line, instruction or register
    Rates(RatesArguments),
    /// Estimate failure rates (FIT) and the mean time between failures from raw fault rates
    Fit(FitArguments),
    /// Create an HTML report: rates by kernel, line, instruction, register and bit
    Report(ReportArguments),
    /// Duplicate the instructions that cause most SDC and measure the effect
    Harden(HardenArguments),
    /// Compare two campaigns: rate differences with intervals, and the cost in instructions
    Compare(CompareArguments),
    /// Repeat one injection and print its effect
    Replay(ReplayArguments),
    /// Trace how one fault propagates through a program
    Trace(TraceArguments),
    /// Print the fault space of a campaign without injecting faults
    Profile(ProfileArguments),
    /// Show which operations of a program the embedded GPU computes exactly
    Fidelity(FidelityArguments),
    /// Show the functions, blocks, calls and registers of a code object
    Inspect(InspectArguments),
    /// Instrument a campaign's program or an application with a tool and print its table
    Tool(ToolArguments),
    /// Run a program with emulated instructions in place of its proxy instructions
    Emulate(EmulateArguments),
    /// Run a HIP or CUDA application on the embedded GPU
    Exec(ExecArguments),
    /// Record a run of a HIP or CUDA application for campaigns that run without it
    Capture(CaptureArguments),
    /// Check what works on this machine and suggest fixes
    ///
    /// The exit code is 0 if the embedded GPU can run campaigns.
    Doctor,
    /// Print the JSON schema of campaign files, for editors
    Schema,
    /// Generate a completion script for a shell
    Completions(CompletionsArguments),
    /// Write manual pages to a folder
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
For example: flipwave completions bash > ~/.local/share/bash-completion/completions/flipwave")]
pub struct CompletionsArguments {
    /// Shell to generate the script for
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManualArguments {
    /// Folder for the pages, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Options that select the fault of a command.
#[derive(Debug, Args)]
pub struct SiteArguments {
    /// Inject at this fault site, written as in the column `site` of results.csv
    #[arg(long, value_name = "SITE", required_unless_present = "row")]
    pub site: Option<String>,
    /// Inject at the fault site of the row of results.csv with this index
    #[arg(long, value_name = "N", conflicts_with = "site")]
    pub row: Option<u64>,
    /// Read the row from the results in this folder [default: NAME.results, NAME as in the campaign file]
    #[arg(long, value_name = "DIR", requires = "row")]
    pub results: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs no GPU. HIP applications need AMD's runtime (libamdhip64 and libhsa-runtime64). They run with ROCm 5.2.3 \
(Debian 12), HIP 5.7 on ROCm 6.1 (Debian 13), ROCm 6.4 and ROCm 7.2; other versions have not been \
tested. Output and exit code are the application's.

With `--gpu sm_90`, applications for CUDA run without NVIDIA's software if they use the driver, or the \
shared runtime (`nvcc -cudart shared`), and contain PTX. One thread executes all kernels.")]
pub struct ExecArguments {
    #[command(flatten)]
    pub gpus: GpusArgument,
    /// Report violations of hardware rules after the application has ended
    #[arg(long)]
    pub strict: bool,
    /// With --strict, also report data races between waves
    #[arg(long, requires = "strict")]
    pub races: bool,
    /// Print which of the executed operations were exact after the application has ended
    #[arg(long, conflicts_with_all = ["strict", "threads"])]
    pub fidelity: bool,
    /// Divide a kernel's workgroups among up to N threads if their order does not matter [default: all
    /// processors]
    #[arg(long, value_name = "N", conflicts_with = "strict")]
    pub threads: Option<NonZeroUsize>,
    /// Divide the workgroups of every kernel among threads, even if results then vary from run to run
    #[arg(long, conflicts_with_all = ["strict", "fidelity"])]
    pub any_order: bool,
    /// Print each kernel's dispatches and wave instructions after the application has ended
    #[arg(long)]
    pub count: bool,
    /// Application and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The file holds the code objects of the run, its dispatches and the memory contents they read. Campaigns \
run from it without the application, with `workload: {capture: {file: ...}}`.")]
pub struct CaptureArguments {
    /// Write the capture to this file [default: NAME.capture, NAME as the application]
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Print the contents of a capture instead of recording one
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub list: Option<PathBuf>,
    /// With --list, also print mapped memory, copies and outputs, in recorded order
    #[arg(long, requires = "list")]
    pub maps: bool,
    /// GPU that the application finds, such as gfx90a, or sm_90 for CUDA
    #[arg(long, value_name = "GPU", default_value = "gfx90a", value_parser = parse_gpu)]
    pub gpu: String,
    /// Application and its arguments
    #[arg(required_unless_present = "list", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints how often each emulated instruction ran and how many instructions the waves executed in total; \
an emulated instruction counts as one. If the file has a software version, it runs too, and its outputs \
are compared with those of the emulated instructions.")]
pub struct EmulateArguments {
    /// Campaign file with the program and its emulated instructions (YAML)
    pub file: PathBuf,
    /// Also write the tables instructions.csv and executed.csv to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The results folder receives results.csv (one row per injection), summary.csv and rates.svg (rates \
with intervals), and run.json (versions, timings, fault space). The same campaign file and seed always \
produce the same results.csv. With `vary` in the file, each variant has such a folder inside the \
results folder, which also receives results.csv and variants.csv covering all variants.

Ctrl-C, SIGTERM and SIGHUP stop the run and keep the finished injections on disk (exit code 2); a second \
signal ends it immediately.")]
pub struct RunArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Write the results to this folder [default: NAME.results, NAME as in the campaign file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Use N worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<NonZeroUsize>,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Override the number of faults, `count` of the campaign file; with `until` the maximum
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,
    /// Estimate the campaign's size and duration from a golden run and a few trial injections
    #[arg(long, conflicts_with_all = ["resume", "force", "take_over", "self_test", "shard"])]
    pub dry_run: bool,
    /// Continue an interrupted or killed run, keeping its rows
    #[arg(long)]
    pub resume: bool,
    /// Replace existing results in the folder, even those of another campaign
    #[arg(long)]
    pub force: bool,
    /// Take over the results folder of a run on another machine that has certainly ended
    #[arg(long)]
    pub take_over: bool,
    /// Disable an optimization, which does not change the results (repeatable)
    #[arg(long, value_name = "WAY", value_enum)]
    pub without: Vec<AccelerationArgument>,
    /// Select the injection path [default: embedded; hook on other devices]
    #[arg(long, value_name = "PATH", value_enum)]
    pub by: Option<PathArgument>,
    /// First inject faults with known outcomes, and continue only if all outcomes are as expected
    #[arg(long)]
    pub self_test: bool,
    /// Run one shard, such as 3/200, or the injections of a range, such as 1000..2000
    ///
    /// The end of a range is exclusive. Several shards may run in the same results folder at the same
    /// time; `flipwave merge` combines them.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["resume", "force", "take_over", "self_test"])]
    pub shard: Option<Part>,
    /// Keep the rows of an unfinished shard in this local folder [default: TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR", requires = "shard")]
    pub scratch: Option<PathBuf>,
    #[command(flatten)]
    pub strict: StrictArgument,
}

/// The maximum number of worker threads of a run, more than any host has processors.
const MAX_WORKERS: usize = 1024;

/// Parses a number of worker threads.
pub fn workers(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|number: &NonZeroUsize| number.get() <= MAX_WORKERS);
    number.ok_or_else(|| format!("expected a number of threads, 1 to {MAX_WORKERS}"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs AMD's runtime (libhsa-runtime64) and a GPU of the campaign's target. Without such a GPU, \
`flipwave exec -- flipwave launch ...` provides the embedded one. No faults are injected.")]
pub struct LaunchArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Write the final contents of the output buffers to this folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Writes NAME.bin for each output (little-endian elements) and golden.json, which describes them. \
The exit code is 1 if an output differs from the file given with `expected` in the campaign.")]
pub struct GoldenArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Write the final contents of the outputs to this folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write all buffers, not only the outputs
    #[arg(long)]
    pub all: bool,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

impl RunArguments {
    /// The optimizations that are not disabled.
    pub fn accelerations(&self) -> Accelerations {
        let mut all = Accelerations::ALL;
        for without in &self.without {
            match without {
                AccelerationArgument::DeadValues => all.dead_values = false,
                AccelerationArgument::SavedStates => all.checkpoints = false,
                AccelerationArgument::Convergence => all.convergence = false,
            }
        }
        all
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PathArgument {
    /// Inject inside the embedded GPU
    Embedded,
    /// Inject with hooks in rewritten code, as on any device
    Hook,
}

impl From<PathArgument> for InjectionPath {
    fn from(path: PathArgument) -> InjectionPath {
        match path {
            PathArgument::Embedded => InjectionPath::Embedded,
            PathArgument::Hook => InjectionPath::Hook,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AccelerationArgument {
    /// Skip runs of faults in values that nothing reads
    DeadValues,
    /// Start runs from a checkpoint near the fault, without workgroups that it cannot reach
    SavedStates,
    /// End runs whose state is that of the golden run again
    Convergence,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The folder receives the hardened code objects or PTX modules, curve.csv and curve.svg (coverage by budget), \
instructions.csv (duplicated instructions by budget), and a results folder each for the original program \
and every budget. The exit code is 1 if a fault in a duplicated result caused an undetected SDC.")]
pub struct HardenArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Limit executed instructions to N times those of the original program (comma-separated list)
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1.1,1.2,1.3,1.5,2")]
    pub budget: Vec<f64>,
    /// Rank instructions by every second fault, and measure coverage on the other faults
    #[arg(long)]
    pub hold_out: bool,
    /// Write the results to this folder [default: NAME.hardened, NAME as in the campaign file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Use N worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<NonZeroUsize>,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Continue an earlier run in the folder, keeping its rows
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Replace existing results in the folder
    #[arg(long)]
    pub force: bool,
    /// Take over the folder of a run on another machine that has certainly ended
    #[arg(long)]
    pub take_over: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    #[command(flatten)]
    pub site: SiteArguments,
    /// Override the seed of the campaign file; with --site, give the seed of the original run
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Select the injection path
    #[arg(long, value_name = "PATH", value_enum, default_value_t = PathArgument::Embedded)]
    pub by: PathArgument,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program with and without the fault in lockstep and compares both after each instruction. \
Times are numbers of wave instructions executed since the fault, summed over all waves.")]
pub struct TraceArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    #[command(flatten)]
    pub site: SiteArguments,
    /// Also write trace.csv and trace.svg to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Override the seed of the campaign file; with --site, give the seed of the original run
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    #[command(flatten)]
    pub strict: StrictArgument,
    /// Also write the fault space of each instruction to this CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program once without faults. Each operation is exact, within a stated error, or not settled, \
which means that no document defines all bits of its result. Results that are not settled are tracked \
through registers and memory until they are used as an address, decide a branch or set the active lanes. \
Results within a stated error are tracked through registers, also to comparisons and conversions to \
integers.")]
pub struct FidelityArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
pub struct VariantArgument {
    /// Select a variant of a campaign file with `vary`
    #[arg(id = "variant", long = "variant", value_name = "NAME")]
    pub name: Option<String>,
    /// Override the target of the campaign file
    #[arg(long, value_name = "GPU")]
    pub target: Option<String>,
}

#[derive(Debug, Args)]
pub struct StrictArgument {
    /// First check a golden run for violations of hardware rules, and stop if there are any
    #[arg(long)]
    pub strict: bool,
    /// With --strict, also check for data races between waves
    #[arg(long, requires = "strict")]
    pub races: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn worker_count_is_limited_to_1024() {
        let run =
            |workers| Arguments::try_parse_from(["flipwave", "run", "x", "--workers", workers]);
        for workers in ["1", "1024"] {
            assert!(run(workers).is_ok(), "{workers}");
        }
        for workers in ["0", "1025", "1000000", "many"] {
            let error = run(workers).expect_err(workers).to_string();
            assert!(error.contains("1 to 1024"), "{error}");
        }
    }
}
