//! Variables of the program, which exist next to its code.

use flipwave_device::{Device, DeviceError, ModuleId};
use flipwave_sim::EmbeddedGpu;

/// Copies the variables of one loaded version of a code object to another version. Rewriting moves code
/// but leaves variables at their ELF virtual addresses.
///
/// # Errors
/// None for two versions of the same code.
pub(super) fn copy_variables(
    device: &mut EmbeddedGpu,
    from: ModuleId,
    to: ModuleId,
) -> Result<(), DeviceError> {
    let sections = device.code_object(from).map_or(&[][..], |section| section.sections());
    let variables = sections.iter().filter(|section| [".data", ".bss"].contains(&&*section.name));
    let ranges: Vec<(u64, u64)> =
        variables.map(|section| (section.address, section.size)).collect();
    for (start, bytes) in ranges.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let mut content = vec![0; bytes as usize];
        device.read(device.address_of(from, start)?, &mut content)?;
        device.write(device.address_of(to, start)?, &content)?;
    }
    Ok(())
}
