//! Execution counts of a dispatch's instructions, per wave.

use crate::instruction::{Stretch, StretchMap};
use crate::translate::program::Program;
use crate::wave::{Status, Wave};
use flipwave_device::{Dim3, WaveId};
use flipwave_isa::{Inst, LaneMask, Pc};
use flipwave_machine::{InstructionCount, WaveCounts};
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::Arc;

/// Counts the executions of one dispatch.
pub struct Counter {
    /// The counted lanes.
    lanes: LaneMask,
    /// The code that contains the kernel.
    home: Arc<Program>,
    instructions: Vec<Inst>,
    /// For each dword of the kernel's code, the index plus one of the instruction that begins there;
    /// zero if it was not executed.
    by_dword: Vec<u32>,
    /// The index plus one of each executed instruction in other code.
    other_code: FxHashMap<Pc, u32>,
    /// The executed stretches. Each has the indices of its counted instructions: before the change of
    /// EXEC, and after it.
    stretches: StretchMap<[Vec<usize>; 2]>,
    /// The workgroup that executes.
    workgroup: Option<Dim3>,
    /// The waves of that workgroup.
    waves: Vec<Counted>,
    /// The waves of other workgroups that have unfinished waves.
    other_waves: FxHashMap<Dim3, Vec<Counted>>,
    ended: Vec<WaveCounts>,
    /// The lanes of the last execution and their number: the next execution often has the same lanes.
    last: (LaneMask, u64),
}

/// Counts of an unfinished wave.
#[derive(Default)]
struct Counted {
    counts: Vec<InstructionCount>,
    /// Counts of each stretch, by its index: of the instructions before the change of EXEC, and after
    /// it.
    stretches: Vec<[InstructionCount; 2]>,
}

impl Counter {
    /// Creates a counter for a dispatch whose kernel is in `home`.
    pub(crate) fn new(lanes: LaneMask, home: Arc<Program>) -> Counter {
        Counter {
            lanes,
            home,
            instructions: Vec::new(),
            by_dword: Vec::new(),
            other_code: FxHashMap::default(),
            stretches: StretchMap::default(),
            workgroup: None,
            waves: Vec::new(),
            other_waves: FxHashMap::default(),
            ended: Vec::new(),
            last: (LaneMask::EMPTY, 0),
        }
    }

    /// The executed instructions, in the order of their first execution.
    pub fn instructions(&self) -> &[Inst] {
        &self.instructions
    }

    /// Returns the counts of the waves that have ended since the last call, in
    /// recording order.
    pub fn take_ended(&mut self) -> Vec<WaveCounts> {
        mem::take(&mut self.ended)
    }

    /// Creates a counter of the same lanes and code for other waves.
    pub(crate) fn new_part(&self) -> Counter {
        Counter::new(self.lanes, Arc::clone(&self.home))
    }

    /// Adds the counts of a [part](Counter::new_part), all of whose waves must have ended.
    pub(crate) fn absorb(&mut self, part: Counter) {
        let indices: Vec<usize> =
            part.instructions.iter().map(|inst| self.index_of(inst)).collect();
        self.ended.extend(part.ended.into_iter().map(|mut wave| {
            wave.instructions.iter_mut().for_each(|(index, _)| *index = indices[*index]);
            wave
        }));
    }

    /// Counts an instruction that a wave has executed on these lanes.
    #[inline(always)]
    pub(crate) fn count(&mut self, wave: &Wave, inst: &Inst, lanes: LaneMask) {
        self.turn_to(wave.id);
        let (number, index) = (wave.id.wave as usize, self.index_of(inst));
        if index >= self.waves[number].counts.len() {
            self.make_room(number);
        }
        let lanes = self.count_lanes(lanes);
        self.waves[number].counts[index].add(1, lanes);
        if wave.status == Status::Ended {
            self.end(wave);
        }
    }

    /// Counts a stretch that a wave has executed `times` times, without the instructions that are
    /// reported separately. The two masks are the active lanes before and after the change of EXEC.
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
        let after = if stretch.before_exec < stretch.ops.len() {
            Some(self.count_lanes(after))
        } else {
            None
        };
        let counts = &mut self.waves[wave.id.wave as usize].stretches;
        if place >= counts.len() {
            counts.resize(self.stretches.known().len(), [InstructionCount::default(); 2]);
        }
        counts[place][0].add(times, lanes);
        if let Some(after) = after {
            counts[place][1].add(times, after);
        }
    }

    /// Counts one execution of the first `count` instructions of a stretch.
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

    /// Registers a stretch that is about to be executed, so that its instructions are numbered in
    /// order.
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

    /// Returns the number of counted lanes among `lanes`.
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

    /// Returns the index of an instruction that [`Counter::index_of`] has not found at this dword.
    #[cold]
    #[inline(never)]
    fn find(&mut self, inst: &Inst, dword: usize) -> usize {
        let number = if self.home.contains(self.home.device_address(inst.pc)) {
            if dword >= self.by_dword.len() {
                self.by_dword.resize(dword + 1, 0);
            }
            &mut self.by_dword[dword]
        } else {
            self.other_code.entry(inst.pc).or_default()
        };
        if *number == 0 {
            self.instructions.push(inst.clone());
            *number = self.instructions.len() as u32;
        }
        *number as usize - 1
    }

    /// Resizes a wave's counts to all known instructions.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, wave: usize) {
        self.waves[wave].counts.resize(self.instructions.len(), InstructionCount::default());
    }

    /// Selects the wave that executes.
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
        let next = self.other_waves.remove(&workgroup).unwrap_or_default();
        let before = mem::replace(&mut self.waves, next);
        let is_under_way = |wave: &Counted| !wave.counts.is_empty() || !wave.stretches.is_empty();
        if let Some(previous) = self.workgroup.replace(workgroup)
            && before.iter().any(is_under_way)
        {
            self.other_waves.insert(previous, before);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_waves(&mut self, count: usize) {
        self.waves.resize_with(count, Counted::default);
    }

    /// Collects the counts of a wave that has ended.
    #[cold]
    #[inline(never)]
    fn end(&mut self, wave: &Wave) {
        let counted = &mut self.waves[wave.id.wave as usize];
        let Counted { mut counts, stretches } = mem::take(counted);
        counts.resize(self.instructions.len(), InstructionCount::default());
        let parts = stretches.iter().flatten().zip(self.stretches.known().iter().flatten());
        for (count, instructions) in parts {
            for index in instructions {
                counts[*index].unite(*count);
            }
        }
        let instructions = counts.into_iter().enumerate();
        let instructions = instructions.filter(|(_, count)| count.executions > 0).collect();
        self.ended.push(WaveCounts { wave: wave.id, instructions });
    }
}
