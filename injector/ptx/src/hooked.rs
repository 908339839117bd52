//! Modules with the hooks of a site: in this process or for another one, and loaded on a device.

use crate::{HookDevice, Refusal};
use flipwave_arch::{Pc, SimdShape};
use flipwave_cuda_driver::without_debug_information;
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_injector::hooks::{LaunchShape, WAVE_BYTES, WAVES, found_in, orders};
use flipwave_injector::{InjectedChange, Site};
use flipwave_ptx::{INSTRUCTION_BYTES, Module, Origin, parse};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The variable of `wave.c` with the address of the record, or 0 for [`WAVES`].
const RECORD: &str = "record";

/// A module with the hooks of a request.
pub(crate) struct Hooked {
    /// The module.
    pub module: Module,
    /// Origin of each of its instructions.
    pub origins: Vec<Origin>,
    /// Names of the hooks' variables in the module by their names in the library.
    pub symbols: BTreeMap<String, String>,
    /// `true` if hooks also strike lanes that do not reach the instruction.
    pub is_deferred: bool,
}

/// A module with the hooks of a site, for another process that has loaded the original module. Passed between
/// processes of one build during one run, so it has no version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookedCode {
    /// Text of the original module without debugging information, as it is printed.
    original: String,
    /// Text of the module with hooks.
    text: String,
    origins: Vec<SavedOrigin>,
    symbols: BTreeMap<String, String>,
    is_deferred: bool,
}

/// [`Origin`] in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedOrigin {
    Before,
    After,
    Emulated(u64),
    #[serde(untagged)]
    Original(u64),
}

/// A module with hooks that is loaded in addition to the original one.
pub struct LoadedHooks {
    module: ModuleId,
    origins: Vec<Origin>,
    variables: Variables,
    is_deferred: bool,
}

/// The effect of hooks in a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// The values struck; `None` if nothing was.
    pub change: Option<InjectedChange>,
    /// Lanes of the site that did not reach the instruction, and that the hooks cannot strike.
    pub missed: u64,
}

impl Hooked {
    /// Loads the module in addition to the module `original`.
    pub fn load<D: HookDevice>(
        &self,
        device: &mut D,
        original: ModuleId,
    ) -> Result<LoadedHooks, DeviceError> {
        let Hooked { module, origins, symbols, is_deferred } = self;
        let module = device.load_hooked(original, module, origins)?;
        let mut variables = BTreeMap::new();
        for (name, symbol) in symbols {
            let Some((address, bytes)) = device.variable(module, symbol) else { continue };
            let mut content = vec![0; bytes as usize];
            device.read(address, &mut content)?;
            variables.insert(name.clone(), (address, content));
        }
        let (origins, variables) = (origins.clone(), Variables(variables));
        Ok(LoadedHooks { module, origins, variables, is_deferred: *is_deferred })
    }
}

impl HookedCode {
    pub(crate) fn new(original: &Module, hooked: &Hooked) -> HookedCode {
        let saved = |origin: &Origin| match origin {
            Origin::Original(pc) => SavedOrigin::Original(pc.0),
            Origin::Emulated(pc) => SavedOrigin::Emulated(pc.0),
            Origin::Before => SavedOrigin::Before,
            Origin::After => SavedOrigin::After,
        };
        HookedCode {
            original: without_debug_information(original).to_string(),
            text: hooked.module.to_string(),
            origins: hooked.origins.iter().map(saved).collect(),
            symbols: hooked.symbols.clone(),
            is_deferred: hooked.is_deferred,
        }
    }

    /// Returns `true` if the hooks are for a module.
    pub fn is_for(&self, module: &Module) -> bool {
        without_debug_information(module).to_string() == self.original
    }

    /// Loads the module with hooks in addition to the module `original`.
    ///
    /// # Errors
    /// [`DeviceError::Load`], [`DeviceError::OutOfMemory`].
    pub fn load<D: HookDevice>(
        &self,
        device: &mut D,
        original: ModuleId,
    ) -> Result<LoadedHooks, DeviceError> {
        let module = parse(&self.text).map_err(|error| DeviceError::Load(error.to_string()))?;
        let origin = |saved: &SavedOrigin| match saved {
            SavedOrigin::Original(pc) => Origin::Original(Pc(*pc)),
            SavedOrigin::Emulated(pc) => Origin::Emulated(Pc(*pc)),
            SavedOrigin::Before => Origin::Before,
            SavedOrigin::After => Origin::After,
        };
        let origins = self.origins.iter().map(origin).collect();
        let (symbols, is_deferred) = (self.symbols.clone(), self.is_deferred);
        Hooked { module, origins, symbols, is_deferred }.load(device, original)
    }
}

impl LoadedHooks {
    /// The module.
    pub fn module(&self) -> ModuleId {
        self.module
    }

