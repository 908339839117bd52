//! Heat maps and their colour scale.

use super::super::workgroups::Grid;
use crate::{Interval, Outcome};
use maud::{Markup, PreEscaped};
use std::fmt::Write;

/// Largest width of the grid and size of the largest cell. All lengths are in pixels.
const WIDTH: f64 = 900.0;
const MAX_CELL: f64 = 46.0;
/// Space for the labels of rows and columns.
const MARGIN: f64 = 44.0;
/// Smallest cell with space for its number.
const MIN_LABELLED: f64 = 30.0;
/// Number of colours.
const COLOURS: usize = 7;

/// A colour scale from 0 to a ceiling, in equal steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    ceiling: f64,
}

impl Scale {
    /// Creates a scale up to the highest of the rates.
    pub fn new(rates: impl Iterator<Item = f64>) -> Scale {
        let highest = rates.fold(0.0, f64::max);
        let ceiling = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
            .into_iter()
            .find(|ceiling| highest <= *ceiling);
        Scale { ceiling: ceiling.unwrap_or(1.0) }
    }

    /// Index of the colour of a rate.
    pub fn level(self, rate: f64) -> usize {
        ((rate / self.ceiling * COLOURS as f64) as usize).min(COLOURS - 1)
    }

    /// Index of the colour of a rate on a square-root scale, which distinguishes small rates if few are
    /// high.
    pub fn level_of_root(self, rate: f64) -> usize {
        self.level((rate * self.ceiling).sqrt())
    }

    /// Class of the text colour on a background colour.
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

/// Renders the SDC rate of each cell of a grid. Layers along z are below each other.
pub(crate) fn heat_map(grid: &Grid) -> Markup {
    let [columns, rows, layers] = grid.extent.map(|extent| extent as f64);
    let size = (WIDTH / columns).min(MAX_CELL);
    let scale = Scale::new(grid.cells.iter().map(|cell| cell.share(Outcome::Sdc).rate));
    let layer = size * rows + MARGIN;
    let (width, height) = ((MARGIN + size * columns + 8.0).max(280.0), layer * layers + 44.0);
    let mut html = format!(
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
        column_labels(&mut html, grid, size, top);
        row_labels(&mut html, grid, size, top);
    }
    for cell in &grid.cells {
        let [x, y, z] = cell.scope.map(f64::from);
        let (left, top) = (MARGIN + size * x, layer * z + 24.0 + size * y);
        let share = cell.share(Outcome::Sdc);
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
        if size >= MIN_LABELLED {
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
    scale.legend(&mut html, MARGIN, height - 34.0);
    html.push_str("</svg></figure>");
    PreEscaped(html)
}

/// Writes the positions of the columns above a layer, as many as fit.
fn column_labels(html: &mut String, grid: &Grid, size: f64, top: f64) {
    for column in (0..grid.extent[0]).step_by(labels_step(36.0, size)) {
        let x = MARGIN + size * (column as f64 + 0.5);
        let _ = write!(
            html,
            "<text class=\"quiet\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            top - 8.0,
            column * grid.step[0]
        );
    }
}

/// Writes the positions of the rows to the left of a layer, as many as fit.
fn row_labels(html: &mut String, grid: &Grid, size: f64, top: f64) {
    for row in (0..grid.extent[1]).step_by(labels_step(14.0, size)) {
        let y = top + size * (row as f64 + 0.5) + 4.0;
        let _ = write!(
            html,
            "<text class=\"quiet\" x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
            MARGIN - 8.0,
            row * grid.step[1]
        );
    }
}

/// Number of cells from one label to the next, for labels that need `room`.
fn labels_step(room: f64, cell_size: f64) -> usize {
    (room / cell_size).ceil().max(1.0) as usize
}
