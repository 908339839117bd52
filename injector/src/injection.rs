//! One injection: a run of the workload with a fault at one site.

use crate::device_side::Refusal;
use crate::population::workgroups;
use crate::site::Place;
use crate::strike::Strike;
use crate::{Site, SiteError, Workload};
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, FaultCause, Statistics};
use flipwave_hooks::hook::VariableError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_sim::EmbeddedGpu;

/// What a fault did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// What was struck.
    pub struck: Struck,
    /// How the run ended.
    pub ending: Ending,
}

/// What a fault struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Struck {
    /// The value of the first place struck, before the fault: of the first dispatch in which any
    /// was, and there of the wave with the lowest number, the first in its order, of lanes that
    /// are struck at once the lowest.
    pub before: u64,
    /// The value that the fault made of it; the same where nothing changed.
    pub after: u64,
    /// How many places were struck, each as often as it was.
    pub words: u64,
}

impl Struck {
    /// Whether all that the fault struck holds what it held before: one place, struck once, and the
    /// same value.
    pub fn is_unchanged(&self) -> bool {
        self.words == 1 && self.before == self.after
    }

    /// The bits of the first place that the fault changed.
    pub fn mask(&self) -> u64 {
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
        /// What each dispatch executed; what hooks executed there counts, too.
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
    #[error("the fault was not injected: the run never came to {site}{}", ended(fault.as_deref()))]
    NotActivated {
        /// The site.
        site: Box<Site>,
        /// The fault that ended the run before, if one did.
        fault: Option<Box<DeviceFault>>,
    },
    /// The site was reached, but there is no such place, or one that cannot be changed.
    #[error("the fault was not injected: there is no {place} that can be written at {site}")]
    NoSuchPlace {
        /// The place.
        place: Place,
        /// The site.
        site: Box<Site>,
    },
    /// The instruction has fewer dwords.
    #[error(
        "the fault was not injected: `{text}` at {site} has {dwords} dword(s); expected \
         `encoding` from 0 to {}",
        dwords.saturating_sub(1)
    )]
    NoSuchDword {
        /// The instruction.
        text: String,
        /// How many it has.
        dwords: u32,
        /// The site.
        site: Box<Site>,
    },
    /// The place did not take the value.
    #[error("the fault was not injected: {site} wrote {wanted:#010x}, and {found:#010x} was read")]
    NotKept {
        /// The site.
        site: Box<Site>,
        /// The value written.
        wanted: u64,
        /// The value read back.
        found: u64,
    },
    /// The faulty run left what the embedded GPU can execute.
    #[error("no outcome for {site}: in dispatch {dispatch}, {fault}")]
    Gap {
        /// The site.
        site: Box<Site>,
        /// The dispatch.
        dispatch: u32,
        /// What is not implemented, and where it was met.
        fault: Box<DeviceFault>,
    },
    /// A hook cannot inject it.
    #[error("a hook cannot inject {site}: {reason}")]
    Refused {
        /// The site.
        site: Box<Site>,
        /// Why not.
        reason: Refusal,
    },
    /// The hook could not be put into the code.
    #[error("no hook for {site}: {reason}")]
    Rewrite {
        /// The site.
        site: Box<Site>,
        /// Why not.
        reason: Box<RewriteError>,
    },
    /// The hook's variables are not as expected.
    #[error(transparent)]
    Variable(#[from] VariableError),
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
    let mut strike = Strike::new(site, workload.cells(), workload.simds());
    let device = workload.start()?;
    let ending = run_from(workload, limits, 0, device, Vec::new(), |index, device, dispatch| {
        if site.event().is_some_and(|event| event.dispatch != index) {
            return workload.dispatch(device, dispatch);
        }
        strike.begin(workgroups(dispatch));
        workload.observe(device, dispatch, &mut strike)
    })?;
    conclude(site, strike.outcome(), ending)
}

/// Checks that a site can be one of the workload.
pub(crate) fn check(
    workload: &Workload,
    site: &Site,
    limits: &[u64],
) -> Result<(), InjectionError> {
    site.check()?;
    let dispatches = workload.dispatches.len();
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

/// Runs the dispatches of a workload from number `first` on, each by `dispatch_one`, on a device as
/// `first` finds it; those before have `statistics`. What happens to memory behind each of them
/// happens here and nowhere else.
pub(crate) fn run_from<E: From<DeviceError>>(
    workload: &Workload,
    limits: &[u64],
    first: usize,
    mut device: EmbeddedGpu,
    mut statistics: Vec<Statistics>,
    mut dispatch_one: impl FnMut(u32, &mut EmbeddedGpu, &Dispatch) -> Result<Completion, E>,
) -> Result<Ending, E> {
    let dispatches = (0..).zip(workload.dispatches.iter().zip(limits)).skip(first);
    for (index, (dispatch, limit)) in dispatches {
        let dispatch = Dispatch { instruction_limit: *limit, ..dispatch.clone() };
        match dispatch_one(index, &mut device, &dispatch)? {
            Completion::Completed(executed) => {
                statistics.push(executed);
                workload.change(&mut device, index as usize + 1)?;
            }
            Completion::Faulted(fault) => {
                let fault = workload.original(&dispatch, fault);
                return Ok(Ending::Faulted { dispatch: index, fault });
            }
        }
    }
    Ok(Ending::Completed { outputs: workload.read_outputs(&device)?, statistics })
}

/// The injection, if the fault struck and the run had an outcome.
pub(crate) fn conclude(
    site: &Site,
    struck: Option<Result<Struck, InjectionError>>,
    ending: Ending,
) -> Result<Injection, InjectionError> {
    let ending = match ending {
        Ending::Faulted { dispatch, fault } => {
            let fault = DeviceFault { cause: fault.cause.of_struck_run(), ..fault };
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

    /// What the decoder does not know is a gap in a fault-free run; where a fault led there, it is the
    /// outcome that LLVM's word for it is.
    #[test]
    fn what_is_not_decoded_is_an_illegal_instruction_once_a_fault_struck() {
        let text = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x104 occurrence=2 register=s6 flip=0x1";
        let site: Site = text.parse().unwrap();
        let place = flipwave_device::Place { pc: Pc(0x200), wave: wave(0, 0) };
        let fault = DeviceFault { cause: FaultCause::NotDecoded { word: 7 }, place };
        let struck = Struck { before: 0, after: 1, words: 1 };
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
            place: flipwave_device::Place { pc: Pc(0x104), wave: wave(0, 0) },
        };
        let stopped = Ending::Faulted { dispatch: 0, fault };
        let error = conclude(&site, None, stopped).unwrap_err().to_string();
        assert!(error.contains("before it ended: watchdog"), "{error}");
    }

    #[test]
    fn the_mask_is_what_changed() {
        let struck = Struck { before: 0xf0f0_0001, after: 0, words: 1 };
        assert_eq!(struck.mask(), 0xf0f0_0001);
    }
}
