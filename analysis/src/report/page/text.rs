//! Numbers as a page has them.

use crate::{Outcome, Share};
use std::fmt::Write;

/// A rate in percent: `31.0`; of small ones more places.
pub(super) fn percent(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 0.0005 => format!("{:.3}", 100.0 * rate),
        rate => format!("{:.1}", 100.0 * rate),
    }
}

/// An interval in percent: `[28.2, 33.9]`.
pub(super) fn interval(share: &Share) -> String {
    format!("[{}, {}]", percent(share.interval.low), percent(share.interval.high))
}

/// A count with its thousands apart: `1,000,000`.
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

/// An outcome as readers know it.
pub(crate) fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Masked => "Masked",
        Outcome::Sdc => "SDC",
        Outcome::Due => "DUE",
        Outcome::Detected => "Detected",
    }
}

/// The cell of a rate, which sorts as the number that it is.
pub(crate) fn rate_cell(html: &mut String, share: &Share) {
    let _ = write!(
        html,
        "<td data-v=\"{:.6}\">{} <small>{}</small></td>",
        share.rate,
        percent(share.rate),
        interval(share)
    );
}

/// The colours of outcomes, and what they mean.
pub(super) fn legend(html: &mut String, shown: &[Outcome], whisker: &str) {
    html.push_str("<ul class=\"legend\">");
    for outcome in shown {
        let _ = write!(
            html,
            "<li><span class=\"swatch {}\"></span>{}</li>",
            outcome.name(),
            label(*outcome)
        );
    }
    let _ = write!(html, "<li>{whisker}</li></ul>");
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
