//! Both runs, from the fault to the end.

use super::bytes::Memory;
use super::compare::{Compare, Scene};
use super::golden::Golden;
use super::reach::Reached;
use super::story::Story;
use super::{TraceEnding, TraceError, WrongOutput};
use crate::fault_space::workgroups;
use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::InjectionError;
use crate::site::When;
use crate::{Site, Workload};
use flipwave_device::{Address, Completion, DeviceError, DeviceFault, Dispatch, FaultCause};
use flipwave_machine::{Progress, Simulator};

/// Wave instructions between checks for remaining differences.
const CHUNK: u64 = 4096;

/// Both runs of a workload.
pub struct Run<'r, 'a> {
    pub workload: &'r Workload,
    pub site: &'r Site,
    pub limits: &'r [u64],
    pub observer: &'r mut FaultObserver<'a>,
    pub story: &'r mut Story,
}

impl Run<'_, '_> {
    /// Follows the fault from where it strikes first.
    ///
    /// # Errors
    /// [`TraceError`] if a run leaves what the embedded GPU can execute.
    pub fn follow(&mut self, reached: Reached) -> Result<TraceEnding, TraceError> {
        let Reached { device, dispatch: first, executed } = reached;
        let workload = self.workload;
        let mut memory = Memory::new(&device);
        let (mut faulty, mut golden) = (device.clone(), device);
        let dispatches = (0..).zip(workload.program.dispatches.iter().zip(self.limits));
        for (index, (dispatch, limit)) in dispatches.skip(first as usize) {
            let dispatch = Dispatch { instruction_limit: *limit, ..dispatch.clone() };
            self.observer.begin(workgroups(&dispatch));
            let mut execution = faulty.begin(&dispatch)?;
            let golden_execution = if index == first {
                // Before the first strike, both runs are equal and execute as one.
                while execution.statistics().wave_instructions < executed {
                    if workload.cancellation.is_stopped() {
                        return Err(TraceError::Stopped);
                    }
                    let until = execution.statistics().wave_instructions + CHUNK;
                    faulty.advance(&mut execution, self.observer, until.min(executed))?;
                }
                golden = faulty.clone();
                execution.clone()
            } else {
                golden.begin(&dispatch)?
            };
            let outputs = &workload.program.outputs;
            let (site, lines) = (self.site, workload.lines(&dispatch));
            let scene = Scene { site, dispatch: index, lines, outputs };
            let strikes = site.event().is_none_or(|event| event.dispatch == index);
            let strikes_again = self.strikes_again();
            let observer = strikes.then_some(&mut *self.observer);
            let golden_run = Golden::new(golden, golden_execution, &workload.cancellation);
            let mut compare = Compare::new(scene, observer, golden_run, memory, self.story);
            loop {
                let until = execution.statistics().wave_instructions.saturating_add(CHUNK);
                let progress =
                    faulty.advance_recording_writes(&mut execution, &mut compare, until)?;
                if let Some(error) = compare.failure.take() {
                    return Err(error.into());
                }
                match progress {
                    Progress::Paused if compare.is_over() && !strikes_again => {
                        return Ok(TraceEnding::Died);
                    }
                    Progress::Paused => workload.cancellation.stop_if_cancelled(&mut execution),
                    Progress::Ended(Completion::Completed(_)) => break,
                    Progress::Ended(Completion::Faulted(fault)) => {
                        compare.stop();
                        return self.faulted(index, fault);
                    }
                }
            }
            let left;
            (golden, left) = compare.conclude(&faulty)?;
            let next = index as usize + 1;
            workload.change(&mut golden, next)?;
            workload.change(&mut faulty, next)?;
            memory = match workload.program.changes.before(next) {
                [] => left.memory,
                _ => left.change(&golden, &faulty, outputs, self.story)?,
            };
            let is_permanent = matches!(self.site.when, When::Always(_));
            if memory.wrong() == (0, 0) && !is_permanent {
                return Ok(TraceEnding::Died);
            }
        }
        Ok(self.completed(&memory, &faulty)?)
    }

    /// Returns `true` if the fault may strike more than once in a dispatch.
    fn strikes_again(&self) -> bool {
        let event = self.site.event();
        event.is_none_or(|event| event.wave.is_none() || event.intermittent.is_some())
    }

    fn faulted(&self, dispatch: u32, fault: DeviceFault) -> Result<TraceEnding, TraceError> {
        let fault = DeviceFault { cause: fault.cause.in_faulty_run(), ..fault };
        if matches!(fault.cause, FaultCause::Unimplemented { .. }) {
            return Err(InjectionError::Gap {
                site: Box::new(*self.site),
                dispatch,
                fault: Box::new(fault),
            }
            .into());
        }
        Ok(TraceEnding::Faulted { dispatch, fault })
    }

    fn completed(&self, memory: &Memory, faulty: &Simulator) -> Result<TraceEnding, DeviceError> {
        let mut wrong: Vec<WrongOutput> = Vec::new();
        let (memory_bytes, _) = memory.wrong();
        if memory_bytes == 0 {
            return Ok(TraceEnding::Died);
        }
        let differing = memory.bytes();
        for (output, buffer) in self.workload.program.outputs.iter().enumerate() {
            let start = buffer.address.0;
            let range = start..start.saturating_add(buffer.bytes as u64);
            let mut wrong_bytes = differing.iter().filter(|(place, _)| range.contains(place));
            if let Some((place, golden)) = wrong_bytes.next() {
                let mut now = [0];
                faulty.read(Address(*place), &mut now)?;
                let (bytes, first) = (1 + wrong_bytes.count() as u64, place - range.start);
                wrong.push(WrongOutput { output, bytes, first, golden: *golden, faulty: now[0] });
            }
        }
        Ok(if wrong.is_empty() {
            TraceEnding::Contained { memory_bytes }
        } else {
            TraceEnding::Escaped(wrong)
        })
    }
}
