//! The decoded instructions of one function.

use super::extents::FunctionExtent;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Control, Generation, Inst, Isa, Opcode, Pc};

/// The decoded instructions of a function.
#[derive(Clone, Debug)]
pub struct DecodedFunction {
    /// The range of addresses.
    pub extent: FunctionExtent,
    /// Instructions, by ascending address.
    pub insts: Vec<Inst>,
    /// Indices of instructions that are followed by bytes that cannot be decoded.
    pub gaps: Vec<usize>,
}

impl DecodedFunction {
    /// Decodes a function, without the padding after its end.
    pub fn decode(object: &CodeObject, isa: &Isa, extent: &FunctionExtent) -> DecodedFunction {
        let mut decoded =
            DecodedFunction { extent: extent.clone(), insts: Vec::new(), gaps: Vec::new() };
        let length = usize::try_from(extent.end - extent.start).unwrap_or_default();
        let code = object.bytes_at(Pc(extent.start), length).unwrap_or_default();
        let mut at = 0;
        while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
            let pc = Pc(extent.start + at as u64);
            match isa.decode(rest, pc) {
                Ok(inst) => {
                    at += usize::from(inst.size).max(1);
                    decoded.insts.push(inst);
                }
                Err(_) => {
                    at += 4;
                    let before = decoded.insts.len().saturating_sub(1);
                    if decoded.gaps.last() != Some(&before) {
                        decoded.gaps.push(before);
                    }
                }
            }
        }
        decoded.trim(object, isa.target().generation());
        decoded
    }

    /// The address of a function's first instruction; `None` if nothing can be decoded.
    pub fn first(object: &CodeObject, isa: &Isa, extent: &FunctionExtent) -> Option<Pc> {
        let length = usize::try_from(extent.end - extent.start).unwrap_or_default();
        let code = object.bytes_at(Pc(extent.start), length).unwrap_or_default();
        let offsets = (0..code.len()).step_by(4).map(|at| (at, Pc(extent.start + at as u64)));
        let mut found = offsets.filter(|(at, pc)| isa.decode(&code[*at..], *pc).is_ok());
        found.next().map(|(_, pc)| pc)
    }

    /// The instruction that begins at an address.
    pub fn at(&self, pc: Pc) -> Option<usize> {
        self.insts.binary_search_by_key(&pc, |inst| inst.pc).ok()
    }

    /// Removes padding from the end, if control cannot fall through into it.
    fn trim(&mut self, object: &CodeObject, generation: Generation) {
        let is_padding = |inst: &Inst| {
            let bytes = object.bytes_at(inst.pc, inst.size.into()).unwrap_or_default();
            matches!(inst.operation.opcode(), Opcode::SCodeEnd | Opcode::SNop)
                || bytes.iter().all(|b| *b == 0)
        };
        let padding = self.insts.iter().rev().take_while(|inst| is_padding(inst)).count();
        let kept = self.insts.len() - padding;
        let ends_flow =
            |inst: &Inst| !matches!(inst.control(generation), Control::Next | Control::Conditional);
        if self.insts[..kept].last().is_some_and(ends_flow) {
            self.insts.truncate(kept);
            let end = self
                .insts
                .last()
                .map_or(self.extent.start, |inst| inst.pc.0 + u64::from(inst.size));
            let length = usize::try_from(self.extent.end.saturating_sub(end)).unwrap_or_default();
            let after = object.bytes_at(Pc(end), length).unwrap_or_default();
            let is_data = self.extent.is_exact && after.iter().any(|byte| *byte != 0);
            self.gaps.retain(|gap| gap + 1 < kept || (is_data && padding == 0));
        }
    }
}
