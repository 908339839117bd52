//! Kernels whose code names AccVGPRs as VGPRs: where one file has both, VGPRs from the kernel's
//! ACCUM_OFFSET on are AccVGPRs (see [`Inst::name_shared_vgprs`](flipwave_isa::Inst)). Compilers
//! do not write such code, assembly does.

use super::{FlowError, Program};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;

impl Program {
    /// Gives registers with two names one, if any code names one by the other.
    ///
    /// # Errors
    /// [`FlowError::SharedVgprs`] where it depends on the kernel whether a register has two names.
    pub(super) fn name_shared_vgprs(&mut self, object: &CodeObject) -> Result<(), FlowError> {
        let kernels = || object.kernels().iter().enumerate();
        let own = kernels().find_map(|(index, kernel)| {
            let offset = kernel.descriptor.shared_vgprs_from()?;
            self.first_shared(index, offset).map(|_| (kernel, offset))
        });
        let Some((overlapping, offset)) = own else { return Ok(()) };
        for (index, kernel) in kernels() {
            let is_other = kernel.descriptor.shared_vgprs_from() != Some(offset);
            if is_other && let Some(pc) = self.first_shared(index, offset) {
                return Err(FlowError::SharedVgprs {
                    first: overlapping.name.to_string(),
                    offset,
                    second: kernel.name.to_string(),
                    pc,
                });
            }
        }
        self.accum_offset = Some(offset);
        self.instructions.iter_mut().for_each(|inst| inst.name_shared_vgprs(offset));
        Ok(())
    }

    /// The first instruction that a kernel may execute and that names a VGPR from `offset` on.
    fn first_shared(&self, kernel: usize, offset: u16) -> Option<Pc> {
        let functions = self.reachable(self.kernel(kernel)?);
        let functions = functions.into_iter().map(|own| &self.functions[own]);
        let mut insts = functions.flat_map(|own| &self.instructions[own.instructions]);
        insts.find(|inst| inst.names_shared_vgprs(offset)).map(|inst| inst.pc)
    }
}
