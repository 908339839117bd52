//! Kernels whose code names AccVGPRs as VGPRs. In a unified register file, VGPRs from the kernel's
//! ACCUM_OFFSET upwards are AccVGPRs (see [`Inst::replace_vgpr_aliases`](flipwave_isa::Inst)). Compilers do
//! not generate such code, but assembly may contain it.

use super::FlowError;
use super::summary::ProgramSummary;
use flipwave_isa::Pc;

impl ProgramSummary<'_> {
    /// The number of the first VGPR that is an AccVGPR, if any code names an AccVGPR as a VGPR.
    ///
    /// # Errors
    /// Returns [`FlowError::ConflictingAccumOffsets`] if kernels disagree on which VGPRs are AccVGPRs.
    pub(super) fn vgpr_alias_offset(&self) -> Result<Option<u16>, FlowError> {
        let kernels = || {
            let known = self.functions.iter().enumerate();
            let known = known.filter_map(|(at, function)| Some((function.extent.kernel?, at)));
            let mut known: Vec<(usize, usize)> = known.collect();
            known.sort_unstable();
            known.into_iter().map(|(index, at)| (&self.object.kernels()[index], at))
        };
        let aliased = kernels().find_map(|(kernel, at)| {
            let offset = kernel.descriptor.acc_vgpr_base()?;
            self.first_alias(at, offset).map(|_| (kernel, offset))
        });
        let Some((overlapping, offset)) = aliased else { return Ok(None) };
        for (kernel, at) in kernels() {
            let differs = kernel.descriptor.acc_vgpr_base() != Some(offset);
            if differs && let Some(pc) = self.first_alias(at, offset) {
                return Err(FlowError::ConflictingAccumOffsets {
                    first: overlapping.name.to_string(),
                    offset,
                    second: kernel.name.to_string(),
                    pc,
                });
            }
        }
        Ok(Some(offset))
    }

    /// The first instruction reachable from a function that names a VGPR from `offset` upwards.
    fn first_alias(&self, function: usize, offset: u16) -> Option<Pc> {
        let mut reachable = self.reachable(function).into_iter();
        let first = reachable.find(|at| self.functions[*at].vgprs_named > offset)?;
        self.with_decoded(&self.functions[first], |decoded| {
            let mut insts = decoded.insts.iter();
            insts.find(|inst| inst.has_vgpr_aliases(offset)).map(|inst| inst.pc)
        })
    }
}
