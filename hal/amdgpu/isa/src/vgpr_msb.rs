//! Vector registers above v255 on gfx1250: an instruction encodes the low eight bits of a register number,
//! and the wave's MODE holds the two most significant bits for each operand slot (LLVM,
//! `AMDGPULowerVGPREncoding` and `getVGPRLoweringOperandTables`, which map instruction fields to
//! slots).

use crate::{
    Class, Encoding, Family, Generation, Inst, Operand, Register, RegisterRange, Role, Value, Vgpr,
};
use std::sync::Arc;

/// The most significant bits of VGPR numbers, two for each operand slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VgprMsb(u8);

/// Operand slots with separate most significant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// The first source, or the address.
    Source0 = 0,
    /// The second source, or the data.
    Source1 = 1,
    /// The third source, or more data.
    Source2 = 2,
    /// The result; the data of buffer accesses.
    Destination = 3,
}

impl VgprMsb {
    /// Position of the bits in MODE: destination, first, second and third source (LLVM,
    /// `SIDefines.h`, `VGPR_MSB_MASK`).
    const MODE_SHIFT: u32 = 12;

    /// Mask of the bits in MODE.
    pub const MODE_MASK: u32 = 0xff << VgprMsb::MODE_SHIFT;

    /// Number of distinct values.
    pub const COUNT: usize = 256;

    /// Extracts the bits from the MODE register.
    pub fn from_mode(mode: u32) -> VgprMsb {
        VgprMsb(((mode & VgprMsb::MODE_MASK) >> VgprMsb::MODE_SHIFT) as u8)
    }

    /// Extracts the bits from the low byte of the immediate of `s_set_vgpr_msb`, which holds the three
    /// sources and the destination. The high byte tells debuggers and trap handlers the previous value.
    pub fn from_immediate(immediate: u8) -> VgprMsb {
        VgprMsb(immediate.rotate_left(2))
    }

    /// Returns `mode` with its VGPR bits replaced by these.
    pub fn apply_to_mode(self, mode: u32) -> u32 {
        mode & !VgprMsb::MODE_MASK | u32::from(self.0) << VgprMsb::MODE_SHIFT
    }

    /// Returns `true` if all bits are zero: instructions access v0 to v255.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// A unique index below [`VgprMsb::COUNT`].
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The range that an operand in `slot` accesses if it is encoded as `range`.
    fn extend(self, slot: Slot, range: RegisterRange) -> RegisterRange {
        let Register::Vgpr(Vgpr(low)) = range.first else { return range };
        let high = self.0 >> (2 * ((slot as u8 + 1) % 4)) & 3;
        let first = Register::Vgpr(Vgpr(low | u16::from(high) << 8));
        RegisterRange::new(first, range.words)
    }
}

impl Inst {
    /// Replaces the VGPRs in operands, reads and writes by those that are accessed while MODE holds
    /// `msb`. The text is unchanged.
    pub fn apply_vgpr_msb(&mut self, msb: VgprMsb, generation: Generation) {
        if msb.is_zero() {
            return;
        }
        let slots = slots(self);
        let sources: Vec<RegisterRange> = self.sources().filter_map(register).collect();
        let reads_destination =
            self.flags.tied || self.operation.preserves_destination_bits(generation);
        let words = Arc::make_mut(&mut self.words);
        let is_vgpr = |range: &RegisterRange| matches!(range.first, Register::Vgpr(_));
        let encoded_reads = std::mem::take(&mut words.reads);
        let (encoded_vgprs, reads): (Vec<_>, Vec<_>) = encoded_reads.into_iter().partition(is_vgpr);
        words.reads = reads;
        words.writes.retain(|range| !is_vgpr(range));
        for (operand, slot) in words.operands.iter_mut().zip(slots) {
            let (Value::Register(range), Some(slot)) = (&mut operand.value, slot) else { continue };
            let encoded = *range;
            *range = msb.extend(slot, encoded);
            if !is_vgpr(&encoded) {
                continue;
            }
            if operand.role == Role::Source {
                include(&mut words.reads, *range);
                continue;
            }
            include(&mut words.writes, *range);
            // The part of the destination that keeps its old value is read through the destination slot.
            for read in encoded_vgprs.iter().filter(|read| encoded.contains(read.first)) {
                if reads_destination || !sources.contains(read) {
                    include(&mut words.reads, msb.extend(Slot::Destination, *read));
                }
            }
        }
    }
}

fn register(operand: &Operand) -> Option<RegisterRange> {
    match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    }
}

fn include(set: &mut Vec<RegisterRange>, range: RegisterRange) {
    if !set.contains(&range) {
        set.push(range);
    }
}

