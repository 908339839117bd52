//! One file of vector registers that two kinds of names reach (gfx90a, gfx940): AccVGPRs begin at
//! the kernel's ACCUM_OFFSET, and VGPRs of that number and above are the same registers
//! (AMDGPUUsage, "compute_pgm_rsrc3 for GFX90A-GFX942", ACCUM_OFFSET; MI200 ISA, "VGPRs").

use crate::{AccVgpr, Inst, Register, RegisterRange, Value, Vgpr};
use std::sync::Arc;

impl Inst {
    /// Whether it names a VGPR that is an AccVGPR where those begin at `accum_offset`.
    pub fn names_shared_vgprs(&self, accum_offset: u16) -> bool {
        self.vgprs_named() > accum_offset
    }

    /// One more than the highest number of the VGPRs that it names; 0 if it names none.
    pub fn vgprs_named(&self) -> u16 {
        let operands = self.operands.iter().filter_map(|operand| match operand.value {
            Value::Register(range) => Some(range),
            _ => None,
        });
        let named = operands.chain(self.reads.iter().copied()).chain(self.writes.iter().copied());
        let ends = named.filter_map(|range| match range.first {
            Register::Vgpr(Vgpr(first)) => Some(first + u16::from(range.words)),
            _ => None,
        });
        ends.max().unwrap_or(0)
    }

    /// Gives registers that have two names the name of the AccVGPR, where those begin at
    /// `accum_offset`: in what it reads and writes, and in operands that do not begin below. The
    /// text stays.
    pub fn name_shared_vgprs(&mut self, accum_offset: u16) {
        if !self.names_shared_vgprs(accum_offset) {
            return;
        }
        let words = Arc::make_mut(&mut self.words);
        for operand in &mut words.operands {
            if let Value::Register(range) = &mut operand.value
                && let (None, Some(shared)) = split(*range, accum_offset)
            {
                *range = shared;
            }
        }
        for ranges in [&mut words.reads, &mut words.writes] {
            if ranges.iter().any(|range| split(*range, accum_offset).1.is_some()) {
                let parts = ranges.iter().map(|range| split(*range, accum_offset));
                *ranges = parts.flat_map(|(own, shared)| [own, shared]).flatten().collect();
            }
        }
    }
}

/// What of a range has but one name, and the AccVGPRs that the rest is.
fn split(
    range: RegisterRange,
    accum_offset: u16,
) -> (Option<RegisterRange>, Option<RegisterRange>) {
    let Register::Vgpr(Vgpr(first)) = range.first else { return (Some(range), None) };
    let below = accum_offset.saturating_sub(first).min(range.words.into()) as u8;
    let number = u8::try_from((first + u16::from(below)).saturating_sub(accum_offset));
    let part = |first, words| (words > 0).then(|| RegisterRange::new(first, words));
    let shared = number.ok().map(|number| Register::AccVgpr(AccVgpr(number)));
    (part(range.first, below), shared.and_then(|own| part(own, range.words - below)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    #[test]
    fn a_register_with_two_names_has_one() {
        let isa = Isa::new(&"gfx90a".parse().expect("a target")).expect("an ISA");
        let inst = |text: &str| {
            isa.decode(&isa.assemble(text).expect(text), Pc(0)).expect("an instruction")
        };
        let v = |n| Register::Vgpr(Vgpr(n));
        let a = |n| Register::AccVgpr(AccVgpr(n));
        let mut mov = inst("v_mov_b32 v163, v159");
        assert!(mov.names_shared_vgprs(160) && !mov.names_shared_vgprs(164));
        mov.name_shared_vgprs(160);
        assert_eq!(mov.writes[0], RegisterRange::new(a(3), 1));
        assert_eq!(mov.reads[0], RegisterRange::new(v(159), 1));
        assert_eq!(mov.operands[0].value, Value::Register(RegisterRange::new(a(3), 1)));
        // A tuple that begins below and ends above.
        let mut load = inst("global_load_dwordx4 v[158:161], v2, s[0:1]");
        load.name_shared_vgprs(160);
        let parts = [RegisterRange::new(v(158), 2), RegisterRange::new(a(0), 2)];
        assert!(parts.iter().all(|part| load.writes.contains(part)), "{:?}", load.writes);
        let whole = Value::Register(RegisterRange::new(v(158), 4));
        assert_eq!(load.operands[0].value, whole);
        let before = inst("v_accvgpr_write_b32 a3, v7");
        let mut after = before.clone();
        after.name_shared_vgprs(8);
        assert_eq!(after, before);
    }
}
