//! The page.

mod campaign;
mod errors;
mod instructions;
pub(crate) mod rates;
mod source;
pub(crate) mod text;

use super::aggregates::Aggregates;
use super::chart::bar;
use super::sources::Sources;
use crate::Outcome;
use crate::plot::escaped;
use rates::Heading;
use std::fmt::Write;
use text::{count, label, rate_cell};

/// What a page looks like, and what it does.
const STYLE: &str = include_str!("../report.css");
const SCRIPT: &str = include_str!("../report.js");

/// A campaign of a page, and where its source files are.
#[derive(Debug)]
pub struct ReportedCampaign {
    /// The campaign.
    pub campaign: Aggregates,
    /// Where its source files are.
    pub sources: Sources,
}

/// The page: HTML that needs no other file and no network. The same results give the same bytes.
pub fn report_html(campaigns: &[ReportedCampaign]) -> String {
    let name = match campaigns {
        [one] => one.campaign.info.name.clone(),
        all => format!("{} campaigns", all.len()),
    };
    let name = escaped(&name);
    let mut html = String::new();
    match campaigns {
        [one] => campaign::campaign(&mut html, &one.campaign, &one.sources, ""),
        all => {
            overview(&mut html, all);
            for (number, own) in (1..).zip(all) {
                let prefix = format!("c{number}-");
                let _ = write!(
                    html,
                    "\n<section><h2 id=\"c{number}\">{} <small class=\"quiet\">{}</small></h2>",
                    escaped(&own.campaign.info.name),
                    escaped(&own.campaign.info.folder)
                );
                campaign::campaign(&mut html, &own.campaign, &own.sources, &prefix);
                html.push_str("</section>");
            }
        }
    }
    document(&Page { kind: "Flipwave report", name: &name, title: "faults and outcomes" }, &html)
}

/// What stands at the top of a page, as HTML.
pub(crate) struct Page<'a> {
    /// What kind of page it is.
    pub kind: &'a str,
    /// What it is about.
    pub name: &'a str,
    /// What it says of that.
    pub title: &'a str,
}

/// A page around a body, with what it looks like and what it does.
pub(crate) fn document(page: &Page<'_>, body: &str) -> String {
    let Page { kind, name, title } = page;
    // Nothing is loaded from anywhere, whatever stands in the page.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <title>{name}: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><p class=\"quiet\">{kind}</p><h1>{name}</h1></header>\n<main>\n\
         {body}\n</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The campaigns beside each other.
fn overview(html: &mut String, campaigns: &[ReportedCampaign]) {
    let detected = campaigns
        .iter()
        .any(|own| own.campaign.shown_outcomes().any(|own| own == Outcome::Detected));
    let order = [Outcome::Sdc, Outcome::Due, Outcome::Detected, Outcome::Masked];
    let shown: Vec<Outcome> =
        order.into_iter().filter(|own| detected || *own != Outcome::Detected).collect();
    html.push_str("<div class=\"scroll\" tabindex=\"0\"><table id=\"campaigns\"><thead><tr>");
    rates::heading(html, "Campaign", Heading::Text);
    rates::heading(html, "Folder", Heading::Text);
    rates::heading(html, "Injections", Heading::Number);
    rates::bar_heading(html, &shown);
    for outcome in &shown {
        rates::heading(html, &format!("{}, %", label(*outcome)), Heading::Number);
    }
    html.push_str("<th scope=\"col\" class=\"text\">Compared</th><th scope=\"col\">Intervals</th></tr></thead><tbody>");
    for (number, ReportedCampaign { campaign, .. }) in (1..).zip(campaigns) {
        let about = &campaign.info;
        let _ = write!(
            html,
            "<tr><th scope=\"row\" class=\"text long\"><a href=\"#c{number}\">{}</a>{}</th>\
             <td class=\"text long code\">{}</td>",
            escaped(&about.name),
            if about.unfinished.is_some() { " (not complete)" } else { "" },
            escaped(&about.folder)
        );
        match campaign.overall() {
            Some(all) => {
                let _ = write!(html, "<td data-v=\"{}\">{}</td><td>", all.total, count(all.total));
                bar(html, all, &shown);
                html.push_str("</td>");
                shown.iter().for_each(|outcome| rate_cell(html, &all.share(*outcome)));
            }
            None => {
                html.push_str("<td>0</td><td></td>");
                shown.iter().for_each(|_| html.push_str("<td></td>"));
            }
        }
        let compared = match &about.compared {
            None => "not recorded".to_owned(),
            Some(compared) => {
                let each = compared.iter().take(4);
                let mut texts: Vec<String> =
                    each.map(|own| format!("{}: {}", own.name, own.comparison)).collect();
                if compared.len() > texts.len() {
                    texts.push(format!("and {} more", compared.len() - texts.len()));
                }
                texts.join("; ")
            }
        };
        let _ = write!(
            html,
            "<td class=\"text long\">{}</td><td>{}</td></tr>",
            escaped(&compared),
            about.design.confidence
        );
    }
    html.push_str("</tbody></table></div>");
}
