//! The comparison as an observer of the faulty run: injection of the fault, and recording of events.

use super::Compare;
use crate::site::Place;
use crate::trace::bytes::{Lds, Memory};
use crate::trace::found::Found;
use crate::trace::left::Left;
use crate::trace::registers::words;
use crate::trace::{Gone, Spread, Step, TraceError, What};
use flipwave_arch::{Instruction, RegisterId};
use flipwave_device::WaveId;
use flipwave_machine::{Executed, Observer, Simulator, Watch, WaveState};

impl Compare<'_, '_> {
    /// Ends the comparison of a dispatch that has completed on `faulty`: records how its memory differs
    /// from the golden run, and returns the golden run's device and the differences.
    ///
    /// # Errors
    /// [`TraceError`] if the golden run cannot be completed.
    pub fn conclude(mut self, faulty: &Simulator) -> Result<(Simulator, Left), TraceError> {
        self.golden.finish()?;
        let memory = Memory::between(&self.golden.gpu, faulty)?;
        let left = Left { memory, step: self.last };
        left.record(faulty, self.scene.outputs, self.story)?;
        if let Some(step) = &left.step
            && self.has_parted
            && left.spread().is_none()
        {
            self.story.record(What::Gone(Gone::Ended), Spread::default(), step);
        }
        Ok((self.golden.gpu, left))
    }

    /// Ends the comparison after the device has stopped the faulty run. Records the fault if it
    /// prevented the struck instruction from completing.
    pub fn stop(mut self) {
        if self.has_struck()
            && let Some((inst, wave)) = self.under_way.take()
        {
            self.story.pass(true);
            let step = self.step(&*inst, wave);
            self.story.record(What::Fault(None), self.spread(), &step);
        }
    }

    /// Returns `true` if the fault has struck since the last call.
    fn has_struck(&mut self) -> bool {
        let words = self.observer.as_ref().map_or(0, |observer| observer.words());
        std::mem::replace(&mut self.struck, words) < words
    }

    fn step(&self, inst: &dyn Instruction, wave: WaveId) -> Step {
        Step {
            time: self.story.time().unwrap_or(0),
            dispatch: self.scene.dispatch,
            wave,
            pc: inst.pc(),
            operation: inst.operation(),
            text: inst.text().to_owned(),
            line: self.scene.lines.and_then(|lines| lines.lookup(inst.pc())),
        }
    }

    /// Returns `true` if an instruction at this PC may be struck.
    fn may_strike(&self, inst: &dyn Instruction) -> bool {
        self.scene.site.event().is_some_and(|event| event.pc == inst.pc())
    }

    fn is_watched_by_strike(&mut self, wave: WaveId) -> bool {
        self.observer.as_mut().is_some_and(|observer| observer.watches(wave))
    }

    /// Lets the fault strike after an instruction.
    fn let_strike(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) {
        if !self.is_watched_by_strike(executed.wave) {
            return;
        }
        if let Place::Register(first) = self.scene.site.place
            && self.may_strike(executed.inst)
        {
            let registers =
                (0..self.scene.site.action.words()).filter_map(|n| first.offset(n.into()));
            self.keep(registers, state);
        }
        if let Some(observer) = &mut self.observer {
            observer.after(executed, state);
        }
    }

    fn keep(&mut self, registers: impl IntoIterator<Item = RegisterId>, state: &dyn WaveState) {
        let held = |register| words(state, register).map(|words| (register, words));
        self.kept = registers.into_iter().filter_map(held).collect();
    }

    /// Records the findings of an instruction.
    fn record(&mut self, executed: &Executed<'_>, found: &Found, is_struck: bool, before: Spread) {
        if self.story.time().is_none() {
            return;
        }
        let spread = self.spread();
        let mut happened = found.happened(is_struck, self.scene.site.place);
        if !is_struck && self.waves.get(executed.wave).is_some() {
            happened.push(What::Wave);
        }
        if self.reads_wrong && !found.is_wrong {
            self.story.count_masked();
            happened.push(What::Masked);
        }
        if spread.is_none() && !before.is_none() && !self.has_parted {
            happened.push(What::Gone(self.manner(executed.inst)));
        }
        if happened.is_empty() && spread == before {
            return;
        }
        let step = self.step(executed.inst, executed.wave);
        if is_struck {
            self.story.skip_wave(&step);
        }
        for what in happened {
            self.story.record(what, spread, &step);
        }
        self.story.sample(spread, &step);
    }

    /// Determines how the instruction removed the last difference.
    fn manner(&self, inst: &dyn Instruction) -> Gone {
        if self.reads_wrong {
            Gone::Masked
        } else if inst.ends_wave() {
            Gone::Ended
        } else {
            Gone::Overwritten
        }
    }
}

impl Observer for Compare<'_, '_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.lds.start(wave);
        true
    }

    fn before(&mut self, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        if !state.lds().is_empty() {
            self.lds.get_or(wave.workgroup, || Lds::new(state.lds()));
        }
        let exec = state.active();
        self.reads_wrong =
            self.waves.get(wave).is_some_and(|wave_diff| wave_diff.is_read(inst, exec));
        if self.is_watched_by_strike(wave) {
            if matches!(self.scene.site.place, Place::Encoding(_)) && self.may_strike(inst) {
                // The registers that the altered instruction writes are not known yet.
                self.keep(state.changeable(), state);
            }
            if let Some(observer) = &mut self.observer {
                observer.before(inst, wave, state);
                if observer.words() > self.struck {
                    self.under_way = Some((inst.boxed(), wave));
                }
            }
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let wave = executed.wave;
        let before = self.spread();
        self.let_strike(executed, state);
        let is_struck = self.has_struck();
        let original = self.under_way.take();
        // Signals between waves are not registers. They may differ from here on, so waves may continue
        // in a different order than in the golden run before any register differs.
        self.has_parted |= (is_struck || self.reads_wrong)
            && (executed.inst.synchronizes()
                || original.is_some_and(|(original, _)| original.synchronizes()));
        let entry = match self.golden.next(wave) {
            Ok(entry) => entry,
            Err(error) => {
                self.failure = Some(error);
                return Watch::Off;
            }
        };
        self.story.pass(is_struck);
        let is_apart = self.waves.get(wave).is_some_and(|wave_diff| wave_diff.is_on_other_path);
        if !is_apart && self.golden.log.has_left_out(wave) {
            self.story.leave_out_wave();
            self.part(wave);
        }
        let found = self.compare(executed, entry, is_struck, state);
        self.record(executed, &found, is_struck, before);
        if executed.inst.ends_wave() {
            self.last = Some(self.step(executed.inst, wave));
        }
        Watch::On
    }
}
