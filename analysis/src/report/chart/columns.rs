//! Columns over an axis of numbers.

use crate::Interval;
use crate::plot::escaped;
use std::fmt::Write;

/// Size of the drawing, in pixels, as everything here.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 250.0;
/// Edges of the area with columns.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 952.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 196.0;
/// The widest column, and about how wide a letter is.
const WIDEST: f64 = 44.0;
const LETTER: f64 = 7.0;
/// Where the greatest value may lie, so that the lines of the axis are round numbers.
const CEILINGS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8];

/// A column.
pub(crate) struct Column {
    /// What stands below it, and what does where that is too long.
    pub label: String,
    pub short: String,
    /// What it says when it is pointed at.
    pub title: String,
    /// Classes and rates, from the axis up.
    pub parts: Vec<(&'static str, f64)>,
    /// The interval of the first.
    pub interval: Option<Interval>,
}

/// Draws columns; `name` says to readers who do not see it what it shows, `axis` what the numbers
/// below the columns are.
pub(crate) fn columns(html: &mut String, columns: &[Column], name: &str, axis: &str) {
    let highest = columns.iter().map(Column::highest).fold(0.0, f64::max);
    let ceiling = CEILINGS.into_iter().find(|own| highest <= *own).unwrap_or(1.0);
    let y_of = |rate: f64| BOTTOM - (BOTTOM - TOP) * (rate / ceiling).min(1.0);
    let _ = write!(
        html,
        "<figure class=\"wide scroll\" tabindex=\"0\">\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(name)
    );
    for step in 0..=4 {
        let rate = ceiling * f64::from(step) / 4.0;
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
    let step = ((RIGHT - LEFT) / columns.len().max(1) as f64).min(WIDEST * 1.5);
    let width = (step * 0.72).min(WIDEST);
    let fits = |text: &dyn Fn(&Column) -> usize| {
        columns.iter().map(text).max().unwrap_or(0) as f64 * LETTER + 6.0 <= step
    };
    let is_long = fits(&|column| column.label.chars().count());
    let longest = columns.iter().map(|column| column.short.chars().count()).max().unwrap_or(1);
    let every = (((longest as f64 * LETTER + 6.0) / step).ceil() as usize).max(1);
    for (number, column) in columns.iter().enumerate() {
        let left = LEFT + step * number as f64 + (step - width) / 2.0;
        let middle = left + width / 2.0;
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
        if is_long || number % every == 0 {
            let text = if is_long { &column.label } else { &column.short };
            let _ = write!(
                html,
                "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
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
}

impl Column {
    fn highest(&self) -> f64 {
        let sum = self.parts.iter().map(|(_, rate)| rate).sum();
        self.interval.map_or(sum, |interval| interval.high.max(sum))
    }
}
