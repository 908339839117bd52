//! Column charts.

use crate::Interval;
use crate::plot::escaped;
use maud::{Markup, PreEscaped};
use std::fmt::Write;

/// Size of the chart. All lengths are in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 250.0;
/// Edges of the plot area.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 952.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 196.0;
/// Widest column, and approximate width of a letter.
const MAX_WIDTH: f64 = 44.0;
const LETTER: f64 = 7.0;
/// Upper ends of the vertical axis, for which the grid lines are round numbers.
const CEILINGS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8];

/// A column of a chart.
pub(crate) struct Column {
    /// Label below the column, and its short form for narrow columns.
    pub label: String,
    pub short: String,
    /// Tooltip.
    pub title: String,
    /// Style classes and rates of the stacked parts, from the axis upwards.
    pub parts: Vec<(&'static str, f64)>,
    /// Interval of the first part.
    pub interval: Option<Interval>,
}

/// Renders a column chart. `name` describes it for screen readers, `axis` is the label of the horizontal
/// axis.
pub(crate) fn columns(columns: &[Column], name: &str, axis: &str) -> Markup {
    let highest = columns.iter().map(Column::highest).fold(0.0, f64::max);
    let ceiling = CEILINGS.into_iter().find(|ceiling| highest <= *ceiling).unwrap_or(1.0);
    let y_of = |rate: f64| BOTTOM - (BOTTOM - TOP) * (rate / ceiling).min(1.0);
    let mut html = format!(
        "<figure class=\"wide scroll\" tabindex=\"0\">\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(name)
    );
    for step in 0..=4 {
        grid_line(&mut html, y_of, ceiling * f64::from(step) / 4.0);
    }
    let step = ((RIGHT - LEFT) / columns.len().max(1) as f64).min(MAX_WIDTH * 1.5);
    let width = (step * 0.72).min(MAX_WIDTH);
    let labels = Labels::fitting(columns, step);
    for (number, column) in columns.iter().enumerate() {
        let left = LEFT + step * number as f64 + (step - width) / 2.0;
        draw_column(&mut html, column, y_of, left, width);
        if let Some(text) = labels.text(number, column) {
            let _ = write!(
                html,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                left + width / 2.0,
                BOTTOM + 17.0,
                escaped(text)
            );
        }
    }
    let _ = write!(
        html,
        "<text class=\"quiet\" x=\"{LEFT}\" y=\"{}\">{}</text></svg></figure>",
        HEIGHT - 10.0,
        escaped(axis)
    );
    PreEscaped(html)
}

/// The labels below the columns of a chart.
enum Labels {
    /// The full label of each column.
    Full,
    /// The short label of every n-th column.
    Short { every: usize },
}

impl Labels {
    /// The labels for which columns in a distance of `step` have room.
    fn fitting(columns: &[Column], step: f64) -> Labels {
        let room = |letters: usize| letters as f64 * LETTER + 6.0;
        let longest = columns.iter().map(|column| column.label.chars().count()).max();
        if room(longest.unwrap_or(0)) <= step {
            return Labels::Full;
        }
        let longest = columns.iter().map(|column| column.short.chars().count()).max();
        Labels::Short { every: ((room(longest.unwrap_or(1)) / step).ceil() as usize).max(1) }
    }

    fn text<'a>(&self, number: usize, column: &'a Column) -> Option<&'a str> {
        match self {
            Labels::Full => Some(&column.label),
            Labels::Short { every } => number.is_multiple_of(*every).then_some(&column.short),
        }
    }
}

fn grid_line(html: &mut String, y_of: impl Fn(f64) -> f64, rate: f64) {
    let y = y_of(rate);
    let percent = (100_000.0 * rate).round() / 1000.0;
    let _ = write!(
        html,
        "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
         <text class=\"quiet\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>",
        LEFT - 6.0,
        y + 4.0
    );
}

fn draw_column(
    html: &mut String,
    column: &Column,
    y_of: impl Fn(f64) -> f64,
    left: f64,
    width: f64,
) {
    let _ = write!(html, "<g><title>{}</title>", escaped(&column.title));
    let mut sum = 0.0;
    for (class, rate) in column.parts.iter().filter(|(_, rate)| *rate > 0.0) {
        let (low, high) = (y_of(sum), y_of(sum + rate));
        sum += rate;
        let _ = write!(
            html,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" \
             height=\"{:.1}\"/>",
            low - high
        );
    }
    if let Some(Interval { low, high }) = column.interval {
        let (low, high, arm) = (y_of(low), y_of(high), (width / 4.0).min(4.0));
        let middle = left + width / 2.0;
        let path = format!(
            "M{0:.1} {low:.1}h{1:.1}M{middle:.1} {low:.1}V{high:.1}M{0:.1} {high:.1}h{1:.1}",
            middle - arm,
            2.0 * arm
        );
        for class in ["halo", "mark"] {
            let _ = write!(html, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    html.push_str("</g>");
}

impl Column {
    /// Highest rate of the column with its interval.
    fn highest(&self) -> f64 {
        let sum = self.parts.iter().map(|(_, rate)| rate).sum();
        self.interval.map_or(sum, |interval| interval.high.max(sum))
    }
}
