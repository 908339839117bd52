//! The bar of a table's line.

use super::class;
use crate::{Outcome, ScopeSummary};
use std::fmt::Write;

/// Height of a bar whose length is 100.
const HEIGHT: f64 = 12.0;

/// The rates of all outcomes but the masked, one after the other, and the interval of the first. The
/// figures stand beside it, so that readers without eyes for it miss nothing.
pub(crate) fn bar<K>(html: &mut String, rates: &ScopeSummary<K>, shown: &[Outcome]) {
    let _ = write!(
        html,
        "<svg class=\"bar\" viewBox=\"0 0 100 {HEIGHT}\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\"><rect class=\"masked\" width=\"100\" height=\"{HEIGHT}\"/>"
    );
    let mut start = 0.0;
    for outcome in shown.iter().filter(|outcome| **outcome != Outcome::Masked) {
        let length = 100.0 * rates.share(*outcome).rate;
        if length > 0.0 {
            let _ = write!(
                html,
                "<rect class=\"{}\" x=\"{start:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\"/>",
                class(*outcome)
            );
        }
        start += length;
    }
    if let Some(first) = shown.first() {
        let interval = rates.share(*first).interval;
        let _ = write!(
            html,
            "<path class=\"mark\" vector-effect=\"non-scaling-stroke\" \
             d=\"M{low:.1} 3v6m0-3H{high:.1}m0-3v6\"/>",
            low = 100.0 * interval.low,
            high = 100.0 * interval.high
        );
    }
    html.push_str("</svg>");
}
