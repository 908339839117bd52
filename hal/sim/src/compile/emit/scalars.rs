//! Scalar registers, and moves between them and lanes. Each register is loaded once, and stored
//! before other code can read it.

use super::emitter::{Emitter, Held, LaneLoop};
use crate::compile::plan::LaneAccess;
use crate::compile::scalar::{Immediate, Lowering};
use crate::compile::template::expand;
use crate::compile::value::Value;
use crate::instruction::ScalarOperation;
use crate::instruction::{Op, Word};
use crate::wave::{RowIndex, ScalarIndex};
use std::fmt::Write;

impl Emitter<'_> {
    /// The value of a scalar source word.
    pub(super) fn word(&mut self, word: Word) -> Value {
        match word {
            Word::Constant(word) => Value::Word(word),
            Word::Scalar(index) => self.scalar_register(index),
            Word::Scc => {
                let bit = self.scc_bit();
                self.value(format_args!("zext i1 {bit} to i32"))
            }
            // Lane 0 of a vector register. VCCZ and EXECZ do not occur here.
            Word::Row(row) => {
                self.close_loop();
                let at = usize::from(row.0) * 256;
                let pointer = self.value(format_args!("getelementptr i8, ptr %rows, i64 {at}"));
                self.value(format_args!("load i32, ptr {pointer}, align 4"))
            }
            Word::Vccz | Word::Execz => Value::Word(0),
        }
    }

    pub(super) fn scalar_register(&mut self, index: ScalarIndex) -> Value {
        if self.is_loop_mask(index) {
            self.close_loop();
        }
        if let Some(held) = self.scalars.get(&index) {
            return held.value;
        }
        let number = index.0;
        let pointer = self.value(format_args!("getelementptr i32, ptr %scalars, i64 {number}"));
        let value = self.value(format_args!("load i32, ptr {pointer}, align 4"));
        self.scalars.insert(index, Held { value, is_stored: true });
        value
    }

    /// Combines two words to a 64-bit value.
    pub(super) fn wide(&mut self, [low, high]: [Word; 2]) -> Value {
        if let [Word::Constant(low), Word::Constant(high)] = [low, high] {
            return Value::Wide(u64::from(low) | u64::from(high) << 32);
        }
        let [low, high] = [low, high].map(|word| self.word(word));
        let low = self.value(format_args!("zext i32 {low} to i64"));
        let high = self.value(format_args!("zext i32 {high} to i64"));
        let high = self.value(format_args!("shl i64 {high}, 32"));
        self.value(format_args!("or i64 {low}, {high}"))
    }

    pub(super) fn scc_bit(&mut self) -> Value {
        if let Some(held) = self.scc {
            return held.value;
        }
        let byte = self.value(format_args!("load i8, ptr %scc"));
        let value = self.value(format_args!("trunc i8 {byte} to i1"));
        self.scc = Some(Held { value, is_stored: true });
        value
    }

    pub(super) fn write_scalar(&mut self, index: ScalarIndex, value: Value) {
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.read_masks.retain(|(words, _)| !words.contains(&Word::Scalar(index)));
        }
        self.scalars.insert(index, Held { value, is_stored: false });
    }

    /// The value of EXEC as `words` words.
    pub(super) fn exec(&mut self, words: u8) -> Value {
        match words {
            1 => self.word(Word::Scalar(ScalarIndex::EXEC)),
            _ => {
                self.wide([0, 1].map(|word| Word::Scalar(ScalarIndex(ScalarIndex::EXEC.0 + word))))
            }
        }
    }

    fn write_words(&mut self, to: ScalarIndex, words: u8, value: Value) {
        match words {
            0 => {}
            1 => self.write_scalar(to, value),
            _ => self.write_wide([to, ScalarIndex(to.0 + 1)], value),
        }
    }

    pub(super) fn write_wide(&mut self, [low, high]: [ScalarIndex; 2], value: Value) {
        let word = self.value(format_args!("trunc i64 {value} to i32"));
        self.write_scalar(low, word);
        let shifted = self.value(format_args!("lshr i64 {value}, 32"));
        let word = self.value(format_args!("trunc i64 {shifted} to i32"));
        self.write_scalar(high, word);
    }

    /// Stores all registers that are not stored yet.
    pub(super) fn store_scalars(&mut self) {
        for (index, held) in self.scalars.iter_mut().filter(|(_, held)| !held.is_stored) {
            self.numbers += 1;
            let pointer = Value::Named(self.numbers);
            let _ = write!(
                self.text,
                "  {pointer} = getelementptr i32, ptr %scalars, i64 {}\n  \
                 store i32 {}, ptr {pointer}, align 4\n",
                index.0, held.value
            );
            held.is_stored = true;
        }
        if let Some(held) = self.scc.as_mut().filter(|held| !held.is_stored) {
            self.numbers += 1;
            let byte = Value::Named(self.numbers);
            let _ = write!(
                self.text,
                "  {byte} = zext i1 {} to i8\n  store i8 {byte}, ptr %scc\n",
                held.value
            );
            held.is_stored = true;
        }
    }

    pub(super) fn scalar(&mut self, op: &Op, row: &ScalarOperation, lowering: &Lowering) {
        let mut arguments = Vec::new();
        for (source, words) in op.sources.iter().zip(row.sources) {
            arguments.push(match words {
                1 => self.word(source.words[0]),
                _ => self.wide(source.words),
            });
        }
        if let Some(immediate) = lowering.immediate {
            arguments.push(Value::Word(match immediate {
                Immediate::Signed => i32::from(op.immediate as i16) as u32,
                Immediate::Unsigned => u32::from(op.immediate as u16),
            }));
        }
        if lowering.saves_exec {
            let exec = self.exec(lowering.words);
            arguments.push(exec);
        }
        if lowering.code.contains("%d") {
            arguments.resize(3, Value::Word(0));
            let scc = self.scc_bit();
            arguments.push(scc);
        }
        let number = self.number();
        expand(&mut self.text, &lowering.code, &arguments, number, self.shape);
        let to = op.scalar_destination;
        // The result replaces a lane mask that the current loop computes.
        if (0..lowering.words).any(|word| self.is_loop_mask(ScalarIndex(to.0 + word))) {
            self.close_loop();
        }
        if lowering.saves_exec {
            self.write_words(ScalarIndex::EXEC, lowering.words, Value::Result(number));
            self.write_words(to, lowering.words, arguments[1]);
        } else {
            self.write_words(to, lowering.words, Value::Result(number));
        }
        if lowering.writes_scc {
            self.scc = Some(Held { value: Value::Second(number), is_stored: false });
        }
    }

    /// Emits a move between a lane and a scalar register.
    pub(super) fn lane_access(&mut self, op: &Op, access: LaneAccess) {
        let lane = match access {
            LaneAccess::ReadFirst => {
                let exec = self.value(format_args!("call i64 @llvm.cttz.i64(i64 %exec, i1 false)"));
                // Lane 0 if no lane is active.
                self.value(format_args!("and i64 {exec}, 63"))
            }
            _ => {
                let lane = self.word(op.sources[1].words[0]);
                let last = self.machine.lanes - 1;
                let lane = self.value(format_args!("and i32 {lane}, {last}"));
                self.value(format_args!("zext i32 {lane} to i64"))
            }
        };
        let pointer = |emitter: &mut Self, row: RowIndex| {
            let start = usize::from(row.0) * 256;
            let row = emitter.value(format_args!("getelementptr i8, ptr %rows, i64 {start}"));
            emitter.value(format_args!("getelementptr i32, ptr {row}, i64 {lane}"))
        };
        if access == LaneAccess::Write {
            // A region that bails out is executed again, and must find the row as it was.
            self.close_loop();
            let value = self.word(op.sources[0].words[0]);
            let pointer = pointer(self, op.destination);
            let _ = writeln!(self.text, "  store i32 {value}, ptr {pointer}, align 4");
            return;
        }
        let value = match op.sources[0].words[0] {
            Word::Row(row) => {
                let is_written = |lane_loop: &LaneLoop| {
                    lane_loop.rows.get(&row).is_some_and(|value| value.is_written)
                };
                if self.lane_loop.as_ref().is_some_and(is_written) || self.is_batched_row(row) {
                    self.close_loop();
                }
                // The interpreter reads it again after a bailout.
                self.save_row_before(row);
                let pointer = pointer(self, row);
                self.value(format_args!("load i32, ptr {pointer}, align 4"))
            }
            word => self.word(word),
        };
        if self.is_loop_mask(op.scalar_destination) {
            self.close_loop();
        }
        self.write_scalar(op.scalar_destination, value);
    }
}
