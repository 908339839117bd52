//! Which functions there are, and where each begins and ends.

use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The code of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionExtent {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Name of its symbol, or one made of its address.
    pub name: Arc<str>,
    /// Index of the kernel that it is.
    pub kernel: Option<usize>,
    /// Whether a symbol says where it ends.
    pub is_exact: bool,
}

/// Functions by where they begin.
#[derive(Clone, Debug, Default)]
pub struct Extents(BTreeMap<u64, FunctionExtent>);

impl Extents {
    /// The functions that symbols and kernel descriptors name. Of several symbols for one place,
    /// the kernel's counts, else the first.
    pub fn of(object: &CodeObject) -> Extents {
        let mut extents = Extents::default();
        for (index, kernel) in object.kernels().iter().enumerate() {
            // What stands at the entry of a kernel that preloads arguments is never executed.
            let (entry, start) = (kernel.entry(), kernel.start().0);
            let symbol = object.function_at(entry).filter(|own| own.address == entry.0);
            extents.0.entry(start).or_insert(FunctionExtent {
                start,
                end: entry.0.saturating_add(kernel.code_size).max(start),
                name: Arc::clone(&kernel.name),
                kernel: Some(index),
                is_exact: symbol.is_some_and(|symbol| symbol.size > 0),
            });
        }
        let entries: HashSet<u64> = object.kernels().iter().map(|own| own.entry().0).collect();
        for symbol in object.functions() {
            let is_other = !entries.contains(&symbol.address);
            let Some(limit) = code_end(object, symbol.address).filter(|_| is_other) else {
                continue;
            };
            let is_exact = symbol.size > 0;
            let end = if is_exact { symbol.address.saturating_add(symbol.size) } else { limit };
            extents.0.entry(symbol.address).or_insert(FunctionExtent {
                start: symbol.address,
                end: end.min(limit),
                name: Arc::clone(&symbol.name),
                kernel: None,
                is_exact,
            });
        }
        extents.cut();
        extents
    }

    /// Adds a function that begins at `start` and has no symbol. Gives `false` where there is no
    /// code, or where a function with a symbol has it.
    pub fn add(&mut self, object: &CodeObject, start: u64) -> bool {
        let Some(limit) = code_end(object, start) else { return false };
        let holder = self.holding(Pc(start));
        if holder.is_some_and(|holder| holder.is_exact || holder.start == start) {
            return false;
        }
        let name = Arc::from(format!("function_{start:x}"));
        self.0.insert(
            start,
            FunctionExtent { start, end: limit, name, kernel: None, is_exact: false },
        );
        self.cut();
        true
    }

    /// The function that an address belongs to.
    pub fn holding(&self, pc: Pc) -> Option<&FunctionExtent> {
        let (_, extent) = self.0.range(..=pc.0).next_back()?;
        (pc.0 < extent.end).then_some(extent)
    }

    /// The function that begins at an address.
    pub fn starting(&self, pc: Pc) -> Option<&FunctionExtent> {
        self.0.get(&pc.0)
    }

    /// All, by ascending address.
    pub fn iter(&self) -> impl Iterator<Item = &FunctionExtent> {
        self.0.values()
    }

    /// No function reaches into the next.
    fn cut(&mut self) {
        let mut next = u64::MAX;
        for extent in self.0.values_mut().rev() {
            extent.end = extent.end.min(next);
            next = extent.start;
        }
    }
}

/// End of the code that the file has at an address: of its section where there are sections.
fn code_end(object: &CodeObject, start: u64) -> Option<u64> {
    let segment = object.segment_at(Pc(start)).filter(|segment| segment.executable)?;
    let loaded = segment.address.saturating_add(segment.bytes().len() as u64);
    let section = object.text().find(|section| {
        section.address <= start && start < section.address.saturating_add(section.size)
    });
    let end = section.map_or(loaded, |own| own.address.saturating_add(own.size).min(loaded));
    (start < end).then_some(end)
}
