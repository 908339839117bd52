//! Fault sites with registers named as the program's code declares them.

use super::{Place, Site, SiteError};
use crate::fault_space::Selection;
use crate::workload::Workload;
use flipwave_arch::RegisterId;
use flipwave_device::ModuleId;

/// Error returned for a selected register that the program does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid faults.registers: the selected kernels' code declares no register `{name}`; it declares {declared}"
)]
pub struct UndeclaredRegister {
    /// The name.
    pub name: String,
    /// Names of the declared registers.
    pub declared: String,
}

impl Workload {
    /// Text of a site, with its register named as the code declares it.
    pub fn site_text(&self, site: &Site) -> String {
        self.with_declared_name(site, &site.to_string())
    }

    /// A text about a site, with its register named as the code declares it.
    pub fn with_declared_name(&self, site: &Site, text: &str) -> String {
        let Some(name) = self.declared_place(site) else { return text.to_owned() };
        let field = if matches!(site.place, Place::Source(_)) { "source" } else { "register" };
        let (place, named) = (site.place.to_string(), format!("{field}={name}"));
        // Punctuation may follow.
        let replaced = |word: &str| match word.strip_prefix(&*place) {
            Some(rest) if !rest.starts_with(|next: char| next.is_ascii_alphanumeric()) => {
                format!("{named}{rest}")
            }
            _ => word.to_owned(),
        };
        text.split(' ').map(replaced).collect::<Vec<String>>().join(" ")
    }

    /// Place of a site as text: the name of its register, or the field of its text.
    pub fn place_text(&self, site: &Site) -> String {
        match site.place {
            Place::Register(register) | Place::Source(register) => {
                self.declared_place(site).unwrap_or_else(|| register.to_string())
            }
            place => place.to_string(),
        }
    }

    /// Name that the code declares for the register of a site.
    fn declared_place(&self, site: &Site) -> Option<String> {
        let (Place::Register(register) | Place::Source(register)) = site.place else { return None };
        let event = site.event()?;
        self.register_name(event.dispatch, event.pc, register)
    }

    /// Name that the code of a dispatch declares for a register at an instruction.
    pub fn register_name(
        &self,
        dispatch: u32,
        pc: flipwave_arch::Pc,
        register: RegisterId,
    ) -> Option<String> {
        let module = self.program.dispatches.get(dispatch as usize)?.module;
        self.device.register_name(module, pc, register)
    }

    /// Checks that the code of some selected dispatch has each register of a selection that is named as code declares it.
    ///
    /// # Errors
    /// [`UndeclaredRegister`].
    pub fn check_registers(&self, selection: &Selection) -> Result<(), UndeclaredRegister> {
        let dispatches = (0..).zip(&self.program.dispatches);
        let modules: Vec<ModuleId> = dispatches
            .filter(|(index, dispatch)| selection.has_dispatch(*index, &dispatch.kernel))
            .map(|(_, dispatch)| dispatch.module)
            .collect();
        let names = selection.registers.iter().filter(|span| span.first.is_declared());
        for name in names.map(|span| span.to_string()) {
            let has_name =
                |module: &ModuleId| !self.device.registers_named(*module, &name).is_empty();
            if !modules.is_empty() && !modules.iter().any(has_name) {
                let declared =
                    modules.first().and_then(|module| self.device.declared_registers(*module));
                return Err(UndeclaredRegister { name, declared: declared.unwrap_or_default() });
            }
        }
        Ok(())
    }

    /// Replaces the name of a site's register by the register that the program declares. A declared name comes before
    /// one of a class.
    ///
    /// # Errors
    /// [`SiteError::Undeclared`] if the code declares no register of the name at the site's instruction, and the
    /// errors of [`Site::check`].
    pub fn resolve_names(&self, site: Site) -> Result<Site, SiteError> {
        let (Place::Register(register) | Place::Source(register)) = site.place else {
            return Ok(site);
        };
        let Some(event) = site.event() else { return Ok(site) };
        let module = self.program.dispatches.get(event.dispatch as usize).map(|found| found.module);
        let name = register.to_string();
        let found = module.and_then(|module| self.device.register_named(module, event.pc, &name));
        let register = match found {
            Some(register) => register,
            None if register.is_declared() => {
                return Err(SiteError::Undeclared { name, pc: event.pc });
            }
            None => return Ok(site),
        };
        let place = match site.place {
            Place::Source(_) => Place::Source(register),
            _ => Place::Register(register),
        };
        let site = Site { place, ..site };
        site.check()?;
        Ok(site)
    }
}
