//! Random kernels with random hooks: what the rewriter makes of them, the checker must prove, and
//! it must run in step with the original and break no rule that the original keeps.

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

/// What came of an input in which nothing is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether there is a new code object; else the whole request was refused.
    pub is_rewritten: bool,
    /// Hook calls that were placed.
    pub placed: usize,
    /// Sites that were left out.
    pub refused: usize,
    /// Original instructions that both sides executed.
    pub instructions: u64,
}

/// Rewrites a kernel and runs it, all by the decisions of these bytes.
///
/// # Errors
/// What is wrong, with the kernel and what was asked for.
pub fn rewriter(bytes: &[u8]) -> Result<Outcome, String> {
    let mut choices = Choices::new(bytes);
    let machine = machine(&mut choices);
    let size = 1 + choices.below(120);
    let kernel = Kernel::new(machine, size, &mut choices);
    let mut asked = Vec::new();
    let told = |what: String, asked: &[String]| {
        format!("{machine}: {what}\n\n{}\n\n{}", asked.join("\n"), kernel.text)
    };
    let made = rewritten(&kernel, &mut asked, &mut choices);
    let Some(rewritten) = made.map_err(|what| told(what, &asked))? else {
        return Ok(Outcome::default());
    };
    let report = &rewritten.report;
    let run = run(&kernel, &rewritten, 1 << 30);
    let instructions = run.map_err(|what| told(what, &asked))?.instructions;
    let (placed, refused) = (report.placed, report.refused.len());
    Ok(Outcome { is_rewritten: true, placed, refused, instructions })
}

/// A machine whose rules are known.
pub fn machine(choices: &mut Choices<'_>) -> Machine {
    // Nothing here writes the waits and barriers of gfx12. On gfx906 FLAT_SCRATCH is compared where
    // the original has not set it up, and hooks have.
    let is_written = |machine: &Machine| match machine.target().generation() {
        Generation::Gfx9 => false,
        generation => generation < Generation::Gfx12,
    };
    let known =
        MACHINES.into_iter().filter(|machine| machine.has_strict_level()).filter(is_written);
    choices.pick(&known.collect::<Vec<_>>())
}

/// The kernel with hooks, which the checker has looked at; nothing where that cannot be.
fn rewritten(
    kernel: &Kernel,
    asked: &mut Vec<String>,
    choices: &mut Choices<'_>,
) -> Result<Option<Rewritten>, String> {
    let mut instrumentation = Instrumentation::new(&kernel.object)
        .map_err(|error| format!("the kernel is not understood: {error}"))?;
    *asked = requests::ask(&mut instrumentation, kernel.vgprs, kernel.acc_vgprs, choices);
    match instrumentation.rewrite(hook_compiler()) {
        Ok(rewritten) => Ok(Some(rewritten)),
        // Where code may go has limits.
        Err(RewriteError::Layout(_) | RewriteError::Stale { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs original and new code, the latter for so many instructions at most, side by side, and on the
/// strict level.
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
    // What hooks do with undefined values of the program is no fault of theirs.
    let (_, violations) = device.dispatch_strict(&original).map_err(|error| error.to_string())?;
    let is_undefined = |violation: &&Violation| violation.rule() == Rule::UndefinedValue;
    let has_undefined = violations.iter().any(|violation| is_undefined(&violation));
    let mut new = report.violations.iter();
    match new.find(|violation| !(has_undefined && is_undefined(violation))) {
        Some(violation) => Err(format!("only the new code breaks a rule: {violation}")),
        None => Ok(report),
    }
}

/// A device with a buffer of words without a pattern.
pub fn device(machine: Machine) -> (EmbeddedGpu, Address) {
    static DEVICES: Once<String, (EmbeddedGpu, Address)> = Once::new();
    DEVICES.get(machine.to_string(), || {
        let mut device = EmbeddedGpu::new(machine.target()).expect("the embedded GPU");
        let buffer = device.allocate(BUFFER).expect("device memory");
        device.write(buffer, &random_bytes(1, BUFFER as usize)).expect("the buffer");
        (device, buffer)
    })
}
