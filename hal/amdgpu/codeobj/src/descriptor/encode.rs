//! Encoding of kernel descriptors.

use super::{
    ACCUM_GRANULE, CodeProperties, DESCRIPTOR_SIZE, Descriptor, KernargPreload, Rsrc1, Rsrc2,
    Rsrc3, half, sgpr_granule, user_sgpr_bits, vgpr_granule, word,
};
use flipwave_isa::Generation;

/// The error of a value that does not fit its descriptor field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel descriptor: {field} of {value}; {generation:?} holds at most {limit}")]
pub struct FieldError {
    /// The field.
    pub field: &'static str,
    /// The value.
    pub value: u32,
    /// The largest value, in the same unit.
    pub limit: u32,
    /// The descriptor's generation.
    pub generation: Generation,
}

impl Descriptor {
    /// Encodes the descriptor: the inverse of [`Descriptor::decode`]. Rounds register counts up to
    /// allocation granules. Takes bits outside the decoded fields from `original`, and ignores fields
    /// that the generation does not have.
    ///
    /// # Errors
    /// [`FieldError`] if a value does not fit its field.
    pub fn encode(
        &self,
        original: &[u8; DESCRIPTOR_SIZE],
        generation: Generation,
    ) -> Result<[u8; DESCRIPTOR_SIZE], FieldError> {
        let bits = |bits| Bits { bits, generation };
        let mut bytes = *original;
        put(&mut bytes, 0, self.group_segment_fixed_size.to_le_bytes());
        put(&mut bytes, 4, self.private_segment_fixed_size.to_le_bytes());
        put(&mut bytes, 8, self.kernarg_size.to_le_bytes());
        put(&mut bytes, 16, self.entry.0.wrapping_sub(self.address).to_le_bytes());
        let rsrc3 = self.rsrc3.encode(bits(word(original, 44)))?;
        put(&mut bytes, 44, rsrc3.to_le_bytes());
        let wavefront_size = self.properties.wavefront_size();
        let rsrc1 = self.rsrc1.encode(bits(word(original, 48)), wavefront_size)?;
        put(&mut bytes, 48, rsrc1.to_le_bytes());
        put(&mut bytes, 52, self.rsrc2.encode(bits(word(original, 52)))?.to_le_bytes());
        let properties = self.properties.encode(bits(half(original, 56).into()));
        put(&mut bytes, 56, (properties as u16).to_le_bytes());
        if KernargPreload::exists(generation) {
            let mut preload = bits(0);
            preload.set("kernarg preload length", 0, 7, self.kernarg_preload.length.into())?;
            preload.set("kernarg preload offset", 7, 9, self.kernarg_preload.offset.into())?;
            put(&mut bytes, 58, (preload.bits as u16).to_le_bytes());
        }
        Ok(bytes)
    }
}

impl Rsrc1 {
    fn encode(&self, mut bits: Bits, wavefront_size: u8) -> Result<u32, FieldError> {
        let generation = bits.generation;
        let gfx10 = generation >= Generation::Gfx10;
        let gfx12 = generation >= Generation::Gfx12;
        bits.set_granules("VGPRs", 0, 6, self.vgprs, vgpr_granule(generation, wavefront_size))?;
        match sgpr_granule(generation) {
            // Hardware with a granule of 16 ignores the lowest bit.
            Some(16) => bits.set_granules("SGPRs", 7, 3, self.sgprs, 16)?,
            Some(granule) => bits.set_granules("SGPRs", 6, 4, self.sgprs, granule)?,
            None => {}
        }
        bits.set("priority", 10, 2, self.priority.into())?;
        bits.set("float mode", 12, 8, self.float_mode.mode().into())?;
        bits.flag(20, self.privileged);
        bits.flag(22, self.debug_mode);
        bits.flag(24, self.bulky);
        bits.flag(25, self.debugger_user);
        if gfx12 {
            bits.flag(21, self.round_robin);
            bits.flag(23, self.disable_performance_counters);
        } else {
            bits.flag(21, self.dx10_clamp);
            bits.flag(23, self.ieee_mode);
        }
        if generation >= Generation::Gfx9 {
            bits.flag(26, self.fp16_overflow);
        }
        if gfx10 {
            bits.flag(29, self.workgroup_processor_mode);
            bits.flag(30, self.memory_ordered);
            bits.flag(31, self.forward_progress);
        }
        Ok(bits.bits)
    }
}

