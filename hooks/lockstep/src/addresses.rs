//! Maps code addresses of the instrumented code to addresses of the original.

use super::comparison::Lockstep;
use super::difference::LockstepError;
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Opcode, Pc};
use flipwave_sim::EmbeddedGpu;
use std::collections::BTreeMap;
use std::ops::Range;

/// A code object as it is loaded.
pub struct LoadedImage {
    /// The range of ELF virtual addresses.
    pub range: Range<u64>,
    /// The difference between load addresses and ELF virtual addresses.
    pub bias: u64,
}

impl LoadedImage {
    fn new(gpu: &EmbeddedGpu, module: ModuleId) -> Result<LoadedImage, LockstepError> {
        let object = gpu.code_object(module).ok_or(LockstepError::NotLoaded)?;
        let first = object.segments().first().map_or(0, |segment| segment.address);
        let end = object.segments().last().map_or(0, |segment| segment.end());
        let bias = gpu.address_of(module, first)?.0.wrapping_sub(first);
        Ok(LoadedImage { range: first..end, bias })
    }

    /// The ELF virtual address whose load address has these low 32 bits. Images are shorter than 4 GiB, so
    /// the low halves of their addresses are unique.
    fn address(&self, bits: u32) -> Option<u64> {
        let Range { start, end } = self.range;
        let offset = u64::from(bits.wrapping_sub(self.bias.wrapping_add(start) as u32));
        (offset < end - start).then(|| start + offset)
    }
}

/// The mapping from addresses of the instrumented code object to those of the original.
pub struct AddressMap {
    /// The original instructions that still exist, by their original addresses.
    originals: BTreeMap<u64, InstIndex>,
    /// The original instructions that still exist, by their addresses in the instrumented code.
    instrumented: BTreeMap<u64, InstIndex>,
    /// The original addresses for addresses of the instrumented code that differ.
    moved: BTreeMap<u64, u64>,
    /// For the original addresses of removed instructions, the address of the next remaining one, to which
    /// branches to the removed instruction lead.
    removed: BTreeMap<u64, u64>,
    original_image: LoadedImage,
    instrumented_image: LoadedImage,
}

impl AddressMap {
    pub fn new(lockstep: &Lockstep<'_>) -> Result<AddressMap, LockstepError> {
        let Lockstep { program, claims, gpu, .. } = lockstep;
        let original_image = LoadedImage::new(gpu, lockstep.original.module)?;
        let instrumented_image = LoadedImage::new(gpu, lockstep.instrumented.module)?;
        let object = gpu.code_object(lockstep.instrumented.module);
        let object = object.ok_or(LockstepError::NotLoaded)?;
        let isa = program.isa().map_err(|error| LockstepError::Target(error.to_string()))?;
        let size = |inst: &Inst, pc: Pc| {
            // Address literals may have been added or removed, which changes the size.
            let bytes = [inst.size.into(), 12, 8, 4].into_iter();
            let mut bytes = bytes.filter_map(|length| object.bytes_at(pc, length));
            let decoded = bytes.find_map(|bytes| isa.decode(bytes, pc).ok());
            u64::from(decoded.map_or(inst.size, |inst| inst.size))
        };
        let mut addresses = AddressMap {
            originals: BTreeMap::new(),
            instrumented: BTreeMap::new(),
            moved: BTreeMap::new(),
            removed: BTreeMap::new(),
            original_image,
            instrumented_image,
        };
        for inserted in &claims.inserted {
            if let Some(at) = inserted.at {
                addresses.moved.insert(inserted.range.start, program.instructions[at].pc.0);
            }
        }
        let mut removed = Vec::new();
        for (index, inst) in program.insts() {
            // A removed or replaced instruction has no counterpart to compare with.
            let Some(pc) = claims.instructions[index] else {
                removed.push(inst.pc.0);
                continue;
            };
            addresses.removed.extend(removed.drain(..).map(|address| (address, inst.pc.0)));
            addresses.originals.insert(inst.pc.0, index);
            addresses.instrumented.insert(pc.0, index);
            addresses.moved.insert(pc.0, inst.pc.0);
            // The return addresses of calls, and the results of s_getpc.
            if inst.flags.call || inst.operation.opcode() == Opcode::SGetpc {
                let after = inst.pc.0.wrapping_add(inst.size.into());
                addresses.moved.insert(pc.0.wrapping_add(size(inst, pc)), after);
            }
        }
        Ok(addresses)
    }

    /// The original instructions that still exist, by their original addresses.
    pub fn originals(&self) -> &BTreeMap<u64, InstIndex> {
        &self.originals
    }

    /// The original instructions that still exist, by their addresses in the instrumented code.
    pub fn instrumented(&self) -> &BTreeMap<u64, InstIndex> {
        &self.instrumented
    }

    /// The original address of an instruction of the instrumented code, unless it was inserted.
    pub fn old_instruction(&self, new: Pc) -> Option<Pc> {
        self.instrumented.contains_key(&new.0).then(|| self.moved.get(&new.0).copied().map(Pc))?
    }

    /// Translates the low 32 bits of an address in the instrumented code object to those of the
    /// corresponding address in the original. Returns other values unchanged.
    pub fn translate(&self, bits: u32) -> u32 {
        let address = match self.instrumented_image.address(bits) {
            Some(address) => self.moved.get(&address).copied().unwrap_or(address),
            None => match self.original_image.address(bits) {
                Some(address) => address,
                None => return bits,
            },
        };
        let address = self.removed.get(&address).copied().unwrap_or(address);
        self.original_image.bias.wrapping_add(address) as u32
    }

    /// The original code object as it is loaded.
    pub fn original_image(&self) -> &LoadedImage {
        &self.original_image
    }

    /// The instrumented code object as it is loaded.
    pub fn instrumented_image(&self) -> &LoadedImage {
        &self.instrumented_image
    }
}
