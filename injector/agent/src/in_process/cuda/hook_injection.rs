//! Injects a fault with hooks in the modules that an application loads.

use crate::in_process::injection::{SiteWatch, end_if_hung};
use crate::in_process::reporting::{end, report_event};
use crate::report::Event;
use flipwave_arch::{Architecture, SimdShape};
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError, DeviceFault, ModuleId};
use flipwave_injector::hooks::{LaunchShape, place_of};
use flipwave_injector::{Action, Place};
use flipwave_injector_ptx::{ArmError, HookedCode, LoadedHooks, Strike};
use flipwave_ptx::{Ptx, WARP_SIZE};
use flipwave_ptx_sim::PtxGpu;
use std::collections::HashMap;
use std::path::Path;

/// LaunchDriver that injects a fault at a site. Other launches execute the original code.
pub struct HookInjectionDriver {
    watch: SiteWatch,
    simds: SimdShape,
    codes: Vec<HookedCode>,
    /// Modules with hooks, by device and number of the original; `None` for modules without hooks.
    loaded: HashMap<(usize, u32), Option<LoadedHooks>>,
    /// `true` if the current launch executes hooks.
    is_armed: bool,
}

impl HookInjectionDriver {
    /// Reads the modules with hooks from a file.
    ///
    /// # Errors
    /// A message, if the file cannot be read.
    pub fn new(watch: SiteWatch, file: &Path, target: &Ptx) -> Result<Self, String> {
        let failed = |reason: &dyn std::fmt::Display| format!("{}: {reason}", file.display());
        let text = flipwave_host::input::read(file, flipwave_host::input::BINARY);
        let text = text.map_err(|error| failed(&error))?;
        let codes = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        let (loaded, is_armed) = Default::default();
        Ok(HookInjectionDriver { watch, simds: target.simds(), codes, loaded, is_armed })
    }

    /// Loads the hooks for the module of a launch, unless they are loaded.
    fn load(&mut self, gpu: &mut PtxGpu, launch: &KernelLaunch) -> Result<(), DeviceError> {
        let original = launch.dispatch.module;
        let key = (launch.device, original.0);
        if self.loaded.contains_key(&key) {
            return Ok(());
        }
        let program = gpu.program(original);
        let code =
            program.and_then(|program| self.codes.iter().find(|code| code.is_for(&program.module)));
        let hooks = code.map(|code| code.load(gpu, original)).transpose()?;
        self.loaded.insert(key, hooks);
        Ok(())
    }

    fn hooks(&self, launch: &KernelLaunch) -> Option<&LoadedHooks> {
        self.loaded.get(&(launch.device, launch.dispatch.module.0))?.as_ref()
    }

    /// Makes the hooks of a launch strike the site; returns the module with them. `None` if there are none, or they
    /// cannot strike the site, which is reported.
    fn arm(
        &mut self,
        gpu: &mut PtxGpu,
        launch: &KernelLaunch,
    ) -> Result<Option<ModuleId>, DeviceError> {
        self.load(gpu, launch)?;
        let Some(hooks) = self.hooks(launch) else { return Ok(None) };
        let declared = gpu.program(launch.dispatch.module);
        let declared = declared.map_or(0, |program| program.dynamic_shared());
        let declared = u32::try_from(declared).unwrap_or(u32::MAX);
        let shape = LaunchShape::of_dispatch(&launch.dispatch, WARP_SIZE, declared);
        let site = self.watch.site;
        // Buffers are known of programs in campaign files only.
        let armed = match place_of(site, &shape, |_| None) {
            Some(place) => hooks.arm(gpu, site, &shape, self.simds, place),
            None => {
                let reason = format!("the dispatch has no {}", site.place);
                self.watch.report(&Event::NotStruck { reason });
                return Ok(None);
            }
        };
        match armed {
            Ok(()) => Ok(Some(hooks.module())),
            Err(ArmError::Refused(reason)) => {
                self.watch.report(&Event::NotStruck { reason: reason.to_string() });
                Ok(None)
            }
            Err(ArmError::Device(error)) => Err(error),
        }
    }

    /// Reports the effect of the hooks in a launch that has ended.
    fn report(&mut self, strike: &Strike, fault: Option<&DeviceFault>) {
        if strike.missed != 0 {
            // The run is of no use.
            report_event(&Event::NotReached { lanes: strike.missed });
            end();
        }
        if let Some(reason) = fault.and_then(|fault| self.failure(strike, fault)) {
            self.watch.report(&Event::NotStruck { reason });
        }
        if let Some(change) = &strike.change {
            self.watch.report(&Event::struck(change));
        }
    }

    /// Why a device fault in a hook is not an effect of the injected fault; `None` if it is.
    fn failure(&self, strike: &Strike, fault: &DeviceFault) -> Option<String> {
        let site = self.watch.site;
        match site.action {
            // An endless loop of the program may also end in a hook, but only after the fault.
            Action::Function { function, .. }
                if strike.change.is_none() || !fault.cause.is_hang() =>
            {
                let file = &function.source().file;
                Some(format!("{file}: its function failed on the GPU: {fault}"))
            }
            _ if matches!(site.place, Place::Scratch(_)) => {
                Some(format!("the wave has no {}", site.place))
            }
            _ => None,
        }
    }
}

impl LaunchDriver for HookInjectionDriver {
    fn limit(&self, launch: &KernelLaunch) -> u64 {
        self.watch.limit(Some(launch.number))
    }

    fn begin(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.watch.begin(Some(launch.number));
        Ok(())
    }

    fn module(&mut self, gpu: &mut PtxGpu, launch: &KernelLaunch) -> Result<ModuleId, DeviceError> {
        let module = if self.watch.is_watched { self.arm(gpu, launch)? } else { None };
        self.is_armed = module.is_some();
        Ok(module.unwrap_or(launch.dispatch.module))
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let hooks = self.hooks(launch).filter(|_| self.is_armed && self.watch.is_awaited());
        if let Some(hooks) = hooks {
            let strike = hooks.strike(gpu)?;
            let in_hook = match completion {
                Completion::Faulted(fault) => {
                    Some(fault).filter(|fault| hooks.is_inserted(fault.place.pc))
                }
                Completion::Completed(_) => None,
            };
            self.report(&strike, in_hook);
        }
        end_if_hung(completion);
        Ok(())
    }

    fn unload(&mut self, device: usize, _: &mut PtxGpu, module: ModuleId) {
        self.loaded.remove(&(device, module.0));
    }
}
