//! Compares memory at the end of a dispatch.

use super::addresses::AddressMap;
use super::comparison::{Lockstep, LockstepReport};
use super::difference::{Difference, LockstepError};
use flipwave_codeobj::Section;
use flipwave_device::{Address, Device};
use flipwave_isa::Pc;
use flipwave_sim::EmbeddedGpu;
use std::ops::Range;

/// A range of memory to compare.
struct ComparedRange {
    /// The address on the device of the original code.
    original: u64,
    /// The address on the device of the instrumented code.
    instrumented: u64,
    /// The size in bytes.
    size: u64,
}

/// Compares all allocations except the code objects, and the variables of the original code object.
pub fn compare(
    lockstep: &Lockstep<'_>,
    original: &EmbeddedGpu,
    instrumented: &EmbeddedGpu,
    addresses: &AddressMap,
    report: &mut LockstepReport,
) -> Result<Option<Difference>, LockstepError> {
    let object = original.code_object(lockstep.original.module);
    let object = object.ok_or(LockstepError::NotLoaded)?;
    let images = [addresses.original_image(), addresses.instrumented_image()];
    let is_in_image = |address: Address| {
        images.iter().any(|image| image.range.contains(&address.0.wrapping_sub(image.bias)))
    };
    let mut ranges: Vec<ComparedRange> = original
        .allocations()
        .filter(|(address, _)| !is_in_image(*address))
        .map(|(address, size)| ComparedRange { original: address.0, instrumented: address.0, size })
        .collect();
    // `.dynamic` is excluded because rewriting moves the tables to which it points.
    let is_variable = |section: &&Section| {
        let segment = object.segment_at(Pc(section.address));
        section.allocated
            && &*section.name != ".dynamic"
            && segment.is_some_and(|segment| segment.writable)
    };
    for section in object.sections().iter().filter(is_variable) {
        let [original, instrumented] = images.map(|image| image.bias.wrapping_add(section.address));
        ranges.push(ComparedRange { original, instrumented, size: section.size });
    }
    for range in ranges {
        let read = |gpu: &EmbeddedGpu, address: u64| {
            let mut bytes = vec![0; range.size as usize];
            gpu.read(Address(address), &mut bytes).map(|()| bytes)
        };
        let before = read(original, range.original)?;
        let after = read(instrumented, range.instrumented)?;
        report.bytes += range.size;
        let difference = first_difference(lockstep, addresses, range.original, &before, &after);
        if difference.is_some() {
            return Ok(difference);
        }
    }
    Ok(None)
}

/// The first byte that differs between the contents of a range after the original and after the
/// instrumented code, ignoring words that are corresponding addresses.
fn first_difference(
    lockstep: &Lockstep<'_>,
    addresses: &AddressMap,
    base: u64,
    before: &[u8],
    after: &[u8],
) -> Option<Difference> {
    if before == after {
        return None;
    }
    let is_ignored = |at: u64| {
        let contains = |range: &Range<Address>| range.contains(&Address(at));
        lockstep.ignored.iter().any(contains)
    };
    let words = before.chunks(4).zip(after.chunks(4));
    for (word, (before, after)) in (base..).step_by(4).zip(words) {
        let is_same_address = || {
            let bits = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_le_bytes);
            bits(after).is_some_and(|after| Some(addresses.translate(after)) == bits(before))
        };
        if before == after || is_same_address() {
            continue;
        }
        for (address, (original, instrumented)) in (word..).zip(before.iter().zip(after)) {
            if original != instrumented && !is_ignored(address) {
                return Some(Difference::Memory {
                    address: Address(address),
                    original: *original,
                    instrumented: *instrumented,
                });
            }
        }
    }
    None
}
