//! Writes an inspection as text, incrementally.

use crate::tool_arguments::InspectArguments;
use flipwave_hooks::inspect::{
    BlockFacts, Counts, FunctionFacts, Inspector, InstFacts, KernelFacts, RegisterFacts,
};
use flipwave_host::output::printable;
use std::io::{self, Write};

pub fn write(
    out: &mut impl Write,
    inspector: &Inspector<'_>,
    arguments: &InspectArguments,
) -> io::Result<()> {
    let (target, version) = (inspector.object().target(), inspector.object().version());
    let wave_size = inspector.wave_size();
    writeln!(out, "{target}, waves of {wave_size} lanes, code object version {version}")?;
    for kernel in inspector.kernels() {
        write_kernel(out, &kernel)?;
    }
    write_functions(out, &inspector.functions(false).collect::<Vec<_>>())?;
    for function in inspector.functions(true) {
        if let Some(blocks) = &function.code {
            write_code(out, &function, blocks, arguments)?;
        }
    }
    Ok(())
}

fn write_kernel(out: &mut impl Write, kernel: &KernelFacts) -> io::Result<()> {
    writeln!(out, "\nkernel {}", printable(&kernel.name))?;
    let Counts { vgprs, acc_vgprs, sgprs } = kernel.allocated;
    writeln!(out, "  allocated    {vgprs} VGPRs, {acc_vgprs} AccVGPRs, {sgprs} SGPRs")?;
    writeln!(
        out,
        "  memory       {} bytes of LDS, {} bytes of scratch, {} bytes of arguments",
        kernel.lds_bytes, kernel.scratch_bytes, kernel.kernarg_bytes
    )?;
    writeln!(out, "  initialised  {}", kernel.initialised)?;
    if let Some(preloaded) = &kernel.preloaded {
        writeln!(out, "  starts at    {}, arguments preloaded into {preloaded}", kernel.start)?;
        writeln!(out, "               {} with firmware that does not preload", kernel.entry)?;
    }
    if !kernel.calls.is_empty() {
        writeln!(out, "  may call     {}", kernel.calls.join(", "))?;
        writeln!(out, "  in total     {} instructions", kernel.instructions)?;
    }
    for branch in &kernel.unresolved {
        writeln!(out, "  unresolved   {}: `{}`: {}", branch.pc, branch.text, branch.reason)?;
    }
    kernel.registers.as_ref().map_or(Ok(()), |registers| write_registers(out, registers))
}

fn write_registers(out: &mut impl Write, registers: &RegisterFacts) -> io::Result<()> {
    let (default, maximal) = (&registers.default, &registers.maximal);
    writeln!(out, "\n  {:<24}{:>24}{:>24}", "", "default allocation", "maximal allocation")?;
    let files = format!("{:>8}{:>8}{:>8}", "VGPR", "AccVGPR", "SGPR");
    writeln!(out, "  {:<24}{files}{files}", "registers")?;
    for (name, left, right) in [
        ("allocated", default.allocated, maximal.allocated),
        ("globally free", default.globally_free, maximal.globally_free),
        ("locally free, least", default.locally_free.least, maximal.locally_free.least),
        ("locally free, median", default.locally_free.median, maximal.locally_free.median),
        ("locally free, most", default.locally_free.most, maximal.locally_free.most),
        ("persistent", default.persistent, maximal.persistent),
    ] {
        writeln!(out, "  {name:<24}{}{}", columns(left), columns(right))?;
    }
    for (name, set) in [
        ("globally free", &default.globally_free_registers),
        ("persistent", &default.persistent_registers),
    ] {
        if !set.is_empty() {
            writeln!(out, "  {name}: {set}")?;
        }
    }
    Ok(())
}

fn columns(counts: Counts) -> String {
    format!("{:>8}{:>8}{:>8}", counts.vgprs, counts.acc_vgprs, counts.sgprs)
}

