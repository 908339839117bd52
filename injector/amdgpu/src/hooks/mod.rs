//! Faults injected by hooks in rewritten code, on any device.
//!
//! Only the instruction of the site has hooks, in code that only the dispatch of the site runs. The
//! code is rewritten once for all sites with the same place and instruction; the host writes the wave,
//! the execution, the lanes and the bits into the hooks' variables.
//!
//! The result equals that of [`flipwave_injector::inject`], except for instruction counts: hooks execute
//! instructions, so the statistics of the dispatch differ, and the watchdog stops an endless loop at a
//! different point, after a different number of strikes. The limit of a dispatch with hooks is the
//! given limit times the maximum number of instructions executed per instruction of the program. A run
//! that ends within its limit without hooks therefore also ends with hooks, and an endless loop is
//! still stopped, but a slow run may complete that would be stopped without hooks. The code is at a
//! different address, so faulty accesses to the code or to the hooks' variables may have different
//! results. So may data races of waves that a fault delays by more than their turn.

mod calls;
mod library;
mod reach;
pub(crate) mod refusal;
mod request;
mod rewriting;
mod site_hooks;
mod variables;

pub use flipwave_injector::hooks::LaunchShape;
pub use reach::unreached_by_hooks;
pub use refusal::{Refusal, supports};
pub use site_hooks::{HookedCode, OrderError, SiteHooks};

use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, DeviceFault, Dispatch, ModuleId};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::hook::{VariableError, Variables};
use flipwave_injector::hooks::{WAVES, found_in, orders, place_of, together};
use flipwave_injector::method::{check, conclude, run};
use flipwave_injector::{Action, Changes, FaultFunction, FunctionError, InjectedChange};
use flipwave_injector::{Injection, InjectionError, Place, Site, When, Workload};
use flipwave_machine::Simulator;
use flipwave_sim::{EmbeddedGpu, Policy};
use request::Request;
use rewriting::{Rewriting, Rewritten, rewrite};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use variables::copy_variables;

/// Maximum number of waves of a workgroup: 1024 work-items in waves of 32.
const WORKGROUP_WAVES: u64 = 32;
/// Reach of a branch in bytes (ISA documents, "S_BRANCH": 16 bits, signed, in words).
const BRANCH_REACH: u64 = 1 << 17;
/// Maximum number of waves of a dispatch for permanent faults.
const MOST_WAVES: u64 = 1 << 20;
/// Number of allocations reserved for what a device allocates for a dispatch: arguments, packets,
/// scratch. The numbers of later allocations differ in at least three bits from those of the first 32,
/// so that inverting two bits of an address does not lead from those into the code.
const FREE_PLACES: usize = 224;

/// Injects faults into one workload with hooks, and caches the rewritten code.
pub struct HookInjector<'a> {
    workload: &'a Workload,
    compiler: HookCompiler,
    rewritten: HashMap<Request, Rewritten>,
}

/// Loaded rewritten modules on the device of one injection, by original module.
type Loaded = BTreeMap<u32, ModuleId>;

