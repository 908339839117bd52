//! Where kernels begin, and what is in their registers there.

use super::Question;
use super::finding::{CheckRule, Finding};
use super::originals::{Seam, SeamOrigin};
use super::seam::{Content, PreloadedArguments, SymbolicState};
use flipwave_codeobj::{InitialSgprs, InitialValue, Kernel};
use flipwave_isa::{Register, Sgpr, Vgpr};
use std::collections::BTreeSet;

/// Entries are multiples of this (AMDGPUUsage, "Kernel Descriptor").
const ENTRY_ALIGNMENT: u64 = 256;

/// The kernel of the new code object that was made from an original one.
pub fn new_kernel<'a>(question: &Question<'a>, original: &Kernel) -> Option<&'a Kernel> {
    question.new.kernels().iter().find(|kernel| kernel.symbol == original.symbol)
}

/// The seams at the entries of kernels.
pub fn seams(question: &Question<'_>, seams: &mut BTreeSet<Seam>, findings: &mut Vec<Finding>) {
    for (index, kernel) in question.original.kernels().iter().enumerate() {
        let old = kernel.entry();
        let Some(new) = new_kernel(question, kernel) else {
            let what = format!("the kernel `{}` is missing", kernel.name);
            findings.push(Finding::at(CheckRule::Original, 0, what).of(old));
            continue;
        };
        let entry = new.entry();
        if entry.0 % ENTRY_ALIGNMENT != 0 {
            let what = format!("the entry is no multiple of {ENTRY_ALIGNMENT}");
            findings.push(Finding::at(CheckRule::Allocation, entry.0, what).of(old));
        }
        if let Some(to) = question.original_at(kernel.start().0) {
            seams.insert(Seam { start: new.start().0, to, from: SeamOrigin::Kernel(index) });
        }
    }
}

/// Puts the values that a kernel starts with to where the new descriptor has them.
pub fn initialize(question: &Question<'_>, kernel: usize, state: &mut SymbolicState) {
    let old = &question.original.kernels()[kernel];
    let Some(new) = new_kernel(question, old) else { return };
    let target = question.new.target();
    let (asked, given) =
        (old.descriptor.rsrc2.vgpr_workitem_id, new.descriptor.rsrc2.vgpr_workitem_id);
    if target.packs_work_item_ids() && given > asked {
        // Ten bits for each dimension.
        let register = Register::Vgpr(Vgpr(0));
        let bits = (1u32 << (10 * (u32::from(asked) + 1))) - 1;
        state.write_vector(register, [Content::Wider { register, bits }; 2]);
    }
    let before = old.descriptor.initial_sgprs(target);
    let now = new.descriptor.initial_sgprs(target);
    for initial in &now {
        let original = before.iter().find(|own| own.value == initial.value);
        for word in 0..initial.words {
            let content = match original.filter(|own| word < own.words) {
                Some(own) => Content::Own(sgpr(own, word)),
                None if initial.value == InitialValue::KernargPointer => Content::Kernarg(word),
                None => Content::Unknown,
            };
            state.set_scalar(sgpr(initial, word), content);
        }
    }
    let find = |of: &[InitialSgprs], value| of.iter().find(|own| own.value == value).copied();
    let loaded = find(&before, InitialValue::Arguments);
    if let Some((arguments, pointer)) = loaded.zip(find(&now, InitialValue::KernargPointer)) {
        state.arguments = Some(PreloadedArguments {
            pointer: [0, 1].map(|word| state.scalar(sgpr(&pointer, word))),
            first: sgpr(&arguments, 0),
            words: arguments.words,
            offset: old.descriptor.kernarg_preload.start_bytes(),
        });
    }
}

/// A register of an initial value.
fn sgpr(own: &InitialSgprs, word: u8) -> Register {
    Register::Sgpr(Sgpr(own.first.0.saturating_add(word)))
}
