//! The variables of hooks in a device's memory.

use super::{Channel, ChannelError, HookData};
use flipwave_device::{Device, DeviceError, ModuleId};
use flipwave_isa::Pc;

/// The variables of a source of hooks as they were when they were read.
#[derive(Clone, Debug)]
pub struct Variables<'a> {
    data: &'a HookData,
    bytes: Vec<u8>,
}

/// A variable that is not as expected.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// No such variable.
    #[error("the hooks have no variable `{wanted}`; they have: {}", present.join(", "))]
    Unknown {
        /// The name.
        wanted: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// A variable that is no channel of the records wanted.
    #[error("variable `{variable}`: {reason}")]
    Channel {
        /// Its name.
        variable: String,
        /// What is wrong.
        reason: ChannelError,
    },
    /// Other bytes than a variable has.
    #[error("variable `{variable}` has {size} bytes, {given} are given")]
    Size {
        /// Its name.
        variable: String,
        /// Its size in bytes.
        size: u64,
        /// Bytes given.
        given: usize,
    },
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn unknown(data: &HookData, wanted: &str) -> VariableError {
    let present = data.symbols.keys().cloned().collect();
    VariableError::Unknown { wanted: wanted.to_owned(), present }
}

impl<'a> Variables<'a> {
    /// Reads the variables of hooks in the loaded code object `module`. `data` says what they are
    /// and where: one of [`crate::rewrite::Rewritten::data`].
    ///
    /// # Errors
    /// [`VariableError::Device`] where the module does not have them.
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

    /// The variables that `data` describes, in these bytes: as many as it has.
    pub fn new(data: &'a HookData, bytes: Vec<u8>) -> Variables<'a> {
        Variables { data, bytes }
    }

    /// Gives the variables of hooks the values that they start with.
    ///
    /// # Errors
    /// As [`Variables::read`].
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

    /// Gives a variable of hooks in the loaded code object `module` other bytes, as many as it has.
    ///
    /// # Errors
    /// As [`Variables::read`]; [`VariableError::Unknown`] and [`VariableError::Size`].
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
        let place = device.address_of(module, address.0 + symbol.offset)?;
        device.write(place, bytes)?;
        Ok(())
    }

    /// The bytes of a variable.
    ///
    /// # Errors
    /// [`VariableError::Unknown`].
    pub fn bytes(&self, name: &str) -> Result<&[u8], VariableError> {
        let symbol = self.data.symbols.get(name);
        let range = symbol.map(|own| own.offset as usize..(own.offset + own.size) as usize);
        range.and_then(|range| self.bytes.get(range)).ok_or_else(|| unknown(self.data, name))
    }

    /// A variable made of 64-bit numbers.
    ///
    /// # Errors
    /// [`VariableError::Unknown`].
    pub fn numbers(&self, name: &str) -> Result<Vec<u64>, VariableError> {
        let (numbers, _) = self.bytes(name)?.as_chunks();
        Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    /// A channel whose records have `record_size` bytes.
    ///
    /// # Errors
    /// [`VariableError::Unknown`] and [`VariableError::Channel`].
    pub fn channel(&self, name: &str, record_size: usize) -> Result<Channel<'_>, VariableError> {
        Channel::new(self.bytes(name)?, record_size)
            .map_err(|reason| VariableError::Channel { variable: name.to_owned(), reason })
    }
}
