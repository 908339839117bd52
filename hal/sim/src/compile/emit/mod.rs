//! From a block's instructions to IR.
//!
//! Scalar code is straight. Code over lanes is gathered in segments: each is a loop that does all of
//! its operations for a few lanes, then for the next ones, so that what one operation gives the other
//! stays in the host's registers. Scalar code between operations of a segment is put before its loop,
//! unless it depends on a lane mask of the segment's own, which is whole only after the loop.
//!
//! Code over lanes has EXEC as it is where the block begins: after an instruction that writes EXEC there
//! is none in the block. Inactive lanes are computed like others, and not written.

mod chain;
mod halves;
mod lanes;
mod memory;
mod moves;
mod pairs;
mod rows;
mod scalars;
mod segment;

use super::access::{Access, Place};
use super::compiled::{How, Segment, Site};
use super::frame::offset;
use super::plan::{Plan, Source};
use super::value::{Shape, Value};
use crate::execute::lane::Kind;
use crate::instruction::control::Condition;
use crate::instruction::{Inner, Op, Word};
use crate::wave::{Machine, RowIndex, ScalarIndex};
use memory::{Batch, Group};
use moves::Moved;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The sources of an access to memory, each of which may be a scalar register.
const WORDS: [Kind; 4] = [Kind::Wide; 4];

/// IR, and what it leaves to the interpreter.
pub struct Module {
    pub text: String,
    pub segments: Vec<Segment>,
    /// Accesses to device memory.
    pub sites: Vec<Site>,
    pub uses_lds: bool,
}

/// The name of the function.
pub const NAME: &str = "block";

/// Writes a block as a function. Nothing in it depends on where the block stands on the device or in the
/// host's memory, so that the same instructions always give the same text. Instructions that `elsewhere`
/// says are flat accesses that lead elsewhere than to device memory.
pub fn module(
    source: &Source,
    elsewhere: Vec<bool>,
    machine: Machine,
    shape: Shape,
    how: How,
) -> Module {
    let mut emitter = Emitter::new(source, elsewhere, machine, shape, how);
    emitter.begin();
    for (index, op) in source.ops.iter().enumerate() {
        emitter.instruction(index, op);
    }
    emitter.finish();
    Module {
        text: emitter.text,
        segments: emitter.segments,
        sites: emitter.sites,
        uses_lds: emitter.uses_lds,
    }
}

struct Emitter<'a> {
    source: &'a Source,
    elsewhere: Vec<bool>,
    machine: Machine,
    shape: Shape,
    /// What is written so far: it ends inside of a basic block.
    text: String,
    /// That basic block's label.
    label: String,
    numbers: u32,
    /// Scalar registers whose value is known, and whether the wave has it yet.
    scalars: BTreeMap<ScalarIndex, Held>,
    scc: Option<Held>,
    open: Option<Open>,
    segments: Vec<Segment>,
    has_ended: bool,
    /// The instruction that is being written.
    index: usize,
    /// Accesses to device memory so far; each has a window.
    sites: Vec<Site>,
    uses_lds: bool,
    how: How,
    /// Constants beside the function.
    constants: String,
}

/// A value that a register has.
#[derive(Clone, Copy)]
struct Held {
    value: Value,
    is_stored: bool,
}

/// A segment being written.
struct Open {
    first: usize,
    number: u32,
    /// The body of its loop.
    body: String,
    rows: BTreeMap<RowIndex, Lanes>,
    /// Rows as they are before, where they are read.
    before: BTreeMap<RowIndex, Value>,
    /// Lane masks of its own, by the register of the low word.
    masks: BTreeMap<ScalarIndex, (Value, [ScalarIndex; 2])>,
    /// Lane masks that scalar registers have: by their words.
    read_masks: Vec<([Word; 2], Value)>,
    /// Lanes that the code does not do right: NaNs that it does not settle, and accesses to memory
    /// elsewhere.
    doubts: Vec<Value>,
    /// The basic block that the body ends in.
    label: String,
    /// Whether its first instruction is half done before it, so that the interpreter, which does all of
    /// it again, needs registers as they were.
    is_second_half: bool,
    /// Rows that lanes take words from, as they are before.
    moved: Vec<(RowIndex, Moved)>,
    /// What it accesses.
    accesses: Vec<Access>,
    /// Rows that it writes before the first access that may fault: whatever that does, the interpreter
    /// writes them again.
    written_first: Vec<RowIndex>,
    /// Rows that it loads.
    loaded: Vec<RowIndex>,
    /// What is known of its accesses.
    groups: Vec<Group>,
    /// Loads that are put at its end.
    batches: Vec<Batch>,
}

