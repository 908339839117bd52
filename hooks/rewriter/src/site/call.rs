//! Code of one hook call. It consists of, in this order:
//!
//! 1. waits for loads into registers that the call accesses;
//! 2. saves: live SGPRs to lanes of a VGPR; SCC, EXEC, VCC, M0 and MODE to SGPRs, if they are live and
//!    change; live VGPRs to AccVGPRs or scratch, in all lanes;
//! 3. the EXEC mask of the hook;
//! 4. arguments;
//! 5. the body;
//! 6. results, under the program's EXEC;
//! 7. restores.

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
    /// Registers that it uses in addition to those of the program.
    pub used: RegisterSet,
    /// End of the scratch memory that it uses.
    pub scratch: Option<u32>,
    /// Registers that it changes permanently.
    pub changes: RegisterSet,
    /// Number of spilled registers.
    pub saved: u32,
}

/// Generates hook calls in one component.
pub struct CallGenerator<'a> {
    counters: Counters,
    dialect: Dialect,
    component: &'a Component,
    assembler: &'a mut Assembler,
    /// Generated templates; most calls of a hook share a pattern.
    templates: FxHashMap<CallPattern, Template>,
}

impl<'a> CallGenerator<'a> {
    /// Creates a generator for the functions of `component` in `program`. `counters` are the wait
    /// counters of the target.
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

    /// The component.
    pub fn component(&self) -> &'a Component {
        self.component
    }

    /// Generates `call` at `site`.
    ///
    /// # Errors
    /// [`CallRefusal`] if the hook cannot be called at this site.
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
        let read =
            values.iter().fold(RegisterSet::EMPTY, |all, value| all.union(value.registers()));
        let results: RegisterSet = call.results.iter().copied().collect();
        let reached = ReachedRegisters::of(call.body, self.component);
        let touched = read.union(results).union(reached.all());
        let kept = touched.union(site.reserved.registers());
        let forbidden = kept.union(site.outstanding.registers()).union(site.accessed_dead);
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

    /// The template of a pattern, generated with the first call that has it.
    fn code(
        &mut self,
        pattern: CallPattern,
        call: &SiteCall<'_>,
    ) -> Result<&Template, CallRefusal> {
        match self.templates.entry(pattern) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let pattern = entry.key();
                let emission = Emission {
                    counters: self.counters,
                    dialect: self.dialect,
                    component: self.component,
                    call,
                    pattern,
                    renaming: Renaming::new(call.body, &pattern.plan.firsts)?,
                };
                let template = emission.template(self.assembler)?;
                Ok(entry.insert(template))
            }
        }
    }
}

/// Registers of the program that a call reads or changes.
pub fn accessed_registers(call: &SiteCall<'_>, component: &Component) -> RegisterSet {
    let registers = call.inputs.iter().filter_map(|input| match input {
        InputValue::Registers(range) => Some(*range),
        _ => None,
    });
    let named: RegisterSet = registers.chain(call.results.iter().copied()).collect();
    named.union(ReachedRegisters::of(call.body, component).all())
}
