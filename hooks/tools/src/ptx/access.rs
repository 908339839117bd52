//! Memory accesses of PTX instructions.

use crate::inst_facts::{AccessFacts, AccessKind, AccessSpace};
use flipwave_ptx::{Argument, Class, Code, Inst, Space, Symbol};

/// The memory access of an instruction whose lanes access one address each. `None` for accesses to parameters,
/// and for copies and matrix operations, whose lanes access several.
pub fn access(code: &Code, inst: &Inst) -> Option<AccessFacts> {
    let kind = match inst.form.class()? {
        Class::Load => AccessKind::Load,
        Class::Store => AccessKind::Store,
        Class::Atomic | Class::Reduction => AccessKind::Atomic,
        _ => return None,
    };
    let address = inst.operands.iter().find_map(|operand| match operand {
        Argument::Memory(address) => Some(address),
        _ => None,
    })?;
    if !address.others.is_empty() {
        return None;
    }
    let space = match (&*address.base, inst.form.space) {
        (Argument::Parameter(_), _) | (_, Some(Space::Param)) => return None,
        (Argument::Frame(_), _) | (_, Some(Space::Local)) => AccessSpace::Scratch,
        (Argument::Symbol(Symbol::Variable(number), _), None) => {
            space_of(code.variables[*number].space)?
        }
        (_, None) => AccessSpace::Flat,
        (_, Some(space)) => space_of(space)?,
    };
    let bytes = u32::try_from(inst.form.access_bytes()?).ok()?;
    let (elements, distance) = (1, 0);
    Some(AccessFacts { space, kind, bytes, elements, distance, has_uniform_address: false })
}

/// The space of memory that all lanes share.
fn space_of(space: Space) -> Option<AccessSpace> {
    match space {
        Space::Global => Some(AccessSpace::Global),
        Space::Shared => Some(AccessSpace::Lds),
        Space::Const => Some(AccessSpace::Constant),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_ptx::{parse, resolve};

    /// Spaces as in the manual ("State Spaces", "ld", "st", "atom", "red"), and bytes by lane.
    #[test]
    fn accesses_follow_from_operations_and_operands() {
        let text = ".version 7.8\n.target sm_80\n.address_size 64\n.const .b32 table[4];\n\
             .entry k(.param .u64 p) { .shared .b32 tile[32]; .local .b32 own[4]; .reg .b32 %r<5>; .reg .b64 %d;\n\
             ld.param.u64 %d, [p]; ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d+16]; st.b8 [%d], %r1;\n\
             atom.global.add.u32 %r1, [%d], %r2; red.shared.add.u32 [tile], %r1; ld.const.b32 %r1, [table];\n\
             st.local.b32 [own], %r1; ld.b32 %r1, [tile+4]; cp.async.ca.shared.global [%r1], [%d], 4; ret; }";
        let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let code = resolve(&module).unwrap_or_else(|error| panic!("{error}"));
        let found = code.instructions.iter().map(|inst| {
            access(&code, inst).map(|access| (access.space, access.kind, access.bytes))
        });
        use AccessKind::{Atomic, Load, Store};
        use AccessSpace::{Constant, Flat, Global, Lds, Scratch};
        let expected = [
            None,
            Some((Global, Load, 16)),
            Some((Flat, Store, 1)),
            Some((Global, Atomic, 4)),
            Some((Lds, Atomic, 4)),
            Some((Constant, Load, 4)),
            Some((Scratch, Store, 4)),
            Some((Lds, Load, 4)),
            None,
            None,
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
