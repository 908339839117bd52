//! What addresses of the instrumented code stand for in the original.

use super::{Lockstep, LockstepError};
use flipwave_device::{Device, ModuleId};
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Opcode, Pc};
use std::collections::BTreeMap;
use std::ops::Range;

/// The two code objects as they are loaded, and which of their addresses correspond.
pub struct Addresses {
    /// Original instructions that are still there, by their addresses.
    originals: BTreeMap<u64, InstIndex>,
    /// Original instructions by their places in the instrumented code.
    places: BTreeMap<u64, InstIndex>,
    /// Code addresses of the instrumented code that stand for others than themselves.
    moved: BTreeMap<u64, u64>,
    /// ELF virtual addresses of the instrumented code object.
    image: Range<u64>,
    /// What is added to them when it is loaded, and to those of the original.
    biases: (u64, u64),
}

impl Addresses {
    pub fn new(lockstep: &Lockstep<'_>) -> Result<Addresses, LockstepError> {
        let Lockstep { program, claims, gpu, .. } = lockstep;
        let bias = |module: ModuleId| {
            let object = gpu.code_object(module).ok_or(LockstepError::NotLoaded)?;
            let first = object.segments().first().map_or(0, |segment| segment.address);
            let end = object.segments().last().map_or(0, |segment| segment.end());
            let place = gpu.address_of(module, first)?;
            Ok::<_, LockstepError>((place.0.wrapping_sub(first), first..end))
        };
        let (old_bias, _) = bias(lockstep.original.module)?;
        let (new_bias, image) = bias(lockstep.instrumented.module)?;
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
        let mut addresses = Addresses {
            originals: BTreeMap::new(),
            places: BTreeMap::new(),
            moved: BTreeMap::new(),
            image,
            biases: (new_bias, old_bias),
        };
        for inserted in &claims.inserted {
            if let Some(at) = inserted.at {
                addresses.moved.insert(inserted.range.start, program.instructions[at].pc.0);
            }
        }
        for (index, inst) in program.insts() {
            // What was removed, replaced or dropped has nothing that it could be compared with.
            if let Some(pc) = claims.instructions[index] {
                addresses.originals.insert(inst.pc.0, index);
                addresses.places.insert(pc.0, index);
                addresses.moved.insert(pc.0, inst.pc.0);
                // Where calls return to, and what s_getpc gives.
                if inst.flags.call || inst.operation.opcode() == Opcode::SGetpc {
                    let behind = inst.pc.0.wrapping_add(inst.size.into());
                    addresses.moved.insert(pc.0.wrapping_add(size(inst, pc)), behind);
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
        // The image is less than 4 GiB long, so the low halves of its addresses tell them apart.
        let offset = u64::from(bits.wrapping_sub(new.wrapping_add(self.image.start) as u32));
        if offset >= self.image.end - self.image.start {
            return bits;
        }
        let address = self.image.start + offset;
        let address = self.moved.get(&address).copied().unwrap_or(address);
        old.wrapping_add(address) as u32
    }

    /// What is added to ELF virtual addresses of the instrumented and of the original code object.
    pub fn biases(&self) -> (u64, u64) {
        self.biases
    }
}
