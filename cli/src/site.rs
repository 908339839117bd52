//! The fault that a command is about: as text, or as a row of results.

use crate::arguments::{SiteArguments, VariantArgument};
use crate::{Failure, campaign, run};
use flipwave_campaigns::{Campaign, ProcessSite};
use std::io::BufReader;
use std::path::Path;

/// The campaign of a file and the site that is asked for. Of a row, the campaign has the seed that its
/// results were made with, unless the command line says one.
pub fn campaign_and_site(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
    arguments: &SiteArguments,
) -> Result<(Campaign, ProcessSite), Failure> {
    let mut campaign = campaign::read(file, variant, seed)?;
    let Some(row) = arguments.row else {
        // One of the two is there, or the command line is refused.
        let site = arguments.site.ok_or_else(|| failed(file, "expected --site or --row"))?;
        return Ok((campaign, site));
    };
    let all = run::folder(arguments.results.as_ref(), &campaign.name);
    let folder = variant.name.as_ref().map_or(all.clone(), |name| all.join(name));
    let site = site_of(row, &folder.join("results.csv"))?;
    if seed.is_none() {
        campaign.seed = recorded_seed(&folder.join("run.json"))?;
    }
    Ok((campaign, site))
}

/// The site of the row with this index.
fn site_of(index: u64, table: &Path) -> Result<ProcessSite, Failure> {
    let wrong = |reason: String| failed(table, reason);
    let text =
        flipwave_host::input::open_lines(table).map_err(|reason| wrong(reason.to_string()))?;
    let rows = flipwave_analysis::rows(BufReader::new(text));
    let mut count = 0;
    for row in rows.map_err(|reason| wrong(reason.to_string()))? {
        let row = row.map_err(|reason| wrong(reason.to_string()))?;
        if row.index == index {
            return row.site.parse().map_err(|reason| wrong(format!("row {index}: {reason}")));
        }
        count += 1;
    }
    Err(wrong(format!("it has no row {index}; it has {count}, from 0 on")))
}

/// The seed that results were made with.
fn recorded_seed(record: &Path) -> Result<u64, Failure> {
    let text = flipwave_host::input::read(record, flipwave_host::input::RECORD)
        .map_err(|reason| failed(record, reason))?;
    let record_of: serde_json::Value =
        serde_json::from_slice(&text).map_err(|reason| failed(record, reason))?;
    let seed = record_of["campaign"]["seed"].as_u64();
    seed.ok_or_else(|| failed(record, "it does not say the campaign's seed; give it with --seed"))
}

fn failed(file: &Path, reason: impl ToString) -> Failure {
    Failure::File { file: file.display().to_string(), reason: reason.to_string() }
}
