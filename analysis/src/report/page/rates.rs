//! Tables of rates.

use super::text::{count, label, legend, rate_cell};
use crate::plot::escaped;
use crate::report::aggregates::Aggregates;
use crate::report::chart::{Column, bar, columns};
use crate::report::key::{Dimension, Key};
use crate::{Outcome, ScopeSummary, Severity};
use std::fmt::Write;

/// Lines of a table at most; all are in the table for programs.
pub(crate) const LINES: usize = 100;
/// Tables from this many lines on can be searched.
const SEARCHED: usize = 8;

/// A part of a page about one thing by which rates are given.
pub(super) struct Topic {
    pub dimension: Dimension,
    /// Its heading, and that of the column with its values.
    pub heading: &'static str,
    pub column: &'static str,
    /// What there is to know before reading it.
    pub note: &'static str,
}

/// A column by which a table sorts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heading {
    /// Text, which sorts upwards first.
    Text,
    /// Numbers.
    Number,
    /// The numbers by which the table is sorted, downwards.
    Sorted,
}

/// The heading of a column.
pub(crate) fn heading(html: &mut String, text: &str, kind: Heading) {
    let attributes = match kind {
        Heading::Text => " class=\"text\" data-first=\"ascending\"",
        Heading::Number => "",
        Heading::Sorted => " aria-sort=\"descending\"",
    };
    let _ =
        write!(html, "<th scope=\"col\"{attributes}><button type=\"button\">{text}</button></th>");
}

/// The heading of a column of bars: what their colours mean.
pub(super) fn bar_heading(html: &mut String, shown: &[Outcome]) {
    html.push_str("<th scope=\"col\" class=\"text\"><span class=\"key\">");
    for outcome in shown {
        let (class, name) = (outcome.name(), label(*outcome));
        let _ = write!(html, "<span><span class=\"swatch {class}\"></span>{name}</span>");
    }
    html.push_str("</span></th>");
}

/// A name as a page has it: without the folder that is no folder.
pub(crate) fn shown_name(name: &str) -> String {
    escaped(name.strip_prefix("./").unwrap_or(name))
}

/// The classes of a cell with a name: long ones are broken.
pub(crate) fn name_class(name: &str) -> &'static str {
    if name.len() > 32 { "text long code" } else { "text code" }
}

/// The field in which is written what a table's lines shall contain.
pub(crate) fn filter(html: &mut String, table: &str, lines: usize) {
    if lines >= SEARCHED {
        let _ = write!(
            html,
            "<div class=\"filter\"><label>Only lines with <input type=\"search\" \
             data-table=\"{table}\"></label><output class=\"quiet\"></output></div>"
        );
    }
}

/// What of a table was left out, if anything.
pub(super) fn cut(html: &mut String, all: usize) {
    if let Some(more) = all.checked_sub(LINES).filter(|more| *more > 0) {
        let _ = write!(
            html,
            "<p class=\"quiet\">The {LINES} with most of the SDC are shown, and {} more are in the \
             CSV (<code>--csv DIR</code>).</p>",
            count(more as u64)
        );
    }
}

/// Those with most SDC first, and of as much those with most injections.
pub(super) fn by_sdc<'a>(
    campaign: &Aggregates,
    rates: &'a [ScopeSummary<Key>],
) -> Vec<&'a ScopeSummary<Key>> {
    let mut sorted: Vec<_> = rates.iter().collect();
    let part = |rates: &ScopeSummary<Key>| campaign.share_of_sdc(rates);
    // The sort keeps the order of what is equal.
    sorted.sort_by(|a, b| part(b).total_cmp(&part(a)).then(b.total.cmp(&a.total)));
    sorted
}

/// A table with a line for each value, those with most SDC first.
pub(super) fn ranked(html: &mut String, campaign: &Aggregates, prefix: &str, topic: &Topic) {
    let rates = campaign.rates_by(topic.dimension);
    if rates.is_empty() {
        return;
    }
    open(html, prefix, topic);
    let mut shown = by_sdc(campaign, rates);
    shown.truncate(LINES);
    table(html, campaign, prefix, topic, &shown, Heading::Sorted);
    cut(html, rates.len());
}

