//! Homes for values that hooks ask for all through a kernel.

use crate::component::Component;
use crate::entry;
use crate::hook::{Body, BodyInst, EntryValue, InputValue};
use crate::site::{Home, Homes};
use flipwave_codeobj::{CodeObject, Descriptor};
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr};
use std::collections::BTreeSet;

/// What the hooks of a component ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Values that are only known when a kernel starts.
    pub entry: BTreeSet<EntryValue>,
    /// Addresses of hook data.
    pub data: bool,
}

impl Wants {
    /// Adds what a call asks for.
    pub fn add(&mut self, inputs: &[InputValue], body: Option<&Body>) {
        for input in inputs {
            match input {
                InputValue::Entry(value) => _ = self.entry.insert(*value),
                InputValue::Data { .. } => self.data = true,
                _ => {}
            }
        }
        let addresses = |inst: &BodyInst| matches!(inst, BodyInst::Address { .. });
        self.data |= body.is_some_and(|body| body.instructions.iter().any(addresses));
    }
}

/// Gives every wanted value registers that no function of the component names: SGPRs, or lanes of
/// a VGPR where there are none. The address of the data does without: it can be computed anywhere.
/// What is missing in the end are values that no home was found for.
pub fn choose(
    object: &CodeObject,
    target: &Target,
    component: &Component,
    wants: &Wants,
    data: Pc,
) -> Homes {
    let mut free = component.free();
    // Inputs that hardware sets at the start are overwritten by none of the homes.
    for kernel in component.kernels.iter().filter_map(|kernel| object.kernels().get(*kernel)) {
        let set = with_inputs(&kernel.descriptor, target, wants);
        for number in 0..set {
            free.remove(Register::Sgpr(Sgpr(number)));
        }
        for number in 0..3 {
            free.remove(Register::Vgpr(Vgpr(number)));
        }
    }
    let mut homes = Homes::default();
    let mut lanes = None;
    let kernels = component.kernels.iter().filter_map(|kernel| object.kernels().get(*kernel));
    let mut descriptors = kernels.map(|kernel| &kernel.descriptor);
    let enables = |own: &Descriptor| entry::enabled(own, target, &wants.entry, None).is_ok();
    // A kernel that has no room for more inputs goes without, and so do its calls.
    let entry = if descriptors.all(enables) { wants.entry.clone() } else { BTreeSet::new() };
    for value in &entry {
        let words = if *value == EntryValue::Kernarg { 2 } else { 1 };
        let home = match sgprs(&mut free, component, words) {
            Some(range) => Some(Home::Sgprs(range)),
            None => lane_home(&mut free, &mut lanes, words),
        };
        let Some(home) = home else { continue };
        homes.entry.insert(*value, home);
        match home {
            Home::Sgprs(range) => homes.registers.insert_range(range),
            Home::Lanes { vgpr, .. } => homes.registers.insert(Register::Vgpr(vgpr)),
        }
    }
    if wants.data
        && let Some(range) = sgprs(&mut free, component, 2)
    {
        homes.data = Some((range, data));
        homes.registers.insert_range(range);
    }
    homes
}

/// Scalar registers set at the start once what is wanted is enabled.
fn with_inputs(descriptor: &Descriptor, target: &Target, wants: &Wants) -> u8 {
    // Whether hooks will need scratch is not known yet.
    match entry::enabled(descriptor, target, &wants.entry, Some(0)) {
        Ok(enabled) => entry::initial_sgprs(&enabled, target),
        Err(_) => entry::initial_sgprs(descriptor, target),
    }
}

/// Free SGPRs in a row, of those that are allocated anyhow if there are.
pub fn sgprs(free: &mut RegisterSet, component: &Component, words: u8) -> Option<RegisterRange> {
    let mut best: Option<(bool, RegisterRange)> = None;
    for first in (0..target_limit()).step_by(words.into()) {
        let range = RegisterRange::new(Register::Sgpr(Sgpr(first)), words);
        if range.iter().count() == usize::from(words) && range.iter().all(|own| free.contains(own))
        {
            let is_there = range.iter().all(|own| component.allocated.contains(own));
            if best.is_none_or(|(best, _)| is_there && !best) {
                best = Some((is_there, range));
            }
        }
    }
    let (_, range) = best?;
    range.iter().for_each(|own| free.remove(own));
    Some(range)
}

/// One more than the highest number of an SGPR on any target.
fn target_limit() -> u8 {
    106
}

/// The next lanes of a free VGPR.
fn lane_home(free: &mut RegisterSet, lanes: &mut Option<(Vgpr, u8)>, words: u8) -> Option<Home> {
    if lanes.is_none_or(|(_, next)| next + words > 32) {
        let register = free.intersection(RegisterSet::VGPRS).iter().next()?;
        free.remove(register);
        if let Register::Vgpr(vgpr) = register {
            *lanes = Some((vgpr, 0));
        }
    }
    let (vgpr, next) = lanes.as_mut()?;
    let home = Home::Lanes { vgpr: *vgpr, first: *next, words };
    *next += words;
    Some(home)
}
