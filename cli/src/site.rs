//! The fault site that a command line selects: as text, or as a row of results.

use crate::arguments::{SiteArguments, VariantArgument};
use crate::failure::Failure;
use crate::{campaign, run};
use flipwave_campaigns::{Campaign, ProcessSite};
use std::io::BufReader;
use std::path::Path;

/// Reads the campaign of a file and the selected fault site. For a row of results, the campaign gets the
/// seed of those results, unless the command line has one.
pub fn campaign_and_site(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
    arguments: &SiteArguments,
) -> Result<(Campaign, ProcessSite), Failure> {
    let mut campaign = campaign::read(file, variant, seed)?;
    let Some(row) = arguments.row else {
        // Argument parsing requires one of the two.
        let text = arguments.site.as_ref();
        let text = text.ok_or_else(|| failed(file, "expected --site or --row"))?;
        let site = ProcessSite::parse(text, campaign.target.architecture());
        let site = site.map_err(|reason| failed(Path::new("--site"), reason))?;
        return Ok((campaign, site));
    };
    let results = run::results_folder(arguments.results.as_ref(), &campaign.name);
    let folder = variant.name.as_ref().map_or(results.clone(), |name| results.join(name));
    let site = site_of(row, &folder.join("results.csv"), &campaign)?;
    if seed.is_none() {
        campaign.seed = recorded_seed(&folder.join("run.json"))?;
    }
    Ok((campaign, site))
}

/// Finds the site of the row with this index.
fn site_of(index: u64, table: &Path, campaign: &Campaign) -> Result<ProcessSite, Failure> {
    let text = flipwave_host::input::open_lines(table).map_err(|reason| failed(table, reason))?;
    let rows = flipwave_analysis::rows(BufReader::new(text));
    let mut count = 0;
    for row in rows.map_err(|reason| failed(table, reason))? {
        let row = row.map_err(|reason| failed(table, reason))?;
        if row.injection == index {
            let site = ProcessSite::parse(&row.site, campaign.target.architecture());
            return site.map_err(|reason| failed(table, format!("row {index}: {reason}")));
        }
        count += 1;
    }
    Err(failed(table, format!("no row {index}; the table has {count} rows, starting at 0")))
}

/// Reads the seed of results from their run.json.
fn recorded_seed(record: &Path) -> Result<u64, Failure> {
    let text = flipwave_host::input::read(record, flipwave_host::input::RECORD)
        .map_err(|reason| failed(record, reason))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|reason| failed(record, reason))?;
    let seed = value["campaign"]["seed"].as_u64();
    seed.ok_or_else(|| failed(record, "missing `campaign.seed`; specify the seed with --seed"))
}

fn failed(file: &Path, reason: impl ToString) -> Failure {
    Failure::File { file: file.display().to_string(), reason: reason.to_string() }
}
