//! Rule 7: kernels have the registers that the code reachable from them names, and the scratch
//! that it uses.

use super::Question;
use super::code::Code;
use super::entry::new_kernel;
use super::finding::{Finding, Rule};
use super::flow::Flow;
use crate::flow::InstIndex;
use crate::registers::Allocation;
use flipwave_codeobj::Kernel;
use flipwave_isa::{MemorySpace, Register, RegisterSet};
use std::collections::HashSet;

/// Checks each kernel.
pub fn check(question: &Question<'_>, code: &Code, flow: &Flow, findings: &mut Vec<Finding>) {
    let kernels: HashSet<usize> = flow.kernels.iter().map(|(kernel, _)| *kernel).collect();
    let mut kernels: Vec<usize> = kernels.into_iter().collect();
    kernels.sort_unstable();
    for index in kernels {
        let Some(old) = question.original.kernels().get(index) else { continue };
        let Some(new) = new_kernel(question, old) else { continue };
        let reachable = reachable(question, code, flow, index);
        check_registers(question, code, old, new, &reachable, findings);
        check_scratch(code, old, new, &reachable, findings);
    }
}

/// Indices of the instructions that a kernel can come to.
fn reachable(question: &Question<'_>, code: &Code, flow: &Flow, kernel: usize) -> Vec<u32> {
    let starts = flow.kernels.iter().filter(|(own, _)| *own == kernel);
    let mut waiting: Vec<u32> = starts.map(|(_, start)| *start).collect();
    let mut seen: HashSet<u32> = waiting.iter().copied().collect();
    while let Some(at) = waiting.pop() {
        let Some(item) = code.items().get(at as usize) else { continue };
        let mut next = flow.successors(at).to_vec();
        if item.facts.inst.flags.call {
            next.extend(code.index_at(item.end()).map(|index| index as u32));
            next.extend(callees(question, code, flow, at));
        }
        waiting.extend(next.into_iter().filter(|next| seen.insert(*next)));
    }
    let mut reachable: Vec<u32> = seen.into_iter().collect();
    reachable.sort_unstable();
    reachable
}

/// Where a call may go: to the function that flow says, or to any that is no kernel.
fn callees(question: &Question<'_>, code: &Code, flow: &Flow, at: u32) -> Vec<u32> {
    let program = question.program;
    let own = super::flow::original(code, at);
    let call = program.functions.iter().flat_map(|function| &function.calls);
    let known = call.into_iter().find(|call| Some(call.at) == own).and_then(|call| call.callee);
    let entry = |instructions: &std::ops::Range<u32>| {
        let place = question.place(InstIndex(instructions.start))?;
        code.index_at(place.0).map(|index| index as u32)
    };
    match known {
        Some(callee) => {
            let callee = program.functions.get(callee.0 as usize);
            callee.and_then(|function| entry(&function.instructions)).into_iter().collect()
        }
        None => flow.entered_from_elsewhere().collect(),
    }
}

fn check_registers(
    question: &Question<'_>,
    code: &Code,
    old: &Kernel,
    new: &Kernel,
    reachable: &[u32],
    findings: &mut Vec<Finding>,
) {
    let target = &question.program.target;
    let before = Allocation::of(old, target);
    let allocation = Allocation::of(new, target);
    let lost = before.registers().difference(allocation.registers());
    if let Some(register) = lost.iter().next() {
        let what = format!("the kernel `{}` had it and has it no more", new.name);
        findings.push(Finding::at(Rule::Allocation, new.entry().0, what).on(register));
    }
    let numbered = |register: &Register| {
        matches!(register, Register::Vgpr(_) | Register::AccVgpr(_) | Register::Sgpr(_))
    };
    let allocated = allocation.registers();
    // Of each register the first instruction that names it.
    let mut reported = RegisterSet::EMPTY;
    for at in reachable {
        let Some(item) = code.items().get(*at as usize).filter(|item| item.is_inserted()) else {
            continue;
        };
        let named = Code::registers(item).difference(allocated).difference(reported);
        for register in named.iter().filter(numbered) {
            reported.insert(register);
            let what = format!("`{}`: the kernel `{}` does not have it", item.facts.inst, new.name);
            findings.push(Finding::at(Rule::Allocation, item.pc, what).on(register));
        }
    }
}

/// Scratch at constant offsets lies behind the guest's and inside the kernel's.
fn check_scratch(
    code: &Code,
    old: &Kernel,
    new: &Kernel,
    reachable: &[u32],
    findings: &mut Vec<Finding>,
) {
    let guest = i64::from(old.descriptor.private_segment_fixed_size);
    let size = i64::from(new.descriptor.private_segment_fixed_size);
    for at in reachable {
        let Some(item) = code.items().get(*at as usize).filter(|item| item.is_inserted()) else {
            continue;
        };
        let Some(operand) = item.facts.inst.memory_operand() else { continue };
        if operand.access.space != MemorySpace::Scratch {
            continue;
        }
        let mut report = |what: String| {
            findings.push(Finding::at(Rule::Allocation, item.pc, what));
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
