//! Progress on a terminal, or as quiet lines where there is none.

use flipwave_analysis::Outcome;
use flipwave_campaigns::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Shows progress on standard error.
pub struct Display {
    is_terminal: bool,
    bar: ProgressBar,
    planned: u64,
    counts: [u64; Outcome::ALL.len()],
}

/// How often the bar is drawn even if nothing happens.
const REFRESH: Duration = Duration::from_millis(100);

/// How many lines tell of the injections where there is no terminal.
const LINES: u64 = 10;

impl Display {
    pub fn new() -> Display {
        let is_terminal = std::io::stderr().is_terminal();
        let counts = [0; Outcome::ALL.len()];
        Display { is_terminal, bar: ProgressBar::hidden(), planned: 0, counts }
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
            Phase::SelfTest => "injecting faults whose outcomes are known".to_owned(),
            Phase::Injecting { count } => format!("injecting {count} faults"),
        };
        if let Phase::Injecting { count } = phase {
            self.planned = count;
        }
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
        self.bar.enable_steady_tick(REFRESH);
    }

    fn injected(&mut self, outcome: Outcome) {
        self.counts[outcome as usize] += 1;
        if self.is_terminal {
            self.bar.set_message(self.tally());
            self.bar.inc(1);
            return;
        }
        let done: u64 = self.counts.iter().sum();
        if (done - 1) * LINES / self.planned != done * LINES / self.planned {
            eprintln!("{done} of {}: {}", self.planned, self.tally());
        }
    }
}

/// The style of a template; the templates above are valid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
