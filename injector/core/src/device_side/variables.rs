//! The program's own variables, which code has beside it.

use flipwave_device::{Device, DeviceError, ModuleId};
use flipwave_sim::EmbeddedGpu;

/// Gives the variables of one loaded version of a code object the values of another's. Rewriting
/// moves code and leaves variables at their ELF virtual addresses.
///
/// # Errors
/// None for two versions of the same code.
pub(super) fn copy_variables(
    device: &mut EmbeddedGpu,
    from: ModuleId,
    to: ModuleId,
) -> Result<(), DeviceError> {
    let sections = device.code_object(from).map_or(&[][..], |own| own.sections());
    let variables = sections.iter().filter(|own| [".data", ".bss"].contains(&&*own.name));
    let ranges: Vec<(u64, u64)> = variables.map(|own| (own.address, own.size)).collect();
    for (start, bytes) in ranges.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let mut content = vec![0; bytes as usize];
        device.read(device.address_of(from, start)?, &mut content)?;
        device.write(device.address_of(to, start)?, &content)?;
    }
    Ok(())
}
