//! How wrong outputs were.

use super::text::{count, legend, percent, rate_cell};
use crate::report::aggregates::Aggregates;
use crate::report::chart::{Column, columns};
use crate::report::key::{Dimension, Key, Magnitude};
use crate::shape::NonFinite;
use crate::{Outcome, ScopeSummary, Share};
use std::fmt::Write;

/// The outcomes of runs whose outputs could be compared.
const COMPARED: [Outcome; 3] = [Outcome::Sdc, Outcome::Detected, Outcome::Masked];

pub(super) fn errors(html: &mut String, campaign: &Aggregates, prefix: &str) {
    let sizes: Vec<_> = campaign.rates_by(Dimension::RelativeError).iter().collect();
    let wrong = campaign.rates_by(Dimension::WrongElements);
    if sizes.iter().all(|rates| rates.scope == Key::RelativeError(Magnitude::Zero))
        && wrong.len() < 2
    {
        return;
    }
    let _ = write!(html, "<h3 id=\"{prefix}elements_wrong\">How wrong outputs were</h3>");
    let shown: Vec<Outcome> =
        campaign.shown_outcomes().filter(|own| COMPARED.contains(own)).collect();
    html.push_str(
        "<p>The largest relative error of an output element, in part of all injections, by decades; \
         the label is the lower end. Masked with an error is within the tolerance. <code>inf</code> is \
         a NaN or an infinity in the place of a number, or anything in that of 0. Outputs without any \
         difference are left out.</p>",
    );
    legend(html, &shown, "");
    let all = decades(campaign, &sizes, &shown);
    columns(
        html,
        &all,
        "Largest relative error",
        "Largest relative error, of the fault-free value",
    );
    html.push_str("<p>The number of wrong output elements.</p>");
    let some = wrong.iter().filter(|rates| campaign.value(rates.scope) != "0");
    let drawn: Vec<Column> = some.map(|rates| column(campaign, rates, &shown)).collect();
    columns(html, &drawn, "Wrong output elements", "Output elements outside of the tolerance");
    shapes(html, campaign, prefix);
    introduced(html, campaign, prefix);
}

/// Where wrong elements lay, of SDC in outputs with dimensions.
fn shapes(html: &mut String, campaign: &Aggregates, prefix: &str) {
    if campaign.shapes.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<h3 id=\"{prefix}shape\">Where wrong elements lay</h3><p>Of the silent data corruption in outputs \
         whose dimensions the campaign file says: the pattern of the wrong elements. The box around them \
         is the smallest that holds all.</p>"
    );
    open(html, "Pattern", "Runs", "Of these, %");
    for (shape, share) in &campaign.shapes {
        line(html, shape.name(), shape.description(), share);
    }
    html.push_str("</tbody></table></div>");
}

/// How many runs have NaN and infinities, where any has.
fn introduced(html: &mut String, campaign: &Aggregates, prefix: &str) {
    let all = campaign.rates_by(Dimension::NonFinite);
    if all.iter().all(|own| own.scope == Key::NonFinite(NonFinite::Neither)) {
        return;
    }
    let _ = write!(
        html,
        "<h3 id=\"{prefix}nan_inf\">NaN and infinities</h3><p>Of the runs that completed, how many had \
         output elements that are NaN or infinite where the fault-free run's are not, and how many of \
         them are SDC.</p>"
    );
    open(html, "Introduced", "Runs", "SDC, %");
    for rates in all {
        let share = Share { count: rates.total, ..rates.share(Outcome::Sdc) };
        line(html, &campaign.value(rates.scope), "", &share);
    }
    html.push_str("</tbody></table></div>");
}

fn open(html: &mut String, name: &str, runs: &str, rate: &str) {
    let _ = write!(
        html,
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"narrow\"><thead><tr>\
         <th scope=\"col\" class=\"text\">{name}</th><th scope=\"col\" class=\"text\"></th>\
         <th scope=\"col\">{runs}</th><th scope=\"col\">{rate}</th></tr></thead><tbody>"
    );
}

fn line(html: &mut String, name: &str, meaning: &str, share: &Share) {
    let _ = write!(
        html,
        "<tr><th scope=\"row\" class=\"text\">{name}</th><td class=\"text\">{meaning}</td><td>{}</td>",
        count(share.count)
    );
    rate_cell(html, share);
    html.push_str("</tr>");
}

/// A column for each decade from the first that occurs to the last, so that the axis is even.
fn decades(campaign: &Aggregates, sizes: &[&ScopeSummary<Key>], shown: &[Outcome]) -> Vec<Column> {
    let decade = |rates: &&ScopeSummary<Key>| match rates.scope {
        Key::RelativeError(Magnitude::Decade(decade)) => Some(decade),
        _ => None,
    };
    let (first, last) = (sizes.iter().find_map(decade), sizes.iter().rev().find_map(decade));
    let is_shown = |magnitude: &Magnitude| match magnitude {
        Magnitude::Zero => false,
        Magnitude::Decade(own) => first.is_some_and(|first| first <= *own) && Some(*own) <= last,
        other => sizes.iter().any(|rates| rates.scope == Key::RelativeError(*other)),
    };
    let column = |magnitude: Magnitude| {
        let key = Key::RelativeError(magnitude);
        match sizes.iter().find(|rates| rates.scope == key) {
            Some(rates) => column(campaign, rates, shown),
            None => empty(campaign.value(key)),
        }
    };
    Magnitude::all().filter(is_shown).map(column).collect()
}

fn empty(label: String) -> Column {
    Column {
        title: format!("{label}: none"),
        short: label.clone(),
        label,
        parts: Vec::new(),
        interval: None,
    }
}

fn column(campaign: &Aggregates, rates: &ScopeSummary<Key>, shown: &[Outcome]) -> Column {
    let label = campaign.value(rates.scope);
    let part = campaign.share_of_sites(rates);
    let parts: Vec<_> =
        shown.iter().map(|own| (own.name(), part * rates.share(*own).rate)).collect();
    let mut title = format!("{label}: {} injections", count(rates.total));
    for (name, rate) in &parts {
        let _ = write!(title, "; {name} {} % of all", percent(*rate));
    }
    let short = match label.split_once('-') {
        Some((low, _)) if !low.is_empty() && low.chars().all(|own| own.is_ascii_digit()) => {
            format!("{low}+")
        }
        _ => label.clone(),
    };
    Column { title, short, label, parts, interval: None }
}
