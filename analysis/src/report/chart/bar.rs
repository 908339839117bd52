//! The bar of a line of a table.

use crate::{Outcome, ScopeSummary};
use maud::{Markup, PreEscaped};
use std::fmt::Write;

/// Height of a bar of length 100.
const HEIGHT: f64 = 12.0;

/// Stacked bar of the rates of all outcomes except masked, with a whisker for the interval of the first.
/// Hidden from screen readers, as the numbers are in the same line of the table.
pub(crate) fn bar<K>(rates: &ScopeSummary<K>, shown: &[Outcome]) -> Markup {
    let mut svg = format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 {HEIGHT}\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\"><rect class=\"masked\" width=\"100\" height=\"{HEIGHT}\"/>"
    );
    let mut start = 0.0;
    for outcome in shown.iter().filter(|outcome| **outcome != Outcome::Masked) {
        let length = 100.0 * rates.share(*outcome).rate;
        if length > 0.0 {
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{start:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\"/>",
                outcome.name()
            );
        }
        start += length;
    }
    if let Some(first) = shown.first() {
        let interval = rates.share(*first).interval;
        let _ = write!(
            svg,
            "<path class=\"mark\" vector-effect=\"non-scaling-stroke\" \
             d=\"M{low:.1} 3v6m0-3H{high:.1}m0-3v6\"/>",
            low = 100.0 * interval.low,
            high = 100.0 * interval.high
        );
    }
    svg.push_str("</svg>");
    PreEscaped(svg)
}
