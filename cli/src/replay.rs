//! `flipwave replay`.

use crate::arguments::ReplayArguments;
use crate::failure::Failure;
use crate::output;
use crate::site::campaign_and_site;
use flipwave_analysis::Outcome;
use flipwave_campaigns::Replay;
use std::fmt::Write as _;
use std::io::Write as _;

pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let ReplayArguments { file, site, seed, variant, by } = arguments;
    let (campaign, site) = campaign_and_site(file, variant, *seed, site)?;
    let replay = flipwave_campaigns::replay(&campaign, site, (*by).into())?;
    write!(output::stdout(), "site:           {site}\n{}", description(&replay))?;
    Ok(())
}

/// Formats the effect of an injection, one fact per line, named like the columns of results.csv.
fn description(replay: &Replay) -> String {
    let (struck, verdict) = (&replay.struck, &replay.verdict);
    let mut facts = vec![
        ("flip_mask", format!("{:#010x}", struck.mask())),
        ("before", format!("{:#010x}", struck.before)),
        ("after", format!("{:#010x}", struck.after)),
        ("words", struck.words.to_string()),
        ("outcome", verdict.outcome().to_string()),
    ];
    facts.extend(verdict.cause().map(|cause| ("cause", cause.to_owned())));
    if let Some(judgement) = verdict.judgement() {
        facts.push(("severity", judgement.severity.to_string()));
        facts.extend(judgement.measures.clone().map(|measures| ("measures", measures)));
    }
    if let Some((dispatch, fault)) = &replay.fault {
        facts.push(("fault", format!("in dispatch {dispatch}: {fault}")));
    }
    if let Some(run) = verdict.run() {
        facts.push(("elements_wrong", run.difference.elements_wrong.to_string()));
        facts.push(("max_abs_error", format!("{:?}", run.difference.max_abs_error)));
        facts.push(("max_rel_error", format!("{:?}", run.difference.max_rel_error)));
        facts.extend(run.difference.shape.map(|shape| ("error_pattern", shape.to_string())));
        facts.push(("nan_elements", run.difference.nan.to_string()));
        facts.push(("inf_elements", run.difference.inf.to_string()));
        facts.extend(run.instructions.map(|more| ("instructions", more.to_string())));
        let timing = run.timing_changed.filter(|_| verdict.outcome() == Outcome::Masked);
        facts.extend(timing.map(|changed| ("timing_changed", changed.to_string())));
    }
    facts.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<15} {value}", format!("{name}:"));
        text
    })
}
