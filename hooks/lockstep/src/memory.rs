//! Memory at the end.

use super::addresses::AddressMap;
use super::{Difference, Lockstep, LockstepError, LockstepReport};
use flipwave_codeobj::Section;
use flipwave_device::{Address, Device};
use flipwave_isa::Pc;
use flipwave_sim::EmbeddedGpu;
use std::ops::Range;

/// Compares the memory of the two sides: all allocations but the code objects, and of these the
/// data that the original has.
pub fn compare(
    lockstep: &Lockstep<'_>,
    original: &EmbeddedGpu,
    new: &EmbeddedGpu,
    addresses: &AddressMap,
    report: &mut LockstepReport,
) -> Result<Option<Difference>, LockstepError> {
    let (new_bias, old_bias) = addresses.biases();
    let modules = [lockstep.original.module, lockstep.instrumented.module];
    let objects = modules.map(|module| original.code_object(module));
    let [Some(old_object), Some(new_object)] = objects else {
        return Err(LockstepError::NotLoaded);
    };
    let image = |object: &flipwave_codeobj::CodeObject, bias: u64| {
        let first = object.segments().first().map_or(0, |segment| segment.address);
        let last = object.segments().last().map_or(0, |segment| segment.end());
        bias.wrapping_add(first)..bias.wrapping_add(last)
    };
    let images = [image(old_object, old_bias), image(new_object, new_bias)];
    // Places on the original's side and on the other, and length.
    let mut ranges: Vec<(u64, u64, u64)> = original
        .allocations()
        .filter(|(address, _)| !images.iter().any(|image| image.contains(&address.0)))
        .map(|(address, size)| (address.0, address.0, size))
        .collect();
    // What a loader is told lies elsewhere in the new code object.
    let is_variable = |section: &&Section| {
        let segment = old_object.segment_at(Pc(section.address));
        section.allocated
            && &*section.name != ".dynamic"
            && segment.is_some_and(|segment| segment.writable)
    };
    for section in old_object.sections().iter().filter(is_variable) {
        let [one, two] = [old_bias, new_bias].map(|bias| bias.wrapping_add(section.address));
        ranges.push((one, two, section.size));
    }
    for (one, two, size) in ranges {
        let read = |gpu: &EmbeddedGpu, address: u64| {
            let mut bytes = vec![0; size as usize];
            gpu.read(Address(address), &mut bytes).map(|()| bytes)
        };
        let (left, right) = (read(original, one)?, read(new, two)?);
        report.bytes += size;
        if let Some(difference) = first_difference(lockstep, addresses, one, &left, &right) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

fn first_difference(
    lockstep: &Lockstep<'_>,
    addresses: &AddressMap,
    base: u64,
    left: &[u8],
    right: &[u8],
) -> Option<Difference> {
    if left == right {
        return None;
    }
    let is_ignored = |at: u64| {
        let contains = |range: &Range<Address>| range.contains(&Address(at));
        lockstep.ignored.iter().any(contains)
    };
    for (word, (one, two)) in (base..).step_by(4).zip(left.chunks(4).zip(right.chunks(4))) {
        let same_address = || {
            let bits = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_le_bytes);
            bits(two).is_some_and(|new| Some(addresses.translate(new)) == bits(one))
        };
        if one == two || same_address() {
            continue;
        }
        for (address, (original, instrumented)) in (word..).zip(one.iter().zip(two)) {
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
