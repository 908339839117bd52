//! The marks that `FLIPWAVE_PROXY` leaves: for each instruction a section that is not loaded, with
//! the address of each proxy.

use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// The section of an instruction is this and its name.
const SECTION: &str = ".flipwave.proxy.";

/// The marked places of each instruction, by its name.
pub fn marks(object: &CodeObject) -> BTreeMap<String, BTreeSet<Pc>> {
    let mut marks: BTreeMap<String, BTreeSet<Pc>> = BTreeMap::new();
    for section in object.sections() {
        let Some(name) = section.name.strip_prefix(SECTION) else { continue };
        let addresses = section.bytes().as_chunks().0.iter();
        let places = addresses.map(|bytes| Pc(u64::from_le_bytes(*bytes)));
        marks.entry(name.to_owned()).or_default().extend(places);
    }
    marks
}
