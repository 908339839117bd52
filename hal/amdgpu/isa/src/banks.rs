//! Vector registers above v255: an instruction names 256 of them, and the wave's MODE has the two bits
//! above of each kind of operand (gfx1250; LLVM, `AMDGPULowerVGPREncoding` and
//! `getVGPRLoweringOperandTables`, which say what field of an instruction is which kind of operand).

use crate::{
    Class, Encoding, Family, Generation, Inst, Operand, Register, RegisterRange, Role, Value, Vgpr,
};
use std::sync::Arc;

/// The high bits of the numbers of the vector registers that instructions name, two for each kind of
/// operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VgprBanks(u8);

/// The kinds of operands that have high bits of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// The first source, or the address.
    Source0 = 0,
    /// The second source, or the data.
    Source1 = 1,
    /// The third source, or more data.
    Source2 = 2,
    /// The result; the data of buffers.
    Destination = 3,
}

impl VgprBanks {
    /// Where MODE has them: destination, first, second and third source (LLVM, `SIDefines.h`,
    /// `VGPR_MSB_MASK`).
    const MODE_SHIFT: u32 = 12;

    /// The bits of MODE that they are.
    pub const MODE_MASK: u32 = 0xff << VgprBanks::MODE_SHIFT;

    /// How many there are.
    pub const COUNT: usize = 256;

    /// What MODE says.
    pub fn of_mode(mode: u32) -> VgprBanks {
        VgprBanks(((mode & VgprBanks::MODE_MASK) >> VgprBanks::MODE_SHIFT) as u8)
    }

    /// What the immediate of `s_set_vgpr_msb` says: in its low byte the three sources and the
    /// destination. Its high byte tells debuggers and trap handlers what was set before.
    pub fn of_immediate(immediate: u8) -> VgprBanks {
        VgprBanks(immediate.rotate_left(2))
    }

    /// The same mode with these.
    pub fn in_mode(self, mode: u32) -> u32 {
        mode & !VgprBanks::MODE_MASK | u32::from(self.0) << VgprBanks::MODE_SHIFT
    }

    /// Whether instructions mean the registers that they name.
    pub fn is_lowest(self) -> bool {
        self.0 == 0
    }

    /// A number below [`VgprBanks::COUNT`], another one for each.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The register that one named in such an operand is.
    fn place(self, slot: Slot, range: RegisterRange) -> RegisterRange {
        let Register::Vgpr(Vgpr(low)) = range.first else { return range };
        let above = self.0 >> (2 * ((slot as u8 + 1) % 4)) & 3;
        let first = Register::Vgpr(Vgpr(low | u16::from(above) << 8));
        RegisterRange::new(first, range.words)
    }
}

