//! Code with the hooks of a request.

use crate::Refusal;
use crate::calls::calls;
use crate::hooked::{Hooked, LoadedHooks};
use crate::library::source;
use crate::request::Request;
use flipwave_injector::Workload;
use flipwave_injector::hooks::{PREFIX, name_in_source};
use flipwave_ptx::{Module, Ptx};
use flipwave_ptx_hooks::{HookCall, Instrumentation, Lanes, PtxHookCompiler, PtxHookError};

/// A rewritten module on a device.
pub(crate) struct Rewriting {
    /// The workload, on whose device the rewritten module is loaded.
    pub workload: Workload,
    /// The code.
    pub hooked: Hooked,
    /// The code on the device.
    pub loaded: LoadedHooks,
}

/// Result of rewriting for a request.
pub(crate) enum Outcome {
    /// The rewritten code.
    Code(Box<Rewriting>),
    /// The module does not contain the instruction.
    Nothing,
    /// Hooks cannot do it.
    Refused(Refusal),
}

/// The module of a request with its hooks, which keep the state of this many waves.
///
/// # Errors
/// [`PtxHookError`], also for hooks that do not compile.
pub(crate) fn rewrite(
    module: &Module,
    request: &Request,
    waves: u64,
    compiler: &PtxHookCompiler,
) -> Result<Result<Option<Hooked>, Refusal>, PtxHookError> {
    let mut instrumentation = Instrumentation::new(module)?;
    let calls = match calls(&instrumentation, request) {
        Ok(calls) if calls.is_empty() => return Ok(Ok(None)),
        Ok(calls) => calls,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let target = instrumentation.target().and_then(Ptx::new).ok_or_else(|| {
        PtxHookError::Module("the module's `.target` is not one like sm_80".to_owned())
    })?;
    let compiled = compiler.compile(&source(request, waves), &target)?;
    let names: Vec<String> = compiled.variables().map(str::to_owned).collect();
    let library = instrumentation.add_library(compiled);
    for call in calls {
        if let Some((number, word)) = call.kept {
            instrumentation.keep_read(number, word);
        }
        let hook = HookCall {
            library,
            function: name_in_source(request.function, call.function),
            arguments: call.arguments,
            results: call.result.into_iter().collect(),
            lanes: Lanes::Active,
        };
        instrumentation.call(call.point, hook)?;
    }
    let rewritten = instrumentation.rewrite()?;
    let symbols = names.into_iter().filter_map(|name| {
        let symbol = rewritten.symbol(library, &name)?.to_owned();
        let known = name.strip_prefix(PREFIX).unwrap_or(&name).to_owned();
        Some((known, symbol))
    });
    Ok(Ok(Some(Hooked {
        module: rewritten.module.clone(),
        origins: rewritten.origins.clone(),
        symbols: symbols.collect(),
        is_deferred: request.is_deferred,
    })))
}
