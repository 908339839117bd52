//! The faulty run of a dispatch, compared with the golden one after each instruction.

mod watch;

use super::bytes::{Change, Lds, Memory};
use super::found::Found;
use super::golden::Golden;
use super::log::{Bytes, Entry, Keep};
use super::registers::{Words, is_held, words};
use super::story::Story;
use super::waves::Waves;
use super::workgroups::Workgroups;
use super::{Spread, Step, What, Wrong};
use crate::inject::fault_observer::FaultObserver;
use crate::{Buffer, Site};
use flipwave_codeobj::LineTable;
use flipwave_device::{Address, DeviceError, WaveId};
use flipwave_isa::{Inst, LaneMask, Register};
use flipwave_sim::{Executed, WaveState};

/// What is traced of a dispatch.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub site: &'a Site,
    /// Index of the dispatch.
    pub dispatch: u32,
    /// The source lines of its code.
    pub lines: Option<&'a LineTable>,
    /// The workload's outputs.
    pub outputs: &'a [Buffer],
}

/// Watches the faulty run of a dispatch, strikes, and carries the golden run on beside it.
pub struct Compare<'r, 'a> {
    scene: Scene<'r>,
    /// Nothing in dispatches that are not struck.
    observer: Option<&'r mut FaultObserver<'a>>,
    golden: Golden<'r>,
    memory: Memory,
    story: &'r mut Story,
    waves: Waves,
    lds: Workgroups<Lds>,
    /// Bytes of LDS that differ in all.
    lds_bytes: u64,
    /// Whether a wave went another way, so that the order of waves may be another.
    has_parted: bool,
    /// The end of a wave that was last.
    last: Option<Step>,
    /// How many words the fault had struck after the last instruction.
    struck: u64,
    /// The instruction that was struck before its execution, which has not ended.
    under_way: Option<(Inst, WaveId)>,
    /// What the wave held before its fault, in registers that it may strike.
    kept: Vec<(Register, Words)>,
    /// Whether the instruction under way reads a wrong register.
    reads_wrong: bool,
    /// Why the golden run could not be carried on.
    pub failure: Option<DeviceError>,
}

impl<'r, 'a> Compare<'r, 'a> {
    /// Nothing differs but what `memory` says.
    pub fn new(
        scene: Scene<'r>,
        observer: Option<&'r mut FaultObserver<'a>>,
        golden: Golden<'r>,
        memory: Memory,
        story: &'r mut Story,
    ) -> Compare<'r, 'a> {
        let struck = observer.as_ref().map_or(0, |observer| observer.words());
        Compare {
            scene,
            observer,
            golden,
            memory,
            story,
            waves: Waves::default(),
            lds: Workgroups::new(),
            lds_bytes: 0,
            has_parted: false,
            last: None,
            struck,
            under_way: None,
            kept: Vec::new(),
            reads_wrong: false,
            failure: None,
        }
    }

    /// What differs now.
    pub fn spread(&self) -> Spread {
        let (memory_bytes, scratch_bytes) = self.memory.wrong();
        let lds_bytes = self.lds_bytes;
        Spread { lds_bytes, memory_bytes, scratch_bytes, ..self.waves.spread() }
    }

    /// Whether nothing of the dispatch can differ from the golden run any more, unless the fault
    /// strikes again.
    pub fn is_over(&self) -> bool {
        self.story.time().is_some() && !self.has_parted && self.spread().is_none()
    }

    /// Compares what the instruction wrote in registers, and what the fault struck of them: the
    /// first that is wrong and was not, and whether anything that was written is wrong.
    fn compare_registers(
        &mut self,
        executed: &Executed<'_>,
        golden: Vec<(Register, Words)>,
        state: &WaveState<'_>,
    ) -> (Option<Wrong>, bool) {
        let kept = std::mem::take(&mut self.kept);
        let Executed { wave, lanes, .. } = *executed;
        if kept.is_empty()
            && self.waves.get(wave).is_none()
            && golden.iter().all(|(register, words)| is_held(state, *register, words))
        {
            return (None, false);
        }
        self.waves.change(wave, |own| {
            let (mut first, mut is_wrong) = (None, false);
            // What only the fault has written, the golden run has as it was before.
            let others = kept
                .into_iter()
                .filter(|(register, _)| golden.iter().all(|(written, _)| written != register));
            let others: Vec<_> = others
                .map(|(register, kept)| (register, own.golden(register).cloned().unwrap_or(kept)))
                .collect();
            for (register, golden) in golden.into_iter().chain(others) {
                let Some(faulty) = words(state, register) else { continue };
                let before = own.lanes(register);
                let wrong = own.set(register, golden, &faulty);
                let written = if register.is_per_lane() { lanes } else { LaneMask(1) };
                is_wrong |= wrong.0 & written.0 != 0;
                if first.is_none() && wrong.0 & !before.0 != 0 {
                    first = own.wrong(register, state);
                }
            }
            (first, is_wrong)
        })
    }

