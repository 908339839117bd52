//! Tables and charts of rates.

use super::section::Section;
use super::text::{Text, count, interval, label, legend, percent, rate_cell, swatch};
use crate::report::aggregates::Aggregates;
use crate::report::chart::{Column, bar, columns};
use crate::report::key::{Dimension, Key};
use crate::{Outcome, ScopeSummary, Severity};
use maud::{Markup, html};
use std::fmt::Write;

/// Most lines of a table; the CSV file has all.
pub(crate) const MAX_LINES: usize = 100;
/// Fewest lines of a table with a filter.
const FILTERED: usize = 8;

/// A section about the rates by one dimension.
pub(super) struct Topic {
    pub dimension: Dimension,
    /// Heading of the section.
    pub heading: &'static str,
    /// Text of the link in the contents; empty for none.
    pub link: &'static str,
    /// Heading of the column with the values.
    pub column: &'static str,
    /// Explanation below the heading; empty for none.
    pub note: &'static str,
}

/// A heading of a sortable column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heading {
    /// A column of texts, which sorts in ascending order first.
    Text,
    /// A column of numbers, which sorts in descending order first.
    Number,
    /// The column of numbers by which the table is initially sorted in descending order.
    Sorted,
}

/// Heading cell of a sortable column.
pub(crate) fn heading(text: &str, kind: Heading) -> Markup {
    let button = html! { button type="button" { (text) } };
    match kind {
        Heading::Text => {
            html! { th scope="col" class="text" data-first="ascending" { (button) } }
        }
        Heading::Number => html! { th scope="col" { (button) } },
        Heading::Sorted => html! { th scope="col" aria-sort="descending" { (button) } },
    }
}

/// Heading cell of a column of bars, with the legend of their colours.
pub(super) fn bar_heading(shown: &[Outcome]) -> Markup {
    html! {
        th scope="col" class="text" {
            span class="key" {
                @for outcome in shown {
                    span { (swatch(*outcome)) (label(*outcome)) }
                }
            }
        }
    }
}

/// A name as shown on a page, without a leading `./`.
pub(crate) fn shown_name(name: &str) -> Text<'_> {
    Text(name.strip_prefix("./").unwrap_or(name))
}

/// Classes of a cell with a name. Long names are wrapped.
pub(crate) fn name_class(name: &str) -> &'static str {
    if name.len() > 32 { "text long code" } else { "text code" }
}

/// Filter of a table with this `id`; empty if the table has only a few lines.
pub(crate) fn filter(id: &str, lines: usize) -> Markup {
    html! {
        @if lines >= FILTERED {
            div class="filter" {
                label { "Filter " input type="search" data-table=(id); }
                output class="quiet" {}
            }
        }
    }
}

/// Note on the lines that a table of `all` lines omits, if any.
pub(super) fn omitted(all: usize) -> Markup {
    let omitted = all.saturating_sub(MAX_LINES);
    html! {
        @if omitted > 0 {
            p class="quiet" {
                "Showing the " (MAX_LINES) " with most SDC; " (count(omitted as u64))
                " more are in the CSV file (" code { "--csv DIR" } ")."
            }
        }
    }
}

/// Scopes sorted by their share of all SDC, then by their number of injections, in descending order.
pub(super) fn by_sdc<'a>(
    campaign: &Aggregates,
    rates: &'a [ScopeSummary<Key>],
) -> Vec<&'a ScopeSummary<Key>> {
    let mut sorted: Vec<_> = rates.iter().collect();
    let share = |rates: &ScopeSummary<Key>| campaign.share_of_sdc(rates);
    // The sort is stable.
    sorted.sort_by(|a, b| share(b).total_cmp(&share(a)).then(b.total.cmp(&a.total)));
    sorted
}

/// Section with a table of the values with most SDC; `None` without values.
pub(super) fn ranked(campaign: &Aggregates, prefix: &str, topic: &Topic) -> Option<Section> {
    let rates = campaign.rates_by(topic.dimension);
    if rates.is_empty() {
        return None;
    }
    let mut shown = by_sdc(campaign, rates);
    shown.truncate(MAX_LINES);
    let body = html! {
        (table(campaign, prefix, topic, &shown, Heading::Sorted))
        (omitted(rates.len()))
    };
    Some(section(prefix, topic, &body))
}

