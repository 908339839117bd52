//! The fault at work: code replaced as it is loaded, hooks given what to strike, and what they
//! struck.

use super::plan::{HookPlan, HookedSession, PlannedCode};
use crate::codes::HookedCodes;
use crate::inside::{end, fail, is_struck, report_dispatches, report_event};
use crate::report::Event;
use crate::session::StruckProcess;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, FaultCause};
use flipwave_injector::{LaunchShape, Site, SiteHooks};
use flipwave_rocr::HsaError;
use flipwave_rocr::tools::{CodeId, Dispatch, Interceptor, Memory, Replacement, Version};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Strikes at a site.
pub struct HookedFault {
    /// The process that is struck.
    process: StruckProcess,
    /// Whether it is this one, once it has dispatched a kernel.
    is_own: OnceLock<bool>,
    site: Site,
    planned: Vec<Planned>,
    codes: HookedCodes<Code>,
    buffers: Option<PathBuf>,
    time_limit: Duration,
    is_reported: AtomicBool,
}

/// Code to be loaded in place of other code, or beside it.
struct Planned {
    original: Vec<u8>,
    /// The kernel that it has, where it is loaded beside.
    kernel: Option<Arc<str>>,
    replacement: Replacement,
    hooks: SiteHooks,
}

/// Code with hooks that the application has loaded.
struct Code {
    original: CodeObject,
    hooks: SiteHooks,
    /// Whether the hooks have something to strike.
    is_armed: AtomicBool,
}

impl HookedFault {
    /// Nothing struck yet.
    ///
    /// # Errors
    /// In words, if the session's files cannot be read.
    pub fn new(session: &HookedSession) -> Result<HookedFault, String> {
        let text = &session.site;
        let site = text.parse().map_err(|error| format!("the site {text}: {error}"))?;
        let HookPlan(codes) = json(&session.plan)?;
        let planned = codes.into_iter().map(Planned::read).collect::<Result<_, _>>()?;
        Ok(HookedFault {
            process: session.process.clone(),
            is_own: OnceLock::new(),
            site,
            planned,
            codes: HookedCodes::default(),
            buffers: session.buffers.clone(),
            time_limit: session.time_limit,
            is_reported: AtomicBool::new(false),
        })
    }

    /// What was planned for a code object, or for a kernel of it.
    fn planned(&self, object: &CodeObject, kernel: Option<&Arc<str>>) -> Option<&Planned> {
        let is_it =
            |own: &&Planned| own.kernel.as_ref() == kernel && own.original == object.bytes();
        self.planned.iter().find(is_it)
    }

    /// Notes that code with hooks is loaded; what is loaded.
    fn take(&self, id: CodeId, object: &CodeObject, planned: &Planned) -> Replacement {
        let (original, hooks) = (object.clone(), planned.hooks.clone());
        let code = Code { original, hooks, is_armed: AtomicBool::new(false) };
        self.codes.add(id, planned.kernel.clone(), code);
        planned.replacement.clone()
    }

    /// Whether the fault can strike in a dispatch.
    fn is_struck(&self, dispatch: &Dispatch) -> bool {
        let is_own = self.is_own.get_or_init(|| is_struck(&self.process));
        *is_own && self.site.event().is_none_or(|event| event.dispatch == dispatch.number)
    }

    /// What the hooks' variables have to hold while a dispatch runs.
    fn orders(&self, code: &Code, dispatch: &Dispatch) -> Result<Vec<u8>, String> {
        let kernel = code.original.kernel(&dispatch.kernel);
        let kernel = kernel.ok_or_else(|| format!("no kernel `{}`", dispatch.kernel))?;
        let shape =
            LaunchShape::of_packet(&dispatch.packet, kernel.descriptor.wavefront_size() as u8);
        let addresses: Vec<u64> = match &self.buffers {
            Some(file) => json(file)?,
            None => Vec::new(),
        };
        let buffer = |number: u32| addresses.get(number as usize).map(|own| Address(*own));
        let armed = code.hooks.armed(&self.site, &shape, code.original.target(), buffer);
        armed.map_err(|reason| reason.to_string())
    }

