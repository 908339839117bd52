//! Clauses of gfx10 and later: memory instructions that the hardware issues without others of the
//! wave in between (RDNA ISA documents, "S_CLAUSE"; LLVM's `SIInsertHardClauses`).

use crate::{Class, Encoding, Generation, Inst, Opcode, Target};
use std::fmt;

/// What all instructions of a clause have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Scalar memory.
    Scalar,
    /// The local data share.
    Lds,
    /// Images, buffers, global and private memory. On gfx10 they mix; later they do not mix with
    /// others, nor loads with stores and atomics.
    Vector(Access),
    /// Images, apart from gfx10.
    Image(Access),
    /// Flat memory.
    Flat(Access),
    /// Vector arithmetic.
    Valu,
}

/// What memory instructions of a clause do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// They load.
    Load,
    /// They store.
    Store,
    /// They are atomic.
    Atomic,
    /// Anything: gfx10 distinguishes no further.
    Any,
}

/// How many instructions belong to the clause that `inst` begins; `None` if it begins none.
pub fn length(inst: &Inst) -> Option<u8> {
    let field = inst.immediate.filter(|_| inst.operation.opcode() == Opcode::SClause)?;
    Some((field & 63) as u8 + 1)
}

/// The kind of clause that an instruction may belong to; `None` for those that belong to none.
pub fn kind(target: &Target, inst: &Inst) -> Option<Kind> {
    let distinguishes_access = target.generation() > Generation::Gfx10;
    let access = match (inst.flags.loads, inst.flags.stores) {
        _ if !distinguishes_access => Access::Any,
        (true, true) => Access::Atomic,
        (false, true) => Access::Store,
        _ => Access::Load,
    };
    match inst.class() {
        Class::Smem => Some(Kind::Scalar),
        Class::Lds => Some(Kind::Lds),
        Class::Vmem if inst.encoding == Encoding::Flat => Some(Kind::Flat(access)),
        Class::Image if distinguishes_access => Some(Kind::Image(access)),
        Class::Vmem | Class::Image => Some(Kind::Vector(access)),
        Class::Valu | Class::Matrix => Some(Kind::Valu),
        _ => None,
    }
}

/// Whether an instruction may stand in a clause of any kind. It counts as one of the clause's.
/// LLVM lets no wait for counters stand there.
pub fn is_internal(inst: &Inst) -> bool {
    matches!(inst.operation.opcode(), Opcode::SNop | Opcode::SSleep | Opcode::SDelayAlu)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, access) = match self {
            Kind::Scalar => ("scalar memory", Access::Any),
            Kind::Lds => ("LDS", Access::Any),
            Kind::Valu => ("VALU", Access::Any),
            Kind::Vector(access) => ("vector memory", *access),
            Kind::Image(access) => ("images", *access),
            Kind::Flat(access) => ("flat memory", *access),
        };
        f.write_str(name)?;
        f.write_str(match access {
            Access::Load => ", loads",
            Access::Store => ", stores",
            Access::Atomic => ", atomics",
            Access::Any => "",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    fn inst(target: &str, line: &str) -> (Target, Inst) {
        let isa = Isa::new(&target.parse().unwrap()).unwrap();
        let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        (isa.target().clone(), isa.decode(&bytes, Pc(0)).unwrap())
    }

    #[test]
    fn instructions_of_different_kinds_are_distinguished() {
        for (line, expected) in [
            ("global_load_b32 v0, v1, s[2:3]", Some(Kind::Vector(Access::Load))),
            ("buffer_load_b32 v0, off, s[4:7], 0", Some(Kind::Vector(Access::Load))),
            ("scratch_store_b32 off, v0, s0", Some(Kind::Vector(Access::Store))),
            ("global_atomic_add_u32 v1, v0, s[2:3]", Some(Kind::Vector(Access::Atomic))),
            ("flat_load_b32 v0, v[2:3]", Some(Kind::Flat(Access::Load))),
            ("s_load_b32 s4, s[2:3], 0x0", Some(Kind::Scalar)),
            ("ds_load_b32 v0, v1", Some(Kind::Lds)),
            ("v_mov_b32 v0, v1", Some(Kind::Valu)),
            ("s_mov_b32 s0, s1", None),
            ("s_waitcnt vmcnt(0)", None),
            ("s_branch 1", None),
        ] {
            let (target, inst) = inst("gfx1100", line);
            assert_eq!(kind(&target, &inst), expected, "{line}");
        }
        let (target, store) = inst("gfx1030", "global_store_dword v1, v0, s[2:3]");
        assert_eq!(kind(&target, &store), Some(Kind::Vector(Access::Any)));
    }

    #[test]
    fn a_clause_has_one_instruction_more_than_its_field_says() {
        assert_eq!(length(&inst("gfx1100", "s_clause 0x3").1), Some(4));
        assert_eq!(length(&inst("gfx1100", "s_nop 3").1), None);
        assert!(is_internal(&inst("gfx1100", "s_nop 3").1));
    }
}
