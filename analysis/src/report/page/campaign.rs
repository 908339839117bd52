//! The part of a page that is about one campaign.

use super::rates::{Topic, by_sdc, drawn, name_class, ranked, shown_name};
use super::text::{count, interval, label, percent, rate_cell};
use super::{errors, instructions, source};
use crate::plot::escaped;
use crate::report::aggregates::Aggregates;
use crate::report::campaign_info::ComparedOutput;
use crate::report::chart::heat_map;
use crate::report::key::{Dimension, Key};
use crate::report::sources::Sources;
use crate::{CauseShare, Outcome, ScopeSummary, Severity};
use std::fmt::Write;

/// Lines and instructions that are named first.
const WORST: usize = 3;
/// Outputs that are listed.
const OUTPUTS: usize = 50;

const KERNEL: Topic =
    Topic { dimension: Dimension::Kernel, heading: "By kernel", column: "Kernel", note: "" };
const LINE: Topic =
    Topic { dimension: Dimension::Line, heading: "By source line", column: "Line", note: "" };
const STRATUM: Topic = Topic {
    dimension: Dimension::Stratum,
    heading: "By stratum",
    column: "Stratum",
    note: "What faults were drawn from, each by itself; rates over several are weighted.",
};
const GROUP: Topic = Topic {
    dimension: Dimension::Group,
    heading: "By group of instructions",
    column: "Group",
    note: "",
};
const OPCODE: Topic =
    Topic { dimension: Dimension::Opcode, heading: "By opcode", column: "Opcode", note: "" };
const CLASS: Topic = Topic {
    dimension: Dimension::Class,
    heading: "By kind of place",
    column: "Kind",
    note: "The kind of register, or what else was struck.",
};
const LABEL: Topic = Topic {
    dimension: Dimension::Label,
    heading: "By label",
    column: "Label",
    note: "What launches are parts of, in the words of the campaign file.",
};
const REGISTER: Topic =
    Topic { dimension: Dimension::Register, heading: "By register", column: "Register", note: "" };
const BIT: Topic = Topic {
    dimension: Dimension::Bit,
    heading: "By bit",
    column: "Bit, 0 is the lowest",
    note: "Faults that changed one bit alone.",
};
const LANE: Topic =
    Topic { dimension: Dimension::Lane, heading: "By lane", column: "Lane", note: "" };
const OCCURRENCE: Topic = Topic {
    dimension: Dimension::Occurrence,
    heading: "By occurrence",
    column: "Executions before",
    note: "How often the wave had executed the instruction before: the iteration, of a loop that is \
           entered once. From 16 on several are put together.",
};

/// What a part of the page is called, and the end of its address in it.
const CONTENTS: [(&str, &str); 19] = [
    ("outcomes", "Outcomes"),
    ("compared", "How outputs were compared"),
    ("cause", "Causes"),
    ("line", "Lines"),
    ("source", "Source"),
    ("instruction", "Instructions"),
    ("kernel", "Kernels"),
    ("label", "Labels"),
    ("stratum", "Strata"),
    ("group", "Groups"),
    ("opcode", "Opcodes"),
    ("class", "Kinds"),
    ("register", "Registers"),
    ("bit", "Bits"),
    ("lane", "Lanes"),
    ("workgroup", "Workgroups"),
    ("elements_wrong", "Errors"),
    ("shape", "Patterns"),
    ("nan_inf", "NaN"),
];

/// Writes what a campaign came to; `prefix` begins the names of its parts.
pub(super) fn campaign(html: &mut String, campaign: &Aggregates, found: &Sources, prefix: &str) {
    status(html, campaign);
    let Some(all) = campaign.overall() else {
        facts(html, campaign);
        compared(html, campaign.info.compared.as_deref(), prefix);
        html.push_str(
            "<p class=\"warning\">The table of results has no rows yet: there are no rates.</p>",
        );
        return;
    };
    outcomes(html, campaign, all, prefix);
    facts(html, campaign);
    compared(html, campaign.info.compared.as_deref(), prefix);
    worst(html, campaign, found, prefix);
    let mut parts = String::new();
    causes(&mut parts, all, prefix);
    match campaign.rates_by(Dimension::Line).is_empty() {
        true => no_lines(&mut parts),
        false => ranked(&mut parts, campaign, prefix, &LINE),
    }
    source::sources(&mut parts, campaign, found, prefix);
    instructions::instructions(&mut parts, campaign, prefix);
    for topic in [KERNEL, LABEL, STRATUM, GROUP, OPCODE, CLASS, REGISTER] {
        ranked(&mut parts, campaign, prefix, &topic);
    }
    for topic in [BIT, LANE, OCCURRENCE] {
        drawn(&mut parts, campaign, prefix, &topic);
    }
    workgroups(&mut parts, campaign, prefix);
    errors::errors(&mut parts, campaign, prefix);
    contents(html, &parts, prefix);
    html.push_str(&parts);
}

