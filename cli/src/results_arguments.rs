//! Command-line options of the commands that evaluate results.

use clap::Args;
use clap::builder::PossibleValuesParser;
use flipwave_analysis::Aggregates;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The report is one HTML file that needs no network. aggregates.csv has all of its rates. \
The same results always produce the same bytes.")]
pub struct ReportArguments {
    /// Results folders of `flipwave run` or `flipwave merge`
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Write the HTML page to this file
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
    /// Also write the rates to aggregates.csv in this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Search this folder for source files to annotate, after that of the campaign file (repeatable)
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Injections of the same faults are compared as pairs, others as independent samples. The page is one \
HTML file that needs no network. compare.csv has all of its differences.")]
pub struct CompareArguments {
    /// First results folder of `flipwave run` or `flipwave merge`, or its results.csv; or a folder of such
    /// folders, whose campaigns are compared with those of the same name in B
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Second results folder, or its results.csv; or a folder of such folders
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Write the HTML page to this file
    #[arg(long, value_name = "FILE", default_value = "compare.html")]
    pub out: PathBuf,
    /// Also write the differences to compare.csv in this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
FILE has the columns workload,outcome,rate,source. The workload is the name of a campaign. Workloads \
without both a measured and a published rate are ignored.")]
pub struct ComparePublishedArguments {
    /// Results folders of `flipwave run` or `flipwave merge`
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Read the published rates from this CSV file
    #[arg(long, value_name = "FILE")]
    pub published: PathBuf,
    /// Also write the comparison to this CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RatesArguments {
    /// Results folder of `flipwave run` or `flipwave merge`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Group the rates by this attribute
    #[arg(long, value_name = "WHAT", default_value = "kernel", value_parser = PossibleValuesParser::new(Aggregates::table_names()))]
    pub by: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example of a file of raw fault rates:

structures:
  registers:
    fit_per_bit: 1.0e-4
    bits: 33554432
    rows: {class: VGPR}

Raw rates are per bit, so the campaign needs a target that covers bits evenly: register, lds, \
global_memory or scratch.")]
pub struct FitArguments {
    /// Results folder of `flipwave run` or `flipwave merge`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Read the raw fault rates of the device's structures from this YAML file
    #[arg(long, value_name = "FILE")]
    pub rates: PathBuf,
    /// Also write the failure rates to this CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}
