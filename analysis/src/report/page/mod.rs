//! The HTML page of a report.

mod campaign;
mod errors;
mod instructions;
pub(crate) mod rates;
mod section;
mod source;
pub(crate) mod text;

use super::aggregates::Aggregates;
use super::campaign_info::CampaignInfo;
use super::chart::bar;
use super::sources::Sources;
use crate::Outcome;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use rates::Heading;
use text::{Text, count, label, rate_cell};

const STYLE: &str = include_str!("../report.css");
const SCRIPT: &str = include_str!("../report.js");

/// Forbids the page to load anything, whatever its content is.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                       script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A campaign of a report.
#[derive(Debug)]
pub struct ReportedCampaign {
    /// Counted rows of the campaign.
    pub campaign: Aggregates,
    /// Folders with its source files.
    pub sources: Sources,
}

/// Renders the page of a report: HTML that needs no other file and no network. Equal results give equal
/// bytes.
pub fn report_html(campaigns: &[ReportedCampaign]) -> String {
    let (name, body) = match campaigns {
        [ReportedCampaign { campaign, sources }] => {
            (campaign.info.name.clone(), campaign::campaign(campaign, sources, ""))
        }
        _ => (format!("{} campaigns", campaigns.len()), several(campaigns)),
    };
    document(&Page { kind: "Flipwave report", name: &name, title: "fault-injection report" }, &body)
}

/// The body of a page on several campaigns.
fn several(campaigns: &[ReportedCampaign]) -> Markup {
    html! {
        (overview(campaigns))
        @for (number, ReportedCampaign { campaign, sources }) in (1..).zip(campaigns) {
            section {
                h2 id={ "c" (number) } {
                    (Text(&campaign.info.name)) " "
                    small class="quiet" { (Text(&campaign.info.folder)) }
                }
                (campaign::campaign(campaign, sources, &format!("c{number}-")))
            }
        }
    }
}

/// The titles of a page.
pub(crate) struct Page<'a> {
    /// Kind of the page.
    pub kind: &'a str,
    /// Name of the campaigns.
    pub name: &'a str,
    /// Subject in the window title.
    pub title: &'a str,
}

/// Renders a complete page around a body.
pub(crate) fn document(page: &Page<'_>, body: &Markup) -> String {
    let Page { kind, name, title } = page;
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY);
                title { (Text(name)) ": " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { p class="quiet" { (kind) } h1 { (Text(name)) } }
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string() + "\n"
}

/// Table of all campaigns with their overall rates.
fn overview(campaigns: &[ReportedCampaign]) -> Markup {
    let has_detected = campaigns.iter().any(|reported| {
        reported.campaign.shown_outcomes().any(|outcome| outcome == Outcome::Detected)
    });
    let order = [Outcome::Sdc, Outcome::Due, Outcome::Detected, Outcome::Masked];
    let is_shown = |outcome: &Outcome| has_detected || *outcome != Outcome::Detected;
    let shown: Vec<Outcome> = order.into_iter().filter(is_shown).collect();
    html! {
        div class="scroll" tabindex="0" {
            table id="campaigns" {
                thead {
                    tr {
                        (rates::heading("Campaign", Heading::Text))
                        (rates::heading("Folder", Heading::Text))
                        (rates::heading("Injections", Heading::Number))
                        (rates::bar_heading(&shown))
                        @for outcome in &shown {
                            (rates::heading(&format!("{}, %", label(*outcome)), Heading::Number))
                        }
                        th scope="col" class="text" { "Output comparison" }
                        th scope="col" { "Confidence" }
                    }
                }
                tbody {
                    @for (number, reported) in (1..).zip(campaigns) {
                        (overview_line(number, &reported.campaign, &shown))
                    }
                }
            }
        }
    }
}

fn overview_line(number: u32, campaign: &Aggregates, shown: &[Outcome]) -> Markup {
    let info = &campaign.info;
    html! {
        tr {
            th scope="row" class="text long" {
                a href={ "#c" (number) } { (Text(&info.name)) }
                @if info.unfinished.is_some() { " (incomplete)" }
            }
            td class="text long code" { (Text(&info.folder)) }
            @if let Some(overall) = campaign.overall() {
                td data-v=(overall.total) { (count(overall.total)) }
                td { (bar(overall, shown)) }
                @for outcome in shown { (rate_cell(&overall.share(*outcome))) }
            } @else {
                td { "0" }
                td {}
                @for _ in shown { td {} }
            }
            td class="text long" { (Text(&compared_outputs(info))) }
            td { (info.design.confidence.to_string()) }
        }
    }
}

/// Most outputs that the overview lists.
const MAX_OUTPUTS: usize = 4;

/// The compared outputs of a campaign on one line.
fn compared_outputs(info: &CampaignInfo) -> String {
    let Some(compared) = &info.compared else { return "not recorded".to_owned() };
    let outputs = compared.iter().take(MAX_OUTPUTS);
    let mut texts: Vec<String> =
        outputs.map(|output| format!("{}: {}", output.name, output.comparison)).collect();
    if compared.len() > texts.len() {
        texts.push(format!("and {} more", compared.len() - texts.len()));
    }
    texts.join("; ")
}
