//! The command line.

use crate::cluster_arguments::{MergeArguments, StatusArguments, SubmitArguments};
use crate::gpus::GpusArgument;
use crate::results_arguments::{
    AgreementArguments, CompareArguments, FailuresArguments, RatesArguments, ReportArguments,
};
use crate::tool_arguments::{InspectArguments, ToolArguments};
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use flipwave_campaigns::{InjectionPath, Part, ProcessSite};
use flipwave_injector::Accelerations;
use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Injects faults into AMD GPU programs and reports what comes of it. No GPU is needed.
#[derive(Debug, Parser)]
#[command(name = "flipwave", version, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Environment:
  FLIPWAVE_CLANG        the compiler [default: clang-22, or an older one from clang-18 on, or clang]
  FLIPWAVE_DEVICE_LIBS  folder of AMD's device libraries (ockl.bc and others)
  FLIPWAVE_CACHE        folder of compiled kernels [default: ~/.cache/flipwave]
  FLIPWAVE_PYTHON       the Python of `severity: {python: ...}` [default: python3]
  FLIPWAVE_TIER         interpreter: nothing is compiled to code of the host
  NO_COLOR              print without colours

Exit codes: 0 done; 1 --strict found a broken rule, emulate another result than the version in
software, or golden another than is expected; 2 not done, with the reason on standard error.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a campaign: inject its faults, write and sum up their outcomes
    Run(RunArguments),
    /// Put the shards of a campaign together
    Merge(MergeArguments),
    /// Print how far a campaign in shards is
    Status(StatusArguments),
    /// Hand a campaign in shards to Slurm, to HyperQueue, or to processes of this machine
    Submit(SubmitArguments),
    /// Run a campaign's kernels once on this machine's GPU, through AMD's runtime
    Launch(LaunchArguments),
    /// Run a campaign's kernels once without a fault on the embedded GPU, and write what they compute to
    /// files
    Golden(GoldenArguments),
    /// Put rates beside published ones: which are inside of the intervals, and whether both put
    /// programs in the same order
    Agreement(AgreementArguments),
    /// Print the rates of a campaign by what its faults struck
    Rates(RatesArguments),
    /// Turn a campaign's probabilities into failures: FIT and the mean time between failures, from raw
    /// rates of faults
    Failures(FailuresArguments),
    /// Make a page of what campaigns came to: rates by kernel, line, instruction, register, bit
    Report(ReportArguments),
    /// Execute the instructions twice that most of the SDC comes from, as many as a budget allows, and
    /// inject the same faults again
    Harden(HardenArguments),
    /// Compare two campaigns: how rates differ, with intervals, and what the difference costs
    Compare(CompareArguments),
    /// Repeat one injection and print what it did
    Replay(ReplayArguments),
    /// Follow one fault through a program: how it spreads, and where it dies or gets out
    Trace(TraceArguments),
    /// Print what a campaign's faults can hit, without injecting any
    Profile(ProfileArguments),
    /// Print which operations of a program are exact on the embedded GPU, and what the others decide
    Fidelity(FidelityArguments),
    /// Print what the code of a code object looks like: functions, blocks, calls, registers
    Inspect(InspectArguments),
    /// Run a campaign's program or an application with a tool in its kernels; print a table
    Tool(ToolArguments),
    /// Run a program whose instructions the target lacks, each in the place of a proxy
    Emulate(EmulateArguments),
    /// Run a HIP application on the embedded GPU, under AMD's own runtime
    Exec(ExecArguments),
    /// Record a run of a HIP application, for campaigns without it
    Capture(CaptureArguments),
    /// Look for what this machine has and lacks, and say what works and what to do; exit code 0 if the
    /// embedded GPU can run campaigns
    Doctor,
    /// Print the JSON schema of campaign files, for editors
    Schema,
    /// Print what a shell completes command lines by
    Completions(CompletionsArguments),
    /// Write manual pages
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
For example: flipwave completions bash > ~/.local/share/bash-completion/completions/flipwave")]
pub struct CompletionsArguments {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManualArguments {
    /// Folder for the pages, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// The fault that a command is about.
#[derive(Debug, Args)]
pub struct SiteArguments {
    /// The fault site, as in the column `site` of results.csv
    #[arg(long, value_name = "SITE", required_unless_present = "row")]
    pub site: Option<ProcessSite>,
    /// The row of results.csv with this index, in place of its site
    #[arg(long, value_name = "N", conflicts_with = "site")]
    pub row: Option<u64>,
    /// Folder of the results with that row [default: NAME.results, NAME as in the campaign file]
    #[arg(long, value_name = "DIR", requires = "row")]
    pub results: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs AMD's runtime (libamdhip64, libhsa-runtime64 of ROCm 5.2) and no GPU. Output and exit code \
are the application's.")]
pub struct ExecArguments {
    #[command(flatten)]
    pub gpus: GpusArgument,
    /// Also report what breaks the rules of the hardware, when the application has ended
    #[arg(long)]
    pub strict: bool,
    /// With --strict, also report data races between waves
    #[arg(long, requires = "strict")]
    pub races: bool,
    /// Also print, when the application has ended, which of the operations executed are exact, and
    /// what the others decide
    #[arg(long, conflicts_with_all = ["strict", "threads"])]
    pub fidelity: bool,
    /// Threads that share the workgroups of a kernel, where their order does not matter [default: all
    /// processors]
    #[arg(long, value_name = "N", conflicts_with = "strict")]
    pub threads: Option<NonZeroUsize>,
    /// Share the workgroups of all kernels: those whose results depend on the order of workgroups
    /// differ from run to run, as on hardware
    #[arg(long, conflicts_with_all = ["strict", "fidelity"])]
    pub any_order: bool,
    /// Also print, when the application has ended, which kernels were executed, how often, and their
    /// wave instructions
    #[arg(long)]
    pub count: bool,
    /// The application and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The file has the run's code objects, its dispatches, and what was in memory for them: campaigns \
run on it without the application, with `workload: {capture: {file: ...}}`.")]
pub struct CaptureArguments {
    /// The file to write [default: NAME.capture, NAME as the application]
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub out: Option<PathBuf>,
    /// Replace the file
    #[arg(long)]
    pub force: bool,
    /// Print what is in a capture
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub list: Option<PathBuf>,
    /// The GPU
    #[arg(long, value_name = "GPU", default_value = "gfx90a", value_parser = gpus())]
    pub gpu: String,
    /// The application and its arguments
    #[arg(required_unless_present = "list", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// The GPUs that AMD's runtime can be given.
pub fn gpus() -> PossibleValuesParser {
    PossibleValuesParser::new(flipwave_agent::processors())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints how often each emulated instruction ran, and what waves executed in all, an emulated \
instruction counted as one; beside it the version in software, if the file has one, and whether \
its outputs are the same.")]
pub struct EmulateArguments {
    /// The file with the program and its instructions (YAML)
    pub file: PathBuf,
    /// Folder for the tables, instructions.csv and executed.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed in place of the file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The results folder gets results.csv (one row per injection), summary.csv and rates.svg (rates \
with intervals), and run.json (versions, timings, population). The same campaign \
file and seed always give the same results.csv. Of a file with `vary`, each variant has such a \
folder in the results folder, which gets results.csv and variants.csv of all of them.

Ctrl-C, SIGTERM and SIGHUP end the run with what is done on disk (exit code 2); a second one ends it \
at once.")]
pub struct RunArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Folder for the results [default: NAME.results, NAME as in the campaign file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<NonZeroUsize>,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Number of faults in place of the campaign file's `count`; with `until` at most
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,
    /// Only say what the campaign would be and how long it would take: runs without faults and tries
    /// a few injections, of which nothing is kept
    #[arg(long, conflicts_with_all = ["resume", "force", "take_over", "self_test", "shard"])]
    pub dry_run: bool,
    /// Go on with a run that was interrupted or killed: its rows count, and are not made again
    #[arg(long)]
    pub resume: bool,
    /// Replace results in the folder, of whichever campaign
    #[arg(long)]
    pub force: bool,
    /// Take the folder from a run on another machine, which has surely ended
    #[arg(long)]
    pub take_over: bool,
    /// Do without a way to be faster, to the same results; may be given several times
    #[arg(long, value_name = "WAY", value_enum)]
    pub without: Vec<AccelerationArgument>,
    /// How faults are injected [default: embedded; on another device hook]
    #[arg(long, value_name = "PATH", value_enum)]
    pub by: Option<PathArgument>,
    /// First inject faults whose outcomes are known; go on only if all come out as they must
    #[arg(long)]
    pub self_test: bool,
    /// Run a part of the campaign, whose folder many may write to at once: the third of 200 shards,
    /// 3/200, or injections 1000..2000 without the last. `flipwave merge` puts the parts together
    #[arg(long, value_name = "I/N", conflicts_with_all = ["resume", "force", "take_over", "self_test"])]
    pub shard: Option<Part>,
    /// Folder of this machine where the rows of a shard are until it is done [default: TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR", requires = "shard")]
    pub scratch: Option<PathBuf>,
    #[command(flatten)]
    pub strict: StrictArgument,
}

/// The worker threads that a run can have at most: more than any host has processors.
const MOST_WORKERS: usize = 1024;

pub fn workers(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|own: &NonZeroUsize| own.get() <= MOST_WORKERS);
    number.ok_or_else(|| format!("expected a number of threads, 1 to {MOST_WORKERS}"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs AMD's runtime (libhsa-runtime64), and a GPU of the campaign's target; without one, \
`flipwave exec -- flipwave launch ...` gives it the embedded GPU. No faults are injected.")]
pub struct LaunchArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Folder for what the output buffers hold afterwards
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
#[command(after_help = "\
DIR gets NAME.bin for each output, its elements little-endian, and golden.json, which says what they are. \
Exit code 1 where an output is not what the file `expected` of the campaign says.")]
pub struct GoldenArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Folder for what the outputs hold afterwards
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write all buffers, not the outputs alone
    #[arg(long)]
    pub all: bool,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

impl RunArguments {
    /// The ways to be faster that are left.
    pub fn accelerations(&self) -> Accelerations {
        let mut all = Accelerations::ALL;
        for without in &self.without {
            match without {
                AccelerationArgument::DeadValues => all.dead_values = false,
                AccelerationArgument::SavedStates => all.saved_states = false,
                AccelerationArgument::Convergence => all.convergence = false,
            }
        }
        all
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PathArgument {
    /// Inside of the embedded GPU
    Embedded,
    /// By hooks in rewritten code, as on any device
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
    /// Faults in values that nothing reads are not run
    DeadValues,
    /// Runs begin near the fault, and execute no workgroups that it cannot reach
    SavedStates,
    /// Runs end where they are in the state of the fault-free run again
    Convergence,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The folder has the hardened code objects, curve.csv and curve.svg with what each budget brings, \
instructions.csv with what it buys, and a folder of results for the plain program and for each budget. \
The exit code is 1 if a fault in a result that is compared has come to SDC.")]
pub struct HardenArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// What the program may execute, the instructions that it executes now being 1; several by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1.1,1.2,1.3,1.5,2")]
    pub budget: Vec<f64>,
    /// Rank instructions by every second fault alone, and give the coverage of the others
    #[arg(long)]
    pub hold_out: bool,
    /// Folder for the results [default: NAME.hardened, NAME as in the campaign file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<NonZeroUsize>,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Go on with what an earlier run has left in the folder
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Replace results in the folder
    #[arg(long)]
    pub force: bool,
    /// Take the folder from a run on another machine, which has surely ended
    #[arg(long)]
    pub take_over: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    #[command(flatten)]
    pub site: SiteArguments,
    /// Seed in place of the campaign file's; with --site give the one that the campaign was run with
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// How the fault is injected
    #[arg(long, value_name = "PATH", value_enum, default_value_t = PathArgument::Embedded)]
    pub by: PathArgument,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program with the fault beside itself without one, and compares the two after each \
instruction. Times are counted in instructions that waves executed since the fault, over all waves.")]
pub struct TraceArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    #[command(flatten)]
    pub site: SiteArguments,
    /// Folder for trace.csv and trace.svg
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed in place of the campaign file's; with --site give the one that the campaign was run with
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    #[command(flatten)]
    pub strict: StrictArgument,
    /// File for what each instruction adds, as a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program once without faults. An operation is exact, within a stated error, or not settled: \
no document says all of its bits. Results that are not settled are followed through registers and \
memory to where they are used as an address, or decide a branch or which lanes are active; results \
within a stated error through registers, also to comparisons and conversions to integers.")]
pub struct FidelityArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
}

#[derive(Debug, Args)]
pub struct VariantArgument {
    /// Which variant, of a campaign file with `vary`
    #[arg(id = "variant", long = "variant", value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct StrictArgument {
    /// First look, in a fault-free run, for what breaks the rules of the hardware; go on only if
    /// nothing does
    #[arg(long)]
    pub strict: bool,
    /// With --strict, also look for data races between waves
    #[arg(long, requires = "strict")]
    pub races: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_more_workers_than_a_host_can_have_are_taken() {
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

    #[test]
    fn a_malformed_site_is_refused() {
        let line = ["flipwave", "replay", "x.yaml", "--site", "dispatch=0"];
        assert!(Arguments::try_parse_from(line).is_err());
    }
}
