//! The original code of rewritten code, for observers that see it as if it were executed.
//!
//! Inserted instructions are hidden. An emulated instruction appears as one instruction in place of its
//! proxy, and counts as executed when control leaves the hooks that replace the proxy.

use crate::EmulatedInsts;
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::{WaveId, WaveLocation};
use flipwave_hooks::checker::Claims;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::layout::CodeLayout;
use flipwave_hooks::rewrite::Rewritten;
use flipwave_isa::{Inst, LaneMask, Operation, Pc, RegisterRange};
use flipwave_sim::{Executed, Observer, OriginalCode, OriginalView, Watch, WaveState};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The original code of a rewritten code object.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The original instructions by their addresses in the rewritten code.
    instructions: FxHashMap<u64, Inst>,
    /// The emulated instructions by their proxies.
    emulated: FxHashMap<InstIndex, Inst>,
    claims: Claims,
    layout: CodeLayout,
    lines: LineTable,
}

impl Guest {
    /// The original code of `rewritten`, with emulated instructions in place of their proxies. `results`
    /// returns the registers that the emulated instruction at a proxy writes.
    pub fn new(
        object: &CodeObject,
        program: &Disassembly,
        rewritten: &Rewritten,
        emulated: &EmulatedInsts,
        results: impl Fn(InstIndex) -> Vec<RegisterRange>,
    ) -> Guest {
        let claims = &rewritten.claims;
        let locations = program.insts().zip(&claims.instructions);
        let instructions = locations.filter_map(|((_, inst), new)| Some(((*new)?.0, inst.clone())));
        let emulated = emulated.iter().filter_map(|(at, emulated)| {
            let mut inst = program.inst(*at)?.clone();
            inst.operation = Operation::named(&emulated.operation);
            inst.text.clone_from(&emulated.text);
            inst.writes = results(*at);
            Some((*at, inst))
        });
        Guest {
            instructions: instructions.collect(),
            emulated: emulated.collect(),
            claims: claims.clone(),
            layout: rewritten.layout.clone(),
            lines: object.lines().unwrap_or_default(),
        }
    }

    /// The proxy that the inserted code at an address replaces.
    fn replaced_proxy(&self, pc: Pc) -> Option<InstIndex> {
        self.claims.inserted_for(pc).filter(|at| self.emulated.contains_key(at))
    }
}

impl OriginalCode for Guest {
    fn view(self: Arc<Self>) -> Box<dyn OriginalView> {
        let in_hooks = FxHashMap::default();
        Box::new(GuestView { guest: self, in_hooks, done: FxHashSet::default() })
    }

    fn location(&self, location: WaveLocation) -> WaveLocation {
        self.layout.original_location(location)
    }

    fn lines(&self) -> &LineTable {
        &self.lines
    }
}

/// A dispatch of rewritten code as seen by an observer of the original code.
struct GuestView {
    guest: Arc<Guest>,
    /// For each wave inside hooks: the replaced proxy, and the active lanes on entry.
    in_hooks: FxHashMap<WaveId, (InstIndex, LaneMask)>,
    /// Waves that the observer no longer watches.
    done: FxHashSet<WaveId>,
}

impl GuestView {
    /// Completes the emulated instruction whose hooks the wave was in, unless it is still in those of
    /// proxy `now`.
    fn leave(
        &mut self,
        wave: WaveId,
        now: Option<InstIndex>,
        state: &mut WaveState<'_>,
        observer: &mut dyn Observer,
    ) {
        let Some((at, lanes)) = self.in_hooks.get(&wave).copied() else { return };
        if now == Some(at) {
            return;
        }
        self.in_hooks.remove(&wave);
        if let Some(inst) = self.guest.emulated.get(&at)
            && observer.after(&Executed { inst, wave, lanes }, state) == Watch::Off
        {
            self.done.insert(wave);
        }
    }
}

impl OriginalView for GuestView {
    fn before(
        &mut self,
        inst: &Inst,
        wave: WaveId,
        state: &mut WaveState<'_>,
        observer: &mut dyn Observer,
    ) {
        let now = self.guest.replaced_proxy(inst.pc);
        self.leave(wave, now, state, observer);
        if self.done.contains(&wave) {
            return;
        }
        if let Some(at) = now {
            if let Entry::Vacant(entry) = self.in_hooks.entry(wave) {
                entry.insert((at, state.exec()));
                if let Some(inst) = self.guest.emulated.get(&at) {
                    observer.before(inst, wave, state);
                }
            }
        } else if let Some(inst) = self.guest.instructions.get(&inst.pc.0) {
            observer.before(inst, wave, state);
        }
    }

    fn after(
        &mut self,
        executed: &Executed<'_>,
        state: &mut WaveState<'_>,
        observer: &mut dyn Observer,
    ) -> Watch {
        if self.done.contains(&executed.wave) {
            return Watch::Off;
        }
        match self.guest.instructions.get(&executed.inst.pc.0) {
            Some(inst) => observer.after(&Executed { inst, ..*executed }, state),
            None => Watch::On,
        }
    }
}
