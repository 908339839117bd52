//! Random kernels with random hooks. The checker must prove the rewritten code, which must run in
//! lockstep with the original and violate no rule that the original respects.

mod frame;
mod kernel;
mod operations;
#[cfg(test)]
mod planted;
mod requests;
#[cfg(test)]
mod tests;
mod waits;

use kernel::BUFFER;
pub use kernel::Kernel;

use crate::choices::{Choices, random_bytes};
use flipwave_device::{Address, Device};
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, Rewritten};
use flipwave_isa::Generation;
use flipwave_lockstep::LockstepReport;
use flipwave_sim::EmbeddedGpu;
use flipwave_sim::strict::{Rule, Violation};
use flipwave_tests::{MACHINES, Machine, Once, Twins, hook_compiler};
use std::collections::BTreeSet;

/// Result of an input without findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// `true` if a new code object was created; `false` if the whole request was refused.
    pub is_rewritten: bool,
    /// Hook calls that were placed.
    pub placed: usize,
    /// Refused hook sites.
    pub refused: usize,
    /// Original instructions executed in lockstep.
    pub instructions: u64,
}

/// Generates, rewrites and runs a kernel, as determined by `bytes`.
///
/// # Errors
/// Describes the finding, with the kernel and the requests.
pub fn rewriter(bytes: &[u8]) -> Result<Outcome, String> {
    let mut choices = Choices::new(bytes);
    let machine = machine(&mut choices);
    let size = 1 + choices.below(120);
    let kernel = Kernel::new(machine, size, &mut choices);
    let mut requests = Vec::new();
    let finding = |error: String, requests: &[String]| {
        format!("{machine}: {error}\n\n{}\n\n{}", requests.join("\n"), kernel.text)
    };
    let rewritten = rewritten(&kernel, &mut requests, &mut choices);
    let Some(rewritten) = rewritten.map_err(|error| finding(error, &requests))? else {
        return Ok(Outcome::default());
    };
    let report = &rewritten.report;
    let run = run(&kernel, &rewritten, 1 << 30);
    let instructions = run.map_err(|error| finding(error, &requests))?.instructions;
    let (placed, refused) = (report.placed, report.refused.len());
    Ok(Outcome { is_rewritten: true, placed, refused, instructions })
}

/// A random machine with known rules.
pub fn machine(choices: &mut Choices<'_>) -> Machine {
    // The generator does not support the waits and barriers of gfx12. On gfx906, lockstep would compare
    // FLAT_SCRATCH, which hooks set up and the original does not.
    let is_supported = |machine: &Machine| match machine.target().generation() {
        Generation::Gfx9 => false,
        generation => generation < Generation::Gfx12,
    };
    let known =
        MACHINES.into_iter().filter(|machine| machine.has_strict_level()).filter(is_supported);
    choices.pick(&known.collect::<Vec<_>>())
}

/// Adds hooks to a kernel and checks the result. Returns `None` if the request is refused.
fn rewritten(
    kernel: &Kernel,
    requests: &mut Vec<String>,
    choices: &mut Choices<'_>,
) -> Result<Option<Rewritten>, String> {
    let mut instrumentation = Instrumentation::new(&kernel.object)
        .map_err(|error| format!("the kernel is not understood: {error}"))?;
    *requests = requests::add(&mut instrumentation, kernel.vgprs, kernel.acc_vgprs, choices);
    match instrumentation.rewrite(hook_compiler()) {
        Ok(rewritten) => Ok(Some(rewritten)),
        // The code may not fit into its segment.
        Err(RewriteError::Layout(_) | RewriteError::Stale { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the original and the rewritten code in lockstep on the strict level, with an instruction limit for
/// the rewritten code.
fn run(kernel: &Kernel, rewritten: &Rewritten, limit: u64) -> Result<LockstepReport, String> {
    let (mut device, buffer) = device(kernel.machine);
    let modules = [&kernel.object, &rewritten.object]
        .map(|object| device.load(object).map_err(|error| error.to_string()));
    let [original, instrumented] = modules;
    let original = kernel.dispatch(original?, buffer, 1 << 20);
    let report = Twins {
        original: &original,
        instrumented: &kernel.dispatch(instrumented?, buffer, limit),
        rewritten,
        substituted: BTreeSet::new(),
    }
    .side_by_side(&device, true);
    if let Some(difference) = &report.difference {
        return Err(format!("out of step: {difference}"));
    }
    if report.violations.is_empty() {
        return Ok(report);
    }
    // Hooks may process undefined values of the original program.
    let (_, violations) = device.dispatch_strict(&original).map_err(|error| error.to_string())?;
    let is_undefined = |violation: &&Violation| violation.rule() == Rule::UndefinedValue;
    let has_undefined = violations.iter().any(|violation| is_undefined(&violation));
    let mut new = report.violations.iter();
    match new.find(|violation| !(has_undefined && is_undefined(violation))) {
        Some(violation) => Err(format!("only the new code breaks a rule: {violation}")),
        None => Ok(report),
    }
}

/// A device with a buffer of random words.
pub fn device(machine: Machine) -> (EmbeddedGpu, Address) {
    static DEVICES: Once<String, (EmbeddedGpu, Address)> = Once::new();
    DEVICES.get(machine.to_string(), || {
        let mut device = EmbeddedGpu::new(machine.target()).expect("the embedded GPU");
        let buffer = device.allocate(BUFFER).expect("device memory");
        device.write(buffer, &random_bytes(1, BUFFER as usize)).expect("the buffer");
        (device, buffer)
    })
}
