//! Injection of one fault with hooks.

use crate::Refusal;
use crate::refusal::supports;
use crate::request::Request;
use crate::rewriting::{Outcome, Rewriting, rewrite};
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, ModuleId, WaveLocation};
use flipwave_injector::hooks::{
    LaunchShape, WAVE_BYTES, WAVES, found_in, orders, place_of, together,
};
use flipwave_injector::method::{check, conclude, run};
use flipwave_injector::{
    Action, FaultFunction, FunctionError, InjectedChange, Injection, InjectionError, Place, Site,
    When, Workload,
};
use flipwave_machine::{Machine, Simulator};
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_ptx_sim::PtxGpu;
use std::collections::HashMap;

/// Maximum number of waves of a workgroup: 1024 threads in waves of 32.
pub(crate) const WORKGROUP_WAVES: u64 = 32;
/// Maximum number of waves of a dispatch for permanent faults.
const MOST_WAVES: u64 = 1 << 20;
/// Maximum number of rewritten modules that are kept.
const MOST_KEPT: usize = 64;

/// Injects faults into one workload with hooks, and keeps some of the rewritten code.
pub struct PtxHookInjector<'a> {
    workload: &'a Workload,
    compiler: PtxHookCompiler,
    kept: HashMap<Request, Outcome>,
}

