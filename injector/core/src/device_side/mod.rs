//! Faults injected by hooks in rewritten code, for any device.
//!
//! Only the instructions of the site have hooks, in code that only the dispatch of the site runs.
//! The code is made once for all sites that strike the same place at the same instruction; which
//! wave, which execution, which lanes and bits, the host writes into the hooks' variables.
//!
//! The result is that of [`crate::inject`], but for what counts instructions: hooks execute their
//! own, so that the statistics of the dispatch are others, and the watchdog stops an endless loop
//! somewhere else, after the fault has struck there another number of times. The limit of a
//! dispatch with hooks is the one given times the most instructions that run for one of the
//! program's: a run that ends within the limit without hooks ends with them, too, and an endless
//! loop does not; one that is slow but not endless may end where it would be stopped without
//! hooks. The code is at another address, and what happens to meet the code or the hooks'
//! variables may differ. So may waves that a fault makes race for longer than a turn of theirs.

mod calls;
mod found;
mod launch;
mod library;
mod orders;
mod reach;
pub(crate) mod refusal;
mod request;
mod rewriting;
mod site_hooks;
mod variables;

pub use launch::LaunchShape;
pub use reach::unreached_by_hooks;
pub use refusal::{Refusal, supports};
pub use site_hooks::{HookedCode, OrderError, SiteHooks};

use crate::inject::injection::Struck;
use crate::inject::run::{check, conclude, run};
use crate::site::{Place, When};
use crate::{Injection, InjectionError, Site, Workload};
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::hook::Variables;
use flipwave_sim::{EmbeddedGpu, Policy};
use orders::orders;
use request::Request;
use rewriting::{Rewriting, Rewritten, rewrite};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use variables::copy_variables;

/// Waves of a workgroup at most: 1024 work-items in waves of 32.
const WORKGROUP_WAVES: u64 = 32;
/// How far a branch leads, in bytes (ISA documents, "S_BRANCH": 16 bits, signed, in words).
const BRANCH_REACH: u64 = 1 << 17;
/// Waves of a dispatch at most that a permanent fault keeps count of.
const MOST_WAVES: u64 = 1 << 20;
/// Places that stay free for what a device places for a dispatch: arguments, packets, scratch. The
/// numbers of the places after them differ in at least three bits from those of the first 32, so
/// that two inverted bits do not lead from these to the code.
const FREE_PLACES: usize = 224;

/// Injects faults into one workload by hooks, and keeps the code that it rewrites for that.
pub struct HookInjector<'a> {
    workload: &'a Workload,
    compiler: HookCompiler,
    rewritten: HashMap<Request, Rewritten>,
}

/// A rewriting on the device of one injection.
type Loaded = BTreeMap<u32, ModuleId>;

