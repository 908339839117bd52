//! Numbers and texts of a page.

use crate::plot::escaped;
use crate::{Outcome, Share};
use maud::{Markup, Render, html};

/// A text of a table or a record, which is escaped for the page.
pub(crate) struct Text<'a>(pub &'a str);

impl Render for Text<'_> {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str(&escaped(self.0));
    }
}

/// Formats a rate in percent: `31.0`; small rates have more decimals.
pub(super) fn percent(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 0.0005 => format!("{:.3}", 100.0 * rate),
        rate => format!("{:.1}", 100.0 * rate),
    }
}

/// Formats an interval in percent: `[28.2, 33.9]`.
pub(super) fn interval(share: &Share) -> String {
    format!("[{}, {}]", percent(share.interval.low), percent(share.interval.high))
}

/// Formats a count with thousands separators: `1,000,000`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Name of an outcome for readers.
pub(crate) fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Masked => "Masked",
        Outcome::Sdc => "SDC",
        Outcome::Due => "DUE",
        Outcome::Detected => "Detected",
    }
}

/// A coloured square for an outcome.
pub(crate) fn swatch(outcome: Outcome) -> Markup {
    html! { span class={ "swatch " (outcome.name()) } {} }
}

/// Table cell with a rate and its interval. Its `data-v` attribute is the sort key.
pub(crate) fn rate_cell(share: &Share) -> Markup {
    html! {
        td data-v=(format_args!("{:.6}", share.rate)) {
            (percent(share.rate)) " " small { (interval(share)) }
        }
    }
}

/// Legend of the outcomes' colours and, if not empty, of the whiskers.
pub(super) fn legend(shown: &[Outcome], whisker: &str) -> Markup {
    html! {
        ul class="legend" {
            @for outcome in shown {
                li { (swatch(*outcome)) (label(*outcome)) }
            }
            li { (whisker) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let texts = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        let texts = [0.0, 0.000_04, 0.31, 1.0].map(percent);
        assert_eq!(texts, ["0", "0.004", "31.0", "100.0"]);
    }
}
