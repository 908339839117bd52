//! Annotated source files with the rates of each line.

use super::rates::shown_name;
use super::section::Section;
use super::text::{Text, count, percent, rate_cell};
use crate::report::aggregates::Aggregates;
use crate::report::chart::Scale;
use crate::report::key::{Dimension, Key};
use crate::report::sources::{Sources, split_line};
use crate::{Outcome, ScopeSummary};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Most lines of a file that is shown completely. Longer files are shown near lines with injections.
const MAX_COMPLETE: usize = 400;
/// Lines shown before and after a line with injections.
const CONTEXT: u64 = 3;
/// Most lines shown of a file.
const MAX_LINES: usize = 1500;
/// Most files.
const MAX_FILES: usize = 12;
/// Most characters of a line.
const MAX_LENGTH: usize = 200;

/// Rates of the lines of one file by line number.
type LineRates<'a> = BTreeMap<u64, &'a ScopeSummary<Key>>;

/// Rates of all lines, by file.
fn files(campaign: &Aggregates) -> BTreeMap<&str, LineRates<'_>> {
    let mut files: BTreeMap<&str, LineRates<'_>> = BTreeMap::new();
    for rates in campaign.rates_by(Dimension::Line) {
        let Key::Line(name) = rates.scope else { continue };
        if let Some((file, line)) = split_line(campaign.text(name)) {
            files.entry(file).or_default().insert(line, rates);
        }
    }
    files
}

/// The text of a source line such as `matmul.cl:12`, if it can be read.
pub(super) fn line_text(sources: &Sources, name: &str) -> Option<String> {
    let (file, line) = split_line(name)?;
    let text = sources.read(file).ok()?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    text.lines().nth(index).map(|line| shortened(line.trim()))
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Section with the annotated source files; `None` without source lines.
pub(super) fn sources(campaign: &Aggregates, sources: &Sources, prefix: &str) -> Option<Section> {
    let share = |lines: &LineRates<'_>| -> f64 {
        lines.values().map(|rates| campaign.share_of_sdc(rates)).sum()
    };
    let mut files: Vec<_> =
        files(campaign).into_iter().map(|(file, lines)| (share(&lines), file, lines)).collect();
    files.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    if files.is_empty() {
        return None;
    }
    let lines = campaign.rates_by(Dimension::Line).iter();
    let scale = Scale::new(lines.map(|rates| campaign.share_of_sdc(rates)));
    let omitted = files.len().saturating_sub(MAX_FILES);
    let markup = html! {
        h3 id={ (prefix) "source" } { "Annotated source" }
        p {
            "A stronger colour is a larger share of all SDC. Lines without numbers have no injections."
        }
        @for (_, file, lines) in files.into_iter().take(MAX_FILES) {
            h4 { code { (shown_name(file)) } }
            @match sources.read(file) {
                Ok(text) => (annotated(campaign, scale, &text, &lines)),
                Err(error) => {
                    p class="warning" {
                        "No source text: " (Text(&error.to_string()))
                        ". The rates of its lines are in the table above."
                    }
                }
            }
        }
        @if omitted > 0 {
            p class="quiet" { (omitted) " more files with less SDC." }
        }
    };
    Some(Section { id: "source", link: "Source", markup })
}

/// Line numbers and texts of the shown lines of a file; `None` marks a gap.
fn shown_lines<'a>(text: &'a str, lines: &LineRates<'_>) -> Vec<Option<(u64, &'a str)>> {
    let total = text.lines().count();
    let is_near = |line: u64| {
        total <= MAX_COMPLETE
            || lines.range(line.saturating_sub(CONTEXT)..=line + CONTEXT).next().is_some()
    };
    let mut shown = Vec::new();
    let mut count = 0;
    for (line, source) in (1_u64..).zip(text.lines()) {
        if is_near(line) && count < MAX_LINES {
            count += 1;
            shown.push(Some((line, source)));
        } else if !matches!(shown.last(), Some(None)) {
            shown.push(None);
        }
    }
    shown
}

fn annotated(campaign: &Aggregates, scale: Scale, text: &str, lines: &LineRates<'_>) -> Markup {
    let total = text.lines().count();
    html! {
        div class="scroll" tabindex="0" {
            table class="source" {
                thead {
                    tr {
                        th scope="col" { "Share of all SDC, %" }
                        th scope="col" { "Injections" }
                        th scope="col" { "SDC, %" }
                        th scope="col" { "DUE, %" }
                        th scope="col" { "Line" }
                        th scope="col" class="text" { "Source" }
                    }
                }
                tbody {
                    @for shown in shown_lines(text, lines) {
                        @if let Some((line, source)) = shown {
                            tr {
                                (line_rates(campaign, scale, lines.get(&line).copied()))
                                td class="quiet" { (line) }
                                td class="text code" { (Text(&shortened(source))) }
                            }
                        } @else {
                            tr { td colspan="5" {} td class="text quiet" { "⋯" } }
                        }
                    }
                }
            }
        }
        @if lines.keys().any(|line| *line > total as u64) {
            p class="warning" {
                "Some lines with injections are beyond the end of this file, which is not the version \
                that was compiled."
            }
        }
    }
}

fn line_rates(campaign: &Aggregates, scale: Scale, rates: Option<&ScopeSummary<Key>>) -> Markup {
    let Some(rates) = rates else {
        return html! { td {} td {} td {} td {} };
    };
    let share = campaign.share_of_sdc(rates);
    html! {
        td class={ "heat l" (scale.level_of_root(share)) } { (percent(share)) }
        td { (count(rates.total)) }
        (rate_cell(&rates.share(Outcome::Sdc)))
        (rate_cell(&rates.share(Outcome::Due)))
    }
}
