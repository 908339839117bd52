//! Bad input: one clear error, or a site that is refused with its reason. And what hooks leave.

mod mutations;
mod requests;
mod results;

use super::{HookCall, Instrumentation, SourceIndex};
use crate::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_isa::RegisterRange;
use std::sync::OnceLock;

/// The compiler of hooks.
fn compiler() -> &'static HookCompiler {
    static COMPILER: OnceLock<HookCompiler> = OnceLock::new();
    COMPILER.get_or_init(|| HookCompiler::find().expect("clang-22 is needed by these tests"))
}

/// Adds a source of hooks.
fn add(instrumentation: &mut Instrumentation<'_>, text: &str) -> SourceIndex {
    let source = Source { name: "hook.c".into(), text: text.into(), ..Source::default() };
    let program = instrumentation.program();
    let read = compiler().read(&source, &program.target, program.wave_size);
    instrumentation.add_source(read.unwrap_or_else(|error| panic!("{error}")))
}

/// A call of a hook.
fn call(
    source: SourceIndex,
    function: &str,
    arguments: Vec<Argument>,
    results: Vec<RegisterRange>,
) -> HookCall {
    HookCall { source, function: function.into(), arguments, results, mask: Mask::Guest }
}
