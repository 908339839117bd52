//! Hook calls, the state of the program where they are inserted, and reasons to refuse them.

use super::reserved::ReservedRegisters;
use crate::dataflow::{IndexMode, Live, Outstanding};
use crate::hook::{Body, HookData, HookError, InputValue, Mask};
use flipwave_isa::{Pc, RegisterRange, RegisterSet};

/// A hook with its inputs and results.
#[derive(Clone, Copy, Debug)]
pub struct SiteCall<'a> {
    /// The hook.
    pub body: &'a Body,
    /// A value for each input of the body.
    pub inputs: &'a [InputValue],
    /// Registers for each output of the body, which change permanently.
    pub results: &'a [RegisterRange],
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// Address of the hook's data.
    pub data: Pc,
    /// The hook's variables.
    pub symbols: &'a HookData,
}

/// The state of the program where a call is inserted.
#[derive(Clone, Copy, Debug)]
pub struct InsertionPoint<'a> {
    /// Live registers.
    pub live: Live,
    /// Loads that may be outstanding.
    pub outstanding: &'a Outstanding,
    /// GPR-index mode: whether vector instructions index registers by M0 (gfx8 and gfx9).
    pub index_mode: IndexMode,
    /// Reserved registers of the component.
    pub reserved: &'a ReservedRegisters,
    /// Registers that hooks of the component access although they are dead in the program.
    pub accessed_dead: RegisterSet,
}

/// Reasons to refuse a hook call.
#[derive(Debug, thiserror::Error)]
pub enum CallRefusal {
    /// Too few registers are free.
    #[error("no free {0} for the hook, even with the maximum allocation of the kernel")]
    Registers(&'static str),
    /// A value is not available.
    #[error("{0}")]
    Value(String),
    /// GPR-index mode is unknown.
    #[error("it is unknown whether GPR-index mode is on here")]
    IndexMode,
    /// The hook cannot be instantiated.
    #[error(transparent)]
    Hook(#[from] HookError),
}
