//! A fault that `flipwave launch` injects through NVIDIA's driver, for the campaign that has started it.
//!
//! On AMD's runtime, the agent injects the fault. NVIDIA's driver has no tools library, and the kernels run in a
//! program of our own.

use super::order::{LaunchOrder, VARIABLE};
use flipwave_agent::{Event, ProcessPath, Report, load_function};
use flipwave_arch::{Architecture, SimdShape};
use flipwave_cuda_driver::{CudaDevice, HostBuffer};
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, ModuleId};
use flipwave_injector::hooks::{LaunchShape, place_of, together};
use flipwave_injector::{Buffer, InjectedChange, Place, Program, Site};
use flipwave_injector_ptx::{ArmError, HookedCode, LoadedHooks, Strike};
use flipwave_ptx::{Ptx, WARP_SIZE};
use std::collections::HashMap;
use std::time::Duration;

/// Hooks of a module.
struct Hooks {
    loaded: LoadedHooks,
    /// Record of the hooks, in memory of the host, which outlives a fault of the device.
    record: HostBuffer,
}

/// The injection of a fault in this process.
pub(super) struct LaunchInjection {
    site: Site,
    simds: SimdShape,
    codes: Vec<HookedCode>,
    report: Report,
    time_limit: Duration,
    buffers: Vec<Buffer>,
    /// Modules with hooks, by number of the original; `None` for modules without hooks.
    hooks: HashMap<u32, Option<Hooks>>,
    /// Values struck so far that have not been reported.
    struck: Option<InjectedChange>,
}

impl LaunchInjection {
    /// Reads the order in the environment, if there is one.
    ///
    /// # Errors
    /// A message, if the order or one of its files is invalid.
    pub fn of_process(target: &Ptx) -> Result<Option<LaunchInjection>, String> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        let order: LaunchOrder = serde_json::from_str(&text)
            .map_err(|error| format!("invalid {VARIABLE}: {error}; do not set this variable"))?;
        if let Some(file) = &order.function {
            load_function(file)?;
        }
        let site = Site::parse(&order.site, target)
            .map_err(|error| format!("invalid fault site {}: {error}", order.site))?;
        let failed =
            |reason: &dyn std::fmt::Display| format!("{}: {reason}", order.hooks.display());
        let text = flipwave_host::input::read(&order.hooks, flipwave_host::input::BINARY);
        let text = text.map_err(|error| failed(&error))?;
        let codes = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        // The only process of the program.
        let process = ProcessPath { path: vec![0], ..ProcessPath::default() };
        let report = Report::open(Some(&order.report), process);
        let report = report.map_err(|error| format!("{}: {error}", order.report.display()))?;
        let (simds, time_limit) = (target.simds(), order.time_limit);
        let (buffers, hooks, struck) = Default::default();
        let injection =
            LaunchInjection { site, simds, codes, report, time_limit, buffers, hooks, struck };
        Ok(Some(injection))
    }

    /// Sets the program, whose buffers faults in memory strike.
    pub fn in_program(self, program: &Program) -> LaunchInjection {
        LaunchInjection { buffers: program.buffers.clone(), ..self }
    }

    /// Time after which a dispatch counts as hung.
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Executes the dispatch with a number, with hooks if its module has some, and reports their effect. Ends the
    /// process if the dispatch did not complete.
    ///
    /// # Errors
    /// [`DeviceError`] if the dispatch is invalid.
    pub fn dispatch(
        &mut self,
        device: &mut CudaDevice,
        number: u32,
        dispatch: &Dispatch,
    ) -> Result<Completion, DeviceError> {
        self.load(device, dispatch.module)?;
        let event = self.site.event();
        let is_struck = event.is_none_or(|event| event.dispatch == number);
        let module = match self.hooks.get(&dispatch.module.0) {
            Some(Some(hooks)) if is_struck => match self.arm(device, hooks, dispatch)? {
                Ok(module) => module,
                Err(reason) => {
                    self.report.add(&Event::NotStruck { reason });
                    end();
                }
            },
            // Variables of the module have their contents in the module with hooks only.
            Some(Some(hooks)) => {
                hooks.loaded.disarm(device)?;
                hooks.loaded.module()
            }
            _ => dispatch.module,
        };
        let completion = device.dispatch(&Dispatch { module, ..dispatch.clone() })?;
        if let (true, Some(Some(hooks))) = (is_struck, self.hooks.get(&dispatch.module.0)) {
            let Strike { change, missed } = hooks.loaded.strike_in(&hooks.record.content());
            if missed != 0 {
                self.report.add(&Event::NotReached { lanes: missed });
                end();
            }
            self.struck = self.struck.into_iter().chain(change).reduce(together);
        }
        if event.is_some() || matches!(completion, Completion::Faulted(_)) {
            self.finish();
        }
        if let Completion::Faulted(fault) = &completion {
            self.report_fault(number, dispatch, fault);
            end();
        }
        Ok(completion)
    }

    /// Reports the values struck so far.
    pub fn finish(&mut self) {
        if let Some(change) = self.struck.take() {
            self.report.add(&Event::struck(&change));
        }
    }

    /// Loads the hooks for a module, unless they are loaded.
    fn load(&mut self, device: &mut CudaDevice, module: ModuleId) -> Result<(), DeviceError> {
        if self.hooks.contains_key(&module.0) {
            return Ok(());
        }
        let original = device.loaded(module);
        let code =
            original.and_then(|original| self.codes.iter().find(|code| code.is_for(original)));
        let hooks = match code {
            Some(code) => {
                let loaded = code.load(device, module)?;
                let record = device.allocate_on_host(loaded.record_bytes()?)?;
                Some(Hooks { loaded, record })
            }
            None => None,
        };
        self.hooks.insert(module.0, hooks);
        Ok(())
    }

    /// Makes hooks strike the site in a dispatch, and returns their module, or why they cannot.
    fn arm(
        &self,
        device: &mut CudaDevice,
        hooks: &Hooks,
        dispatch: &Dispatch,
    ) -> Result<Result<ModuleId, String>, DeviceError> {
        let declared = device.declared_shared(dispatch.module, &dispatch.kernel)?;
        let shape = LaunchShape::of_dispatch(dispatch, WARP_SIZE, declared);
        let buffer = |number: u32| {
            let Place::Memory { offset, .. } = self.site.place else { return None };
            let found = self.buffers.get(number as usize)?;
            (offset < found.bytes as u64).then_some(found.address)
        };
        let Some(place) = place_of(&self.site, &shape, buffer) else {
            return Ok(Err(format!("the dispatch has no {}", self.site.place)));
        };
        let place = match self.site.place {
            Place::Lds(_) => place + u64::from(device.shared_base()),
            _ => place,
        };
        match hooks.loaded.arm(device, &self.site, &shape, self.simds, place) {
            Ok(()) => {}
            Err(ArmError::Refused(reason)) => return Ok(Err(reason.to_string())),
            Err(ArmError::Device(error)) => return Err(error),
        }
        hooks.record.clear();
        hooks.loaded.record_at(device, hooks.record.address())?;
        Ok(Ok(hooks.loaded.module()))
    }

    fn report_fault(&mut self, number: u32, dispatch: &Dispatch, fault: &DeviceFault) {
        self.report.add(&Event::Fault {
            dispatch: Some(number),
            kernel: dispatch.kernel.clone(),
            cause: fault.cause.kind(),
            text: fault.to_string(),
        });
    }
}

/// Ends this process immediately, because the driver's exit handlers may wait for a kernel that hangs.
fn end() -> ! {
    // SAFETY: only ends the process.
    unsafe { libc::_exit(2) }
}
