//! Detection of waves that wait forever, with certainty and before a limit is reached.
//!
//! If all waves wait for one another or have halted, a whole round of turns without an instruction
//! is the proof. A wave that spins in a loop until memory changes is proven by its own state: it
//! returns to the registers and the PC that it had, and has changed no memory meanwhile. If all
//! waves that do not wait do so in one round, in which no memory has changed, each will spin
//! forever. Loops that count, or that read a clock, do not return to a state.

use crate::dispatch::execution::Execution;
use crate::dispatch::observer::{Executed, Observer};
use crate::dispatch::wave_state::WaveState;
use crate::dispatch::workgroup::Workgroup;
use crate::fault::StoppedWave;
use crate::memory::{Memory, Region, RegionMut, WriteRecorder};
use crate::translate::program::Program;
use crate::wave::copy::WaveCopy;
use crate::wave::{Status, Wave, private};
use flipwave_device::{
    DeviceFault, FaultCause, ModuleId, Stall, Wait, Waiting, WaveId, WaveLocation,
};
use flipwave_isa::{Family, Inst, MemoryKind, MemorySpace, Opcode};
use flipwave_machine::{FaultDetail, Stalls, Watch, WrittenByte};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// State of the search for stalls, from round to round.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Number of wave instructions at the end of the last round.
    last_round: Option<u64>,
    /// Number of rounds in which no workgroup has started or ended.
    quiet: u32,
    /// Findings of the current round, if it is examined and may still prove a stall.
    examined: Option<Examined>,
    /// Pages that spinning waves read.
    pages: BTreeSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct Examined {
    waves: BTreeMap<WaveId, Found>,
}

/// Findings about a wave.
#[derive(Clone, Debug)]
enum Found {
    /// The wave has not returned to its state in this number of turns. Its later states are
    /// compared with the same saved state, since other waves that had turns meanwhile have changed
    /// nothing that it sees, or the round is abandoned.
    Missed(Attempt),
    /// The wave spins in a loop; device address of its memory access.
    Loop(u64),
}

/// A loop finder, and the number of turns of its wave that were examined in this round.
#[derive(Clone, Debug)]
pub struct Attempt {
    turns: u8,
    pub finder: Box<LoopFinder>,
}

/// Maximum number of turns in which a wave is examined in one round: turns are shorter than some
/// loops, and pauses of the dispatch cut them.
const MAX_ATTEMPTS: u8 = 3;

impl Search {
    /// Called when all resident workgroups have had their turns, and `executed` wave instructions
    /// are executed in all. Returns `true` if none was executed since the last call.
    pub fn is_still(&mut self, executed: u64) -> bool {
        self.last_round.replace(executed) == Some(executed)
    }

    /// Begins a round; `has_moved` is set if a workgroup has started or ended in the last one.
    /// Rounds are examined with decreasing frequency, so that the search costs little.
    pub fn begin_round(&mut self, has_moved: bool, stalls: Stalls) {
        self.quiet = if has_moved { 0 } else { self.quiet.saturating_add(1) };
        self.pages.clear();
        self.examined =
            (stalls != Stalls::Ignore && self.quiet.is_power_of_two()).then(Examined::default);
    }

    /// Returns `true` if the last round was examined, and all waves were found to wait.
    pub fn all_wait(&self) -> bool {
        self.examined.is_some()
    }

    /// Abandons the search in this round: something changes, or cannot be known.
    pub fn give_up(&mut self) {
        self.examined = None;
    }

    /// Returns `true` if a wave should be examined.
    pub fn wants_wave(&self, wave: WaveId) -> bool {
        let examined = self.examined.as_ref();
        examined.is_some_and(|examined| !matches!(examined.waves.get(&wave), Some(Found::Loop(_))))
    }

    /// Takes the pages that spinning waves read.
    pub fn take_pages(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.pages)
    }

    /// Continues or begins the examination of a wave that executes now.
    pub fn attempt(&mut self, wave: &Wave, lds: &[u8]) -> Attempt {
        let known = self.examined.as_mut().and_then(|examined| examined.waves.remove(&wave.id));
        match known {
            Some(Found::Missed(attempt)) => attempt,
            _ => Attempt { turns: 0, finder: Box::new(LoopFinder::new(wave, lds)) },
        }
    }

    /// Records the findings about a wave after its turn. `attempt` is from [`Search::attempt`];
    /// `pages` are all pages read so far.
    pub fn record(&mut self, wave: &Wave, attempt: Attempt, pages: BTreeSet<u64>) {
        self.pages = pages;
        let Some(examined) = &mut self.examined else { return };
        let found = match (attempt.finder.verdict, wave.status) {
            (Some(Verdict::Loop(at)), _) => Found::Loop(at),
            (Some(Verdict::Changes), _) | (None, Status::Ended) => return self.give_up(),
            (None, Status::Ready) if attempt.turns == MAX_ATTEMPTS => return self.give_up(),
            (None, Status::Ready) => Found::Missed(Attempt { turns: attempt.turns + 1, ..attempt }),
            (None, _) => return,
        };
        examined.waves.insert(wave.id, found);
    }

    /// Called after a workgroup's turn. A workgroup whose waves are all at the barrier has passed
    /// it.
    pub fn examine_workgroup(&mut self, workgroup: &Workgroup) {
        let Some(examined) = &self.examined else { return };
        let is_ready = |wave: &&Wave| wave.status == Status::Ready;
        let loops = |wave: &Wave| matches!(examined.waves.get(&wave.id), Some(Found::Loop(_)));
        if !workgroup.waves.iter().filter(is_ready).all(loops) {
            self.give_up();
        }
    }

    /// Reason why a wave waits, and the device address of the waiting instruction; `None` for waves
    /// that do not wait.
    fn wait(&self, wave: &Wave) -> Option<(Wait, u64)> {
        match wave.status {
            Status::Ended => None,
            Status::AtBarrier | Status::AtSplitBarrier => Some((Wait::Barrier, wave.waits_at)),
            Status::AtGlobalSync => Some((Wait::GlobalSync, wave.waits_at)),
            Status::Halted => Some((Wait::Halted, wave.waits_at)),
            Status::Ready => match self.examined.as_ref()?.waves.get(&wave.id)? {
                Found::Loop(at) => Some((Wait::Loop, *at)),
                Found::Missed(_) => None,
            },
        }
    }
}

