//! The part of a page about one campaign.

use super::rates::{Topic, by_sdc, charted, name_class, ranked, shown_name};
use super::section::Section;
use super::text::{Text, count, interval, label, percent, rate_cell, swatch};
use super::{errors, instructions, source};
use crate::report::aggregates::Aggregates;
use crate::report::campaign_info::ComparedOutput;
use crate::report::chart::heat_map;
use crate::report::key::{Dimension, Key};
use crate::report::sources::Sources;
use crate::{CauseShare, Outcome, ScopeSummary, Severity};
use maud::{Markup, html};

/// Number of lines or instructions that are listed as the main causes of SDC.
const MAIN_CAUSES: usize = 3;
/// Most outputs listed.
const MAX_OUTPUTS: usize = 50;

const LINE: Topic = Topic {
    dimension: Dimension::Line,
    heading: "By source line",
    link: "Lines",
    column: "Line",
    note: "",
};

/// Topics that are shown as tables.
const RANKED: [Topic; 7] = [
    Topic {
        dimension: Dimension::Kernel,
        heading: "By kernel",
        link: "Kernels",
        column: "Kernel",
        note: "",
    },
    Topic {
        dimension: Dimension::Label,
        heading: "By label",
        link: "Labels",
        column: "Label",
        note: "Labels of dispatches in the campaign file.",
    },
    Topic {
        dimension: Dimension::Stratum,
        heading: "By stratum",
        link: "Strata",
        column: "Stratum",
        note: "Strata are sampled separately; rates over several strata are weighted.",
    },
    Topic {
        dimension: Dimension::Group,
        heading: "By instruction group",
        link: "Groups",
        column: "Group",
        note: "",
    },
    Topic {
        dimension: Dimension::Opcode,
        heading: "By opcode",
        link: "Opcodes",
        column: "Opcode",
        note: "",
    },
    Topic {
        dimension: Dimension::Class,
        heading: "By storage class",
        link: "Classes",
        column: "Class",
        note: "Classes of registers, and memory.",
    },
    Topic {
        dimension: Dimension::Register,
        heading: "By register",
        link: "Registers",
        column: "Register",
        note: "",
    },
];

/// Topics that are shown as charts.
const CHARTED: [Topic; 3] = [
    Topic {
        dimension: Dimension::Bit,
        heading: "By bit",
        link: "Bits",
        column: "Bit",
        note: "Faults that changed exactly one bit. Bit 0 is the lowest.",
    },
    Topic {
        dimension: Dimension::Lane,
        heading: "By lane",
        link: "Lanes",
        column: "Lane",
        note: "",
    },
    Topic {
        dimension: Dimension::Occurrence,
        heading: "By occurrence",
        link: "Occurrences",
        column: "Earlier executions",
        note: "Number of earlier executions of the instruction by the wave, such as the iterations of \
               a loop. Numbers from 16 on are grouped.",
    },
];

/// Renders the part about a campaign. `prefix` starts all identifiers in it.
pub(super) fn campaign(campaign: &Aggregates, sources: &Sources, prefix: &str) -> Markup {
    let Some(overall) = campaign.overall() else {
        return html! {
            (status(campaign))
            (facts(campaign))
            (compared(campaign.info.compared.as_deref(), prefix))
            p class="warning" { "The table of results has no rows yet." }
        };
    };
    let mut sections = Vec::new();
    sections.extend(causes(overall, prefix));
    sections.push(ranked(campaign, prefix, &LINE).unwrap_or_else(no_lines));
    sections.extend(source::sources(campaign, sources, prefix));
    sections.extend(instructions::instructions(campaign, prefix));
    sections.extend(RANKED.iter().filter_map(|topic| ranked(campaign, prefix, topic)));
    sections.extend(CHARTED.iter().filter_map(|topic| charted(campaign, prefix, topic)));
    sections.extend(workgroups(campaign, prefix));
    sections.extend(errors::errors(campaign, prefix));
    html! {
        (status(campaign))
        (outcomes(campaign, overall, prefix))
        (facts(campaign))
        (compared(campaign.info.compared.as_deref(), prefix))
        (main_causes(campaign, sources, prefix))
        (contents(&sections, prefix))
        @for section in &sections {
            (section.markup)
        }
    }
}

