//! Waves that wait for ever, found for certain before a limit is reached.
//!
//! Waves that wait for one another or have halted execute nothing: a whole round of turns without an
//! instruction is the proof. A wave that goes round in a loop until memory changes is proven by its
//! own state: it comes back to the registers and the PC that it had, and has changed no memory on the
//! way. When all waves that do not wait do so in one round, in which no memory has changed, each will
//! go round its loop for ever. Loops that count, or that read a clock, do not come back.

use crate::dispatch::execution::Execution;
use crate::dispatch::observer::{Executed, Observer, Watch};
use crate::dispatch::wave_state::WaveState;
use crate::dispatch::workgroup::Workgroup;
use crate::memory::{Memory, Region, RegionMut, WriteRecorder, WrittenByte};
use crate::translate::program::Program;
use crate::wave::copy::WaveCopy;
use crate::wave::{Status, Wave, private};
use flipwave_device::{
    DeviceFault, FaultCause, ModuleId, Stall, Wait, Waiting, WaveId, WaveLocation,
};
use flipwave_isa::{Family, Inst, MemoryKind, MemorySpace, Opcode};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The search of a dispatch, from round to round.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Wave instructions when all resident workgroups last had had their turns.
    last_round: Option<u64>,
    /// Rounds in which no workgroup has started or ended.
    quiet: u32,
    /// What is known in the round under way, if it is looked at and nothing speaks against it.
    looked: Option<Looked>,
    /// Pages that waves in loops looked at.
    pages: BTreeSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct Looked {
    waves: BTreeMap<WaveId, Found>,
}

/// What is known of a wave.
#[derive(Clone, Debug)]
enum Found {
    /// So often it was not seen to come back; what was seen is compared with what comes, as others
    /// that had their turns between have changed nothing that it sees, or the round is given up.
    Missed(u8, Box<LoopFinder>),
    /// It goes round in a loop; the device address of its access to memory.
    Loop(u64),
}

/// How often a wave is looked at in one round: turns are shorter than some loops, and what pauses a
/// dispatch cuts them.
const LOOKS: u8 = 3;

impl Search {
    /// All resident workgroups have had their turns, `executed` wave instructions are executed in
    /// all: whether nothing was executed since the last time.
    pub fn is_still(&mut self, executed: u64) -> bool {
        self.last_round.replace(executed) == Some(executed)
    }

    /// A round begins; workgroups have `moved` if one has started or ended in the last. The search for
    /// loops is repeated ever more seldom, so that it costs little where there are none.
    pub fn begin_round(&mut self, has_moved: bool, is_wanted: bool) {
        self.quiet = if has_moved { 0 } else { self.quiet.saturating_add(1) };
        self.pages.clear();
        self.looked = (is_wanted && self.quiet.is_power_of_two()).then(Looked::default);
    }

    /// Whether the round that is over was looked at, and all waves were found to wait.
    pub fn all_wait(&self) -> bool {
        self.looked.is_some()
    }

    /// Something changes, or cannot be known.
    pub fn give_up(&mut self) {
        self.looked = None;
    }

    /// Whether it is worth to look at a wave.
    pub fn looks_at(&self, wave: WaveId) -> bool {
        let looked = self.looked.as_ref();
        looked.is_some_and(|looked| !matches!(looked.waves.get(&wave), Some(Found::Loop(_))))
    }

