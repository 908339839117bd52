//! Events of a trace in progress, and the differences over time.

use super::spread::Series;
use super::{Event, LeftOut, Spread, Step, Trace, TraceEnding, What};
use crate::inject::injection::InjectedChange;
use flipwave_device::WaveId;
use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

/// Maximum number of recorded events for first differences or different paths of waves.
const MOST: usize = 256;

/// Kind of an event; for events of waves, with the dispatch and the wave.
type Kind = (Discriminant<What>, Option<(u32, WaveId)>);

/// Events so far.
#[derive(Debug)]
pub struct Story {
    events: Vec<Event>,
    /// Kinds of events that are already recorded.
    recorded: HashSet<Kind>,
    series: Series,
    left_out: LeftOut,
    /// Wave instructions since the fault, if it has struck.
    time: Option<u64>,
    /// Instructions that read a wrong register and wrote nothing wrong.
    masked: u64,
}

impl Story {
    pub fn new() -> Story {
        Story {
            events: Vec::new(),
            recorded: HashSet::new(),
            series: Series::new(),
            left_out: LeftOut::default(),
            time: None,
            masked: 0,
        }
    }

    /// Counts an executed instruction, which was struck or not.
    pub fn pass(&mut self, is_struck: bool) {
        self.time = match self.time {
            Some(time) => Some(time + 1),
            None => is_struck.then_some(0),
        };
    }

    /// The time since the fault, if it has struck.
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// Counts an instruction that read a wrong register but wrote nothing wrong.
    pub fn count_masked(&mut self) {
        self.masked += 1;
    }

    /// Suppresses the event for the first difference in the wave of this step.
    pub fn skip_wave(&mut self, step: &Step) {
        self.recorded.insert((discriminant(&What::Wave), Some((step.dispatch, step.wave))));
    }

    /// Records an event, unless its kind is recorded only once and already recorded. For
    /// [`What::Gone`], the last event is kept.
    pub fn record(&mut self, what: What, spread: Spread, step: &Step) {
        let is_of_wave = matches!(what, What::Wave | What::Path { .. });
        let which = is_of_wave.then_some((step.dispatch, step.wave));
        let is_new = self.recorded.insert((discriminant(&what), which));
        if matches!(what, What::Gone(_)) {
            self.events.retain(|event| !matches!(event.what, What::Gone(_)));
        } else if !is_new {
            return;
        } else if is_of_wave && self.events.len() >= MOST {
            self.left_out.events += 1;
            return;
        }
        self.events.push(Event { step: step.clone(), what, spread });
    }

    /// Adds the differences after a step.
    pub fn sample(&mut self, spread: Spread, step: &Step) {
        self.series.add(spread, step);
    }

    /// Returns `true` if a matching event is recorded.
    pub fn has(&self, is: impl Fn(&What) -> bool) -> bool {
        self.events.iter().any(|event| is(&event.what))
    }

    /// Counts a wave excluded for lack of space.
    pub fn leave_out_wave(&mut self) {
        self.left_out.waves += 1;
    }

    /// Converts to the trace, with the values struck and the end of the run.
    pub fn into_trace(self, struck: InjectedChange, ending: TraceEnding) -> Trace {
        let (samples, peak) = self.series.into_parts();
        let Story { events, left_out, time, masked, .. } = self;
        let time = time.unwrap_or(0);
        Trace { struck, events, samples, peak, masked, time, ending, left_out }
    }
}