    /// Reports, once, what a dispatch has struck.
    fn report_struck(&self, dispatch: &Dispatch, memory: &Memory) {
        let code = self.codes.of(dispatch.code, &dispatch.kernel);
        let Some(code) = code.filter(|code| code.is_armed.load(Ordering::Acquire)) else { return };
        let mut variables = code.hooks.idle();
        match memory.read(dispatch.address_of(code.hooks.address()), &mut variables) {
            Err(reason) => self.report_once(&Event::NotStruck {
                reason: format!("what was struck cannot be read: {reason}"),
            }),
            Ok(()) => {
                if let Some(struck) = code.hooks.struck(&variables) {
                    self.report_once(&Event::struck(&struck));
                }
            }
        }
    }

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
        let alternates = code.versions.into_iter().map(|(kernel, symbol)| (kernel.into(), symbol));
        let replacement = Replacement { object, alternates: alternates.collect() };
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

impl Interceptor for HookedFault {
    fn load(&self, id: CodeId, object: &CodeObject) -> Option<Replacement> {
        let planned = self.planned(object, None)?;
        Some(self.take(id, object, planned))
    }

    fn load_alternate(
        &self,
        id: CodeId,
        object: &CodeObject,
        kernel: &Arc<str>,
    ) -> Option<CodeObject> {
        let planned = self.planned(object, Some(kernel))?;
        Some(self.take(id, object, planned).object)
    }

    fn alternate_rejected(&self, _: CodeId, kernel: &Arc<str>, reason: &HsaError) {
        fail(&format!("the runtime does not load kernel {kernel} with hooks: {reason}"))
    }

    fn replacement_rejected(&self, _: CodeId, reason: &HsaError) {
        fail(&format!("the runtime does not load code with hooks: {reason}"))
    }

    fn version(&self, code: CodeId, kernel: &str) -> Version {
        let has_hooks = self.codes.of(code, &Arc::from(kernel)).is_some();
        if has_hooks { Version::Alternate } else { Version::Primary }
    }

    fn begin(&self, dispatch: &Dispatch, memory: &Memory) {
        report_dispatches();
        let code = self.codes.of(dispatch.code, &dispatch.kernel);
        let Some(code) = code else { return };
        let variables = if self.is_struck(dispatch) {
            match self.orders(&code, dispatch) {
                Ok(orders) => orders,
                Err(reason) => {
                    return self.report_once(&Event::NotStruck { reason });
                }
            }
        } else if code.is_armed.load(Ordering::Acquire) {
            code.hooks.idle()
        } else {
            return;
        };
        code.is_armed.store(self.is_struck(dispatch), Ordering::Release);
        if let Err(reason) = memory.write(dispatch.address_of(code.hooks.address()), &variables) {
            fail(&format!("what to strike cannot be written to the hooks' variables: {reason}"));
        }
    }

    fn end(&self, dispatch: &Dispatch, memory: &Memory) {
        if self.is_struck(dispatch) {
            self.report_struck(dispatch, memory);
        }
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.time_limit)
    }

    fn fault(&self, dispatch: Option<&Dispatch>, cause: &FaultCause, memory: &Memory) {
        if let Some(dispatch) = dispatch.filter(|dispatch| self.is_struck(dispatch)) {
            self.report_struck(dispatch, memory);
        }
        report_event(&Event::Fault {
            dispatch: dispatch.map(|dispatch| dispatch.number),
            kernel: dispatch.map_or_else(String::new, |dispatch| dispatch.kernel.to_string()),
            cause: cause.name().to_owned(),
            text: cause.to_string(),
        });
        if cause.is_hang() {
            // The application would wait for ever.
            end();
        }
    }

    fn finish(&self) {}
}
