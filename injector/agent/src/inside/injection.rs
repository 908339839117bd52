//! Executes with a fault at one site.

use super::{end, is_struck, report_event, report_fault};
use crate::report::Event;
use crate::session::StruckProcess;
use flipwave_device::{Completion, DeviceError, DeviceFault};
use flipwave_injector::{FaultObserver, Site, instruction_limit};
use flipwave_isa::Target;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::path::Path;

pub struct Injection {
    /// The process that is struck.
    process: StruckProcess,
    /// Whether it is this one, once that is decided.
    is_struck: Option<bool>,
    site: &'static Site,
    observer: FaultObserver<'static>,
    limits: Vec<u64>,
    /// Whether the dispatch under way can be struck.
    is_watched: bool,
    is_reported: bool,
}

impl Injection {
    /// An injection at a site, with the watchdogs of a file.
    pub fn new(
        process: &StruckProcess,
        site: &str,
        limits: &Path,
        target: &Target,
    ) -> Result<Injection, String> {
        let site: Site = site.parse().map_err(|error| format!("the site {site}: {error}"))?;
        // It is needed as long as the process runs.
        let site: &'static Site = Box::leak(Box::new(site));
        let name = limits.display();
        let text = flipwave_host::input::read_text(limits, flipwave_host::input::TEXT)
            .map_err(|error| format!("{name}: {error}"))?;
        let limits = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let observer = FaultObserver::in_application(site, target);
        let (process, is_struck) = (process.clone(), None);
        let (is_watched, is_reported) = (false, false);
        Ok(Injection { process, is_struck, site, observer, limits, is_watched, is_reported })
    }

    /// Reports what was struck, once all that can be struck has been.
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

impl DispatchDriver for Injection {
    fn limit(&self, dispatch: &KernelDispatch) -> u64 {
        // The runtime's own code does not depend on what kernels compute. How long kernels of other
        // processes take is not known: a run that does not end for them ends when its time is over.
        let kernel = dispatch.kernel.as_ref().filter(|_| self.is_struck != Some(false));
        let Some(kernel) = kernel else { return u64::MAX };
        let own = self.limits.get(kernel.number as usize);
        let longest = self.limits.iter().max();
        own.or(longest).copied().unwrap_or_else(|| instruction_limit(0))
    }

    /// Where there is a limit, it decides, as in runs of kernels alone.
    fn ends_stalls(&self) -> bool {
        self.is_struck == Some(false)
    }

    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let number = dispatch.kernel.as_ref().map(|kernel| kernel.number);
        let event = self.site.event();
        self.is_watched = number.is_some()
            && *self.is_struck.get_or_insert_with(|| is_struck(&self.process))
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
            gpu.advance(execution, &mut self.observer, until)
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
        // A permanent fault goes on striking: what it did until the first dispatch ended is
        // reported.
        if self.is_watched {
            self.report_struck();
        }
        if let Completion::Faulted(fault) = completion {
            let fault = DeviceFault { cause: fault.cause.clone().in_faulty_run(), ..fault.clone() };
            report_fault(gpu, dispatch, &fault);
            if fault.cause.is_hang() {
                // On hardware the application would wait for ever.
                end();
            }
        }
        Ok(())
    }
}
