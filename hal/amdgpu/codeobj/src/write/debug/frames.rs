//! Conversion of call frame information.

use super::Slice;
use crate::write::moved::CodeMap;
use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, DebugFrame, Format, LittleEndian, UnwindSection,
};

/// Returns the section with the new address and size of each function, which are fields of fixed
/// size. Returns `None` if the section is invalid or if unwinding rules change inside a function,
/// which no AMDGPU compiler emits.
pub(super) fn convert(section: &[u8], map: &CodeMap) -> Option<Vec<u8>> {
    let mut new = section.to_vec();
    let mut frames = DebugFrame::new(section, LittleEndian);
    frames.set_address_size(8);
    let bases = BaseAddresses::default();
    let mut entries = frames.entries(&bases);
    while let Some(entry) = entries.next().ok()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let function = partial.parse(DebugFrame::<Slice<'_>>::cie_from_offset).ok()?;
        let mut rules = function.instructions(&frames, &bases);
        while let Some(rule) = rules.next().ok()? {
            if rule != CallFrameInstruction::Nop {
                return None;
            }
        }
        let start = function.initial_address();
        let Some(moved) = map.new_range(start..start.checked_add(function.len())?) else {
            continue;
        };
        let encoding = function.cie().encoding();
        // Size of the length and the CIE pointer.
        let header = match encoding.format {
            Format::Dwarf32 => 8,
            Format::Dwarf64 => 20,
        };
        if encoding.address_size != 8 {
            return None;
        }
        let offset = function.offset().checked_add(header)?;
        let fields = new.get_mut(offset..offset.checked_add(16)?)?;
        let (address, size) = fields.split_first_chunk_mut::<8>()?;
        *address = moved.start.to_le_bytes();
        size.copy_from_slice(&(moved.end - moved.start).to_le_bytes());
    }
    Some(new)
}
