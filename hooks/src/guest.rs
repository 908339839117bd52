//! Execution of rewritten code, seen as that of the code as it was.
//!
//! What was inserted is not shown. An instruction that stands for another, whose place hooks have
//! taken, is shown as one instruction: it is executed when control has left the hooks.

use crate::flow::{InstIndex, Program};
use crate::layout::Layout;
use crate::rewrite::Rewritten;
use crate::tools::Substitutes;
use flipwave_device::{Place, WaveId};
use flipwave_isa::{Inst, Lane, LaneMask, Operation, Pc, Register, RegisterRange};
use flipwave_sim::{Executed, Observer, Registers, Watch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::ops::Range;

/// A rewritten code object as it was.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Original instructions by their addresses in the new code.
    instructions: FxHashMap<u64, Inst>,
    /// Code in place of instructions that stand for others, by ascending address.
    ranges: Vec<(Range<u64>, Inst)>,
    layout: Layout,
}

impl Guest {
    /// The code that `rewritten` was made from, in which some instructions stand for others:
    /// `results` are the registers that each of these writes.
    pub fn new(
        program: &Program,
        rewritten: &Rewritten,
        substitutes: &Substitutes,
        results: impl Fn(InstIndex) -> Vec<RegisterRange>,
    ) -> Guest {
        let claims = &rewritten.claims;
        let places = program.insts().zip(&claims.instructions);
        let instructions = places.filter_map(|((_, inst), new)| Some(((*new)?.0, inst.clone())));
        let ranges = claims.inserted.iter().filter_map(|inserted| {
            let at = inserted.at?;
            let substitute = substitutes.get(&at)?;
            let inst = Inst {
                operation: Operation::named(&substitute.operation),
                text: substitute.text.clone(),
                writes: results(at),
                ..program.inst(at)?.clone()
            };
            Some((inserted.range.clone(), inst))
        });
        let mut ranges: Vec<(Range<u64>, Inst)> = ranges.collect();
        ranges.sort_by_key(|(range, _)| range.start);
        let layout = rewritten.layout.clone();
        Guest { instructions: instructions.collect(), ranges, layout }
    }

    /// An observer of the new code that shows `inner` the code as it was.
    pub fn observe<'a, O: Observer>(&'a self, inner: &'a mut O) -> View<'a, O> {
        let under_way = FxHashMap::default();
        View { guest: self, inner, under_way, done: FxHashSet::default() }
    }

    /// A place in the new code, by the address that its instruction had before.
    pub fn place(&self, place: Place) -> Place {
        Place { pc: self.layout.old_of(place.pc).unwrap_or(place.pc), ..place }
    }

    /// Which of the ranges an address is in.
    fn range(&self, pc: Pc) -> Option<usize> {
        let above = self.ranges.partition_point(|(range, _)| range.start <= pc.0);
        let at = above.checked_sub(1)?;
        self.ranges.get(at).is_some_and(|(range, _)| range.contains(&pc.0)).then_some(at)
    }
}

/// Shows an observer the code as it was.
pub struct View<'a, O> {
    guest: &'a Guest,
    inner: &'a mut O,
    /// The range that a wave is in, and the lanes that ran when it came there.
    under_way: FxHashMap<WaveId, (usize, LaneMask)>,
    /// Waves that need not be watched any more.
    done: FxHashSet<WaveId>,
}

impl<O: Observer> View<'_, O> {
    /// A wave has left the hooks of an instruction, if it was in some.
    fn leave(&mut self, wave: WaveId, now: Option<usize>, registers: &mut Registers<'_>) {
        let Some((at, lanes)) = self.under_way.get(&wave).copied() else { return };
        if now == Some(at) {
            return;
        }
        self.under_way.remove(&wave);
        if let Some((_, inst)) = self.guest.ranges.get(at)
            && self.inner.after(&Executed { inst, wave, lanes }, registers) == Watch::Off
        {
            self.done.insert(wave);
        }
    }
}

impl<O: Observer> Observer for View<'_, O> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.inner.watches(wave)
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, registers: &mut Registers<'_>) {
        let now = self.guest.range(inst.pc);
        self.leave(wave, now, registers);
        if self.done.contains(&wave) {
            return;
        }
        if let Some(at) = now {
            if let Entry::Vacant(free) = self.under_way.entry(wave) {
                free.insert((at, exec(registers)));
                if let Some((_, inst)) = self.guest.ranges.get(at) {
                    self.inner.before(inst, wave, registers);
                }
            }
        } else if let Some(inst) = self.guest.instructions.get(&inst.pc.0) {
            self.inner.before(inst, wave, registers);
        }
    }

    fn after(&mut self, executed: &Executed<'_>, registers: &mut Registers<'_>) -> Watch {
        if self.done.contains(&executed.wave) {
            return Watch::Off;
        }
        match self.guest.instructions.get(&executed.inst.pc.0) {
            Some(inst) => self.inner.after(&Executed { inst, ..*executed }, registers),
            None => Watch::On,
        }
    }
}

/// The lanes that run.
fn exec(registers: &Registers<'_>) -> LaneMask {
    let half = |half| u64::from(registers.read(half, Lane(0)).unwrap_or_default());
    LaneMask(half(Register::ExecLo) | half(Register::ExecHi) << 32)
}