    /// The pages that waves in loops looked at, which are forgotten.
    pub fn take_pages(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.pages)
    }

    /// What watches a wave that executes now, and how often it was looked at in this round.
    pub fn finder(&mut self, wave: &Wave, lds: &[u8]) -> (u8, Box<LoopFinder>) {
        let known = self.looked.as_mut().and_then(|looked| looked.waves.remove(&wave.id));
        match known {
            Some(Found::Missed(count, finder)) => (count, finder),
            _ => (0, Box::new(LoopFinder::new(wave, lds))),
        }
    }

    /// What was found of a wave that has executed, as it was given by [`Search::finder`]; `pages` are
    /// all that were looked at so far.
    pub fn note(
        &mut self,
        wave: &Wave,
        (count, finder): (u8, Box<LoopFinder>),
        pages: BTreeSet<u64>,
    ) {
        self.pages = pages;
        let Some(looked) = &mut self.looked else { return };
        let found = match (finder.verdict, wave.status) {
            (Some(Verdict::Loop(at)), _) => Found::Loop(at),
            (Some(Verdict::Changes), _) | (None, Status::Ended) => return self.give_up(),
            (None, Status::Ready) if count == LOOKS => return self.give_up(),
            (None, Status::Ready) => Found::Missed(count + 1, finder),
            (None, _) => return,
        };
        looked.waves.insert(wave.id, found);
    }

    /// A workgroup has had its turn. One whose waves are all at the barrier has passed it.
    pub fn look_at(&mut self, workgroup: &Workgroup) {
        let Some(looked) = &self.looked else { return };
        let is_ready = |wave: &&Wave| wave.status == Status::Ready;
        let loops = |wave: &Wave| matches!(looked.waves.get(&wave.id), Some(Found::Loop(_)));
        if !workgroup.waves.iter().filter(is_ready).all(loops) {
            self.give_up();
        }
    }

    /// What a wave waits for, and the device address of the instruction where it does; nothing for
    /// waves that do not.
    fn wait(&self, wave: &Wave) -> Option<(Wait, u64)> {
        match wave.status {
            Status::Ended => None,
            Status::AtBarrier | Status::AtSplitBarrier => Some((Wait::Barrier, wave.waits_at)),
            Status::AtGlobalSync => Some((Wait::GlobalSync, wave.waits_at)),
            Status::Halted => Some((Wait::Halted, wave.waits_at)),
            Status::Ready => match self.looked.as_ref()?.waves.get(&wave.id)? {
                Found::Loop(at) => Some((Wait::Loop, *at)),
                Found::Missed(..) => None,
            },
        }
    }
}

/// Says what all the waves under way wait for; nothing if there are none. The lines of the source are
/// left out.
pub fn explain(execution: &Execution, programs: &[Arc<Program>]) -> Option<DeviceFault> {
    let waves = || execution.resident.iter().flat_map(|workgroup| &workgroup.waves);
    let mut waits: BTreeMap<(Wait, u64), (u64, WaveId, WaveId)> = BTreeMap::new();
    for wave in waves() {
        if let Some(key) = execution.search.wait(wave) {
            let (count, _, last) = waits.entry(key).or_insert((0, wave.id, wave.id));
            (*count, *last) = (*count + 1, wave.id);
        }
    }
    let waits = waits.into_iter().map(|((wait, at), (waves, first, last))| {
        let index = programs.iter().position(|own| own.contains(at)).unwrap_or(execution.home);
        let program = &programs[index];
        let instruction = program.fetch(at).map(|op| op.inst.text.clone()).unwrap_or_default();
        let (module, pc) = (ModuleId(index as u32), program.virtual_address(at));
        Waiting { wait, module, pc, instruction, line: None, waves, first, last }
    });
    let launch = &execution.launch;
    let (workgroups, resident) = (launch.workgroup_count(), execution.resident.len() as u64);
    let left = execution.waiting.end - execution.waiting.start;
    let stall = Stall {
        executed: execution.statistics.wave_instructions,
        workgroups,
        ended: workgroups - left - resident,
        resident,
        residency: launch.residency,
        waits: waits.collect(),
    };
    let first = waves().find(|wave| wave.status != Status::Ended)?;
    let at = execution.search.wait(first).map_or(first.pc, |(_, at)| at);
    let program = programs.iter().find(|own| own.contains(at)).unwrap_or(&programs[execution.home]);
    let place = WaveLocation { pc: program.virtual_address(at), wave: first.id };
    Some(DeviceFault { cause: FaultCause::Stalled(Box::new(stall)), place })
}

/// What watching a wave has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes round in a loop; the device address of its access to memory: the first to memory that
    /// others share, if there is one.
    Loop(u64),
    /// It changes what others see, or depends on more than its state and memory.
    Changes,
}

/// Watches whether a wave comes back to the state in which it was found. One that goes round in a loop
/// when the watch begins does so after one way round; one that is still on its way into the loop is
/// found the next time.
#[derive(Clone, Debug)]
pub struct LoopFinder {
    saved: WaveCopy,
    /// LDS as it was.
    lds: Vec<u8>,
    /// Addresses of its private memory.
    private: Range<u64>,
    /// Bytes of it that are not as they were when the state was saved, with what they were.
    changed: BTreeMap<u64, u8>,
    /// Device address of the instruction.
    at: u64,
    /// The access to memory since the state was saved that says best what is waited for.
    access: Option<(bool, u64)>,
    verdict: Option<Verdict>,
}

