//! One injection: a run of the workload with a fault at one site.

use crate::{Site, SiteError, Workload};
use flipwave_device::{
    Completion, Device, DeviceError, DeviceFault, Dispatch, FaultCause, Statistics, WaveId,
};
use flipwave_isa::{Lane, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};

/// What a fault did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The register's value before the fault.
    pub before: u32,
    /// Its value after it. The same as before if the fault sets the value that is there.
    pub after: u32,
    /// How the run ended.
    pub ending: Ending,
}

impl Injection {
    /// The bits that the fault changed.
    pub fn mask(&self) -> u32 {
        self.before ^ self.after
    }
}

/// How a run with a fault ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every dispatch completed.
    Completed {
        /// Content of each output, in the order of [`Workload::outputs`].
        outputs: Vec<Vec<u8>>,
        /// What each dispatch executed.
        statistics: Vec<Statistics>,
    },
    /// The device stopped a dispatch.
    Faulted {
        /// Index of the dispatch.
        dispatch: u32,
        /// Why and where it was stopped.
        fault: DeviceFault,
    },
}

/// An injection that did not take place. Each of these is a failure of the tool or of the
/// request, and never an outcome.
#[derive(Debug, thiserror::Error)]
pub enum InjectionError {
    /// The site contradicts itself.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The workload has fewer dispatches.
    #[error("the site is in dispatch {dispatch}, the workload has {dispatches} (counted from 0)")]
    NoSuchDispatch {
        /// The site's dispatch.
        dispatch: u32,
        /// How many there are.
        dispatches: usize,
    },
    /// Not one limit per dispatch.
    #[error("{limits} instruction limits given for {dispatches} dispatches")]
    LimitCount {
        /// Limits given.
        limits: usize,
        /// Dispatches of the workload.
        dispatches: usize,
    },
    /// The site was not reached.
    #[error("the fault was not injected: the run never came to {site}{}", ended(fault.as_ref()))]
    NotActivated {
        /// The site.
        site: Site,
        /// The fault that ended the run before, if one did.
        fault: Option<DeviceFault>,
    },
    /// The site was reached, but the wave has no such register, or one that cannot be changed.
    #[error("the fault was not injected: the wave has no writable {register} at {site}")]
    NoSuchRegister {
        /// The register.
        register: Register,
        /// The site.
        site: Site,
    },
    /// The register did not take the value.
    #[error("the fault was not injected: {site} wrote {wanted:#010x}, and {found:#010x} was read")]
    NotKept {
        /// The site.
        site: Site,
        /// The value written.
        wanted: u32,
        /// The value read back.
        found: u32,
    },
    /// The faulty run left what the embedded GPU can execute.
    #[error("no outcome for {site}: in dispatch {dispatch}, {fault}")]
    Gap {
        /// The site.
        site: Site,
        /// The dispatch.
        dispatch: u32,
        /// What is not implemented, and where it was met.
        fault: DeviceFault,
    },
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn ended(fault: Option<&DeviceFault>) -> String {
    fault.map_or_else(String::new, |fault| format!(" before it ended: {fault}"))
}

/// Runs `workload` with a fault at `site`. `limits` are the watchdogs of the dispatches in wave
/// instructions, as [`Golden::instruction_limits`](crate::Golden::instruction_limits) gives
/// them.
///
/// Only the wave of the site is watched, and only until the fault has struck.
///
/// # Errors
/// [`InjectionError`] whenever the fault did not take place as the site says.
pub fn inject(
    workload: &Workload,
    site: &Site,
    limits: &[u64],
) -> Result<Injection, InjectionError> {
    site.check()?;
    let dispatches = workload.dispatches.len();
    if site.dispatch as usize >= dispatches {
        return Err(InjectionError::NoSuchDispatch { dispatch: site.dispatch, dispatches });
    }
    if limits.len() != dispatches {
        return Err(InjectionError::LimitCount { limits: limits.len(), dispatches });
    }

    let mut strike = Strike::new(site);
    let ending = run(workload, &mut strike, limits)?;
    let Injected { before, after } = strike.result(&ending)?;
    if let Ending::Faulted { dispatch, fault } = &ending
        && matches!(fault.cause, FaultCause::Unimplemented { .. })
    {
        return Err(InjectionError::Gap { site: *site, dispatch: *dispatch, fault: fault.clone() });
    }
    Ok(Injection { before, after, ending })
}

fn run(
    workload: &Workload,
    strike: &mut Strike<'_>,
    limits: &[u64],
) -> Result<Ending, DeviceError> {
    let mut device = workload.device.clone();
    let mut statistics = Vec::with_capacity(workload.dispatches.len());
    for (index, (dispatch, limit)) in (0..).zip(workload.dispatches.iter().zip(limits)) {
        let dispatch = Dispatch { instruction_limit: *limit, ..dispatch.clone() };
        let completion = if index == strike.site.dispatch {
            workload.observe(&mut device, &dispatch, strike)?
        } else {
            device.dispatch(&dispatch)?
        };
        match completion {
            Completion::Completed(executed) => statistics.push(executed),
            Completion::Faulted(fault) => {
                let place = workload.place(&dispatch, fault.place);
                let fault = DeviceFault { place, ..fault };
                return Ok(Ending::Faulted { dispatch: index, fault });
            }
        }
    }
    Ok(Ending::Completed { outputs: workload.read_outputs(&device)?, statistics })
}

/// Waits for the site and strikes once.
struct Strike<'a> {
    site: &'a Site,
    /// Executions of the site's instruction by its wave so far.
    occurrences: u64,
    outcome: Option<Result<Injected, InjectionError>>,
}

