//! Source files, with what came of faults beside each line.

use super::rates::shown_name;
use super::text::{count, percent, rate_cell};
use crate::plot::escaped;
use crate::report::aggregates::Aggregates;
use crate::report::chart::Scale;
use crate::report::key::{Dimension, Key};
use crate::report::sources::{Sources, split_line};
use crate::{Outcome, ScopeSummary};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of a file that is shown whole; of a longer one only what is near lines that were struck.
const WHOLE: usize = 400;
/// How near.
const NEAR: u64 = 3;
/// Lines at most, and files.
const LINES: usize = 1500;
const FILES: usize = 12;
/// Letters of a line.
const LETTERS: usize = 200;

type Lines<'a> = BTreeMap<u64, &'a ScopeSummary<Key>>;

/// The lines that were struck, by the name of their file.
fn files(campaign: &Aggregates) -> BTreeMap<&str, Lines<'_>> {
    let mut files: BTreeMap<&str, Lines<'_>> = BTreeMap::new();
    for rates in campaign.rates_by(Dimension::Line) {
        let Key::Line(name) = rates.scope else { continue };
        if let Some((file, line)) = split_line(campaign.text(name)) {
            files.entry(file).or_default().insert(line, rates);
        }
    }
    files
}

/// The text of the line that a name such as `matmul.cl:12` means, where it can be read.
pub(super) fn line_text(sources: &Sources, name: &str) -> Option<String> {
    let (file, line) = split_line(name)?;
    let text = sources.read(file).ok()?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    text.lines().nth(index).map(|line| shortened(line.trim()))
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

pub(super) fn sources(html: &mut String, campaign: &Aggregates, found: &Sources, prefix: &str) {
    let files = files(campaign);
    let part = |lines: &Lines<'_>| -> f64 {
        lines.values().map(|rates| campaign.share_of_sdc(rates)).sum()
    };
    let mut sorted: Vec<_> = files.into_iter().map(|own| (part(&own.1), own)).collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    if sorted.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<h3 id=\"{prefix}source\">Annotated source</h3><p>A stronger colour is more of all SDC. Lines without \
         figures were not struck.</p>"
    );
    let scale =
        Scale::of(campaign.rates_by(Dimension::Line).iter().map(|own| campaign.share_of_sdc(own)));
    let more = sorted.len().saturating_sub(FILES);
    for (_, (file, lines)) in sorted.into_iter().take(FILES) {
        let _ = write!(html, "<h4><code>{}</code></h4>", shown_name(file));
        match found.read(file) {
            Ok(text) => annotated(html, campaign, scale, &text, &lines),
            Err(why) => {
                let _ = write!(
                    html,
                    "<p class=\"warning\">The text is not shown: {}. Its lines are in the table \
                     above.</p>",
                    escaped(&why.to_string())
                );
            }
        }
    }
    if more > 0 {
        let _ = write!(html, "<p class=\"quiet\">And {more} more files, with less of the SDC.</p>");
    }
}

fn annotated(
    html: &mut String,
    campaign: &Aggregates,
    scale: Scale,
    text: &str,
    lines: &Lines<'_>,
) {
    let total = text.lines().count();
    let is_near = |line: u64| {
        total <= WHOLE || lines.range(line.saturating_sub(NEAR)..=line + NEAR).next().is_some()
    };
    html.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"source\"><thead><tr>\
         <th scope=\"col\">Of all SDC, %</th><th scope=\"col\">Injections</th>\
         <th scope=\"col\">SDC, %</th><th scope=\"col\">DUE, %</th><th scope=\"col\">Line</th>\
         <th scope=\"col\" class=\"text\">Source</th></tr></thead><tbody>",
    );
    let mut written = 0;
    let mut is_gap = false;
    for (line, source) in (1_u64..).zip(text.lines()) {
        if !is_near(line) || written >= LINES {
            if !is_gap {
                html.push_str("<tr><td colspan=\"5\"></td><td class=\"text quiet\">⋯</td></tr>");
            }
            is_gap = true;
            continue;
        }
        (is_gap, written) = (false, written + 1);
        html.push_str("<tr>");
        match lines.get(&line) {
            Some(rates) => {
                let part = campaign.share_of_sdc(rates);
                let _ = write!(
                    html,
                    "<td class=\"heat l{}\">{}</td><td>{}</td>",
                    scale.level_of_root(part),
                    percent(part),
                    count(rates.total)
                );
                rate_cell(html, &rates.share(Outcome::Sdc));
                rate_cell(html, &rates.share(Outcome::Due));
            }
            None => html.push_str("<td></td><td></td><td></td><td></td>"),
        }
        let source = escaped(&shortened(source));
        let _ = write!(
            html,
            "<td class=\"quiet\">{line}</td><td class=\"text code\">{source}</td></tr>"
        );
    }
    html.push_str("</tbody></table></div>");
    if lines.keys().any(|line| *line > total as u64) {
        html.push_str(
            "<p class=\"warning\">Lines that were struck are beyond the end of this file: it is \
             another version of what was compiled.</p>",
        );
    }
}
