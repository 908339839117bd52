//! Lowers hook calls and compiles the hooks.

use super::{BoundCall, Build};
use crate::flow::{InstIndex, Key};
use crate::hook::{EntryPoint, HookCompiler, HookError, InputValue};
use crate::point::{ProgramPoint, When};
use crate::registers::Allocation;
use crate::rewrite::report::Report;
use crate::rewrite::{HookCall, Instrumentation, RewriteError};
use flipwave_isa::{RegisterRange, RegisterSet};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Distinct entry points of a hook source.
#[derive(Clone, Default)]
struct EntryPoints {
    points: Vec<EntryPoint>,
    indices: FxHashMap<EntryPoint, usize>,
}

impl EntryPoints {
    /// Index of an entry point, which is added if it is new.
    fn index_of(&mut self, entry: EntryPoint) -> usize {
        *self.indices.entry(entry.clone()).or_insert_with(|| {
            self.points.push(entry);
            self.points.len() - 1
        })
    }
}

impl<'a> Build<'a> {
    /// Lowers the arguments of all calls and compiles the hooks.
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
        let mut entries = vec![EntryPoints::default(); instrumentation.sources.len()];
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
        for (source, entries) in instrumentation.sources.iter().zip(&entries) {
            build.hooks.push(compiler.compile(source, &entries.points)?);
        }
        build.report.compiling = start.elapsed();
        Ok(build)
    }

    /// Lowers a call, or refuses it if its values are not available.
    fn bind(
        &mut self,
        point: ProgramPoint,
        call: &'a HookCall,
        entries: &mut [EntryPoints],
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let inst = &program.instructions[point.at];
        let index = call.source.0;
        let source = instrumentation.sources.get(index).ok_or(RewriteError::NoSource { index })?;
        if point.when == When::After && !program.control(inst).has_known_successor() {
            self.refuse(point, &call.function, "the instruction has no known successor".into());
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
                let body = entries[index].index_of(lowered.entry);
                self.bound.push(BoundCall { point, call, body, inputs: lowered.inputs });
                Ok(())
            }
            Err(error @ (HookError::Argument { .. } | HookError::Unavailable { .. })) => {
                self.refuse(point, &call.function, error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reason to refuse a call that names registers that a kernel does not have or may not have.
    fn missing(
        &self,
        at: InstIndex,
        inputs: &[InputValue],
        results: &[RegisterRange],
    ) -> Option<String> {
        let Instrumentation { program, components, .. } = self.instrumentation;
        let function = program.function_of(at);
        let component =
            components.iter().find(|component| component.functions.contains(&function))?;
        if component.resizes {
            let reason = "`s_alloc_vgpr` changes the number of VGPRs of the running kernel";
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
        // Registers that the code names exist, although another kernel of the component may have fewer.
        let existing = component.allocated.union(component.named).union(component.reserved);
        let missing = numbered.difference(existing).iter().next()?;
        let Allocation { vgprs, acc_vgprs, sgprs } = Allocation::count(component.allocated);
        Some(format!(
            "no register {missing}: the kernel has {vgprs} VGPRs, {acc_vgprs} AccVGPRs and {sgprs} \
             SGPRs"
        ))
    }
}