impl Inst {
    /// Gives vector registers the numbers that they have where MODE says these high bits: in
    /// operands, and in what it reads and writes. The text stays.
    pub fn name_banked_vgprs(&mut self, banks: VgprBanks, generation: Generation) {
        if banks.is_lowest() {
            return;
        }
        let slots = slots(self);
        let sources: Vec<RegisterRange> = self.sources().filter_map(register).collect();
        let is_read_too = self.flags.tied || self.operation.keeps_destination(generation);
        let words = Arc::make_mut(&mut self.words);
        let vgprs = |range: &RegisterRange| matches!(range.first, Register::Vgpr(_));
        let old = std::mem::take(&mut words.reads);
        let (old_vgprs, reads): (Vec<_>, Vec<_>) = old.into_iter().partition(vgprs);
        words.reads = reads;
        words.writes.retain(|range| !vgprs(range));
        for (operand, slot) in words.operands.iter_mut().zip(slots) {
            let (Value::Register(range), Some(slot)) = (&mut operand.value, slot) else { continue };
            let named = *range;
            *range = banks.place(slot, named);
            if !vgprs(&named) {
                continue;
            }
            if operand.role == Role::Source {
                include(&mut words.reads, *range);
                continue;
            }
            include(&mut words.writes, *range);
            // What of the destination keeps its old value was read under the destination's name.
            for old in old_vgprs.iter().filter(|old| named.contains(old.first)) {
                if is_read_too || !sources.contains(old) {
                    include(&mut words.reads, banks.place(Slot::Destination, *old));
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

/// Which kind each operand is; none for those that no bits of MODE concern.
fn slots(inst: &Inst) -> Vec<Option<Slot>> {
    use Slot::{Destination, Source0, Source1, Source2};
    const IN_ORDER: &[Slot] = &[Source0, Source1, Source2];
    let name = inst.operation.name();
    let order: &[Slot] = match inst.encoding {
        // The address in LDS of what memory sends there is called a destination.
        Encoding::Global | Encoding::Flat | Encoding::Scratch if name.contains("load_async_") => {
            &[Destination, Source0]
        }
        Encoding::Ds | Encoding::Global if inst.operation.is(Family::AddsLane) => &[Source1],
        Encoding::Ds => IN_ORDER,
        Encoding::Global | Encoding::Flat | Encoding::Scratch => &[Source0, Source1],
        Encoding::Mubuf | Encoding::Mtbuf if inst.destinations().next().is_some() => &[Source0],
        Encoding::Mubuf | Encoding::Mtbuf => &[Destination, Source0],
        _ => IN_ORDER,
    };
    let is_vector_operation = matches!(inst.class(), Class::Valu | Class::Matrix);
    let mut destinations = 0;
    let mut sources = 0;
    let mut slot_of = |operand: &Operand| {
        if operand.role == Role::Destination {
            destinations += 1;
            sources = 0;
            // What two registers exchange: the other one stands in the place of a source.
            let is_second = destinations == 2 && inst.encoding != Encoding::Vopd;
            return Some(if is_second && is_vector_operation { Source0 } else { Destination });
        }
        sources += 1;
        // Scales of matrices are beyond the third source, and have no bits.
        order.get(sources - 1).copied()
    };
    inst.operands.iter().map(&mut slot_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    fn banked(text: &str, immediate: u8) -> Inst {
        let isa = Isa::new(&"gfx1250".parse().expect("a target")).expect("an ISA");
        let bytes = isa.assemble(text).expect(text);
        let mut inst = isa.decode(&bytes, Pc(0)).expect(text);
        inst.name_banked_vgprs(VgprBanks::of_immediate(immediate), Generation::Gfx125);
        inst
    }

    fn named(inst: &Inst) -> String {
        let vgprs = inst.operands.iter().filter_map(register);
        vgprs.map(|range| range.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// With other bits for each: sources 1, 2 and 3, destination 0; and what LLVM's tests of
    /// `AMDGPULowerVGPREncoding` show for each format.
    #[test]
    fn each_kind_of_operand_has_bits_of_its_own() {
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
            assert_eq!(named(&banked(text, immediate)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_read_and_written_follows() {
        let v = |n| RegisterRange::new(Register::Vgpr(Vgpr(n)), 1);
        let fmac = banked("v_fmac_f32 v1, v1, v3", 0b01_00_00_00);
        assert!(
            [v(1), v(3), v(257)].iter().all(|own| fmac.reads.contains(own)),
            "{:?}",
            fmac.reads
        );
        assert!(fmac.writes.contains(&v(257)) && !fmac.writes.contains(&v(1)));
        let add = banked("v_add_f32 v1, v1, v3", 0b01_00_00_00);
        assert!(!add.reads.contains(&v(257)), "{:?}", add.reads);
        assert_eq!(add.reads.iter().filter(|own| own.first.is_per_lane()).count(), 2);
    }

    /// The bits of `s_set_vgpr_msb` and those of MODE (LLVM, `convertModeToSetregFormat`).
    #[test]
    fn mode_has_the_destination_first() {
        let banks = VgprBanks::of_immediate(0b11_10_01_00);
        let mode = banks.in_mode(u32::MAX);
        assert_eq!(mode >> 12 & 0xff, 0b10_01_00_11);
        assert_eq!(VgprBanks::of_mode(mode), banks);
    }
}
