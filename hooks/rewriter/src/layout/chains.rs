//! Addresses that the program computes from its PC: a difference of two addresses is added to
//! what `s_getpc_b64` gives. When one of the two moves, so does the difference.

use super::LayoutError;
use super::lookup::Lookup;
use super::stream::Label;
use crate::flow::{AddressChain, Disassembly, IndexRange, InstIndex};
use flipwave_isa::{Encoding, Inst, Opcode, Operand, Value};
use std::collections::BTreeMap;

/// The chains of a program.
pub(super) struct Chains {
    chains: Vec<Chain>,
    /// The `s_getpc_b64`s of chains and, of additions, which source is the constant.
    members: BTreeMap<InstIndex, Option<usize>>,
}

/// A chain and what its constants are worth.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub chain: AddressChain,
    /// What the constants add to the PC.
    pub difference: u64,
    /// Whether the constants are subtracted.
    pub subtracts: bool,
    /// What the sum leads to.
    pub to: Label,
}

impl Chains {
    /// # Errors
    /// [`LayoutError::Chain`] where a constant is not understood.
    pub fn new(program: &Disassembly, lookup: &Lookup<'_>) -> Result<Chains, LayoutError> {
        let mut chains = Vec::with_capacity(program.addresses.len());
        let mut members = BTreeMap::new();
        for chain in &program.addresses {
            let wrong = |reason: &str| error(program, chain, reason);
            let constant = |index: InstIndex, opcodes: [Opcode; 2]| {
                let inst = &program.instructions[index];
                let opcode = inst.operation.opcode();
                let subtracts = opcodes.iter().position(|own| opcode == *own)? == 1;
                let (source, value) = constant_source(inst)?;
                (!subtracts || source == 1).then_some((subtracts, source, value))
            };
            let (subtracts, low_source, low) = constant(chain.low, [Opcode::SAdd, Opcode::SSub])
                .ok_or_else(|| wrong("its lower half is no sum with a constant"))?;
            let (high_subtracts, high_source, high) =
                constant(chain.high, [Opcode::SAddc, Opcode::SSubb])
                    .ok_or_else(|| wrong("its upper half is no sum with a constant"))?;
            if subtracts != high_subtracts {
                return Err(wrong("one half is added, the other subtracted"));
            }
            members.insert(chain.getpc, None);
            members.insert(chain.low, Some(low_source));
            members.insert(chain.high, Some(high_source));
            let constants = u64::from(high) << 32 | u64::from(low);
            let difference = if subtracts { constants.wrapping_neg() } else { constants };
            let to = label(program, lookup, chain);
            chains.push(Chain { chain: chain.clone(), difference, subtracts, to });
        }
        chains.sort_by_key(|known: &Chain| known.chain.getpc);
        Ok(Chains { chains, members })
    }

    /// All of them, by ascending address of the `s_getpc_b64`.
    pub fn iter(&self) -> impl Iterator<Item = &Chain> {
        self.chains.iter()
    }

    /// Those that begin within some instructions.
    pub fn within(&self, range: IndexRange<InstIndex>) -> impl Iterator<Item = &Chain> {
        let start = self.chains.partition_point(|known| known.chain.getpc < range.start);
        self.chains.iter().skip(start).take_while(move |known| known.chain.getpc < range.end)
    }

    /// Which source of an instruction is the constant of a chain.
    pub fn constant_source(&self, index: InstIndex, inst: &Inst) -> Option<usize> {
        if inst.encoding != Encoding::Sop2 {
            return None;
        }
        self.members.get(&index).copied().flatten()
    }

    /// Whether an instruction belongs to a chain.
    pub fn has(&self, index: InstIndex) -> bool {
        self.members.contains_key(&index)
    }
}

impl Chain {
    /// Its additions that have an inline constant: where the `s_getpc_b64` moves, they must grow.
    pub fn without_literal(&self, program: &Disassembly) -> impl Iterator<Item = InstIndex> {
        let members = [self.chain.low, self.chain.high].into_iter();
        members.filter(|member| program.instructions[*member].size == 4)
    }

    /// The constants, low and high, when `s_getpc_b64` and the target have moved by these numbers of
    /// bytes.
    pub fn constants(&self, getpc_moved: u64, target_moved: u64) -> [u32; 2] {
        let difference = self.difference.wrapping_add(target_moved).wrapping_sub(getpc_moved);
        let constants = if self.subtracts { difference.wrapping_neg() } else { difference };
        [constants as u32, (constants >> 32) as u32]
    }
}

pub(super) fn error(program: &Disassembly, chain: &AddressChain, reason: &str) -> LayoutError {
    LayoutError::Chain {
        pc: program.instructions[chain.getpc].pc,
        target: chain.target,
        register: chain.register,
        reason: reason.to_owned(),
    }
}

/// The source that is a constant, from 0, and its value.
fn constant_source(inst: &Inst) -> Option<(usize, u32)> {
    if inst.encoding != Encoding::Sop2 {
        return None;
    }
    let value = |operand: &Operand| match operand.value {
        Value::Literal(value) => Some(value),
        Value::Integer(value) => Some(value as u32),
        _ => None,
    };
    inst.sources().enumerate().find_map(|(index, operand)| Some((index, value(operand)?)))
}

/// What a chain's sum leads to. A kernel is not called: the address of its first instruction
/// within itself is that of a loop.
fn label(program: &Disassembly, lookup: &Lookup<'_>, chain: &AddressChain) -> Label {
    let Some(index) = lookup.at(chain.target) else { return Label::address(chain.target.0) };
    let is_kernel = program.functions[lookup.function_of(index)].kernel.is_some();
    if is_kernel { lookup.way(chain.getpc, index) } else { lookup.code_label(index) }
}
