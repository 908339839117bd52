//! The HTML page of a comparison of programs, in the style of reports.

use super::{ComparedGroup, ComparedMeans, ComparedProgram, ProgramsComparison};
use crate::compare::page::cells;
use crate::compare::text::{difference, points};
use crate::report::page::rates::{Heading, filter, heading};
use crate::report::page::text::{Text, count, label, rate_cell};
use crate::report::page::{Page, document};
use crate::{Outcome, Share};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Size of a plot and its margins in pixels.
const SIZE: f64 = 360.0;
const LEFT: f64 = 52.0;
const BELOW: f64 = 44.0;
const MARGIN: f64 = 12.0;

impl ProgramsComparison {
    /// Renders the page: HTML that needs no other file and no network. Equal results give equal bytes.
    pub fn html(&self) -> String {
        let body = html! {
            @for outcome in &self.outcomes {
                p { strong { (Text(&outcome.in_words())) } }
            }
            p { (Text(&self.ranks())) }
            @for warning in &self.warnings {
                p class="warning" { (Text(warning)) }
            }
            h3 id="plots" { "Rates of the programs" }
            p { "Each program with the intervals of both rates; on the line, both are equal." }
            @for outcome in &self.outcomes {
                (PreEscaped(self.plot(outcome.outcome)))
            }
            (self.program_table())
            (self.group_table())
        };
        let name = format!("{} programs", self.programs.len());
        document(&Page { kind: "Flipwave comparison", name: &name, title: "comparison" }, &body)
    }

    fn program_table(&self) -> Markup {
        html! {
            h3 id="programs" { "By program" }
            p { "Rates are in percent, differences are B minus A in percentage points." }
            (filter("programs-table", self.programs.len()))
            div class="scroll tall" tabindex="0" {
                table id="programs-table" {
                    thead {
                        tr {
                            (heading("program", Heading::Text))
                            (heading("Instructions, B to A", Heading::Number))
                            @for outcome in &self.outcomes {
                                (heading(&side(outcome, "A, %"), Heading::Number))
                                (heading("B, %", Heading::Number))
                                (heading("Difference, points", Heading::Number))
                                (heading("p", Heading::Number))
                            }
                        }
                    }
                    tbody {
                        @for program in &self.programs {
                            (self.program(program))
                        }
                    }
                }
            }
        }
    }

    fn program(&self, program: &ComparedProgram) -> Markup {
        let ratio = program.comparison.instruction_ratio();
        html! {
            tr {
                th scope="row" class="text" { (Text(&program.name)) }
                td data-v=(ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default()) {
                    (ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default())
                }
                @if let Some(overall) = program.comparison.overall() {
                    @for outcome in &self.outcomes {
                        (cells(overall.rate(outcome.outcome)))
                    }
                }
            }
        }
    }

    /// Rates by group; empty without groups.
    fn group_table(&self) -> Markup {
        html! {
            @if !self.groups.is_empty() {
                h3 id="groups" { "By group of instructions" }
                p { "All programs together." }
                div class="scroll" tabindex="0" {
                    table class="narrow" {
                        thead {
                            tr {
                                th scope="col" class="text" { "Group" }
                                th scope="col" { "Injections, A" }
                                th scope="col" { "Part, %" }
                                th scope="col" { "Injections, B" }
                                th scope="col" { "Part, %" }
                                @for outcome in &self.outcomes {
                                    th scope="col" { (side(outcome, "A, %")) }
                                    th scope="col" { "B, %" }
                                    th scope="col" { "Difference, points" }
                                }
                            }
                        }
                        tbody {
                            @for group in &self.groups {
                                (group_row(group))
                            }
                        }
                    }
                }
            }
        }
    }

    /// A plot of the rates of an outcome, as SVG.
    fn plot(&self, outcome: Outcome) -> String {
        let (width, height) = (LEFT + SIZE + MARGIN, MARGIN + SIZE + BELOW);
        let x = |rate: f64| LEFT + SIZE * rate;
        let y = |rate: f64| MARGIN + SIZE * (1.0 - rate);
        let mut svg = format!(
            "<svg role=\"img\" aria-label=\"{0} rates of the programs\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-size=\"12\" \
             fill=\"currentColor\" stroke=\"none\">\n",
            label(outcome)
        );
        for step in 0..=5 {
            let rate = f64::from(step) / 5.0;
            let (at_x, at_y) = (x(rate), y(rate));
            let _ = writeln!(
                svg,
                "<path d=\"M{at_x} {MARGIN}V{bottom}M{LEFT} {at_y}H{right}\" stroke=\"currentColor\" \
                 stroke-opacity=\"0.15\" fill=\"none\"/><text x=\"{at_x}\" y=\"{below}\" \
                 text-anchor=\"middle\">{percent}</text><text x=\"{before}\" y=\"{at_y}\" dy=\"4\" \
                 text-anchor=\"end\">{percent}</text>",
                bottom = y(0.0),
                right = x(1.0),
                below = y(0.0) + 16.0,
                before = LEFT - 6.0,
                percent = 20 * step,
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{} {}L{} {}\" stroke=\"currentColor\" stroke-opacity=\"0.4\" fill=\"none\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name}, % in A</text>\
             <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{name}, % in \
             B</text>",
            x(0.0),
            y(0.0),
            x(1.0),
            y(1.0),
            x(0.5),
            y(0.0) + 36.0,
            y(0.5),
            name = label(outcome),
        );
        for program in &self.programs {
            let Some(overall) = program.comparison.overall() else { continue };
            let rate = overall.rate(outcome);
            let (Share { interval: across, .. }, Share { interval: up, .. }) = (rate.a, rate.b);
            let (at_x, at_y) = (x(rate.a.rate), y(rate.b.rate));
            let _ = writeln!(
                svg,
                "<g><title>{}: {} % and {} %</title><path d=\"M{:.1} {at_y:.1}H{:.1}M{at_x:.1} \
                 {:.1}V{:.1}\" stroke=\"currentColor\" stroke-opacity=\"0.6\" fill=\"none\"/><circle \
                 cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"3.5\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 font-size=\"11\" fill-opacity=\"0.75\">{}</text></g>",
                crate::plot::escaped(&program.name),
                points(rate.a.rate),
                points(rate.b.rate),
                x(across.low),
                x(across.high),
                y(up.low),
                y(up.high),
                at_x + 6.0,
                at_y - 5.0,
                crate::plot::escaped(&program.name),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn side(outcome: &ComparedMeans, side: &str) -> String {
    format!("{}, {side}", label(outcome.outcome))
}

fn group_row(group: &ComparedGroup) -> Markup {
    html! {
        tr {
            th scope="row" class="text" { (Text(&group.name)) }
            @for (total, part) in group.totals.into_iter().zip(group.parts) {
                td { (count(total)) }
                td { (points(part)) }
            }
            @for rate in &group.rates {
                (rate_cell(&rate.a))
                (rate_cell(&rate.b))
                td {
                    @if rate.change.is_significant() {
                        strong { (difference(rate.change)) }
                    } @else {
                        (difference(rate.change))
                    }
                }
            }
        }
    }
}