fn write_functions(out: &mut impl Write, functions: &[FunctionFacts]) -> io::Result<()> {
    let width = functions.iter().map(|function| function.entry.len()).max().unwrap_or(0).max(5);
    writeln!(
        out,
        "\n{:>width$} {:>7} {:>12} {:>6} {:>5} {:>5}  function",
        "entry", "bytes", "instructions", "blocks", "loops", "calls"
    )?;
    for function in functions {
        let mut remarks = Vec::new();
        if function.is_kernel {
            remarks.push("kernel".to_owned());
        }
        if function.address_taken {
            remarks.push("may be called by pointer".to_owned());
        }
        if !function.unresolved.is_empty() {
            remarks.push(format!("{} unresolved", function.unresolved.len()));
        }
        let remarks =
            if remarks.is_empty() { String::new() } else { format!("  ({})", remarks.join(", ")) };
        writeln!(
            out,
            "{:>width$} {:>7} {:>12} {:>6} {:>5} {:>5}  {}{remarks}",
            function.entry,
            function.bytes,
            function.instructions,
            function.blocks,
            function.loops.len(),
            function.calls.len(),
            printable(&function.name)
        )?;
    }
    Ok(())
}

fn write_code(
    out: &mut impl Write,
    function: &FunctionFacts,
    blocks: &[BlockFacts],
    arguments: &InspectArguments,
) -> io::Result<()> {
    writeln!(out, "\n{}:", printable(&function.name))?;
    if arguments.cfg {
        for natural_loop in &function.loops {
            let blocks: Vec<String> = natural_loop.blocks.iter().map(u32::to_string).collect();
            writeln!(out, "  loop at block {}: blocks {}", natural_loop.header, blocks.join(" "))?;
        }
        for call in &function.calls {
            let callee = match &call.callee {
                Some(callee) => callee.clone(),
                None => format!("indirect, may reach {}", call.may_reach.join(", ")),
            };
            writeln!(out, "  call at {}: {callee}", call.pc)?;
        }
        for branch in &function.unresolved {
            writeln!(out, "  unresolved at {}: `{}`: {}", branch.pc, branch.text, branch.reason)?;
        }
    }
    if arguments.registers {
        let files = format!("{:>6}{:>8}{:>6}", "VGPR", "AccVGPR", "SGPR");
        writeln!(out, "  {:<10}{:>20}{:>20}", "", "free of default", "free of maximal")?;
        writeln!(out, "  {:<10}{files}{files}  before the instruction", "pc")?;
    }
    let insts = || blocks.iter().flat_map(|block| &block.instructions);
    let width = insts().map(|inst| inst.text.len()).max().unwrap_or(0).min(60);
    let mut last_line = None;
    for block in blocks {
        if arguments.cfg {
            writeln!(out, "{}", heading(block))?;
        }
        for inst in &block.instructions {
            let line = inst.line.as_ref();
            let line = line.filter(|line| arguments.lines && last_line != Some(*line));
            write_inst(out, inst, line, width)?;
            last_line = inst.line.as_ref();
        }
    }
    Ok(())
}

/// Formats the heading of a block, such as `block 2, from 1 2, to 2 (taken) 3, in 1 loop`.
fn heading(block: &BlockFacts) -> String {
    let mut parts = vec![format!("block {}", block.index)];
    if !block.predecessors.is_empty() {
        let from: Vec<String> = block.predecessors.iter().map(u32::to_string).collect();
        parts.push(format!("from {}", from.join(" ")));
    }
    if block.successors.is_empty() {
        parts.push(match block.end {
            "call" => "ends with a call that does not return".to_owned(),
            "return" => "returns".to_owned(),
            "unknown" => "to unknown targets".to_owned(),
            end => end.to_owned(),
        });
    } else {
        let to = block.successors.iter().map(|edge| match edge.kind {
            "fall through" => edge.to.to_string(),
            kind => format!("{} ({kind})", edge.to),
        });
        parts.push(format!("to {}", to.collect::<Vec<_>>().join(" ")));
    }
    match block.loop_depth {
        0 => {}
        1 => parts.push("in 1 loop".to_owned()),
        depth => parts.push(format!("in {depth} loops")),
    }
    parts.join(", ")
}

/// Writes an instruction padded to `width`, followed by the source line `line`.
fn write_inst(
    out: &mut impl Write,
    inst: &InstFacts,
    line: Option<&String>,
    width: usize,
) -> io::Result<()> {
    write!(out, "  {:<10}", inst.pc)?;
    if let Some(live) = &inst.live {
        for counts in [live.free_default, live.free_maximal] {
            write!(out, "{:>6}{:>8}{:>6}", counts.vgprs, counts.acc_vgprs, counts.sgprs)?;
        }
        out.write_all(b"  ")?;
    }
    match line {
        Some(line) => writeln!(out, "{:<width$}  ; {line}", inst.text),
        None => writeln!(out, "{}", inst.text),
    }
}
