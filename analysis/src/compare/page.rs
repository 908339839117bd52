//! The HTML page of a comparison, in the style of reports.

use super::text::{difference, p_value};
use super::{ComparedOutcome, ComparedRate, ComparedRates, Comparison, ScopeKind};
use crate::report::page::rates::{Heading, MAX_LINES, filter, heading, name_class, shown_name};
use crate::report::page::text::{Text, count, label, rate_cell, swatch};
use crate::report::page::{Page, document};
use crate::{CampaignInfo, Outcome};
use maud::{Markup, html};

impl Comparison {
    /// Renders the page: HTML that needs no other file and no network. Equal results give equal bytes.
    pub fn html(&self) -> String {
        let body = html! {
            p { strong { (Text(&self.verdict())) } }
            @for warning in &self.warnings {
                p class="warning" { (Text(warning)) }
            }
            (self.campaigns())
            h3 id="outcomes" { "Outcomes" }
            p {
                (Text(&self.method()))
                " Rates are in percent, differences are B minus A in percentage points."
            }
            @if let Some(overall) = self.overall() {
                (self.outcomes(overall))
            }
            (self.ranked(ScopeKind::Kernel, "By kernel"))
            (self.ranked(ScopeKind::Label, "By label"))
            (self.ranked(ScopeKind::Group, "By group"))
            (self.ranked(ScopeKind::Opcode, "By opcode"))
            (self.ranked(ScopeKind::Line, "By source line"))
        };
        let name = format!("{} and {}", self.a.name, self.b.name);
        document(&Page { kind: "Flipwave comparison", name: &name, title: "comparison" }, &body)
    }

    /// Table of the two campaigns.
    fn campaigns(&self) -> Markup {
        let sides: [(&str, &CampaignInfo); 2] = [("A", &self.a), ("B", &self.b)];
        html! {
            div class="scroll" tabindex="0" {
                table class="narrow" {
                    thead {
                        tr {
                            th scope="col" class="text" {}
                            th scope="col" class="text" { "Campaign" }
                            th scope="col" class="text" { "Folder" }
                            th scope="col" { "Injections" }
                            th scope="col" { "Wave instructions" }
                        }
                    }
                    tbody {
                        @for ((letter, info), injections) in sides.into_iter().zip(self.injections) {
                            tr {
                                th scope="row" class="text" { (letter) }
                                td class="text" { (Text(&info.name)) }
                                td class="text code" { (Text(&info.folder)) }
                                td { (count(injections.total)) }
                                td { (info.instructions.map(count).unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
            @if let Some(ratio) = self.instruction_ratio() {
                p {
                    "The golden run of B executes " (format_args!("{ratio:.2}"))
                    " times as many wave instructions as that of A."
                }
            }
        }
    }

    /// Table of all outcomes.
    fn outcomes(&self, overall: &ComparedRates) -> Markup {
        html! {
            div class="scroll" tabindex="0" {
                table class="narrow" {
                    thead {
                        tr {
                            th scope="col" class="text" { "Outcome" }
                            th scope="col" { "A, %" }
                            th scope="col" { "B, %" }
                            th scope="col" { "Difference, points" }
                            th scope="col" { "p" }
                            @if self.is_paired {
                                @for title in ["In both", "Only in A", "Only in B", "In neither"] {
                                    th scope="col" { (title) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (outcome, rate) in overall.rates() {
                            tr {
                                th scope="row" class="text" {
                                    (swatch(outcome.outcome())) (outcome_label(outcome))
                                }
                                (cells(rate))
                                @if let Some(pairs) = rate.pairs {
                                    td { (count(pairs.both)) }
                                    td { (count(pairs.only_a)) }
                                    td { (count(pairs.only_b)) }
                                    td { (count(pairs.neither)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Section with the SDC of the scopes of a kind that changed most; empty without scopes.
    fn ranked(&self, kind: ScopeKind, title: &str) -> Markup {
        let scopes = self.most_changed(kind);
        let id = kind.name();
        let table_id = format!("{id}-table");
        html! {
            @if !scopes.is_empty() {
                h3 id=(id) { (title) }
                p { "SDC, largest change first." }
                (filter(&table_id, scopes.len().min(MAX_LINES)))
                div class="scroll tall" tabindex="0" {
                    table id=(table_id) {
                        thead {
                            tr {
                                (heading(kind.name(), Heading::Text))
                                (heading("Injections, A", Heading::Number))
                                (heading("Injections, B", Heading::Number))
                                (heading("A, %", Heading::Number))
                                (heading("B, %", Heading::Number))
                                (heading("Difference, points", Heading::Number))
                                (heading("p", Heading::Number))
                            }
                        }
                        tbody {
                            @for compared in scopes.iter().take(MAX_LINES) {
                                (ranked_line(compared))
                            }
                        }
                    }
                }
                @if scopes.len() > MAX_LINES {
                    p class="quiet" { (scopes.len() - MAX_LINES) " more in the CSV file." }
                }
            }
        }
    }
}

fn outcome_label(outcome: ComparedOutcome) -> &'static str {
    match outcome {
        ComparedOutcome::Outcome(outcome) => label(outcome),
        ComparedOutcome::CriticalSdc => "critical SDC",
    }
}

fn ranked_line(compared: &ComparedRates) -> Markup {
    let name = compared.scope.label();
    html! {
        tr {
            th scope="row" class=(name_class(&name)) { (shown_name(&name)) }
            @for total in compared.totals {
                td data-v=(total) { (count(total)) }
            }
            (cells(compared.rate(Outcome::Sdc)))
        }
    }
}

/// Cells with both rates, their difference and the p-value. A significant difference is bold.
pub(super) fn cells(rate: &ComparedRate) -> Markup {
    let text = difference(rate.change);
    let (change, interval) = text.split_once(' ').unwrap_or((&text, ""));
    html! {
        (rate_cell(&rate.a))
        (rate_cell(&rate.b))
        td data-v=(format_args!("{:.6}", rate.change.rate)) {
            @if rate.change.is_significant() {
                strong { (change) }
            } @else {
                (change)
            }
            " " small { (interval) }
        }
        @if let Some(p) = rate.p {
            td data-v=(format_args!("{p:.3e}")) { (p_value(p)) }
        } @else {
            td {}
        }
    }
}
