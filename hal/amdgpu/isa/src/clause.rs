//! Clauses of gfx10 and later: groups of memory instructions that the hardware issues back to back
//! (RDNA ISA documents, "S_CLAUSE"; LLVM's `SIInsertHardClauses`).

use crate::{Class, Encoding, Generation, Inst, Opcode, Target};
use std::fmt;

/// The kind of a clause. All its instructions have the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Scalar memory.
    Scalar,
    /// The local data share.
    Lds,
    /// Buffer, global and private memory; on gfx10 also images. On gfx11 and gfx12, a clause does not mix
    /// loads with stores or atomics.
    Vector(Access),
    /// Images on gfx11 and gfx12.
    Image(Access),
    /// Flat memory.
    Flat(Access),
    /// Vector arithmetic.
    Valu,
}

/// The kind of memory access in a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomics.
    Atomic,
    /// Any of them: gfx10 and gfx1250 do not distinguish accesses.
    Any,
}

/// The number of instructions in the clause that `inst` begins; `None` unless `inst` is `s_clause`.
pub fn length(inst: &Inst) -> Option<u8> {
    let field = inst.immediate.filter(|_| inst.operation.opcode() == Opcode::SClause)?;
    Some((field & 63) as u8 + 1)
}

/// The kind of clause that an instruction may belong to; `None` if it cannot be in a clause.
pub fn kind(target: &Target, inst: &Inst) -> Option<Kind> {
    let distinguishes_access = matches!(target.generation(), Generation::Gfx11 | Generation::Gfx12);
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

/// Returns `true` if an instruction may occur in clauses of every kind. It counts towards the length of
/// the clause. LLVM does not allow waits for counters in clauses.
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
    fn clause_kind_follows_memory_space_and_access() {
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
        for (target, line) in [
            ("gfx1030", "global_store_dword v1, v0, s[2:3]"),
            ("gfx1250", "global_store_b32 v1, v0, s[2:3]"),
        ] {
            let (target, store) = inst(target, line);
            assert_eq!(kind(&target, &store), Some(Kind::Vector(Access::Any)));
        }
    }

    #[test]
    fn clause_length_is_its_field_plus_one() {
        assert_eq!(length(&inst("gfx1100", "s_clause 0x3").1), Some(4));
        assert_eq!(length(&inst("gfx1100", "s_nop 3").1), None);
        assert!(is_internal(&inst("gfx1100", "s_nop 3").1));
    }
}
