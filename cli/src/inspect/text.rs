//! An inspection as text.

use crate::tool_arguments::InspectArguments;
use flipwave_hooks::inspect::{
    BlockFacts, Counts, FunctionFacts, Inspection, InstFacts, KernelFacts, RegisterFacts,
};
use std::fmt::Write;

/// The whole text.
pub fn text(inspection: &Inspection, arguments: &InspectArguments) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, inspection, arguments);
    text
}

fn write(
    text: &mut String,
    inspection: &Inspection,
    arguments: &InspectArguments,
) -> std::fmt::Result {
    let Inspection { target, version, wave_size, .. } = inspection;
    writeln!(text, "{target}, waves of {wave_size} lanes, code object version {version}")?;
    for kernel in &inspection.kernels {
        write_kernel(text, kernel, inspection)?;
    }
    write_functions(text, inspection)?;
    for function in &inspection.functions {
        if let Some(blocks) = &function.code {
            write_code(text, function, blocks, arguments)?;
        }
    }
    Ok(())
}

fn write_kernel(
    text: &mut String,
    kernel: &KernelFacts,
    inspection: &Inspection,
) -> std::fmt::Result {
    writeln!(text, "\nkernel {}", kernel.name)?;
    let Counts { vgprs, acc_vgprs, sgprs } = kernel.allocated;
    writeln!(text, "  allocated    {vgprs} VGPRs, {acc_vgprs} AccVGPRs, {sgprs} SGPRs")?;
    writeln!(
        text,
        "  memory       {} bytes of LDS, {} bytes of scratch, {} bytes of arguments",
        kernel.lds_bytes, kernel.scratch_bytes, kernel.kernarg_bytes
    )?;
    writeln!(text, "  initialised  {}", kernel.initialised)?;
    if let Some(preloaded) = &kernel.preloaded {
        writeln!(text, "  begins       {}, arguments preloaded into {preloaded}", kernel.start)?;
        writeln!(text, "               {} by firmware that does not preload", kernel.entry)?;
    }
    if !kernel.calls.is_empty() {
        writeln!(text, "  may call     {}", kernel.calls.join(", "))?;
        writeln!(text, "  in all       {} instructions", kernel.instructions)?;
    }
    for own in inspection.functions.iter().filter(|own| own.is_kernel && own.entry == kernel.start)
    {
        for place in &own.unresolved {
            writeln!(text, "  unresolved   {}: `{}`: {}", place.pc, place.text, place.reason)?;
        }
    }
    kernel.registers.as_ref().map_or(Ok(()), |registers| write_registers(text, registers))
}

fn write_registers(text: &mut String, registers: &RegisterFacts) -> std::fmt::Result {
    let (default, maximal) = (&registers.default, &registers.maximal);
    writeln!(text, "\n  {:<24}{:>24}{:>24}", "", "default allocation", "maximal allocation")?;
    let files = format!("{:>8}{:>8}{:>8}", "VGPR", "AccVGPR", "SGPR");
    writeln!(text, "  {:<24}{files}{files}", "registers")?;
    for (name, left, right) in [
        ("allocated", default.allocated, maximal.allocated),
        ("globally free", default.globally_free, maximal.globally_free),
        ("locally free, least", default.locally_free.least, maximal.locally_free.least),
        ("locally free, median", default.locally_free.median, maximal.locally_free.median),
        ("locally free, most", default.locally_free.most, maximal.locally_free.most),
        ("persistent", default.persistent, maximal.persistent),
    ] {
        writeln!(text, "  {name:<24}{}{}", columns(left), columns(right))?;
    }
    for (name, set) in [
        ("globally free", &default.globally_free_registers),
        ("persistent", &default.persistent_registers),
    ] {
        if !set.is_empty() {
            writeln!(text, "  {name}: {set}")?;
        }
    }
    Ok(())
}

fn columns(counts: Counts) -> String {
    format!("{:>8}{:>8}{:>8}", counts.vgprs, counts.acc_vgprs, counts.sgprs)
}

