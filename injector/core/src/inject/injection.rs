//! What came of one injection.

use crate::Output;
use crate::device_side::refusal::Refusal;
use crate::site::{Place, Site, SiteError};
use flipwave_device::{DeviceError, DeviceFault, Statistics};
use flipwave_hooks::hook::VariableError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_sim::ProductShape;

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
    /// Whether the value went into a sum which came out the same all the same.
    pub absorbed: bool,
}

impl Struck {
    /// Whether all that the fault struck holds what it held before: one place, struck once, and the
    /// same value, there or in the register to which its sum goes.
    pub fn is_unchanged(&self) -> bool {
        self.words == 1 && (self.before == self.after || self.absorbed)
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
        /// Content of each output, in the order of [`Program::outputs`](crate::Program).
        outputs: Vec<Output>,
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
    /// The instruction sums up no such thing.
    #[error(
        "the fault was not injected: `{text}` at {site} {}",
        shape.map_or("is no product of matrices".to_owned(), |shape| format!(
            "has no such element, step or word: it makes {shape}"
        ))
    )]
    NoSuchSum {
        /// The instruction.
        text: String,
        /// What it computes, if it is a product of matrices.
        shape: Option<ProductShape>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_what_changed() {
        let struck = Struck { before: 0xf0f0_0001, after: 0, words: 1, absorbed: false };
        assert_eq!(struck.mask(), 0xf0f0_0001);
    }
}
