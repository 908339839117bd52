//! LLVM IR of a region: a function that executes blocks as long as the lanes of a path stay together.
//!
//! Values of a block are vectors of 32 lanes. The registers in memory are up to date before each instruction
//! that may fault or that the interpreter executes, and at the end of each block.

mod control;
mod forms;
mod lanes;
mod memory;
mod registers;
mod value;

use super::frame::offset;
use crate::program::{Block, Blocks, Op, Program};
use registers::Registers;
use std::fmt::{Arguments, Write};
use value::Value;

#[cfg(test)]
pub(super) use forms::is_compiled;

/// Name of the function.
pub(super) const NAME: &str = "region";

/// Emits a region.
struct Emitter<'a> {
    program: &'a Program,
    blocks: &'a Blocks,
    /// Blocks of the region.
    region: &'a [Block],
    text: String,
    /// Number of values and labels so far.
    names: usize,
    /// Label of the current block of the IR.
    label: String,
    registers: Registers,
    /// Lanes that execute the current instruction, if it has a guard.
    guard: Option<Value>,
    /// Number of lanes that executed guarded instructions of the current block.
    guarded: Vec<Value>,
}

/// The IR of a region.
pub(super) fn module(program: &Program, region: usize) -> String {
    let blocks = &program.blocks;
    let region = &blocks.all[blocks.regions[region].clone()];
    let mut emitter = Emitter {
        program,
        blocks,
        region,
        text: String::new(),
        names: 0,
        label: String::new(),
        registers: Registers::default(),
        guard: None,
        guarded: Vec::new(),
    };
    emitter.prologue();
    for number in 0..region.len() {
        emitter.block(number);
    }
    emitter.text.push_str("faulted:\n  ret i32 2\nnowhere:\n  ret i32 0\n}\n");
    emitter.text + value::DECLARATIONS
}