fn write_functions(text: &mut String, inspection: &Inspection) -> std::fmt::Result {
    let width = inspection.functions.iter().map(|own| own.entry.len()).max().unwrap_or(0).max(5);
    writeln!(
        text,
        "\n{:>width$} {:>7} {:>12} {:>6} {:>5} {:>5}  function",
        "entry", "bytes", "instructions", "blocks", "loops", "calls"
    )?;
    for function in &inspection.functions {
        let mut remarks = Vec::new();
        if function.is_kernel {
            remarks.push("kernel".to_owned());
        }
        if function.address_taken {
            remarks.push("may be called by pointer".to_owned());
        }
        if !function.unresolved.is_empty() {
            remarks.push(format!("{} places unresolved", function.unresolved.len()));
        }
        let remarks =
            if remarks.is_empty() { String::new() } else { format!("  ({})", remarks.join(", ")) };
        writeln!(
            text,
            "{:>width$} {:>7} {:>12} {:>6} {:>5} {:>5}  {}{remarks}",
            function.entry,
            function.bytes,
            function.instructions,
            function.blocks,
            function.loops.len(),
            function.calls.len(),
            function.name
        )?;
    }
    Ok(())
}

fn write_code(
    text: &mut String,
    function: &FunctionFacts,
    blocks: &[BlockFacts],
    arguments: &InspectArguments,
) -> std::fmt::Result {
    writeln!(text, "\n{}:", function.name)?;
    if arguments.cfg {
        for own in &function.loops {
            let blocks: Vec<String> = own.blocks.iter().map(u32::to_string).collect();
            writeln!(text, "  loop at block {}: blocks {}", own.header, blocks.join(" "))?;
        }
        for call in &function.calls {
            let callee = match &call.callee {
                Some(callee) => callee.clone(),
                None => format!("a pointer, which may be {}", call.may_reach.join(", ")),
            };
            writeln!(text, "  call at {}: {callee}", call.pc)?;
        }
        for place in &function.unresolved {
            writeln!(text, "  unresolved at {}: `{}`: {}", place.pc, place.text, place.reason)?;
        }
    }
    if arguments.registers {
        let files = format!("{:>6}{:>8}{:>6}", "VGPR", "AccVGPR", "SGPR");
        writeln!(text, "  {:<10}{:>20}{:>20}", "", "free of default", "free of maximal")?;
        writeln!(text, "  {:<10}{files}{files}  before the instruction", "pc")?;
    }
    let insts = || blocks.iter().flat_map(|block| &block.instructions);
    let width = insts().map(|inst| inst.text.len()).max().unwrap_or(0).min(60);
    let mut line = None;
    for block in blocks {
        if arguments.cfg {
            writeln!(text, "{}", heading(block))?;
        }
        for inst in &block.instructions {
            let is_new = inst.line != line;
            write_inst(text, inst, arguments, width, is_new)?;
            line.clone_from(&inst.line);
        }
    }
    Ok(())
}

/// `block 2, from 1 2, to 2 (taken) 3, in 1 loop`.
fn heading(block: &BlockFacts) -> String {
    let mut parts = vec![format!("block {}", block.index)];
    if !block.predecessors.is_empty() {
        let from: Vec<String> = block.predecessors.iter().map(u32::to_string).collect();
        parts.push(format!("from {}", from.join(" ")));
    }
    if block.successors.is_empty() {
        parts.push(match block.end {
            "call" => "ends with a call that does not come back".to_owned(),
            "return" => "returns".to_owned(),
            "unknown" => "to unknown places".to_owned(),
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

fn write_inst(
    text: &mut String,
    inst: &InstFacts,
    arguments: &InspectArguments,
    width: usize,
    is_new_line: bool,
) -> std::fmt::Result {
    write!(text, "  {:<10}", inst.pc)?;
    if let Some(live) = &inst.live {
        for counts in [live.free_default, live.free_maximal] {
            write!(text, "{:>6}{:>8}{:>6}", counts.vgprs, counts.acc_vgprs, counts.sgprs)?;
        }
        text.push_str("  ");
    }
    match inst.line.as_ref().filter(|_| arguments.lines && is_new_line) {
        Some(line) => writeln!(text, "{:<width$}  ; {line}", inst.text),
        None => writeln!(text, "{}", inst.text),
    }
}