impl<'a> PtxHookInjector<'a> {
    /// Creates an injector without rewritten code.
    pub fn new(workload: &'a Workload, compiler: &PtxHookCompiler) -> PtxHookInjector<'a> {
        PtxHookInjector { workload, compiler: compiler.clone(), kept: HashMap::new() }
    }

    /// Runs the workload with a fault at `site`. `limits` are the watchdog limits of the dispatches, as for
    /// [`flipwave_injector::inject`].
    ///
    /// # Errors
    /// [`InjectionError`] if the fault was not injected as the site describes; [`InjectionError::Refused`] if a hook
    /// cannot inject it.
    pub fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError> {
        check(self.workload, site, limits)?;
        let mut dispatches = self.workload.program.dispatches.iter();
        let is_emulated =
            dispatches.any(|dispatch| self.workload.device.is_rewritten(dispatch.module));
        let emulated = if is_emulated { Err(Refusal::Emulated) } else { Ok(()) };
        supports(site).and(emulated).map_err(|reason| refused(site, reason))?;
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        let is_struck = |index| site.event().is_none_or(|event| event.dispatch == index);
        let mut modules: Vec<ModuleId> = (0..)
            .zip(&self.workload.program.dispatches)
            .filter(|(index, _)| is_struck(*index))
            .map(|(_, dispatch)| dispatch.module)
            .collect();
        modules.sort_unstable_by_key(|module| module.0);
        modules.dedup();
        let [module] = modules[..] else {
            return self.inject_everywhere(site, limits, &modules);
        };
        let request = Request::new(module, site);
        let injected = self.inject_once(site, limits, &request);
        // Few faults strike lanes that do not reach the instruction, whose hooks take longer.
        match injected {
            Err(InjectionError::Refused { reason, .. })
                if matches!(reason.downcast_ref(), Some(Refusal::InactiveLanes { .. }))
                    && matches!(site.place, Place::Register(_) | Place::Source(_)) =>
            {
                self.inject_once(site, limits, &Request { is_deferred: true, ..request })
            }
            injected => injected,
        }
    }

    /// Injects a fault with the hooks of a request.
    fn inject_once(
        &mut self,
        site: &Site,
        limits: &[u64],
        request: &Request,
    ) -> Result<Injection, InjectionError> {
        let original = self.workload;
        let rewriting = self.rewriting(site, request)?;
        let workload = rewriting.map_or(original, |rewriting| &rewriting.workload);
        inject(workload, site, limits, &|_| rewriting)
    }

    /// Injects a permanent fault in several modules, which are loaded to one device.
    fn inject_everywhere(
        &mut self,
        site: &Site,
        limits: &[u64],
        modules: &[ModuleId],
    ) -> Result<Injection, InjectionError> {
        let mut workload = self.workload.clone();
        let mut all: HashMap<u32, Rewriting> = HashMap::new();
        for module in modules {
            let request = Request::new(*module, site);
            match self.rewrite(site, &request, &workload)? {
                Outcome::Code(rewriting) => {
                    workload = rewriting.workload.clone();
                    all.insert(module.0, *rewriting);
                }
                Outcome::Refused(reason) => return Err(refused(site, reason)),
                Outcome::Nothing => {}
            }
        }
        inject(&workload, site, limits, &|module| all.get(&module.0))
    }

    /// The code of a module with the hooks of a site; `None` if the module does not contain the instruction.
    fn rewriting(
        &mut self,
        site: &Site,
        request: &Request,
    ) -> Result<Option<&Rewriting>, InjectionError> {
        if !self.kept.contains_key(request) {
            let outcome = self.rewrite(site, request, self.workload)?;
            self.kept.insert(*request, outcome);
        }
        match self.kept.get(request) {
            Some(Outcome::Code(rewriting)) => Ok(Some(rewriting)),
            Some(Outcome::Refused(reason)) => Err(refused(site, reason.clone())),
            Some(Outcome::Nothing) | None => Ok(None),
        }
    }

    /// Rewrites a module, and loads it to a clone of the workload's device.
    fn rewrite(
        &self,
        site: &Site,
        request: &Request,
        workload: &Workload,
    ) -> Result<Outcome, InjectionError> {
        let waves = match self.waves(site, request.module) {
            Ok(waves) => waves,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        let gpu = workload.device.downcast::<PtxGpu>();
        let program = gpu.and_then(|gpu| gpu.program(request.module));
        let missing =
            || DeviceError::Internal(format!("no PTX module {} is loaded", request.module.0));
        let program = program.ok_or_else(missing)?;
        let rewritten = rewrite(&program.module, request, waves, &self.compiler);
        let rewritten = rewritten.map_err(|reason| InjectionError::Rewrite {
            site: Box::new(*site),
            reason: Box::new(reason),
        })?;
        Ok(match rewritten {
            Ok(Some(hooked)) => Outcome::Code(Box::new(hooked.load(workload, request)?)),
            Ok(None) => Outcome::Nothing,
            Err(refusal) => Outcome::Refused(refusal),
        })
    }

    /// Number of waves for which a site's hooks keep state.
    fn waves(&self, site: &Site, module: ModuleId) -> Result<u64, Refusal> {
        let When::Always(_) = site.when else { return Ok(WORKGROUP_WAVES) };
        let dispatches = self.workload.program.dispatches.iter();
        let dispatches = dispatches.filter(|dispatch| dispatch.module == module);
        let waves = dispatches.map(|dispatch| shape(self.workload, dispatch).waves()).max();
        let waves = waves.unwrap_or(0);
        if waves > MOST_WAVES {
            return Err(Refusal::Waves { waves, most: MOST_WAVES });
        }
        Ok(waves)
    }
}

/// The error for a site that hooks cannot strike.
fn refused(site: &Site, reason: Refusal) -> InjectionError {
    InjectionError::Refused { site: Box::new(*site), reason: Box::new(reason) }
}

fn gpu_mut(device: &mut Simulator) -> Result<&mut PtxGpu, DeviceError> {
    let other = || DeviceError::Internal("hooks in PTX run only on a GPU for PTX".into());
    device.downcast_mut().ok_or_else(other)
}

fn shape(workload: &Workload, dispatch: &Dispatch) -> LaunchShape {
    let gpu = workload.device.downcast::<PtxGpu>();
    let program = gpu.and_then(|gpu| gpu.program(dispatch.module));
    let declared = program.map_or(0, |program| program.dynamic_shared());
    let declared = u32::try_from(declared).unwrap_or(u32::MAX);
    LaunchShape::of_dispatch(dispatch, workload.device.wave_lanes(dispatch), declared)
}

/// Runs a workload, and the dispatches of the site with the rewritten code of their module.
fn inject<'a>(
    workload: &Workload,
    site: &Site,
    limits: &[u64],
    rewriting_of: &dyn Fn(ModuleId) -> Option<&'a Rewriting>,
) -> Result<Injection, InjectionError> {
    let device = workload.start()?;
    let mut struck: Option<InjectedChange> = None;
    let ending = run(workload, limits, device, |index, device, dispatch| {
        let is_struck = site.event().is_none_or(|event| event.dispatch == index);
        let rewriting = rewriting_of(dispatch.module).filter(|_| is_struck);
        let Some(rewriting) = rewriting else { return Ok(workload.dispatch(device, dispatch)?) };
        let run = Run { workload, site, rewriting };
        let (completion, found) = run.dispatch(device, dispatch)?;
        struck = struck.into_iter().chain(found).reduce(together);
        Ok::<Completion, InjectionError>(completion)
    })?;
    conclude(site, struck.map(Ok), ending)
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
    ) -> Result<(Completion, Option<InjectedChange>), InjectionError> {
        let Rewriting { module, rewritten, variables, is_deferred, .. } = self.rewriting;
        let shape = shape(self.workload, dispatch);
        let gpu = gpu_mut(simulator)?;
        let place = self.place(gpu, &shape)?;
        let orders = orders(self.site, &shape, self.workload.simds(), place);
        let orders = orders.map_err(|reason| refused(self.site, reason.into()))?;
        variables.reset(gpu)?;
        for (name, bytes) in &orders {
            variables.write(gpu, name, bytes)?;
        }
        let dispatch = Dispatch { module: *module, ..dispatch.clone() };
        let completion = self.workload.dispatch(simulator, &dispatch)?;
        let numbers = variables.numbers(gpu_mut(simulator)?, WAVES)?;
        let found = found_in(&numbers);
        let missed = numbers.chunks(WAVE_BYTES / 8).filter_map(|wave| wave.last());
        let missed = missed.fold(0, |all, lanes| all | lanes);
        if missed != 0 && !is_deferred {
            return Err(refused(self.site, Refusal::InactiveLanes { lanes: missed }));
        }
        let Completion::Faulted(fault) = completion else { return Ok((completion, found)) };
        self.check_inserted(&fault, found.is_some())?;
        let fault = fault.map_locations(|location| {
            let pc = rewritten.original(location.pc).unwrap_or(location.pc);
            WaveLocation { pc, ..location }
        });
        Ok((Completion::Faulted(fault), found))
    }

