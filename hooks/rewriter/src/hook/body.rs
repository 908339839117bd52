//! Translation of a wrapper's machine code to a [`Body`].

use super::object::{SymbolReference, WrapperCode};
use super::rename::is_renamed;
use super::wrapper::{BEGIN, END, Pins};
use super::wrapper_inst::{delivers, is_hint, is_return, is_wait, marker, refusal};
use super::{Body, BodyInst, HookError, IndexedAccess, IndexedFile, flow, group};
use flipwave_isa::{
    Class, Generation, Inst, Isa, Opcode, Pc, Register, RegisterRange, RegisterSet, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Builds a body.
struct BodyBuilder<'a> {
    isa: &'a Isa,
    function: &'a str,
    code: WrapperCode<'a>,
    /// Instructions of the compiler.
    source: Vec<Inst>,
    instructions: Vec<BodyInst>,
    /// Index in the body of the instruction at each offset of the code.
    indices: BTreeMap<u64, usize>,
}

/// Builds the body of the wrapper of `function`.
///
/// # Errors
/// [`HookError::Unsupported`] if the hook uses unsupported features.
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
        indices: BTreeMap::new(),
    };
    builder.decode()?;
    builder.check_supported()?;
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
    /// Registers that it writes.
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

    /// Registers that it reads.
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

    /// Returns an error for unsupported features.
    fn check_supported(&self) -> Result<(), HookError> {
        for reference in self.code.references.values() {
            if let SymbolReference::Other(name) = reference {
                return Err(self.unsupported(format!(
                    "uses `{name}`, which is neither a variable of its source nor an inlined function: \
                     hooks cannot call functions, and are not linked"
                )));
            }
        }
        match self.source.iter().find_map(|inst| Some((inst, refusal(inst)?))) {
            Some((inst, reason)) => Err(self.unsupported(format!("{reason} (`{inst}`)"))),
            None => Ok(()),
        }
    }

    /// Checks that the compiler does not write the input registers before the wrapper reads them, or the
    /// output registers after the wrapper writes them.
    fn check_pins(&self, pins: &Pins) -> Result<(), HookError> {
        let writes_any = |inst: &Inst, ranges: &[RegisterRange]| {
            let writes: RegisterSet = inst.writes.iter().copied().collect();
            ranges.iter().any(|range| writes.intersects(*range))
        };
        let Some(begin) = self.source.iter().position(|inst| marker(inst) == Some(BEGIN)) else {
            return Err(self.unsupported("has no start marker in the compiled code"));
        };
        let early = self.source.iter().take(begin).any(|inst| writes_any(inst, &pins.inputs));
        let mut reached: Vec<usize> =
            (0..self.source.len()).filter(|at| marker(&self.source[*at]) == Some(END)).collect();
        if reached.is_empty() {
            return Err(self.unsupported("never returns"));
        }
        let mut late = false;
        let mut seen = BTreeSet::new();
        while let Some(at) = reached.pop() {
            // The wrapper may end at the end of the code.
            let Some(inst) = self.source.get(at).filter(|_| seen.insert(at)) else { continue };
            late |= writes_any(inst, &pins.outputs);
            let target = inst.branch_target;
            reached.extend(self.source.iter().position(|inst| Some(inst.pc) == target));
            if !is_return(inst) {
                reached.push(at + 1);
            }
        }
        if early || late {
            let reason = "was compiled to code that overwrites its inputs or outputs";
            return Err(self.unsupported(reason));
        }
        Ok(())
    }

    /// Translates instructions to those of a body. Targets of branches are offsets of the code, until they
    /// are linked.
    fn translate(&mut self) -> Result<(), HookError> {
        // Nothing is outstanding after the last wait for a load's result.
        let delivers = self.source.iter().any(delivers);
        let source = std::mem::take(&mut self.source);
        let (mut begun, mut ended) = (false, false);
        let mut rest = source.as_slice();
        while let [inst, after @ ..] = rest {
            rest = after;
            self.indices.insert(inst.pc.0, self.instructions.len());
            match marker(inst) {
                Some(BEGIN) => begun = true,
                Some(END) => ended = true,
                Some(number) => {
                    let [index, value, after @ ..] = rest else {
                        let reason = "ends inside an access to a register by number";
                        return Err(self.unsupported(reason));
                    };
                    self.instructions.push(self.indexed(number, index, value)?);
                    rest = after;
                }
                None if is_wait(inst) && (!begun || (ended && !delivers)) => {}
                None if is_hint(inst) => {}
                None if is_return(inst) => {
                    ended = false;
                    if !rest.is_empty() {
                        self.branch_to_end()?;
                    }
                }
                None if inst.operation.opcode() == Opcode::SGetpc => {
                    rest = self.address(inst, rest)?;
                }
                None => self.push(inst),
            }
        }
        self.await_translations(&source)
    }

    /// Waits at the end, which all returns reach, until memory instructions have translated their addresses
    /// (gfx1250): the kernel may overwrite their sources.
    fn await_translations(&mut self, source: &[Inst]) -> Result<(), HookError> {
        let is_memory = |inst: &Inst| matches!(inst.class(), Class::Vmem | Class::Smem);
        let translates = self.isa.target().generation() == Generation::Gfx125;
        if !translates || !source.iter().any(is_memory) {
            return Ok(());
        }
        self.indices.insert(self.code.bytes.len() as u64, self.instructions.len());
        let text = "s_wait_xcnt 0x0";
        let bytes = self
            .isa
            .assemble(text)
            .map_err(|reason| HookError::Assemble { text: text.into(), reason })?;
        let inst = Box::new(self.decode_at(&bytes, Pc(0))?);
        self.instructions.push(BodyInst::Inst { inst, bytes });
        Ok(())
    }

    /// Appends an instruction of the compiler.
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

    /// Appends a branch to the end, for a return in the middle of the code.
    fn branch_to_end(&mut self) -> Result<(), HookError> {
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

    /// Translates `s_getpc_b64` and the two following additions. Waits in between are moved before them.
    /// The sign extension of gfx12 is omitted, because addresses of loaded data do not need it.
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
                Some(SymbolReference::Wide(offset)) => {
                    (low, high) = (Some(target(offset)), Some(target(offset)))
                }
                _ if inst.class() == Class::Wait => self.push(inst),
                _ if inst.operation.opcode() == Opcode::SSextI16 => {}
                _ => break,
            }
            rest = after;
        }
        let destination = getpc.operands.first().map(|operand| &operand.value);
        match (low, high, destination) {
            (Some(offset), Some(high), Some(Value::Register(destination))) if offset == high => {
                let destination = *destination;
                self.instructions.push(BodyInst::Address { destination, offset });
                Ok(rest)
            }
            _ => {
                Err(self
                    .unsupported(format!("computes an address in an unexpected way (`{getpc}`)")))
            }
        }
    }

    /// Translates the marker of an access by number and the two following moves, which name its registers.
    fn indexed(&self, number: u16, index: &Inst, value: &Inst) -> Result<BodyInst, HookError> {
        let moved = |inst: &Inst| match inst.operands.as_slice() {
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
        match (moved(index), moved(value)) {
            (Some(index), Some(value)) => Ok(BodyInst::Indexed(IndexedAccess {
                writes: number & 0xf0 == 0x20,
                file,
                index,
                value,
            })),
            _ => Err(self
                .unsupported("accesses a register by number without the functions of flipwave.h")),
        }
    }

    /// Replaces offsets in branches with indices.
    fn link(&mut self) -> Result<(), HookError> {
        let (count, end) = (self.instructions.len(), self.code.bytes.len());
        for at in 0..count {
            let BodyInst::Branch { to, .. } = &mut self.instructions[at] else { continue };
            let index = self.indices.get(&(*to as u64)).copied();
            match index.or((*to == end).then_some(count)) {
                Some(target) => *to = target,
                None => return Err(self.unsupported("branches to an unknown instruction")),
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
    fn returns_become_branches_to_the_end_and_branches_keep_their_targets() {
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
    fn addresses_are_relative_to_the_end_of_s_getpc() {
        let text = "s_trap 0xf100\ns_getpc_b64 s[4:5]\ns_add_u32 s4, s4, 0x12345678\ns_nop 1\n\
            s_addc_u32 s5, s5, 0x12345678\ns_trap 0xf101\ns_setpc_b64 s[30:31]";
        let (low, high) = (SymbolReference::Low(44), SymbolReference::High(56));
        let body = built(text, &[(12, low.clone()), (24, high)]).expect("a body");
        assert_eq!(texts(&body), ["s_nop 1", "s[4:5] = 40"]);
        let error =
            built(text, &[(12, low), (24, SymbolReference::High(60))]).expect_err("refused");
        assert!(error.to_string().contains("address in an unexpected way"), "{error}");
    }

    #[test]
    fn code_that_overwrites_its_inputs_or_outputs_is_refused() {
        let overwrites = "hook `f` was compiled to code that overwrites its inputs or outputs";
        let [begin, end] = ["s_trap 0xf100\n", "s_trap 0xf101\n"];
        let back = "s_setpc_b64 s[30:31]";
        assert!(built(&format!("v_mov_b32 v1, 0\n{begin}{end}{back}"), &[]).is_ok());
        assert_eq!(refused(&format!("v_mov_b32 v0, 0\n{begin}{end}{back}")), overwrites);
        assert_eq!(refused(&format!("{begin}{end}v_mov_b32 v1, 0\n{back}")), overwrites);
        let jumps = format!("{begin}s_branch 2\n{end}s_branch 1\n{back}\nv_mov_b32 v1, 0\n{back}");
        assert_eq!(refused(&jumps), overwrites);
        assert_eq!(refused(&format!("{begin}{back}")), "hook `f` never returns");
        assert_eq!(refused(back), "hook `f` has no start marker in the compiled code");
        assert!(refused(&format!("{begin}s_trap 0xf110\n{end}")).contains("by number"));
    }
}
