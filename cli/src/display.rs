//! The progress display: a bar on a terminal, otherwise a few lines.

use crate::long_runs::LongRuns;
use crate::output::{complain, say};
use flipwave_analysis::{Look, Outcome};
use flipwave_campaigns::{CancellationToken, Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Progress display on standard error.
pub struct Display {
    cancellation: CancellationToken,
    is_terminal: bool,
    /// The current bar.
    bar: Arc<Mutex<ProgressBar>>,
    planned: u64,
    counts: [u64; Outcome::ALL.len()],
    /// Reports long kernels until injections start, whose number then shows the progress.
    long_runs: Option<LongRuns>,
    /// Redraws the current bar.
    ticker: Option<Ticker>,
}

/// A thread that calls a function periodically until it is dropped. Indicatif's own thread panics if the
/// system cannot start one.
struct Ticker {
    _end: Sender<()>,
}

impl Ticker {
    /// Starts the thread. Returns `None` if that fails; the bar is then redrawn only after events.
    fn start(tick: impl Fn() + Send + 'static) -> Option<Ticker> {
        let (end, ended) = channel::<()>();
        let run = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(REFRESH) {
                tick();
            }
        };
        Builder::new().name("progress".into()).spawn(run).ok().map(|_| Ticker { _end: end })
    }
}

/// The interval at which the bar is redrawn without events.
const REFRESH: Duration = Duration::from_millis(100);

/// The number of lines that report the injections without a terminal.
const LINES: u64 = 10;

impl Display {
    pub fn new(cancellation: &CancellationToken) -> Display {
        let bar = Arc::new(Mutex::new(ProgressBar::hidden()));
        Display {
            cancellation: cancellation.clone(),
            is_terminal: std::io::stderr().is_terminal(),
            long_runs: Some(long_runs(cancellation, &bar)),
            bar,
            planned: 0,
            counts: [0; Outcome::ALL.len()],
            ticker: None,
        }
    }

    /// Removes the bar from the terminal.
    pub fn finish(&mut self) {
        self.long_runs = None;
        self.ticker = None;
        lock(&self.bar).finish_and_clear();
    }

    fn tally(&self) -> String {
        let parts =
            Outcome::ALL.map(|outcome| format!("{outcome} {}", self.counts[outcome as usize]));
        parts.join(", ")
    }
}

impl Progress for Display {
    fn variant(&mut self, name: &str, number: usize, count: usize) {
        lock(&self.bar).finish_and_clear();
        say(format!("variant {number} of {count}: {name}"));
        self.counts = [0; Outcome::ALL.len()];
        self.long_runs = Some(long_runs(&self.cancellation, &self.bar));
    }

    fn phase(&mut self, phase: Phase) {
        let step = match phase {
            Phase::Preparing => "compiling and loading kernels".to_owned(),
            Phase::Golden => "golden run: profiling the fault space".to_owned(),
            Phase::Planning => "resolving fault sites".to_owned(),
            Phase::SelfTest => "self-test: injecting faults with known outcomes".to_owned(),
            Phase::Injecting { count } => format!("injecting {count} faults"),
        };
        if let Phase::Injecting { count } = phase {
            self.planned = count;
            self.long_runs = None;
        }
        if !self.is_terminal {
            say(step);
            return;
        }
        let mut bar = lock(&self.bar);
        bar.finish_and_clear();
        *bar = match phase {
            Phase::Injecting { count } => {
                ProgressBar::new(count).with_style(style("{bar:30} {pos}/{len} {msg} ({eta} left)"))
            }
            _ => ProgressBar::new_spinner().with_style(style("{spinner} {msg}")),
        };
        bar.set_message(step);
        let tick = {
            let bar = bar.clone();
            move || bar.tick()
        };
        drop(bar);
        self.ticker = Ticker::start(tick);
    }

    fn injected(&mut self, outcome: Outcome) {
        self.counts[outcome as usize] += 1;
        if self.is_terminal {
            let bar = lock(&self.bar);
            bar.set_message(self.tally());
            bar.inc(1);
            return;
        }
        let done: u64 = self.counts.iter().sum();
        if (done - 1) * LINES / self.planned != done * LINES / self.planned {
            say(format!("{done} of {}: {}", self.planned, self.tally()));
        }
    }

    fn look(&mut self, look: &Look) {
        lock(&self.bar).suspend(|| say(look.to_string()));
    }

    fn warn(&mut self, text: &str) {
        lock(&self.bar).suspend(|| complain(format!("warning: {text}")));
    }
}

/// Starts reporting long kernels, without disturbing the bar.
fn long_runs(cancellation: &CancellationToken, bar: &Arc<Mutex<ProgressBar>>) -> LongRuns {
    let bar = Arc::clone(bar);
    LongRuns::start(cancellation, move |line| lock(&bar).suspend(|| say(line)))
}

fn lock(bar: &Mutex<ProgressBar>) -> MutexGuard<'_, ProgressBar> {
    bar.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parses a template; the templates above are valid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