impl<'a> HookInjector<'a> {
    /// Creates an injector without rewritten code.
    pub fn new(workload: &'a Workload, compiler: &HookCompiler) -> HookInjector<'a> {
        HookInjector { workload, compiler: compiler.clone(), rewritten: HashMap::new() }
    }

    /// Number of rewritten code objects.
    pub fn rewritten(&self) -> usize {
        self.rewritten.len()
    }

    /// Runs the workload with a fault at `site`. `limits` are the watchdog limits of the dispatches in
    /// wave instructions of the original program, as for [`flipwave_injector::inject`].
    ///
    /// # Errors
    /// [`InjectionError`] if the fault was not injected as the site describes;
    /// [`InjectionError::Refused`] if a hook cannot inject it.
    pub fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError> {
        let workload = self.workload;
        check(workload, site, limits)?;
        self.check_supported(site)?;
        let device = workload.start()?;
        let mut loaded = Loaded::new();
        let mut struck: Option<InjectedChange> = None;
        let ending = run(workload, limits, device, |index, device, dispatch| {
            let is_struck = site.event().is_none_or(|event| event.dispatch == index);
            let rewriting = if is_struck { self.rewriting(site, dispatch.module)? } else { None };
            let Some(rewriting) = rewriting else {
                return Ok(workload.dispatch(device, dispatch)?);
            };
            let run = Run { workload, site, rewriting };
            let (completion, found) = run.dispatch(device, dispatch, &mut loaded)?;
            struck = struck.into_iter().chain(found).reduce(together);
            Ok::<Completion, InjectionError>(completion)
        })?;
        conclude(site, struck.map(Ok), ending)
    }

    /// Returns the rewritten code of each module that the fault at `site` strikes, to be run by a
    /// device other than the workload's. `limits` as for [`HookInjector::inject`].
    ///
    /// # Errors
    /// As [`HookInjector::inject`], for errors detected before the run.
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
            let Some(object) = code_object(workload, module) else { continue };
            if let Some(rewriting) = self.rewriting(site, module)? {
                all.push(HookedCode::new(object, rewriting));
            }
        }
        Ok(all)
    }

    fn check_supported(&self, site: &Site) -> Result<(), InjectionError> {
        let mut dispatches = self.workload.program.dispatches.iter();
        let is_emulated =
            dispatches.any(|dispatch| self.workload.device.is_rewritten(dispatch.module));
        let emulated = if is_emulated { Err(Refusal::Emulated) } else { Ok(()) };
        let supported = supports(site).and(emulated);
        supported.map_err(|reason| refused(site, reason))
    }

    /// The code of a module with the hooks of a site; `None` if the module does not contain the
    /// instruction.
    fn rewriting(
        &mut self,
        site: &Site,
        module: ModuleId,
    ) -> Result<Option<&Rewriting>, InjectionError> {
        let request =
            Request { kernel: self.kernel_alone(site, module), ..Request::new(module, site) };
        if !self.rewritten.contains_key(&request) {
            let object = code_object(self.workload, module).ok_or_else(|| {
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
            Some(Rewritten::Refused(reason)) => Err(refused(site, reason.clone())),
            Some(Rewritten::Nothing) | None => Ok(None),
        }
    }

    /// Index of the site's kernel if only this kernel is rewritten, because branches cannot reach code
    /// appended to a large library.
    fn kernel_alone(&self, site: &Site, module: ModuleId) -> Option<usize> {
        let dispatch = self.workload.program.dispatches.get(site.event()?.dispatch as usize)?;
        let object = code_object(self.workload, module)?;
        let is_large = object.text().map(|section| section.size).sum::<u64>() > BRANCH_REACH;
        let kernel = || object.kernels().iter().position(|kernel| *kernel.name == *dispatch.kernel);
        (is_large && dispatch.module == module && object.can_extract_kernels()).then(kernel)?
    }

    /// Number of waves for which a site's hooks keep state.
    fn waves(&self, site: &Site, module: ModuleId) -> Result<u64, Refusal> {
        let When::Always(_) = site.when else { return Ok(WORKGROUP_WAVES) };
        let dispatches =
            self.workload.program.dispatches.iter().filter(|dispatch| dispatch.module == module);
        let waves = dispatches.map(|dispatch| shape(self.workload, dispatch).waves()).max();
        let waves = waves.unwrap_or(0);
        if waves > MOST_WAVES {
            return Err(Refusal::Waves { waves, most: MOST_WAVES });
        }
        Ok(waves)
    }
}

/// A code object of the workload, which must be one of the embedded GPU.
fn code_object(workload: &Workload, module: ModuleId) -> Option<&CodeObject> {
    workload.device.downcast::<EmbeddedGpu>()?.code_object(module)
}

/// The device of a run as an embedded GPU.
///
/// # Errors
/// [`DeviceError::Internal`] for another device.
fn gpu_mut(device: &mut Simulator) -> Result<&mut EmbeddedGpu, DeviceError> {
    let other = || DeviceError::Internal("hooks run only on an AMD GPU".into());
    device.downcast_mut::<EmbeddedGpu>().ok_or_else(other)
}

/// The error for a site that hooks cannot strike.
fn refused(site: &Site, reason: Refusal) -> InjectionError {
    InjectionError::Refused { site: Box::new(*site), reason: Box::new(reason) }
}

/// The error for invalid variables of hooks.
fn variable(error: VariableError) -> InjectionError {
    InjectionError::Variable(Box::new(error))
}

fn shape(workload: &Workload, dispatch: &Dispatch) -> LaunchShape {
    let object = code_object(workload, dispatch.module);
    let kernel = object.and_then(|object| object.kernel(&dispatch.kernel));
    let declared_lds = kernel.map_or(0, |kernel| kernel.descriptor.group_segment_fixed_size);
    LaunchShape::of_dispatch(dispatch, workload.device.wave_lanes(dispatch), declared_lds)
}

/// A dispatch with hooks.
struct Run<'a> {
    workload: &'a Workload,
    site: &'a Site,
    rewriting: &'a Rewriting,
}

