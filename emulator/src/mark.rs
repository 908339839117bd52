//! Reads the marks that `FLIPWAVE_PROXY` leaves in a code object: for each emulated instruction, a section
//! that is not loaded and holds the addresses of the proxies.

use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a section of marks, to which the name of the instruction is appended.
const SECTION: &str = ".flipwave.proxy.";

/// The marked addresses of each instruction, by name.
pub fn marks(object: &CodeObject) -> BTreeMap<String, BTreeSet<Pc>> {
    let mut marks: BTreeMap<String, BTreeSet<Pc>> = BTreeMap::new();
    for section in object.sections() {
        let Some(name) = section.name.strip_prefix(SECTION) else { continue };
        let addresses = section.bytes().as_chunks().0.iter();
        let addresses = addresses.map(|bytes| Pc(u64::from_le_bytes(*bytes)));
        marks.entry(name.to_owned()).or_default().extend(addresses);
    }
    marks
}
