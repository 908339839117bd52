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
mod library;
mod orders;
mod refusal;
mod request;
mod rewriting;
mod variables;

pub use refusal::{Refusal, supports};

use crate::injection::{Struck, check, conclude, run_from};
use crate::site::{Lanes, Place, When};
use crate::{Injection, InjectionError, Site, Workload};
use flipwave_device::{Completion, Device, DeviceError, DeviceFault, Dispatch, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::variables::Variables;
use flipwave_sim::{EmbeddedGpu, Policy};
use request::Request;
use rewriting::{Rewriting, Rewritten, Sources, rewrite};
use std::collections::{BTreeMap, HashMap};
use variables::copy_variables;

/// Waves of a workgroup at most: 1024 work-items in waves of 32.
const WORKGROUP_WAVES: u64 = 32;
/// Waves of a dispatch at most that a permanent fault keeps count of.
const MOST_WAVES: u64 = 1 << 20;
/// Places that stay free for what a device places for a dispatch: arguments, packets, scratch. The
/// numbers of the places behind them differ in at least three bits from those of the first 32, so
/// that two inverted bits do not lead from these to the code.
const FREE_PLACES: usize = 224;

/// Injects faults into one workload by hooks, and keeps the code that it rewrites for that.
pub struct HookInjector<'a> {
    workload: &'a Workload,
    compiler: HookCompiler,
    sources: Sources,
    rewritten: HashMap<Request, Rewritten>,
}

/// A rewriting on the device of one injection.
type Loaded = BTreeMap<u32, ModuleId>;

