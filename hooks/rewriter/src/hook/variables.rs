//! Variables of hooks in device memory.

use super::{Channel, ChannelError, HookData};
use flipwave_device::{Device, DeviceError, ModuleId};
use flipwave_isa::Pc;

/// A snapshot of the variables of a hook source.
#[derive(Clone, Debug)]
pub struct Variables<'a> {
    data: &'a HookData,
    bytes: Vec<u8>,
}

/// Errors returned when accessing variables of hooks.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// The variable does not exist.
    #[error("the hooks have no variable `{wanted}`; they have: {}", present.join(", "))]
    Unknown {
        /// The requested name.
        wanted: String,
        /// The existing names.
        present: Vec<String>,
    },
    /// The variable is not a channel of the expected records.
    #[error("variable `{variable}`: {reason}")]
    Channel {
        /// Its name.
        variable: String,
        /// The reason.
        reason: ChannelError,
    },
    /// The new value has the wrong size.
    #[error("variable `{variable}` has {size} bytes, but {given} are given")]
    Size {
        /// Its name.
        variable: String,
        /// Its size in bytes.
        size: u64,
        /// Size of the new value.
        given: usize,
    },
    /// The device reported an error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn unknown(data: &HookData, wanted: &str) -> VariableError {
    let present = data.symbols.keys().cloned().collect();
    VariableError::Unknown { wanted: wanted.to_owned(), present }
}

impl<'a> Variables<'a> {
    /// Reads the variables of hooks in the loaded code object `module`. Their address and description are an
    /// element of [`crate::rewrite::Rewritten::data`].
    ///
    /// # Errors
    /// [`VariableError::Device`] if the module does not have them.
    pub fn read(
        device: &impl Device,
        module: ModuleId,
        (address, data): &'a (Pc, HookData),
    ) -> Result<Variables<'a>, VariableError> {
        let mut bytes = vec![0; data.size() as usize];
        if !data.is_empty() {
            device.read(device.address_of(module, address.0)?, &mut bytes)?;
        }
        Ok(Variables::new(data, bytes))
    }

    /// The variables described by `data`, with the content `bytes`.
    pub fn new(data: &'a HookData, bytes: Vec<u8>) -> Variables<'a> {
        Variables { data, bytes }
    }

    /// Resets the variables of hooks to their initial values.
    ///
    /// # Errors
    /// The errors of [`Variables::read`].
    pub fn reset(
        device: &mut impl Device,
        module: ModuleId,
        (address, data): &(Pc, HookData),
    ) -> Result<(), VariableError> {
        if data.is_empty() {
            return Ok(());
        }
        let start = device.address_of(module, address.0)?;
        device.write(start, &data.initial())?;
        Ok(())
    }

    /// Writes a variable of hooks in the loaded code object `module`.
    ///
    /// # Errors
    /// The errors of [`Variables::read`], [`VariableError::Unknown`], and [`VariableError::Size`].
    pub fn write(
        device: &mut impl Device,
        module: ModuleId,
        (address, data): &(Pc, HookData),
        name: &str,
        bytes: &[u8],
    ) -> Result<(), VariableError> {
        let symbol = data.symbols.get(name).ok_or_else(|| unknown(data, name))?;
        if symbol.size != bytes.len() as u64 {
            let (variable, size, given) = (name.to_owned(), symbol.size, bytes.len());
            return Err(VariableError::Size { variable, size, given });
        }
        let start = device.address_of(module, address.0 + symbol.offset)?;
        device.write(start, bytes)?;
        Ok(())
    }

    /// The bytes of a variable.
    ///
    /// # Errors
    /// [`VariableError::Unknown`].
    pub fn bytes(&self, name: &str) -> Result<&[u8], VariableError> {
        let symbol = self.data.symbols.get(name);
        let range =
            symbol.map(|symbol| symbol.offset as usize..(symbol.offset + symbol.size) as usize);
        range.and_then(|range| self.bytes.get(range)).ok_or_else(|| unknown(self.data, name))
    }

    /// The value of a variable as 64-bit numbers.
    ///
    /// # Errors
    /// [`VariableError::Unknown`].
    pub fn numbers(&self, name: &str) -> Result<Vec<u64>, VariableError> {
        let (numbers, _) = self.bytes(name)?.as_chunks();
        Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    /// The value of a variable as a channel with records of `record_size` bytes.
    ///
    /// # Errors
    /// [`VariableError::Unknown`] and [`VariableError::Channel`].
    pub fn channel(&self, name: &str, record_size: usize) -> Result<Channel<'_>, VariableError> {
        Channel::new(self.bytes(name)?, record_size)
            .map_err(|reason| VariableError::Channel { variable: name.to_owned(), reason })
    }
}
