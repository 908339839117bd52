//! Kernels whose code names AccVGPRs as VGPRs: where one file has both, VGPRs from the kernel's
//! ACCUM_OFFSET on are AccVGPRs (see [`Inst::replace_vgpr_aliases`](flipwave_isa::Inst)). Compilers
//! do not write such code, assembly does.

use super::FlowError;
use super::survey::Survey;
use flipwave_isa::Pc;

impl Survey<'_> {
    /// From where on VGPRs are AccVGPRs, if any code names one by the other.
    ///
    /// # Errors
    /// [`FlowError::SharedVgprs`] where it depends on the kernel whether a register has two names.
    pub(super) fn shared_vgprs(&self) -> Result<Option<u16>, FlowError> {
        let kernels = || {
            let known = self.functions.iter().enumerate();
            let known = known.filter_map(|(at, own)| Some((own.extent.kernel?, at)));
            let mut known: Vec<(usize, usize)> = known.collect();
            known.sort_unstable();
            known.into_iter().map(|(index, at)| (&self.object.kernels()[index], at))
        };
        let own = kernels().find_map(|(kernel, at)| {
            let offset = kernel.descriptor.acc_vgpr_base()?;
            self.first_shared(at, offset).map(|_| (kernel, offset))
        });
        let Some((overlapping, offset)) = own else { return Ok(None) };
        for (kernel, at) in kernels() {
            let is_other = kernel.descriptor.acc_vgpr_base() != Some(offset);
            if is_other && let Some(pc) = self.first_shared(at, offset) {
                return Err(FlowError::SharedVgprs {
                    first: overlapping.name.to_string(),
                    offset,
                    second: kernel.name.to_string(),
                    pc,
                });
            }
        }
        Ok(Some(offset))
    }

    /// The first instruction that a function may come to and that names a VGPR from `offset` on.
    fn first_shared(&self, function: usize, offset: u16) -> Option<Pc> {
        let mut reachable = self.reachable(function).into_iter();
        let first = reachable.find(|at| self.functions[*at].vgprs_named > offset)?;
        self.with_draft(&self.functions[first], |draft| {
            let mut insts = draft.insts.iter();
            insts.find(|inst| inst.has_vgpr_aliases(offset)).map(|inst| inst.pc)
        })
    }
}
