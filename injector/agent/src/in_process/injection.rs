//! Injects a fault inside the embedded GPU.
//!
//! [`SiteInjection`] knows no instruction set; [`InjectionDriver`] injects into AMD's kernels.

use super::reporting::{end, is_target, report_event, report_fault};
use crate::report::Event;
use crate::session::TargetProcess;
use flipwave_arch::Architecture;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dim3};
use flipwave_injector::{FaultObserver, Site, instruction_limit};
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, MachineObserver, Progress, Unobserved};
use std::path::Path;

/// The dispatches of an application that a fault may strike. The fault is reported once.
pub struct SiteWatch {
    /// The filter for the target process.
    process: TargetProcess,
    /// `true` if this process is the target; `None` until it dispatches its first kernel.
    is_target: Option<bool>,
    /// The site.
    pub site: &'static Site,
    /// The watchdog limits of dispatches in wave instructions.
    limits: Vec<u64>,
    /// `true` if the fault may be injected in the current dispatch.
    pub is_watched: bool,
    is_reported: bool,
}

impl SiteWatch {
    /// Prepares an injection at `site`, with the watchdog limits in the file `limits`.
    ///
    /// # Errors
    /// A message, if the site is invalid or the file cannot be read.
    pub fn new(
        process: &TargetProcess,
        site: &str,
        limits: &Path,
        architecture: &dyn Architecture,
    ) -> Result<SiteWatch, String> {
        let site = Site::parse(site, architecture)
            .map_err(|error| format!("invalid fault site {site}: {error}"))?;
        // The driver lives until the process ends.
        let site: &'static Site = Box::leak(Box::new(site));
        let name = limits.display();
        let text = flipwave_host::input::read_text(limits, flipwave_host::input::TEXT)
            .map_err(|error| format!("{name}: {error}"))?;
        let limits = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let (process, is_target) = (process.clone(), None);
        let (is_watched, is_reported) = (false, false);
        Ok(SiteWatch { process, is_target, site, limits, is_watched, is_reported })
    }

    /// The watchdog limit of a dispatch in wave instructions; `number` is `None` for runtime kernels.
    pub fn limit(&self, number: Option<u32>) -> u64 {
        // Runtime kernels do not depend on results of other kernels. For other processes no limits are
        // known; the time limit of the run ends them if they hang.
        let Some(number) = number.filter(|_| self.is_target != Some(false)) else {
            return u64::MAX;
        };
        let limit = self.limits.get(number as usize);
        let largest = self.limits.iter().max();
        limit.or(largest).copied().unwrap_or_else(|| instruction_limit(0))
    }

    /// Begins a dispatch of a kernel, or of a runtime kernel if `number` is `None`.
    pub fn begin(&mut self, number: Option<u32>) {
        let event = self.site.event();
        self.is_watched = number.is_some()
            && *self.is_target.get_or_insert_with(|| is_target(&self.process))
            && event.is_none_or(|event| Some(event.dispatch) == number);
    }

    /// Returns `true` if the fault can still be reported in the current dispatch. A permanent fault stays active: its
    /// effect until the end of the first dispatch is reported.
    pub fn is_awaited(&self) -> bool {
        self.is_watched && !self.is_reported
    }

    /// Reports the fault.
    pub fn report(&mut self, event: &Event) {
        if !std::mem::replace(&mut self.is_reported, true) {
            report_event(event);
        }
    }
}

/// A fault that an observer injects in one of the dispatches of an application.
pub struct SiteInjection {
    /// The dispatches.
    pub watch: SiteWatch,
    /// Injects the fault.
    pub observer: FaultObserver<'static>,
}

impl SiteInjection {
    /// Prepares the observer.
    pub fn new(watch: SiteWatch, architecture: &dyn Architecture) -> SiteInjection {
        let observer = FaultObserver::in_application(watch.site, architecture);
        SiteInjection { watch, observer }
    }

    /// Begins a dispatch of a kernel, or of a runtime kernel if `number` is `None`.
    pub fn begin(&mut self, number: Option<u32>, grid: Dim3, workgroup: Dim3) {
        self.watch.begin(number);
        if self.watch.is_watched {
            let workgroups =
                [0, 1].map(|dimension| grid[dimension].div_ceil(workgroup[dimension].max(1)));
            self.observer.begin(workgroups);
        }
    }

    /// Reports the injected fault, once, after a dispatch.
    pub fn report_struck(&mut self) {
        if !self.watch.is_awaited() {
            return;
        }
        match self.observer.so_far() {
            Some(Ok(struck)) => self.watch.report(&Event::struck(struck)),
            Some(Err(error)) => {
                self.watch.report(&Event::NotStruck { reason: error.to_string() });
            }
            None => {}
        }
    }
}

/// Ends the application if a dispatch hung: on hardware the application would wait forever.
pub fn end_if_hung(completion: &Completion) {
    if let Completion::Faulted(fault) = completion
        && fault.cause.is_hang()
    {
        end();
    }
}

/// DispatchDriver that injects a fault at a site.
pub struct InjectionDriver(pub SiteInjection);

impl DispatchDriver for InjectionDriver {
    fn limit(&self, dispatch: &KernelDispatch) -> u64 {
        self.0.watch.limit(dispatch.kernel.as_ref().map(|kernel| kernel.number))
    }

    /// Stalls end only dispatches without a limit; with a limit the watchdog ends them, as in runs without
    /// an application.
    fn ends_stalls(&self) -> bool {
        self.0.watch.is_target == Some(false)
    }

    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let number = dispatch.kernel.as_ref().map(|kernel| kernel.number);
        self.0.begin(number, dispatch.packet.grid, dispatch.packet.workgroup);
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        if self.0.watch.is_watched {
            gpu.advance(execution, &mut MachineObserver(&mut self.0.observer), until)
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
        self.0.report_struck();
        if let Completion::Faulted(fault) = completion {
            let fault = DeviceFault { cause: fault.cause.clone().in_faulty_run(), ..fault.clone() };
            report_fault(gpu, dispatch, &fault);
        }
        end_if_hung(completion);
        Ok(())
    }
}
