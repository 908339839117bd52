//! Entries of kernels, and the initial contents of their registers.

use super::context::CheckContext;
use super::finding::{CheckRule, Finding};
use super::splice::{
    Content, LaneContents, PreloadedArguments, Splice, SpliceOrigin, SymbolicState,
};
use flipwave_codeobj::{InitialSgprs, InitialValue, Kernel};
use flipwave_isa::{Register, Sgpr, Vgpr};
use std::collections::BTreeSet;

/// Alignment of entries in bytes (AMDGPUUsage, "Kernel Descriptor").
const ENTRY_ALIGNMENT: u64 = 256;

/// The kernel of the new code object that corresponds to an original one.
pub fn new_kernel<'a>(context: &CheckContext<'a>, original: &Kernel) -> Option<&'a Kernel> {
    context.new.kernels().iter().find(|kernel| kernel.symbol == original.symbol)
}

/// Adds the splices at the entries of kernels.
pub fn add_splices(
    context: &CheckContext<'_>,
    splices: &mut BTreeSet<Splice>,
    findings: &mut Vec<Finding>,
) {
    for (index, kernel) in context.original.kernels().iter().enumerate() {
        let old = kernel.entry();
        let Some(new) = new_kernel(context, kernel) else {
            let message = format!("missing kernel `{}`", kernel.name);
            findings.push(Finding::at(CheckRule::Original, 0, message).for_original(old));
            continue;
        };
        let entry = new.entry();
        if entry.0 % ENTRY_ALIGNMENT != 0 {
            let message = format!("entry not aligned to {ENTRY_ALIGNMENT} bytes");
            findings.push(Finding::at(CheckRule::Allocation, entry.0, message).for_original(old));
        }
        if let Some(to) = context.original_at(kernel.start().0) {
            splices.insert(Splice { start: new.start().0, to, from: SpliceOrigin::Kernel(index) });
        }
    }
}

/// Initializes the registers of a kernel with the values that its new descriptor requests.
pub fn initialize(context: &CheckContext<'_>, kernel: usize, state: &mut SymbolicState) {
    let old = &context.original.kernels()[kernel];
    let Some(new) = new_kernel(context, old) else { return };
    let target = context.new.target();
    let old_ids = old.descriptor.rsrc2.vgpr_workitem_id;
    let new_ids = new.descriptor.rsrc2.vgpr_workitem_id;
    if target.packs_work_item_ids() && new_ids > old_ids {
        // Each dimension takes ten bits.
        let register = Register::Vgpr(Vgpr(0));
        let bits = (1u32 << (10 * (u32::from(old_ids) + 1))) - 1;
        let content = Content::WithExtraBits { register, bits };
        state.write_vector(register, LaneContents::uniform(content));
    }
    let old_sgprs = old.descriptor.initial_sgprs(target);
    let new_sgprs = new.descriptor.initial_sgprs(target);
    for initial in &new_sgprs {
        let original = old_sgprs.iter().find(|original| original.value == initial.value);
        for word in 0..initial.words {
            let content = match original.filter(|original| word < original.words) {
                Some(original) => Content::Initial(sgpr(original, word)),
                None if initial.value == InitialValue::KernargPointer => {
                    Content::KernargPointer(word)
                }
                None => Content::Unknown,
            };
            state.set_scalar(sgpr(initial, word), content);
        }
    }
    let find = |sgprs: &[InitialSgprs], value| {
        sgprs.iter().find(|initial| initial.value == value).copied()
    };
    let arguments = find(&old_sgprs, InitialValue::Arguments);
    let pointer = find(&new_sgprs, InitialValue::KernargPointer);
    if let (Some(arguments), Some(pointer)) = (arguments, pointer) {
        state.arguments = Some(PreloadedArguments {
            pointer: [0, 1].map(|word| state.scalar(sgpr(&pointer, word))),
            first: sgpr(&arguments, 0),
            words: arguments.words,
            offset: old.descriptor.kernarg_preload.start_bytes(),
        });
    }
}

/// The register that holds a word of an initial value.
fn sgpr(initial: &InitialSgprs, word: u8) -> Register {
    Register::Sgpr(Sgpr(initial.first.0.saturating_add(word)))
}
