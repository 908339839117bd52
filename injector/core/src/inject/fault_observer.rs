//! An observer that injects a fault inside the embedded GPU when the site is reached.

use crate::fault_space::result_word;
use crate::inject::cell::Cells;
use crate::inject::injection::{InjectedChange, InjectionError};
use crate::site::{Event, Place, Site, SumPlace, Unit, When};
use flipwave_arch::{Architecture, Instruction, Lane, LaneMask, Pc, RegisterId, SimdShape};
use flipwave_device::WaveId;
use flipwave_machine::{
    Executed, Interest, Observer, Stretch, StretchObserver, SummedElement, Watch, WaveState,
};
use std::collections::HashMap;

/// Waits for the site and injects the fault.
pub struct FaultObserver<'a> {
    site: &'a Site,
    cells: Cells<'a>,
    /// Workgroups of the dispatch in x and y.
    workgroups: [u32; 2],
    /// SIMD units per compute unit and their width.
    simds: SimdShape,
    /// Executions of the site's instruction by each wave so far.
    occurrences: HashMap<WaveId, u64>,
    /// Instructions that the wave has executed before the site's execution. Set if that number is known
    /// and the wave may already be running.
    time: Option<u64>,
    /// Source operands to restore after the instruction.
    borrowed: Vec<Borrowed>,
    /// A matrix element whose sum was struck, to be written after the instruction, with the struck
    /// value before and after the fault.
    summed: Option<(SummedElement, [u64; 2])>,
    /// Number of dispatches so far.
    dispatches: u32,
    /// The wave whose values the outcome reports.
    first: Option<WaveNumber>,
    outcome: Option<Result<InjectedChange, InjectionError>>,
}

/// Computes the value after the fault of a site in a lane.
fn apply(site: &Site, before: u64, lane: Lane) -> Result<u64, InjectionError> {
    site.action
        .apply(before, site.place.bits(), lane)
        .map_err(|reason| InjectionError::Function { site: Box::new(*site), reason })
}

/// Orders waves by dispatch, then by the workgroup's position (z, y, x), then by the wave's number in
/// the workgroup.
type WaveNumber = (u32, [u32; 3], u32);

/// Saved value of a source operand while the instruction reads a faulty one.
struct Borrowed {
    register: RegisterId,
    lane: Lane,
    value: u32,
}

impl<'a> FaultObserver<'a> {
    /// Creates an observer for a program that runs by itself on a device with this target. The caller
    /// begins each dispatch and runs only dispatches that can contain the site. The program has no
    /// buffers: sites in memory are never struck.
    pub fn in_application(site: &'a Site, architecture: &dyn Architecture) -> FaultObserver<'a> {
        FaultObserver::new(site, Cells { buffers: &[] }, architecture.simds())
    }

    /// Creates an observer that has struck nothing yet.
    pub(crate) fn new(site: &'a Site, cells: Cells<'a>, simds: SimdShape) -> FaultObserver<'a> {
        FaultObserver {
            site,
            cells,
            workgroups: [1, 1],
            simds,
            occurrences: HashMap::new(),
            time: None,
            borrowed: Vec::new(),
            summed: None,
            dispatches: 0,
            first: None,
            outcome: None,
        }
    }

