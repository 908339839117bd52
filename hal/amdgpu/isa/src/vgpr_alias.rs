//! VGPR aliases of AccVGPRs in the unified register file of gfx90a and gfx940: AccVGPRs start at the
//! kernel's ACCUM_OFFSET, and VGPRs with numbers from there on name the same registers
//! (AMDGPUUsage, "compute_pgm_rsrc3 for GFX90A-GFX942", ACCUM_OFFSET; MI200 ISA, "VGPRs").

use crate::{AccVgpr, Inst, Register, RegisterRange, Value, Vgpr};
use std::sync::Arc;

impl Inst {
    /// Returns `true` if the instruction names a VGPR that aliases an AccVGPR, for AccVGPRs that start at
    /// `accum_offset`.
    pub fn has_vgpr_aliases(&self, accum_offset: u16) -> bool {
        self.vgprs_named() > accum_offset
    }

    /// One more than the highest VGPR number that the instruction names; 0 if it names no VGPR.
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

    /// Replaces VGPRs that alias AccVGPRs by the AccVGPRs, which start at `accum_offset`: in reads, in
    /// writes, and in operands that lie entirely in the aliased part. The text is unchanged.
    pub fn replace_vgpr_aliases(&mut self, accum_offset: u16) {
        if !self.has_vgpr_aliases(accum_offset) {
            return;
        }
        let words = Arc::make_mut(&mut self.words);
        for operand in &mut words.operands {
            if let Value::Register(range) = &mut operand.value
                && let Split { vgprs: None, acc_vgprs: Some(acc_vgprs) } =
                    split(*range, accum_offset)
            {
                *range = acc_vgprs;
            }
        }
        for ranges in [&mut words.reads, &mut words.writes] {
            if ranges.iter().any(|range| split(*range, accum_offset).acc_vgprs.is_some()) {
                let parts = ranges.iter().map(|range| split(*range, accum_offset));
                *ranges =
                    parts.flat_map(|split| [split.vgprs, split.acc_vgprs]).flatten().collect();
            }
        }
    }
}

/// A register range, split at the first aliased register.
struct Split {
    /// The part without aliases.
    vgprs: Option<RegisterRange>,
    /// The AccVGPRs that the aliased part names.
    acc_vgprs: Option<RegisterRange>,
}

fn split(range: RegisterRange, accum_offset: u16) -> Split {
    let Register::Vgpr(Vgpr(first)) = range.first else {
        return Split { vgprs: Some(range), acc_vgprs: None };
    };
    let below = accum_offset.saturating_sub(first).min(range.words.into()) as u8;
    let number = u8::try_from((first + u16::from(below)).saturating_sub(accum_offset));
    let part = |first, words| (words > 0).then(|| RegisterRange::new(first, words));
    let first_acc_vgpr = number.ok().map(|number| Register::AccVgpr(AccVgpr(number)));
    Split {
        vgprs: part(range.first, below),
        acc_vgprs: first_acc_vgpr.and_then(|first| part(first, range.words - below)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    #[test]
    fn vgpr_aliases_are_replaced_by_acc_vgprs() {
        let isa = Isa::new(&"gfx90a".parse().expect("a target")).expect("an ISA");
        let inst = |text: &str| {
            isa.decode(&isa.assemble(text).expect(text), Pc(0)).expect("an instruction")
        };
        let v = |n| Register::Vgpr(Vgpr(n));
        let a = |n| Register::AccVgpr(AccVgpr(n));
        let mut mov = inst("v_mov_b32 v163, v159");
        assert!(mov.has_vgpr_aliases(160) && !mov.has_vgpr_aliases(164));
        mov.replace_vgpr_aliases(160);
        assert_eq!(mov.writes[0], RegisterRange::new(a(3), 1));
        assert_eq!(mov.reads[0], RegisterRange::new(v(159), 1));
        assert_eq!(mov.operands[0].value, Value::Register(RegisterRange::new(a(3), 1)));
        // A tuple that is partly aliased.
        let mut load = inst("global_load_dwordx4 v[158:161], v2, s[0:1]");
        load.replace_vgpr_aliases(160);
        let parts = [RegisterRange::new(v(158), 2), RegisterRange::new(a(0), 2)];
        assert!(parts.iter().all(|part| load.writes.contains(part)), "{:?}", load.writes);
        let whole = Value::Register(RegisterRange::new(v(158), 4));
        assert_eq!(load.operands[0].value, whole);
        let before = inst("v_accvgpr_write_b32 a3, v7");
        let mut after = before.clone();
        after.replace_vgpr_aliases(8);
        assert_eq!(after, before);
    }
}
