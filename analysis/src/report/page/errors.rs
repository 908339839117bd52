//! Sections on the errors of outputs.

use super::section::Section;
use super::text::{count, legend, percent, rate_cell};
use crate::report::aggregates::Aggregates;
use crate::report::chart::{Column, columns};
use crate::report::key::{Dimension, Key, Magnitude};
use crate::shape::NonFinite;
use crate::{Outcome, ScopeSummary, Share};
use maud::{Markup, html};
use std::fmt::Write;

/// Outcomes of runs that completed, whose outputs are compared.
const COMPARED: [Outcome; 3] = [Outcome::Sdc, Outcome::Detected, Outcome::Masked];

/// Sections on the sizes, patterns and non-finite values of wrong outputs; empty if no output had an error.
pub(super) fn errors(campaign: &Aggregates, prefix: &str) -> Vec<Section> {
    let magnitudes = campaign.rates_by(Dimension::RelativeError);
    let numbers = campaign.rates_by(Dimension::WrongElements);
    let is_exact =
        magnitudes.iter().all(|rates| rates.scope == Key::RelativeError(Magnitude::Zero));
    if is_exact && numbers.len() < 2 {
        return Vec::new();
    }
    let sizes = sizes(campaign, prefix);
    [Some(sizes), shapes(campaign, prefix), non_finite(campaign, prefix)]
        .into_iter()
        .flatten()
        .collect()
}

/// Charts of the largest relative errors and of the numbers of wrong elements.
fn sizes(campaign: &Aggregates, prefix: &str) -> Section {
    let shown: Vec<Outcome> =
        campaign.shown_outcomes().filter(|outcome| COMPARED.contains(outcome)).collect();
    let decades = decades(campaign, &shown);
    let numbers = campaign.rates_by(Dimension::WrongElements).iter();
    let numbers = numbers.filter(|rates| campaign.value(rates.scope) != "0");
    let numbers: Vec<Column> = numbers.map(|rates| column(campaign, rates, &shown)).collect();
    let markup = html! {
        h3 id={ (prefix) "elements_wrong" } { "Output errors" }
        p {
            "Distribution of the largest relative error of an output element, as fractions of all \
            injections. Decades are labelled by their lower end. Errors of masked runs are within the \
            tolerance. " code { "inf" } " is a NaN or an infinity instead of a number, or any number \
            instead of 0. Runs with equal outputs are omitted."
        }
        (legend(&shown, ""))
        (columns(
            &decades,
            "Largest relative error",
            "Largest relative error",
        ))
        p { "Distribution of the number of wrong output elements." }
        (columns(&numbers, "Wrong output elements", "Output elements outside of the tolerance"))
    };
    Section { id: "elements_wrong", link: "Errors", markup }
}

/// Table of the spatial patterns of wrong elements; `None` without outputs with dimensions.
fn shapes(campaign: &Aggregates, prefix: &str) -> Option<Section> {
    if campaign.shapes.is_empty() {
        return None;
    }
    let markup = html! {
        h3 id={ (prefix) "shape" } { "Spatial patterns of wrong elements" }
        p {
            "Patterns of the wrong elements in the SDC of outputs with dimensions in the campaign \
            file. The bounding box is the smallest box that contains all wrong elements."
        }
        (table(["Pattern", "", "Runs", "Share, %"], html! {
            @for (shape, share) in &campaign.shapes {
                (line(shape.name(), shape.description(), share))
            }
        }))
    };
    Some(Section { id: "shape", link: "Patterns", markup })
}

/// Table of the runs with NaN or infinities; `None` without such runs.
fn non_finite(campaign: &Aggregates, prefix: &str) -> Option<Section> {
    let rates = campaign.rates_by(Dimension::NonFinite);
    if rates.iter().all(|rates| rates.scope == Key::NonFinite(NonFinite::Neither)) {
        return None;
    }
    let markup = html! {
        h3 id={ (prefix) "nan_inf" } { "NaN and infinities" }
        p {
            "Completed runs by output elements that are NaN or infinite but not in the golden run, \
            with the fraction of SDC among these runs."
        }
        (table(["Introduced", "", "Runs", "SDC, %"], html! {
            @for rates in rates {
                @let share = Share { count: rates.total, ..rates.share(Outcome::Sdc) };
                (line(&campaign.value(rates.scope), "", &share))
            }
        }))
    };
    Some(Section { id: "nan_inf", link: "NaN", markup })
}

/// A table with columns for a name, its description, a number of runs and a rate.
fn table([name, description, runs, rate]: [&str; 4], lines: Markup) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table class="narrow" {
                thead {
                    tr {
                        th scope="col" class="text" { (name) }
                        th scope="col" class="text" { (description) }
                        th scope="col" { (runs) }
                        th scope="col" { (rate) }
                    }
                }
                tbody { (lines) }
            }
        }
    }
}

fn line(name: &str, description: &str, share: &Share) -> Markup {
    html! {
        tr {
            th scope="row" class="text" { (name) }
            td class="text" { (description) }
            td { (count(share.count)) }
            (rate_cell(share))
        }
    }
}

/// A column for each decade from the first to the last with injections, so that the axis is uniform, and for
/// infinite and NaN errors that occurred.
fn decades(campaign: &Aggregates, shown: &[Outcome]) -> Vec<Column> {
    let rates = campaign.rates_by(Dimension::RelativeError);
    let with = |magnitude: Magnitude| {
        rates.iter().find(|rates| rates.scope == Key::RelativeError(magnitude))
    };
    let decade = |rates: &ScopeSummary<Key>| match rates.scope {
        Key::RelativeError(Magnitude::Decade(decade)) => Some(decade),
        _ => None,
    };
    let first = rates.iter().find_map(decade);
    let last = rates.iter().rev().find_map(decade);
    let is_shown = |magnitude: &Magnitude| match *magnitude {
        Magnitude::Zero => false,
        Magnitude::Decade(decade) => {
            first.is_some_and(|first| first <= decade) && Some(decade) <= last
        }
        Magnitude::Infinite | Magnitude::Nan => with(*magnitude).is_some(),
    };
    let column = |magnitude: Magnitude| match with(magnitude) {
        Some(rates) => column(campaign, rates, shown),
        None => empty_column(campaign.value(Key::RelativeError(magnitude))),
    };
    Magnitude::all().filter(is_shown).map(column).collect()
}

fn empty_column(label: String) -> Column {
    Column {
        title: format!("{label}: none"),
        short: label.clone(),
        label,
        parts: Vec::new(),
        interval: None,
    }
}

/// Column with the shares of the outcomes among all injections.
fn column(campaign: &Aggregates, rates: &ScopeSummary<Key>, shown: &[Outcome]) -> Column {
    let label = campaign.value(rates.scope);
    let share = campaign.share_of_sites(rates);
    let part = |outcome: &Outcome| (outcome.name(), share * rates.share(*outcome).rate);
    let parts: Vec<_> = shown.iter().map(part).collect();
    let mut title = format!("{label}: {} injections", count(rates.total));
    for (name, rate) in &parts {
        let _ = write!(title, "; {name} {} % of all", percent(*rate));
    }
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let short = match label.split_once('-') {
        Some((low, _)) if is_number(low) => format!("{low}+"),
        _ => label.clone(),
    };
    Column { title, short, label, parts, interval: None }
}
