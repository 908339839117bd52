//! Rates as colours, on a grid.

use super::super::workgroups::Grid;
use crate::{Interval, Outcome, ScopeSummary};
use std::fmt::Write;

/// Size of the widest grid and of the largest cell, in pixels, as everything here.
const WIDTH: f64 = 900.0;
const LARGEST: f64 = 46.0;
/// Room for the numbers of rows and columns.
const MARGIN: f64 = 44.0;
/// The smallest cell that has room for its figure.
const ROOM: f64 = 30.0;
/// How many colours there are.
const COLOURS: usize = 7;

/// What colours stand for: equal parts of the rates from 0 to the greatest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    ceiling: f64,
}

impl Scale {
    /// Colours for rates up to the greatest of some.
    pub fn of(rates: impl Iterator<Item = f64>) -> Scale {
        let highest = rates.fold(0.0, f64::max);
        let ceiling = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
            .into_iter()
            .find(|own| highest <= *own);
        Scale { ceiling: ceiling.unwrap_or(1.0) }
    }

    /// The number of a rate's colour.
    pub fn level(self, rate: f64) -> usize {
        // Rates are 0 or more.
        ((rate / self.ceiling * COLOURS as f64) as usize).min(COLOURS - 1)
    }

    /// The same of a rate among others of which few are great: by square roots, so that small ones
    /// are told apart.
    pub fn level_of_root(self, rate: f64) -> usize {
        self.level((rate * self.ceiling).sqrt())
    }

    /// The ink for what is written on a colour.
    fn ink(level: usize) -> &'static str {
        match level {
            0..=3 => "low",
            4 => "middle",
            _ => "high",
        }
    }

    fn legend(self, html: &mut String, x: f64, y: f64) {
        for level in 0..COLOURS {
            let _ = write!(
                html,
                "<rect class=\"cell h{level}\" x=\"{}\" y=\"{y}\" width=\"30\" height=\"12\"/>",
                x + 30.0 * level as f64
            );
        }
        let ends = [("0 %".to_owned(), x), (percent(self.ceiling), x + 30.0 * COLOURS as f64)];
        for ((text, x), anchor) in ends.into_iter().zip(["start", "end"]) {
            let _ = write!(
                html,
                "<text class=\"quiet\" x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
                y + 26.0
            );
        }
    }
}

fn percent(rate: f64) -> String {
    format!("{} %", (1000.0 * rate).round() / 10.0)
}

/// Draws the SDC rate of each cell of a grid, one layer below another.
pub(crate) fn heat_map(html: &mut String, grid: &Grid) {
    let [columns, rows, layers] = grid.extent.map(|extent| extent as f64);
    let size = (WIDTH / columns).min(LARGEST);
    let sdc = |cell: &ScopeSummary<[u32; 3]>| cell.share(Outcome::Sdc);
    let scale = Scale::of(grid.cells.iter().map(|cell| sdc(cell).rate));
    let layer = size * rows + MARGIN;
    let (width, height) = ((MARGIN + size * columns + 8.0).max(280.0), layer * layers + 44.0);
    let _ = write!(
        html,
        "<figure class=\"scroll\" tabindex=\"0\">\
         <svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"SDC rate by position of the workgroup\">"
    );
    for z in 0..grid.extent[2] {
        let top = layer * z as f64 + 24.0;
        let name = match grid.extent[2] {
            1 => "x".to_owned(),
            _ => format!("z = {}, x", grid.range([0, 0, z as u32], 2)),
        };
        let _ = write!(
            html,
            "<text class=\"quiet\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            MARGIN - 8.0,
            top - 8.0
        );
        numbers(html, grid, 0, |place| (MARGIN + size * (place + 0.5), top - 8.0), size);
        let y_of = |place: f64| top + size * (place + 0.5) + 4.0;
        numbers(html, grid, 1, |place| (MARGIN - 8.0, y_of(place)), size);
    }
    for cell in &grid.cells {
        let [x, y, z] = cell.scope.map(f64::from);
        let (left, top) = (MARGIN + size * x, layer * z + 24.0 + size * y);
        let share = sdc(cell);
        let (level, Interval { low, high }) = (scale.level(share.rate), share.interval);
        let _ = write!(
            html,
            "<g><title>workgroup {}: SDC {} of {} injections, {} [{}, {}]</title><rect class=\"cell \
             h{level}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{size:.1}\" height=\"{size:.1}\"/>",
            grid.position(cell.scope),
            share.count,
            cell.total,
            percent(share.rate),
            percent(low),
            percent(high)
        );
        if size >= ROOM {
            let ink = Scale::ink(level);
            let _ = write!(
                html,
                "<text class=\"{ink}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0}</text>",
                left + size / 2.0,
                top + size / 2.0 + 4.0,
                100.0 * share.rate
            );
        }
        html.push_str("</g>");
    }
    scale.legend(html, MARGIN, height - 34.0);
    html.push_str("</svg></figure>");
}

/// The positions along one dimension, as many as there is room for.
fn numbers(
    html: &mut String,
    grid: &Grid,
    axis: usize,
    place: impl Fn(f64) -> (f64, f64),
    size: f64,
) {
    let every = ((if axis == 0 { 36.0 } else { 14.0 }) / size).ceil().max(1.0) as u64;
    let anchor = if axis == 0 { "middle" } else { "end" };
    for number in (0..grid.extent[axis]).step_by(every as usize) {
        let (x, y) = place(number as f64);
        let _ = write!(
            html,
            "<text class=\"quiet\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            number * grid.step[axis]
        );
    }
}
