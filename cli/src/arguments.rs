//! The command line.

use clap::{Args, Parser, Subcommand};
use flipwave_injector::Site;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Injects faults into AMD GPU programs and tells what comes of it. No GPU is needed.
#[derive(Debug, Parser)]
#[command(name = "flipwave", version, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Environment:
  FLIPWAVE_CLANG        the compiler [default: clang-19]
  FLIPWAVE_DEVICE_LIBS  folder of AMD's device libraries (ockl.bc and others)
  FLIPWAVE_CACHE        folder of compiled kernels [default: ~/.cache/flipwave]
  NO_COLOR              print without colours

Exit codes: 0 done; 1 --strict found a broken rule; 2 not done, with the reason on standard error.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a campaign: inject its faults, write and sum up their outcomes
    Run(RunArguments),
    /// Repeat one injection and print what it did
    Replay(ReplayArguments),
    /// Print what a campaign's faults can hit, without injecting any
    Profile(ProfileArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The results folder gets results.csv (one row per injection), summary.csv and rates.svg (rates \
with 95 % Wilson intervals), and run.json (versions, timings, population). The same campaign \
file and seed always give the same results.csv.

Ctrl-C ends the run with what is done on disk (exit code 2); a second Ctrl-C ends it at once.")]
pub struct RunArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Folder for the results [default: NAME.results, NAME as in the campaign file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Replace results in the folder that are of another campaign or seed
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub strict: StrictArgument,
}

#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// The fault site, as in the column `site` of results.csv
    #[arg(long, value_name = "SITE")]
    pub site: Site,
    /// Seed in place of the campaign file's; give the one that the campaign was run with
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub strict: StrictArgument,
}

#[derive(Debug, Args)]
pub struct StrictArgument {
    /// First look, in a fault-free run, for what breaks the rules of the hardware; go on only if
    /// nothing does
    #[arg(long)]
    pub strict: bool,
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
    fn a_malformed_site_is_refused() {
        let line = ["flipwave", "replay", "x.yaml", "--site", "dispatch=0"];
        assert!(Arguments::try_parse_from(line).is_err());
    }
}
