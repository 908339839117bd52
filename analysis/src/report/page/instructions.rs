//! Table of the static instructions with most SDC, with commands that replay an example injection.

use super::rates::{Heading, MAX_LINES, by_sdc, filter, heading, name_class, omitted, shown_name};
use super::section::Section;
use super::text::{Text, count, percent, rate_cell};
use crate::report::aggregates::{Aggregates, Example, Instruction};
use crate::report::key::{Dimension, Key};
use crate::report::names::Name;
use crate::{Outcome, ScopeSummary};
use maud::{Markup, PreEscaped, html};

/// Number of instructions with commands.
const WITH_COMMANDS: usize = 40;

/// A quotation mark that is not escaped, so that commands can also be copied from the page's source.
const QUOTE: PreEscaped<&str> = PreEscaped("\"");

/// Section on the rates by instruction; `None` without instructions.
pub(super) fn instructions(campaign: &Aggregates, prefix: &str) -> Option<Section> {
    let rates = campaign.rates_by(Dimension::Instruction);
    if rates.is_empty() {
        return None;
    }
    let id = format!("{prefix}instruction-table");
    let has_kernels = campaign.rates_by(Dimension::Kernel).len() > 1;
    let sorted = by_sdc(campaign, rates);
    let markup = html! {
        h3 id={ (prefix) "instruction" } { "By instruction" }
        p {
            "Static instructions. The first " (WITH_COMMANDS) " have commands that replay and trace \
            an example injection, an SDC if there is one."
        }
        (filter(&id, rates.len()))
        div class="scroll tall" tabindex="0" {
            table id=(id) {
                thead {
                    tr {
                        @if has_kernels { (heading("Kernel", Heading::Text)) }
                        (heading("PC", Heading::Text))
                        (heading("Opcode", Heading::Text))
                        (heading("Line", Heading::Text))
                        (heading("Injections", Heading::Number))
                        (heading("Share of all SDC, %", Heading::Sorted))
                        (heading("SDC, %", Heading::Number))
                        (heading("DUE, %", Heading::Number))
                        th scope="col" class="text" { "Example" }
                    }
                }
                tbody {
                    @for (rank, rates) in sorted.into_iter().take(MAX_LINES).enumerate() {
                        tr {
                            @let number = number(rates);
                            @let instruction = number.and_then(|number| campaign.instruction(number));
                            @if has_kernels {
                                (name_cell(campaign, instruction.and_then(|found| found.kernel)))
                            }
                            (instruction_cells(campaign, instruction))
                            (rate_cells(campaign, rates))
                            td class="text" {
                                @let example = number.and_then(|number| campaign.example(number));
                                @if let Some(example) = example.filter(|_| rank < WITH_COMMANDS) {
                                    (commands(campaign, example))
                                }
                            }
                        }
                    }
                }
            }
        }
        (omitted(rates.len()))
    };
    Some(Section { id: "instruction", link: "Instructions", markup })
}

/// Number of the instruction; `None` for those that were counted together.
fn number(rates: &ScopeSummary<Key>) -> Option<u32> {
    match rates.scope {
        Key::Instruction(number) => number,
        _ => None,
    }
}

fn name_cell(campaign: &Aggregates, name: Option<Name>) -> Markup {
    let name = name.map_or("", |name| campaign.text(name));
    html! { td class=(name_class(name)) { (shown_name(name)) } }
}

/// Cells with the PC, opcode and line of an instruction.
fn instruction_cells(campaign: &Aggregates, instruction: Option<&Instruction>) -> Markup {
    html! {
        @if let Some(Instruction { pc, opcode, line, .. }) = instruction {
            td class="text code" data-v=(pc) { (format_args!("{pc:#x}")) }
            (name_cell(campaign, Some(*opcode)))
            (name_cell(campaign, *line))
        } @else {
            td class="text" { (Text(campaign.text(Name::Other))) }
            td class="text" {}
            td {}
        }
    }
}

fn rate_cells(campaign: &Aggregates, rates: &ScopeSummary<Key>) -> Markup {
    let share = campaign.share_of_sdc(rates);
    html! {
        td data-v=(rates.total) { (count(rates.total)) }
        td data-v=(format_args!("{share:.6}")) { (percent(share)) }
        (rate_cell(&rates.share(Outcome::Sdc)))
        (rate_cell(&rates.share(Outcome::Due)))
    }
}

/// Commands that replay and trace an example injection.
fn commands(campaign: &Aggregates, example: &Example) -> Markup {
    let Example { site, outcome, cause } = example;
    let outcome = match cause {
        Some(cause) => format!("{outcome}, {cause}"),
        None => outcome.to_string(),
    };
    let file = campaign.info.file.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "CAMPAIGN.yaml".to_owned());
    let seed = campaign.info.seed.map(|seed| format!(" --seed {seed}")).unwrap_or_default();
    // No command is shown for texts that a shell could misinterpret.
    let is_safe = is_plain(site, " =,_.:+-[]") && is_plain(&file, "/_.+-");
    html! {
        details {
            summary { (Text(&outcome)) }
            pre class="code" {
                @if is_safe {
                    @for command in ["replay", "trace"] {
                        "flipwave " (command) " " (Text(&file)) " --site "
                        (QUOTE) (Text(site)) (QUOTE) (seed) "\n"
                    }
                } @else {
                    "site: " (Text(site)) "\nfile: " (Text(&file)) "\n"
                }
            }
        }
    }
}

/// Returns `true` if a text consists of letters, digits and `punctuation`, and does not start with `-`.
fn is_plain(text: &str, punctuation: &str) -> bool {
    !text.starts_with('-')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || punctuation.contains(letter))
}
