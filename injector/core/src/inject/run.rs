//! One injection: a run of the workload with a fault at one site.

use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::{Ending, Injection, InjectionError, Struck};
use crate::population::workgroups;
use crate::site::Site;
use crate::workload::Workload;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, FaultCause, Statistics};
use flipwave_sim::EmbeddedGpu;
use std::ops::ControlFlow;

/// Runs `workload` with a fault at `site`. `limits` are the watchdogs of the dispatches in wave
/// instructions, as [`Golden::instruction_limits`](crate::Golden::instruction_limits) gives
/// them.
///
/// Only the waves of the site are watched, and only until the fault has struck.
///
/// # Errors
/// [`InjectionError`] whenever the fault did not take place as the site says.
pub fn inject(
    workload: &Workload,
    site: &Site,
    limits: &[u64],
) -> Result<Injection, InjectionError> {
    check(workload, site, limits)?;
    let mut observer = FaultObserver::new(site, workload.cells(), workload.simds());
    let device = workload.start()?;
    let ending = run(workload, limits, device, |index, device, dispatch| {
        if site.event().is_some_and(|event| event.dispatch != index) {
            return workload.dispatch(device, dispatch);
        }
        observer.begin(workgroups(dispatch));
        workload.observe(device, dispatch, &mut observer)
    })?;
    conclude(site, observer.outcome(), ending)
}

/// Checks that a site can be one of the workload.
pub(crate) fn check(
    workload: &Workload,
    site: &Site,
    limits: &[u64],
) -> Result<(), InjectionError> {
    site.check()?;
    let dispatches = workload.program.dispatches.len();
    if let Some(event) = site.event()
        && event.dispatch as usize >= dispatches
    {
        return Err(InjectionError::NoSuchDispatch { dispatch: event.dispatch, dispatches });
    }
    if limits.len() != dispatches {
        return Err(InjectionError::LimitCount { limits: limits.len(), dispatches });
    }
    Ok(())
}

/// Runs a workload, each dispatch by `dispatch_one`, on a device as the first one finds it.
pub(crate) fn run<E: From<DeviceError>>(
    workload: &Workload,
    limits: &[u64],
    device: EmbeddedGpu,
    dispatch_one: impl FnMut(u32, &mut EmbeddedGpu, &Dispatch) -> Result<Completion, E>,
) -> Result<Ending, E> {
    Ok(match run_from(workload, limits, 0, device, Vec::new(), dispatch_one)? {
        ControlFlow::Continue((device, statistics)) => {
            Ending::Completed { outputs: workload.outputs(&device)?, statistics }
        }
        ControlFlow::Break(ending) => ending,
    })
}

/// Runs the dispatches of a workload from number `first` on, each by `dispatch_one`, on a device as
/// `first` finds it; those before have `statistics`. What happens to memory after each of them
/// happens here and nowhere else. Gives the device after all of them, and what they executed; or how the run
/// ended, if it was stopped.
pub(crate) fn run_from<E: From<DeviceError>>(
    workload: &Workload,
    limits: &[u64],
    first: usize,
    mut device: EmbeddedGpu,
    mut statistics: Vec<Statistics>,
    mut dispatch_one: impl FnMut(u32, &mut EmbeddedGpu, &Dispatch) -> Result<Completion, E>,
) -> Result<ControlFlow<Ending, (EmbeddedGpu, Vec<Statistics>)>, E> {
    let dispatches = (0..).zip(workload.program.dispatches.iter().zip(limits)).skip(first);
    for (index, (dispatch, limit)) in dispatches {
        let dispatch = Dispatch { instruction_limit: *limit, ..dispatch.clone() };
        match dispatch_one(index, &mut device, &dispatch)? {
            Completion::Completed(executed) => {
                statistics.push(executed);
                workload.change(&mut device, index as usize + 1)?;
            }
            Completion::Faulted(fault) => {
                let fault = workload.original(&dispatch, fault);
                return Ok(ControlFlow::Break(Ending::Faulted { dispatch: index, fault }));
            }
        }
    }
    Ok(ControlFlow::Continue((device, statistics)))
}

/// The injection, if the fault struck and the run had an outcome.
pub(crate) fn conclude(
    site: &Site,
    struck: Option<Result<Struck, InjectionError>>,
    ending: Ending,
) -> Result<Injection, InjectionError> {
    let ending = match ending {
        Ending::Faulted { dispatch, fault } => {
            let fault = DeviceFault { cause: fault.cause.in_faulty_run(), ..fault };
            Ending::Faulted { dispatch, fault }
        }
        completed => completed,
    };
    let fault = match &ending {
        Ending::Completed { .. } => None,
        Ending::Faulted { fault, .. } => Some(Box::new(fault.clone())),
    };
    let site = Box::new(*site);
    let not_activated = InjectionError::NotActivated { site: site.clone(), fault };
    let struck = struck.unwrap_or(Err(not_activated))?;
    if let Ending::Faulted { dispatch, fault } = &ending
        && matches!(fault.cause, FaultCause::Unimplemented { .. })
    {
        return Err(InjectionError::Gap {
            site,
            dispatch: *dispatch,
            fault: Box::new(fault.clone()),
        });
    }
    Ok(Injection { struck, ending })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;
    use flipwave_isa::Pc;

    /// What the decoder does not support is a gap in a fault-free run; where a fault led there, it
    /// is the outcome that LLVM's word for it is.
    #[test]
    fn what_is_not_decoded_is_an_illegal_instruction_once_a_fault_struck() {
        let text = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x1";
        let site: Site = text.parse().unwrap();
        let place = flipwave_device::WaveLocation { pc: Pc(0x200), wave: wave(0, 0) };
        let fault = DeviceFault { cause: FaultCause::NotDecoded { word: 7 }, place };
        let struck = Struck { before: 0, after: 1, words: 1, absorbed: false };
        let ending = Ending::Faulted { dispatch: 0, fault };
        let injection = conclude(&site, Some(Ok(struck)), ending).unwrap();
        let Ending::Faulted { fault, .. } = injection.ending else { panic!("it faulted") };
        assert_eq!(fault.cause, FaultCause::IllegalInstruction { word: 7 });
    }

    /// A run that never came to the site is no masked fault, however it ended.
    #[test]
    fn a_fault_that_did_not_strike_has_no_outcome() {
        let text = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x1";
        let site: Site = text.parse().unwrap();
        let completed = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
        let error = conclude(&site, None, completed).unwrap_err().to_string();
        assert_eq!(error, format!("the fault was not injected: the run never came to {site}"));

        let fault = DeviceFault {
            cause: FaultCause::Watchdog { executed: 10 },
            place: flipwave_device::WaveLocation { pc: Pc(0x104), wave: wave(0, 0) },
        };
        let stopped = Ending::Faulted { dispatch: 0, fault };
        let error = conclude(&site, None, stopped).unwrap_err().to_string();
        assert!(error.contains("before it ended: watchdog"), "{error}");
    }
}
