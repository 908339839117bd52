//! Turns edited functions into a [`CodeStream`].

mod pieces;
mod trampolines;
mod units;

use super::chains::Chains;
use super::encoding::Encoding;
use super::lookup::Lookup;
use super::stream::{CodeStream, InstUnit, Label, Spot};
use super::{Edits, InsertPurpose, LayoutError, Placement, preload};
use crate::flow::{Disassembly, Function, FunctionIndex, IndexVec, InstIndex};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;
use std::collections::BTreeSet;

/// Where a kernel may begin, in bytes (AMDGPUUsage, "Kernel Descriptor",
/// KERNEL_CODE_ENTRY_BYTE_OFFSET).
pub(super) const KERNEL_ALIGNMENT: u64 = 256;

/// Everything that was emitted.
pub(super) struct Emitted {
    pub stream: CodeStream,
    /// By instruction; `None` where it stays at its old place.
    pub units: IndexVec<InstIndex, Option<InstUnit>>,
    pub entries: IndexVec<FunctionIndex, Spot>,
    pub routines: Vec<usize>,
    /// Sites that cannot be displaced, and why.
    pub refused: Vec<(Pc, String)>,
}

/// What is emitted.
#[derive(Clone, Copy)]
pub(super) struct EmitSource<'a> {
    pub object: &'a CodeObject,
    pub program: &'a Disassembly,
    pub edits: &'a Edits,
    pub lookup: &'a Lookup<'a>,
    pub chains: &'a Chains,
    /// Whether trampolines are out of a branch's reach.
    pub is_far: &'a IndexVec<FunctionIndex, bool>,
    /// What control may come to from elsewhere than the instruction before, where functions are
    /// far.
    pub joined: &'a BTreeSet<InstIndex>,
}

/// Emits all functions and routines. `dropped` are the hints that are left out, `placements` say
/// for each function where its code goes.
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
        falls: false,
        whole_until: InstIndex(0),
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
        emitter.stream.seam(emitter.falls);
        routines.push(emitter.stream.position());
        emitter.code(code, InsertPurpose::Routine(index))?;
        emitter.falls = false;
    }
    let LayoutEmitter { stream, units, refused, .. } = emitter;
    Ok(Emitted { stream, units, entries, routines, refused })
}

struct LayoutEmitter<'a> {
    source: EmitSource<'a>,
    encoding: &'a mut Encoding,
    dropped: &'a BTreeSet<InstIndex>,
    stream: CodeStream,
    units: IndexVec<InstIndex, Option<InstUnit>>,
    /// Whether control comes to the end of the stream from what stands before it.
    falls: bool,
    /// The first instruction after a group that must stay together.
    whole_until: InstIndex,
    /// Where branches that are taken lead first, to be put after the function.
    stubs: Vec<Stub>,
    /// Of the function at hand, if it stays out of a branch's reach: what of it does not stay.
    far: Option<BTreeSet<InstIndex>>,
    refused: Vec<(Pc, String)>,
}

/// Code after a branch that is taken, or a jump to where the branch does not reach.
struct Stub {
    /// The branch among the stream's.
    branch: usize,
    /// The branch in the program.
    at: InstIndex,
    /// Where it leads.
    to: Label,
    site: Option<InstIndex>,
}

impl<'a> LayoutEmitter<'a> {
    /// A function in whole.
    fn function(&mut self, index: FunctionIndex, function: &Function) -> Result<Spot, LayoutError> {
        let entry = self.entry(index, function)?;
        self.far = None;
        self.units(function.instructions, false)?;
        self.stubs()?;
        Ok(Spot::Position(entry))
    }

    /// The beginning of a function: what runs once, or the code at the entry of a kernel that
    /// preloads arguments.
    fn entry(&mut self, index: FunctionIndex, function: &Function) -> Result<usize, LayoutError> {
        let first = function.instructions.start;
        self.stream.seam(self.falls);
        self.falls = false;
        if function.kernel.is_some() {
            self.stream.align(KERNEL_ALIGNMENT);
        }
        let entry = self.stream.position();
        let EmitSource { object, edits, .. } = self.source;
        if let Some(code) = edits.entries.get(&index) {
            self.code(code, InsertPurpose::Entry(index))?;
            self.stream.close_span(entry, first);
            self.falls = true;
        } else if let Some(code) = preload::prologue(object, self.encoding.isa(), function)? {
            self.stream.bytes.extend_from_slice(code);
            self.stream.close_inserted(entry, InsertPurpose::Island);
            // The start keeps its distance from the entry: nothing comes between.
            self.whole_until = first.next();
        }
        Ok(entry)
    }
}