    /// Makes the observer identify the site's execution by the number of instructions that the wave has
    /// executed before, because the wave may already be running.
    pub(crate) fn at_time(self, time: u64) -> FaultObserver<'a> {
        FaultObserver { time: Some(time), ..self }
    }

    /// Begins a dispatch with this many workgroups in x and y.
    pub fn begin(&mut self, workgroups: [u32; 2]) {
        self.workgroups = workgroups;
        self.occurrences.clear();
        self.dispatches += 1;
    }

    /// The result so far, if anything was struck.
    pub fn so_far(&self) -> Option<&Result<InjectedChange, InjectionError>> {
        self.outcome.as_ref()
    }

    /// Number of words struck so far.
    pub(crate) fn words(&self) -> u64 {
        self.outcome
            .as_ref()
            .and_then(|outcome| outcome.as_ref().ok())
            .map_or(0, |struck| struck.words)
    }

    /// The result, if anything was struck.
    pub(crate) fn outcome(self) -> Option<Result<InjectedChange, InjectionError>> {
        self.outcome
    }

    /// Number of earlier executions of the site's instruction by this wave.
    fn occurrence(&self, wave: WaveId) -> u64 {
        self.occurrences.get(&wave).copied().unwrap_or(0)
    }

    /// Counts executions by a wave if they are of the site's instruction.
    fn pass(&mut self, wave: WaveId, inst: &dyn Instruction, times: u64) {
        if self.site.event().is_some_and(|event| event.pc == inst.pc()) {
            *self.occurrences.entry(wave).or_default() += times;
        }
    }

    /// Returns `true` if the fault strikes the execution that begins or has just ended; `executed` is
    /// the number of instructions of the wave before it.
    fn is_struck(&self, pc: Pc, wave: WaveId, executed: u64) -> bool {
        let Some(event) = self.site.event() else { return false };
        event.pc == pc
            && match self.time {
                Some(time) => time == executed,
                None => event.strikes(self.occurrence(wave)),
            }
    }

    /// Returns `true` if the wave will not be struck again, so that an execution that is resumed need
    /// not be watched.
    fn is_over(&self, event: &Event, wave: WaveId) -> bool {
        match self.time {
            Some(_) => self.outcome.is_some(),
            None => self.occurrence(wave) > event.last(),
        }
    }

    fn strike(&mut self, place: Place, lanes: LaneMask, wave: WaveId, state: &mut dyn WaveState) {
        for lane in lanes.lanes() {
            let struck = self.strike_one(place, lane, state);
            self.note(wave, struck);
        }
    }

    fn strike_one(
        &self,
        place: Place,
        lane: Lane,
        state: &mut dyn WaveState,
    ) -> Result<InjectedChange, InjectionError> {
        let site = *self.site;
        let words = site.action.words();
        let missing = || InjectionError::NoSuchPlace { place, site: Box::new(site) };
        let before = self.cells.read(state, place, lane, words).ok_or_else(missing)?;
        let wanted = apply(&site, before, lane)?;
        if !self.cells.write(state, place, lane, words, wanted) {
            return Err(missing());
        }
        let found = self.cells.read(state, place, lane, words).ok_or_else(missing)?;
        // Flipping bits of the PC that do not exist has no effect.
        let is_kept = match place {
            Place::ProgramCounter(half) => {
                let bits = state.pc_bits() >> (32 * half);
                found & bits == wanted & bits
            }
            _ => found == wanted,
        };
        if !is_kept {
            return Err(InjectionError::NotKept { site: Box::new(site), wanted, found });
        }
        Ok(InjectedChange { before, after: wanted, words: 1, absorbed: false })
    }

    /// Records a strike. The outcome reports the values of the wave with the lowest number, in whatever
    /// order waves run; an error takes precedence over all values.
    fn note(&mut self, wave: WaveId, struck: Result<InjectedChange, InjectionError>) {
        let [x, y, z] = wave.workgroup;
        let number = (self.dispatches, [z, y, x], wave.wave);
        let is_first = self.first.is_none_or(|first| number < first);
        if is_first {
            self.first = Some(number);
        }
        self.outcome = Some(match (self.outcome.take(), struck) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(sum)), Ok(new)) => {
                let words = sum.words + new.words;
                Ok(InjectedChange { words, ..if is_first { new } else { sum } })
            }
            (None, new) => new,
        });
    }

    /// The site's lanes, for an instruction that runs on `active`.
    fn lanes(&self, active: LaneMask, state: &dyn WaveState) -> LaneMask {
        // A scalar value shared by all lanes is struck once.
        self.site.lanes.map_or(LaneMask(1), |lanes| lanes.of(active, state.all_lanes()))
    }

    /// Saves a source operand and strikes it, before the instruction.
    fn lend(&mut self, register: RegisterId, wave: WaveId, state: &mut dyn WaveState) {
        let lanes = self.lanes(state.active(), state);
        for lane in lanes.lanes() {
            let words = self.site.action.words();
            for word in 0..words {
                if let Some(register) = register.offset(word.into())
                    && let Some(value) = state.read(register, lane)
                {
                    self.borrowed.push(Borrowed { register, lane, value });
                }
            }
        }
        self.strike(Place::Source(register), lanes, wave, state);
    }

    /// Restores source operands after the instruction, except those that it wrote.
    fn give_back(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) {
        for Borrowed { register, lane, value } in self.borrowed.drain(..) {
            let mut is_written = false;
            executed.inst.for_each_written(&mut |written| is_written |= written == register);
            let is_written =
                is_written && (!register.is_per_lane() || executed.lanes.contains(lane));
            if !is_written {
                state.write(register, lane, value);
            }
        }
    }

    /// Computes an element of a matrix product with a part of its sum struck, before the instruction
    /// overwrites its inputs.
    fn sum_up(
        &mut self,
        place: SumPlace,
        inst: &dyn Instruction,
        wave: WaveId,
        state: &dyn WaveState,
    ) {
        let site = *self.site;
        let shape = state.matrix_shape();
        if !shape.is_some_and(|shape| place.is_of(&shape, site.action.words())) {
            let (text, site) = (inst.text().trim().to_owned(), Box::new(site));
            self.note(wave, Err(InjectionError::NoSuchSum { text, shape, site }));
            return;
        }
        let mut struck = None;
        let summed = state.sum_matrix_element(place.element, &mut |part, step, bits| {
            if (part, step) != (place.part, place.step) {
                return bits;
            }
            let shift = 32 * u32::from(place.word);
            let mask = u64::MAX >> (64 - 32 * u32::from(site.action.words()));
            let before = bits >> shift & mask;
            let after = apply(&site, before, Lane(0)).map(|after| after & mask);
            let bits =
                after.as_ref().map_or(bits, |after| bits & !(mask << shift) | after << shift);
            struck = Some(after.map(|after| [before, after]));
            bits
        });
        let struck = match struck.transpose() {
            Ok(struck) => struck,
            Err(error) => return self.note(wave, Err(error)),
        };
        self.summed = summed.zip(struck);
        if self.summed.is_none() {
            let error = InjectionError::NoSuchPlace { place: site.place, site: Box::new(site) };
            self.note(wave, Err(error));
        }
    }

    /// Writes the matrix element computed by [`FaultObserver::sum_up`].
    fn write_summed(&mut self, wave: WaveId, state: &mut dyn WaveState) {
        if let Some((element, [before, after])) = self.summed.take() {
            let absorbed = !state.write_matrix_element(&element);
            self.note(wave, Ok(InjectedChange { before, after, words: 1, absorbed }));
        }
    }

    /// Changes a dword of the instruction that is about to be executed.
    fn alter(&mut self, word: u8, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        let site = *self.site;
        let dwords = inst.encoding_dwords();
        if u32::from(word) >= u32::from(dwords) {
            // The dword belongs to the next instruction.
            let error = InjectionError::NoSuchDword {
                text: inst.text().trim().to_owned(),
                dwords: dwords.into(),
                site: Box::new(site),
            };
            self.note(wave, Err(error));
            return;
        }
        let before = state.code(word);
        let altered = before.map(|before| apply(&site, before.into(), Lane(0)));
        let struck = match (before, altered) {
            (Some(_), Some(Err(error))) => Err(error),
            (Some(before), Some(Ok(after))) => {
                let after = after as u32;
                let first = (0..word).filter_map(|word| state.code(word));
                let bytes: Vec<u8> = first.chain([after]).flat_map(u32::to_le_bytes).collect();
                state.replace_instruction(&bytes);
                Ok(InjectedChange {
                    before: before.into(),
                    after: after.into(),
                    words: 1,
                    absorbed: false,
                })
            }
            _ => Err(InjectionError::NoSuchPlace { place: site.place, site: Box::new(site) }),
        };
        self.note(wave, struck);
    }

    /// Changes the direction of the branch that was just executed.
    fn decide(&mut self, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        let site = *self.site;
        let missing = InjectionError::NoSuchPlace { place: site.place, site: Box::new(site) };
        let Some(target) = inst.conditional_target() else {
            self.note(wave, Err(missing));
            return;
        };
        let next = Pc(inst.pc().0.wrapping_add(inst.size().into()));
        let before = u64::from(state.pc() == target);
        let after = match apply(&site, before, Lane(0)) {
            Ok(after) => after & 1,
            Err(error) => return self.note(wave, Err(error)),
        };
        state.set_pc(if after == 1 { target } else { next });
        self.note(wave, Ok(InjectedChange { before, after, words: 1, absorbed: false }));
    }

    /// Strikes the result of an instruction executed on the unit of a permanent fault.
    fn strike_result(&mut self, unit: &Unit, executed: &Executed<'_>, state: &mut dyn WaveState) {
        let Place::Destination(number) = self.site.place else { return };
        let Some(register) = result_word(executed.inst, number) else { return };
        if register.is_per_lane() != unit.slot.is_some() {
            return;
        }
        let lanes = match unit.slot {
            Some(_) => LaneMask(unit.lanes(self.simds.width).0 & executed.lanes.0),
            None => LaneMask(1),
        };
        self.strike(Place::Register(register), lanes, executed.wave, state);
    }
}

