//! `flipwave replay`.

use crate::arguments::ReplayArguments;
use crate::failure::Failure;
use crate::fault::context_json;
use crate::output;
use crate::site::campaign_and_site;
use flipwave_analysis::Outcome;
use flipwave_campaigns::Replay;
use flipwave_device::FaultContext;
use flipwave_host::output::float_text;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::Write as _;

pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let ReplayArguments { file, site, seed, variant, by, json } = arguments;
    let (campaign, site) = campaign_and_site(file, variant, *seed, site)?;
    let replay = flipwave_campaigns::replay(&campaign, site, (*by).into())?;
    let facts = [("site", Fact::Text(site.to_string()))].into_iter().chain(facts(&replay));
    let text = if *json { json_text(facts) } else { plain_text(facts) };
    Ok(output::stdout().write_all(text.as_bytes())?)
}

/// A value of an injection's effect.
enum Fact<'a> {
    Text(String),
    /// Text whose first line is complete by itself. JSON has the other lines as [`Fact::Context`].
    Report {
        text: String,
    },
    /// State of the faulting wave, which text has in the report.
    Context(&'a FaultContext),
    /// Bits of a value.
    Word(u64),
    Count(u64),
    /// A count that can be negative.
    Change(i64),
    Number(f64),
    Flag(bool),
}

/// Returns the effect of an injection, named like the columns of results.csv.
fn facts(replay: &Replay) -> Vec<(&'static str, Fact<'_>)> {
    let (struck, verdict) = (&replay.struck, &replay.verdict);
    let mut facts = vec![
        ("flip_mask", Fact::Word(struck.mask())),
        ("before", Fact::Word(struck.before)),
        ("after", Fact::Word(struck.after)),
        ("words", Fact::Count(struck.words)),
        ("outcome", Fact::Text(verdict.outcome().to_string())),
    ];
    facts.extend(verdict.cause().map(|cause| ("cause", Fact::Text(cause.to_owned()))));
    if let Some(judgement) = verdict.judgement() {
        facts.push(("severity", Fact::Text(judgement.severity.to_string())));
        let measures = judgement.measures.clone();
        facts.extend(measures.map(|measures| ("measures", Fact::Text(measures))));
    }
    if let Some((dispatch, fault)) = &replay.fault {
        let report = fault.report(replay.fault_line.as_ref());
        let text = format!("in dispatch {dispatch}: {report}");
        facts.push(("fault", Fact::Report { text }));
        let context = fault.context.as_deref();
        facts.extend(context.map(|context| ("fault_context", Fact::Context(context))));
    }
    if let Some(run) = verdict.run() {
        facts.push(("elements_wrong", Fact::Count(run.difference.elements_wrong)));
        facts.push(("max_abs_error", Fact::Number(run.difference.max_abs_error)));
        facts.push(("max_rel_error", Fact::Number(run.difference.max_rel_error)));
        let shape = run.difference.shape;
        facts.extend(shape.map(|shape| ("error_pattern", Fact::Text(shape.to_string()))));
        facts.push(("nan_elements", Fact::Count(run.difference.nan)));
        facts.push(("inf_elements", Fact::Count(run.difference.inf)));
        facts.extend(run.instructions.map(|more| ("instructions", Fact::Change(more))));
        let timing = run.timing_changed.filter(|_| verdict.outcome() == Outcome::Masked);
        facts.extend(timing.map(|changed| ("timing_changed", Fact::Flag(changed))));
    }
    facts
}

/// Formats facts as text, one per line.
fn plain_text<'a>(facts: impl Iterator<Item = (&'static str, Fact<'a>)>) -> String {
    facts.fold(String::new(), |mut text, (name, fact)| {
        let name = format!("{name}:");
        // Writing to a string cannot fail.
        let _ = match fact {
            Fact::Text(value) | Fact::Report { text: value } => {
                writeln!(text, "{name:<15} {value}")
            }
            Fact::Context(_) => Ok(()),
            Fact::Word(value) => writeln!(text, "{name:<15} {value:#010x}"),
            Fact::Count(value) => writeln!(text, "{name:<15} {value}"),
            Fact::Change(value) => writeln!(text, "{name:<15} {value}"),
            Fact::Number(value) => writeln!(text, "{name:<15} {value:?}"),
            Fact::Flag(value) => writeln!(text, "{name:<15} {value}"),
        };
        text
    })
}

/// Formats facts as a JSON object. Words are numbers; errors that are not finite are text, because JSON
/// has no such numbers.
fn json_text<'a>(facts: impl Iterator<Item = (&'static str, Fact<'a>)>) -> String {
    let object: Map<String, Value> = facts
        .map(|(name, fact)| {
            let value = match fact {
                Fact::Text(value) => value.into(),
                Fact::Report { text } => text.lines().next().into(),
                Fact::Context(context) => context_json(context),
                Fact::Word(value) => value.into(),
                Fact::Count(value) => value.into(),
                Fact::Change(value) => value.into(),
                Fact::Number(value) if !value.is_finite() => float_text(value).into(),
                Fact::Number(value) => value.into(),
                Fact::Flag(value) => value.into(),
            };
            (name.to_owned(), value)
        })
        .collect();
    // Maps with text as keys are always JSON.
    serde_json::to_string_pretty(&object).unwrap_or_default() + "\n"
}
