//! Hook calls with the values of their arguments, and the compiled hooks.

use super::{Bound, Build};
use crate::flow::{InstIndex, Key};
use crate::hook::{EntryPoint, HookCompiler, HookError, InputValue};
use crate::point::{ProgramPoint, When};
use crate::registers::Allocation;
use crate::rewrite::report::Report;
use crate::rewrite::{HookCall, Instrumentation, RewriteError};
use flipwave_isa::{RegisterRange, RegisterSet};
use rustc_hash::FxHashMap;
use std::time::Instant;

impl<'a> Build<'a> {
    /// Lowers every call's arguments and compiles the hooks.
    pub fn new(
        instrumentation: &'a Instrumentation<'a>,
        compiler: &HookCompiler,
    ) -> Result<Build<'a>, RewriteError> {
        let mut build = Build {
            instrumentation,
            hooks: Vec::new(),
            bound: Vec::new(),
            report: Report::default(),
        };
        let start = Instant::now();
        let mut entries: Vec<(Vec<EntryPoint>, FxHashMap<EntryPoint, usize>)> =
            vec![Default::default(); instrumentation.sources.len()];
        let count = instrumentation.program.instructions.len();
        for (point, requests) in &instrumentation.requests {
            if point.at.number() >= count {
                return Err(RewriteError::NoInstruction { index: point.at.0, count });
            }
            for call in &requests.calls {
                build.bind(*point, call, &mut entries)?;
            }
        }
        build.report.rewriting += start.elapsed();
        let start = Instant::now();
        for (source, (points, _)) in instrumentation.sources.iter().zip(&entries) {
            build.hooks.push(compiler.compile(source, points)?);
        }
        build.report.compiling = start.elapsed();
        Ok(build)
    }

    /// Finds out what a call needs; a site whose values cannot be had is left out.
    fn bind(
        &mut self,
        point: ProgramPoint,
        call: &'a HookCall,
        entries: &mut [(Vec<EntryPoint>, FxHashMap<EntryPoint, usize>)],
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let inst = &program.instructions[point.at];
        let index = call.source.0;
        let source = instrumentation.sources.get(index).ok_or(RewriteError::NoSource { index })?;
        let (points, known) = &mut entries[index];
        if point.when == When::After && !program.control(inst).has_known_successor() {
            self.refuse(point, &call.function, "control does not come back after it".into());
            return Ok(());
        }
        let function = source.function(&call.function)?;
        let lowered = function.call(&call.arguments, &call.results, inst, program.wave_size);
        match lowered {
            Ok(lowered) => {
                if let Some(reason) = self.missing(point.at, &lowered.inputs, &call.results) {
                    self.refuse(point, &call.function, reason);
                    return Ok(());
                }
                let body = *known.entry(lowered.entry.clone()).or_insert_with(|| {
                    points.push(lowered.entry);
                    points.len() - 1
                });
                self.bound.push(Bound { point, call, body, inputs: lowered.inputs });
                Ok(())
            }
            Err(error @ HookError::Argument { .. }) => {
                self.refuse(point, &call.function, error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is said where a call names registers that a kernel at its site does not have, or nobody
    /// knows which it has.
    fn missing(
        &self,
        at: InstIndex,
        inputs: &[InputValue],
        results: &[RegisterRange],
    ) -> Option<String> {
        let Instrumentation { program, components, .. } = self.instrumentation;
        let function = program.function_of(at);
        let own = components.iter().find(|own| own.functions.contains(&function))?;
        if own.resizes {
            let reason = "`s_alloc_vgpr` changes how many VGPRs the kernel has as it runs";
            return Some(reason.to_owned());
        }
        let read = inputs.iter().filter_map(|input| match input {
            InputValue::Registers(range) => Some(*range),
            _ => None,
        });
        let named = read.chain(results.iter().copied()).flat_map(|range| range.iter());
        let files = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS);
        let numbered = files.intersection(named.collect());
        if numbered.is_empty() {
            return None;
        }
        // What the code names itself is there, though another kernel may have fewer.
        let there = own.allocated.union(own.named).union(own.reserved);
        let missing = numbered.difference(there).iter().next()?;
        let Allocation { vgprs, acc_vgprs, sgprs } = Allocation::count(own.allocated);
        Some(format!(
            "there is no {missing}: the kernel has {vgprs} VGPRs, {acc_vgprs} AccVGPRs and {sgprs} \
             SGPRs"
        ))
    }
}
