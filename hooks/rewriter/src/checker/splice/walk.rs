//! Symbolic execution of all paths through one splice.

use super::content::Content;
use super::definition::{ComputedJump, Splice, SpliceEnd};
use super::execute::execute;
use super::state::SymbolicState;
use crate::checker::code::{ClaimedCode, ClaimedInst, Owner};
use crate::checker::context::CheckContext;
use crate::checker::finding::{CheckRule, Finding};
use crate::flow::InstIndex;
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, RegisterSet, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A point of a splice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    /// Address in the new code.
    pc: u64,
    /// Return addresses of the active calls, outermost first.
    returns: Vec<u64>,
}

/// Deepest nesting of calls that is followed.
const MAX_CALL_DEPTH: usize = 8;

/// Symbolic execution of one splice.
pub struct SpliceWalk<'a> {
    /// Input of the checker.
    pub context: &'a CheckContext<'a>,
    /// The new code.
    pub code: &'a ClaimedCode,
    /// The splice.
    pub splice: Splice,
    /// Instructions at which the splice may end.
    pub ends: &'a [SpliceEnd],
}

impl<'a> SpliceWalk<'a> {
    /// Executes all paths from the beginning. Returns the reached ends with the state there, and adds
    /// indirect jumps to `jumps`.
    pub fn run(
        &self,
        state: SymbolicState,
        jumps: &mut BTreeSet<ComputedJump>,
        findings: &mut Vec<Finding>,
    ) -> Vec<(&'a SpliceEnd, SymbolicState)> {
        let mut known: BTreeMap<Node, SymbolicState> = BTreeMap::new();
        let start = Node { pc: self.splice.start, returns: Vec::new() };
        let mut waiting = vec![(start, state)];
        // Targets of indirect jumps.
        let mut jump_targets: BTreeSet<u64> = BTreeSet::new();
        let mut reached: Vec<(&SpliceEnd, SymbolicState)> = Vec::new();
        while let Some((node, state)) = waiting.pop() {
            let end = self.ends.iter().find(|end| end.pc == node.pc);
            if let Some(end) = end.filter(|_| node.returns.is_empty()) {
                match reached.iter_mut().find(|(known, _)| std::ptr::eq(*known, end)) {
                    Some((_, known)) => _ = known.join(&state),
                    None => reached.push((end, state)),
                }
                continue;
            }
            let item = match self.code.at(node.pc) {
                Some(item) if item.is_inserted() => item,
                found => {
                    findings.push(self.left_inserted_code(node.pc, found));
                    return Vec::new();
                }
            };
            // States are joined wherever paths may meet.
            let state = if item.is_target || jump_targets.contains(&node.pc) {
                match known.get_mut(&node) {
                    Some(old) => {
                        if !old.join(&state) {
                            continue;
                        }
                        old.clone()
                    }
                    None => {
                        known.insert(node.clone(), state.clone());
                        state
                    }
                }
            } else {
                state
            };
            match self.step(item, node.returns, state) {
                Ok(next) => {
                    if item.facts.opcode() == Opcode::SSetpc || item.facts.inst.flags.call {
                        let targets = next.iter().map(|(node, _)| node.pc);
                        jumps.extend(targets.clone().map(|to| ComputedJump { from: item.pc, to }));
                        jump_targets.extend(targets);
                    }
                    waiting.extend(next);
                }
                Err(message) => {
                    let finding = Finding::at(CheckRule::Control, item.pc, message);
                    findings.push(finding.for_original(self.context.old_pc(self.splice.to)));
                    return Vec::new();
                }
            }
        }
        reached
    }

