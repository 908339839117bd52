//! `flipwave report`.

use crate::failure::Failure;
use crate::output;
use crate::results_arguments::ReportArguments;
use flipwave_analysis::{
    Aggregates, CampaignInfo, ReportedCampaign, Sources, report_html, write_aggregates,
};
use std::io::Write;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// The name of the CSV table.
const TABLE: &str = "aggregates.csv";

pub fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let mut reported = Vec::new();
    for folder in &arguments.folders {
        reported.push(read(folder, &arguments.source)?);
    }
    let failed = |file: &Path| {
        let file = file.display().to_string();
        move |reason: std::io::Error| Failure::File { file, reason: reason.to_string() }
    };
    let mut output = output::stdout();
    let page = &arguments.out;
    let html = report_html(&reported);
    flipwave_host::output::replace(page, html.as_bytes()).map_err(failed(page))?;
    writeln!(output, "report: {}", page.display())?;
    if let Some(folder) = &arguments.csv {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let file = folder.join(TABLE);
        let mut table = Vec::new();
        write_aggregates(&reported, &mut table)
            .map_err(|error| failed(&file)(std::io::Error::other(error)))?;
        flipwave_host::output::replace(&file, &table).map_err(failed(&file))?;
        writeln!(output, "table: {}", file.display())?;
    }
    Ok(())
}

/// Aggregates the results of a folder; finds source files in the folders `given` and that of its campaign
/// file.
fn read(folder: &Path, given: &[PathBuf]) -> Result<ReportedCampaign, Failure> {
    let (about, table) = flipwave_campaigns::about(folder)?;
    // Relative to the campaign file, if it still exists.
    let campaign_folder = about.file.as_ref().filter(|file| file.is_file()).map(|file| {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).to_owned()
    });
    let sources = Sources::new(given.iter().cloned().chain(campaign_folder).collect());
    Ok(ReportedCampaign { campaign: aggregates(folder, about, table)?, sources })
}

/// Aggregates the rows of `table`, the results table of a folder.
pub fn aggregates(
    folder: &Path,
    about: CampaignInfo,
    table: impl Read + Seek,
) -> Result<Aggregates, Failure> {
    let file = folder.join("results.csv").display().to_string();
    Aggregates::new(about, table)
        .map_err(|reason| Failure::File { file, reason: reason.to_string() })
}
