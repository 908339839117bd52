//! Tests of errors, refused requests, and results of hooks.

mod mutations;
mod requests;
mod results;

use super::{HookCall, Instrumentation, SourceIndex};
use crate::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_isa::RegisterRange;
use std::sync::OnceLock;

/// The hook compiler.
fn compiler() -> &'static HookCompiler {
    static COMPILER: OnceLock<HookCompiler> = OnceLock::new();
    COMPILER.get_or_init(|| HookCompiler::find().expect("these tests need clang-22"))
}

/// Adds a hook source.
fn add(instrumentation: &mut Instrumentation<'_>, text: &str) -> SourceIndex {
    let source = Source { name: "hook.c".into(), text: text.into(), ..Source::default() };
    let program = instrumentation.program();
    let read = compiler().read(&source, &program.target, program.wave_size);
    instrumentation.add_source(read.unwrap_or_else(|error| panic!("{error}")))
}

/// Creates a hook call.
fn call(
    source: SourceIndex,
    function: &str,
    arguments: Vec<Argument>,
    results: Vec<RegisterRange>,
) -> HookCall {
    HookCall { source, function: function.into(), arguments, results, mask: Mask::Guest }
}