    /// Makes the hooks strike a site in the next dispatch, on a GPU with SIMDs of this shape. `place` is the address
    /// or offset of the struck memory.
    ///
    /// # Errors
    /// [`ArmError`].
    pub fn arm<D: HookDevice>(
        &self,
        device: &mut D,
        site: &Site,
        shape: &LaunchShape,
        simds: SimdShape,
        place: u64,
    ) -> Result<(), ArmError> {
        let waves = self.waves()?;
        if site.event().is_none() && shape.waves() > waves {
            let (waves, most) = (shape.waves(), waves);
            return Err(Refusal::Waves { waves, most }.into());
        }
        let orders = orders(site, shape, simds, place).map_err(Refusal::from)?;
        self.disarm(device)?;
        for (name, bytes) in &orders {
            self.variables.write(device, name, bytes)?;
        }
        Ok(())
    }

    /// Makes the hooks strike nothing in the next dispatch.
    ///
    /// # Errors
    /// [`DeviceError`] if the hooks' memory cannot be written.
    pub fn disarm<D: HookDevice>(&self, device: &mut D) -> Result<(), DeviceError> {
        self.variables.reset(device)
    }

    /// Makes the hooks that strike the next dispatch record their effect at an address, in
    /// [`LoadedHooks::record_bytes`] bytes that are zero.
    ///
    /// # Errors
    /// [`DeviceError`] if the hooks' memory cannot be written.
    pub fn record_at<D: HookDevice>(
        &self,
        device: &mut D,
        address: Address,
    ) -> Result<(), DeviceError> {
        self.variables.write(device, RECORD, &address.0.to_le_bytes())
    }

    /// Bytes that hooks record.
    ///
    /// # Errors
    /// [`DeviceError`] if the hooks record nothing.
    pub fn record_bytes(&self) -> Result<usize, DeviceError> {
        self.variables.find(WAVES).map(|(_, content)| content.len())
    }

    /// Number of waves that the hooks keep the state of.
    fn waves(&self) -> Result<u64, DeviceError> {
        Ok((self.record_bytes()? / WAVE_BYTES) as u64)
    }

    /// The effect in the dispatch that has ended.
    ///
    /// # Errors
    /// [`DeviceError`] if the hooks' memory cannot be read.
    pub fn strike<D: HookDevice>(&self, device: &D) -> Result<Strike, DeviceError> {
        let (address, content) = self.variables.find(WAVES)?;
        let mut bytes = vec![0; content.len()];
        device.read(*address, &mut bytes)?;
        Ok(self.strike_in(&bytes))
    }

    /// The effect in the dispatch that has ended, from what the hooks have recorded.
    pub fn strike_in(&self, record: &[u8]) -> Strike {
        let (numbers, _) = record.as_chunks();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let missed = numbers.chunks(WAVE_BYTES / 8).filter_map(|wave| wave.last());
        let missed = missed.fold(0, |all, lanes| all | lanes);
        let missed = if self.is_deferred { 0 } else { missed };
        Strike { change: found_in(&numbers), missed }
    }

    /// Returns `true` for the address of an instruction of the hooks.
    pub fn is_inserted(&self, pc: Pc) -> bool {
        let number = pc.0 / u64::from(INSTRUCTION_BYTES);
        self.origins.get(number as usize).is_some_and(|origin| origin.pc().is_none())
    }
}

/// Errors returned when preparing hooks for a dispatch.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// Hooks cannot strike the site.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The hooks' memory cannot be written.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Variables of hooks in device memory, by their names in the library.
struct Variables(BTreeMap<String, (Address, Vec<u8>)>);

impl Variables {
    /// Sets all variables to their initial values.
    fn reset<D: HookDevice>(&self, device: &mut D) -> Result<(), DeviceError> {
        self.0.values().try_for_each(|(address, content)| device.write(*address, content))
    }

    /// Writes a variable.
    fn write<D: HookDevice>(
        &self,
        device: &mut D,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let (address, content) = self.find(name)?;
        if content.len() != bytes.len() {
            let reason = format!("hooks expect {} bytes in `{name}`", content.len());
            return Err(DeviceError::Internal(reason));
        }
        device.write(*address, bytes)
    }

    fn find(&self, name: &str) -> Result<&(Address, Vec<u8>), DeviceError> {
        let missing = || DeviceError::Internal(format!("hooks have no variable `{name}`"));
        self.0.get(name).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_saved_as_numbers_and_words() {
        let (original, emulated) = (SavedOrigin::Original(32), SavedOrigin::Emulated(48));
        let origins = [original, SavedOrigin::Before, SavedOrigin::After, emulated];
        let text = r#"[32,"before","after",{"emulated":48}]"#;
        assert_eq!(serde_json::to_string(&origins).expect("JSON"), text);
        let read: [SavedOrigin; 4] = serde_json::from_str(text).expect("origins");
        assert_eq!(read, origins);
    }
}
