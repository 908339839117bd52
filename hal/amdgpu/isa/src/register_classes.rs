//! Registers in the common terms of all instruction sets: class and number.

use crate::{AccVgpr, Register, RegisterRange, Sgpr, Ttmp, Vgpr};
use flipwave_arch::{RegisterClass, RegisterId, RegisterNames, RegisterSpan};

/// Name of the instruction set in register classes.
const AMDGPU: &str = "amdgpu";

/// A class of scalar registers with one name per register.
const fn listed(rank: u16, names: &'static [&'static str]) -> RegisterClass {
    RegisterClass {
        instruction_set: AMDGPU,
        rank,
        names: RegisterNames::Listed(names),
        count: names.len() as u16,
        bits: 32,
        is_per_lane: false,
        has_known_readers: true,
    }
}

/// A flag of one bit.
const fn flag(rank: u16, names: &'static [&'static str]) -> RegisterClass {
    RegisterClass { bits: 1, ..listed(rank, names) }
}

/// A register file.
const fn file(rank: u16, prefix: &'static str, count: u16) -> RegisterClass {
    RegisterClass { names: RegisterNames::Numbered(prefix), count, ..listed(rank, &[]) }
}

/// The classes, in the order of their ranks. Fault sites are numbered in this order.
static CLASSES: [RegisterClass; 22] = [
    RegisterClass { is_per_lane: true, ..file(0, "v", Vgpr::COUNT) },
    RegisterClass { is_per_lane: true, ..file(1, "a", 256) },
    file(2, "s", 106),
    listed(3, &["vcc_lo", "vcc_hi"]),
    listed(4, &["exec_lo", "exec_hi"]),
    // Scratch instructions read it without naming it.
    RegisterClass {
        has_known_readers: false,
        ..listed(5, &["flat_scratch_lo", "flat_scratch_hi"])
    },
    listed(6, &["xnack_mask_lo", "xnack_mask_hi"]),
    file(7, "ttmp", 16),
    listed(8, &["m0"]),
    flag(9, &["scc"]),
    listed(10, &["mode"]),
    listed(11, &["null"]),
    flag(12, &["vccz"]),
    flag(13, &["execz"]),
    listed(14, &["src_shared_base"]),
    listed(15, &["src_shared_limit"]),
    listed(16, &["src_private_base"]),
    listed(17, &["src_private_limit"]),
    listed(18, &["src_flat_scratch_base_lo"]),
    listed(19, &["src_flat_scratch_base_hi"]),
    listed(20, &["src_pops_exiting_wave_id"]),
    listed(21, &["lds_direct"]),
];

impl From<Register> for RegisterId {
    fn from(register: Register) -> RegisterId {
        let (rank, number) = match register {
            Register::Vgpr(Vgpr(number)) => (0, number),
            Register::AccVgpr(AccVgpr(number)) => (1, number.into()),
            Register::Sgpr(Sgpr(number)) => (2, number.into()),
            Register::VccLo => (3, 0),
            Register::VccHi => (3, 1),
            Register::ExecLo => (4, 0),
            Register::ExecHi => (4, 1),
            Register::FlatScratchLo => (5, 0),
            Register::FlatScratchHi => (5, 1),
            Register::XnackMaskLo => (6, 0),
            Register::XnackMaskHi => (6, 1),
            Register::Ttmp(Ttmp(number)) => (7, number.into()),
            Register::M0 => (8, 0),
            Register::Scc => (9, 0),
            Register::Mode => (10, 0),
            Register::Null => (11, 0),
            Register::Vccz => (12, 0),
            Register::Execz => (13, 0),
            Register::SharedBase => (14, 0),
            Register::SharedLimit => (15, 0),
            Register::PrivateBase => (16, 0),
            Register::PrivateLimit => (17, 0),
            Register::FlatScratchBaseLo => (18, 0),
            Register::FlatScratchBaseHi => (19, 0),
            Register::PopsExitingWaveId => (20, 0),
            Register::LdsDirect => (21, 0),
        };
        RegisterId { class: &CLASSES[rank], number }
    }
}

impl Register {
    /// The AMD register of an identity; `None` for registers of other instruction sets.
    pub fn of_id(id: RegisterId) -> Option<Register> {
        let RegisterId { class, number } = id;
        if class.instruction_set != AMDGPU || number >= class.count {
            return None;
        }
        let small = number as u8;
        let half = |low, high| if number == 0 { low } else { high };
        Some(match class.rank {
            0 => Register::Vgpr(Vgpr(number)),
            1 => Register::AccVgpr(AccVgpr(small)),
            2 => Register::Sgpr(Sgpr(small)),
            3 => half(Register::VccLo, Register::VccHi),
            4 => half(Register::ExecLo, Register::ExecHi),
            5 => half(Register::FlatScratchLo, Register::FlatScratchHi),
            6 => half(Register::XnackMaskLo, Register::XnackMaskHi),
            7 => Register::Ttmp(Ttmp(small)),
            8 => Register::M0,
            9 => Register::Scc,
            10 => Register::Mode,
            11 => Register::Null,
            12 => Register::Vccz,
            13 => Register::Execz,
            14 => Register::SharedBase,
            15 => Register::SharedLimit,
            16 => Register::PrivateBase,
            17 => Register::PrivateLimit,
            18 => Register::FlatScratchBaseLo,
            19 => Register::FlatScratchBaseHi,
            20 => Register::PopsExitingWaveId,
            21 => Register::LdsDirect,
            _ => return None,
        })
    }
}

impl From<RegisterRange> for RegisterSpan {
    fn from(range: RegisterRange) -> RegisterSpan {
        RegisterSpan::new(range.first.into(), range.words.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identities have the names, the widths and the order of the registers, and map back to them.
    #[test]
    fn identities_stand_for_all_registers() {
        let names = CLASSES.iter().flat_map(|class| {
            let registers = (0..class.count).map(move |number| RegisterId { class, number });
            registers.map(|id| id.to_string())
        });
        let names: Vec<String> = names.collect();
        assert!(names.len() > 1400);
        let mut last = None;
        for name in names {
            let register: Register = name.parse().unwrap();
            let id = RegisterId::from(register);
            assert_eq!(id.to_string(), name);
            assert_eq!(Register::of_id(id), Some(register));
            assert_eq!(CLASSES.iter().find_map(|class| class.parse(&name)), Some(id));
            assert_eq!((id.bits(), id.is_per_lane()), (register.bits(), register.is_per_lane()));
            for words in 0..3 {
                let next = register.offset(words).map(RegisterId::from);
                assert_eq!(id.offset(words.into()), next, "{name} + {words}");
            }
            assert!(last.is_none_or(|(before, id_before)| before < register && id_before < id));
            last = Some((register, id));
        }
    }

    #[test]
    fn registers_of_other_instruction_sets_have_no_counterpart() {
        static OTHER: RegisterClass = RegisterClass { instruction_set: "other", ..file(0, "v", 4) };
        assert_eq!(Register::of_id(RegisterId { class: &OTHER, number: 0 }), None);
    }
}