impl Open {
    /// Whether an access of it may fault.
    fn may_fault(&self) -> bool {
        self.accesses.iter().any(|own| own.place == Place::Global)
    }
}

/// A row of which some lanes have a new value.
#[derive(Clone, Copy)]
struct Lanes {
    value: Value,
    is_written: bool,
    /// It may be a NaN of single precision that is to be looked at before it is used otherwise than
    /// to compute what is a NaN then, too.
    may_be_nan: bool,
}

impl<'a> Emitter<'a> {
    fn new(
        source: &'a Source,
        elsewhere: Vec<bool>,
        machine: Machine,
        shape: Shape,
        how: How,
    ) -> Emitter<'a> {
        Emitter {
            source,
            elsewhere,
            machine,
            shape,
            text: String::new(),
            label: "entry".into(),
            numbers: 0,
            scalars: BTreeMap::new(),
            scc: None,
            open: None,
            segments: Vec::new(),
            has_ended: false,
            index: 0,
            sites: Vec::new(),
            uses_lds: false,
            how,
            constants: String::new(),
        }
    }

    /// The address so many bytes after a pointer.
    fn after(&mut self, pointer: impl Display, bytes: usize) -> Value {
        self.value(format_args!("getelementptr i8, ptr {pointer}, i64 {bytes}"))
    }

    /// A field of what a pointer is to.
    fn field_of(&mut self, pointer: impl Display, at: usize, kind: &str) -> Value {
        let place = self.after(pointer, at);
        self.value(format_args!("load {kind}, ptr {place}"))
    }

    /// A field of the frame.
    fn field(&mut self, at: usize, kind: &str) -> Value {
        self.field_of("%frame", at, kind)
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// A line of straight code that gives a value.
    fn value(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        let _ = writeln!(self.text, "  {value} = {code}");
        value
    }

    /// The same in the loop of the open segment.
    fn lanes(&mut self, code: std::fmt::Arguments<'_>) -> Value {
        let value = Value::Named(self.number());
        if let Some(open) = &mut self.open {
            let _ = writeln!(open.body, "  {value} = {code}");
        }
        value
    }

    fn begin(&mut self) {
        let bits = match self.shape {
            Shape::Sixteen => 512,
            Shape::Eight => 256,
        };
        let _ = write!(
            self.text,
            "define i32 @{NAME}(ptr noundef %frame) \"min-legal-vector-width\"=\"{bits}\" \
             \"prefer-vector-width\"=\"{bits}\" nounwind {{\nentry:\n"
        );
        for (field, at) in [("rows", offset::ROWS), ("scalars", offset::SCALARS)] {
            let _ = write!(
                self.text,
                "  %{field}.at = getelementptr i8, ptr %frame, i64 {at}\n  \
                 %{field} = load ptr, ptr %{field}.at\n"
            );
        }
        let _ = write!(
            self.text,
            "  %scc.at = getelementptr i8, ptr %frame, i64 {}\n  %scc = load ptr, ptr %scc.at\n  \
             %kept.at = getelementptr i8, ptr %frame, i64 {}\n  %kept = load ptr, ptr %kept.at\n  \
             %index.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %doubts.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %lds.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %lds.length.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %call.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %nowhere = getelementptr i8, ptr %frame, i64 {}\n  \
             %exec.at = getelementptr i32, ptr %scalars, i64 {}\n  \
             %exec = load i64, ptr %exec.at, align 4\n",
            offset::SCC,
            offset::KEPT,
            offset::INDEX,
            offset::DOUBTS,
            offset::LDS,
            offset::LDS_LENGTH,
            offset::CALL,
            offset::NOWHERE,
            ScalarIndex::EXEC.0,
        );
        self.begin_chain();
        self.text.push_str("  br label %top\ntop:\n");
        self.label = "top".into();
    }

    fn instruction(&mut self, index: usize, op: &Op) {
        self.index = index;
        match self.source.plans[index] {
            Plan::Nothing => {}
            Plan::Scalar(row, lowering) => self.scalar(op, row, lowering),
            Plan::Vector(plan) => {
                self.part_loads(&[op]);
                self.open_for(index, &[(op, plan.row.sources)]);
                let result = self.compute(op, plan);
                self.commit(op, op.destination, plan, result);
            }
            Plan::Pair(lowering) => {
                self.part_loads(&[op]);
                self.open_for(index, &[(op, &WORDS)]);
                self.pair(op, lowering);
            }
            Plan::Lane(access) => self.lane_access(op, access),
            Plan::Exchange(exchange) => {
                self.open_for(index, &[(op, &WORDS)]);
                self.exchange(op, exchange);
            }
            Plan::Dual(first, second) => {
                let Some(Inner::Dual(dual)) = op.inner.as_deref() else { return };
                self.part_loads(&[&dual.first, &dual.second]);
                self.open_for(
                    index,
                    &[(&dual.first, first.row.sources), (&dual.second, second.row.sources)],
                );
                let results =
                    [self.compute(&dual.first, first), self.compute(&dual.second, second)];
                self.commit(&dual.second, dual.second.destination, second, results[1]);
                self.commit(&dual.first, dual.destination, first, results[0]);
            }
            Plan::Access(access) if self.elsewhere.get(index) == Some(&true) => {
                self.flat_elsewhere(index, op, access);
            }
            Plan::Access(access) => {
                self.make_room(op, access);
                self.open_for(index, &[(op, &WORDS)]);
                self.note(access);
                self.access(op, access);
            }
            Plan::Private(access) => self.private(index, op, access),
            Plan::ScalarLoad(words) => self.scalar_load(op, words),
            Plan::Call => self.call(index),
            Plan::Branch(condition) => self.branch(condition),
            Plan::Barrier => {
                self.close();
                self.store_scalars();
                self.wait();
                self.has_ended = true;
            }
        }
    }

    // What is left to the interpreter, and branches.

    fn call(&mut self, index: usize) {
        self.close();
        self.store_scalars();
        self.scalars.clear();
        self.scc = None;
        self.call_interpreter(index);
    }

    /// Writes the call for an instruction; the wave has what was computed before.
    fn call_interpreter(&mut self, index: usize) {
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

    fn branch(&mut self, condition: Condition) {
        let condition = match condition {
            Condition::Always => Value::Bit(true),
            Condition::Scc(set) => {
                let scc = self.scc_bit();
                self.value(format_args!("icmp eq i1 {scc}, {set}"))
            }
            Condition::VccZero(zero) => {
                let words = [0, 1].map(|word| Word::Scalar(ScalarIndex(ScalarIndex::VCC.0 + word)));
                let vcc = self.wide(words);
                let all = self.machine.all_lanes().0 as i64;
                let vcc = self.value(format_args!("and i64 {vcc}, {all}"));
                self.value(format_args!("icmp {} i64 {vcc}, 0", if zero { "eq" } else { "ne" }))
            }
            Condition::ExecZero(zero) => {
                let exec = self.exec(2);
                self.value(format_args!("icmp {} i64 {exec}, 0", if zero { "eq" } else { "ne" }))
            }
        };
        self.close();
        self.store_scalars();
        self.go_on_where(condition);
        self.has_ended = true;
    }

    fn finish(&mut self) {
        self.index = self.source.ops.len();
        if !self.has_ended {
            self.close();
            self.store_scalars();
            self.go_on();
        }
        self.text.push_str("}\n");
        self.text.push_str(&self.constants);
    }
}
