//! `flipwave replay`.

use crate::Failure;
use crate::arguments::ReplayArguments;
use flipwave_campaigns::{Campaign, CampaignError, Replay};
use std::fmt::Write as _;
use std::io::Write as _;

pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let mut campaign = Campaign::read(&arguments.file).map_err(CampaignError::from)?;
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    let replay = flipwave_campaigns::replay(&campaign, &arguments.site)?;
    write!(std::io::stdout(), "site:           {}\n{}", arguments.site, description(&replay))?;
    Ok(())
}

/// What an injection did, one fact per line, under the names of the columns of results.csv.
fn description(replay: &Replay) -> String {
    let mut facts = vec![
        ("mask", format!("{:#010x}", replay.before ^ replay.after)),
        ("before", format!("{:#010x}", replay.before)),
        ("after", format!("{:#010x}", replay.after)),
        ("outcome", replay.verdict.outcome().to_string()),
    ];
    if let Some((dispatch, fault)) = &replay.fault {
        facts.push(("cause", fault.cause.name().to_owned()));
        facts.push(("fault", format!("in dispatch {dispatch}: {fault}")));
    }
    if let Some(difference) = replay.verdict.difference() {
        facts.push(("elements_wrong", difference.elements_wrong.to_string()));
        facts.push(("max_abs_error", format!("{:?}", difference.max_abs_error)));
        facts.push(("max_rel_error", format!("{:?}", difference.max_rel_error)));
    }
    facts.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<15} {value}", format!("{name}:"));
        text
    })
}
