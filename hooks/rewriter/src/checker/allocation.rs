//! Rule 7: kernels have the registers that the code reachable from them names, and the scratch
//! that it uses.

use super::Question;
use super::code::{ClaimedCode, ClaimedInstIndex};
use super::entry::new_kernel;
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::registers::Allocation;
use flipwave_codeobj::Kernel;
use flipwave_isa::{MemorySpace, Register, RegisterSet};
use std::collections::HashSet;

/// Checks each kernel.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let kernels: HashSet<usize> = flow.kernels.iter().map(|(kernel, _)| *kernel).collect();
    let mut kernels: Vec<usize> = kernels.into_iter().collect();
    kernels.sort_unstable();
    for index in kernels {
        let old = &question.original.kernels()[index];
        let Some(new) = new_kernel(question, old) else { continue };
        let reachable = reachable(question, code, flow, index);
        check_registers(question, code, old, new, &reachable, findings);
        check_scratch(code, old, new, &reachable, findings);
    }
}

/// Indices of the instructions that a kernel can come to.
fn reachable(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    kernel: usize,
) -> Vec<ClaimedInstIndex> {
    let starts = flow.kernels.iter().filter(|(own, _)| *own == kernel);
    let mut waiting: Vec<ClaimedInstIndex> = starts.map(|(_, start)| *start).collect();
    let mut seen: HashSet<ClaimedInstIndex> = waiting.iter().copied().collect();
    while let Some(at) = waiting.pop() {
        let item = &code.items()[at];
        let mut next = flow.successors(at).to_vec();
        if item.facts.inst.flags.call {
            next.extend(code.index_at(item.end()));
            next.extend(callees(question, code, flow, at));
        }
        waiting.extend(next.into_iter().filter(|next| seen.insert(*next)));
    }
    let mut reachable: Vec<ClaimedInstIndex> = seen.into_iter().collect();
    reachable.sort_unstable();
    reachable
}

/// Where a call may go: to the functions that flow says. A call that is not the program's may go to
/// any place that is entered from elsewhere.
fn callees(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    at: ClaimedInstIndex,
) -> Vec<ClaimedInstIndex> {
    let program = question.program;
    let original = code.original(at);
    let mut calls = program.functions.iter().flat_map(|function| &function.calls);
    match calls.find(|call| Some(call.at) == original) {
        Some(call) => {
            let starts = program.callees(call).into_iter().filter_map(|callee| {
                let place = question.place(program.functions[callee].instructions.start)?;
                code.index_at(place.0)
            });
            starts.collect()
        }
        None => flow.entered_from_elsewhere().collect(),
    }
}

fn check_registers(
    question: &Question<'_>,
    code: &ClaimedCode,
    old: &Kernel,
    new: &Kernel,
    reachable: &[ClaimedInstIndex],
    findings: &mut Vec<Finding>,
) {
    let target = &question.program.target;
    let before = Allocation::of(old, target);
    let allocation = Allocation::of(new, target);
    let lost = before.registers().difference(allocation.registers());
    if let Some(register) = lost.iter().next() {
        let what = format!("the kernel `{}` had it and has it no more", new.name);
        findings.push(Finding::at(CheckRule::Allocation, new.entry().0, what).on(register));
    }
    let numbered = |register: &Register| {
        matches!(register, Register::Vgpr(_) | Register::AccVgpr(_) | Register::Sgpr(_))
    };
    let allocated = allocation.registers();
    // Of each register the first instruction that names it.
    let mut reported = RegisterSet::EMPTY;
    for at in reachable {
        let item = &code.items()[*at];
        if !item.is_inserted() {
            continue;
        }
        let named = ClaimedCode::registers(item).difference(allocated).difference(reported);
        for register in named.iter().filter(numbered) {
            reported.insert(register);
            let what = format!("`{}`: the kernel `{}` does not have it", item.facts.inst, new.name);
            findings.push(Finding::at(CheckRule::Allocation, item.pc, what).on(register));
        }
    }
}

/// Scratch at constant offsets lies after the guest's and inside the kernel's.
fn check_scratch(
    code: &ClaimedCode,
    old: &Kernel,
    new: &Kernel,
    reachable: &[ClaimedInstIndex],
    findings: &mut Vec<Finding>,
) {
    let guest = i64::from(old.descriptor.private_segment_fixed_size);
    let size = i64::from(new.descriptor.private_segment_fixed_size);
    for at in reachable {
        let item = &code.items()[*at];
        if !item.is_inserted() {
            continue;
        }
        let Some(operand) = item.facts.inst.memory_operand() else { continue };
        if operand.access.space != MemorySpace::Scratch {
            continue;
        }
        let mut report = |what: String| {
            findings.push(Finding::at(CheckRule::Allocation, item.pc, what));
        };
        if !new.descriptor.rsrc2.private_segment {
            report(format!("`{}`: the kernel `{}` has no scratch", item.facts.inst, new.name));
            continue;
        }
        if operand.vaddr.is_some() || operand.saddr.is_some() {
            continue;
        }
        let bytes = i64::from(operand.access.bytes);
        for offset in &operand.offsets {
            if *offset < guest || offset + bytes > size {
                report(format!(
                    "`{}`: scratch from {guest} to {size} bytes is free in the kernel `{}`",
                    item.facts.inst, new.name
                ));
            }
        }
    }
}
