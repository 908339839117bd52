//! Accesses to raw buffers. The interpreter, which documents buffer resources, handles all other
//! buffers.

use super::group::{Bounds, Group, Span, Window};
use crate::compile::access::{Access, Direction};
use crate::compile::emit::emitter::{Emitter, NanCheck};
use crate::compile::value::Value;
use crate::instruction::{Op, Word};
use crate::memory::WindowAccess;
use crate::wave::ScalarIndex;
use flipwave_isa::Generation;

/// Decoded buffer resource. All values are the same for all lanes.
struct Described {
    /// Device address of the first byte, including the instruction's scalar offset.
    base: Value,
    /// Number of bytes from there.
    length: Value,
    /// `true` for a raw buffer.
    is_known: Value,
}

/// Flag that adds the lane's number to the record number.
pub(super) const ADD_THREAD: u32 = 1 << 23;
/// Bounds are checked by byte (from gfx10 on).
const BY_BYTE: u32 = 3 << 28;

/// Words of a buffer resource.
pub(super) struct Resource {
    /// 64-bit address of the first byte, including the scalar offset.
    pub base: Value,
    /// Second word; its upper half is not part of the address.
    pub high: Value,
    pub records: Value,
    pub flags: Value,
    /// The scalar offset.
    pub offset: Value,
}

impl Emitter<'_> {
    /// Computes the group of an access.
    pub(super) fn group_in_buffer(&mut self, op: &Op, access: Access) -> Group {
        let bytes = access.element.bytes() as u32;
        let Described { base, length: end, is_known } = self.describe(op);
        let low = self.offsets_in_buffer(op);
        let exists = self.existing_in_buffer(low, end, is_known, bytes);
        let kind = match access.direction {
            Direction::Load => WindowAccess::Read,
            Direction::Store => WindowAccess::Write,
        };
        let Window { bytes: at, length, add, missing, touched } =
            self.window(kind, bytes, Some(base));
        let missing = missing.map(|missing| {
            let unknown = self.value(format_args!("xor i1 {is_known}, true"));
            let unknown = self.value(format_args!("zext i1 {unknown} to i64"));
            self.value(format_args!("or i64 {missing}, {unknown}"))
        });
        let (first, consecutive, equal) = self.pattern(low, None, bytes);
        let start = self.loop_value(format_args!("add i64 {first}, {add}"));
        let span = Span { first: 0, end: bytes.into() };
        let reach = bytes * (self.shape.lanes() - 1);
        let [consecutive, equal] = [(reach, consecutive), (0, equal)].map(|(reach, flag)| {
            let last = self.loop_value(format_args!("add i64 {first}, {}", reach + bytes));
            let exist = self.loop_value(format_args!("icmp ule i64 {last}, {end}"));
            let flag = self.loop_value(format_args!("and i1 {flag}, {exist}"));
            self.all_in_window(start, span, Bounds { length, missing }, reach, flag)
        });
        Group {
            space: access.space,
            direction: access.direction,
            low,
            high: None,
            base: None,
            step: bytes,
            bytes: at,
            length,
            add,
            missing,
            touched,
            exists: Some(exists),
            start,
            consecutive,
            equal,
        }
    }

    /// Loads the buffer resource of an instruction.
    pub(super) fn resource(&mut self, op: &Op) -> Resource {
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let [low, high, records, flags] =
            [0, 1, 2, 3].map(|word| self.word(Word::Scalar(ScalarIndex(first + word))));
        let offset = self.word(op.sources[3].words[0]);
        let [low, far, more] =
            [low, high, offset].map(|word| self.value(format_args!("zext i32 {word} to i64")));
        let far = self.value(format_args!("and i64 {far}, 65535"));
        let far = self.value(format_args!("shl i64 {far}, 32"));
        let base = self.value(format_args!("or i64 {low}, {far}"));
        let base = self.value(format_args!("add i64 {base}, {more}"));
        Resource { base, high, records, flags, offset }
    }

    fn describe(&mut self, op: &Op) -> Described {
        let Resource { base, high, records, flags, offset } = self.resource(op);
        let generation = self.machine.generation;
        let is_older = generation < Generation::Gfx10;
        let records =
            self.value(format_args!("call i32 @llvm.usub.sat.i32(i32 {records}, i32 {offset})"));
        let length = self.value(format_args!("zext i32 {records} to i64"));
        let swizzle = if generation >= Generation::Gfx11 { 3 << 30 } else { 1u32 << 31 };
        let swizzle = self.value(format_args!("and i32 {high}, {}", swizzle as i32));
        let is_plain = self.value(format_args!("icmp eq i32 {swizzle}, 0"));
        let (flag_mask, raw_flags) =
            if is_older { (ADD_THREAD, 0) } else { (ADD_THREAD | BY_BYTE, BY_BYTE) };
        let masked = self.value(format_args!("and i32 {flags}, {flag_mask}"));
        let is_raw = self.value(format_args!("icmp eq i32 {masked}, {raw_flags}"));
        let is_known = self.value(format_args!("and i1 {is_plain}, {is_raw}"));
        Described { base, length, is_known }
    }

    /// Offsets of the lanes from the first byte.
    fn offsets_in_buffer(&mut self, op: &Op) -> Value {
        let w = self.shape.named("W");
        let immediate = Value::Splat(op.immediate as u32);
        match op.sources[0].words[0] {
            Word::Row(row) => {
                let row = self.lane_word(Word::Row(row), NanCheck::Done);
                self.loop_value(format_args!("add {w} {row}, {immediate}"))
            }
            _ => self.loop_value(format_args!("or {w} {immediate}, zeroinitializer")),
        }
    }

    /// Lanes whose elements are in bounds. Lanes with only some dwords of the element in bounds
    /// bail out. For resources that are not raw buffers the access itself bails out.
    fn existing_in_buffer(&mut self, low: Value, end: Value, is_known: Value, bytes: u32) -> Value {
        let m = self.shape.named("M");
        let exists = self.has_bytes(low, end, bytes);
        if bytes > 4 {
            let begins = self.has_bytes(low, end, 4);
            let is_cut = self.loop_value(format_args!("xor {m} {begins}, {exists}"));
            self.bail_out_in(is_cut);
        }
        self.loop_value(format_args!("select i1 {is_known}, {m} {exists}, {m} splat (i1 true)"))
    }

    /// Lanes that have `bytes` bytes from their offset on.
    fn has_bytes(&mut self, low: Value, end: Value, bytes: u32) -> Value {
        let [w, m] = self.types(["W", "M"]);
        let last = self.value(format_args!("sub i64 {end}, {bytes}"));
        let is_there = self.value(format_args!("icmp sge i64 {last}, 0"));
        let last = self.value(format_args!("trunc i64 {last} to i32"));
        let last = self.splat(last);
        let are_in = self.loop_value(format_args!("icmp ule {w} {low}, {last}"));
        self.loop_value(format_args!("select i1 {is_there}, {m} {are_in}, {m} zeroinitializer"))
    }
}
