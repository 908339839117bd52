//! The code of one hook call.
//!
//! In this order: waits for loads into what is touched; SGPRs with live values to lanes of a
//! VGPR; SCC, EXEC, VCC, M0 and MODE to SGPRs, as far as they are live and change; VGPRs with
//! live values to AccVGPRs or scratch, in all lanes; EXEC as the hook wants it; arguments; the body;
//! results under the program's EXEC; and everything back.

use super::dialect::Dialect;
use super::emission::{CallPattern, Emission, Template};
use super::plan::{ReachedRegisters, RegisterPlan};
use super::point::{CallRefusal, InsertionPoint, SiteCall};
use super::pool::RegisterPool;
use super::value::{InputSource, resolve};
use crate::dataflow::IndexMode;
use crate::flow::Disassembly;
use crate::hook::{Assembler, InputValue, Renaming};
use crate::layout::InsertedCode;
use crate::registers::Component;
use flipwave_isa::RegisterSet;
use flipwave_isa::counter::Counters;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The code of a hook call.
#[derive(Clone, Debug, Default)]
pub struct CallCode {
    /// The code.
    pub code: InsertedCode,
    /// Registers that it uses beside the program's own values.
    pub used: RegisterSet,
    /// Where the scratch that it uses ends.
    pub scratch: Option<u32>,
    /// Registers that it changes for good.
    pub changes: RegisterSet,
    /// How many registers with live values had to make room.
    pub saved: u32,
}

/// Makes code for sites of one component.
pub struct CallGenerator<'a> {
    counters: Counters,
    dialect: Dialect,
    component: &'a Component,
    assembler: &'a mut Assembler,
    /// Code that was made before: at most sites a hook is called like at others.
    templates: FxHashMap<CallPattern, Template>,
}

impl<'a> CallGenerator<'a> {
    /// A generator for sites of the functions of `component`, which are of `program`, with `assembler` for
    /// text of its target and the target's `counters`.
    pub fn new(
        component: &'a Component,
        assembler: &'a mut Assembler,
        program: &Disassembly,
        counters: Counters,
    ) -> CallGenerator<'a> {
        let Disassembly { wave_size, ref target, .. } = *program;
        let dialect = Dialect { wave_size, generation: target.generation() };
        CallGenerator { counters, dialect, component, assembler, templates: FxHashMap::default() }
    }

    /// The functions.
    pub fn component(&self) -> &'a Component {
        self.component
    }

    /// The code of `call` at `site`.
    ///
    /// # Errors
    /// [`CallRefusal`] where it cannot be done; nothing is lost but this site.
    pub fn call(
        &mut self,
        site: &InsertionPoint<'_>,
        call: &SiteCall<'_>,
    ) -> Result<CallCode, CallRefusal> {
        if site.index_mode == IndexMode::Unknown {
            return Err(CallRefusal::IndexMode);
        }
        let values: Vec<InputSource> =
            call.inputs.iter().map(|value| resolve(value, site, call)).collect::<Result<_, _>>()?;
        let read = values.iter().fold(RegisterSet::EMPTY, |all, own| all.union(own.registers()));
        let results: RegisterSet = call.results.iter().copied().collect();
        let reached = ReachedRegisters::of(call.body, self.component);
        let touched = read.union(results).union(reached.all());
        let kept = touched.union(site.homes.registers());
        let forbidden = kept.union(site.outstanding.registers()).union(site.asked);
        let mut pool = RegisterPool::new(self.component, site.live, forbidden);
        let plan = RegisterPlan::new(self.component, self.dialect, &mut pool, site, call, &values)?;
        let saved = (plan.vgprs.len() + plan.sgprs.len()) as u32;
        let scratch = plan.scratch;
        let pattern = CallPattern {
            body: call.body,
            results: call.results.to_vec(),
            mask: call.mask,
            waits: site.outstanding.needed(touched.union(pool.taken())),
            in_index_mode: site.index_mode == IndexMode::On,
            plan,
        };
        let code = self.code(pattern, call)?.fill(&values);
        let changes = results.union(reached.written);
        Ok(CallCode { code, used: pool.taken(), scratch, changes, saved })
    }

    /// The code of a pattern that `call` has.
    fn code(
        &mut self,
        pattern: CallPattern,
        call: &SiteCall<'_>,
    ) -> Result<&Template, CallRefusal> {
        match self.templates.entry(pattern) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let pattern = free.key();
                let emission = Emission {
                    counters: self.counters,
                    dialect: self.dialect,
                    component: self.component,
                    call,
                    pattern,
                    renaming: Renaming::new(call.body, &pattern.plan.firsts)?,
                };
                let template = emission.template(self.assembler)?;
                Ok(free.insert(template))
            }
        }
    }
}

/// Registers of the program that a call reads or changes.
pub fn asked(call: &SiteCall<'_>, component: &Component) -> RegisterSet {
    let registers = call.inputs.iter().filter_map(|input| match input {
        InputValue::Registers(range) => Some(*range),
        _ => None,
    });
    let named: RegisterSet = registers.chain(call.results.iter().copied()).collect();
    named.union(ReachedRegisters::of(call.body, component).all())
}
