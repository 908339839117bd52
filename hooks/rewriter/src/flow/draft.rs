//! The instructions of one function.

use super::extent::FunctionExtent;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Control, Generation, Inst, Isa, Opcode, Pc};

/// A function on the way to being understood.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Where it is.
    pub extent: FunctionExtent,
    /// Its instructions, by ascending address.
    pub insts: Vec<Inst>,
    /// Instructions with bytes after them that are no instruction.
    pub gaps: Vec<usize>,
}

impl Draft {
    /// Decodes a function. Padding after its end is left out.
    pub fn decode(object: &CodeObject, isa: &Isa, extent: &FunctionExtent) -> Draft {
        let mut draft = Draft { extent: extent.clone(), insts: Vec::new(), gaps: Vec::new() };
        let length = usize::try_from(extent.end - extent.start).unwrap_or_default();
        let code = object.bytes_at(Pc(extent.start), length).unwrap_or_default();
        let mut at = 0;
        while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
            let pc = Pc(extent.start + at as u64);
            match isa.decode(rest, pc) {
                Ok(inst) => {
                    at += usize::from(inst.size).max(1);
                    draft.insts.push(inst);
                }
                Err(_) => {
                    at += 4;
                    let before = draft.insts.len().saturating_sub(1);
                    if draft.gaps.last() != Some(&before) {
                        draft.gaps.push(before);
                    }
                }
            }
        }
        draft.trim(object, isa.target().generation());
        draft
    }

    /// Where the first instruction of a function begins, if it has any.
    pub fn first(object: &CodeObject, isa: &Isa, extent: &FunctionExtent) -> Option<Pc> {
        let length = usize::try_from(extent.end - extent.start).unwrap_or_default();
        let code = object.bytes_at(Pc(extent.start), length).unwrap_or_default();
        let places = (0..code.len()).step_by(4).map(|at| (at, Pc(extent.start + at as u64)));
        let mut found = places.filter(|(at, pc)| isa.decode(&code[*at..], *pc).is_ok());
        found.next().map(|(_, pc)| pc)
    }

    /// The instruction that begins at an address.
    pub fn at(&self, pc: Pc) -> Option<usize> {
        self.insts.binary_search_by_key(&pc, |inst| inst.pc).ok()
    }

    /// Takes padding off the end: what stands after an instruction that control does not leave
    /// to the next.
    fn trim(&mut self, object: &CodeObject, generation: Generation) {
        let is_padding = |inst: &Inst| {
            let bytes = object.bytes_at(inst.pc, inst.size.into()).unwrap_or_default();
            matches!(inst.operation.opcode(), Opcode::SCodeEnd | Opcode::SNop)
                || bytes.iter().all(|b| *b == 0)
        };
        let padding = self.insts.iter().rev().take_while(|inst| is_padding(inst)).count();
        let kept = self.insts.len() - padding;
        let may_end = |inst: &Inst| !may_run_on(inst.control(generation));
        if self.insts[..kept].last().is_some_and(may_end) {
            self.insts.truncate(kept);
            let end = self.insts.last().map_or(self.extent.start, |i| i.pc.0 + u64::from(i.size));
            let length = usize::try_from(self.extent.end.saturating_sub(end)).unwrap_or_default();
            let after = object.bytes_at(Pc(end), length).unwrap_or_default();
            let is_data = self.extent.is_exact && after.iter().any(|byte| *byte != 0);
            self.gaps.retain(|gap| gap + 1 < kept || (is_data && padding == 0));
        }
    }
}

/// Whether a function cannot end after an instruction.
fn may_run_on(control: Control) -> bool {
    matches!(control, Control::Next | Control::Conditional)
}
