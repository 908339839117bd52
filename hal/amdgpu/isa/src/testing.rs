//! Helpers for unit tests.

use crate::{Inst, Isa, Pc};

/// Assembles and decodes one line for a target.
pub(crate) fn inst(target: &str, line: &str) -> Inst {
    let isa = Isa::new(&target.parse().unwrap()).unwrap();
    let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{target} {line}: {error}"));
    isa.decode(&bytes, Pc(0)).unwrap()
}
