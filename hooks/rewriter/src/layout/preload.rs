//! Kernels that preload arguments into registers. Waves start 256 bytes after the entry of such a
//! kernel; the entry code is for firmware without preloading (AMDGPUUsage, "Preloaded Kernel
//! Arguments") and does not belong to the kernel's function.

use super::LayoutError;
use crate::flow::{Disassembly, Function};
use flipwave_codeobj::{CodeObject, KernargPreload, Kernel};
use flipwave_isa::{Control, Isa, Opcode, Pc};

/// Address of a function in symbols and descriptors: the entry of a kernel, the first instruction of
/// any other function.
pub(super) fn entry(object: &CodeObject, program: &Disassembly, function: &Function) -> Pc {
    match function.kernel {
        Some(kernel) => object.kernels()[kernel].entry(),
        None => program.entry(function),
    }
}

/// Position-independent entry code of a kernel that preloads arguments; `None` for other functions.
///
/// # Errors
/// [`LayoutError::PreloadEntry`] if the code refers to other code.
pub(super) fn prologue<'a>(
    object: &'a CodeObject,
    isa: &Isa,
    function: &Function,
) -> Result<Option<&'a [u8]>, LayoutError> {
    let kernel = function.kernel.map(|kernel| &object.kernels()[kernel]);
    let Some(kernel) = kernel.filter(|kernel| !kernel.descriptor.kernarg_preload.is_none()) else {
        return Ok(None);
    };
    let refused = |pc: Pc| LayoutError::PreloadEntry { function: function.name.clone(), pc };
    let bytes = object.bytes_at(kernel.entry(), KernargPreload::ENTRY_SIZE as usize);
    let bytes = bytes.ok_or_else(|| refused(kernel.entry()))?;
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let pc = Pc(kernel.entry().0 + at as u64);
        let size = match isa.decode(rest, pc) {
            Ok(inst) => {
                let control = inst.control(object.target().generation());
                let reads_pc = inst.operation.opcode() == Opcode::SGetpc;
                if reads_pc || !stays_inside(kernel, control, inst.branch_target) {
                    return Err(refused(pc));
                }
                inst.size.into()
            }
            // Padding.
            Err(_) => 4,
        };
        at += size;
    }
    Ok(Some(bytes))
}

/// Returns `true` if control stays in the entry code or goes to the kernel's first instruction.
fn stays_inside(kernel: &Kernel, control: Control, target: Option<Pc>) -> bool {
    let inside = kernel.entry()..=kernel.start();
    match control {
        Control::Next | Control::End => true,
        Control::Branch | Control::Conditional => target.is_some_and(|pc| inside.contains(&pc)),
        Control::Call | Control::Jump | Control::Unknown(_) => false,
    }
}
