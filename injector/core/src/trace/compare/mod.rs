//! Comparison of the faulty run of a dispatch with the golden run after each instruction.

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
use flipwave_arch::{Instruction, LaneMask, RegisterId, SourceLines};
use flipwave_device::{Address, DeviceError, WaveId};
use flipwave_machine::{Executed, WaveState};

/// Context of a traced dispatch.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub site: &'a Site,
    /// Index of the dispatch.
    pub dispatch: u32,
    /// Source lines of its code.
    pub lines: Option<&'a dyn SourceLines>,
    /// Outputs of the workload.
    pub outputs: &'a [Buffer],
}

/// Observes the faulty run of a dispatch, injects the fault, and advances the golden run in parallel.
pub struct Compare<'r, 'a> {
    scene: Scene<'r>,
    /// `None` in dispatches that are not struck.
    observer: Option<&'r mut FaultObserver<'a>>,
    golden: Golden<'r>,
    memory: Memory,
    story: &'r mut Story,
    waves: Waves,
    lds: Workgroups<Lds>,
    /// Total number of differing LDS bytes.
    lds_bytes: u64,
    /// `true` if a wave took a different path, so that the order of waves may differ.
    has_parted: bool,
    /// The end of the wave that ended last.
    last: Option<Step>,
    /// Number of words that the fault had struck after the last instruction.
    struck: u64,
    /// The running instruction, if it was struck before its execution.
    under_way: Option<(Box<dyn Instruction>, WaveId)>,
    /// Contents of the wave's registers that the fault may strike, from before the fault.
    kept: Vec<(RegisterId, Words)>,
    /// `true` if the running instruction reads a wrong register.
    reads_wrong: bool,
    /// Error that occurred while advancing the golden run.
    pub failure: Option<DeviceError>,
}

impl<'r, 'a> Compare<'r, 'a> {
    /// Creates a comparison with the differences of `memory`.
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

    /// Current differences.
    pub fn spread(&self) -> Spread {
        let (memory_bytes, scratch_bytes) = self.memory.wrong();
        let lds_bytes = self.lds_bytes;
        Spread { lds_bytes, memory_bytes, scratch_bytes, ..self.waves.spread() }
    }

    /// Returns `true` if the dispatch cannot differ from the golden run any more, unless the fault
    /// strikes again.
    pub fn is_over(&self) -> bool {
        self.story.time().is_some() && !self.has_parted && self.spread().is_none()
    }

    /// Compares the registers that the instruction wrote and those that the fault struck. Returns the
    /// first register that became wrong, and whether any written value is wrong.
    fn compare_registers(
        &mut self,
        executed: &Executed<'_>,
        golden: Vec<(RegisterId, Words)>,
        state: &dyn WaveState,
    ) -> (Option<Wrong>, bool) {
        let kept = std::mem::take(&mut self.kept);
        let Executed { wave, lanes, .. } = *executed;
        if kept.is_empty()
            && self.waves.get(wave).is_none()
            && golden.iter().all(|(register, words)| is_held(state, *register, words))
        {
            return (None, false);
        }
        self.waves.change(wave, |wave_diff| {
            let (mut first, mut is_wrong) = (None, false);
            // Registers written only by the fault have their previous value in the golden run.
            let struck_only = kept
                .into_iter()
                .filter(|(register, _)| golden.iter().all(|(written, _)| written != register));
            let struck_only: Vec<_> = struck_only
                .map(|(register, kept)| {
                    (register, wave_diff.golden(register).cloned().unwrap_or(kept))
                })
                .collect();
            for (register, golden) in golden.into_iter().chain(struck_only) {
                let Some(faulty) = words(state, register) else { continue };
                let before = wave_diff.lanes(register);
                let wrong = wave_diff.set(register, golden, &faulty);
                let written = if register.is_per_lane() { lanes } else { LaneMask(1) };
                is_wrong |= wrong.0 & written.0 != 0;
                if first.is_none() && wrong.0 & !before.0 != 0 {
                    first = wave_diff.wrong(register, state);
                }
            }
            (first, is_wrong)
        })
    }

    /// Compares the writes to the LDS of a workgroup; `now` is the faulty run's LDS, if it may have
    /// changed.
    fn compare_lds(&mut self, wave: WaveId, golden: &[(u32, u8)], now: Option<&[u8]>) -> Change {
        let Some(lds) = self.lds.get(wave.workgroup) else { return Change::default() };
        let before = lds.wrong();
        let change = lds.change(golden, now);
        self.lds_bytes = self.lds_bytes + lds.wrong() - before;
        change
    }

    /// Compares the writes of both runs to device memory.
    fn compare_memory(&mut self, golden: &Bytes, state: &mut dyn WaveState, found: &mut Found) {
        let written = state.take_written();
        let now = |place: u64| byte_at(state, place);
        let change = self.memory.change(&golden.memory, &written, now);
        found.add_memory(&change, &written, &self.memory, self.scene.outputs);
    }

    /// Compares the writes of the golden run in waves that the faulty run does not execute.
    fn compare_apart(&mut self, state: &mut dyn WaveState, found: &mut Found) {
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
        self.waves.change(wave, |wave_diff| {
            wave_diff.clear();
            wave_diff.is_on_other_path = true;
        });
    }

    /// Removes a wave that has ended.
    fn end(&mut self, wave: WaveId) {
        self.golden.leave(wave);
        if self.waves.get(wave).is_some() {
            self.waves.change(wave, |wave_diff| {
                wave_diff.clear();
                wave_diff.is_on_other_path = false;
            });
        }
        if let Some(lds) = self.lds.end(wave) {
            self.lds_bytes -= lds.wrong();
        }
    }

    /// Compares everything after an instruction.
    fn compare(
        &mut self,
        executed: &Executed<'_>,
        entry: Option<Entry>,
        is_struck: bool,
        state: &mut dyn WaveState,
    ) -> Found {
        let Executed { inst, wave, .. } = *executed;
        let mut found = Found::default();
        let (mut bytes, mut path) = (Bytes::default(), None);
        let is_apart = self.waves.get(wave).is_some_and(|wave_diff| wave_diff.is_on_other_path);
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
        let may_write = is_struck || inst.accesses_memory();
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

/// Reads a byte of the faulty run's memory.
fn byte_at(state: &mut dyn WaveState, place: u64) -> Option<u8> {
    let word = state.read_memory(Address(place & !3))?;
    Some(word.to_le_bytes()[(place % 4) as usize])
}
