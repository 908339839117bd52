//! Injects a fault inside the embedded GPU.

use super::reporting::{end, is_target, report_event, report_fault};
use crate::report::Event;
use crate::session::TargetProcess;
use flipwave_device::{Completion, DeviceError, DeviceFault};
use flipwave_injector::{FaultObserver, Site, instruction_limit};
use flipwave_isa::Target;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{Amdgpu, EmbeddedGpu, Execution, MachineObserver, Progress, Unobserved};
use std::path::Path;

/// DispatchDriver that injects a fault at a site.
pub struct InjectionDriver {
    /// The filter for the target process.
    process: TargetProcess,
    /// `true` if this process is the target; `None` until it dispatches its first kernel.
    is_target: Option<bool>,
    site: &'static Site,
    observer: FaultObserver<'static>,
    /// The watchdog limits of dispatches in wave instructions.
    limits: Vec<u64>,
    /// `true` if the fault may be injected in the current dispatch.
    is_watched: bool,
    is_reported: bool,
}

impl InjectionDriver {
    /// Creates a driver that injects at `site`, with the watchdog limits in the file `limits`.
    pub fn new(
        process: &TargetProcess,
        site: &str,
        limits: &Path,
        target: &Target,
    ) -> Result<InjectionDriver, String> {
        let architecture = Amdgpu::new(target.clone());
        let site = Site::parse(site, &architecture)
            .map_err(|error| format!("invalid fault site {site}: {error}"))?;
        // The driver lives until the process ends.
        let site: &'static Site = Box::leak(Box::new(site));
        let name = limits.display();
        let text = flipwave_host::input::read_text(limits, flipwave_host::input::TEXT)
            .map_err(|error| format!("{name}: {error}"))?;
        let limits = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let observer = FaultObserver::in_application(site, &architecture);
        let (process, is_target) = (process.clone(), None);
        let (is_watched, is_reported) = (false, false);
        Ok(InjectionDriver { process, is_target, site, observer, limits, is_watched, is_reported })
    }

    /// Reports the injected fault, once.
    fn report_struck(&mut self) {
        if self.is_reported {
            return;
        }
        match self.observer.so_far() {
            Some(Ok(struck)) => report_event(&Event::struck(struck)),
            Some(Err(error)) => report_event(&Event::NotStruck { reason: error.to_string() }),
            None => return,
        }
        self.is_reported = true;
    }
}

impl DispatchDriver for InjectionDriver {
    fn limit(&self, dispatch: &KernelDispatch) -> u64 {
        // Runtime kernels do not depend on results of other kernels. For other processes no limits are
        // known; the time limit of the run ends them if they hang.
        let kernel = dispatch.kernel.as_ref().filter(|_| self.is_target != Some(false));
        let Some(kernel) = kernel else { return u64::MAX };
        let limit = self.limits.get(kernel.number as usize);
        let largest = self.limits.iter().max();
        limit.or(largest).copied().unwrap_or_else(|| instruction_limit(0))
    }

    /// Stalls end only dispatches without a limit; with a limit the watchdog ends them, as in runs without
    /// an application.
    fn ends_stalls(&self) -> bool {
        self.is_target == Some(false)
    }

    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let number = dispatch.kernel.as_ref().map(|kernel| kernel.number);
        let event = self.site.event();
        self.is_watched = number.is_some()
            && *self.is_target.get_or_insert_with(|| is_target(&self.process))
            && event.is_none_or(|event| Some(event.dispatch) == number);
        if self.is_watched {
            let packet = &dispatch.packet;
            let workgroups = [0, 1].map(|dimension| {
                packet.grid[dimension].div_ceil(packet.workgroup[dimension].max(1))
            });
            self.observer.begin(workgroups);
        }
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        if self.is_watched {
            gpu.advance(execution, &mut MachineObserver(&mut self.observer), until)
        } else {
            gpu.advance(execution, &mut Unobserved, until)
        }
    }

    fn injects(&self) -> bool {
        true
    }

    fn end(
        &mut self,
        _: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        // A permanent fault stays active: its effect until the end of the first dispatch is reported.
        if self.is_watched {
            self.report_struck();
        }
        if let Completion::Faulted(fault) = completion {
            let fault = DeviceFault { cause: fault.cause.clone().in_faulty_run(), ..fault.clone() };
            report_fault(gpu, dispatch, &fault);
            if fault.cause.is_hang() {
                // On hardware the application would wait forever.
                end();
            }
        }
        Ok(())
    }
}