impl Rsrc2 {
    fn encode(&self, mut bits: Bits) -> Result<u32, FieldError> {
        bits.flag(0, self.private_segment);
        let width = user_sgpr_bits(bits.generation);
        bits.set("user SGPRs", 1, width, self.user_sgprs.into())?;
        if width == 5 {
            bits.flag(6, self.trap_handler);
        }
        bits.flag(7, self.workgroup_id_x);
        bits.flag(8, self.workgroup_id_y);
        bits.flag(9, self.workgroup_id_z);
        bits.flag(10, self.workgroup_info);
        bits.set("work-item index", 11, 2, self.vgpr_workitem_id.into())?;
        bits.flag(13, self.exceptions.address_watch);
        bits.flag(14, self.exceptions.memory);
        bits.set("granulated LDS size", 15, 9, self.granulated_lds_size.into())?;
        bits.flag(24, self.exceptions.invalid_operation);
        bits.flag(25, self.exceptions.denormal_source);
        bits.flag(26, self.exceptions.division_by_zero);
        bits.flag(27, self.exceptions.overflow);
        bits.flag(28, self.exceptions.underflow);
        bits.flag(29, self.exceptions.inexact);
        bits.flag(30, self.exceptions.integer_division_by_zero);
        Ok(bits.bits)
    }
}

impl Rsrc3 {
    /// Leaves the bits unchanged if the variant does not match the generation.
    fn encode(&self, mut bits: Bits) -> Result<u32, FieldError> {
        let gfx11 = bits.generation >= Generation::Gfx11;
        match (*self, bits.generation) {
            (
                Rsrc3::Gfx90a { accum_offset, threadgroup_split },
                Generation::Gfx90a | Generation::Gfx940,
            ) => {
                bits.set_granules("first AccVGPR", 0, 6, accum_offset, ACCUM_GRANULE)?;
                bits.flag(16, threadgroup_split);
            }
            (
                Rsrc3::Gfx10 {
                    shared_vgprs,
                    instruction_prefetch,
                    trap_on_start,
                    trap_on_end,
                    image_operations,
                },
                Generation::Gfx10 | Generation::Gfx11,
            ) => {
                bits.set("shared VGPRs", 0, 4, shared_vgprs.into())?;
                if gfx11 {
                    bits.set("instruction prefetch", 4, 6, instruction_prefetch.into())?;
                    bits.flag(10, trap_on_start);
                    bits.flag(11, trap_on_end);
                    bits.flag(31, image_operations);
                }
            }
            (
                Rsrc3::Gfx12 { instruction_prefetch, group_launch_guarantee, image_operations },
                Generation::Gfx12,
            ) => {
                bits.set("instruction prefetch", 4, 8, instruction_prefetch.into())?;
                bits.flag(13, group_launch_guarantee);
                bits.flag(31, image_operations);
            }
            (
                Rsrc3::Gfx125 { instruction_prefetch, group_launch_guarantee, named_barriers },
                Generation::Gfx125,
            ) => {
                bits.set("instruction prefetch", 4, 8, instruction_prefetch.into())?;
                bits.flag(13, group_launch_guarantee);
                bits.set("named barriers / 4", 14, 3, named_barriers.into())?;
            }
            _ => {}
        }
        Ok(bits.bits)
    }
}

impl CodeProperties {
    fn encode(&self, mut bits: Bits) -> u32 {
        bits.flag(0, self.sgpr_private_segment_buffer);
        bits.flag(1, self.sgpr_dispatch_ptr);
        bits.flag(2, self.sgpr_queue_ptr);
        bits.flag(3, self.sgpr_kernarg_segment_ptr);
        bits.flag(4, self.sgpr_dispatch_id);
        bits.flag(5, self.sgpr_flat_scratch_init);
        bits.flag(6, self.sgpr_private_segment_size);
        bits.flag(10, self.wavefront_size_32);
        bits.flag(11, self.uses_dynamic_stack);
        bits.bits
    }
}

/// A word under construction, field by field.
#[derive(Clone, Copy)]
struct Bits {
    bits: u32,
    generation: Generation,
}

impl Bits {
    /// Sets the field of `width` bits at bit `position`.
    fn set(
        &mut self,
        field: &'static str,
        position: u32,
        width: u32,
        value: u32,
    ) -> Result<(), FieldError> {
        let limit = (1 << width) - 1;
        if value > limit {
            return Err(FieldError { field, value, limit, generation: self.generation });
        }
        self.bits = self.bits & !(limit << position) | value << position;
        Ok(())
    }

    /// Sets a field that encodes a count in granules, minus one.
    fn set_granules(
        &mut self,
        field: &'static str,
        position: u32,
        width: u32,
        count: u16,
        granule: u16,
    ) -> Result<(), FieldError> {
        let (count, granule) = (u32::from(count), u32::from(granule));
        self.set(field, position, width, count.max(1).div_ceil(granule) - 1).map_err(|error| {
            FieldError { value: count, limit: (error.limit + 1) * granule, ..error }
        })
    }

    fn flag(&mut self, position: u32, value: bool) {
        self.bits = self.bits & !(1 << position) | u32::from(value) << position;
    }
}

/// Writes a field. All callers pass constant offsets inside the descriptor.
fn put<const N: usize>(bytes: &mut [u8; DESCRIPTOR_SIZE], offset: usize, value: [u8; N]) {
    if let Some(field) = bytes.get_mut(offset..offset + N) {
        field.copy_from_slice(&value);
    }
}
