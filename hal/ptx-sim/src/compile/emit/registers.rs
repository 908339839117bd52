//! Registers: values that the block has read or written, and their rows in memory.

use super::Emitter;
use super::value::{Value, vector};
use crate::compute::LANES;
use crate::wave::Word;
use flipwave_arch::Instruction;
use flipwave_ptx::{Inst, PREDICATES, WORDS};
use std::collections::BTreeMap;

/// The known values of registers.
#[derive(Default)]
pub(super) struct Registers {
    /// By number of the first word.
    words: BTreeMap<u16, Known>,
    predicates: BTreeMap<u16, Known>,
}

/// The value of a register.
#[derive(Clone, Copy)]
struct Known {
    /// 64 bits for pairs of words. Lanes that are not active may have any value.
    value: Value,
    /// `true` if the row in memory has an older value.
    is_newer: bool,
}

impl Known {
    fn words(&self) -> u16 {
        if self.value.bits() == 64 { 2 } else { 1 }
    }
}

impl Registers {
    /// Forgets all values, which must be in memory.
    pub fn forget(&mut self) {
        debug_assert!(self.newer().is_empty());
        self.words.clear();
        self.predicates.clear();
    }

    /// Forgets the registers that an instruction writes.
    pub fn forget_written(&mut self, inst: &Inst) {
        inst.for_each_written(&mut |register| {
            if register.class.rank == WORDS.rank {
                self.words.remove(&register.number);
                let before = register.number.wrapping_sub(1);
                if self.words.get(&before).is_some_and(|known| known.words() == 2) {
                    self.words.remove(&before);
                }
            } else if register.class.rank == PREDICATES.rank {
                self.predicates.remove(&register.number);
            }
        });
    }

    /// Known registers that share words with others, but have another size.
    fn overlapping(&self, first: u16, count: u16) -> Vec<u16> {
        let start = first.saturating_sub(1);
        let around = self.words.range(start..first.saturating_add(count));
        let overlaps = |(number, known): &(&u16, &Known)| {
            **number + known.words() > first && (**number, known.words()) != (first, count)
        };
        around.filter(overlaps).map(|(number, _)| *number).collect()
    }

    fn newer(&self) -> Vec<u16> {
        let words = self.words.iter().filter(|(_, known)| known.is_newer);
        words.map(|(number, _)| *number).collect()
    }
}