impl Run<'_> {
    /// Runs the dispatch. Returns how it ended, in terms of the original code, and the values struck.
    fn dispatch(
        &self,
        simulator: &mut Simulator,
        dispatch: &Dispatch,
        loaded: &mut Loaded,
    ) -> Result<(Completion, Option<InjectedChange>), InjectionError> {
        let Rewriting { data, rewritten, slowdown, allowance, .. } = self.rewriting;
        let shape = shape(self.workload, dispatch);
        let device = gpu_mut(simulator)?;
        let place = self.place(device, &shape)?;
        let module = match loaded.get(&dispatch.module.0) {
            Some(module) => {
                Variables::reset(device, *module, data).map_err(variable)?;
                *module
            }
            None => {
                let changes = &self.workload.program.changes;
                let module = load_apart(device, changes, &rewritten.object)?;
                device.stand_in(module, dispatch.module)?;
                loaded.insert(dispatch.module.0, module);
                module
            }
        };
        let orders = orders(self.site, &shape, self.workload.simds(), place);
        let orders = orders.map_err(|reason| refused(self.site, reason.into()))?;
        for (name, bytes) in &orders {
            Variables::write(device, module, data, name, bytes).map_err(variable)?;
        }
        let instruction_limit = dispatch.instruction_limit.saturating_mul(*slowdown);
        let instruction_limit = instruction_limit.saturating_add(*allowance);
        // Waves keep the amount of original work per turn, so that waves sharing the struck state reach
        // it in the same order.
        let policy = device.policy();
        let longer = |turn: u64| turn.saturating_mul(*slowdown);
        let (wave_turn, first_turn) = (longer(policy.wave_turn), policy.first_turn.map(longer));
        // Hooks may need registers that reduce the number of resident workgroups: workgroups that wait
        // for each other would then deadlock, which is not an outcome of the fault.
        let resident_workgroups = device.residency(dispatch)?.workgroups;
        device.set_policy(Policy { wave_turn, first_turn, resident_workgroups, ..policy });
        copy_variables(device, dispatch.module, module)?;
        let completion = self
            .workload
            .dispatch(simulator, &Dispatch { module, instruction_limit, ..dispatch.clone() })?;
        let device = gpu_mut(simulator)?;
        copy_variables(device, module, dispatch.module)?;
        device.set_policy(policy);
        let variables = Variables::read(device, module, data).map_err(variable)?;
        let found = found_in(&variables.numbers(WAVES).map_err(variable)?);
        // An endless loop of the program may also end in a hook, but only after the fault.
        if let (Action::Function { function, .. }, Completion::Faulted(fault)) =
            (self.site.action, &completion)
            && rewritten.claims.inserted_for(fault.place.pc).is_some()
            && (found.is_none() || !fault.cause.is_hang())
        {
            return Err(function_failed(self.site, function, fault));
        }
        let completion = match completion {
            Completion::Faulted(fault) => Completion::Faulted(
                fault.map_locations(|place| rewritten.layout.original_location(place)),
            ),
            completed => completed,
        };
        Ok((completion, found))
    }

    /// The address of the struck memory, or its offset in LDS.
    fn place(&self, device: &EmbeddedGpu, shape: &LaunchShape) -> Result<u64, InjectionError> {
        let buffer = |number: u32| {
            self.workload.program.buffers.get(number as usize).map(|buffer| buffer.address)
        };
        let place = place_of(self.site, shape, buffer);
        let found = place.filter(|address| {
            let is_memory = matches!(self.site.place, Place::Memory { .. });
            !is_memory || device.read(Address(*address), &mut [0; 4]).is_ok()
        });
        let place = self.site.place;
        found.ok_or(InjectionError::NoSuchPlace { place, site: Box::new(*self.site) })
    }
}

/// The error for a function that ends with a device fault when hooks call it.
fn function_failed(site: &Site, function: FaultFunction, fault: &DeviceFault) -> InjectionError {
    let message = format!("{}: its function failed on the GPU: {fault}", function.source().file);
    let reason = FunctionError { name: function.name(), message };
    InjectionError::Function { site: Box::new(*site), reason }
}

/// Loads code behind reserved allocations, so that the device's allocations for a dispatch have the
/// same addresses as without that code, and where no memory is mapped later.
///
/// # Errors
/// [`DeviceError`] if the device rejects the code.
pub fn load_apart(
    device: &mut EmbeddedGpu,
    changes: &Changes,
    object: &CodeObject,
) -> Result<ModuleId, DeviceError> {
    let mut free = Vec::new();
    for (address, bytes) in changes.mapped() {
        // Memory that is mapped now is not free either.
        free.extend(device.allocate_at(address, bytes).is_ok().then_some(address));
    }
    for _ in 0..FREE_PLACES {
        free.push(device.allocate(1)?);
    }
    let module = device.load(object)?;
    for place in free {
        device.free(place)?;
    }
    Ok(module)
}
