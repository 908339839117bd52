//! Turns edited functions into a [`CodeStream`].

mod pieces;
mod trampolines;
mod units;

use super::chains::Chains;
use super::encoding::Encoding;
use super::lookup::Lookup;
use super::stream::{CodeStream, InstUnit, Label, Location};
use super::{Edits, InsertPurpose, LayoutError, Placement, preload};
use crate::flow::{Disassembly, Function, FunctionIndex, IndexVec, InstIndex};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::BTreeSet;

/// Alignment of kernels in bytes (AMDGPUUsage, "Kernel Descriptor",
/// KERNEL_CODE_ENTRY_BYTE_OFFSET).
pub(super) const KERNEL_ALIGNMENT: u64 = 256;

/// The emitted code.
pub(super) struct Emitted {
    pub stream: CodeStream,
    /// Code of each instruction; `None` if the instruction stays at its old address.
    pub units: IndexVec<InstIndex, Option<InstUnit>>,
    pub entries: IndexVec<FunctionIndex, Location>,
    pub routines: Vec<usize>,
    /// Instructions that cannot be displaced, with reasons.
    pub refused: Vec<(Pc, String)>,
}

/// Input of emission.
#[derive(Clone, Copy)]
pub(super) struct EmitSource<'a> {
    pub object: &'a CodeObject,
    pub program: &'a Disassembly,
    pub edits: &'a Edits,
    pub lookup: &'a Lookup<'a>,
    pub chains: &'a Chains,
    /// `true` for functions whose trampolines are out of branch range.
    pub is_far: &'a IndexVec<FunctionIndex, bool>,
    /// Join points of the program; empty if all trampolines are in range.
    pub join_points: &'a BTreeSet<InstIndex>,
}

/// Emits all functions and routines. `dropped` contains the hints to omit, `placements` the placement of
/// each function.
pub(super) fn emit(
    source: EmitSource<'_>,
    encoding: &mut Encoding,
    dropped: &BTreeSet<InstIndex>,
    placements: &IndexVec<FunctionIndex, Placement>,
) -> Result<Emitted, LayoutError> {
    let EmitSource { program, edits, .. } = source;
    let mut emitter = LayoutEmitter {
        source,
        encoding,
        dropped,
        stream: CodeStream::default(),
        units: IndexVec::filled(None, program.instructions.len()),
        falls_through: false,
        group_end: InstIndex(0),
        stubs: Vec::new(),
        far: None,
        refused: Vec::new(),
    };
    let mut entries = IndexVec::new();
    for (index, function) in program.functions.enumerated() {
        entries.push(match placements[index] {
            Placement::Trampoline => emitter.trampolines(index, function)?,
            Placement::Inline => emitter.function(index, function)?,
        });
    }
    let mut routines = Vec::with_capacity(edits.routines.len());
    for (index, code) in edits.routines.iter().enumerate() {
        emitter.stream.island_site(emitter.falls_through);
        routines.push(emitter.stream.position());
        emitter.code(code, InsertPurpose::Routine(index))?;
        emitter.falls_through = false;
    }
    let LayoutEmitter { stream, units, refused, .. } = emitter;
    Ok(Emitted { stream, units, entries, routines, refused })
}

/// Emits functions and routines to a stream.
struct LayoutEmitter<'a> {
    source: EmitSource<'a>,
    encoding: &'a mut Encoding,
    dropped: &'a BTreeSet<InstIndex>,
    stream: CodeStream,
    units: IndexVec<InstIndex, Option<InstUnit>>,
    /// `true` if control falls through to the end of the stream.
    falls_through: bool,
    /// The first instruction after the current group of a hint, which islands must not split.
    group_end: InstIndex,
    /// Stubs to emit after the function.
    stubs: Vec<Stub>,
    /// The displaced instructions of the current function, if its trampolines are out of branch range.
    far: Option<BTreeSet<InstIndex>>,
    refused: Vec<(Pc, String)>,
}

/// Code on the taken path of a branch: code inserted after it, or a jump to a target out of range.
struct Stub {
    /// Index of the branch in the stream.
    branch: usize,
    /// The branch instruction.
    at: InstIndex,
    /// The target.
    to: Label,
    site: Option<InstIndex>,
}

impl<'a> LayoutEmitter<'a> {
    /// Emits a complete function and returns its entry.
    fn function(
        &mut self,
        index: FunctionIndex,
        function: &Function,
    ) -> Result<Location, LayoutError> {
        let entry = self.entry(index, function)?;
        self.far = None;
        self.units(function.instructions, Placement::Inline)?;
        self.stubs()?;
        Ok(Location::Position(entry))
    }

    /// Emits the entry of a function: code that runs once, or the entry code of a kernel that preloads
    /// arguments.
    fn entry(&mut self, index: FunctionIndex, function: &Function) -> Result<usize, LayoutError> {
        let first = function.instructions.start;
        self.stream.island_site(self.falls_through);
        self.falls_through = false;
        if function.kernel.is_some() {
            self.stream.align(KERNEL_ALIGNMENT);
        }
        let entry = self.stream.position();
        let EmitSource { object, edits, .. } = self.source;
        if let Some(code) = edits.entries.get(&index) {
            self.code(code, InsertPurpose::Entry(index))?;
            self.stream.close_span(entry, first);
            self.falls_through = true;
        } else if let Some(code) = preload::prologue(object, self.encoding.isa(), function)? {
            self.stream.bytes.extend_from_slice(code);
            self.stream.close_inserted(entry, InsertPurpose::Island);
            // The distance between the entry and the first instruction is fixed.
            self.group_end = first.next();
        }
        Ok(entry)
    }
}
