//! Emission of LLVM IR for a block's instructions.
//!
//! Scalar operations become straight-line code. Vector operations are gathered into lane loops:
//! each iteration does all operations of the loop for 8 or 16 lanes, so that intermediate results
//! stay in host registers. Scalar code between the operations of a loop is placed before it, unless
//! it depends on a lane mask that the loop computes, which is complete only after the loop.
//!
//! Lane loops use EXEC as it was at the beginning of the block: no vector operation follows an
//! instruction that writes EXEC. Inactive lanes are computed like active ones, but not written.

mod chain;
mod emitter;
mod halves;
mod lane_loop;
mod lanes;
mod memory;
mod moves;
mod pairs;
mod rows;
mod scalars;

use super::compiled::Contents;
use super::frame::offset;
use super::plan::{Plan, Source};
use super::value::{Shape, Value};
use super::variant::Variant;
use crate::instruction::control::Condition;
use crate::instruction::{Inner, Op, Word};
use crate::wave::{Machine, ScalarIndex};
use emitter::{Emitter, WORDS};
use std::fmt::Write;

/// The IR of a block, and its properties.
pub struct Module {
    pub text: String,
    pub contents: Contents,
}

/// Name of the block's function.
pub const NAME: &str = "block";

/// Emits a block as a function. The text does not depend on the block's address on the device or on
/// the host, so that equal instructions always give equal text. `non_global` marks flat accesses
/// that resolved to non-global memory.
pub fn module(
    source: &Source,
    non_global: Vec<bool>,
    machine: Machine,
    shape: Shape,
    variant: Variant,
) -> Module {
    let mut emitter = Emitter::new(source, non_global, machine, shape, variant);
    emitter.begin();
    for (index, op) in source.ops.iter().enumerate() {
        emitter.instruction(index, op);
    }
    emitter.finish();
    let Emitter { text, regions, sites, uses_lds, .. } = emitter;
    Module { text, contents: Contents { regions, sites, uses_lds } }
}

impl Emitter<'_> {
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
             %saved.at = getelementptr i8, ptr %frame, i64 {}\n  %saved = load ptr, ptr %saved.at\n  \
             %index.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %bailout.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %lds.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %lds.length.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %call.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %discard = getelementptr i8, ptr %frame, i64 {}\n  \
             %exec.at = getelementptr i32, ptr %scalars, i64 {}\n  \
             %exec = load i64, ptr %exec.at, align 4\n",
            offset::SCC,
            offset::SAVED_ROWS,
            offset::INDEX,
            offset::BAILOUT_LANES,
            offset::LDS,
            offset::LDS_LENGTH,
            offset::CALL,
            offset::DISCARD,
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
                self.split_after_loads(&[op]);
                self.open_loop_for(index, &[(op, plan.row.sources)]);
                let result = self.compute(op, plan);
                self.commit(op, op.destination, plan, result);
            }
            Plan::Pair(lowering) => {
                self.split_after_loads(&[op]);
                self.open_loop_for(index, &[(op, &WORDS)]);
                self.pair(op, lowering);
            }
            Plan::Lane(access) => self.lane_access(op, access),
            Plan::Exchange(exchange) => {
                self.open_loop_for(index, &[(op, &WORDS)]);
                self.exchange(op, exchange);
            }
            Plan::Dual(first, second) => {
                let Some(Inner::Dual(dual)) = op.inner.as_deref() else { return };
                self.split_after_loads(&[&dual.first, &dual.second]);
                self.open_loop_for(
                    index,
                    &[(&dual.first, first.row.sources), (&dual.second, second.row.sources)],
                );
                let results =
                    [self.compute(&dual.first, first), self.compute(&dual.second, second)];
                self.commit(&dual.second, dual.second.destination, second, results[1]);
                self.commit(&dual.first, dual.destination, first, results[0]);
            }
            Plan::Access(access) if self.non_global.get(index) == Some(&true) => {
                self.non_global_access(index, op, access);
            }
            Plan::Access(access) => {
                self.close_loop_before(op, access);
                self.open_loop_for(index, &[(op, &WORDS)]);
                self.record_access(access);
                self.access(op, access);
            }
            Plan::Private(access) => self.private(index, op, access),
            Plan::ScalarLoad(words) => self.scalar_load(op, words),
            Plan::Call => self.call(index),
            Plan::Branch(condition) => self.branch(condition),
            Plan::Barrier => {
                self.close_loop();
                self.store_scalars();
                self.exit_to_barrier();
                self.has_ended = true;
            }
        }
    }

    // Calls of the interpreter, and branches.

    fn call(&mut self, index: usize) {
        self.close_loop();
        self.store_scalars();
        self.scalars.clear();
        self.scc = None;
        self.call_interpreter(index);
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
        self.close_loop();
        self.store_scalars();
        self.exit_on_branch(condition);
        self.has_ended = true;
    }

    fn finish(&mut self) {
        self.index = self.source.ops.len();
        if !self.has_ended {
            self.close_loop();
            self.store_scalars();
            self.exit_to_next();
        }
        self.text.push_str("}\n");
        self.text.push_str(&self.constants);
    }
}