/// Warnings about incomplete results.
fn status(campaign: &Aggregates) -> Markup {
    html! {
        @if let Some(unfinished) = &campaign.info.unfinished {
            p class="warning" { (Text(unfinished)) }
        }
        @if campaign.is_cut {
            p class="warning" {
                "The last line of the table was cut off, as by a killed run, and is ignored."
            }
        }
    }
}

/// List of the facts about a campaign.
fn facts(campaign: &Aggregates) -> Markup {
    let info = &campaign.info;
    let mut facts = info.facts.clone();
    if let Some(sites) = info.sites {
        let counted = info.counted.as_ref().map_or(String::new(), |method| format!(", {method}"));
        facts.push(("Fault space", format!("{} fault sites{counted}", count(sites))));
    }
    let done = count(campaign.overall().map_or(0, |overall| overall.total));
    let injections = match info.planned {
        Some(planned) => format!("{done} of {} planned", count(planned)),
        None => done,
    };
    facts.push(("Injections", injections));
    let (confidence, method) = (info.design.confidence, info.design.method.name());
    let note = "rates and shares are weighted if injections represent different numbers of sites";
    facts.push(("Intervals", format!("{confidence}, {method}; {note}")));
    if !info.design.pruned.is_empty() {
        let note = "sites whose value is never read were not sampled; the rates of all injections, \
                    kernels, groups and opcodes count them as masked, other rates exclude them";
        facts.push(("Pruning", note.to_owned()));
    }
    html! {
        dl class="facts" {
            @for (name, value) in &facts {
                dt { (name) }
                dd { (Text(value)) }
            }
        }
    }
}

/// Boxes with the overall rate of each outcome.
fn outcomes(campaign: &Aggregates, overall: &ScopeSummary<Key>, prefix: &str) -> Markup {
    let meaning = |outcome| match outcome {
        Outcome::Sdc => match overall.severity(Severity::Critical) {
            Some(critical) => {
                let (rate, interval) = (percent(critical.rate), interval(&critical));
                format!("wrong outputs, undetected; critical {rate} % {interval}")
            }
            None => "wrong outputs, undetected".to_owned(),
        },
        Outcome::Due => "stopped by the device".to_owned(),
        Outcome::Detected => "detected by the program".to_owned(),
        Outcome::Masked => "correct outputs".to_owned(),
    };
    html! {
        div class="outcomes" id={ (prefix) "outcomes" } {
            @for outcome in campaign.shown_outcomes() {
                @let share = overall.share(outcome);
                div class={ "outcome " (outcome.name()) } {
                    (label(outcome))
                    b { (percent(share.rate)) " %" }
                    span class="interval" { (interval(&share)) }
                    small {
                        (count(share.count)) " of " (count(overall.total)) ": " (meaning(outcome))
                    }
                }
            }
        }
    }
}

/// Table of the outputs and how they were compared with the golden run.
fn compared(outputs: Option<&[ComparedOutput]>, prefix: &str) -> Markup {
    html! {
        h3 id={ (prefix) "compared" } { "Output comparison" }
        @if let Some(outputs) = outputs {
            p {
                "SDC depends on this comparison. Errors in outputs that are not listed are not counted."
            }
            div class="scroll" tabindex="0" {
                table class="narrow" {
                    thead {
                        tr {
                            th scope="col" class="text" { "Output" }
                            th scope="col" { "Elements" }
                            th scope="col" class="text" { "Type" }
                            th scope="col" class="text" { "Comparison" }
                        }
                    }
                    tbody {
                        @for output in outputs.iter().take(MAX_OUTPUTS) {
                            tr {
                                th scope="row" class=(name_class(&output.name)) {
                                    (Text(&output.name))
                                }
                                td { (output.elements.map(count).unwrap_or_default()) }
                                td class="text" { (Text(&output.element)) }
                                td class="text long" { strong { (Text(&output.comparison)) } }
                            }
                        }
                    }
                }
            }
            @if outputs.len() > MAX_OUTPUTS {
                p class="quiet" { (outputs.len() - MAX_OUTPUTS) " more in run.json." }
            }
        } @else {
            p class="warning" {
                "Not recorded by an older version of Flipwave. SDC depends on the comparison; see "
                code { "compare" } " in the campaign file."
            }
        }
    }
}

