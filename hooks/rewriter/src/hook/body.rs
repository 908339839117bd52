//! From the machine code of a wrapper to a [`Body`].

use super::object::{SymbolReference, WrapperCode};
use super::rename::is_renamed;
use super::wrapper::{BEGIN, END, Pins};
use super::wrapper_inst::{delivers, is_hint, is_return, is_wait, marker, refusal};
use super::{Body, BodyInst, HookError, IndexedAccess, IndexedFile, flow, group};
use flipwave_isa::{Class, Inst, Isa, Opcode, Pc, Register, RegisterRange, RegisterSet, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A body in the making.
struct BodyBuilder<'a> {
    isa: &'a Isa,
    function: &'a str,
    code: WrapperCode<'a>,
    /// Instructions as the compiler wrote them.
    source: Vec<Inst>,
    instructions: Vec<BodyInst>,
    /// How many instructions of the body precede the one at an offset of the code.
    before: BTreeMap<u64, usize>,
}

/// The body of the wrapper of `function`.
///
/// # Errors
/// [`HookError::Unsupported`] where the hook does what hooks cannot do.
pub(super) fn build(
    isa: &Isa,
    function: &str,
    code: WrapperCode<'_>,
    pins: Pins,
) -> Result<Body, HookError> {
    let mut builder = BodyBuilder {
        isa,
        function,
        code,
        source: Vec::new(),
        instructions: Vec::new(),
        before: BTreeMap::new(),
    };
    builder.decode()?;
    builder.refuse()?;
    builder.check_pins(&pins)?;
    builder.translate()?;
    builder.link()?;
    let BodyBuilder { instructions, .. } = builder;
    let mut writes = RegisterSet::EMPTY;
    for inst in &instructions {
        writes = writes.union(inst.writes());
    }
    let live = flow::live_at_start(&instructions, &pins.outputs);
    let reads = live.iter().filter(|register| !is_renamed(*register)).collect();
    let read = pins.inputs.iter().filter(|input| live.intersects(**input));
    let kept = read.chain(&pins.outputs).copied();
    Ok(Body {
        groups: group::groups(&instructions, kept, isa.target()),
        widens_exec: flow::widens_exec(&instructions),
        instructions,
        inputs: pins.inputs,
        outputs: pins.outputs,
        writes,
        reads,
    })
}

impl BodyInst {
    /// Everything it writes.
    pub fn writes(&self) -> RegisterSet {
        match self {
            BodyInst::Inst { inst, .. } | BodyInst::Branch { inst, .. } => {
                inst.writes.iter().copied().collect()
            }
            BodyInst::Address { destination, .. } => {
                [*destination, RegisterRange::new(Register::Scc, 1)].into_iter().collect()
            }
            BodyInst::Indexed(indexed) => {
                (!indexed.writes).then_some(indexed.value).into_iter().collect()
            }
        }
    }

    /// Everything it reads.
    pub fn reads(&self) -> RegisterSet {
        match self {
            BodyInst::Inst { inst, .. } | BodyInst::Branch { inst, .. } => {
                inst.reads.iter().copied().collect()
            }
            BodyInst::Address { .. } => RegisterSet::EMPTY,
            BodyInst::Indexed(IndexedAccess { writes, index, value, .. }) => {
                let value = writes.then_some(*value);
                [Some(*index), value].into_iter().flatten().collect()
            }
        }
    }
}