    /// The finding for control that reaches something other than inserted code or an end.
    fn left_inserted_code(&self, pc: u64, found: Option<&ClaimedInst>) -> Finding {
        let old = self.context.old_pc(self.splice.to);
        let message = match found.map(|item| item.owner) {
            Some(Owner::Original(wrong)) => {
                let wrong = self.context.old_pc(wrong);
                format!("control reaches the wrong original instruction {wrong}")
            }
            _ => format!("control from {:#x} reaches unclaimed code", self.splice.start),
        };
        Finding::at(CheckRule::Control, pc, message).for_original(old)
    }

    /// Executes an instruction. Returns the points that control may reach next.
    fn step(
        &self,
        item: &ClaimedInst,
        mut returns: Vec<u64>,
        mut state: SymbolicState,
    ) -> Result<Vec<(Node, SymbolicState)>, &'static str> {
        let facts = &item.facts;
        if facts.opcode() == Opcode::SSetpc {
            let target = jump_target(&facts.inst, &state).ok_or("jump to an unknown address")?;
            if returns.last() == Some(&target) {
                returns.pop();
            }
            return Ok(self.continue_at(item, vec![target], returns, state));
        }
        if facts.inst.flags.call {
            let target = match facts.target(item.pc) {
                Some(target) => target,
                None => jump_target(&facts.inst, &state).ok_or("call of an unknown address")?,
            };
            if returns.len() >= MAX_CALL_DEPTH {
                return Err("calls of routines are nested too deeply");
            }
            execute(facts, item.pc, &mut state)?;
            returns.push(item.end());
            return Ok(vec![(Node { pc: target, returns }, state)]);
        }
        execute(facts, item.pc, &mut state)?;
        let next = [facts.target(item.pc), facts.falls_through.then_some(item.end())];
        Ok(self.continue_at(item, next.into_iter().flatten().collect(), returns, state))
    }

    /// The points `targets`, reached from the instruction `from`. Where control leaves an inserted
    /// range, the registers that the range was requested to change get their current values as
    /// initial values.
    fn continue_at(
        &self,
        from: &ClaimedInst,
        targets: Vec<u64>,
        returns: Vec<u64>,
        state: SymbolicState,
    ) -> Vec<(Node, SymbolicState)> {
        let inserted = match from.owner {
            Owner::Original(_) => None,
            Owner::Inserted(index) => Some(&self.context.claims.inserted[index]),
        };
        let left_range = |target: u64| {
            inserted.filter(|inserted| returns.is_empty() && !inserted.range.contains(&target))
        };
        let last = targets.len().saturating_sub(1);
        let mut next = Vec::with_capacity(targets.len());
        let mut rest = Some(state);
        for (index, target) in targets.into_iter().enumerate() {
            // The last target takes the state without a copy.
            let state = if index == last { rest.take() } else { rest.clone() };
            let Some(mut state) = state else { break };
            if let Some(inserted) = left_range(target) {
                let changes = inserted.changes.union(self.writes_of_replaced(inserted.at));
                if !changes.is_empty() {
                    state.rebase(changes);
                }
            }
            next.push((Node { pc: target, returns: returns.clone() }, state));
        }
        next
    }

    /// Registers written by the original instruction that inserted code replaces.
    fn writes_of_replaced(&self, at: Option<InstIndex>) -> RegisterSet {
        let replaced = at.filter(|at| self.context.new_pc(*at).is_none());
        let inst = replaced.map(|at| &self.context.program.instructions[at]);
        inst.map(|inst| inst.writes.iter().copied().collect()).unwrap_or_default()
    }
}

/// The code address in the register pair that is the source of a jump.
fn jump_target(inst: &Inst, state: &SymbolicState) -> Option<u64> {
    let pair = inst.sources().find_map(|operand| match operand.value {
        Value::Register(range @ RegisterRange { words: 2, .. }) => Some(range),
        _ => None,
    })?;
    let half = |word| pair.first.offset(word).map(|register: Register| state.scalar(register));
    match (half(0)?, half(1)?) {
        (Content::AddressLow(low), Content::AddressHigh(high)) if low == high => Some(low),
        _ => None,
    }
}
