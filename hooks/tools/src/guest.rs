//! Execution of rewritten code, seen as that of the code as it was.
//!
//! What was inserted is not shown. An instruction that stands for another, whose place hooks have
//! taken, is shown as one instruction: it is executed when control has left the hooks.

use crate::Substitutes;
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::{WaveId, WaveLocation};
use flipwave_hooks::checker::Claims;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::layout::CodeLayout;
use flipwave_hooks::rewrite::Rewritten;
use flipwave_isa::{Inst, LaneMask, Operation, Pc, RegisterRange};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// A rewritten code object as it was.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Original instructions by their addresses in the new code.
    instructions: FxHashMap<u64, Inst>,
    /// Instructions that stand for others, as what they stand for.
    substitutes: FxHashMap<InstIndex, Inst>,
    claims: Claims,
    layout: CodeLayout,
    lines: LineTable,
}

impl Guest {
    /// The code that `rewritten` was made from, in which some instructions stand for others:
    /// `results` are the registers that each of these writes.
    pub fn new(
        object: &CodeObject,
        program: &Disassembly,
        rewritten: &Rewritten,
        substitutes: &Substitutes,
        results: impl Fn(InstIndex) -> Vec<RegisterRange>,
    ) -> Guest {
        let claims = &rewritten.claims;
        let places = program.insts().zip(&claims.instructions);
        let instructions = places.filter_map(|((_, inst), new)| Some(((*new)?.0, inst.clone())));
        let substitutes = substitutes.iter().filter_map(|(at, substitute)| {
            let mut inst = program.inst(*at)?.clone();
            inst.operation = Operation::named(&substitute.operation);
            inst.text.clone_from(&substitute.text);
            inst.writes = results(*at);
            Some((*at, inst))
        });
        Guest {
            instructions: instructions.collect(),
            substitutes: substitutes.collect(),
            claims: claims.clone(),
            layout: rewritten.layout.clone(),
            lines: object.lines().unwrap_or_default(),
        }
    }

    /// The source lines of the code as it was; empty where it does not say them.
    pub fn lines(&self) -> &LineTable {
        &self.lines
    }

    /// An observer of the new code that shows `inner` the code as it was.
    pub fn observe<'a>(&'a self, inner: &'a mut dyn Observer) -> GuestView<'a> {
        let in_hooks = FxHashMap::default();
        GuestView { guest: self, inner, in_hooks, done: FxHashSet::default() }
    }

    /// A place in the new code, by the address that its instruction had before.
    pub fn place(&self, place: WaveLocation) -> WaveLocation {
        self.layout.old_place(place)
    }

    /// The instruction that stands for another, in whose place code at an address was put.
    fn substituted(&self, pc: Pc) -> Option<InstIndex> {
        self.claims.inserted_for(pc).filter(|at| self.substitutes.contains_key(at))
    }
}

/// Shows an observer the code as it was.
pub struct GuestView<'a> {
    guest: &'a Guest,
    inner: &'a mut dyn Observer,
    /// The instruction in whose place a wave is, and the lanes that ran when it came there.
    in_hooks: FxHashMap<WaveId, (InstIndex, LaneMask)>,
    /// Waves that need not be watched any more.
    done: FxHashSet<WaveId>,
}

impl GuestView<'_> {
    /// A wave has left the hooks of an instruction, if it was in some.
    fn leave(&mut self, wave: WaveId, now: Option<InstIndex>, state: &mut WaveState<'_>) {
        let Some((at, lanes)) = self.in_hooks.get(&wave).copied() else { return };
        if now == Some(at) {
            return;
        }
        self.in_hooks.remove(&wave);
        if let Some(inst) = self.guest.substitutes.get(&at)
            && self.inner.after(&Executed { inst, wave, lanes }, state) == Watch::Off
        {
            self.done.insert(wave);
        }
    }
}

impl Observer for GuestView<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.inner.watches(wave)
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        let now = self.guest.substituted(inst.pc);
        self.leave(wave, now, state);
        if self.done.contains(&wave) {
            return;
        }
        if let Some(at) = now {
            if let Entry::Vacant(free) = self.in_hooks.entry(wave) {
                free.insert((at, state.exec()));
                if let Some(inst) = self.guest.substitutes.get(&at) {
                    self.inner.before(inst, wave, state);
                }
            }
        } else if let Some(inst) = self.guest.instructions.get(&inst.pc.0) {
            self.inner.before(inst, wave, state);
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if self.done.contains(&executed.wave) {
            return Watch::Off;
        }
        match self.guest.instructions.get(&executed.inst.pc.0) {
            Some(inst) => self.inner.after(&Executed { inst, ..*executed }, state),
            None => Watch::On,
        }
    }
}
