//! What the tests share.

use flipwave_isa::{Inst, Isa, Pc};

/// The decoder of a target by name.
pub fn isa(target: &str) -> Isa {
    Isa::new(&target.parse().expect("a target")).expect("a decodable target")
}

/// Assembles and decodes one line at address 0x1000.
pub fn inst(isa: &Isa, line: &str) -> Inst {
    let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let inst = isa.decode(&bytes, Pc(0x1000)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(usize::from(inst.size), bytes.len(), "{line}");
    inst
}
