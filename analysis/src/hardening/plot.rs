//! A plot of coverage over cost as a self-contained SVG file.

use super::HardenedPoint;
use crate::plot::escaped;
use std::fmt::Write;

/// Edges of the plot area and size of the image. All lengths are in pixels.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 400.0;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;

/// Draws the coverage of hardened versions of a program over their cost in instructions: a line from the
/// plain program through all points in order of cost, with whiskers for the intervals.
pub fn curve_svg(points: &[HardenedPoint], title: &str) -> String {
    let most = points.iter().map(|point| point.cost).fold(1.1, f64::max);
    // Ticks at multiples of 0.1, far enough apart for at most ten.
    let step = 0.1 * ((most - 1.0) / 1.0).ceil().max(1.0);
    let end = 1.0 + ((most - 1.0) / step - 1e-9).ceil() * step;
    let x = |cost: f64| LEFT + (RIGHT - LEFT) * (cost - 1.0) / (end - 1.0);
    let y = |rate: f64| BOTTOM - (BOTTOM - TOP) * rate;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"13\" fill=\"#222222\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"24\" y=\"34\" font-size=\"18\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for percent in (0..=100).step_by(20) {
        let line_y = y(f64::from(percent) / 100.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{line_y:.2}\" x2=\"{RIGHT}\" y2=\"{line_y:.2}\" \
             stroke=\"#e8e8e8\"/><text x=\"{}\" y=\"{:.2}\" text-anchor=\"end\">{percent} %</text>",
            LEFT - 8.0,
            line_y + 4.0
        );
    }
    for tick in 0..=((end - 1.0) / step).round() as u32 {
        let cost = 1.0 + f64::from(tick) * step;
        let _ = writeln!(
            svg,
            "<text x=\"{:.2}\" y=\"{}\" text-anchor=\"middle\">{cost:.1}</text>",
            x(cost),
            BOTTOM + 20.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">executed instructions, relative to the \
         plain program</text>\n<text x=\"24\" y=\"54\" fill=\"#555555\">coverage: fraction of SDC \
         removed</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 42.0
    );
    let mut sorted: Vec<&HardenedPoint> = points.iter().collect();
    sorted.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let mut path = format!("M{:.2} {:.2}", x(1.0), y(0.0));
    for point in &sorted {
        let _ = write!(path, "L{:.2} {:.2}", x(point.cost), y(point.coverage));
    }
    let _ =
        writeln!(svg, "<path d=\"{path}\" stroke=\"#009e73\" stroke-width=\"2\" fill=\"none\"/>");
    for point in sorted {
        let (x, low, high) = (x(point.cost), y(point.interval.low), y(point.interval.high));
        let _ = writeln!(
            svg,
            "<path d=\"M{:.2} {low:.2}h8m-4 0V{high:.2}m-4 0h8\" stroke=\"#222222\" \
             stroke-width=\"1.5\" fill=\"none\"/><circle cx=\"{x:.2}\" cy=\"{:.2}\" r=\"4\" \
             fill=\"#009e73\"><title>budget {}: {:.1} % for {:.3}</title></circle>",
            x - 4.0,
            y(point.coverage),
            point.budget,
            100.0 * point.coverage,
            point.cost
        );
    }
    svg.push_str("</svg>\n");
    svg
}