    /// Compares what was written in the LDS of a workgroup; `now` is what the faulty run has
    /// there, if it may have changed it.
    fn compare_lds(&mut self, wave: WaveId, golden: &[(u32, u8)], now: Option<&[u8]>) -> Change {
        let Some(own) = self.lds.get(wave.workgroup) else { return Change::default() };
        let before = own.wrong();
        let change = own.change(golden, now);
        self.lds_bytes = self.lds_bytes + own.wrong() - before;
        change
    }

    /// Compares what was written to device memory, by either run.
    fn compare_memory(&mut self, golden: &Bytes, state: &mut WaveState<'_>, found: &mut Found) {
        let written = state.take_written();
        let now = |place: u64| byte_at(state, place);
        let change = self.memory.change(&golden.memory, &written, now);
        found.add_memory(&change, &written, &self.memory, self.scene.outputs);
    }

    /// Compares what the golden run wrote in waves that the faulty run does not come to.
    fn compare_apart(&mut self, state: &mut WaveState<'_>, found: &mut Found) {
        for (workgroup, bytes) in self.golden.log.take_apart() {
            self.compare_lds(WaveId { workgroup, wave: 0 }, &bytes.lds, None);
            let now = |place: u64| byte_at(state, place);
            let change = self.memory.change(&bytes.memory, &[], now);
            found.add_memory(&change, &[], &self.memory, self.scene.outputs);
        }
    }

    /// Stops comparing the registers of a wave.
    fn part(&mut self, wave: WaveId) {
        self.has_parted = true;
        self.waves.change(wave, |own| {
            own.clear();
            own.is_on_other_path = true;
        });
    }

    /// Forgets a wave that has ended.
    fn end(&mut self, wave: WaveId) {
        self.golden.leave(wave);
        if self.waves.get(wave).is_some() {
            self.waves.change(wave, |own| {
                own.clear();
                own.is_on_other_path = false;
            });
        }
        if let Some(lds) = self.lds.end(wave) {
            self.lds_bytes -= lds.wrong();
        }
    }

    /// All that is compared after an instruction.
    fn compare(
        &mut self,
        executed: &Executed<'_>,
        entry: Option<Entry>,
        is_struck: bool,
        state: &mut WaveState<'_>,
    ) -> Found {
        let Executed { inst, wave, .. } = *executed;
        let mut found = Found::default();
        let (mut bytes, mut path) = (Bytes::default(), None);
        let is_apart = self.waves.get(wave).is_some_and(|own| own.is_on_other_path);
        if let Some(entry) = entry {
            bytes = entry.bytes;
            if !is_apart {
                let next = (entry.next, entry.ends);
                path = (next != (state.pc(), inst.ends_wave())).then_some(entry.next);
                let (wrong, is_wrong) = self.compare_registers(executed, entry.registers, state);
                found.register = wrong;
                found.is_wrong = is_wrong;
            }
        }
        let may_write = is_struck || inst.flags.loads || inst.flags.stores;
        let change = self.compare_lds(wave, &bytes.lds, may_write.then(|| state.lds()));
        found.add_lds(&change);
        if may_write || !bytes.memory.is_empty() {
            self.compare_memory(&bytes, state, &mut found);
        }
        if let Some(golden) = path {
            found.is_wrong = true;
            found.path = Some(What::Path { golden, faulty: state.pc() });
            self.golden.log.keep(wave, Keep::Bytes);
            self.part(wave);
        }
        if inst.ends_wave() {
            self.end(wave);
        }
        self.compare_apart(state, &mut found);
        found
    }
}

/// A byte of the faulty run's memory.
fn byte_at(state: &mut WaveState<'_>, place: u64) -> Option<u8> {
    let word = state.read_memory(Address(place & !3))?;
    Some(word.to_le_bytes()[(place % 4) as usize])
}