/// Section with a chart of all values in their order and a table; `None` without values.
pub(super) fn charted(campaign: &Aggregates, prefix: &str, topic: &Topic) -> Option<Section> {
    let rates = campaign.rates_by(topic.dimension);
    if rates.is_empty() {
        return None;
    }
    let shown: Vec<Outcome> = campaign.shown_outcomes().collect();
    let unmasked: Vec<Outcome> =
        shown.iter().copied().filter(|outcome| *outcome != Outcome::Masked).collect();
    let column = |rates: &ScopeSummary<Key>| {
        let label = campaign.value(rates.scope);
        let part = |outcome: &Outcome| (outcome.name(), rates.share(*outcome).rate);
        Column {
            title: title(&format!("{} {label}", topic.column), rates, &shown),
            short: label.split('-').next().unwrap_or_default().to_owned(),
            label,
            parts: unmasked.iter().map(part).collect(),
            interval: Some(rates.share(Outcome::Sdc).interval),
        }
    };
    let chart: Vec<Column> = rates.iter().map(column).collect();
    let lines: Vec<_> = rates.iter().collect();
    let body = html! {
        (legend(&unmasked, "Whiskers: interval of the SDC rate"))
        (columns(&chart, topic.heading, topic.column))
        details {
            summary { "Table" }
            (table(campaign, prefix, topic, &lines, Heading::Number))
        }
    };
    Some(section(prefix, topic, &body))
}

/// Tooltip of a column of a chart.
fn title(name: &str, rates: &ScopeSummary<Key>, shown: &[Outcome]) -> String {
    let mut text = format!("{name}, {} injections", count(rates.total));
    for outcome in shown {
        let share = rates.share(*outcome);
        let (rate, interval) = (percent(share.rate), interval(&share));
        let _ = write!(text, "; {} {rate} % {interval}", label(*outcome));
    }
    text
}

fn section(prefix: &str, topic: &Topic, body: &Markup) -> Section {
    let id = topic.dimension.name();
    let markup = html! {
        h3 id={ (prefix) (id) } { (topic.heading) }
        @if !topic.note.is_empty() {
            p { (topic.note) }
        }
        (body)
    };
    Section { id, link: topic.link, markup }
}

/// Table with a line for each scope; `share` is the heading of the column of shares of SDC.
fn table(
    campaign: &Aggregates,
    prefix: &str,
    topic: &Topic,
    lines: &[&ScopeSummary<Key>],
    share: Heading,
) -> Markup {
    let outcomes: Vec<Outcome> = campaign.shown_outcomes().collect();
    let id = format!("{prefix}{}-table", topic.dimension.name());
    let overall = campaign.overall();
    let is_judged = overall.is_some_and(|overall| overall.severity(Severity::Critical).is_some());
    html! {
        (filter(&id, lines.len()))
        div class="scroll tall" tabindex="0" {
            table id=(id) {
                thead {
                    tr {
                        (heading(topic.column, Heading::Text))
                        (heading("Injections", Heading::Number))
                        (heading("Share of all SDC, %", share))
                        (bar_heading(&outcomes))
                        @for outcome in &outcomes {
                            (heading(&format!("{}, %", label(*outcome)), Heading::Number))
                        }
                        @if is_judged {
                            (heading("Critical SDC, %", Heading::Number))
                        }
                    }
                }
                tbody {
                    @for rates in lines {
                        (line(campaign, rates, &outcomes))
                    }
                }
            }
        }
    }
}

fn line(campaign: &Aggregates, rates: &ScopeSummary<Key>, outcomes: &[Outcome]) -> Markup {
    let value = campaign.label(rates.scope);
    let share = campaign.share_of_sdc(rates);
    html! {
        tr {
            th scope="row" class=(name_class(&value)) { (shown_name(&value)) }
            td data-v=(rates.total) { (count(rates.total)) }
            td data-v=(format_args!("{share:.6}")) { (percent(share)) }
            td { (bar(rates, outcomes)) }
            @for outcome in outcomes {
                (rate_cell(&rates.share(*outcome)))
            }
            @if let Some(critical) = rates.severity(Severity::Critical) {
                (rate_cell(&critical))
            }
        }
    }
}
