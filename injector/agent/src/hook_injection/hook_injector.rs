//! Replaces code objects when they are loaded, arms their hooks, and reports the injected fault.

use super::plan::{HookInjectionSession, HookPlan, PlannedCode};
use crate::in_process::{end, fail, is_target, report_dispatches, report_event};
use crate::instrumented_codes::InstrumentedCodes;
use crate::report::Event;
use crate::session::TargetProcess;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, FaultCause, KernelPacket};
use flipwave_injector::Site;
use flipwave_injector_amdgpu::{LaunchShape, SiteHooks, register_function};
use flipwave_rocr::HsaError;
use flipwave_rocr::tools::{CodeId, Dispatch, Interceptor, Memory, Replacement, Version};
use flipwave_sim::Amdgpu;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Interceptor that injects a fault at a site.
pub struct HookInjector {
    /// The filter for the target process.
    process: TargetProcess,
    /// `true` if this process is the target; set when it dispatches its first kernel.
    is_target: OnceLock<bool>,
    site: Site,
    planned: Vec<Planned>,
    codes: InstrumentedCodes<Code>,
    buffers: Option<PathBuf>,
    time_limit: Duration,
    is_reported: AtomicBool,
}

/// Instrumented code to be loaded in place of an original code object, or in addition to it.
struct Planned {
    original: Vec<u8>,
    /// The only kernel of the code, if it is loaded in addition to the original.
    kernel: Option<Arc<str>>,
    replacement: Replacement,
    hooks: SiteHooks,
}

/// Instrumented code that the application has loaded.
struct Code {
    original: CodeObject,
    hooks: SiteHooks,
    /// `true` while the variables of the hooks select a fault.
    is_armed: AtomicBool,
}

/// Parses the site of a fault in the planned code.
fn parse_site(text: &str, planned: &[Planned]) -> Result<Site, String> {
    let first = planned.first().ok_or("the plan of the hooks contains no code")?;
    let object = CodeObject::parse(&first.original)
        .map_err(|error| format!("the plan of the hooks: {error}"))?;
    Site::parse(text, &Amdgpu::new(object.target().clone()))
        .map_err(|error| format!("invalid fault site {text}: {error}"))
}

impl HookInjector {
    /// Reads the plan of a session.
    ///
    /// # Errors
    /// A message, if the session's files cannot be read.
    pub fn new(session: &HookInjectionSession) -> Result<HookInjector, String> {
        if let Some(file) = &session.function {
            register_function(json(file)?).map_err(|error| error.to_string())?;
        }
        let HookPlan(codes) = json(&session.plan)?;
        let planned = codes.into_iter().map(Planned::read).collect::<Result<Vec<_>, _>>()?;
        let site = parse_site(&session.site, &planned)?;
        Ok(HookInjector {
            process: session.process.clone(),
            is_target: OnceLock::new(),
            site,
            planned,
            codes: InstrumentedCodes::default(),
            buffers: session.buffers.clone(),
            time_limit: session.time_limit,
            is_reported: AtomicBool::new(false),
        })
    }

    /// The planned code for a code object, or for one of its kernels.
    fn planned(&self, object: &CodeObject, kernel: Option<&Arc<str>>) -> Option<&Planned> {
        let matches = |planned: &&Planned| {
            planned.kernel.as_ref() == kernel && planned.original == object.bytes()
        };
        self.planned.iter().find(matches)
    }

    /// Registers planned code that is being loaded and returns it.
    fn register(&self, id: CodeId, object: &CodeObject, planned: &Planned) -> Replacement {
        let (original, hooks) = (object.clone(), planned.hooks.clone());
        let code = Code { original, hooks, is_armed: AtomicBool::new(false) };
        self.codes.add(id, planned.kernel.clone(), code);
        planned.replacement.clone()
    }

    /// Returns `true` if the fault may be injected in a dispatch.
    fn may_strike(&self, dispatch: &Dispatch) -> bool {
        let is_target = self.is_target.get_or_init(|| is_target(&self.process));
        *is_target && self.site.event().is_none_or(|event| event.dispatch == dispatch.number)
    }

    /// The contents of the hooks' variables that select the fault during a dispatch.
    fn armed_variables(&self, code: &Code, dispatch: &Dispatch) -> Result<Vec<u8>, String> {
        let kernel = code.original.kernel(&dispatch.kernel);
        let kernel = kernel.ok_or_else(|| format!("no kernel `{}`", dispatch.kernel))?;
        let shape =
            LaunchShape::of_packet(&dispatch.packet, kernel.descriptor.wavefront_size() as u8);
        let addresses: Vec<u64> = match &self.buffers {
            Some(file) => json(file)?,
            None => Vec::new(),
        };
        let buffer = |number: u32| addresses.get(number as usize).copied().map(Address);
        let armed = code.hooks.armed(
            &self.site,
            &shape,
            &Amdgpu::new(code.original.target().clone()),
            buffer,
        );
        armed.map_err(|reason| reason.to_string())
    }

