//! The code of one hook call.
//!
//! In this order: waits for loads into what is touched; SGPRs with wanted values to lanes of a
//! VGPR; SCC, EXEC, VCC, M0 and MODE to SGPRs, as far as they are wanted and change; VGPRs with
//! wanted values to AccVGPRs or scratch, in all lanes; EXEC as the hook wants it; arguments; the body;
//! results under the program's EXEC; and everything back.

use super::dialect::Dialect;
use super::emission::{Emission, Pattern, Template};
use super::homes::Homes;
use super::plan::{Plan, Reached};
use super::pool::Pool;
use super::value::{Value, resolve};
use crate::dataflow::{IndexMode, Live, Outstanding};
use crate::flow::Program;
use crate::hook::{Assembler, Body, HookData, HookError, InputValue, Mask, Renaming};
use crate::layout::Code;
use crate::registers::Component;
use flipwave_isa::counter::Counters;
use flipwave_isa::{Pc, RegisterRange, RegisterSet};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A hook and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The hook.
    pub body: &'a Body,
    /// A value for each input of the body.
    pub inputs: &'a [InputValue],
    /// A place for each output of the body, changed for good.
    pub results: &'a [RegisterRange],
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// Where the hook's data lies.
    pub data: Pc,
    /// Its variables.
    pub symbols: &'a HookData,
}

/// A point between two instructions.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What is wanted there.
    pub live: Live,
    /// Loads that may be under way.
    pub under_way: &'a Outstanding,
    /// Whether vector instructions index registers by M0 (gfx8 and gfx9).
    pub index_mode: IndexMode,
    /// Where values are kept.
    pub homes: &'a Homes,
    /// Registers that hooks at any site ask for though the program is done with them.
    pub asked: RegisterSet,
}

/// The code of a hook call.
#[derive(Clone, Debug, Default)]
pub struct Woven {
    /// The code.
    pub code: Code,
    /// Registers that it uses beside the program's own values.
    pub used: RegisterSet,
    /// Where the scratch that it uses ends.
    pub scratch: Option<u32>,
    /// Registers that it changes for good.
    pub changes: RegisterSet,
    /// How many registers with wanted values had to make room.
    pub saved: u32,
}

/// Why a hook cannot be called at a site.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Too few registers.
    #[error("no {0} is left for the hook, even with the kernel's allocation grown to its most")]
    Registers(&'static str),
    /// A value that cannot be had.
    #[error("{0}")]
    Value(String),
    /// Vector instructions there may index registers by M0, or not.
    #[error("whether GPR-index mode is on there is not known")]
    IndexMode,
    /// The hook.
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// Makes code for sites of one component.
pub struct Weaver<'a> {
    counters: Counters,
    dialect: Dialect,
    component: &'a Component,
    assembler: &'a mut Assembler,
    /// Code that was made before: at most sites a hook is called like at others.
    templates: FxHashMap<Pattern, Template>,
}

impl<'a> Weaver<'a> {
    /// A weaver for sites of the functions of `component`, which are of `program`, with `assembler` for
    /// text of its target and the target's `counters`.
    pub fn new(
        component: &'a Component,
        assembler: &'a mut Assembler,
        program: &Program,
        counters: Counters,
    ) -> Weaver<'a> {
        let Program { wave_size, ref target, .. } = *program;
        let dialect = Dialect { wave_size, generation: target.generation() };
        Weaver { counters, dialect, component, assembler, templates: FxHashMap::default() }
    }

    /// The functions.
    pub fn component(&self) -> &'a Component {
        self.component
    }

    /// The code of `call` at `site`.
    ///
    /// # Errors
    /// [`Refusal`] where it cannot be done; nothing is lost but this site.
    pub fn call(&mut self, site: &Site<'_>, call: &Call<'_>) -> Result<Woven, Refusal> {
        if site.index_mode == IndexMode::Unknown {
            return Err(Refusal::IndexMode);
        }
        let values: Vec<Value> =
            call.inputs.iter().map(|value| resolve(value, site, call)).collect::<Result<_, _>>()?;
        let read = values.iter().fold(RegisterSet::EMPTY, |all, own| all.union(own.registers()));
        let results: RegisterSet = call.results.iter().copied().collect();
        let reached = Reached::of(call.body, self.component);
        let touched = read.union(results).union(reached.all());
        let kept = touched.union(site.homes.registers());
        let forbidden = kept.union(site.under_way.registers()).union(site.asked);
        let mut pool = Pool::new(self.component, site.live, forbidden);
        let plan = Plan::new(self.component, self.dialect, &mut pool, site, call, &values)?;
        let saved = (plan.vgprs.len() + plan.sgprs.len()) as u32;
        let scratch = plan.scratch;
        let pattern = Pattern {
            body: call.body,
            results: call.results.to_vec(),
            mask: call.mask,
            waits: site.under_way.needed(touched.union(pool.taken())),
            in_index_mode: site.index_mode == IndexMode::On,
            plan,
        };
        let code = self.code(pattern, call)?.fill(&values);
        let changes = results.union(reached.written);
        Ok(Woven { code, used: pool.taken(), scratch, changes, saved })
    }

    /// The code of a pattern that `call` has.
    fn code(&mut self, pattern: Pattern, call: &Call<'_>) -> Result<&Template, Refusal> {
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
pub fn asked(call: &Call<'_>, component: &Component) -> RegisterSet {
    let registers = call.inputs.iter().filter_map(|input| match input {
        InputValue::Registers(range) => Some(*range),
        _ => None,
    });
    let named: RegisterSet = registers.chain(call.results.iter().copied()).collect();
    named.union(Reached::of(call.body, component).all())
}
