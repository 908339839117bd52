//! A plot of the propagation of a fault over time as a self-contained SVG file.

use super::PropagationRow;
use crate::plot::escaped;
use std::fmt::Write;

/// Left and right edge of the panels. All lengths are in pixels.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 930.0;
const WIDTH: f64 = 960.0;
/// Upper edge of the first row of marks.
const MARKS: f64 = 76.0;
/// Distance between rows of marks.
const MARK_STEP: f64 = 18.0;
/// Height of a panel, and distance from its lower edge to the next panel.
const PANEL: f64 = 72.0;
const GAP: f64 = 22.0;
/// Approximate width of a letter of a mark.
const LETTER: f64 = 7.2;

/// The quantity that a panel shows.
struct Panel {
    name: &'static str,
    colour: &'static str,
    value: fn(&PropagationRow) -> u64,
}

/// The panels, in colours distinguishable for colour-blind readers: M. Okabe and K. Ito, "Color Universal
/// Design" (2008).
const PANELS: [Panel; 6] = [
    Panel { name: "register words", colour: "#e69f00", value: |row| row.wrong_words },
    Panel { name: "waves", colour: "#cc79a7", value: |row| row.wrong_waves },
    Panel { name: "on another path", colour: "#d55e00", value: |row| row.waves_on_other_path },
    Panel { name: "LDS bytes", colour: "#56b4e9", value: |row| row.wrong_lds_bytes },
    Panel { name: "scratch bytes", colour: "#0072b2", value: |row| row.wrong_scratch_bytes },
    Panel { name: "memory bytes", colour: "#009e73", value: |row| row.wrong_memory_bytes },
];

/// The marked events with their labels.
const MARKED: [(&str, &str); 6] = [
    ("fault", "fault"),
    ("path", "other path"),
    ("escape", "first wrong store"),
    ("missing", "first missing store"),
    ("output", "output wrong"),
    ("gone", "no difference left"),
];

/// An event on the time axis.
#[derive(Clone, Copy)]
struct Mark<'a> {
    x: f64,
    text: &'a str,
    /// Row of the mark, from the top.
    row: i32,
    /// Left and right edge of the text.
    start: f64,
    end: f64,
}

/// Draws the amount of wrong state over time, with one panel for each kind of state that was ever wrong.
/// Marks the first event of each marked kind and the end of the run, which is the last row. The time axis
/// has a square-root scale, as most events happen soon after the fault.
pub fn propagation_svg(rows: &[PropagationRow], title: &str, subtitle: &str) -> String {
    let end = rows.last().map_or(0, |row| row.time);
    let marks = marks(rows, end);
    let mark_rows = marks.iter().map(|mark| mark.row + 1).max().unwrap_or(0);
    let top = MARKS + MARK_STEP * f64::from(mark_rows) + 8.0;
    let shown = PANELS.iter().filter(|panel| rows.iter().any(|row| (panel.value)(row) > 0));
    let mut shown: Vec<&Panel> = shown.collect();
    if shown.is_empty() {
        shown.extend(PANELS.first());
    }
    let bottom = top + (PANEL + GAP) * shown.len() as f64 - GAP;
    let height = bottom + 56.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"14\" fill=\"#222222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"24\" y=\"34\" font-size=\"18\" font-weight=\"bold\">{}</text>\n\
         <text x=\"24\" y=\"56\" font-size=\"12\" fill=\"#555555\">{}</text>\n",
        escaped(title),
        escaped(subtitle)
    );
    for (number, panel) in shown.into_iter().enumerate() {
        draw_panel(&mut svg, panel, rows, end, top + (PANEL + GAP) * number as f64);
    }
    for mark in &marks {
        draw_mark(&mut svg, mark, bottom);
    }
    axis(&mut svg, end, bottom);
    svg.push_str("</svg>\n");
    svg
}

/// Horizontal position of a time.
fn x_of(time: u64, end: u64) -> f64 {
    let scale = |time: u64| (time as f64).sqrt();
    LEFT + (RIGHT - LEFT) * scale(time) / scale(end.max(1))
}

/// The marks of the first event of each marked kind and of the end. Each is in a row where neither its text
/// nor its line overlaps another mark's text, if there is such a row.
fn marks(rows: &[PropagationRow], end: u64) -> Vec<Mark<'_>> {
    let mut wanted: Vec<(u64, &str)> = Vec::new();
    for (event, text) in MARKED {
        let first = rows.iter().find(|row| row.event == event);
        wanted.extend(first.map(|row| (row.time, text)));
    }
    wanted.extend(rows.last().map(|row| (row.time, row.event.as_str())));
    wanted.sort_by_key(|(time, _)| *time);
    let mut marks: Vec<Mark<'_>> = Vec::new();
    for (time, text) in wanted {
        let x = x_of(time, end);
        let width = LETTER * text.chars().count() as f64;
        let start = if x + 5.0 + width > WIDTH - 12.0 { x - 5.0 - width } else { x + 5.0 };
        let mut mark = Mark { x, text, row: 0, start, end: start + width };
        let top = marks.iter().map(|placed| placed.row).min().unwrap_or(0);
        let bottom = marks.iter().map(|placed| placed.row).max().unwrap_or(0);
        let mut rows = (top..=bottom + 1).chain([top - 1]);
        let free = rows.find(|row| Mark { row: *row, ..mark }.is_clear_of(&marks));
        mark.row = free.unwrap_or(bottom + 1);
        marks.push(mark);
    }
    let top = marks.iter().map(|mark| mark.row).min().unwrap_or(0);
    marks.iter_mut().for_each(|mark| mark.row -= top);
    marks
}

