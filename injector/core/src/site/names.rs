//! Fault sites with registers named as the program's code declares them.

use super::{Place, Site, SiteError};
use crate::workload::Workload;
use flipwave_arch::RegisterId;

impl Workload {
    /// Text of a site, with its register named as the code declares it.
    pub fn site_text(&self, site: &Site) -> String {
        let text = site.to_string();
        match (site.place, self.declared_place(site)) {
            (Place::Register(register), Some(name)) => {
                text.replacen(&format!(" register={register} "), &format!(" register={name} "), 1)
            }
            (Place::Source(register), Some(name)) => {
                text.replacen(&format!(" source={register} "), &format!(" source={name} "), 1)
            }
            _ => text,
        }
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
