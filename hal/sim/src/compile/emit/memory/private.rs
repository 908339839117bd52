//! Accesses to private memory. Dwords of a lane lie as far apart as a wave has lanes, so that the words of
//! lanes that have the same offset are adjacent. Other accesses are left to the interpreter, and so are
//! those elsewhere than where the last one was: waves take turns.

use super::buffer::{ADD_THREAD, Resource};
use crate::compile::access::{Direction, PrivateAccess};
use crate::compile::emit::Emitter;
use crate::compile::frame::offset;
use crate::compile::value::Value;
use crate::compile::workspace::{PRIVATE_BLOCK, PRIVATE_WINDOWS};
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Run, Word};
use crate::wave::{RowIndex, ScalarIndex};
use flipwave_isa::Generation;
use std::fmt::Write;

/// Where the first lane's word is, and whether that is so of all lanes.
struct Private {
    address: Value,
    is_common: Value,
}

impl Emitter<'_> {
    /// Writes an access to private memory.
    pub(in crate::compile::emit) fn private(
        &mut self,
        index: usize,
        op: &Op,
        access: PrivateAccess,
    ) {
        // What it touches is noted in the order of what happens.
        if self.how.notes {
            return self.call(index);
        }
        self.close();
        let Run::VectorMemory(VectorAccess { space, .. }) = op.run else { return };
        let is_buffer = matches!(space, Space::Buffer { .. });
        let private = if is_buffer { self.in_buffer(op, access) } else { self.in_scratch(op) };
        self.store_scalars();
        let number = self.number();
        let at = match access.direction {
            Direction::Load => offset::PRIVATE_LOAD,
            Direction::Store => offset::PRIVATE_STORE,
        };
        let windows =
            self.value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::PRIVATE));
        let windows = self.value(format_args!("load ptr, ptr {windows}"));
        let address = private.address;
        let block = self.value(format_args!("lshr i64 {address}, {PRIVATE_BLOCK}"));
        let slot = self.value(format_args!("and i64 {block}, {}", PRIVATE_WINDOWS - 1));
        let slot = self.value(format_args!("mul i64 {slot}, {}", offset::WINDOW_SIZE));
        let window = self.value(format_args!("getelementptr i8, ptr {windows}, i64 {slot}"));
        let mut field = |of: usize, kind: &str| {
            let place = self.value(format_args!("getelementptr i8, ptr {window}, i64 {}", at + of));
            self.value(format_args!("load {kind}, ptr {place}"))
        };
        let first = field(offset::WINDOW_BASE, "i64");
        let length = field(offset::WINDOW_LENGTH, "i64");
        let bytes = field(offset::WINDOW_BYTES, "ptr");
        let missing = field(offset::WINDOW_MISSING, "i64");
        let start = self.value(format_args!("sub i64 {address}, {first}"));
        let end = self.value(format_args!("add i64 {start}, {}", self.bytes_of(access)));
        let is_there = self.value(format_args!("icmp eq i64 {missing}, 0"));
        let begins_in = self.value(format_args!("icmp ule i64 {start}, {length}"));
        let ends_in = self.value(format_args!("icmp ule i64 {end}, {length}"));
        let is_in = self.all([private.is_common, is_there, begins_in, ends_in]);
        let _ = write!(
            self.text,
            "  br i1 {is_in}, label %private{number}, label %elsewhere{number}\n\
             elsewhere{number}:\n"
        );
        let lacks = self.value(format_args!("zext i1 {} to i64", private.is_common));
        let place =
            self.value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::LACKS_PRIVATE));
        let _ = writeln!(self.text, "  store i64 {lacks}, ptr {place}");
        self.call_interpreter(index);
        let _ = write!(self.text, "  br label %accessed{number}\nprivate{number}:\n");
        let at = self.value(format_args!("getelementptr i8, ptr {bytes}, i64 {start}"));
        for word in 0..access.words.into() {
            let first = match access.direction {
                Direction::Load => op.destination,
                Direction::Store => op.sources[1].row().unwrap_or(op.destination),
            };
            self.move_row(access.direction, (at, word), first.plus(word));
        }
        let _ = write!(self.text, "  br label %accessed{number}\naccessed{number}:\n");
        self.label = format!("accessed{number}");
    }

    /// Bytes from the first lane's first word to the last lane's last one.
    fn bytes_of(&self, access: PrivateAccess) -> u64 {
        u64::from(access.words) * u64::from(self.machine.lanes) * 4
    }

    /// An offset in the lanes' private memory.
    fn in_scratch(&mut self, op: &Op) -> Private {
        let lanes = u32::from(self.machine.lanes);
        let base = match op.sources[2].words[0] {
            Word::Constant(_) => Value::Word(0),
            word => self.word(word),
        };
        let mut offset = self.value(format_args!("add i32 {base}, {}", op.immediate as i32));
        let mut is_common = Value::Bit(true);
        if let Word::Row(row) = op.sources[0].words[0] {
            let (first, is_same) = self.common(row);
            offset = self.value(format_args!("add i32 {offset}, {first}"));
            is_common = is_same;
        }
        let rest = self.value(format_args!("and i32 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i32 {rest}, 0"));
        let most = (u32::MAX / (2 * lanes)) as i32;
        let is_small = self.value(format_args!("icmp ult i32 {offset}, {most}"));
        let is_common = self.all([is_common, is_aligned, is_small]);
        let first = self.machine.flat_scratch;
        let base = self.wide([first, ScalarIndex(first.0 + 1)].map(Word::Scalar));
        let offset = self.value(format_args!("zext i32 {offset} to i64"));
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        Private { address: self.value(format_args!("add i64 {base}, {within}")), is_common }
    }

    /// An offset in the buffer that private memory is described as.
    fn in_buffer(&mut self, op: &Op, access: PrivateAccess) -> Private {
        let Resource { base, high, records, flags, offset: added } = self.resource(op);
        let mut offset = Value::Wide(u64::from(op.immediate as u32));
        let mut is_common = Value::Bit(true);
        if let Word::Row(row) = op.sources[0].words[0] {
            let (own, is_same) = self.common(row);
            let own = self.value(format_args!("zext i32 {own} to i64"));
            offset = self.value(format_args!("add i64 {offset}, {own}"));
            is_common = is_same;
        }
        let rest = self.value(format_args!("and i64 {offset}, {}", !0xffff_fffc_i64));
        let is_aligned = self.value(format_args!("icmp eq i64 {rest}, 0"));
        // Words of records side by side, as many as there are lanes, each the record of its lane.
        let is_swizzled = self.value(format_args!("icmp slt i32 {high}, 0"));
        let index_stride = self.machine.lanes.trailing_zeros() - 3;
        let own = self.value(format_args!("and i32 {flags}, {}", ADD_THREAD | 3 << 21));
        let is_by_lane =
            self.value(format_args!("icmp eq i32 {own}, {}", ADD_THREAD | index_stride << 21));
        let lanes = u64::from(self.machine.lanes);
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        let [records, added] =
            [records, added].map(|word| self.value(format_args!("zext i32 {word} to i64")));
        let exists = if self.machine.generation >= Generation::Gfx10 {
            // What is out of range is chosen; mostly it is nothing.
            let range = self.value(format_args!("and i32 {flags}, {}", 3 << 28));
            let is_by_none = self.value(format_args!("icmp eq i32 {range}, {}", 2 << 28));
            let are_records = self.value(format_args!("icmp ne i64 {records}, 0"));
            self.all([is_by_none, are_records])
        } else {
            let end = self.value(format_args!("add i64 {within}, {}", self.bytes_of(access)));
            let end = self.value(format_args!("add i64 {end}, {added}"));
            self.value(format_args!("icmp ule i64 {end}, {records}"))
        };
        let is_common = self.all([is_common, is_aligned, is_swizzled, is_by_lane, exists]);
        Private { address: self.value(format_args!("add i64 {base}, {within}")), is_common }
    }

    /// The word of the first active lane, and whether all active lanes have it.
    fn common(&mut self, row: RowIndex) -> (Value, Value) {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        let lane = self.value(format_args!("call i64 @llvm.cttz.i64(i64 %exec, i1 false)"));
        let lane = self.value(format_args!("and i64 {lane}, 63"));
        let place = self.place_in_row(row, 0);
        let place = self.value(format_args!("getelementptr i32, ptr {place}, i64 {lane}"));
        let first = self.value(format_args!("load i32, ptr {place}, align 4"));
        let one = self.value(format_args!("insertelement {w} poison, i32 {first}, i64 0"));
        let all = self.value(format_args!(
            "shufflevector {w} {one}, {w} poison, <{count} x i32> zeroinitializer"
        ));
        let mut others = None;
        for part in self.parts() {
            let words = self.part_of_row(row, part);
            let differs = self.value(format_args!("icmp ne {w} {words}, {all}"));
            let active = self.active(part);
            let differs = self.value(format_args!("and {m} {differs}, {active}"));
            others = Some(match others {
                None => differs,
                Some(others) => self.value(format_args!("or {m} {others}, {differs}")),
            });
        }
        let others = others.map_or(Value::Bit(true), |others| {
            let bits = self.value(format_args!("bitcast {m} {others} to i{count}"));
            self.value(format_args!("icmp eq i{count} {bits}, 0"))
        });
        (first, others)
    }

    /// Moves the active lanes of a row from or to the host's address, so many words after it.
    fn move_row(&mut self, direction: Direction, (at, word): (Value, u16), row: RowIndex) {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        for part in self.parts() {
            let at = self.place_after(at, word, part);
            let (own, active) = (self.part_of_row(row, part), self.active(part));
            let _ = match direction {
                Direction::Load => {
                    let place = self.place_in_row(row, part);
                    let loaded = self.value(format_args!("load {w}, ptr {at}, align 4"));
                    let new =
                        self.value(format_args!("select {m} {active}, {w} {loaded}, {w} {own}"));
                    writeln!(self.text, "  store {w} {new}, ptr {place}, align {}", count * 4)
                }
                Direction::Store => writeln!(
                    self.text,
                    "  call void @llvm.masked.store.v{count}i32.p0({w} {own}, ptr align 4 {at}, \
                     {m} {active})"
                ),
            };
        }
    }

    /// Where the words of a part's lanes are.
    fn place_after(&mut self, at: Value, word: u16, part: u32) -> Value {
        let word = u32::from(word) * u32::from(self.machine.lanes) * 4;
        let after = word + part * self.shape.lanes() * 4;
        self.value(format_args!("getelementptr i8, ptr {at}, i64 {after}"))
    }

    fn all<const COUNT: usize>(&mut self, conditions: [Value; COUNT]) -> Value {
        let [first, rest @ ..] = &conditions[..] else { return Value::Bit(true) };
        rest.iter().fold(*first, |all, own| self.value(format_args!("and i1 {all}, {own}")))
    }
}
