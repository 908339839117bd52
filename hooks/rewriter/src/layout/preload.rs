//! Kernels that preload arguments into registers. Waves begin 256 bytes after such a kernel's entry;
//! at the entry is code for firmware that cannot preload (AMDGPUUsage, "Preloaded Kernel
//! Arguments"). It is no part of the kernel's function.

use super::LayoutError;
use crate::flow::{Disassembly, Function};
use flipwave_codeobj::{CodeObject, KernargPreload, Kernel};
use flipwave_isa::{Control, Isa, Opcode, Pc};

/// The address that stands for a function in symbols and descriptors: of a kernel its entry, of
/// another its first instruction.
pub(super) fn entry(object: &CodeObject, program: &Disassembly, function: &Function) -> Pc {
    match function.kernel {
        Some(kernel) => object.kernels()[kernel].entry(),
        None => program.entry(function),
    }
}

/// The code at the entry of a kernel that preloads, which may be copied as it is.
///
/// # Errors
/// [`LayoutError::PreloadEntry`] where it refers to code elsewhere.
pub(super) fn prologue<'a>(
    object: &'a CodeObject,
    isa: &Isa,
    function: &Function,
) -> Result<Option<&'a [u8]>, LayoutError> {
    let kernel = function.kernel.map(|kernel| &object.kernels()[kernel]);
    let Some(kernel) = kernel.filter(|own| !own.descriptor.kernarg_preload.is_none()) else {
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
                let knows_where = inst.operation.opcode() == Opcode::SGetpc;
                if knows_where || !stays(kernel, control, inst.branch_target) {
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

/// Whether control stays within the prologue or goes to the start, wherever both lie.
fn stays(kernel: &Kernel, control: Control, target: Option<Pc>) -> bool {
    let own = kernel.entry()..=kernel.start();
    match control {
        Control::Next | Control::End => true,
        Control::Branch | Control::Conditional => target.is_some_and(|pc| own.contains(&pc)),
        Control::Call | Control::Jump | Control::Unknown(_) => false,
    }
}