fn status(html: &mut String, campaign: &Aggregates) {
    let cut = campaign.is_cut.then(|| {
        "The last line of the table was cut off, as a run that was killed leaves it; it is left out."
            .to_owned()
    });
    for warning in campaign.info.unfinished.iter().chain(&cut) {
        let _ = write!(html, "<p class=\"warning\">{}</p>", escaped(warning));
    }
}

fn facts(html: &mut String, campaign: &Aggregates) {
    let about = &campaign.info;
    html.push_str("<dl class=\"facts\">");
    let mut fact = |name: &str, value: &str| {
        let _ = write!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    };
    about.facts.iter().for_each(|(name, value)| fact(name, value));
    if let Some(places) = about.sites {
        let counted = about.counted.as_ref().map_or(String::new(), |own| format!(", {own}"));
        fact("Population", &format!("{} places{counted}", count(places)));
    }
    let done = count(campaign.overall().map_or(0, |all| all.total));
    match about.planned {
        Some(planned) => fact("Injections", &format!("{done} of {} planned", count(planned))),
        None => fact("Injections", &done),
    }
    let (confidence, method) = (about.design.confidence, about.design.method.name());
    let note = "rates and parts are weighted where injections stand for differently many places";
    fact("Intervals", &format!("{confidence}, {method}; {note}"));
    if !about.design.pruned.is_empty() {
        let note = "places whose value nothing reads were not sampled; rates of all, of kernels, groups \
                    and opcodes count them as masked, all others are of the rest";
        fact("PrunedSites", note);
    }
    html.push_str("</dl>");
}

fn outcomes(html: &mut String, campaign: &Aggregates, all: &ScopeSummary<Key>, prefix: &str) {
    let _ = write!(html, "<div class=\"outcomes\" id=\"{prefix}outcomes\">");
    for outcome in campaign.shown_outcomes() {
        let share = all.share(outcome);
        let meaning = match outcome {
            Outcome::Sdc => match all.severity(Severity::Critical) {
                Some(critical) => &format!(
                    "wrong outputs, silently; critical {} % {}",
                    percent(critical.rate),
                    interval(&critical)
                ),
                None => "wrong outputs, silently",
            },
            Outcome::Due => "stopped by the device",
            Outcome::Detected => "noticed by the program",
            Outcome::Masked => "right outputs",
        };
        let _ = write!(
            html,
            "<div class=\"outcome {}\">{}<b>{} %</b><span class=\"interval\">{}</span>\
             <small>{} of {}: {meaning}</small></div>",
            outcome.name(),
            label(outcome),
            percent(share.rate),
            interval(&share),
            count(share.count),
            count(all.total)
        );
    }
    html.push_str("</div>");
}

fn compared(html: &mut String, compared: Option<&[ComparedOutput]>, prefix: &str) {
    let _ = write!(html, "<h3 id=\"{prefix}compared\">How outputs were compared</h3>");
    let Some(compared) = compared else {
        html.push_str(
            "<p class=\"warning\">Not recorded: the campaign was run by an older Flipwave. What counts \
             as SDC depends on it; see <code>compare</code> in the campaign file.</p>",
        );
        return;
    };
    html.push_str(
        "<p>What counts as SDC depends on this. An output that is not named here may be wrong without \
         being counted.</p><div class=\"scroll\" tabindex=\"0\"><table class=\"narrow\"><thead><tr>\
         <th scope=\"col\" class=\"text\">Output</th><th scope=\"col\">Elements</th>\
         <th scope=\"col\" class=\"text\">Of</th><th scope=\"col\" class=\"text\">Compared</th></tr>\
         </thead><tbody>",
    );
    for output in compared.iter().take(OUTPUTS) {
        let elements = output.elements.map(count).unwrap_or_default();
        let _ = write!(
            html,
            "<tr><th scope=\"row\" class=\"{}\">{}</th><td>{elements}</td>\
             <td class=\"text\">{}</td><td class=\"text long\"><strong>{}</strong></td></tr>",
            name_class(&output.name),
            escaped(&output.name),
            escaped(&output.element),
            escaped(&output.comparison)
        );
    }
    html.push_str("</tbody></table></div>");
    if let Some(more) = compared.len().checked_sub(OUTPUTS).filter(|more| *more > 0) {
        let _ = write!(html, "<p class=\"quiet\">And {more} more, in run.json.</p>");
    }
}

