//! The events of a trace as they come, and what differs over time.

use super::spread::Series;
use super::{Event, LeftOut, Spread, Step, Trace, TraceEnding, What};
use crate::inject::injection::Struck;
use flipwave_device::WaveId;
use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

/// Most waves whose first difference or other path is recorded.
const MOST: usize = 256;

/// A kind of event; of those that each wave has, of which wave of which dispatch.
type Kind = (Discriminant<What>, Option<(u32, WaveId)>);

/// What has happened so far.
#[derive(Debug)]
pub struct Story {
    events: Vec<Event>,
    /// The kinds of events that need no other event.
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

    /// An instruction was executed, and struck or not.
    pub fn pass(&mut self, is_struck: bool) {
        self.time = match self.time {
            Some(time) => Some(time + 1),
            None => is_struck.then_some(0),
        };
    }

    /// The time, if the fault has struck.
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// An instruction read a wrong register and wrote nothing wrong.
    pub fn count_masked(&mut self) {
        self.masked += 1;
    }

    /// A difference in the wave of this step needs no event.
    pub fn skip_wave(&mut self, step: &Step) {
        self.recorded.insert((discriminant(&What::Wave), Some((step.dispatch, step.wave))));
    }

    /// Records an event, unless it is another of a kind that is recorded once. Of [`What::Gone`]
    /// the last one counts.
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

    /// Notes what differs after a step.
    pub fn sample(&mut self, spread: Spread, step: &Step) {
        self.series.add(spread, step);
    }

    /// Whether an event like this is recorded.
    pub fn has(&self, is: impl Fn(&What) -> bool) -> bool {
        self.events.iter().any(|event| is(&event.what))
    }

    /// There was no room for a wave.
    pub fn leave_out_wave(&mut self) {
        self.left_out.waves += 1;
    }

    /// All of it, with what was struck and how it ended.
    pub fn into_trace(self, struck: Struck, ending: TraceEnding) -> Trace {
        let (samples, peak) = self.series.into_parts();
        let Story { events, left_out, time, masked, .. } = self;
        let time = time.unwrap_or(0);
        Trace { struck, events, samples, peak, masked, time, ending, left_out }
    }
}