#[derive(Clone, Copy)]
struct Injected {
    before: u32,
    after: u32,
}

impl Strike<'_> {
    fn new(site: &Site) -> Strike<'_> {
        Strike { site, occurrences: 0, outcome: None }
    }

    /// Whether the execution that just ended is the site's.
    fn is_reached(&mut self, executed: &Executed<'_>) -> bool {
        if executed.inst.pc != self.site.pc {
            return false;
        }
        self.occurrences += 1;
        self.occurrences - 1 == self.site.occurrence
    }

    fn strike(&self, state: &mut WaveState<'_>) -> Result<Injected, InjectionError> {
        let site = *self.site;
        let register = site.register;
        let lane = site.lane.unwrap_or(Lane(0));
        let missing = || InjectionError::NoSuchRegister { register, site };
        let before = state.read(register, lane).ok_or_else(missing)?;
        let wanted = site.action.apply(before);
        if !state.write(register, lane, wanted) {
            return Err(missing());
        }
        let after = state.read(register, lane).ok_or_else(missing)?;
        if after != wanted {
            return Err(InjectionError::NotKept { site, wanted, found: after });
        }
        Ok(Injected { before, after })
    }

    fn result(self, ending: &Ending) -> Result<Injected, InjectionError> {
        let fault = match ending {
            Ending::Completed { .. } => None,
            Ending::Faulted { fault, .. } => Some(fault.clone()),
        };
        self.outcome.unwrap_or(Err(InjectionError::NotActivated { site: *self.site, fault }))
    }
}

impl Observer for Strike<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        wave == WaveId { workgroup: self.site.workgroup, wave: self.site.wave }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if !self.is_reached(executed) {
            return Watch::On;
        }
        self.outcome = Some(self.strike(state));
        Watch::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{inst, wave};
    use flipwave_isa::{Inst, LaneMask};

    fn site() -> Site {
        "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x00000001"
            .parse()
            .unwrap()
    }

    fn executed(inst: &Inst) -> Executed<'_> {
        Executed { inst, wave: wave(1, 0), lanes: LaneMask::FULL }
    }

    #[test]
    fn only_the_execution_named_is_the_sites() {
        let site = site();
        let mut strike = Strike::new(&site);
        let (other, own) = (inst(0x100, "s_nop 0"), inst(0x104, "s_add_u32 s6, s6, 1"));
        let reached: Vec<bool> = [&other, &own, &own, &other, &own, &own]
            .map(|inst| strike.is_reached(&executed(inst)))
            .to_vec();
        assert_eq!(reached, [false, false, false, false, true, false]);
    }

    #[test]
    fn only_the_wave_named_is_watched() {
        let site = site();
        let mut strike = Strike::new(&site);
        assert!(strike.watches(wave(1, 0)));
        assert!(!strike.watches(wave(0, 0)) && !strike.watches(wave(1, 1)));
    }

    /// A run that never came to the site is no masked fault, however it ended.
    #[test]
    fn a_fault_that_did_not_strike_has_no_outcome() {
        let site = site();
        let completed = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
        let error = Strike::new(&site).result(&completed).err().map(|error| error.to_string());
        assert_eq!(
            error,
            Some(format!("the fault was not injected: the run never came to {site}"))
        );

        let fault = DeviceFault {
            cause: FaultCause::Watchdog { executed: 10 },
            place: flipwave_device::Place { pc: site.pc, wave: wave(0, 0) },
        };
        let stopped = Ending::Faulted { dispatch: 0, fault };
        let error = Strike::new(&site).result(&stopped).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("before it ended: watchdog")));
    }

    #[test]
    fn the_mask_is_what_changed() {
        let ending = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
        let injection = Injection { before: 0xf0f0_0001, after: 0, ending };
        assert_eq!(injection.mask(), 0xf0f0_0001);
    }
}