/// For waves that a single event strikes.
impl StretchObserver for FaultObserver<'_> {
    fn allows(&mut self, wave: WaveId, executed: u64, stretch: &dyn Stretch) -> u64 {
        let Some(event) = self.site.event() else { return 0 };
        match self.time {
            Some(time) => time.saturating_sub(executed) / stretch.instruction_count(),
            None if !stretch.has_instruction_at(event.pc) => u64::MAX,
            None => event.occurrence.saturating_sub(self.occurrence(wave)),
        }
    }

    fn executed(&mut self, wave: WaveId, stretch: &dyn Stretch, times: u64, _: [LaneMask; 2]) {
        stretch.for_each_part(&mut |part| self.pass(wave, part.inst, times));
    }

    fn executed_one(&mut self, wave: WaveId, inst: &dyn Instruction, _: LaneMask) {
        self.pass(wave, inst, 1);
    }
}

impl Observer for FaultObserver<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        match &self.site.when {
            When::At(event) => event.strikes_wave(wave) && !self.is_over(event, wave),
            When::Always(unit) => unit.runs(wave, self.workgroups, self.simds.count),
        }
    }

    fn interest(&self) -> Interest {
        match &self.site.when {
            When::At(event) => Interest::Address(event.pc),
            When::Always(unit) => Interest::Operation(unit.opcode),
        }
    }

    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        match &self.site.when {
            When::At(_) => Some(self),
            When::Always(_) => None,
        }
    }

    fn before(&mut self, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        if !self.site.place.is_struck_before() || !self.is_struck(inst.pc(), wave, state.executed())
        {
            return;
        }
        match self.site.place {
            Place::Source(register) => self.lend(register, wave, state),
            Place::Encoding(word) => self.alter(word, inst, wave, state),
            Place::Sum(place) => self.sum_up(place, inst, wave, state),
            _ => {}
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let event = match &self.site.when {
            When::At(event) => event,
            When::Always(unit) => {
                if executed.inst.operation() == unit.opcode {
                    self.strike_result(unit, executed, state);
                }
                return Watch::On;
            }
        };
        if executed.inst.pc() != event.pc {
            return Watch::On;
        }
        let time = state.executed().saturating_sub(1);
        if self.is_struck(executed.inst.pc(), executed.wave, time) {
            match self.site.place {
                Place::Source(_) => self.give_back(executed, state),
                Place::Encoding(_) => {}
                Place::Sum(_) => self.write_summed(executed.wave, state),
                Place::Branch => self.decide(executed.inst, executed.wave, state),
                place => {
                    let lanes = self.lanes(executed.lanes, state);
                    self.strike(place, lanes, executed.wave, state);
                }
            }
        }
        let occurrence = self.occurrence(executed.wave);
        self.pass(executed.wave, executed.inst, 1);
        let is_over = match self.time {
            Some(strike_time) => strike_time <= time,
            None => occurrence >= event.last(),
        };
        if is_over { Watch::Off } else { Watch::On }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;

    const SIMDS: SimdShape = SimdShape { count: 4, width: 16 };

    fn site() -> Site {
        crate::testing::site(
            "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x00000001",
        )
    }

    #[test]
    fn only_the_sites_wave_is_watched() {
        let site = site();
        let mut strike = FaultObserver::new(&site, Cells { buffers: &[] }, SIMDS);
        assert!(strike.watches(wave(1, 0)));
        assert!(!strike.watches(wave(0, 0)) && !strike.watches(wave(1, 1)));
    }

    #[test]
    fn only_the_sites_occurrence_is_struck() {
        let site = site();
        let mut strike = FaultObserver::new(&site, Cells { buffers: &[] }, SIMDS);
        let pc = Pc(0x104);
        for (occurrence, expected) in [(0, false), (1, false), (2, true), (3, false)] {
            strike.occurrences.insert(wave(1, 0), occurrence);
            assert_eq!(strike.is_struck(pc, wave(1, 0), 9), expected);
            assert!(!strike.is_struck(Pc(0x100), wave(1, 0), 9));
        }
        let strike = strike.at_time(9);
        assert!(strike.is_struck(pc, wave(1, 0), 9) && !strike.is_struck(pc, wave(1, 0), 10));
    }

    /// Waves may run in a different order when the code contains hooks.
    #[test]
    fn reported_values_do_not_depend_on_wave_order() {
        let site = site();
        let waves = [(wave(1, 0), 5), (wave(0, 2), 6), (wave(0, 1), 7), (wave(0, 1), 8)];
        for order in [[0, 1, 2, 3], [2, 3, 1, 0], [2, 0, 3, 1]] {
            let mut strike = FaultObserver::new(&site, Cells { buffers: &[] }, SIMDS);
            for (wave, before) in order.map(|at| waves[at]) {
                strike
                    .note(wave, Ok(InjectedChange { before, after: 0, words: 1, absorbed: false }));
            }
            let Some(Ok(sum)) = strike.outcome() else { panic!("nothing struck") };
            assert_eq!((sum.before, sum.words), (7, 4), "{order:?}");
        }
    }

    /// The first value represents all struck values; an error overrides values.
    #[test]
    fn errors_override_values() {
        let site = site();
        let mut strike = FaultObserver::new(&site, Cells { buffers: &[] }, SIMDS);
        let struck = |before| Ok(InjectedChange { before, after: 0, words: 1, absorbed: false });
        strike.note(wave(0, 0), struck(5));
        strike.note(wave(0, 0), struck(6));
        let Some(Ok(sum)) = &strike.outcome else { panic!("nothing struck") };
        assert_eq!((sum.before, sum.words), (5, 2));
        let missing = InjectionError::NoSuchPlace { place: site.place, site: Box::new(site) };
        strike.note(wave(0, 0), Err(missing));
        strike.note(wave(0, 0), struck(7));
        assert!(matches!(strike.outcome(), Some(Err(_))));
    }
}