impl Emitter<'_> {
    /// Appends a line.
    fn line(&mut self, text: Arguments<'_>) {
        let _ = writeln!(self.text, "  {text}");
    }

    /// A new name.
    fn name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Appends an instruction with a result of a number of bits per lane.
    fn value(&mut self, bits: u32, text: Arguments<'_>) -> Value {
        let value = Value::Named { name: self.name(), bits };
        self.line(format_args!("{value} = {text}"));
        value
    }

    /// Appends an instruction with a result that lanes share; returns its name.
    fn scalar(&mut self, text: Arguments<'_>) -> String {
        let name = format!("%s{}", self.name());
        self.line(format_args!("{name} = {text}"));
        name
    }

    /// Loads a field of the frame.
    fn field(&mut self, kind: &str, at: usize) -> String {
        let pointer = self.field_pointer(at);
        self.scalar(format_args!("load {kind}, ptr {pointer}, align 8"))
    }

    fn field_pointer(&mut self, at: usize) -> String {
        self.scalar(format_args!("getelementptr i8, ptr %frame, i64 {at}"))
    }

    fn store_field(&mut self, value: &str, at: usize) {
        let pointer = self.field_pointer(at);
        self.line(format_args!("store {value}, ptr {pointer}, align 4"));
    }

    /// Begins a block of the IR.
    fn begin(&mut self, label: String) {
        let _ = writeln!(self.text, "{label}:");
        self.label = label;
    }

    /// The lanes that execute the current instruction.
    fn mask(&self) -> Value {
        self.guard.unwrap_or(Value::Active)
    }

    /// The beginning of the function: values that all blocks use.
    fn prologue(&mut self) {
        self.text.push_str("define i32 @region(ptr %frame) nounwind {\n");
        self.begin("entry".into());
        for (name, kind, at) in [
            ("active.bits", "i32", offset::ACTIVE),
            ("words", "ptr", offset::WORDS),
            ("predicates", "ptr", offset::PREDICATES),
            ("local", "ptr", offset::LOCAL),
            ("local.base", "i64", offset::LOCAL_BASE),
            ("shared", "ptr", offset::SHARED),
            ("shared.length", "i64", offset::SHARED_LENGTH),
            ("windows", "ptr", offset::WINDOWS),
            ("guards", "ptr", offset::GUARDS),
            ("interpret", "ptr", offset::INTERPRET),
            ("first", "i32", offset::ENTRY),
        ] {
            self.line(format_args!("%{name}.at = getelementptr i8, ptr %frame, i64 {at}"));
            self.line(format_args!("%{name} = load {kind}, ptr %{name}.at, align 4"));
        }
        self.line(format_args!("%active = bitcast i32 %active.bits to <32 x i1>"));
        self.line(format_args!("%lanes = call i32 @llvm.ctpop.i32(i32 %active.bits)"));
        self.line(format_args!("%lane.count = zext i32 %lanes to i64"));
        let targets =
            (0..self.region.len()).map(|block| format!("i32 {block}, label %block{block}"));
        let targets: Vec<String> = targets.collect();
        self.line(format_args!("switch i32 %first, label %nowhere [ {} ]", targets.join(" ")));
    }

    /// A block of the program.
    fn block(&mut self, number: usize) {
        let instructions = self.region[number].instructions.clone();
        self.begin(format!("block{number}"));
        self.registers.forget();
        self.guarded.clear();
        self.store_field(&format!("i32 {}", instructions.start), offset::BLOCK);
        let mut unguarded = 0;
        for at in instructions.clone() {
            let step = &self.program.steps[at];
            match &step.inst.guard {
                Some(guard) => self.begin_guarded(at, *guard),
                None => unguarded += 1,
            }
            if !matches!(step.op, Op::Branch { .. }) {
                self.instruction(at);
                self.guard = None;
            }
        }
        self.end_block(number, unguarded);
    }

    /// Computes the lanes that execute a guarded instruction, and records them.
    fn begin_guarded(&mut self, at: usize, guard: flipwave_ptx::Condition) {
        let mut mask = self.predicate(guard.register.number);
        if guard.is_negated {
            mask = self.value(1, format_args!("xor <32 x i1> {mask}, splat (i1 true)"));
        }
        let mask = self.value(1, format_args!("and <32 x i1> {mask}, %active"));
        let bits = self.scalar(format_args!("bitcast <32 x i1> {mask} to i32"));
        let place = self.scalar(format_args!("getelementptr i32, ptr %guards, i64 {at}"));
        self.line(format_args!("store i32 {bits}, ptr {place}, align 4"));
        let count = self.scalar(format_args!("call i32 @llvm.ctpop.i32(i32 {bits})"));
        let name = self.name();
        self.line(format_args!("%s{name} = zext i32 {count} to i64"));
        self.guarded.push(Value::Scalar(name));
        self.guard = Some(mask);
    }

    /// An instruction without effect on control flow.
    fn instruction(&mut self, at: usize) {
        let program = self.program;
        let step = &program.steps[at];
        let is_done = match &step.op {
            Op::Nothing => true,
            Op::Compute { sources, destinations, .. } => {
                self.compute(&step.inst.form, sources, destinations)
            }
            Op::Load { access, values } => self.load(at, access, values),
            Op::Store { access, values } => self.store(at, access, values),
            _ => false,
        };
        if !is_done {
            self.interpret(at);
        }
    }

    /// Lets the interpreter execute an instruction.
    fn interpret(&mut self, at: usize) {
        self.flush();
        self.call_interpreter(at);
        self.registers.forget_written(&self.program.steps[at].inst);
    }

    /// Calls the interpreter for an instruction; leaves the function if it faults.
    fn call_interpreter(&mut self, at: usize) {
        let result = self.scalar(format_args!("call i32 %interpret(ptr %frame, i32 {at})"));
        let has_faulted = self.scalar(format_args!("icmp ne i32 {result}, 0"));
        let after = format!("after{}", self.name());
        self.line(format_args!("br i1 {has_faulted}, label %faulted, label %{after}, !prof !0"));
        self.begin(after);
    }
}