/// A drawing with a column for each value, in their order, and the figures below it.
pub(super) fn drawn(html: &mut String, campaign: &Aggregates, prefix: &str, topic: &Topic) {
    let rates = campaign.rates_by(topic.dimension);
    if rates.is_empty() {
        return;
    }
    open(html, prefix, topic);
    let shown: Vec<Outcome> = campaign.shown_outcomes().collect();
    let column = |rates: &ScopeSummary<Key>| {
        let label = campaign.value(rates.scope);
        let short = label.split('-').next().unwrap_or_default().to_owned();
        let parts = shown.iter().filter(|outcome| **outcome != Outcome::Masked);
        Column {
            title: title(&format!("{} {label}", topic.column), rates, &shown),
            label,
            short,
            parts: parts.map(|own| (own.name(), rates.share(*own).rate)).collect(),
            interval: Some(rates.share(Outcome::Sdc).interval),
        }
    };
    let drawn: Vec<Column> = rates.iter().map(column).collect();
    let coloured: Vec<Outcome> =
        shown.iter().copied().filter(|outcome| *outcome != Outcome::Masked).collect();
    legend(html, &coloured, "whiskers: the interval of SDC");
    columns(html, &drawn, topic.heading, topic.column);
    html.push_str("<details><summary>The figures</summary>");
    let lines: Vec<_> = rates.iter().collect();
    table(html, campaign, prefix, topic, &lines, Heading::Number);
    html.push_str("</details>");
}

/// What a part of a drawing says in words.
fn title(name: &str, rates: &ScopeSummary<Key>, shown: &[Outcome]) -> String {
    let mut text = format!("{name}, {} injections", count(rates.total));
    for outcome in shown {
        let share = rates.share(*outcome);
        let (rate, interval) = (super::text::percent(share.rate), super::text::interval(&share));
        let _ = write!(text, "; {} {rate} % {interval}", label(*outcome));
    }
    text
}

fn open(html: &mut String, prefix: &str, topic: &Topic) {
    let (id, heading, note) = (topic.dimension.name(), topic.heading, topic.note);
    let _ = write!(html, "<h3 id=\"{prefix}{id}\">{heading}</h3>");
    if !note.is_empty() {
        let _ = write!(html, "<p>{note}</p>");
    }
}

fn table(
    html: &mut String,
    campaign: &Aggregates,
    prefix: &str,
    topic: &Topic,
    lines: &[&ScopeSummary<Key>],
    part: Heading,
) {
    let outcomes: Vec<Outcome> = campaign.shown_outcomes().collect();
    let id = format!("{prefix}{}-table", topic.dimension.name());
    filter(html, &id, lines.len());
    let _ =
        write!(html, "<div class=\"scroll tall\" tabindex=\"0\"><table id=\"{id}\"><thead><tr>");
    heading(html, topic.column, Heading::Text);
    heading(html, "Injections", Heading::Number);
    heading(html, "Part of all SDC, %", part);
    bar_heading(html, &outcomes);
    for outcome in &outcomes {
        heading(html, &format!("{}, %", label(*outcome)), Heading::Number);
    }
    let is_judged =
        campaign.overall().is_some_and(|all| all.severity(Severity::Critical).is_some());
    if is_judged {
        heading(html, "Critical SDC, %", Heading::Number);
    }
    html.push_str("</tr></thead><tbody>");
    for rates in lines {
        let value = campaign.value(rates.scope);
        let part = campaign.share_of_sdc(rates);
        let _ = write!(
            html,
            "<tr><th scope=\"row\" class=\"{}\">{}</th><td data-v=\"{}\">{}</td>\
             <td data-v=\"{part:.6}\">{}</td><td>",
            name_class(&value),
            shown_name(&value),
            rates.total,
            count(rates.total),
            super::text::percent(part)
        );
        bar(html, rates, &outcomes);
        html.push_str("</td>");
        for outcome in &outcomes {
            rate_cell(html, &rates.share(*outcome));
        }
        if let Some(critical) = rates.severity(Severity::Critical).filter(|_| is_judged) {
            rate_cell(html, &critical);
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
}
