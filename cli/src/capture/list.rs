//! `flipwave capture --list`.

use crate::failure::Failure;
use crate::output;
use flipwave_capture::{Capture, RecordedDispatch, Step};
use flipwave_device::Change;
use flipwave_host::output::printable;
use std::io::{self, Write};
use std::path::Path;

/// Prints the dispatches and code objects of a capture, and with `maps` everything in recorded order.
pub fn list(file: &Path, maps: bool) -> Result<(), Failure> {
    let capture = Capture::open(file)?;
    let mut out = output::stdout();
    let state = if capture.is_complete()? { "" } else { " (the application was terminated)" };
    let rank = capture.rank()?.map(|rank| format!(", rank {rank}")).unwrap_or_default();
    let (command, gpu) = (capture.command()?, capture.gpu()?);
    writeln!(out, "{} on {}{rank}{state}", printable(&command), printable(&gpu))?;
    if maps {
        write_code_objects(&mut out, &capture)?;
        for step in capture.steps()? {
            write_step(&mut out, &step)?;
        }
        return Ok(());
    }
    let mut memory = MemorySteps::default();
    for step in capture.steps()? {
        match &step {
            Step::Dispatch(dispatch) => write_dispatch(&mut out, dispatch)?,
            step => memory.add(step),
        }
    }
    write_code_objects(&mut out, &capture)?;
    Ok(memory.write(&mut out)?)
}

fn write_code_objects(out: &mut impl Write, capture: &Capture) -> Result<(), Failure> {
    for (id, code) in capture.code_objects()? {
        writeln!(out, "code object {}: {} bytes at {:#x}", id.0, code.elf.len(), code.bias)?;
    }
    Ok(())
}

/// Number of steps that concern memory.
#[derive(Default)]
struct MemorySteps {
    maps: usize,
    writes: usize,
    copies: usize,
    outputs: usize,
}

impl MemorySteps {
    fn add(&mut self, step: &Step) {
        match step {
            Step::Change(Change::Map { .. }) => self.maps += 1,
            Step::Change(Change::Write(_)) => self.writes += 1,
            Step::Change(Change::Copy { .. }) => self.copies += 1,
            Step::Read { .. } => self.outputs += 1,
            Step::Change(Change::Unmap { .. }) | Step::Dispatch(_) => {}
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let MemorySteps { maps, writes, copies, outputs } = self;
        writeln!(
            out,
            "memory: {maps} maps, {writes} writes, {copies} copies, {outputs} outputs; listed with --maps"
        )
    }
}

fn write_step(out: &mut impl Write, step: &Step) -> io::Result<()> {
    match step {
        Step::Change(Change::Map { address, bytes }) => {
            writeln!(out, "map       {bytes} bytes at {address}")
        }
        Step::Change(Change::Unmap { address }) => writeln!(out, "unmap     {address}"),
        Step::Change(Change::Write(patch)) => {
            let (ranges, bytes) = (patch.ranges().len(), patch.bytes().len());
            writeln!(out, "write     {bytes} bytes in {ranges} ranges")
        }
        Step::Change(Change::Copy { from, to, bytes }) => {
            writeln!(out, "copy      {bytes} bytes from {from} to {to}")
        }
        Step::Read { address, bytes } => {
            writeln!(out, "output    {} bytes at {address}", bytes.len())
        }
        Step::Dispatch(dispatch) => write_dispatch(out, dispatch),
    }
}

fn write_dispatch(out: &mut impl Write, dispatch: &RecordedDispatch) -> io::Result<()> {
    let shape = |extent: [u32; 3]| extent.map(|size| size.to_string()).join(",");
    let written: u64 = dispatch.written.iter().map(|(_, bytes)| bytes).sum();
    write!(
        out,
        "dispatch  {} {} grid={} workgroup={} stream={} code_object={} instructions={} written={written}",
        dispatch.number,
        printable(&dispatch.kernel),
        shape(dispatch.packet.grid),
        shape(dispatch.packet.workgroup),
        dispatch.stream,
        dispatch.code_object.0,
        dispatch.instructions,
    )?;
    if dispatch.is_cooperative {
        write!(out, " cooperative")?;
    }
    match &dispatch.range {
        Some(range) => writeln!(out, " range={}", printable(range)),
        None => writeln!(out),
    }
}
