//! The command line of what is made of results.

use clap::Args;
use clap::builder::PossibleValuesParser;
use flipwave_analysis::Aggregates;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file of HTML, which needs no network. Rates of all kinds are in aggregates.csv, too. \
The same results give the same bytes.")]
pub struct ReportArguments {
    /// Folders with results of `flipwave run` or `flipwave merge`
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// File for the page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
    /// Folder for the rates as a table, aggregates.csv
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Folder with source files, to be shown with the rates of their lines; the campaign file's is
    /// one, where that is still there. May be given several times
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Injections of the same faults are compared pair by pair, others as independent samples. The page is one \
file of HTML, which needs no network; all that was compared is in compare.csv, too.")]
pub struct CompareArguments {
    /// Folder with results of `flipwave run` or `flipwave merge`, or its results.csv
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The same of what is compared with it
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// File for the page
    #[arg(long, value_name = "FILE", default_value = "compare.html")]
    pub out: PathBuf,
    /// Folder for the differences as a table, compare.csv
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
FILE has the columns workload,outcome,rate,source. A workload is the name of a campaign; those that \
are not in both are left out.")]
pub struct AgreementArguments {
    /// Folders with results of `flipwave run` or `flipwave merge`
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// File with the published rates (CSV)
    #[arg(long, value_name = "FILE")]
    pub published: PathBuf,
    /// File for the rates as a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RatesArguments {
    /// Folder with results of `flipwave run` or `flipwave merge`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// By what
    #[arg(long, value_name = "WHAT", default_value = "kernel", value_parser = PossibleValuesParser::new(Aggregates::table_names()))]
    pub by: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The file of raw rates, like this:

structures:
  registers:
    fit_per_bit: 1.0e-4
    bits: 33554432
    rows: {class: VGPR}

A campaign with target register, lds, global_memory or scratch gives probabilities that go with rates of \
bits.")]
pub struct FailuresArguments {
    /// Folder with results of `flipwave run` or `flipwave merge`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// How often faults happen in which structures (YAML)
    #[arg(long, value_name = "FILE")]
    pub rates: PathBuf,
    /// File for the failures as a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}
