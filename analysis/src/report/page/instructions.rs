//! The static instructions with most SDC, and how to look at one of their injections.

use super::rates::{Heading, LINES, by_sdc, cut, filter, heading, name_class, shown_name};
use super::text::{count, percent, rate_cell};
use crate::Outcome;
use crate::plot::escaped;
use crate::report::aggregates::{Aggregates, Example, Instruction};
use crate::report::key::{Dimension, Key};
use crate::report::names::Name;
use std::fmt::Write;

/// Instructions that have their commands.
const WITH_COMMANDS: usize = 40;

pub(super) fn instructions(html: &mut String, campaign: &Aggregates, prefix: &str) {
    let rates = campaign.rates_by(Dimension::Instruction);
    if rates.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<h3 id=\"{prefix}instruction\">By instruction</h3><p>A static instruction: where it is in the \
         code, and what it does. The first {WITH_COMMANDS} have an injection to look at more closely, \
         one that is SDC where there is one.</p>"
    );
    let id = format!("{prefix}instruction-table");
    filter(html, &id, rates.len());
    let _ =
        write!(html, "<div class=\"scroll tall\" tabindex=\"0\"><table id=\"{id}\"><thead><tr>");
    let has_kernels = campaign.rates_by(Dimension::Kernel).len() > 1;
    let names = if has_kernels {
        &["Kernel", "PC", "Opcode", "Line"][..]
    } else {
        &["PC", "Opcode", "Line"]
    };
    names.iter().for_each(|name| heading(html, name, Heading::Text));
    heading(html, "Injections", Heading::Number);
    heading(html, "Part of all SDC, %", Heading::Sorted);
    heading(html, "SDC, %", Heading::Number);
    heading(html, "DUE, %", Heading::Number);
    html.push_str("<th scope=\"col\" class=\"text\">An injection</th></tr></thead><tbody>");
    for (rank, rates) in by_sdc(campaign, rates).into_iter().take(LINES).enumerate() {
        let Key::Instruction(number) = rates.scope else { continue };
        html.push_str("<tr>");
        let instruction = number.and_then(|number| campaign.instruction(number));
        identity(html, campaign, instruction, has_kernels);
        let part = campaign.share_of_sdc(rates);
        let _ = write!(
            html,
            "<td data-v=\"{}\">{}</td><td data-v=\"{part:.6}\">{}</td>",
            rates.total,
            count(rates.total),
            percent(part)
        );
        rate_cell(html, &rates.share(Outcome::Sdc));
        rate_cell(html, &rates.share(Outcome::Due));
        html.push_str("<td class=\"text\">");
        let example = number.and_then(|number| campaign.example(number));
        if let Some(example) = example.filter(|_| rank < WITH_COMMANDS) {
            commands(html, campaign, example);
        }
        html.push_str("</td></tr>");
    }
    html.push_str("</tbody></table></div>");
    cut(html, rates.len());
}

fn identity(
    html: &mut String,
    campaign: &Aggregates,
    instruction: Option<&Instruction>,
    has_kernels: bool,
) {
    let name = |html: &mut String, name: Option<Name>| {
        let name = name.map_or("", |name| campaign.text(name));
        let _ = write!(html, "<td class=\"{}\">{}</td>", name_class(name), shown_name(name));
    };
    if has_kernels {
        name(html, instruction.and_then(|own| own.kernel));
    }
    let Some(own) = instruction else {
        let all = escaped(campaign.text(Name::Other));
        let _ = write!(html, "<td class=\"text\">{all}</td><td class=\"text\"></td><td></td>");
        return;
    };
    let _ = write!(html, "<td class=\"text code\" data-v=\"{0}\">{0:#x}</td>", own.pc);
    name(html, Some(own.opcode));
    name(html, own.line);
}

/// The commands that repeat an injection and follow it.
fn commands(html: &mut String, campaign: &Aggregates, example: &Example) {
    let Example { site, outcome, cause } = example;
    let outcome = match cause {
        Some(cause) => format!("{outcome}, {cause}"),
        None => outcome.to_string(),
    };
    let file = campaign.info.file.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "CAMPAIGN.yaml".to_owned());
    let _ = write!(html, "<details><summary>{}</summary><pre class=\"code\">", escaped(&outcome));
    match (is_plain(site, " =,_.:+-[]"), is_plain(&file, "/_.+-")) {
        (true, true) => {
            for command in ["replay", "trace"] {
                let seed = campaign.info.seed.map(|seed| format!(" --seed {seed}"));
                let seed = seed.unwrap_or_default();
                let _ = writeln!(
                    html,
                    "flipwave {command} {} --site \"{}\"{seed}",
                    escaped(&file),
                    escaped(site)
                );
            }
        }
        // What a shell would take for something else is not offered as a command.
        _ => {
            let _ = writeln!(html, "site: {}\nfile: {}", escaped(site), escaped(&file));
        }
    }
    html.push_str("</pre></details>");
}

/// Whether a text is letters, digits and some others only.
fn is_plain(text: &str, others: &str) -> bool {
    !text.starts_with('-')
        && text.chars().all(|own| own.is_ascii_alphanumeric() || others.contains(own))
}