impl BodyBuilder<'_> {
    fn unsupported(&self, reason: impl Into<String>) -> HookError {
        HookError::Unsupported { function: self.function.to_owned(), reason: reason.into() }
    }

    fn decode_at(&self, bytes: &[u8], pc: Pc) -> Result<Inst, HookError> {
        let function = self.function.to_owned();
        self.isa.decode(bytes, pc).map_err(|reason| HookError::Decode { function, reason })
    }

    fn decode(&mut self) -> Result<(), HookError> {
        let mut rest = self.code.bytes;
        let mut at = 0;
        while !rest.is_empty() {
            let inst = self.decode_at(rest, Pc(at))?;
            rest = &rest[usize::from(inst.size)..];
            at += u64::from(inst.size);
            self.source.push(inst);
        }
        Ok(())
    }

    /// Refuses what hooks cannot do.
    fn refuse(&self) -> Result<(), HookError> {
        for reference in self.code.references.values() {
            if let SymbolReference::Elsewhere(name) = reference {
                return Err(self.unsupported(format!(
                    "needs `{name}`, which is not a variable of its source and was not inlined: \
                     hooks cannot call, and link with nothing"
                )));
            }
        }
        match self.source.iter().find_map(|inst| Some((inst, refusal(inst)?))) {
            Some((inst, reason)) => Err(self.unsupported(format!("{reason} (`{inst}`)"))),
            None => Ok(()),
        }
    }

    /// The compiler must not have used the inputs' registers before the wrapper took them, nor
    /// the outputs' after it left them.
    fn check_pins(&self, pins: &Pins) -> Result<(), HookError> {
        let meets = |inst: &Inst, ranges: &[RegisterRange]| {
            let writes: RegisterSet = inst.writes.iter().copied().collect();
            ranges.iter().any(|range| writes.intersects(*range))
        };
        let Some(begin) = self.source.iter().position(|inst| marker(inst) == Some(BEGIN)) else {
            return Err(self.unsupported("has no beginning in the compiled code"));
        };
        let early = self.source.iter().take(begin).any(|inst| meets(inst, &pins.inputs));
        let mut reached: Vec<usize> =
            (0..self.source.len()).filter(|at| marker(&self.source[*at]) == Some(END)).collect();
        if reached.is_empty() {
            return Err(self.unsupported("never returns"));
        }
        let mut late = false;
        let mut seen = BTreeSet::new();
        while let Some(at) = reached.pop() {
            // The wrapper's end may be that of the code.
            let Some(inst) = self.source.get(at).filter(|_| seen.insert(at)) else { continue };
            late |= meets(inst, &pins.outputs);
            let target = inst.branch_target;
            reached.extend(self.source.iter().position(|other| Some(other.pc) == target));
            if !is_return(inst) {
                reached.push(at + 1);
            }
        }
        match early || late {
            true => Err(self.unsupported("was compiled to code that destroys its own inputs")),
            false => Ok(()),
        }
    }

    /// Turns instructions into those of a body; branches go to offsets of the code for now.
    fn translate(&mut self) -> Result<(), HookError> {
        // Nothing is outstanding after the last wait for a load's result.
        let delivers = self.source.iter().any(delivers);
        let source = std::mem::take(&mut self.source);
        let (mut begun, mut ended) = (false, false);
        let mut rest = source.as_slice();
        while let [inst, after @ ..] = rest {
            rest = after;
            self.before.insert(inst.pc.0, self.instructions.len());
            match marker(inst) {
                Some(BEGIN) => begun = true,
                Some(END) => ended = true,
                Some(number) => {
                    let [index, value, after @ ..] = rest else {
                        return Err(self.unsupported("ends within an access by number"));
                    };
                    self.instructions.push(self.indexed(number, index, value)?);
                    rest = after;
                }
                None if is_wait(inst) && (!begun || (ended && !delivers)) => {}
                None if is_hint(inst) => {}
                None if is_return(inst) => {
                    ended = false;
                    if !rest.is_empty() {
                        self.leave()?;
                    }
                }
                None if inst.operation.opcode() == Opcode::SGetpc => {
                    rest = self.address(inst, rest)?;
                }
                None => self.push(inst),
            }
        }
        Ok(())
    }

    fn push(&mut self, inst: &Inst) {
        let start = inst.pc.0 as usize;
        let range = start..start + usize::from(inst.size);
        let bytes = self.code.bytes[range].to_vec();
        let word = bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let inst = Box::new(inst.clone());
        self.instructions.push(match inst.branch_target {
            Some(target) => {
                BodyInst::Branch { inst, word: word & 0xffff_0000, to: target.0 as usize }
            }
            None => BodyInst::Inst { inst, bytes },
        });
    }

    /// A return in the middle is a branch to the end.
    fn leave(&mut self) -> Result<(), HookError> {
        let text = "s_branch 0";
        let bytes = self
            .isa
            .assemble(text)
            .map_err(|reason| HookError::Assemble { text: text.into(), reason })?;
        let inst = self.decode_at(&bytes, Pc(0))?;
        let word = bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let to = self.code.bytes.len();
        self.instructions.push(BodyInst::Branch { inst: Box::new(inst), word, to });
        Ok(())
    }

    /// `s_getpc_b64` with the two additions after it. What the compiler put in between against
    /// hazards comes before; that gfx12 extends the sign of 48 bits is nothing that the address of
    /// what is loaded needs.
    fn address<'i>(&mut self, getpc: &Inst, mut rest: &'i [Inst]) -> Result<&'i [Inst], HookError> {
        let counted_from = getpc.pc.0 + u64::from(getpc.size);
        let (mut low, mut high) = (None, None);
        while let [inst, after @ ..] = rest
            && high.is_none()
        {
            let literal = inst.pc.0 + 4;
            let target = |offset: &u64| offset.wrapping_sub(literal - counted_from);
            match self.code.references.get(&literal) {
                Some(SymbolReference::Low(offset)) => low = Some(target(offset)),
                Some(SymbolReference::High(offset)) => high = Some(target(offset)),
                _ if inst.class() == Class::Wait => self.push(inst),
                _ if inst.operation.opcode() == Opcode::SSextI16 => {}
                _ => break,
            }
            rest = after;
        }
        let destination = getpc.operands.first().map(|operand| &operand.value);
        match (low, high, destination) {
            (Some(offset), Some(same), Some(Value::Register(destination))) if offset == same => {
                let destination = *destination;
                self.instructions.push(BodyInst::Address { destination, offset });
                Ok(rest)
            }
            _ => Err(self
                .unsupported(format!("computes an address otherwise than expected (`{getpc}`)"))),
        }
    }

    /// The marker of an access by number, and the two moves after it that name its registers.
    fn indexed(&self, number: u16, index: &Inst, value: &Inst) -> Result<BodyInst, HookError> {
        let own = |inst: &Inst| match inst.operands.as_slice() {
            [to, from] if to.value == from.value => match to.value {
                Value::Register(range) => Some(range),
                _ => None,
            },
            _ => None,
        };
        let file = match number & 0xf {
            0 => IndexedFile::Vgpr,
            1 => IndexedFile::AccVgpr,
            _ => IndexedFile::Sgpr,
        };
        match (own(index), own(value)) {
            (Some(index), Some(value)) => Ok(BodyInst::Indexed(IndexedAccess {
                writes: number & 0xf0 == 0x20,
                file,
                index,
                value,
            })),
            _ => Err(self.unsupported("accesses a register by number otherwise than flipwave.h")),
        }
    }

    /// Turns the branches' offsets into indices.
    fn link(&mut self) -> Result<(), HookError> {
        let (count, end) = (self.instructions.len(), self.code.bytes.len());
        for at in 0..count {
            let BodyInst::Branch { to, .. } = &mut self.instructions[at] else { continue };
            let target = match *to == end {
                true => Some(count),
                false => self.before.get(&(*to as u64)).copied(),
            };
            match target {
                Some(target) => *to = target,
                None => return Err(self.unsupported("branches to what is no instruction of it")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::object::WrapperCode;

    fn built(text: &str, references: &[(u64, SymbolReference)]) -> Result<Body, HookError> {
        let target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let bytes = isa.assemble(text).expect("assembles");
        let code = WrapperCode { bytes: &bytes, references: references.iter().cloned().collect() };
        let pin = |number| RegisterRange::new(Register::Vgpr(flipwave_isa::Vgpr(number)), 1);
        build(&isa, "f", code, Pins { inputs: vec![pin(0)], outputs: vec![pin(1)] })
    }

    fn refused(text: &str) -> String {
        built(text, &[]).expect_err("refused").to_string()
    }

    fn texts(body: &Body) -> Vec<String> {
        body.instructions
            .iter()
            .map(|inst| match inst {
                BodyInst::Inst { inst, .. } => inst.text.clone(),
                BodyInst::Branch { inst, to, .. } => {
                    let (name, _) = inst.text.split_once(' ').unwrap_or_default();
                    format!("{name} {to}")
                }
                BodyInst::Address { destination, offset } => format!("{destination} = {offset}"),
                BodyInst::Indexed(indexed) => format!("{indexed:?}"),
            })
            .collect()
    }

    #[test]
    fn returns_are_branches_to_the_end_and_branches_go_where_they_went() {
        let body = built(
            "s_waitcnt vmcnt(0)\ns_trap 0xf100\nbegin:\nv_mov_b32 v1, v0\n\
             s_cbranch_scc1 begin\ns_cbranch_scc0 other\ns_trap 0xf101\ns_waitcnt vmcnt(0)\n\
             s_setpc_b64 s[30:31]\nother: v_mov_b32 v1, 3\ns_trap 0xf101\n\
             s_setpc_b64 s[30:31]",
            &[],
        );
        assert_eq!(
            texts(&body.expect("a body")),
            [
                "v_mov_b32_e32 v1, v0",
                "s_cbranch_scc1 0",
                "s_cbranch_scc0 4",
                "s_branch 5",
                "v_mov_b32_e32 v1, 3"
            ]
        );
    }

    #[test]
    fn an_address_is_counted_from_the_end_of_its_s_getpc() {
        let text = "s_trap 0xf100\ns_getpc_b64 s[4:5]\ns_add_u32 s4, s4, 0x12345678\ns_nop 1\n\
            s_addc_u32 s5, s5, 0x12345678\ns_trap 0xf101\ns_setpc_b64 s[30:31]";
        let (low, high) = (SymbolReference::Low(44), SymbolReference::High(56));
        let body = built(text, &[(12, low.clone()), (24, high)]).expect("a body");
        assert_eq!(texts(&body), ["s_nop 1", "s[4:5] = 40"]);
        let error =
            built(text, &[(12, low), (24, SymbolReference::High(60))]).expect_err("refused");
        assert!(error.to_string().contains("address otherwise than expected"), "{error}");
    }

    #[test]
    fn code_that_destroys_its_inputs_or_outputs_is_refused() {
        let destroys = "hook `f` was compiled to code that destroys its own inputs";
        let [begin, end] = ["s_trap 0xf100\n", "s_trap 0xf101\n"];
        let back = "s_setpc_b64 s[30:31]";
        assert!(built(&format!("v_mov_b32 v1, 0\n{begin}{end}{back}"), &[]).is_ok());
        assert_eq!(refused(&format!("v_mov_b32 v0, 0\n{begin}{end}{back}")), destroys);
        assert_eq!(refused(&format!("{begin}{end}v_mov_b32 v1, 0\n{back}")), destroys);
        let jumps = format!("{begin}s_branch 2\n{end}s_branch 1\n{back}\nv_mov_b32 v1, 0\n{back}");
        assert_eq!(refused(&jumps), destroys);
        assert_eq!(refused(&format!("{begin}{back}")), "hook `f` never returns");
        assert_eq!(refused(back), "hook `f` has no beginning in the compiled code");
        assert!(refused(&format!("{begin}s_trap 0xf110\n{end}")).contains("by number"));
    }
}