impl LoopFinder {
    /// Begins with a wave as it is.
    pub fn new(wave: &Wave, lds: &[u8]) -> LoopFinder {
        let stride = private::stride(wave.machine.lanes);
        let bytes = u64::from(wave.private.bytes.div_ceil(4)) * u64::from(stride);
        LoopFinder {
            saved: WaveCopy::of(wave),
            lds: lds.to_vec(),
            private: wave.private.base..wave.private.base.saturating_add(bytes),
            changed: BTreeMap::new(),
            at: wave.pc,
            access: None,
            verdict: None,
        }
    }

    /// Whether bytes that were written change what others see.
    fn changes(&mut self, written: &[WrittenByte]) -> bool {
        for byte in written.iter().filter(|byte| byte.before != byte.after) {
            let address = byte.address.0;
            if !self.private.contains(&address) {
                return true;
            }
            if *self.changed.entry(address).or_insert(byte.before) == byte.after {
                self.changed.remove(&address);
            }
        }
        false
    }

    fn decide(&mut self, inst: &Inst, state: &mut WaveState<'_>) -> Option<Verdict> {
        let access = inst.memory();
        if reads_more_than_state(inst) || self.changes(&state.take_written()) {
            return Some(Verdict::Changes);
        }
        if let Some(access) = access {
            let is_lds = matches!(access.space, MemorySpace::Lds | MemorySpace::Flat)
                && access.kind != MemoryKind::Load;
            let loads_to_lds = inst.memory_operand().is_some_and(|operand| operand.to_lds);
            if (is_lds || loads_to_lds) && state.lds() != self.lds {
                return Some(Verdict::Changes);
            }
            let is_shared = matches!(access.space, MemorySpace::Global | MemorySpace::Flat);
            let own = (!is_shared, self.at);
            self.access = Some(self.access.map_or(own, |known| known.min(own)));
        }
        if self.changed.is_empty() && self.saved.is_state_of(state.wave()) {
            return Some(Verdict::Loop(self.access.map_or(self.at, |(_, at)| at)));
        }
        None
    }
}

impl Observer for LoopFinder {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, _: &Inst, _: WaveId, state: &mut WaveState<'_>) {
        self.at = state.wave().pc;
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        self.verdict = self.decide(executed.inst, state);
        if self.verdict.is_none() { Watch::On } else { Watch::Off }
    }
}

/// Whether what an instruction does depends on more than the wave and memory: on time, or on what
/// waves of other workgroups have asked for.
fn reads_more_than_state(inst: &Inst) -> bool {
    const FAMILIES: [Family; 3] =
        [Family::GetRegister, Family::SendMessageReturn, Family::GlobalWaveSync];
    matches!(inst.operation.opcode(), Opcode::SMemtime | Opcode::SMemrealtime)
        || FAMILIES.into_iter().any(|family| inst.operation.is(family))
}

/// The page of an address.
fn page(address: u64) -> Range<u64> {
    const PAGE: u64 = 4096;
    let start = address & !(PAGE - 1);
    start..start.saturating_add(PAGE)
}

/// Another memory, which notes what is written and which pages are looked at.
pub struct Watching<'a> {
    memory: WriteRecorder<'a>,
    pages: &'a mut BTreeSet<u64>,
}

impl<'a> Watching<'a> {
    /// Adds to `pages`, by the address of their first byte.
    pub fn new(memory: &'a mut dyn Memory, pages: &'a mut BTreeSet<u64>) -> Watching<'a> {
        Watching { memory: WriteRecorder::new(memory), pages }
    }

    /// The page of an address, which is looked at.
    fn see(&mut self, address: u64) -> Range<u64> {
        let page = page(address);
        self.pages.insert(page.start);
        page
    }
}

impl Memory for Watching<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        let page = self.see(address);
        let Region { base, bytes } = self.memory.readable(address, bytes)?;
        // What lies on other pages is asked for when it is looked at.
        let start = page.start.saturating_sub(base) as usize;
        let end = (page.end.saturating_sub(base) as usize).min(bytes.len());
        Some(Region { base: base + start as u64, bytes: bytes.get(start..end)? })
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        self.see(address);
        let region = self.memory.writable(address, bytes)?;
        let last = region.base + region.bytes.len().saturating_sub(1) as u64;
        self.pages.insert(page(last).start);
        Some(region)
    }

    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.memory.allocation(address)
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        self.memory.take_written()
    }
}
