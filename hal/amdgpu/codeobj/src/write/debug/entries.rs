//! Conversion of `.debug_info` and of the ranges, locations and line programs that it refers to.

use super::{DebugError, Slice, lines};
use crate::write::moved::CodeMap;
use gimli::write::{
    Address, AttributeValue, ConvertUnit, ConvertUnitEntry, Dwarf, Location, LocationList, Range,
    RangeList, UnitEntryId,
};
use gimli::{LineEncoding, read};

type Unit<'a, 'data> = ConvertUnit<'a, Slice<'data>>;
type Entry<'a, 'data> = ConvertUnitEntry<'a, Slice<'data>>;

/// Converts all units to the new code addresses.
pub(super) fn convert(dwarf: &read::Dwarf<Slice<'_>>, map: &CodeMap) -> Result<Dwarf, DebugError> {
    let mut new = Dwarf::new();
    let mut units = new.convert(dwarf)?;
    while let Some((mut unit, root)) = units.read_unit()? {
        if let Some(mut program) = unit.read_line_program(None, Some(LineEncoding::default()))? {
            lines::convert(&mut program, map)?;
            let (program, files) = program.program();
            unit.set_line_program(program, files);
        }
        let id = unit.unit.root();
        convert_attributes(&mut unit, id, &root, map)?;
        let mut entry = root;
        while let Some(id) = unit.read_entry(&mut entry)? {
            if id.is_some() {
                let id = unit.add_entry(id, &entry);
                convert_attributes(&mut unit, id, &entry, map)?;
            }
        }
    }
    Ok(new)
}

fn convert_attributes<'data>(
    unit: &mut Unit<'_, 'data>,
    id: UnitEntryId,
    entry: &Entry<'_, 'data>,
    map: &CodeMap,
) -> Result<(), DebugError> {
    for attribute in &entry.attrs {
        let value = match attribute.name() {
            // Location views refer to the old location lists.
            gimli::DW_AT_GNU_locviews | gimli::DW_AT_sibling => None,
            gimli::DW_AT_high_pc => convert_high_pc(entry, attribute, map)?,
            gimli::DW_AT_ranges => convert_ranges(unit, entry, attribute, map)?,
            _ => match attribute.value() {
                read::AttributeValue::LocationListsRef(_)
                | read::AttributeValue::DebugLocListsIndex(_) => {
                    convert_locations(unit, entry, attribute, map)?
                }
                value => {
                    let address = |old| Some(new_address(map, entry, old));
                    match unit.convert_attribute_value(entry.read_unit, attribute, &address) {
                        Ok(value) => Some(value),
                        // The expression has a vendor operation: drop the location.
                        Err(_) if matches!(value, read::AttributeValue::Exprloc(_)) => None,
                        Err(reason) => return Err(reason.into()),
                    }
                }
            },
        };
        if let Some(value) = value {
            unit.unit.get_mut(id).set(attribute.name(), value);
        }
    }
    Ok(())
}

/// New address for an old one; unchanged if it is not the address of moved code.
fn new_address(map: &CodeMap, entry: &Entry<'_, '_>, old: u64) -> Address {
    let moved = if covers_old_and_new(map, entry) { None } else { map.new_address(old) };
    Address::Constant(moved.unwrap_or(old))
}

/// Returns `true` if an entry covers its old code and all new code: a compile unit does if the old code
/// is kept.
fn covers_old_and_new(map: &CodeMap, entry: &Entry<'_, '_>) -> bool {
    map.keeps_old_code() && entry.tag == gimli::DW_TAG_compile_unit
}

/// Converts `DW_AT_high_pc`: an address, or an offset from `DW_AT_low_pc`.
fn convert_high_pc<'data>(
    entry: &Entry<'_, 'data>,
    attribute: &read::Attribute<Slice<'data>>,
    map: &CodeMap,
) -> Result<Option<AttributeValue>, DebugError> {
    let unit = entry.read_unit;
    let Some(low) = entry.attr_value(gimli::DW_AT_low_pc) else { return Ok(None) };
    let Some(low) = unit.attr_address(low)? else { return Ok(None) };
    let address = unit.attr_address(attribute.value())?;
    let high = match (address, attribute.udata_value()) {
        (Some(high), _) => high,
        (None, Some(length)) => low.saturating_add(length),
        (None, None) => return Ok(None),
    };
    let new = match map.all_new_code() {
        Some(new) if covers_old_and_new(map, entry) => low..new.end.max(high),
        _ => map.new_range(low..high).unwrap_or(low..high),
    };
    Ok(Some(match address {
        Some(_) => AttributeValue::Address(Address::Constant(new.end)),
        None => AttributeValue::Udata(new.end.saturating_sub(new.start)),
    }))
}

/// Converts `DW_AT_ranges`.
fn convert_ranges<'data>(
    unit: &mut Unit<'_, 'data>,
    entry: &Entry<'_, 'data>,
    attribute: &read::Attribute<Slice<'data>>,
    map: &CodeMap,
) -> Result<Option<AttributeValue>, DebugError> {
    let Some(mut old) = entry.read_unit.attr_ranges(attribute.value())? else { return Ok(None) };
    // With base address 0 the offsets are addresses, independent of the unit's base.
    let mut new = vec![Range::BaseAddress { address: Address::Constant(0) }];
    let both = covers_old_and_new(map, entry);
    let mut push = |range: std::ops::Range<u64>| {
        if !range.is_empty() {
            new.push(Range::OffsetPair { begin: range.start, end: range.end });
        }
    };
    while let Some(range) = old.next()? {
        let old = range.begin..range.end;
        push(map.new_range(old.clone()).filter(|_| !both).unwrap_or(old));
    }
    map.all_new_code().filter(|_| both).into_iter().for_each(push);
    Ok(Some(AttributeValue::RangeListRef(unit.unit.ranges.add(RangeList(new)))))
}

/// Converts a location list.
fn convert_locations<'data>(
    unit: &mut Unit<'_, 'data>,
    entry: &Entry<'_, 'data>,
    attribute: &read::Attribute<Slice<'data>>,
    map: &CodeMap,
) -> Result<Option<AttributeValue>, DebugError> {
    let read_unit = entry.read_unit;
    let Some(mut old) = read_unit.attr_locations(attribute.value())? else { return Ok(None) };
    let mut new = vec![Location::BaseAddress { address: Address::Constant(0) }];
    while let Some(location) = old.next()? {
        let old = location.range.begin..location.range.end;
        let moved = map.new_range(old.clone()).unwrap_or(old);
        let address = |old| Some(new_address(map, entry, old));
        // Drop locations whose expressions have vendor operations.
        if let Ok(data) = unit.convert_expression(read_unit, location.data, &address)
            && !moved.is_empty()
        {
            new.push(Location::OffsetPair { begin: moved.start, end: moved.end, data });
        }
    }
    Ok(Some(AttributeValue::LocationListRef(unit.unit.locations.add(LocationList(new)))))
}
