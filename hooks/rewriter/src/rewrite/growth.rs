//! Kernel descriptors and metadata for larger register allocations.

use crate::registers::Allocation;
use flipwave_codeobj::{Descriptor, MetadataChange, Rsrc3};
use flipwave_isa::{AccVgprs, Target};

/// A descriptor with an allocation of at least `to`.
pub fn grown(descriptor: &Descriptor, target: &Target, to: Allocation) -> Descriptor {
    let mut new = descriptor.clone();
    match (target.acc_vgprs(), &mut new.rsrc3) {
        (AccVgprs::Unified, Rsrc3::Gfx90a { accum_offset, .. }) => {
            // AccVGPRs follow the architectural VGPRs at a multiple of four.
            let offset = to.vgprs.next_multiple_of(4).max(4);
            if offset > *accum_offset {
                *accum_offset = offset;
            }
            new.rsrc1.vgprs = new.rsrc1.vgprs.max(*accum_offset + to.acc_vgprs);
        }
        (AccVgprs::Separate, _) => {
            new.rsrc1.vgprs = new.rsrc1.vgprs.max(to.vgprs).max(to.acc_vgprs);
        }
        _ => new.rsrc1.vgprs = new.rsrc1.vgprs.max(to.vgprs),
    }
    if target.sgpr_granule().is_some() {
        // VCC, FLAT_SCRATCH and XNACK_MASK are the last six SGPRs of the allocation.
        new.rsrc1.sgprs = new.rsrc1.sgprs.max(u16::from(to.sgprs) + 6);
    }
    let granule = u16::from(target.vgpr_granule(descriptor.wavefront_size() as u8));
    new.rsrc1.vgprs = new.rsrc1.vgprs.next_multiple_of(granule);
    if let Some(granule) = target.sgpr_granule() {
        new.rsrc1.sgprs = new.rsrc1.sgprs.next_multiple_of(granule.into());
    }
    new
}

/// The changes of a kernel's metadata for a new descriptor and allocation.
pub fn metadata(descriptor: &Descriptor, target: &Target, to: Allocation) -> MetadataChange {
    let acc = target.acc_vgprs() != AccVgprs::None;
    MetadataChange {
        vgpr_count: Some(descriptor.rsrc1.vgprs.into()),
        agpr_count: acc.then_some(to.acc_vgprs.into()),
        sgpr_count: Some(match target.sgpr_granule() {
            Some(_) => descriptor.rsrc1.sgprs.into(),
            None => to.sgprs.into(),
        }),
        private_segment_fixed_size: Some(descriptor.private_segment_fixed_size),
        ..MetadataChange::default()
    }
}
