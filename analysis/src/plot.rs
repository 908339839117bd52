//! A plot of outcome rates as a self-contained SVG file, and helpers shared by all plots.

use crate::{Interval, Outcome, Scope, ScopeSummary, Summary};
use std::fmt::Write;

/// Left edge of the bars. All lengths are in pixels.
const LEFT: f64 = 190.0;
/// Length of a bar of 100 %.
const LENGTH: f64 = 440.0;
/// Upper edge of the first bar.
const TOP: f64 = 104.0;
/// Distance between the upper edges of two bars.
const STEP: f64 = 40.0;
/// Thickness of a bar.
const BAR: f64 = 24.0;
/// Right edges of the columns with the numbers.
const COLUMNS: [f64; 2] = [785.0, 935.0];
const WIDTH: f64 = 960.0;

/// The outcomes in stacking order; unmasked outcomes start at the axis.
const STACK: [Outcome; 4] = [Outcome::Sdc, Outcome::Due, Outcome::Detected, Outcome::Masked];

/// Colour of an outcome, distinguishable for colour-blind readers and in greyscale: M. Okabe and K. Ito,
/// "Color Universal Design" (2008). Masked faults are grey, as they need no attention.
fn colour(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sdc => "#e69f00",
        Outcome::Due => "#56b4e9",
        Outcome::Detected => "#009e73",
        Outcome::Masked => "#dddddd",
    }
}

fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sdc => "SDC",
        Outcome::Due => "DUE",
        Outcome::Detected => "Detected",
        Outcome::Masked => "Masked",
    }
}

/// Draws the outcome rates of all injections, each group, each label and each stratum: one stacked bar per
/// scope, with whiskers for the intervals of SDC and of all unmasked faults.
pub fn rates_svg(summary: &Summary, title: &str) -> String {
    let is_drawn = |scope: &Scope| !matches!(scope, Scope::Kernel(_) | Scope::Opcode(_));
    let scopes: Vec<&ScopeSummary> =
        summary.shown_scopes().filter(|rates| is_drawn(&rates.scope)).collect();
    let bottom = TOP + STEP * scopes.len() as f64;
    let height = bottom + 64.0;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"14\" fill=\"#222222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"24\" y=\"34\" font-size=\"18\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    let shown: Vec<Outcome> = summary.shown_outcomes().collect();
    legend(&mut svg, &shown);
    axis(&mut svg, bottom);
    for (row, scope) in scopes.into_iter().enumerate() {
        bar(&mut svg, TOP + STEP * row as f64, scope, &shown);
    }
    let _ = writeln!(
        svg,
        "<text x=\"24\" y=\"{}\" font-size=\"12\" fill=\"#555555\">Brackets and whiskers: {} \
         {} intervals; upper whisker: SDC, lower whisker: all unmasked faults.</text>",
        height - 16.0,
        summary.confidence,
        summary.method.name()
    );
    svg.push_str("</svg>\n");
    svg
}

fn stack(shown: &[Outcome]) -> impl Iterator<Item = Outcome> {
    STACK.into_iter().filter(|outcome| shown.contains(outcome))
}

fn legend(svg: &mut String, shown: &[Outcome]) {
    for (position, outcome) in stack(shown).enumerate() {
        let x = LEFT + 100.0 * position as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"56\" width=\"14\" height=\"14\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"68\">{}</text>",
            colour(outcome),
            x + 20.0,
            label(outcome)
        );
    }
    for (outcome, x) in STACK.into_iter().zip(COLUMNS) {
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"end\" font-weight=\"bold\">{}, %</text>",
            TOP - 12.0,
            label(outcome)
        );
    }
}

fn axis(svg: &mut String, bottom: f64) {
    for percent in (0..=100).step_by(20) {
        let x = LEFT + LENGTH * f64::from(percent) / 100.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#e8e8e8\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{percent} %</text>",
            TOP - 8.0,
            bottom + 16.0
        );
    }
}

fn bar(svg: &mut String, top: f64, scope: &ScopeSummary, shown: &[Outcome]) {
    let name = scope.scope.name().unwrap_or("all");
    let baseline = top + BAR / 2.0 + 5.0;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{baseline}\" text-anchor=\"end\">{} \
         <tspan font-size=\"12\" fill=\"#555555\">n = {}</tspan></text>",
        LEFT - 12.0,
        escaped(name),
        scope.total
    );
    let mut start = 0.0;
    for outcome in stack(shown) {
        let rate = scope.share(outcome).rate;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{BAR}\" fill=\"{}\"/>",
            LEFT + LENGTH * start,
            LENGTH * rate,
            colour(outcome)
        );
        start += rate;
    }
    let [sdc, due, masked] =
        [Outcome::Sdc, Outcome::Due, Outcome::Masked].map(|outcome| scope.share(outcome));
    let not_masked = Interval { low: 1.0 - masked.interval.high, high: 1.0 - masked.interval.low };
    // At different heights, as the two may overlap.
    whisker(svg, top + BAR / 3.0, sdc.interval);
    whisker(svg, top + BAR * 2.0 / 3.0, not_masked);
    for (share, x) in [sdc, due].into_iter().zip(COLUMNS) {
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{baseline}\" text-anchor=\"end\">{:.1} \
             <tspan font-size=\"12\" fill=\"#555555\">[{:.1}, {:.1}]</tspan></text>",
            100.0 * share.rate,
            100.0 * share.interval.low,
            100.0 * share.interval.high
        );
    }
}

fn whisker(svg: &mut String, y: f64, interval: Interval) {
    let [low, high] = [interval.low, interval.high].map(|rate| LEFT + LENGTH * rate);
    let (up, down) = (y - 4.0, y + 4.0);
    let _ = writeln!(
        svg,
        "<path d=\"M{low:.2} {up:.2}V{down:.2}M{low:.2} {y:.2}H{high:.2}M{high:.2} {up:.2}\
         V{down:.2}\" stroke=\"#222222\" stroke-width=\"1.5\" fill=\"none\"/>"
    );
}

/// Escapes text for SVG and HTML, also within attributes. Control characters, which neither permits, are
/// replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(letter),
            _ if letter.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confidence;
    use crate::summary::tests::rows;

    #[test]
    fn plot_has_a_bar_per_scope_and_escapes_names() {
        let svg = rates_svg(&Summary::from_rows(&rows(), Confidence::P95), "a<b & c");
        assert!(svg.contains("a&lt;b &amp; c") && !svg.contains("a<b"));
        // Four scopes with three segments each, three legend entries and the background.
        assert_eq!(svg.matches("<rect").count(), 4 * 3 + 3 + 1);
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn plot_states_the_confidence_of_its_whiskers() {
        let svg = rates_svg(&Summary::from_rows(&rows(), Confidence::P99), "");
        assert!(svg.contains("99 % Wilson intervals") && !svg.contains("95 % "), "{svg}");
    }

    #[test]
    fn bar_lengths_are_proportional_to_rates() {
        let svg = rates_svg(&Summary::from_rows(&rows()[..10], Confidence::P95), "");
        for (rate, outcome) in [(0.3, Outcome::Sdc), (0.1, Outcome::Due), (0.6, Outcome::Masked)] {
            let width = format!(
                "width=\"{:.2}\" height=\"{BAR}\" fill=\"{}\"",
                LENGTH * rate,
                colour(outcome)
            );
            assert!(svg.contains(&width), "{width}");
        }
    }

    #[test]
    fn summary_without_rows_has_a_plot() {
        assert!(!rates_svg(&Summary::from_rows(&[], Confidence::P95), "").contains("NaN"));
    }
}
