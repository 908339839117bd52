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
    /// IR emitted so far; it ends inside a basic block.
    pub(super) text: String,
    /// Label of that basic block.
    pub(super) label: String,
    pub(super) numbers: u32,
    /// Scalar registers whose values are known.
    pub(super) scalars: BTreeMap<ScalarIndex, Held>,
    pub(super) scc: Option<Held>,
    pub(super) lane_loop: Option<LaneLoop>,
    pub(super) regions: Vec<BailoutRegion>,
    pub(super) has_ended: bool,
    /// Index of the current instruction.
    pub(super) index: usize,
    /// Accesses to device memory so far, each with a window.
    pub(super) sites: Vec<Site>,
    pub(super) uses_lds: bool,
    pub(super) variant: Variant,
    /// Global constants that the function uses.
    pub(super) constants: String,
}

/// Known value of a scalar register.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) value: Value,
    pub(super) is_stored: bool,
}

/// The lane loop being emitted.
pub(super) struct LaneLoop {
    pub(super) first: usize,
    pub(super) number: u32,
    /// IR of the loop body.
    pub(super) body: String,
    pub(super) rows: BTreeMap<RowIndex, RowValue>,
    /// Rows as they are before the loop, if they are read.
    pub(super) before: BTreeMap<RowIndex, Value>,
    /// Lane masks that the loop computes, by the register of the low word.
    pub(super) masks: BTreeMap<ScalarIndex, (Value, [ScalarIndex; 2])>,
    /// Lane masks read from scalar registers, by their words.
    pub(super) read_masks: Vec<([Word; 2], Value)>,
    /// Lanes that bail out: at NaNs that the code does not make exact, and at non-global memory
    /// accesses.
    pub(super) bailout_lanes: Vec<Value>,
    /// Label of the basic block that the body ends in.
    pub(super) label: String,
    /// `true` if the first instruction is partly executed before the loop. The interpreter executes
    /// all of it again and so needs the registers as they were before the loop.
    pub(super) is_second_half: bool,
    /// Rows from which lanes read words of other lanes, as they are before the loop.
    pub(super) moved: Vec<(RowIndex, Moved)>,
    /// Memory accesses of the loop.
    pub(super) accesses: Vec<Access>,
    /// Rows written before the first access that may fault. The interpreter writes them again in
    /// any case.
    pub(super) written_first: Vec<RowIndex>,
    /// Rows that the loop loads.
    pub(super) loaded: Vec<RowIndex>,
    /// Address patterns of the accesses.
    pub(super) groups: Vec<Group>,
    /// Loads emitted at the end of the loop.
    pub(super) batches: Vec<Batch>,
}

impl LaneLoop {
    /// Returns `true` if an access may fault.
    pub(super) fn may_fault(&self) -> bool {
        self.accesses.iter().any(|access| access.space == AccessSpace::Global)
    }
}

/// A row as it is before the lane loop.
#[derive(Clone, Copy)]
pub(super) enum Moved {
    /// Vectors of 16 lanes; in waves of 32 lanes, the last two repeat the first two.
    Vectors([Value; 4]),
    /// Host address of a copy.
    Copy(Value),
}

/// State of the check that a value is not a single-precision NaN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NanCheck {
    /// The value is no NaN, the code bails out if it is one, or NaNs are plain bits.
    Done,
    /// The value may be a NaN. The check is deferred until an operation uses the value that does not
    /// propagate NaNs.
    Deferred,
}

/// The current value of a row in the lane loop.
#[derive(Clone, Copy)]
pub(super) struct RowValue {
    pub(super) value: Value,
    pub(super) is_written: bool,
    pub(super) nan_check: NanCheck,
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

    /// The address `bytes` bytes after a pointer.
    pub(super) fn after(&mut self, pointer: impl Display, bytes: usize) -> Value {
        self.value(format_args!("getelementptr i8, ptr {pointer}, i64 {bytes}"))
    }

    /// Loads the field at byte offset `at` of a struct.
    pub(super) fn field_of(&mut self, pointer: impl Display, at: usize, kind: &str) -> Value {
        let field = self.after(pointer, at);
        self.value(format_args!("load {kind}, ptr {field}"))
    }

    /// Loads a field of the frame.
    pub(super) fn field(&mut self, at: usize, kind: &str) -> Value {
        self.field_of("%frame", at, kind)
    }

    pub(super) fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// Emits a straight-line instruction that defines a value.
    pub(super) fn value(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        let _ = writeln!(self.text, "  {value} = {code}");
        value
    }

    /// Emits an instruction that defines a value into the body of the current lane loop.
    pub(super) fn loop_value(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        if let Some(lane_loop) = &mut self.lane_loop {
            let _ = writeln!(lane_loop.body, "  {value} = {code}");
        }
        value
    }

    /// Emits a call of the interpreter for an instruction. All results computed before must be
    /// stored.
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