impl Emitter<'_> {
    /// A word.
    pub(super) fn word(&mut self, number: u16) -> Value {
        self.make_room(number, 1);
        if let Some(known) = self.registers.words.get(&number) {
            return known.value;
        }
        let value = self.load_row("words", number);
        self.registers.words.insert(number, Known { value, is_newer: false });
        value
    }

    /// A register of two words.
    pub(super) fn pair(&mut self, number: u16) -> Value {
        self.make_room(number, 2);
        if let Some(known) = self.registers.words.get(&number) {
            return known.value;
        }
        let low = self.load_row("words", number);
        let high = self.load_row("words", number + 1);
        let value = self.joined(low, high);
        self.registers.words.insert(number, Known { value, is_newer: false });
        value
    }

    /// Two words as one value. One shuffle is cheaper than extensions and shifts.
    pub(super) fn joined(&mut self, low: Value, high: Value) -> Value {
        let lanes: Vec<String> =
            (0..LANES).map(|lane| format!("i32 {lane}, i32 {}", lane + LANES)).collect();
        let words = self.scalar(format_args!(
            "shufflevector <32 x i32> {low}, <32 x i32> {high}, <64 x i32> <{}>",
            lanes.join(", ")
        ));
        self.value(64, format_args!("bitcast <64 x i32> {words} to <32 x i64>"))
    }

    /// A predicate.
    pub(super) fn predicate(&mut self, number: u16) -> Value {
        if let Some(known) = self.registers.predicates.get(&number) {
            return known.value;
        }
        let row = self.load_row("predicates", number);
        let value = self.value(1, format_args!("trunc <32 x i32> {row} to <32 x i1>"));
        self.registers.predicates.insert(number, Known { value, is_newer: false });
        value
    }

    /// Writes a register of one or two words in the lanes that execute the instruction.
    pub(super) fn set_words(&mut self, number: u16, value: Value) {
        let is_pair = value.bits() == 64;
        let value =
            self.selected(
                value,
                |emitter| {
                    if is_pair { emitter.pair(number) } else { emitter.word(number) }
                },
            );
        self.make_room(number, if is_pair { 2 } else { 1 });
        self.registers.words.insert(number, Known { value, is_newer: true });
    }

    /// Writes a predicate in the lanes that execute the instruction.
    pub(super) fn set_predicate(&mut self, number: u16, value: Value) {
        let value = self.selected(value, |emitter| emitter.predicate(number));
        self.registers.predicates.insert(number, Known { value, is_newer: true });
    }

    /// A new value in the lanes of the guard, and the old one in others.
    fn selected(&mut self, value: Value, old: impl FnOnce(&mut Self) -> Value) -> Value {
        let Some(guard) = self.guard else { return value };
        let (old, bits) = (old(self), value.bits());
        let kind = vector(bits);
        self.value(bits, format_args!("select <32 x i1> {guard}, {kind} {value}, {kind} {old}"))
    }

    /// Writes registers to memory that overlap another one, and forgets them.
    fn make_room(&mut self, first: u16, count: u16) {
        for number in self.registers.overlapping(first, count) {
            self.flush_words(number);
            self.registers.words.remove(&number);
        }
    }

    /// Writes all newer values to memory.
    pub(super) fn flush(&mut self) {
        for number in self.registers.newer() {
            self.flush_words(number);
        }
        let predicates: Vec<u16> = self.registers.predicates.keys().copied().collect();
        for number in predicates {
            let Some(known) = self.registers.predicates.get_mut(&number) else { continue };
            if !std::mem::take(&mut known.is_newer) {
                continue;
            }
            let value = known.value;
            let row = self.value(32, format_args!("zext <32 x i1> {value} to <32 x i32>"));
            self.store_row("predicates", number, row);
        }
    }

    fn flush_words(&mut self, number: u16) {
        let Some(known) = self.registers.words.get_mut(&number) else { return };
        if !std::mem::take(&mut known.is_newer) {
            return;
        }
        let value = known.value;
        if value.bits() == 32 {
            return self.store_row("words", number, value);
        }
        let (low, high) = self.split(value);
        self.store_row("words", number, low);
        self.store_row("words", number + 1, high);
    }

    /// The two words of a value.
    pub(super) fn split(&mut self, value: Value) -> (Value, Value) {
        let words = self.scalar(format_args!("bitcast <32 x i64> {value} to <64 x i32>"));
        let mut half = |first: usize| {
            let lanes: Vec<String> =
                (0..LANES).map(|lane| format!("i32 {}", 2 * lane + first)).collect();
            self.value(
                32,
                format_args!(
                    "shufflevector <64 x i32> {words}, <64 x i32> poison, <32 x i32> <{}>",
                    lanes.join(", ")
                ),
            )
        };
        (half(0), half(1))
    }

    /// Loads a row of registers, or of the local memory.
    pub(super) fn load_row(&mut self, base: &str, number: u16) -> Value {
        let pointer = self.row_pointer(base, number.into());
        self.value(32, format_args!("load <32 x i32>, ptr {pointer}, align 64"))
    }

    /// Stores a row in the active lanes.
    pub(super) fn store_row(&mut self, base: &str, number: u16, value: Value) {
        self.store_row_in(base, number.into(), value, Value::Active);
    }

    /// Stores a row in some lanes.
    pub(super) fn store_row_in(&mut self, base: &str, number: usize, value: Value, mask: Value) {
        let pointer = self.row_pointer(base, number);
        let old = self.value(32, format_args!("load <32 x i32>, ptr {pointer}, align 64"));
        let value = self.value(
            32,
            format_args!("select <32 x i1> {mask}, <32 x i32> {value}, <32 x i32> {old}"),
        );
        self.line(format_args!("store <32 x i32> {value}, ptr {pointer}, align 64"));
    }

    /// Host address of a row.
    pub(super) fn row_pointer(&mut self, base: &str, number: usize) -> String {
        let at = number * size_of::<Word>();
        self.scalar(format_args!("getelementptr i8, ptr %{base}, i64 {at}"))
    }
}
