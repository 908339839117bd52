//! Address chains: PC-relative addresses, computed by `s_getpc_b64` and two additions of the distance
//! to the target. The distance changes when the chain or its target moves.

use super::LayoutError;
use super::lookup::Lookup;
use super::stream::Label;
use crate::flow::{AddressChain, Disassembly, IndexRange, InstIndex};
use flipwave_isa::{Encoding, Inst, Opcode, Operand, Value};
use std::collections::BTreeMap;

/// The address chains of a program.
pub(super) struct Chains {
    chains: Vec<Chain>,
    /// The instructions of all chains; for additions, the index of the constant source.
    members: BTreeMap<InstIndex, Option<usize>>,
}

/// An address chain with its decoded constants.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub chain: AddressChain,
    /// Distance that the constants add to the PC.
    pub difference: u64,
    /// `true` if the constants are subtracted.
    pub subtracts: bool,
    /// Target of the address.
    pub to: Label,
}

impl Chains {
    /// Decodes the chains of a program.
    ///
    /// # Errors
    /// [`LayoutError::Chain`] for additions without a recognized constant.
    pub fn new(program: &Disassembly, lookup: &Lookup<'_>) -> Result<Chains, LayoutError> {
        let mut chains = Vec::with_capacity(program.addresses.len());
        let mut members = BTreeMap::new();
        for chain in &program.addresses {
            let wrong = |reason: &str| error(program, chain, reason);
            let constant = |index: InstIndex, opcodes: [Opcode; 2]| {
                let inst = &program.instructions[index];
                let opcode = inst.operation.opcode();
                let subtracts = opcodes.iter().position(|expected| opcode == *expected)? == 1;
                let (source, value) = constant_source(inst)?;
                (!subtracts || source == 1).then_some((subtracts, source, value))
            };
            if chain.low == chain.high {
                let wide =
                    program.instructions[chain.low].sources().find_map(|source| {
                        match source.value {
                            Value::WideLiteral(value) => Some(value),
                            _ => None,
                        }
                    });
                let difference = wide.ok_or_else(|| wrong("it is not a sum with a literal"))?;
                members.insert(chain.getpc, None);
                members.insert(chain.low, None);
                let to = label(program, lookup, chain);
                chains.push(Chain { chain: chain.clone(), difference, subtracts: false, to });
                continue;
            }
            let (subtracts, low_source, low) = constant(chain.low, [Opcode::SAdd, Opcode::SSub])
                .ok_or_else(|| wrong("its lower half is not a sum with a constant"))?;
            let (high_subtracts, high_source, high) =
                constant(chain.high, [Opcode::SAddc, Opcode::SSubb])
                    .ok_or_else(|| wrong("its upper half is not a sum with a constant"))?;
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

    /// All chains, by ascending address of the `s_getpc_b64`.
    pub fn iter(&self) -> impl Iterator<Item = &Chain> {
        self.chains.iter()
    }

    /// The chains that start within a range of instructions.
    pub fn within(&self, range: IndexRange<InstIndex>) -> impl Iterator<Item = &Chain> {
        let start = self.chains.partition_point(|known| known.chain.getpc < range.start);
        self.chains.iter().skip(start).take_while(move |known| known.chain.getpc < range.end)
    }

    /// Index of the source that is the constant of a chain, if `inst` is an addition of one.
    pub fn constant_source(&self, index: InstIndex, inst: &Inst) -> Option<usize> {
        if inst.encoding != Encoding::Sop2 {
            return None;
        }
        self.members.get(&index).copied().flatten()
    }

    /// Returns `true` if an instruction belongs to a chain.
    pub fn has(&self, index: InstIndex) -> bool {
        self.members.contains_key(&index)
    }
}

impl Chain {
    /// Additions with an inline constant, which must grow a literal if the `s_getpc_b64` moves.
    pub fn without_literal(&self, program: &Disassembly) -> impl Iterator<Item = InstIndex> {
        let members = [self.chain.low, self.chain.high].into_iter();
        members.filter(|member| program.instructions[*member].size == 4)
    }

    /// The low and the high constant after `s_getpc_b64` and the target have moved by the given numbers
    /// of bytes.
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

/// The index of the constant source, and its value.
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

/// Target of a chain. A chain to the first instruction of its own kernel is a loop, because kernels are
/// not called.
fn label(program: &Disassembly, lookup: &Lookup<'_>, chain: &AddressChain) -> Label {
    let Some(index) = lookup.at(chain.target) else { return Label::address(chain.target.0) };
    let is_kernel = program.functions[lookup.function_of(index)].kernel.is_some();
    if is_kernel { lookup.label_from(chain.getpc, index) } else { lookup.code_label(index) }
}