/// The slot of each operand; `None` for operands without bits in MODE.
fn slots(inst: &Inst) -> Vec<Option<Slot>> {
    use Slot::{Destination, Source0, Source1, Source2};
    const IN_ORDER: &[Slot] = &[Source0, Source1, Source2];
    let name = inst.operation.name();
    let order: &[Slot] = match inst.encoding {
        // The LDS address of an asynchronous load uses the destination slot.
        Encoding::Global | Encoding::Flat | Encoding::Scratch if name.contains("load_async_") => {
            &[Destination, Source0]
        }
        Encoding::Ds | Encoding::Global if inst.operation.is(Family::AddTid) => &[Source1],
        Encoding::Ds => IN_ORDER,
        Encoding::Global | Encoding::Flat | Encoding::Scratch => &[Source0, Source1],
        Encoding::Mubuf | Encoding::Mtbuf if inst.destinations().next().is_some() => &[Source0],
        Encoding::Mubuf | Encoding::Mtbuf => &[Destination, Source0],
        _ => IN_ORDER,
    };
    let is_vector_operation = matches!(inst.class(), Class::Valu | Class::Matrix);
    let mut destinations = 0;
    let mut sources = 0;
    let mut slot = |operand: &Operand| {
        if operand.role == Role::Destination {
            destinations += 1;
            sources = 0;
            // v_swap_b32: the second register occupies the first source field.
            let is_second = destinations == 2 && inst.encoding != Encoding::Vopd;
            return Some(if is_second && is_vector_operation { Source0 } else { Destination });
        }
        sources += 1;
        // The scales of matrix operations come after the third source and have no bits.
        order.get(sources - 1).copied()
    };
    inst.operands.iter().map(&mut slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    fn extended(text: &str, immediate: u8) -> Inst {
        let isa = Isa::new(&"gfx1250".parse().expect("a target")).expect("an ISA");
        let bytes = isa.assemble(text).expect(text);
        let mut inst = isa.decode(&bytes, Pc(0)).expect(text);
        inst.apply_vgpr_msb(VgprMsb::from_immediate(immediate), Generation::Gfx125);
        inst
    }

    fn named(inst: &Inst) -> String {
        let vgprs = inst.operands.iter().filter_map(register);
        vgprs.map(|range| range.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// `ALL` has different bits for each slot: 1, 2 and 3 for the sources, 0 for the destination. The
    /// expectations for each format are those of LLVM's tests of `AMDGPULowerVGPREncoding`.
    #[test]
    fn each_operand_slot_has_separate_bits() {
        const ALL: u8 = 0b00_11_10_01;
        for (text, immediate, expected) in [
            ("v_fma_f32 v1, v2, v3, v4", ALL, "v1 v258 v515 v772"),
            ("v_add_f32 v1, v2, v3", ALL, "v1 v258 v515"),
            ("v_add_f32 v1, v2, v3", 0b11_00_00_00, "v769 v2 v3"),
            ("v_add_f32 v1, s2, v3", ALL, "v1 s2 v515"),
            ("v_fmamk_f32 v1, v2, 0x1234, v4", ALL, "v1 v258 v772"),
            ("v_fmac_f32 v1, v2, v3", ALL, "v1 v258 v515"),
            ("v_cmp_eq_u32 vcc_lo, v2, v3", ALL, "vcc_lo v258 v515"),
            ("ds_store_b32 v1, v2", ALL, "v257 v514"),
            ("ds_load_b64 v[4:5], v2", 0b01_00_00_10, "v[260:261] v514"),
            ("global_store_b64 v[2:3], v[4:5], off", ALL, "v[258:259] v[516:517]"),
            ("global_load_b32 v1, v[2:3], off", 0b10_00_00_01, "v513 v[258:259]"),
            ("buffer_store_b32 v1, v2, s[4:7], s8 offen", 0b10_00_00_01, "v513 v258 s[4:7] s8"),
            ("buffer_load_b32 v1, v2, s[4:7], s8 offen", 0b10_00_00_01, "v513 v258 s[4:7] s8"),
            (
                "v_dual_add_f32 v1, v2, v3 :: v_dual_mul_f32 v4, v5, v6",
                0b01_00_10_11,
                "v257 v770 v515 v260 v773 v518",
            ),
            ("v_swap_b32 v1, v2", 0b01_00_00_10, "v257 v514"),
            ("global_load_async_to_lds_b32 v1, v[2:3], off", 0b10_00_00_01, "v513 v[258:259]"),
        ] {
            assert_eq!(named(&extended(text, immediate)), expected, "{text}");
        }
    }

    #[test]
    fn reads_and_writes_use_extended_numbers() {
        let v = |n| RegisterRange::new(Register::Vgpr(Vgpr(n)), 1);
        let fmac = extended("v_fmac_f32 v1, v1, v3", 0b01_00_00_00);
        assert!(
            [v(1), v(3), v(257)].iter().all(|range| fmac.reads.contains(range)),
            "{:?}",
            fmac.reads
        );
        assert!(fmac.writes.contains(&v(257)) && !fmac.writes.contains(&v(1)));
        let add = extended("v_add_f32 v1, v1, v3", 0b01_00_00_00);
        assert!(!add.reads.contains(&v(257)), "{:?}", add.reads);
        assert_eq!(add.reads.iter().filter(|range| range.first.is_per_lane()).count(), 2);
    }

    /// Bit order of `s_set_vgpr_msb` and of MODE (LLVM, `convertModeToSetregFormat`).
    #[test]
    fn mode_has_the_destination_first() {
        let msb = VgprMsb::from_immediate(0b11_10_01_00);
        let mode = msb.apply_to_mode(u32::MAX);
        assert_eq!(mode >> 12 & 0xff, 0b10_01_00_11);
        assert_eq!(VgprMsb::from_mode(mode), msb);
    }
}