impl<'a> HookInjector<'a> {
    /// Nothing rewritten yet.
    pub fn new(workload: &'a Workload, compiler: &HookCompiler) -> HookInjector<'a> {
        HookInjector { workload, compiler: compiler.clone(), rewritten: HashMap::new() }
    }

    /// How many pieces of code have been rewritten.
    pub fn rewritten(&self) -> usize {
        self.rewritten.len()
    }

    /// Runs the workload with a fault at `site`. `limits` are the watchdogs of the dispatches in
    /// wave instructions of the program, as for [`crate::inject`].
    ///
    /// # Errors
    /// [`InjectionError`] whenever the fault did not take place as the site says;
    /// [`InjectionError::Refused`] where a hook cannot do that.
    pub fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError> {
        let workload = self.workload;
        check(workload, site, limits)?;
        self.check_supported(site)?;
        let device = workload.start()?;
        let mut loaded = Loaded::new();
        let mut struck: Option<Struck> = None;
        let ending = run(workload, limits, device, |index, device, dispatch| {
            let is_struck = site.event().is_none_or(|event| event.dispatch == index);
            let rewriting = if is_struck { self.rewriting(site, dispatch.module)? } else { None };
            let Some(rewriting) = rewriting else {
                return Ok(workload.dispatch(device, dispatch)?);
            };
            let own = Run { workload, site, rewriting };
            let (completion, found) = own.dispatch(device, dispatch, &mut loaded)?;
            struck = struck.into_iter().chain(found).reduce(found::together);
            Ok::<Completion, InjectionError>(completion)
        })?;
        conclude(site, struck.map(Ok), ending)
    }

    /// The code that the fault at `site` takes, of each module that it strikes in, to be run by
    /// someone else than this workload's device. `limits` as for [`HookInjector::inject`].
    ///
    /// # Errors
    /// As [`HookInjector::inject`], for what shows before the run.
    pub fn hooked_code(
        &mut self,
        site: &Site,
        limits: &[u64],
    ) -> Result<Vec<HookedCode>, InjectionError> {
        let workload = self.workload;
        check(workload, site, limits)?;
        self.check_supported(site)?;
        let dispatches = (0..).zip(&workload.program.dispatches);
        let is_struck = |index| site.event().is_none_or(|event| event.dispatch == index);
        let modules: BTreeSet<u32> = dispatches
            .filter_map(|(index, dispatch)| is_struck(index).then_some(dispatch.module.0))
            .collect();
        let mut all = Vec::new();
        for module in modules.into_iter().map(ModuleId) {
            let Some(object) = workload.device.code_object(module) else { continue };
            if let Some(rewriting) = self.rewriting(site, module)? {
                all.push(HookedCode::new(object, rewriting));
            }
        }
        Ok(all)
    }

    fn check_supported(&self, site: &Site) -> Result<(), InjectionError> {
        let is_emulated = !self.workload.guests.is_empty();
        let emulated = if is_emulated { Err(Refusal::Emulated) } else { Ok(()) };
        let supported = supports(site).and(emulated);
        supported.map_err(|reason| InjectionError::Refused { site: Box::new(*site), reason })
    }

    /// The code of a module with the hooks of a site; `None` where the module has no place for
    /// them.
    fn rewriting(
        &mut self,
        site: &Site,
        module: ModuleId,
    ) -> Result<Option<&Rewriting>, InjectionError> {
        let request =
            Request { kernel: self.kernel_alone(site, module), ..Request::new(module, site) };
        if !self.rewritten.contains_key(&request) {
            let object = self.workload.device.code_object(module).ok_or_else(|| {
                DeviceError::Internal(format!("no module {} is loaded", module.0))
            })?;
            let rewritten = match self.waves(site, module) {
                Ok(waves) => {
                    rewrite(object, &request, waves, &self.compiler).map_err(|reason| {
                        InjectionError::Rewrite { site: Box::new(*site), reason: Box::new(reason) }
                    })?
                }
                Err(refusal) => Rewritten::Refused(refusal),
            };
            self.rewritten.insert(request, rewritten);
        }
        match self.rewritten.get(&request) {
            Some(Rewritten::Code(rewriting)) => Ok(Some(rewriting)),
            Some(Rewritten::Refused(reason)) => {
                Err(InjectionError::Refused { site: Box::new(*site), reason: reason.clone() })
            }
            Some(Rewritten::Nothing) | None => Ok(None),
        }
    }

    /// The kernel that a site is in, by its index, if its hooks go into it alone: what follows the code of a
    /// large library no branch reaches.
    fn kernel_alone(&self, site: &Site, module: ModuleId) -> Option<usize> {
        let dispatch = self.workload.program.dispatches.get(site.event()?.dispatch as usize)?;
        let object = self.workload.device.code_object(module)?;
        let is_large = object.text().map(|own| own.size).sum::<u64>() > BRANCH_REACH;
        let kernel = || object.kernels().iter().position(|own| *own.name == *dispatch.kernel);
        (is_large && dispatch.module == module && object.can_extract_kernels()).then(kernel)?
    }

    /// How many waves a site's hooks keep count of.
    fn waves(&self, site: &Site, module: ModuleId) -> Result<u64, Refusal> {
        let When::Always(_) = site.when else { return Ok(WORKGROUP_WAVES) };
        let dispatches = self.workload.program.dispatches.iter().filter(|own| own.module == module);
        let waves = dispatches.map(|dispatch| shape(self.workload, dispatch).waves()).max();
        let waves = waves.unwrap_or(0);
        if waves > MOST_WAVES {
            return Err(Refusal::Waves { waves, most: MOST_WAVES });
        }
        Ok(waves)
    }
}

fn shape(workload: &Workload, dispatch: &Dispatch) -> LaunchShape {
    let object = workload.device.code_object(dispatch.module);
    let kernel = object.and_then(|object| object.kernel(&dispatch.kernel));
    let declared_lds = kernel.map_or(0, |own| own.descriptor.group_segment_fixed_size);
    LaunchShape::of_dispatch(dispatch, workload.wave_lanes(dispatch), declared_lds)
}

/// One dispatch with hooks.
struct Run<'a> {
    workload: &'a Workload,
    site: &'a Site,
    rewriting: &'a Rewriting,
}

