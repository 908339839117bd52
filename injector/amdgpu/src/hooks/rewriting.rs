//! Code with the hooks of a request.

use super::Refusal;
use super::calls::calls;
use super::library;
use super::request::Request;
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, HookData};
use flipwave_hooks::layout::{CodeLayout, InsertPurpose};
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, alone};
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Instructions that a user's function may execute in a dispatch in addition to those without loops.
const FUNCTION_INSTRUCTIONS: u64 = 1 << 22;

/// A rewritten code object.
pub(super) struct Rewriting {
    /// The original program.
    pub program: Disassembly,
    /// The rewritten code and its layout.
    pub rewritten: flipwave_hooks::rewrite::Rewritten,
    /// The kernel, if the others were omitted.
    pub kernel: Option<Arc<str>>,
    /// The hooks' variables.
    pub data: (Pc, HookData),
    /// Maximum number of instructions executed per instruction of the program.
    pub slowdown: u64,
    /// Number of instructions that loops in hooks may execute in a dispatch.
    pub allowance: u64,
}

/// Result of rewriting for a request.
pub(super) enum Rewritten {
    /// The rewritten code.
    Code(Box<Rewriting>),
    /// The program does not contain the instruction.
    Nothing,
    /// Hooks cannot do it.
    Refused(Refusal),
}

/// Inserts the hooks of a request into a code object, with space for the state of this many waves.
///
/// # Errors
/// [`RewriteError`].
pub(super) fn rewrite(
    object: &CodeObject,
    request: &Request,
    waves: u64,
    compiler: &HookCompiler,
) -> Result<Rewritten, RewriteError> {
    let kernel = request.kernel.and_then(|index| object.kernels().get(index));
    let alone = match request.kernel {
        Some(index) => alone(object, index)?,
        None => None,
    };
    let kernel = kernel.filter(|_| alone.is_some()).map(|kernel| Arc::clone(&kernel.name));
    let object = alone.as_ref().unwrap_or(object);
    let mut instrumentation = Instrumentation::new(object)?;
    let calls = match calls(instrumentation.program(), request) {
        Ok(calls) if calls.is_empty() => return Ok(Rewritten::Nothing),
        Ok(calls) => calls,
        Err(refusal) => return Ok(Rewritten::Refused(refusal)),
    };
    let wave_size = instrumentation.program().wave_size;
    let source = library::source(request, waves);
    instrumentation.add_source(compiler.read(&source, object.target(), wave_size)?);
    for (at, when, call) in calls {
        instrumentation.call(at, when, call);
    }
    let program = instrumentation.program().clone();
    let rewritten = instrumentation.rewrite(compiler)?;
    if let Some(refused) = rewritten.report.refused.first() {
        return Ok(Rewritten::Refused(Refusal::Engine(refused.reason.clone())));
    }
    let Some((start, data)) = rewritten.data.first().cloned() else {
        return Ok(Rewritten::Nothing);
    };
    let data = (start, library::with_library_names(data));
    let slowdown = slowdown(&rewritten.layout);
    let allowance = if request.function.is_some() { FUNCTION_INSTRUCTIONS } else { 0 };
    Ok(Rewritten::Code(Box::new(Rewriting {
        program,
        rewritten,
        kernel,
        data,
        slowdown,
        allowance,
    })))
}

/// Maximum number of instructions executed per instruction of the program, including that instruction:
/// the length of the longest code inserted at one instruction, plus code that runs when a wave starts.
/// Hooks have no loops.
fn slowdown(layout: &CodeLayout) -> u64 {
    let mut by_instruction: BTreeMap<u32, u64> = BTreeMap::new();
    let mut elsewhere = 0;
    for (range, purpose) in &layout.inserted {
        // Instructions have at least four bytes.
        let instructions = (range.end - range.start) / 4;
        match purpose {
            InsertPurpose::Point(point) => {
                *by_instruction.entry(point.at.0).or_default() += instructions;
            }
            InsertPurpose::Entry(_) | InsertPurpose::Routine(_) | InsertPurpose::Island => {
                elsewhere += instructions
            }
        }
    }
    1 + elsewhere + by_instruction.into_values().max().unwrap_or(0)
}
