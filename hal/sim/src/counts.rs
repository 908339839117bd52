//! How often the waves of a dispatch execute its instructions, and on how many lanes.

use crate::translate::program::Program;
use crate::wave::{Status, Wave};
use flipwave_device::WaveId;
use flipwave_isa::{Inst, LaneMask, Pc};
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::Arc;

/// How often a wave has executed an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionCount {
    /// How often.
    pub executions: u64,
    /// The lanes of all executions, of those that are counted: lanes as
    /// [`Executed::lanes`](crate::Executed::lanes) has them.
    pub lanes: u64,
    /// Executions on none of the lanes that are counted.
    pub without_lanes: u64,
}

/// What a wave has executed that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveCounts {
    /// The wave.
    pub wave: WaveId,
    /// By the index of the instruction in [`Counter::instructions`]; those that it has executed.
    pub instructions: Vec<(usize, InstructionCount)>,
}

/// Counts the executions of one dispatch.
pub struct Counter {
    /// The lanes that are counted.
    lanes: LaneMask,
    /// The code that the kernel belongs to.
    home: Arc<Program>,
    instructions: Vec<Inst>,
    /// For each dword of the kernel's code one more than the index of the instruction that begins
    /// there; zero if none was executed.
    by_dword: Vec<u32>,
    /// The same of other code.
    elsewhere: FxHashMap<Pc, u32>,
    /// The wave whose turn it is.
    current: Counted,
    /// Other waves under way.
    others: FxHashMap<WaveId, Counted>,
    ended: Vec<WaveCounts>,
    /// The lanes of the last execution, and how many they are: mostly the next one has the same.
    last: (LaneMask, u64),
}

/// A wave under way.
#[derive(Default)]
struct Counted {
    wave: Option<WaveId>,
    counts: Vec<InstructionCount>,
}

impl Counter {
    /// Nothing counted yet of a dispatch whose kernel belongs to `home`.
    pub(crate) fn new(lanes: LaneMask, home: Arc<Program>) -> Counter {
        Counter {
            lanes,
            home,
            instructions: Vec::new(),
            by_dword: Vec::new(),
            elsewhere: FxHashMap::default(),
            current: Counted::default(),
            others: FxHashMap::default(),
            ended: Vec::new(),
            last: (LaneMask::EMPTY, 0),
        }
    }

    /// The instructions that were executed, in the order in which they first were.
    pub fn instructions(&self) -> &[Inst] {
        &self.instructions
    }

    /// The waves that have ended since this was last asked, in their order.
    pub fn take_ended(&mut self) -> Vec<WaveCounts> {
        mem::take(&mut self.ended)
    }

    /// A wave has executed an instruction on these lanes.
    #[inline(always)]
    pub(crate) fn count(&mut self, wave: &Wave, inst: &Inst, lanes: LaneMask) {
        if self.current.wave != Some(wave.id) {
            self.turn_to(wave.id);
        }
        let index = self.index_of(inst);
        if index >= self.current.counts.len() {
            self.make_room();
        }
        let lanes = LaneMask(lanes.0 & self.lanes.0);
        if self.last.0 != lanes {
            self.last = (lanes, lanes.count().into());
        }
        let count = &mut self.current.counts[index];
        count.executions += 1;
        count.lanes += self.last.1;
        count.without_lanes += u64::from(lanes == LaneMask::EMPTY);
        if wave.status == Status::Ended {
            self.end(wave);
        }
    }

    #[inline(always)]
    fn index_of(&mut self, inst: &Inst) -> usize {
        let dword = self.home.index_of(self.home.device_address(inst.pc));
        match self.by_dword.get(dword) {
            Some(&number) if number > 0 => number as usize - 1,
            _ => self.find(inst, dword),
        }
    }

    /// The index of an instruction that is not known to be at this dword.
    #[cold]
    #[inline(never)]
    fn find(&mut self, inst: &Inst, dword: usize) -> usize {
        let number = if self.home.contains(self.home.device_address(inst.pc)) {
            if dword >= self.by_dword.len() {
                self.by_dword.resize(dword + 1, 0);
            }
            &mut self.by_dword[dword]
        } else {
            self.elsewhere.entry(inst.pc).or_default()
        };
        if *number == 0 {
            self.instructions.push(inst.clone());
            *number = self.instructions.len() as u32;
        }
        *number as usize - 1
    }

    /// Makes room for the counts of all instructions known.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        self.current.counts.resize(self.instructions.len(), InstructionCount::default());
    }

    /// It is the turn of another wave.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, wave: WaveId) {
        let next = self.others.remove(&wave);
        let next = next.unwrap_or_else(|| Counted { wave: Some(wave), ..Counted::default() });
        let before = mem::replace(&mut self.current, next);
        if let Some(wave) = before.wave {
            self.others.insert(wave, before);
        }
    }

    /// The wave whose turn it is has ended.
    #[cold]
    #[inline(never)]
    fn end(&mut self, wave: &Wave) {
        let Counted { counts, .. } = mem::take(&mut self.current);
        let instructions = counts.into_iter().enumerate();
        let instructions = instructions.filter(|(_, own)| own.executions > 0).collect();
        self.ended.push(WaveCounts { wave: wave.id, instructions });
    }
}