    /// Reports the fault that was injected in a dispatch, once.
    fn report_struck(&self, dispatch: &Dispatch, memory: &Memory) {
        let code = self.codes.get(dispatch.code, &dispatch.kernel);
        let Some(code) = code.filter(|code| code.is_armed.load(Ordering::Acquire)) else { return };
        let mut variables = code.hooks.idle();
        match memory.read(dispatch.address_of(code.hooks.address()), &mut variables) {
            Err(reason) => self.report_once(&Event::NotStruck {
                reason: format!("cannot read the variables of the hooks: {reason}"),
            }),
            Ok(()) => {
                if let Some(struck) = code.hooks.struck(&variables) {
                    self.report_once(&Event::struck(&struck));
                }
            }
        }
    }

    /// Reports an event unless one was reported before.
    fn report_once(&self, event: &Event) {
        if !self.is_reported.swap(true, Ordering::AcqRel) {
            report_event(event);
        }
    }
}

impl Planned {
    fn read(code: PlannedCode) -> Result<Planned, String> {
        let bytes = bytes(&code.replacement)?;
        let file = code.replacement.display();
        let object = CodeObject::parse(&bytes).map_err(|error| format!("{file}: {error}"))?;
        let versions = code.versions.into_iter().map(|(kernel, symbol)| (kernel.into(), symbol));
        let replacement = Replacement { object, alternates: versions.collect() };
        let original = self::bytes(&code.original)?;
        let kernel = code.kernel.map(Arc::from);
        Ok(Planned { original, kernel, replacement, hooks: code.hooks })
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    flipwave_host::input::read(file, flipwave_host::input::BINARY)
        .map_err(|error| format!("{}: {error}", file.display()))
}

fn json<T: DeserializeOwned>(file: &Path) -> Result<T, String> {
    serde_json::from_slice(&bytes(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

impl Interceptor for HookInjector {
    fn load(&self, id: CodeId, object: &CodeObject) -> Option<Replacement> {
        let planned = self.planned(object, None)?;
        Some(self.register(id, object, planned))
    }

    fn load_alternate(
        &self,
        id: CodeId,
        object: &CodeObject,
        kernel: &Arc<str>,
    ) -> Option<CodeObject> {
        let planned = self.planned(object, Some(kernel))?;
        Some(self.register(id, object, planned).object)
    }

    fn alternate_rejected(&self, _: CodeId, kernel: &Arc<str>, reason: &HsaError) {
        fail(&format!("the runtime cannot load kernel {kernel} with hooks: {reason}"))
    }

    fn replacement_rejected(&self, _: CodeId, reason: &HsaError) {
        fail(&format!("the runtime cannot load code with hooks: {reason}"))
    }

    fn version(&self, code: CodeId, kernel: &Arc<str>, _: &KernelPacket) -> Version {
        let has_hooks = self.codes.get(code, kernel).is_some();
        if has_hooks { Version::Alternate } else { Version::Primary }
    }

    fn begin(&self, dispatch: &Dispatch, memory: &Memory) {
        report_dispatches();
        let code = self.codes.get(dispatch.code, &dispatch.kernel);
        let Some(code) = code else { return };
        let variables = if self.may_strike(dispatch) {
            match self.armed_variables(&code, dispatch) {
                Ok(variables) => variables,
                Err(reason) => {
                    return self.report_once(&Event::NotStruck { reason });
                }
            }
        } else if code.is_armed.load(Ordering::Acquire) {
            code.hooks.idle()
        } else {
            return;
        };
        code.is_armed.store(self.may_strike(dispatch), Ordering::Release);
        if let Err(reason) = memory.write(dispatch.address_of(code.hooks.address()), &variables) {
            fail(&format!("cannot write the variables of the hooks: {reason}"));
        }
    }

    fn end(&self, dispatch: &Dispatch, memory: &Memory) {
        if self.may_strike(dispatch) {
            self.report_struck(dispatch, memory);
        }
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.time_limit)
    }

    fn fault(&self, dispatch: Option<&Dispatch>, cause: &FaultCause, memory: &Memory) {
        if let Some(dispatch) = dispatch.filter(|dispatch| self.may_strike(dispatch)) {
            self.report_struck(dispatch, memory);
        }
        report_event(&Event::Fault {
            dispatch: dispatch.map(|dispatch| dispatch.number),
            kernel: dispatch.map_or_else(String::new, |dispatch| dispatch.kernel.to_string()),
            cause: cause.kind(),
            text: cause.to_string(),
        });
        if cause.is_hang() {
            // The application would wait forever.
            end();
        }
    }

    fn finish(&self) {}
}