impl<'a> HookInjector<'a> {
    /// Nothing rewritten yet.
    pub fn new(workload: &'a Workload, compiler: &HookCompiler) -> HookInjector<'a> {
        let (sources, rewritten) = (Sources::new(), HashMap::new());
        HookInjector { workload, compiler: compiler.clone(), sources, rewritten }
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
        let refused = |reason| InjectionError::Refused { site: Box::new(*site), reason };
        supports(site).map_err(refused)?;
        if !workload.guests.is_empty() {
            return Err(refused(Refusal::Emulated));
        }
        let device = workload.start()?;
        let mut loaded = Loaded::new();
        let mut struck: Option<Struck> = None;
        let ending =
            run_from(workload, limits, 0, device, Vec::new(), |index, device, dispatch| {
                let is_struck = site.event().is_none_or(|event| event.dispatch == index);
                let rewriting =
                    if is_struck { self.rewriting(site, dispatch.module)? } else { None };
                let Some(rewriting) = rewriting else { return Ok(device.dispatch(dispatch)?) };
                let own = Run { workload, site, rewriting };
                let (completion, found) = own.dispatch(device, dispatch, &mut loaded)?;
                struck = struck.into_iter().chain(found).reduce(found::together);
                Ok::<Completion, InjectionError>(completion)
            })?;
        conclude(site, struck.map(Ok), ending)
    }

    /// The code of a module with the hooks of a site; `None` where the module has no place for
    /// them.
    fn rewriting(
        &mut self,
        site: &Site,
        module: ModuleId,
    ) -> Result<Option<&Rewriting>, InjectionError> {
        let request = Request::new(module, site);
        if !self.rewritten.contains_key(&request) {
            let object = self.workload.device.code_object(module).ok_or_else(|| {
                DeviceError::Internal(format!("no module {} is loaded", module.0))
            })?;
            let rewritten = match self.waves(site, module) {
                Ok(waves) => rewrite(object, &request, waves, &self.compiler, &mut self.sources)
                    .map_err(|reason| InjectionError::Rewrite {
                        site: Box::new(*site),
                        reason: Box::new(reason),
                    })?,
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

    /// How many waves a site's hooks keep count of.
    fn waves(&self, site: &Site, module: ModuleId) -> Result<u64, Refusal> {
        let When::Always(_) = site.when else { return Ok(WORKGROUP_WAVES) };
        let dispatches = self.workload.dispatches.iter().filter(|own| own.module == module);
        let waves = dispatches.map(|dispatch| {
            let lanes = self.workload.wave_lanes(dispatch);
            let workgroups = (0..3).map(|axis| {
                u64::from(dispatch.grid[axis].div_ceil(dispatch.workgroup[axis].max(1)))
            });
            workgroups.product::<u64>() * u64::from(waves_of_workgroup(dispatch, lanes))
        });
        let waves = waves.max().unwrap_or(0);
        if waves > MOST_WAVES {
            return Err(Refusal::Waves { waves, most: MOST_WAVES });
        }
        Ok(waves)
    }
}

/// Waves of a full workgroup.
fn waves_of_workgroup(dispatch: &Dispatch, lanes: u8) -> u32 {
    dispatch.workgroup.iter().product::<u32>().div_ceil(lanes.into())
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
        let Rewriting { data, layout, slowdown, .. } = self.rewriting;
        let place = self.place(device, dispatch)?;
        let module = match loaded.get(&dispatch.module.0) {
            Some(module) => {
                Variables::reset(device, *module, data)?;
                *module
            }
            None => {
                let module = load_apart(device, self.workload, self.rewriting)?;
                loaded.insert(dispatch.module.0, module);
                module
            }
        };
        self.give_orders(device, dispatch, module, place)?;
        let instruction_limit = dispatch.instruction_limit.saturating_mul(*slowdown);
        // What a wave did in one turn it does in one turn still, so that waves that share what is
        // struck come to it in the same order.
        let policy = device.policy();
        let wave_turn = policy.wave_turn.saturating_mul(*slowdown);
        device.set_policy(Policy { wave_turn, ..policy });
        copy_variables(device, dispatch.module, module)?;
        let completion =
            device.dispatch(&Dispatch { module, instruction_limit, ..dispatch.clone() })?;
        copy_variables(device, module, dispatch.module)?;
        device.set_policy(policy);
        let found = found::found(&Variables::read(device, module, data)?)?;
        let completion = match completion {
            Completion::Faulted(fault) => {
                Completion::Faulted(DeviceFault { place: layout.old_place(fault.place), ..fault })
            }
            completed => completed,
        };
        Ok((completion, found))
    }

    /// Where that is which is struck and is no register: its address, or its offset in LDS.
    fn place(&self, device: &EmbeddedGpu, dispatch: &Dispatch) -> Result<u64, InjectionError> {
        let place = self.site.place;
        let found = match place {
            Place::Memory { buffer, offset } => {
                let start = self.workload.buffers.get(buffer as usize).map(|own| own.address.0);
                let address = start.and_then(|start| start.checked_add(offset));
                address.filter(|address| {
                    device.read(flipwave_device::Address(*address), &mut [0; 4]).is_ok()
                })
            }
            Place::Lds(offset) => {
                let object = self.workload.device.code_object(dispatch.module);
                let kernel = object.and_then(|object| object.kernel(&dispatch.kernel));
                let own = kernel.map_or(0, |own| own.descriptor.group_segment_fixed_size);
                let bytes = u64::from(own) + u64::from(dispatch.dynamic_lds);
                Some(u64::from(offset)).filter(|offset| offset + 4 <= bytes)
            }
            _ => Some(0),
        };
        found.ok_or(InjectionError::NoSuchPlace { place, site: Box::new(*self.site) })
    }

    /// Tells the hooks what to strike, and when.
    fn give_orders(
        &self,
        device: &mut EmbeddedGpu,
        dispatch: &Dispatch,
        module: ModuleId,
        place: u64,
    ) -> Result<(), InjectionError> {
        let (site, data) = (self.site, &self.rewriting.data);
        let lanes = self.workload.wave_lanes(dispatch);
        let is_missing = match site.lanes {
            Some(Lanes::One(lane)) => lane.0 >= lanes,
            Some(Lanes::Mask(mask)) => mask.0 & !(u64::MAX >> (64 - lanes)) != 0,
            _ => false,
        };
        if is_missing {
            let reason = Refusal::Lanes { lanes };
            return Err(InjectionError::Refused { site: Box::new(*site), reason });
        }
        let (simds, width) = self.workload.simds();
        let fault = orders::fault(site, lanes, width, place);
        Variables::write(device, module, data, "fault", &fault)?;
        match &site.when {
            When::At(event) => {
                Variables::write(device, module, data, "event", &orders::event(event))?;
            }
            When::Always(unit) => {
                let workgroups = crate::population::workgroups(dispatch);
                let waves = waves_of_workgroup(dispatch, lanes);
                let unit = orders::unit(unit, workgroups, waves, simds);
                Variables::write(device, module, data, "unit", &unit)?;
            }
        }
        Ok(())
    }
}

/// Loads code behind the first free places of a device, so that what the device places for a
/// dispatch lies where it would lie without that code, and where no memory is mapped later.
fn load_apart(
    device: &mut EmbeddedGpu,
    workload: &Workload,
    rewriting: &Rewriting,
) -> Result<ModuleId, DeviceError> {
    let mut free = Vec::new();
    for (address, bytes) in workload.changes.mapped() {
        // What is there now is not free either.
        free.extend(device.allocate_at(address, bytes).is_ok().then_some(address));
    }
    for _ in 0..FREE_PLACES {
        free.push(device.allocate(1)?);
    }
    let module = device.load(&rewriting.object)?;
    for place in free {
        device.free(place)?;
    }
    Ok(module)
}