/// A stall, and the first of its waves.
pub struct ExplainedStall {
    /// The stall.
    pub fault: DeviceFault,
    /// The wave that the fault is reported at, if its details are wanted.
    pub stopped: Option<Box<StoppedWave>>,
}

/// Describes what all resident waves wait for; `None` if there are none. Source lines are left out.
pub fn explain(execution: &Execution, programs: &[Arc<Program>]) -> Option<ExplainedStall> {
    let waves = || execution.resident.iter().flat_map(|workgroup| &workgroup.waves);
    let mut waits: BTreeMap<(Wait, u64), (u64, WaveId, WaveId)> = BTreeMap::new();
    for wave in waves() {
        if let Some(key) = execution.search.wait(wave) {
            let (count, _, last) = waits.entry(key).or_insert((0, wave.id, wave.id));
            (*count, *last) = (*count + 1, wave.id);
        }
    }
    let waits = waits.into_iter().map(|((wait, at), (waves, first, last))| {
        let index =
            programs.iter().position(|program| program.contains(at)).unwrap_or(execution.home);
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
    let program =
        programs.iter().find(|program| program.contains(at)).unwrap_or(&programs[execution.home]);
    let place = WaveLocation { pc: program.virtual_address(at), wave: first.id };
    let fault = DeviceFault::new(FaultCause::Stalled(Box::new(stall)), place);
    // A wave in a loop need not be at the access that the loop is reported at.
    let pc = if first.status == Status::Ready { first.pc } else { at };
    let wants_details = execution.policy.fault_detail == FaultDetail::Context;
    let stopped = wants_details.then(|| StoppedWave::new(first, &[], pc, None));
    Some(ExplainedStall { fault, stopped })
}

/// Conclusion about a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The wave spins in a loop; device address of its memory access: the first one to shared
    /// memory, if there is one.
    Loop(u64),
    /// The wave changes what others see, or depends on more than its state and memory.
    Changes,
}

/// Observer that detects whether a wave returns to the state in which it was saved. A wave that
/// spins in a loop at that time does so after one iteration; one that is still entering the loop is
/// found in a later round.
#[derive(Clone, Debug)]
pub struct LoopFinder {
    saved: WaveCopy,
    /// LDS when the state was saved.
    lds: Vec<u8>,
    /// Address range of the wave's private memory.
    private: Range<u64>,
    /// Bytes of private memory that differ from the saved state, with their saved values.
    changed: BTreeMap<u64, u8>,
    /// Device address of the current instruction.
    at: u64,
    /// The memory access since the state was saved that best shows what is waited for, and whether
    /// it is to memory that is not shared.
    access: Option<(bool, u64)>,
    verdict: Option<Verdict>,
}

impl LoopFinder {
    /// Saves the current state of a wave.
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

    /// Returns `true` if written bytes change what others see.
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
            let current = (!is_shared, self.at);
            self.access = Some(self.access.map_or(current, |known| known.min(current)));
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

/// Returns `true` if the effect of an instruction depends on more than the wave and memory: on
/// time, or on requests of waves of other workgroups.
fn reads_more_than_state(inst: &Inst) -> bool {
    const FAMILIES: [Family; 3] =
        [Family::GetRegister, Family::SendMessageReturn, Family::GlobalWaveSync];
    matches!(inst.operation.opcode(), Opcode::SMemtime | Opcode::SMemrealtime)
        || FAMILIES.into_iter().any(|family| inst.operation.is(family))
}

/// Address range of the page of an address.
fn page(address: u64) -> Range<u64> {
    const PAGE: u64 = 4096;
    let start = address & !(PAGE - 1);
    start..start.saturating_add(PAGE)
}

/// A memory wrapper that records written bytes and accessed pages.
pub struct Watching<'a> {
    memory: WriteRecorder<'a>,
    pages: &'a mut BTreeSet<u64>,
}

impl<'a> Watching<'a> {
    /// Wraps a memory; accessed pages are added to `pages`, by the address of their first byte.
    pub fn new(memory: &'a mut dyn Memory, pages: &'a mut BTreeSet<u64>) -> Watching<'a> {
        Watching { memory: WriteRecorder::new(memory), pages }
    }

    /// Records the page of an address as accessed, and returns its range.
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
        // Bytes on other pages are requested separately when they are accessed.
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
