//! Private memory, where consecutive dwords of a lane lie as many dwords apart as the wave has lanes, so
//! that what all lanes have at one offset is a row.
//!
//! Where the offset is the same in all lanes, what an access needs is looked at once, before the
//! segment's loop, which only copies rows. Where each lane has its own, addresses are offsets from one
//! base, and the rest is as with other memory.

use super::{Emitter, Group, Span, Window};
use crate::compile::access::{Access, Direction, Place, Private, PrivateBase};
use crate::compile::value::Value;
use crate::instruction::{Element, Op, Word};
use crate::wave::ScalarIndex;
use flipwave_isa::Generation;

/// What all lanes of an access have in common.
#[derive(Clone, Copy)]
pub(in crate::compile::emit) struct PrivateScalars {
    /// The address of lane 0's byte at offset zero.
    base: Value,
    /// What is added to each lane's offset, besides the immediate, if each lane has one.
    offset: Value,
    /// The first byte from the base on that does not exist, of 64 bits.
    end: Value,
    /// Whether it is none that is compiled.
    fails: Value,
    /// What the base is made of, unless rows of one are rows of the other.
    pub of: [Value; 3],
}

impl Emitter<'_> {
    /// What all lanes have in common, as scalar code.
    pub(in crate::compile::emit) fn private_scalars(
        &mut self,
        op: &Op,
        private: Private,
    ) -> PrivateScalars {
        let scalars = match private.base {
            PrivateBase::FlatScratch => self.of_flat_scratch(op, private),
            PrivateBase::Resource => self.of_resource(op),
        };
        // Of private memory it is noted too whether it is read before it is written, by the interpreter.
        let fails = if self.notes { Value::Bit(true) } else { scalars.fails };
        PrivateScalars { fails, ..scalars }
    }

    fn of_flat_scratch(&mut self, op: &Op, private: Private) -> PrivateScalars {
        let low = self.machine.flat_scratch;
        let words = [0, 1].map(|word| Word::Scalar(ScalarIndex(low.0 + word)));
        let of = [self.word(words[0]), self.word(words[1]), Value::Word(0)];
        let base = self.wide(words);
        let offset = match op.sources[2].words[0] {
            Word::Constant(_) => Value::Word(0),
            word => self.word(word),
        };
        let end = Value::Wide(u32::MAX.into());
        if private.lanes.is_some() {
            return PrivateScalars { base, offset, end, fails: Value::Bit(false), of };
        }
        // Rows, if the sum of the offsets is one of a row that a lane can have.
        let byte = self.value(format_args!("and i32 {offset}, 3"));
        let is_odd = self.value(format_args!("icmp ne i32 {byte}, 0"));
        let wide = self.value(format_args!("zext i32 {offset} to i64"));
        let sum = self.value(format_args!("add i64 {wide}, {}", op.immediate));
        let limit = self.most_offset();
        let is_far = self.value(format_args!("icmp uge i64 {sum}, {limit}"));
        let fails = self.value(format_args!("or i1 {is_odd}, {is_far}"));
        let rows = self.value(format_args!("shl i64 {wide}, {}", self.row_shift()));
        let base = self.value(format_args!("add i64 {base}, {rows}"));
        PrivateScalars { base, offset, end, fails, of }
    }

    /// See [`crate::execute::buffer::Buffer`]: a swizzled buffer with the thread added.
    fn of_resource(&mut self, op: &Op) -> PrivateScalars {
        const ADD_THREAD: u32 = 1 << 23;
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let [low, high, records, flags] =
            [0, 1, 2, 3].map(|word| self.scalar_register(ScalarIndex(first + word)));
        let offset = self.word(op.sources[3].words[0]);
        let of = [low, high, offset];
        let wide_offset = self.value(format_args!("zext i32 {offset} to i64"));
        let low = self.value(format_args!("zext i32 {low} to i64"));
        let upper = self.value(format_args!("and i32 {high}, 65535"));
        let upper = self.value(format_args!("zext i32 {upper} to i64"));
        let upper = self.value(format_args!("shl i64 {upper}, 32"));
        let base = self.value(format_args!("or i64 {low}, {upper}"));
        let base = self.value(format_args!("add i64 {base}, {wide_offset}"));
        let is_linear = self.value(format_args!("icmp sgt i32 {high}, -1"));
        // The index stride is as many as the wave has lanes; on RDNA the choice of the range check is that
        // of a buffer that has all bytes or, without records, none.
        let index_stride = (self.row_shift() - 3) << 21;
        let is_rdna = self.machine.generation >= Generation::Gfx10;
        let (mask, wanted) = match is_rdna {
            false => (ADD_THREAD | 3 << 21, ADD_THREAD | index_stride),
            true => (ADD_THREAD | 3 << 21 | 3 << 28, ADD_THREAD | index_stride | 2 << 28),
        };
        let own = self.value(format_args!("and i32 {flags}, {}", mask as i32));
        let is_other = self.value(format_args!("icmp ne i32 {own}, {}", wanted as i32));
        let mut fails = self.value(format_args!("or i1 {is_linear}, {is_other}"));
        let end = match is_rdna {
            false => {
                let left = self.value(format_args!(
                    "call i32 @llvm.usub.sat.i32(i32 {records}, i32 {offset})"
                ));
                self.value(format_args!("zext i32 {left} to i64"))
            }
            true => {
                let is_empty = self.value(format_args!("icmp eq i32 {records}, 0"));
                fails = self.value(format_args!("or i1 {fails}, {is_empty}"));
                Value::Wide(u32::MAX.into())
            }
        };
        PrivateScalars { base, offset: Value::Word(0), end, fails, of }
    }

    /// Bits by which the offset of a dword is shifted to be that of its row.
    fn row_shift(&self) -> u32 {
        u32::from(self.machine.lanes).trailing_zeros()
    }

    /// Offsets that are less are those of rows at offsets of 32 bits.
    fn most_offset(&self) -> u32 {
        u32::MAX / (2 * u32::from(self.machine.lanes))
    }

    /// Writes an access to rows.
    pub(in crate::compile::emit) fn private_rows(
        &mut self,
        op: &Op,
        access: Access,
        scalars: PrivateScalars,
    ) {
        let count = usize::from(access.elements);
        let offsets = access.offsets[..count].iter().map(|offset| *offset as i64);
        let (first, last) = (access.offsets[0] as i64, access.offsets[count - 1] as i64);
        let bytes_of_row = i64::from(self.machine.lanes) * 4;
        let Window { bytes, length, add, missing, touched: _ } =
            self.window(access, Some(scalars.base));
        let start = self.value(format_args!("add i64 {add}, {first}"));
        let end = self.value(format_args!("add i64 {start}, {}", last - first + bytes_of_row));
        let begins_out = self.value(format_args!("icmp ugt i64 {start}, {length}"));
        let ends_out = self.value(format_args!("icmp ugt i64 {end}, {length}"));
        let reach = last + bytes_of_row;
        let is_beyond = self.value(format_args!("icmp ugt i64 {reach}, {}", scalars.end));
        let mut fails = scalars.fails;
        for other in [begins_out, ends_out, is_beyond] {
            fails = self.value(format_args!("or i1 {fails}, {other}"));
        }
        if let Some(missing) = missing {
            let gone = self.value(format_args!("icmp ne i64 {missing}, 0"));
            fails = self.value(format_args!("or i1 {fails}, {gone}"));
        }
        let at = self.value(format_args!("getelementptr i8, ptr {bytes}, i64 {start}"));
        if let Some(open) = &mut self.open {
            open.guards.push(fails);
            open.rows_of = Some(scalars.of);
        }
        let [w, m] = self.types(["W", "M"]);
        let lanes = self.shape.lanes();
        for (word, offset) in (0..).zip(offsets) {
            let row =
                self.lanes(format_args!("getelementptr i8, ptr {at}, i64 {}", offset - first));
            let place = self.lanes(format_args!("getelementptr i8, ptr {row}, i64 %byte"));
            if access.direction == Direction::Load {
                let value = self.lanes(format_args!("load {w}, ptr {place}, align 1"));
                self.write_row(op.destination.plus(word), value, false);
            } else if let Some(data) = op.sources[1].row() {
                let value = self.lane_word(Word::Row(data.plus(word)), false);
                self.body(format_args!(
                    "  call void @llvm.masked.store.v{lanes}i32.p0({w} {value}, ptr align 1 {place}, \
                     {m} %active)"
                ));
            }
        }
    }

    /// The group of an access of which each lane has its own offset.
    pub(super) fn private_group(
        &mut self,
        op: &Op,
        access: Access,
        scalars: PrivateScalars,
    ) -> Group {
        let [w, m] = self.types(["W", "M"]);
        let shift = match access.place {
            Place::Private(Private { lanes: Some(shift), .. }) => shift,
            _ => 0,
        };
        let own = self.lane_word(op.sources[0].words[0], false);
        let own = self.lanes(format_args!("shl {w} {own}, {}", Value::Splat(shift.into())));
        let added = self.value(format_args!("add i32 {}, {}", scalars.offset, op.immediate as i32));
        let added = self.splat(added);
        let offset = self.lanes(format_args!("add {w} {own}, {added}"));
        let byte = self.lanes(format_args!("and {w} {offset}, {}", Value::Splat(3)));
        let last = match access.element {
            Element::Words(_) => 0,
            part => 4 - part.bytes() as u32,
        };
        let is_odd = self.lanes(format_args!("icmp ugt {w} {byte}, {}", Value::Splat(last)));
        let most = Value::Splat(self.most_offset());
        let is_far = self.lanes(format_args!("icmp uge {w} {offset}, {most}"));
        let dword = self.lanes(format_args!("sub {w} {offset}, {byte}"));
        let row = self.lanes(format_args!("shl {w} {dword}, {}", Value::Splat(self.row_shift())));
        let lanes = self.lane_offsets();
        let low = self.lanes(format_args!("add {w} {row}, {lanes}"));
        let low = self.lanes(format_args!("add {w} {low}, {byte}"));
        // What exists of a buffer.
        let step = access.element.bytes() as u32;
        let reach = access.offsets[usize::from(access.elements) - 1] as u32 + step - 1;
        let end = self.value(format_args!("trunc i64 {} to i32", scalars.end));
        let end = self.splat(end);
        let highest = self.lanes(format_args!("add {w} {low}, {}", Value::Splat(reach)));
        let is_beyond = self.lanes(format_args!("icmp uge {w} {highest}, {end}"));
        let bad = self.lanes(format_args!("or {m} {is_odd}, {is_far}"));
        let bad = self.lanes(format_args!("or {m} {bad}, {is_beyond}"));
        self.doubt(bad);

        let Window { bytes, length, add, missing, touched: _ } =
            self.window(access, Some(scalars.base));
        let fails = self.value(format_args!("zext i1 {} to i64", scalars.fails));
        let missing = missing.map(|own| self.value(format_args!("or i64 {own}, {fails}")));
        let group = Group {
            place: access.place,
            direction: access.direction,
            low,
            high: None,
            base: None,
            step,
            bytes,
            length,
            add,
            missing,
            touched: None,
            start: add,
            consecutive: Value::Bit(false),
            equal: Value::Bit(false),
        };
        self.found(group, Span { first: 0, end: i64::from(reach) + 1 })
    }

    /// Four bytes for each lane before.
    fn lane_offsets(&mut self) -> Value {
        let (w, lanes) = (self.shape.named("W"), self.shape.lanes());
        let start = self.lanes(format_args!("or i64 0, %byte"));
        let start = self.lanes(format_args!("trunc i64 {start} to i32"));
        let start = self.splat(start);
        let steps: Vec<String> = (0..lanes).map(|lane| format!("i32 {}", 4 * lane)).collect();
        self.lanes(format_args!("add {w} {start}, <{}>", steps.join(", ")))
    }
}
