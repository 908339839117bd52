//! The functions of a code object and their address ranges.

use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The address range of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionExtent {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Name of the symbol, or a name derived from the address.
    pub name: Arc<str>,
    /// Index of the kernel, for kernels.
    pub kernel: Option<usize>,
    /// The end is known from a symbol's size.
    pub is_exact: bool,
}

/// Functions by start address.
#[derive(Clone, Debug, Default)]
pub struct Extents(BTreeMap<u64, FunctionExtent>);

impl Extents {
    /// Collects the functions with symbols or kernel descriptors. If several symbols have the same
    /// address, the kernel's or else the first one is used.
    pub fn new(object: &CodeObject) -> Extents {
        let mut extents = Extents::default();
        for (index, kernel) in object.kernels().iter().enumerate() {
            // A kernel that preloads arguments starts after its entry.
            let (entry, start) = (kernel.entry(), kernel.start().0);
            let symbol = object.function_at(entry).filter(|symbol| symbol.address == entry.0);
            extents.0.entry(start).or_insert(FunctionExtent {
                start,
                end: entry.0.saturating_add(kernel.code_size).max(start),
                name: Arc::clone(&kernel.name),
                kernel: Some(index),
                is_exact: symbol.is_some_and(|symbol| symbol.size > 0),
            });
        }
        let entries: HashSet<u64> =
            object.kernels().iter().map(|kernel| kernel.entry().0).collect();
        for symbol in object.functions() {
            let is_device_function = !entries.contains(&symbol.address);
            let Some(limit) = code_end(object, symbol.address).filter(|_| is_device_function)
            else {
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
        extents.remove_overlaps();
        extents
    }

    /// Adds a function without a symbol that starts at `start`. Returns `false` if there is no code, or if
    /// the address belongs to a function with a known end or is the start of a function.
    pub fn add(&mut self, object: &CodeObject, start: u64) -> bool {
        let Some(limit) = code_end(object, start) else { return false };
        let containing = self.containing(Pc(start));
        if containing.is_some_and(|extent| extent.is_exact || extent.start == start) {
            return false;
        }
        let name = Arc::from(format!("function_{start:x}"));
        self.0.insert(
            start,
            FunctionExtent { start, end: limit, name, kernel: None, is_exact: false },
        );
        self.remove_overlaps();
        true
    }

    /// The function that contains an address.
    pub fn containing(&self, pc: Pc) -> Option<&FunctionExtent> {
        let (_, extent) = self.0.range(..=pc.0).next_back()?;
        (pc.0 < extent.end).then_some(extent)
    }

    /// The function that starts at an address.
    pub fn starting_at(&self, pc: Pc) -> Option<&FunctionExtent> {
        self.0.get(&pc.0)
    }

    /// All functions, by ascending address.
    pub fn iter(&self) -> impl Iterator<Item = &FunctionExtent> {
        self.0.values()
    }

    /// Ends each function where the next one starts.
    fn remove_overlaps(&mut self) {
        let mut next = u64::MAX;
        for extent in self.0.values_mut().rev() {
            extent.end = extent.end.min(next);
            next = extent.start;
        }
    }
}

/// The end of the code at an address: the end of its section or, without sections, of the loaded bytes.
fn code_end(object: &CodeObject, start: u64) -> Option<u64> {
    let segment = object.segment_at(Pc(start)).filter(|segment| segment.executable)?;
    let loaded = segment.address.saturating_add(segment.bytes().len() as u64);
    let section = object.text().find(|section| {
        section.address <= start && start < section.address.saturating_add(section.size)
    });
    let end =
        section.map_or(loaded, |section| section.address.saturating_add(section.size).min(loaded));
    (start < end).then_some(end)
}
