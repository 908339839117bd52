//! What addresses of the instrumented code stand for in the original.

use super::{Lockstep, LockstepError};
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Opcode, Pc};
use std::collections::BTreeMap;
use std::ops::Range;

/// The two code objects as they are loaded, and which of their addresses correspond.
pub struct AddressMap {
    /// Original instructions that are still there, by their addresses.
    originals: BTreeMap<u64, InstIndex>,
    /// Original instructions by their places in the instrumented code.
    places: BTreeMap<u64, InstIndex>,
    /// Code addresses of the instrumented code that stand for others than themselves.
    moved: BTreeMap<u64, u64>,
    /// Original instructions that are gone, by their addresses, and the address of the next one that is
    /// not: code that came to one comes to the other.
    gone: BTreeMap<u64, u64>,
    /// ELF virtual addresses of the instrumented and of the original code object.
    images: (Range<u64>, Range<u64>),
    /// What is added to them when it is loaded, and to those of the original.
    biases: (u64, u64),
}

impl AddressMap {
    pub fn new(lockstep: &Lockstep<'_>) -> Result<AddressMap, LockstepError> {
        let Lockstep { program, claims, gpu, .. } = lockstep;
        let bias = |module: ModuleId| {
            let object = gpu.code_object(module).ok_or(LockstepError::NotLoaded)?;
            let first = object.segments().first().map_or(0, |segment| segment.address);
            let end = object.segments().last().map_or(0, |segment| segment.end());
            let place = gpu.address_of(module, first)?;
            Ok::<_, LockstepError>((place.0.wrapping_sub(first), first..end))
        };
        let (old_bias, old_image) = bias(lockstep.original.module)?;
        let (new_bias, new_image) = bias(lockstep.instrumented.module)?;
        let object = gpu.code_object(lockstep.instrumented.module);
        let object = object.ok_or(LockstepError::NotLoaded)?;
        let isa = program.isa().map_err(|error| LockstepError::Target(error.to_string()))?;
        let size = |inst: &Inst, pc: Pc| {
            // Literals of addresses may have come in or gone.
            let bytes = [inst.size.into(), 12, 8, 4].into_iter();
            let mut bytes = bytes.filter_map(|length| object.bytes_at(pc, length));
            let decoded = bytes.find_map(|bytes| isa.decode(bytes, pc).ok());
            u64::from(decoded.map_or(inst.size, |inst| inst.size))
        };
        let mut addresses = AddressMap {
            originals: BTreeMap::new(),
            places: BTreeMap::new(),
            moved: BTreeMap::new(),
            gone: BTreeMap::new(),
            images: (new_image, old_image),
            biases: (new_bias, old_bias),
        };
        for inserted in &claims.inserted {
            if let Some(at) = inserted.at {
                addresses.moved.insert(inserted.range.start, program.instructions[at].pc.0);
            }
        }
        let mut gone = Vec::new();
        for (index, inst) in program.insts() {
            match claims.instructions[index] {
                Some(_) => addresses.gone.extend(gone.drain(..).map(|own| (own, inst.pc.0))),
                None => gone.push(inst.pc.0),
            }
            // What was removed, replaced or dropped has nothing that it could be compared with.
            if let Some(pc) = claims.instructions[index] {
                addresses.originals.insert(inst.pc.0, index);
                addresses.places.insert(pc.0, index);
                addresses.moved.insert(pc.0, inst.pc.0);
                // Where calls return to, and what s_getpc gives.
                if inst.flags.call || inst.operation.opcode() == Opcode::SGetpc {
                    let after = inst.pc.0.wrapping_add(inst.size.into());
                    addresses.moved.insert(pc.0.wrapping_add(size(inst, pc)), after);
                }
            }
        }
        Ok(addresses)
    }

    /// Original instructions that are still there, by their addresses.
    pub fn originals(&self) -> &BTreeMap<u64, InstIndex> {
        &self.originals
    }

    /// Original instructions by their addresses in the instrumented code.
    pub fn places(&self) -> &BTreeMap<u64, InstIndex> {
        &self.places
    }

    /// Address in the original of an instruction of the instrumented code, if it is an original
    /// one.
    pub fn old_instruction(&self, new: Pc) -> Option<Pc> {
        self.places.contains_key(&new.0).then(|| self.moved.get(&new.0).copied().map(Pc))?
    }

    /// What the original has where the instrumented code has these 32 bits: the low half of the
    /// address of the same thing, or the same.
    pub fn translate(&self, bits: u32) -> u32 {
        let (new, old) = self.biases;
        // Images are less than 4 GiB long, so the low halves of their addresses tell them apart.
        let within = |bias: u64, image: &Range<u64>| {
            let offset = u64::from(bits.wrapping_sub(bias.wrapping_add(image.start) as u32));
            (offset < image.end - image.start).then(|| image.start + offset)
        };
        let address = match within(new, &self.images.0) {
            Some(address) => self.moved.get(&address).copied().unwrap_or(address),
            None => match within(old, &self.images.1) {
                Some(address) => address,
                None => return bits,
            },
        };
        let address = self.gone.get(&address).copied().unwrap_or(address);
        old.wrapping_add(address) as u32
    }

    /// What is added to ELF virtual addresses of the instrumented and of the original code object.
    pub fn biases(&self) -> (u64, u64) {
        self.biases
    }
}
