//! Workloads whose kernels are instrumented.

use crate::{Once, Twins, gpu};
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::hook::{HookCompiler, HookSource, Source};
use flipwave_hooks::rewrite::{Instrumentation, Rewritten};
use flipwave_injector::Workload;
use flipwave_machine::Simulator;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// A workload and its instrumented version. The device has both versions of the code, and the launches
/// exist for each.
pub struct Instrumented {
    /// Rewritten code and its module, by the original module.
    pub rewritten: BTreeMap<u32, (ModuleId, Rewritten)>,
    /// The original launches.
    pub original: Workload,
    /// The launches of the rewritten code.
    pub workload: Workload,
}

/// Parses a hook source for the target and wave size of an instrumentation.
pub fn hook_source(name: &str, text: &str, instrumentation: &Instrumentation<'_>) -> HookSource {
    static READ: Once<[String; 4], HookSource> = Once::new();
    let program = instrumentation.program();
    let (target, lanes) = (&program.target, program.wave_size);
    let key = [name.to_owned(), text.to_owned(), target.to_string(), lanes.to_string()];
    READ.get(key, || {
        let source = Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() };
        let read = hook_compiler().read(&source, target, lanes);
        read.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The hook compiler.
pub fn hook_compiler() -> &'static HookCompiler {
    static COMPILER: OnceLock<HookCompiler> = OnceLock::new();
    COMPILER.get_or_init(|| HookCompiler::find().unwrap_or_else(|error| panic!("{error}")))
}

/// Instruments all code that a workload launches. `request` adds the hooks.
pub fn instrument(
    workload: &Workload,
    mut request: impl FnMut(&mut Instrumentation<'_>),
) -> Instrumented {
    let mut device = gpu(&workload.device).clone();
    let mut rewritten = BTreeMap::new();
    for dispatch in &workload.program.dispatches {
        if rewritten.contains_key(&dispatch.module.0) {
            continue;
        }
        let object = gpu(&workload.device).code_object(dispatch.module).expect("a loaded module");
        let mut instrumentation =
            Instrumentation::new(object).unwrap_or_else(|error| panic!("{error}"));
        request(&mut instrumentation);
        let new =
            instrumentation.rewrite(hook_compiler()).unwrap_or_else(|error| panic!("{error}"));
        let module = device.load(&new.object).unwrap_or_else(|error| panic!("{error}"));
        rewritten.insert(dispatch.module.0, (module, new));
    }
    let original = Workload { device: Simulator::new(device), ..workload.clone() };
    let mut workload = original.clone();
    for dispatch in &mut workload.program.dispatches {
        if let Some((module, _)) = rewritten.get(&dispatch.module.0) {
            dispatch.module = *module;
        }
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(64);
    }
    Instrumented { rewritten, original, workload }
}

impl Instrumented {
    /// Pairs of original and instrumented launches, in order.
    pub fn twins(&self) -> impl Iterator<Item = Twins<'_>> {
        let pairs = self.original.program.dispatches.iter().zip(&self.workload.program.dispatches);
        pairs.filter_map(|(original, instrumented)| {
            let (_, rewritten) = self.rewritten.get(&original.module.0)?;
            Some(Twins { original, instrumented, rewritten, substituted: BTreeSet::new() })
        })
    }
}
