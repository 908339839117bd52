//! State of the emitter, and the helpers that write IR.

use super::memory::group::{Batch, Group};
use crate::compile::access::{Access, AccessSpace};
use crate::compile::compiled::{BailoutRegion, Site};
use crate::compile::plan::Source;
use crate::compile::value::{Shape, Value};
use crate::compile::variant::Variant;
use crate::execute::lane::Kind;
use crate::instruction::Word;
use crate::wave::{Machine, RowIndex, ScalarIndex};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Kinds of the sources of a memory access, each of which may be a scalar register pair.
pub(super) const WORDS: [Kind; 4] = [Kind::Wide; 4];

pub(super) struct Emitter<'a> {
    pub(super) source: &'a Source,
    pub(super) non_global: Vec<bool>,
    pub(super) machine: Machine,
    pub(super) shape: Shape,
    /// What is written so far: it ends inside of a basic block.
    pub(super) text: String,
    /// That basic block's label.
    pub(super) label: String,
    pub(super) numbers: u32,
    /// Scalar registers whose value is known, and whether the wave has it yet.
    pub(super) scalars: BTreeMap<ScalarIndex, Held>,
    pub(super) scc: Option<Held>,
    pub(super) lane_loop: Option<LaneLoop>,
    pub(super) regions: Vec<BailoutRegion>,
    pub(super) has_ended: bool,
    /// The instruction that is being written.
    pub(super) index: usize,
    /// Accesses to device memory so far; each has a window.
    pub(super) sites: Vec<Site>,
    pub(super) uses_lds: bool,
    pub(super) variant: Variant,
    /// Constants beside the function.
    pub(super) constants: String,
}

/// A value that a register has.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) value: Value,
    pub(super) is_stored: bool,
}

/// A segment being written.
pub(super) struct LaneLoop {
    pub(super) first: usize,
    pub(super) number: u32,
    /// The body of its loop.
    pub(super) body: String,
    pub(super) rows: BTreeMap<RowIndex, RowValue>,
    /// Rows as they are before, where they are read.
    pub(super) before: BTreeMap<RowIndex, Value>,
    /// Lane masks of its own, by the register of the low word.
    pub(super) masks: BTreeMap<ScalarIndex, (Value, [ScalarIndex; 2])>,
    /// Lane masks that scalar registers have: by their words.
    pub(super) read_masks: Vec<([Word; 2], Value)>,
    /// Lanes that the code does not do right: NaNs that it does not settle, and accesses to memory
    /// elsewhere.
    pub(super) bailout_lanes: Vec<Value>,
    /// The basic block that the body ends in.
    pub(super) label: String,
    /// Whether its first instruction is half done before it, so that the interpreter, which does all of
    /// it again, needs registers as they were.
    pub(super) is_second_half: bool,
    /// Rows that lanes take words from, as they are before.
    pub(super) moved: Vec<(RowIndex, Moved)>,
    /// What it accesses.
    pub(super) accesses: Vec<Access>,
    /// Rows that it writes before the first access that may fault: whatever that does, the interpreter
    /// writes them again.
    pub(super) written_first: Vec<RowIndex>,
    /// Rows that it loads.
    pub(super) loaded: Vec<RowIndex>,
    /// What is known of its accesses.
    pub(super) groups: Vec<Group>,
    /// Loads that are put at its end.
    pub(super) batches: Vec<Batch>,
}

impl LaneLoop {
    /// Whether an access of it may fault.
    pub(super) fn may_fault(&self) -> bool {
        self.accesses.iter().any(|own| own.space == AccessSpace::Global)
    }
}

/// A row as it is before a segment.
#[derive(Clone, Copy)]
pub(super) enum Moved {
    /// Its vectors of 16 lanes; the latter two are the first again where waves have 32 lanes.
    Vectors([Value; 4]),
    /// The host's address of a copy.
    Copy(Value),
}

/// A row of which some lanes have a new value.
#[derive(Clone, Copy)]
pub(super) struct RowValue {
    pub(super) value: Value,
    pub(super) is_written: bool,
    /// It may be a NaN of single precision that is to be looked at before it is used otherwise than
    /// to compute what is a NaN then, too.
    pub(super) may_be_nan: bool,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        source: &'a Source,
        non_global: Vec<bool>,
        machine: Machine,
        shape: Shape,
        variant: Variant,
    ) -> Emitter<'a> {
        Emitter {
            source,
            non_global,
            machine,
            shape,
            text: String::new(),
            label: "entry".into(),
            numbers: 0,
            scalars: BTreeMap::new(),
            scc: None,
            lane_loop: None,
            regions: Vec::new(),
            has_ended: false,
            index: 0,
            sites: Vec::new(),
            uses_lds: false,
            variant,
            constants: String::new(),
        }
    }

    /// The address so many bytes after a pointer.
    pub(super) fn after(&mut self, pointer: impl Display, bytes: usize) -> Value {
        self.value(format_args!("getelementptr i8, ptr {pointer}, i64 {bytes}"))
    }

    /// A field of what a pointer is to.
    pub(super) fn field_of(&mut self, pointer: impl Display, at: usize, kind: &str) -> Value {
        let field = self.after(pointer, at);
        self.value(format_args!("load {kind}, ptr {field}"))
    }

    /// A field of the frame.
    pub(super) fn field(&mut self, at: usize, kind: &str) -> Value {
        self.field_of("%frame", at, kind)
    }

    pub(super) fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// A line of straight code that gives a value.
    pub(super) fn value(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        let _ = writeln!(self.text, "  {value} = {code}");
        value
    }

    /// The same in the loop of the open segment.
    pub(super) fn loop_value(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        if let Some(open) = &mut self.lane_loop {
            let _ = writeln!(open.body, "  {value} = {code}");
        }
        value
    }

    /// Writes the call for an instruction; the wave has what was computed before.
    pub(super) fn call_interpreter(&mut self, index: usize) {
        let number = self.number();
        let _ = write!(
            self.text,
            "  %function{number} = load ptr, ptr %call.at\n  \
             %call{number} = call i32 %function{number}(ptr %frame, i64 {index})\n  \
             %failed{number} = icmp ne i32 %call{number}, 0\n  \
             br i1 %failed{number}, label %fault{number}, label %called{number}\n\
             fault{number}:\n  ret i32 1\ncalled{number}:\n"
        );
        self.label = format!("called{number}");
    }
}
