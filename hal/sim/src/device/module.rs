//! Loading of code.

use super::EmbeddedGpu;
use crate::module::Module;
use crate::translate::program::Program;
use flipwave_codeobj::{CodeObject, FileBytes};
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_isa::{Isa, Pc};
use std::sync::Arc;

impl EmbeddedGpu {
    /// Loads a code object into memory, and adds its code as a module.
    pub(super) fn add_code_object(
        &mut self,
        code_object: &CodeObject,
    ) -> Result<ModuleId, DeviceError> {
        if !self.target.runs_code_for(code_object.target()) {
            return Err(DeviceError::WrongTarget {
                code_object: code_object.target().to_string(),
                device: self.target.to_string(),
            });
        }
        let failed = |reason: String| DeviceError::Load(reason);
        let (start, end) = EmbeddedGpu::code(code_object)
            .ok_or_else(|| failed("it has no executable section".into()))?;
        let span = code_object.span();
        let place = self.space.allocate(span.end - span.start)?;
        let bias = place.0.wrapping_sub(span.start);
        let load = |part| {
            let loaded = code_object.load_part_with(bias, part, |_| None);
            loaded.map_err(|error| failed(error.to_string()))
        };
        self.space.write(place, &load(span.clone())?)?;
        let code_place = Address(bias.wrapping_add(start.0));
        let code = load(start.0..end.0)?;
        // The gaps between sections of code may be data.
        let mut text: Vec<_> =
            code_object.text().map(|text| text.address..text.address + text.size).collect();
        text.sort_by_key(|text| text.start);
        for text in text {
            let [start, end] = [text.start, text.end].map(|at| Address(bias.wrapping_add(at)));
            self.space.protect(start..end);
        }
        self.add_module(Module::of(code_object, bias, span), code_place, Pc(start.0), code)
    }

    /// Adds a module with code at a device address and an ELF virtual address.
    pub(super) fn add_module(
        &mut self,
        module: Module,
        place: Address,
        virtual_place: Pc,
        code: FileBytes,
    ) -> Result<ModuleId, DeviceError> {
        let mut decoded = Vec::new();
        for size in self.target.wave_sizes() {
            let isa = Isa::with_wave_size(&self.target, *size)
                .map_err(|error| DeviceError::Load(error.to_string()))?;
            let program = Program::new(isa, self.level, place.0, virtual_place.0, code.clone());
            decoded.push(program.with_starts(module.starts()));
        }
        for (programs, program) in self.programs.iter_mut().zip(decoded) {
            programs.push(Arc::new(program));
        }
        self.modules.push(Arc::new(module));
        Ok(ModuleId(self.modules.len() as u32 - 1))
    }

    /// ELF virtual address range of a code object's executable sections, including the gaps between
    /// them.
    pub(super) fn code(code_object: &CodeObject) -> Option<(Pc, Pc)> {
        let start = code_object.text().map(|section| section.address).min()?;
        let end = code_object.text().map(|section| section.address + section.size).max()?;
        Some((Pc(start), Pc(end)))
    }
}
