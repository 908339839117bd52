//! Progress on a terminal, or as quiet lines where there is none.

use flipwave_analysis::Outcome;
use flipwave_campaigns::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Shows progress on standard error.
pub struct Display {
    is_terminal: bool,
    bar: ProgressBar,
    counts: [u64; Outcome::ALL.len()],
}

impl Display {
    pub fn new() -> Display {
        let is_terminal = std::io::stderr().is_terminal();
        Display { is_terminal, bar: ProgressBar::hidden(), counts: [0; Outcome::ALL.len()] }
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tally(&self) -> String {
        let parts =
            Outcome::ALL.map(|outcome| format!("{outcome} {}", self.counts[outcome as usize]));
        parts.join(", ")
    }
}

impl Progress for Display {
    fn phase(&mut self, phase: Phase) {
        let step = match phase {
            Phase::Preparing => "compiling and loading kernels".to_owned(),
            Phase::Golden => "running without faults".to_owned(),
            Phase::Profiling => "counting what can be hit".to_owned(),
            Phase::Planning => "drawing fault sites".to_owned(),
            Phase::Injecting { count } => format!("injecting {count} faults"),
        };
        if !self.is_terminal {
            eprintln!("{step}");
            return;
        }
        self.bar.finish_and_clear();
        self.bar = match phase {
            Phase::Injecting { count } => {
                ProgressBar::new(count).with_style(style("{bar:30} {pos}/{len} {msg} ({eta} left)"))
            }
            _ => ProgressBar::new_spinner().with_style(style("{spinner} {msg}")),
        };
        self.bar.set_message(step);
        self.bar.tick();
    }

    fn injected(&mut self, outcome: Outcome) {
        self.counts[outcome as usize] += 1;
        if self.is_terminal {
            self.bar.set_message(self.tally());
            self.bar.inc(1);
        }
    }
}

/// The style of a template; the templates above are valid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