impl Mark<'_> {
    /// Returns `true` if the mark overlaps none of `marks`. A mark's line runs downwards from its row.
    fn is_clear_of(&self, marks: &[Mark<'_>]) -> bool {
        let crosses = |line: &Mark<'_>, text: &Mark<'_>| {
            line.row < text.row && (text.start..text.end).contains(&line.x)
        };
        marks.iter().all(|mark| {
            let is_apart =
                self.row != mark.row || self.end + 8.0 < mark.start || mark.end + 8.0 < self.start;
            is_apart && !crosses(self, mark) && !crosses(mark, self)
        })
    }
}

fn draw_mark(svg: &mut String, mark: &Mark<'_>, bottom: f64) {
    let y = MARKS + MARK_STEP * f64::from(mark.row);
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.2}\" y1=\"{y}\" x2=\"{x:.2}\" y2=\"{bottom}\" stroke=\"#222222\" \
         stroke-dasharray=\"3 3\"/><text x=\"{:.2}\" y=\"{}\" font-size=\"12\">{}</text>",
        mark.start,
        y + 11.0,
        escaped(mark.text),
        x = mark.x
    );
}

fn draw_panel(svg: &mut String, panel: &Panel, rows: &[PropagationRow], end: u64, top: f64) {
    let most = rows.iter().map(panel.value).max().unwrap_or(0);
    let base = top + PANEL;
    let y_of = |value: u64| base - PANEL * value as f64 / most.max(1) as f64;
    let _ = writeln!(
        svg,
        "<text x=\"24\" y=\"{}\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"12\">{most}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"12\">0</text>\
         <path d=\"M{LEFT} {top}H{RIGHT}M{LEFT} {base}H{RIGHT}\" stroke=\"#dddddd\"/>",
        top + PANEL / 2.0 + 5.0,
        panel.name,
        LEFT - 8.0,
        top + 9.0,
        LEFT - 8.0,
        base
    );
    let Some(first) = rows.first() else { return };
    let mut line = format!("M{:.2} {base:.2}", x_of(first.time, end));
    for row in rows {
        let _ = write!(line, "H{:.2}V{:.2}", x_of(row.time, end), y_of((panel.value)(row)));
    }
    let _ = writeln!(
        svg,
        "<path d=\"{line}V{base:.2}Z\" fill=\"{colour}\" fill-opacity=\"0.35\"/>\
         <path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        colour = panel.colour
    );
}

fn axis(svg: &mut String, end: u64, bottom: f64) {
    let powers = (0..19).map(|power| 10u64.pow(power));
    let round = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power));
    let round: Vec<u64> = round.filter(|time| *time < end).collect();
    // From the end backwards, as close as their labels permit.
    let room = LETTER * f64::from(end.max(1).ilog10() + 1) + 12.0;
    let mut ticks = vec![0, end];
    for time in round.into_iter().rev() {
        let x = x_of(time, end);
        if ticks.iter().all(|tick| (x_of(*tick, end) - x).abs() > room) {
            ticks.push(time);
        }
    }
    for time in ticks {
        let x = x_of(time, end);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"#222222\"/>\
             <text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{time}</text>",
            bottom + 5.0,
            bottom + 19.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.2}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\" fill=\"#555555\">\
         wave instructions since the fault, over all waves (square-root scale)</text>",
        (LEFT + RIGHT) / 2.0,
        bottom + 42.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time: u64, words: u64, event: &str) -> PropagationRow {
        let event = event.to_owned();
        PropagationRow { time, wrong_words: words, event, ..PropagationRow::default() }
    }

    #[test]
    fn close_marks_do_not_overlap() {
        let events = ["fault", "path", "escape", "missing", "output", "gone"];
        let mut rows: Vec<_> = events.into_iter().map(|event| row(7, 1, event)).collect();
        rows.push(row(8, 0, "died"));
        let marks = marks(&rows, 8);
        assert_eq!(marks.len(), 7);
        for (index, mark) in marks.iter().enumerate() {
            assert!(mark.is_clear_of(&marks[index + 1..]), "{}", mark.text);
        }
        let moved = Mark { row: marks[1].row, ..marks[2] };
        assert!(!moved.is_clear_of(&marks[1..2]), "overlapping texts are detected");
    }

    #[test]
    fn only_state_that_was_wrong_has_a_panel() {
        let rows = [row(0, 3, "fault"), row(10, 0, "gone"), row(10, 0, "died")];
        let svg = propagation_svg(&rows, "a<b", "");
        assert!(svg.contains("register words") && !svg.contains("LDS") && !svg.contains("a<b"));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn empty_trace_has_a_plot() {
        assert!(!propagation_svg(&[], "", "").contains("NaN"));
        assert!(!propagation_svg(&[row(0, 0, "died")], "", "").contains("NaN"));
    }
}