/// The lines that most of the SDC comes from; where there are none, the instructions.
fn worst(html: &mut String, campaign: &Aggregates, found: &Sources, prefix: &str) {
    let dimension = match campaign.rates_by(Dimension::Line).is_empty() {
        true => Dimension::Instruction,
        false => Dimension::Line,
    };
    let mut worst = by_sdc(campaign, campaign.rates_by(dimension));
    worst.retain(|rates| campaign.share_of_sdc(rates) > 0.0);
    if worst.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<h3>Where silent data corruption comes from</h3><p>The part of all SDC that a {0} causes says \
         where protection helps most; it grows with the SDC rate and with how much of the population \
         the {0} is. <a href=\"#{prefix}{1}\">All of them</a></p><ol class=\"worst\">",
        dimension.name(),
        dimension.name()
    );
    for rates in worst.into_iter().take(WORST) {
        let (name, sdc) = (campaign.value(rates.scope), rates.share(Outcome::Sdc));
        let _ = write!(
            html,
            "<li><code>{}</code>: <strong>{} % of all SDC</strong>, from {} % of the faults; SDC rate \
             {} % <span class=\"interval\">{}</span>",
            shown_name(&name),
            percent(campaign.share_of_sdc(rates)),
            percent(campaign.share_of_sites(rates)),
            percent(sdc.rate),
            interval(&sdc)
        );
        if let Some(text) = source::line_text(found, &name) {
            let _ = write!(html, "<pre class=\"code\">{}</pre>", escaped(&text));
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
}

fn contents(html: &mut String, parts: &str, prefix: &str) {
    let _ =
        write!(html, "<nav aria-label=\"Contents\"><a href=\"#{prefix}compared\">Comparison</a>");
    for (id, name) in CONTENTS {
        if parts.contains(&format!(" id=\"{prefix}{id}\"")) {
            let _ = write!(html, "<a href=\"#{prefix}{id}\">{name}</a>");
        }
    }
    html.push_str("</nav>");
}

fn causes(html: &mut String, all: &ScopeSummary<Key>, prefix: &str) {
    if all.causes.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<h3 id=\"{prefix}cause\">By cause</h3><div class=\"scroll\" tabindex=\"0\">\
         <table class=\"narrow\"><thead><tr><th scope=\"col\" class=\"text\">Outcome</th>\
         <th scope=\"col\" class=\"text\">Cause</th><th scope=\"col\">Injections</th>\
         <th scope=\"col\">Of all, %</th></tr></thead><tbody>"
    );
    for CauseShare { outcome, cause, share } in &all.causes {
        let _ = write!(
            html,
            "<tr><td class=\"text\"><span class=\"swatch {}\"></span>{}</td>\
             <th scope=\"row\" class=\"{}\">{}</th><td>{}</td>",
            outcome.name(),
            label(*outcome),
            name_class(cause),
            escaped(cause),
            count(share.count)
        );
        rate_cell(html, share);
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
}

fn no_lines(html: &mut String) {
    html.push_str(
        "<h3>By source line</h3><p>The code says no source lines. Compile it with <code>-g</code>, in \
         <code>options</code> of the campaign file, to have rates by line.</p>",
    );
}

fn workgroups(html: &mut String, campaign: &Aggregates, prefix: &str) {
    let grid = &campaign.grid;
    if grid.cells.len() < 2 {
        return;
    }
    let together = match grid.step {
        [1, 1, 1] => String::new(),
        [x, y, z] => format!(" Each cell is {x} x {y} x {z} workgroups."),
    };
    let _ = write!(
        html,
        "<h3 id=\"{prefix}workgroup\">By workgroup</h3><p>SDC rate in percent by the workgroup's \
         position in the grid, x to the right, y downwards, over all dispatches. A cell that is \
         pointed at says its interval; cells without a colour were not struck.{together}</p>"
    );
    heat_map(html, grid);
}