impl Run<'_> {
    /// Runs it; how it ended, in terms of the code as it was, and what was struck.
    fn dispatch(
        &self,
        device: &mut EmbeddedGpu,
        dispatch: &Dispatch,
        loaded: &mut Loaded,
    ) -> Result<(Completion, Option<Struck>), InjectionError> {
        let Rewriting { data, rewritten, slowdown, .. } = self.rewriting;
        let shape = shape(self.workload, dispatch);
        let place = self.place(device, &shape)?;
        let module = match loaded.get(&dispatch.module.0) {
            Some(module) => {
                Variables::reset(device, *module, data)?;
                *module
            }
            None => {
                let module = load_apart(device, self.workload, self.rewriting)?;
                device.stand_in(module, dispatch.module)?;
                loaded.insert(dispatch.module.0, module);
                module
            }
        };
        let refused = |reason| InjectionError::Refused { site: Box::new(*self.site), reason };
        let orders = orders(self.site, &shape, self.workload.simds(), place).map_err(refused)?;
        for (variable, bytes) in &orders {
            Variables::write(device, module, data, variable, bytes)?;
        }
        let instruction_limit = dispatch.instruction_limit.saturating_mul(*slowdown);
        // What a wave did in one turn it does in one turn still, so that waves that share what is
        // struck come to it in the same order.
        let policy = device.policy();
        let longer = |turn: u64| turn.saturating_mul(*slowdown);
        let (wave_turn, first_turn) = (longer(policy.wave_turn), policy.first_turn.map(longer));
        // Hooks may take registers that let fewer workgroups be resident: those that wait for each
        // other would wait for ever, which is no outcome of the fault.
        let resident_workgroups = device.residency(dispatch)?.workgroups;
        device.set_policy(Policy { wave_turn, first_turn, resident_workgroups, ..policy });
        copy_variables(device, dispatch.module, module)?;
        let completion = self
            .workload
            .dispatch(device, &Dispatch { module, instruction_limit, ..dispatch.clone() })?;
        copy_variables(device, module, dispatch.module)?;
        device.set_policy(policy);
        let found = found::found(&Variables::read(device, module, data)?)?;
        let completion = match completion {
            Completion::Faulted(fault) => {
                Completion::Faulted(fault.map_locations(|place| rewritten.layout.old_place(place)))
            }
            completed => completed,
        };
        Ok((completion, found))
    }

    /// Where that is which is struck and is no register: its address, or its offset in LDS.
    fn place(&self, device: &EmbeddedGpu, shape: &LaunchShape) -> Result<u64, InjectionError> {
        let buffer =
            |number: u32| self.workload.program.buffers.get(number as usize).map(|own| own.address);
        let place = place_of(self.site, shape, buffer);
        let found = place.filter(|address| {
            let is_memory = matches!(self.site.place, Place::Memory { .. });
            !is_memory || device.read(Address(*address), &mut [0; 4]).is_ok()
        });
        let place = self.site.place;
        found.ok_or(InjectionError::NoSuchPlace { place, site: Box::new(*self.site) })
    }
}

/// The address, or the offset in LDS, of what a site strikes and is no register; 0 for those.
/// Nothing where there is no such place.
fn place_of(
    site: &Site,
    shape: &LaunchShape,
    buffer: impl FnOnce(u32) -> Option<Address>,
) -> Option<u64> {
    match site.place {
        Place::Memory { buffer: number, offset } => buffer(number)?.0.checked_add(offset),
        Place::Lds(offset) => {
            let offset = u64::from(offset);
            Some(offset).filter(|offset| offset + 4 <= shape.lds_bytes.into())
        }
        _ => Some(0),
    }
}

/// Loads code after the first free places of a device, so that what the device places for a
/// dispatch lies where it would lie without that code, and where no memory is mapped later.
fn load_apart(
    device: &mut EmbeddedGpu,
    workload: &Workload,
    rewriting: &Rewriting,
) -> Result<ModuleId, DeviceError> {
    let mut free = Vec::new();
    for (address, bytes) in workload.program.changes.mapped() {
        // What is there now is not free either.
        free.extend(device.allocate_at(address, bytes).is_ok().then_some(address));
    }
    for _ in 0..FREE_PLACES {
        free.push(device.allocate(1)?);
    }
    let module = device.load(&rewriting.rewritten.object)?;
    for place in free {
        device.free(place)?;
    }
    Ok(module)
}
