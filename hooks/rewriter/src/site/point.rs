//! A hook call, the point where it stands, and why it may not.

use super::homes::Homes;
use crate::dataflow::{IndexMode, Live, Outstanding};
use crate::hook::{Body, HookData, HookError, InputValue, Mask};
use flipwave_isa::{Pc, RegisterRange, RegisterSet};

/// A hook and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct SiteCall<'a> {
    /// The hook.
    pub body: &'a Body,
    /// A value for each input of the body.
    pub inputs: &'a [InputValue],
    /// A place for each output of the body, changed for good.
    pub results: &'a [RegisterRange],
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// Where the hook's data lies.
    pub data: Pc,
    /// Its variables.
    pub symbols: &'a HookData,
}

/// A point between two instructions.
#[derive(Clone, Copy, Debug)]
pub struct InsertionPoint<'a> {
    /// What is live there.
    pub live: Live,
    /// Loads that may be outstanding.
    pub outstanding: &'a Outstanding,
    /// Whether vector instructions index registers by M0 (gfx8 and gfx9).
    pub index_mode: IndexMode,
    /// Where values are kept.
    pub homes: &'a Homes,
    /// Registers that hooks at any site ask for though the program is done with them.
    pub asked: RegisterSet,
}

/// Why a hook cannot be called at a site.
#[derive(Debug, thiserror::Error)]
pub enum CallRefusal {
    /// Too few registers.
    #[error("no {0} is left for the hook, even with the kernel's allocation grown to its most")]
    Registers(&'static str),
    /// A value that cannot be had.
    #[error("{0}")]
    Value(String),
    /// Vector instructions there may index registers by M0, or not.
    #[error("whether GPR-index mode is on there is not known")]
    IndexMode,
    /// The hook.
    #[error(transparent)]
    Hook(#[from] HookError),
}