/// List of the lines with most SDC, or of the instructions if no lines are known.
fn main_causes(campaign: &Aggregates, sources: &Sources, prefix: &str) -> Markup {
    let dimension = if campaign.rates_by(Dimension::Line).is_empty() {
        Dimension::Instruction
    } else {
        Dimension::Line
    };
    let mut causes = by_sdc(campaign, campaign.rates_by(dimension));
    causes.retain(|rates| campaign.share_of_sdc(rates) > 0.0);
    let name = dimension.name();
    let article = if dimension == Dimension::Line { "a line" } else { "an instruction" };
    html! {
        @if !causes.is_empty() {
            h3 { "Main sources of silent data corruption" }
            p {
                "The share of all SDC that " (article) " causes shows where protection helps most. It \
                is proportional to the SDC rate and to the number of fault sites of the " (name) ". "
                a href={ "#" (prefix) (name) } { "All " (name) "s" }
            }
            ol class="worst" {
                @for rates in causes.into_iter().take(MAIN_CAUSES) {
                    (main_cause(campaign, sources, rates))
                }
            }
        }
    }
}

fn main_cause(campaign: &Aggregates, sources: &Sources, rates: &ScopeSummary<Key>) -> Markup {
    let name = campaign.value(rates.scope);
    let sdc = rates.share(Outcome::Sdc);
    html! {
        li {
            code { (shown_name(&campaign.label(rates.scope))) } ": "
            strong { (percent(campaign.share_of_sdc(rates))) " % of all SDC" }
            ", from " (percent(campaign.share_of_sites(rates))) " % of the fault sites; SDC rate "
            (percent(sdc.rate)) " % "
            span class="interval" { (interval(&sdc)) }
            @if let Some(text) = source::line_text(sources, &name) {
                pre class="code" { (Text(&text)) }
            }
        }
    }
}

/// Links to the sections.
fn contents(sections: &[Section], prefix: &str) -> Markup {
    html! {
        nav aria-label="Contents" {
            a href={ "#" (prefix) "compared" } { "Comparison" }
            @for section in sections {
                @if !section.link.is_empty() {
                    a href={ "#" (prefix) (section.id) } { (section.link) }
                }
            }
        }
    }
}

/// Section on the causes of outcomes; `None` without causes.
fn causes(overall: &ScopeSummary<Key>, prefix: &str) -> Option<Section> {
    if overall.causes.is_empty() {
        return None;
    }
    let markup = html! {
        h3 id={ (prefix) "cause" } { "By cause" }
        div class="scroll" tabindex="0" {
            table class="narrow" {
                thead {
                    tr {
                        th scope="col" class="text" { "Outcome" }
                        th scope="col" class="text" { "Cause" }
                        th scope="col" { "Injections" }
                        th scope="col" { "Rate, %" }
                    }
                }
                tbody {
                    @for CauseShare { outcome, cause, share } in &overall.causes {
                        tr {
                            td class="text" { (swatch(*outcome)) (label(*outcome)) }
                            th scope="row" class=(name_class(cause.name())) { (Text(cause.name())) }
                            td { (count(share.count)) }
                            (rate_cell(share))
                        }
                    }
                }
            }
        }
    };
    Some(Section { id: "cause", link: "Causes", markup })
}

/// Section that replaces the one on source lines.
fn no_lines() -> Section {
    let markup = html! {
        h3 { "By source line" }
        p {
            "The code has no line information. Compile it with " code { "-g" } ", in "
            code { "options" } " of the campaign file, for rates by line."
        }
    };
    Section { id: "line", link: "", markup }
}

/// Heat map of the SDC rates by workgroup; `None` for fewer than two cells.
fn workgroups(campaign: &Aggregates, prefix: &str) -> Option<Section> {
    let grid = &campaign.grid;
    if grid.cells.len() < 2 {
        return None;
    }
    let [x, y, z] = grid.step;
    let markup = html! {
        h3 id={ (prefix) "workgroup" } { "By workgroup" }
        p {
            "SDC rate in percent by the position of the workgroup in the grid, x to the right and y \
            downwards, over all dispatches. Point at a cell for its interval. Cells without a colour \
            have no injections."
            @if grid.step != [1, 1, 1] {
                " Each cell is " (x) " x " (y) " x " (z) " workgroups."
            }
        }
        (heat_map(grid))
    };
    Some(Section { id: "workgroup", link: "Workgroups", markup })
}
