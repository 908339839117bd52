//! Runs a workload with a fault at one site.

use crate::fault_space::workgroups;
use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::{Ending, InjectedChange, Injection, InjectionError};
use crate::site::Site;
use crate::workload::Workload;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, FaultCause, Statistics};
use flipwave_machine::Simulator;
use std::ops::ControlFlow;

/// Runs `workload` with a fault at `site`. `limits` are the watchdog limits of the dispatches in wave
/// instructions, as returned by [`Golden::instruction_limits`](crate::Golden::instruction_limits).
///
/// Observes only the waves of the site, and only until the fault has struck.
///
/// # Errors
/// [`InjectionError`] if the fault was not injected as the site describes.
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
        workload.run(device, dispatch, &mut observer, None)
    })?;
    conclude(site, observer.outcome(), ending)
}

/// Checks that the site can exist in the workload.
///
/// # Errors
/// [`InjectionError`] with the part of the site that does not exist.
pub fn check(workload: &Workload, site: &Site, limits: &[u64]) -> Result<(), InjectionError> {
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

/// Runs a workload on `device`, which is in the state before the first dispatch, and executes each
/// dispatch with `dispatch_one`.
///
/// # Errors
/// The errors of `dispatch_one`, and [`DeviceError`] if the host's memory changes cannot be applied.
pub fn run<E: From<DeviceError>>(
    workload: &Workload,
    limits: &[u64],
    device: Simulator,
    dispatch_one: impl FnMut(u32, &mut Simulator, &Dispatch) -> Result<Completion, E>,
) -> Result<Ending, E> {
    Ok(match run_from(workload, limits, 0, device, Vec::new(), dispatch_one)? {
        ControlFlow::Continue((device, statistics)) => {
            Ending::Completed { outputs: workload.outputs(&device)?, statistics }
        }
        ControlFlow::Break(ending) => ending,
    })
}

/// Runs the dispatches of a workload from index `first` on, each with `dispatch_one`, on a device in
/// the state before `first`; the earlier dispatches have `statistics`. Also applies the host's memory
/// changes after each dispatch. Returns the device and the statistics after the last dispatch, or how
/// the run ended if a dispatch faulted.
pub(crate) fn run_from<E: From<DeviceError>>(
    workload: &Workload,
    limits: &[u64],
    first: usize,
    mut device: Simulator,
    mut statistics: Vec<Statistics>,
    mut dispatch_one: impl FnMut(u32, &mut Simulator, &Dispatch) -> Result<Completion, E>,
) -> Result<ControlFlow<Ending, (Simulator, Vec<Statistics>)>, E> {
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

/// Builds the injection's result.
///
/// # Errors
/// [`InjectionError`] if the fault did not strike or the run has no valid outcome.
pub fn conclude(
    site: &Site,
    struck: Option<Result<InjectedChange, InjectionError>>,
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
    use crate::testing::{site, wave};
    use flipwave_arch::Pc;

    /// In a golden run, an instruction that the decoder does not support is a gap; after a fault, it is
    /// an illegal instruction if LLVM decides so.
    #[test]
    fn undecoded_instructions_are_illegal_after_a_fault() {
        let text = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x1";
        let site = site(text);
        let place = flipwave_device::WaveLocation { pc: Pc(0x200), wave: wave(0, 0) };
        let fault = DeviceFault::new(FaultCause::NotDecoded { word: 7 }, place);
        let struck = InjectedChange { before: 0, after: 1, words: 1, absorbed: false };
        let ending = Ending::Faulted { dispatch: 0, fault };
        let injection = conclude(&site, Some(Ok(struck)), ending).unwrap();
        let Ending::Faulted { fault, .. } = injection.ending else { panic!("it faulted") };
        assert_eq!(fault.cause, FaultCause::IllegalInstruction { word: 7 });
    }

    /// A run that never reached the site is not a masked fault, however it ended.
    #[test]
    fn unreached_sites_have_no_outcome() {
        let text = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x1";
        let site = site(text);
        let completed = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
        let error = conclude(&site, None, completed).unwrap_err().to_string();
        assert_eq!(error, format!("the fault was not injected: the run never reached {site}"));

        let place = flipwave_device::WaveLocation { pc: Pc(0x104), wave: wave(0, 0) };
        let fault = DeviceFault::new(FaultCause::Watchdog { executed: 10 }, place);
        let stopped = Ending::Faulted { dispatch: 0, fault };
        let error = conclude(&site, None, stopped).unwrap_err().to_string();
        assert!(error.contains("before it ended: watchdog"), "{error}");
    }
}
