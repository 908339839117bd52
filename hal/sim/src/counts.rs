//! How often the waves of a dispatch execute its instructions, and on how many lanes.

use crate::instruction::{Stretch, StretchMap};
use crate::translate::program::Program;
use crate::wave::{Status, Wave};
use flipwave_device::{Dim3, WaveId};
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

impl InstructionCount {
    /// So many executions, each on so many of the lanes that are counted.
    fn add(&mut self, executions: u64, lanes: u64) {
        let without_lanes = if lanes == 0 { executions } else { 0 };
        self.unite(InstructionCount { executions, lanes: executions * lanes, without_lanes });
    }

    fn unite(&mut self, other: InstructionCount) {
        self.executions += other.executions;
        self.lanes += other.lanes;
        self.without_lanes += other.without_lanes;
    }
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
    /// The stretches that were executed, each as the indices of the instructions that are counted in it:
    /// those before EXEC changes, and those after.
    stretches: StretchMap<[Vec<usize>; 2]>,
    /// The workgroup whose turn it is.
    workgroup: Option<Dim3>,
    /// Its waves.
    waves: Vec<Counted>,
    /// Those of other workgroups that have some under way.
    others: FxHashMap<Dim3, Vec<Counted>>,
    ended: Vec<WaveCounts>,
    /// The lanes of the last execution, and how many they are: mostly the next one has the same.
    last: (LaneMask, u64),
}

/// A wave under way.
#[derive(Default)]
struct Counted {
    counts: Vec<InstructionCount>,
    /// By the index of a stretch: of its instructions before EXEC changes, and after.
    stretches: Vec<[InstructionCount; 2]>,
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
            stretches: StretchMap::default(),
            workgroup: None,
            waves: Vec::new(),
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

    /// A counter of the same lanes and code for other waves.
    pub(crate) fn new_part(&self) -> Counter {
        Counter::new(self.lanes, Arc::clone(&self.home))
    }

    /// Adds what a [part](Counter::new_part) has counted, all of whose waves have ended.
    pub(crate) fn absorb(&mut self, part: Counter) {
        let indices: Vec<usize> = part.instructions.iter().map(|own| self.index_of(own)).collect();
        self.ended.extend(part.ended.into_iter().map(|mut own| {
            own.instructions.iter_mut().for_each(|(index, _)| *index = indices[*index]);
            own
        }));
    }

    /// A wave has executed an instruction on these lanes.
    #[inline(always)]
    pub(crate) fn count(&mut self, wave: &Wave, inst: &Inst, lanes: LaneMask) {
        self.turn_to(wave.id);
        let (own, index) = (wave.id.wave as usize, self.index_of(inst));
        if index >= self.waves[own].counts.len() {
            self.make_room(own);
        }
        let lanes = self.count_lanes(lanes);
        self.waves[own].counts[index].add(1, lanes);
        if wave.status == Status::Ended {
            self.end(wave);
        }
    }

    /// A wave has executed a stretch so many times, but for the instructions that are seen alone; with
    /// these lanes active before EXEC changed, and after.
    #[inline]
    pub(crate) fn count_stretch(
        &mut self,
        wave: &Wave,
        stretch: Stretch<'_>,
        times: u64,
        [lanes, after]: [LaneMask; 2],
    ) {
        self.turn_to(wave.id);
        let place = self.stretches.place(stretch);
        let place = place.unwrap_or_else(|| self.add_stretch(stretch));
        let lanes = self.count_lanes(lanes);
        let after = match stretch.before_exec < stretch.ops.len() {
            true => Some(self.count_lanes(after)),
            false => None,
        };
        let own = &mut self.waves[wave.id.wave as usize].stretches;
        if place >= own.len() {
            own.resize(self.stretches.known().len(), [InstructionCount::default(); 2]);
        }
        own[place][0].add(times, lanes);
        if let Some(after) = after {
            own[place][1].add(times, after);
        }
    }

    /// The same of the first `count` instructions of a stretch, once.
    #[cold]
    pub(crate) fn count_first(
        &mut self,
        wave: &Wave,
        stretch: Stretch<'_>,
        count: usize,
        lanes: LaneMask,
    ) {
        for (_, op) in stretch.counted().take_while(|(index, _)| *index < count) {
            self.count(wave, &op.inst, lanes);
        }
    }

    /// Notes the instructions of a stretch, all of which are executed, in their order.
    #[inline]
    pub(crate) fn enter_stretch(&mut self, stretch: Stretch<'_>) {
        if self.stretches.place(stretch).is_none() {
            self.add_stretch(stretch);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_stretch(&mut self, stretch: Stretch<'_>) -> usize {
        let all: Vec<usize> = stretch.ops.iter().map(|op| self.index_of(&op.inst)).collect();
        let mut counted = [Vec::new(), Vec::new()];
        for (place, _) in stretch.counted() {
            counted[usize::from(place >= stretch.before_exec)].push(all[place]);
        }
        self.stretches.insert(stretch, counted)
    }

    /// Of these lanes, how many are counted.
    #[inline(always)]
    fn count_lanes(&mut self, lanes: LaneMask) -> u64 {
        let lanes = LaneMask(lanes.0 & self.lanes.0);
        if self.last.0 != lanes {
            self.last = (lanes, lanes.count().into());
        }
        self.last.1
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
    fn make_room(&mut self, wave: usize) {
        self.waves[wave].counts.resize(self.instructions.len(), InstructionCount::default());
    }

    /// It is the turn of a wave.
    #[inline(always)]
    fn turn_to(&mut self, wave: WaveId) {
        if self.workgroup != Some(wave.workgroup) {
            self.turn_to_workgroup(wave.workgroup);
        }
        if wave.wave as usize >= self.waves.len() {
            self.add_waves(wave.wave as usize + 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn turn_to_workgroup(&mut self, workgroup: Dim3) {
        let next = self.others.remove(&workgroup).unwrap_or_default();
        let before = mem::replace(&mut self.waves, next);
        let is_under_way = |own: &Counted| !own.counts.is_empty() || !own.stretches.is_empty();
        if let Some(own) = self.workgroup.replace(workgroup)
            && before.iter().any(is_under_way)
        {
            self.others.insert(own, before);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_waves(&mut self, count: usize) {
        self.waves.resize_with(count, Counted::default);
    }

    /// The wave whose turn it is has ended.
    #[cold]
    #[inline(never)]
    fn end(&mut self, wave: &Wave) {
        let own = &mut self.waves[wave.id.wave as usize];
        let Counted { mut counts, stretches } = mem::take(own);
        counts.resize(self.instructions.len(), InstructionCount::default());
        let parts = stretches.iter().flatten().zip(self.stretches.known().iter().flatten());
        for (count, instructions) in parts {
            for index in instructions {
                counts[*index].unite(*count);
            }
        }
        let instructions = counts.into_iter().enumerate();
        let instructions = instructions.filter(|(_, own)| own.executions > 0).collect();
        self.ended.push(WaveCounts { wave: wave.id, instructions });
    }
}
