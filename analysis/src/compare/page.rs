//! A comparison as a page, in the style of reports.

use super::text::{change, p_value, points};
use super::{ComparedOutcome, ComparedRate, ComparedRates, Comparison, ScopeKind};
use crate::plot::escaped;
use crate::report::page::rates::{Heading, LINES, filter, heading, name_class, shown_name};
use crate::report::page::text::{count, label, rate_cell};
use crate::report::page::{Page, document};
use crate::{CampaignInfo, Outcome};
use std::fmt::Write;

impl Comparison {
    /// The page: HTML that needs no other file and no network. The same results give the same bytes.
    pub fn html(&self) -> String {
        let name = escaped(&format!("{} and {}", self.a.name, self.b.name));
        let mut body = format!("<p><strong>{}</strong></p>", escaped(&self.verdict()));
        for warning in &self.warnings {
            let _ = write!(body, "<p class=\"warning\">{}</p>", escaped(warning));
        }
        self.campaigns(&mut body);
        let _ = write!(
            body,
            "<h3 id=\"outcomes\">Outcomes</h3><p>{} Each rate is in percent, each difference in points, \
             B less A.</p>",
            escaped(&self.method())
        );
        if let Some(all) = self.overall() {
            self.outcomes(&mut body, all);
        }
        for (by, title) in [
            (ScopeKind::Kernel, "By kernel"),
            (ScopeKind::Label, "By label"),
            (ScopeKind::Group, "By group"),
            (ScopeKind::Opcode, "By opcode"),
            (ScopeKind::Line, "By source line"),
        ] {
            self.ranked(&mut body, by, title);
        }
        document(&Page { kind: "Flipwave comparison", name: &name, title: "compared" }, &body)
    }

    fn campaigns(&self, html: &mut String) {
        html.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"narrow\"><thead><tr>\
             <th scope=\"col\" class=\"text\"></th><th scope=\"col\" class=\"text\">Campaign</th>\
             <th scope=\"col\" class=\"text\">Folder</th><th scope=\"col\">Injections</th>\
             <th scope=\"col\">Wave instructions</th></tr></thead><tbody>",
        );
        let sides: [(&str, &CampaignInfo); 2] = [("A", &self.a), ("B", &self.b)];
        for ((letter, about), counted) in sides.into_iter().zip(self.injections) {
            let instructions = about.instructions.map(count).unwrap_or_default();
            let _ = write!(
                html,
                "<tr><th scope=\"row\" class=\"text\">{letter}</th><td class=\"text\">{}</td>\
                 <td class=\"text code\">{}</td><td>{}</td><td>{instructions}</td></tr>",
                escaped(&about.name),
                escaped(&about.folder),
                count(counted.total)
            );
        }
        html.push_str("</tbody></table></div>");
        if let Some(cost) = self.instruction_ratio() {
            let _ = write!(
                html,
                "<p>Without a fault, B executes {cost:.2} times as many wave instructions as A.</p>"
            );
        }
    }

    fn outcomes(&self, html: &mut String, all: &ComparedRates) {
        html.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"narrow\"><thead><tr>\
             <th scope=\"col\" class=\"text\">Outcome</th><th scope=\"col\">A, %</th>\
             <th scope=\"col\">B, %</th><th scope=\"col\">Difference, points</th>\
             <th scope=\"col\">p</th>",
        );
        if self.is_paired {
            for title in ["In both", "In A alone", "In B alone", "In neither"] {
                let _ = write!(html, "<th scope=\"col\">{title}</th>");
            }
        }
        html.push_str("</tr></thead><tbody>");
        for (event, rate) in all.rates() {
            let name = match event {
                ComparedOutcome::Outcome(outcome) => label(outcome),
                ComparedOutcome::CriticalSdc => "critical SDC",
            };
            let _ = write!(
                html,
                "<tr><th scope=\"row\" class=\"text\"><span class=\"swatch {}\"></span>{}</th>",
                event.outcome().name(),
                name
            );
            cells(html, rate);
            if let Some(pairs) = rate.pairs {
                for number in [pairs.both, pairs.only_a, pairs.only_b, pairs.neither] {
                    let _ = write!(html, "<td>{}</td>", count(number));
                }
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>");
    }

    /// The SDC of all that has something in common, what changed most first.
    fn ranked(&self, html: &mut String, by: ScopeKind, title: &str) {
        let all = self.most_changed(by);
        if all.is_empty() {
            return;
        }
        let id = by.name();
        let _ = write!(html, "<h3 id=\"{id}\">{title}</h3><p>SDC, what changed most first.</p>");
        filter(html, &format!("{id}-table"), all.len().min(LINES));
        let _ = write!(
            html,
            "<div class=\"scroll tall\" tabindex=\"0\"><table id=\"{id}-table\"><thead><tr>"
        );
        heading(html, by.name(), Heading::Text);
        for name in ["Injections, A", "Injections, B", "A, %", "B, %", "Difference, points", "p"] {
            heading(html, name, Heading::Number);
        }
        html.push_str("</tr></thead><tbody>");
        for own in all.iter().take(LINES) {
            let name = &own.scope.value;
            let (class, name) = (name_class(name), shown_name(name));
            let _ = write!(html, "<tr><th scope=\"row\" class=\"{class}\">{name}</th>");
            for total in own.totals {
                let _ = write!(html, "<td data-v=\"{total}\">{}</td>", count(total));
            }
            cells(html, own.rate(Outcome::Sdc));
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>");
        if let Some(more) = all.len().checked_sub(LINES).filter(|more| *more > 0) {
            let _ = write!(html, "<p class=\"quiet\">And {more} more, in the CSV.</p>");
        }
    }
}

/// The cells of a rate: in both campaigns, the difference, and whether it is clear.
fn cells(html: &mut String, rate: &ComparedRate) {
    rate_cell(html, &rate.a);
    rate_cell(html, &rate.b);
    let (number, text) = (rate.change.rate, change(rate));
    let (difference, interval) = text.split_once(' ').unwrap_or((&text, ""));
    let strong = match rate.change.is_significant() {
        true => format!("<strong>{difference}</strong>"),
        false => points(number),
    };
    let _ = write!(html, "<td data-v=\"{number:.6}\">{strong} <small>{interval}</small></td>");
    match rate.p {
        Some(p) => {
            let _ = write!(html, "<td data-v=\"{p:.3e}\">{}</td>", escaped(&p_value(p)));
        }
        None => html.push_str("<td></td>"),
    }
}