    /// Checks that a device fault is not that of a hook.
    fn check_inserted(&self, fault: &DeviceFault, has_struck: bool) -> Result<(), InjectionError> {
        let number = fault.place.pc.0 / u64::from(flipwave_ptx::INSTRUCTION_BYTES);
        let origins = &self.rewriting.rewritten.origins;
        let is_inserted = origins.get(number as usize).is_some_and(|origin| origin.pc().is_none());
        let site = Box::new(*self.site);
        match self.site.action {
            _ if !is_inserted => Ok(()),
            // An endless loop of the program may also end in a hook, but only after the fault.
            Action::Function { function, .. } if !has_struck || !fault.cause.is_hang() => {
                Err(function_failed(self.site, function, fault))
            }
            _ if matches!(self.site.place, Place::Scratch(_)) => {
                Err(InjectionError::NoSuchPlace { place: self.site.place, site })
            }
            _ => Ok(()),
        }
    }

    /// The address of the struck memory, or its offset.
    fn place(&self, gpu: &PtxGpu, shape: &LaunchShape) -> Result<u64, InjectionError> {
        let buffers = &self.workload.program.buffers;
        let buffer = |number: u32| {
            let Place::Memory { offset, .. } = self.site.place else { return None };
            let found = buffers.get(number as usize)?;
            (offset < found.bytes as u64).then_some(found.address)
        };
        let place = place_of(self.site, shape, buffer);
        let found = place.filter(|address| {
            let is_memory = matches!(self.site.place, Place::Memory { .. });
            let mut word = [0; 4];
            !is_memory || Machine::read(gpu, flipwave_device::Address(*address), &mut word).is_ok()
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
