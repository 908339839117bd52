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
