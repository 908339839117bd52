//! The result of one injection.

use crate::Output;
use crate::fault::FunctionError;
use crate::site::{Place, Site, SiteError};
use flipwave_arch::ProductShape;
use flipwave_device::{DeviceError, DeviceFault, Statistics};
use std::error::Error;

/// Result of an injected fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection<E = Ending> {
    /// The values struck.
    pub struck: InjectedChange,
    /// The end of the run.
    pub ending: E,
}

impl<E> Injection<E> {
    /// Applies `map` to the end of the run.
    pub fn map_ending<M>(self, map: impl FnOnce(E) -> M) -> Injection<M> {
        Injection { struck: self.struck, ending: map(self.ending) }
    }
}

/// Values struck by a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedChange {
    /// The value before the fault of the first place struck: in the first dispatch in which any was
    /// struck, of the wave with the lowest number, its first strike, the lowest lane.
    pub before: u64,
    /// The value after the fault; equal to `before` if nothing changed.
    pub after: u64,
    /// Number of words struck, counting repeated strikes of one word.
    pub words: u64,
    /// `true` if the fault struck a partial sum and the final sum did not change.
    pub absorbed: bool,
}

impl InjectedChange {
    /// Returns `true` if the fault changed nothing: it hit one word, once, and the word kept its value, or
    /// the word was a partial sum and the final sum kept its value.
    pub fn is_unchanged(&self) -> bool {
        self.words == 1 && (self.before == self.after || self.absorbed)
    }

    /// Bits of the first place that the fault changed.
    pub fn mask(&self) -> u64 {
        self.before ^ self.after
    }
}

/// End of a run with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every dispatch completed.
    Completed {
        /// Content of each output, in the order of [`Program::outputs`](crate::Program).
        outputs: Vec<Output>,
        /// Instruction counts of each dispatch, including instructions of hooks.
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

/// Errors returned when an injection did not take place. Each is a failure of the tool or of the
/// request, never an outcome.
#[derive(Debug, thiserror::Error)]
pub enum InjectionError {
    /// The site is inconsistent.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The site's dispatch does not exist.
    #[error("the site is in dispatch {dispatch}, the workload has {dispatches} (counted from 0)")]
    NoSuchDispatch {
        /// The site's dispatch.
        dispatch: u32,
        /// Number of dispatches.
        dispatches: usize,
    },
    /// The number of limits differs from the number of dispatches.
    #[error("{limits} instruction limits given for {dispatches} dispatches")]
    LimitCount {
        /// Number of limits.
        limits: usize,
        /// Dispatches of the workload.
        dispatches: usize,
    },
    /// The run never reached the site.
    #[error("the fault was not injected: the run never reached {site}{}", ended(fault.as_deref()))]
    NotActivated {
        /// The site.
        site: Box<Site>,
        /// The device fault that ended the run earlier, if any.
        fault: Option<Box<DeviceFault>>,
    },
    /// The site was reached, but its place does not exist or is read-only.
    #[error("the fault was not injected: {place} does not exist or is read-only at {site}")]
    NoSuchPlace {
        /// The place.
        place: Place,
        /// The site.
        site: Box<Site>,
    },
    /// The instruction has too few dwords.
    #[error(
        "the fault was not injected: `{text}` at {site} has {dwords} dword(s); expected \
         `encoding` from 0 to {}",
        dwords.saturating_sub(1)
    )]
    NoSuchDword {
        /// The instruction.
        text: String,
        /// Number of its dwords.
        dwords: u32,
        /// The site.
        site: Box<Site>,
    },
    /// The instruction does not compute the site's sum.
    #[error(
        "the fault was not injected: `{text}` at {site} {}",
        shape.map_or("is not a matrix multiplication".to_owned(), |shape| format!(
            "has no such element, step or word: it computes {shape}"
        ))
    )]
    NoSuchSum {
        /// The instruction.
        text: String,
        /// Shape of the matrix product, if the instruction computes one.
        shape: Option<ProductShape>,
        /// The site.
        site: Box<Site>,
    },
    /// The place did not keep the written value.
    #[error("the fault was not injected: {site} wrote {wanted:#010x} but read back {found:#010x}")]
    NotKept {
        /// The site.
        site: Box<Site>,
        /// The value written.
        wanted: u64,
        /// The value read back.
        found: u64,
    },
    /// The faulty run executed something that the embedded GPU does not implement.
    #[error("no outcome for {site}: in dispatch {dispatch}, {}", fault.report(None))]
    Gap {
        /// The site.
        site: Box<Site>,
        /// The dispatch.
        dispatch: u32,
        /// The unimplemented feature, and the location of its use.
        fault: Box<DeviceFault>,
    },
    /// A hook cannot inject this fault.
    #[error("a hook cannot inject {site}: {reason}")]
    Refused {
        /// The site.
        site: Box<Site>,
        /// The reason.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The hook could not be inserted into the code.
    #[error("cannot insert a hook for {site}: {reason}")]
    Rewrite {
        /// The site.
        site: Box<Site>,
        /// The reason.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The model's function did not compute a value.
    #[error("the fault was not injected: {reason}; at {site}")]
    Function {
        /// The site.
        site: Box<Site>,
        /// The reason.
        reason: FunctionError,
    },
    /// The hook's variables are invalid.
    #[error(transparent)]
    Variable(Box<dyn Error + Send + Sync>),
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn ended(fault: Option<&DeviceFault>) -> String {
    fault.map_or_else(String::new, |fault| format!(" before it ended: {}", fault.report(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_is_the_changed_bits() {
        let struck = InjectedChange { before: 0xf0f0_0001, after: 0, words: 1, absorbed: false };
        assert_eq!(struck.mask(), 0xf0f0_0001);
    }
}
