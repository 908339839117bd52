//! Rule 7: kernels allocate the registers named by reachable code, and the scratch that it uses.

use super::code::{ClaimedCode, ClaimedInstIndex};
use super::context::CheckContext;
use super::entry::new_kernel;
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::registers::Allocation;
use flipwave_codeobj::Kernel;
use flipwave_isa::{MemorySpace, Register, RegisterSet};
use std::collections::HashSet;

/// Checks each kernel.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let kernels: HashSet<usize> = flow.kernels.iter().map(|entry| entry.kernel).collect();
    let mut kernels: Vec<usize> = kernels.into_iter().collect();
    kernels.sort_unstable();
    for index in kernels {
        let old = &context.original.kernels()[index];
        let Some(new) = new_kernel(context, old) else { continue };
        let reachable = reachable(context, code, flow, index);
        check_registers(context, code, old, new, &reachable, findings);
        check_scratch(code, old, new, &reachable, findings);
    }
}

/// Indices of the instructions that are reachable from a kernel's entry.
fn reachable(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    kernel: usize,
) -> Vec<ClaimedInstIndex> {
    let entries = flow.kernels.iter().filter(|entry| entry.kernel == kernel);
    let mut waiting: Vec<ClaimedInstIndex> = entries.map(|entry| entry.first).collect();
    let mut seen: HashSet<ClaimedInstIndex> = waiting.iter().copied().collect();
    while let Some(at) = waiting.pop() {
        let item = &code.items()[at];
        let mut next = flow.successors(at).to_vec();
        if item.facts.inst.flags.call {
            next.extend(code.index_at(item.end()));
            next.extend(callees(context, code, flow, at));
        }
        waiting.extend(next.into_iter().filter(|next| seen.insert(*next)));
    }
    let mut reachable: Vec<ClaimedInstIndex> = seen.into_iter().collect();
    reachable.sort_unstable();
    reachable
}

/// Possible targets of a call: for a call of the original program, the callees that
/// [`crate::flow`] found; for any other call, all instructions entered from unknown code.
fn callees(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    at: ClaimedInstIndex,
) -> Vec<ClaimedInstIndex> {
    let program = context.program;
    let original = code.original(at);
    let mut calls = program.functions.iter().flat_map(|function| &function.calls);
    match calls.find(|call| Some(call.at) == original) {
        Some(call) => {
            let starts = program.callees(call).into_iter().filter_map(|callee| {
                let pc = context.new_pc(program.functions[callee].instructions.start)?;
                code.index_at(pc.0)
            });
            starts.collect()
        }
        None => flow.entered_from_unknown().collect(),
    }
}

fn check_registers(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    old: &Kernel,
    new: &Kernel,
    reachable: &[ClaimedInstIndex],
    findings: &mut Vec<Finding>,
) {
    let target = &context.program.target;
    let before = Allocation::of(old, target);
    let allocation = Allocation::of(new, target);
    let lost = before.registers().difference(allocation.registers());
    if let Some(register) = lost.iter().next() {
        let message = format!("the kernel `{}` no longer allocates the register", new.name);
        findings.push(
            Finding::at(CheckRule::Allocation, new.entry().0, message).with_register(register),
        );
    }
    let numbered = |register: &Register| {
        matches!(register, Register::Vgpr(_) | Register::AccVgpr(_) | Register::Sgpr(_))
    };
    let allocated = allocation.registers();
    // Each register is reported at the first instruction that names it.
    let mut reported = RegisterSet::EMPTY;
    for at in reachable {
        let item = &code.items()[*at];
        if !item.is_inserted() {
            continue;
        }
        let named = ClaimedCode::registers(item).difference(allocated).difference(reported);
        for register in named.iter().filter(numbered) {
            reported.insert(register);
            let message = format!(
                "`{}`: register not allocated by the kernel `{}`",
                item.facts.inst, new.name
            );
            findings
                .push(Finding::at(CheckRule::Allocation, item.pc, message).with_register(register));
        }
    }
}

/// Checks that scratch accesses at constant offsets lie behind the original kernel's scratch and
/// within the allocation.
fn check_scratch(
    code: &ClaimedCode,
    old: &Kernel,
    new: &Kernel,
    reachable: &[ClaimedInstIndex],
    findings: &mut Vec<Finding>,
) {
    let start = i64::from(old.descriptor.private_segment_fixed_size);
    let end = i64::from(new.descriptor.private_segment_fixed_size);
    for at in reachable {
        let item = &code.items()[*at];
        if !item.is_inserted() {
            continue;
        }
        let Some(operand) = item.facts.inst.memory_operand() else { continue };
        if operand.access.space != MemorySpace::Scratch {
            continue;
        }
        let mut report = |message: String| {
            findings.push(Finding::at(CheckRule::Allocation, item.pc, message));
        };
        if !new.descriptor.rsrc2.private_segment {
            report(format!(
                "`{}`: no scratch allocated by the kernel `{}`",
                item.facts.inst, new.name
            ));
            continue;
        }
        if operand.vaddr.is_some() || operand.saddr.is_some() {
            continue;
        }
        let bytes = i64::from(operand.access.bytes);
        for offset in &operand.offsets {
            if *offset < start || offset + bytes > end {
                report(format!(
                    "`{}`: access outside the bytes {start} to {end} of scratch that the kernel `{}` \
                     allocates for inserted code",
                    item.facts.inst, new.name
                ));
            }
        }
    }
}
