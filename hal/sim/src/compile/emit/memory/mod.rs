//! Memory accesses. Vector accesses are part of a lane loop: each iteration accesses memory for its
//! lanes.
//!
//! Most iterations access consecutive words, or one word in all lanes. The address pattern is
//! computed once for all accesses whose addresses differ by a constant. All lanes must hit the
//! window that was found when the interpreter last executed the access; otherwise the loop bails
//! out.

mod batch;
mod buffer;
pub(super) mod group;
mod load;
mod private;
mod scalar;
mod store;
mod touch;

use super::emitter::{Emitter, NanCheck, WORDS};
use crate::compile::access::{Access, AccessSpace, Direction};
use crate::compile::compiled::Site;
use crate::compile::frame::offset;
use crate::compile::value::Value;
use crate::instruction::{Op, Word};
use crate::memory::WindowAccess;
use flipwave_isa::RegisterRange;
use group::{Bounds, Group, Span, Touched, Window};
use std::fmt::Write;

impl Emitter<'_> {
    /// Emits an access.
    pub(super) fn access(&mut self, op: &Op, access: Access) {
        let step = access.element.bytes() as u32;
        // Computed once, since the first element may replace the address.
        let mut group = self.group(op, access, step);
        let is_batched = self.is_batched(op, access, &group);
        for (element, offset) in (0..access.elements).zip(access.offsets) {
            if element > 0 && access.direction == Direction::Store {
                // The first elements of all lanes are written before any second element.
                self.index += 1;
                self.close_loop();
                self.index -= 1;
                self.open_loop_for(self.index, &[(op, &WORDS)]);
                self.record_access(access);
                if let Some(lane_loop) = &mut self.lane_loop {
                    lane_loop.is_second_half = true;
                }
                group = self.group(op, access, step);
            }
            match access.direction {
                Direction::Load => {
                    let words = u16::from(access.element.words());
                    let first = op.destination.plus(u16::from(element) * words);
                    if is_batched {
                        self.add_to_batch(group, offset, access.element, first);
                    } else {
                        self.load(group, offset, access.element, first);
                    }
                }
                Direction::Store => {
                    if let Some(data) = op.sources[1 + usize::from(element)].row() {
                        self.store(data, group, offset, access.element);
                    }
                }
            }
        }
    }

    /// Closes the current loop if it cannot contain an access: stores must be visible to loads of
    /// other lanes, a later store overwrites an earlier one, and nothing is stored after an access
    /// that faults in any lane. Footprint variants also do not record addresses that the loop may
    /// have computed wrongly.
    pub(super) fn close_loop_before(&mut self, op: &Op, access: Access) {
        let stores = |access: &Access| access.direction == Direction::Store;
        let collides = |earlier: &Access| {
            (stores(earlier) && stores(&access))
                || (earlier.space == AccessSpace::Global && stores(&access))
                || (earlier.space == access.space && (stores(earlier) || stores(&access)))
        };
        let Some(lane_loop) = &self.lane_loop else { return };
        let is_written = |word: &Word| match word {
            Word::Row(row) => lane_loop.rows.get(row).is_some_and(|lanes| lanes.is_written),
            _ => false,
        };
        let may_be_wrong = !lane_loop.bailout_lanes.is_empty() || !lane_loop.accesses.is_empty();
        let records = self.variant.footprint && access.space == AccessSpace::Global;
        if lane_loop.accesses.iter().any(collides)
            || records && may_be_wrong && op.sources[0].words.iter().any(is_written)
        {
            self.close_loop();
        }
    }

    /// Adds an access to the current loop, and remembers the rows written before the first access
    /// that may fault.
    pub(super) fn record_access(&mut self, access: Access) {
        let Some(lane_loop) = &mut self.lane_loop else { return };
        if access.space == AccessSpace::Global && !lane_loop.may_fault() {
            let written = lane_loop.rows.iter().filter(|(_, lanes)| lanes.is_written);
            lane_loop.written_first = written.map(|(row, _)| *row).collect();
        }
        lane_loop.accesses.push(access);
    }

    /// Finds or computes the group of an access.
    fn group(&mut self, op: &Op, access: Access, step: u32) -> Group {
        if access.is_in_buffer {
            return self.group_in_buffer(op, access);
        }
        let words = op.sources[0].words;
        let low = self.lane_word(words[0], NanCheck::Done);
        let has_base = !matches!(op.sources[2].words[0], Word::Constant(_));
        let is_global = access.space == AccessSpace::Global;
        let high = (is_global && !has_base).then(|| self.lane_word(words[1], NanCheck::Done));
        let base = (is_global && has_base).then(|| op.sources[2].words.map(|word| self.word(word)));
        let known = self.lane_loop.iter().flat_map(|lane_loop| &lane_loop.groups).find(|group| {
            group.exists.is_none()
                && (group.space, group.direction, group.low, group.high, group.base, group.step)
                    == (access.space, access.direction, low, high, base, step)
        });
        if let Some(group) = known {
            return *group;
        }
        let window = match access.space {
            AccessSpace::Lds => {
                self.uses_lds = true;
                let bytes = self.value(format_args!("load ptr, ptr %lds.at"));
                let length = self.value(format_args!("load i64, ptr %lds.length.at"));
                Window { bytes, length, add: Value::Wide(0), missing: None, touched: None }
            }
            AccessSpace::Global => {
                let base = base.map(|_| self.wide(op.sources[2].words));
                let kind = match access.direction {
                    Direction::Load => WindowAccess::Read,
                    Direction::Store => WindowAccess::Write,
                };
                self.window(kind, access.element.bytes() as u32, base)
            }
        };
        let Window { bytes, length, add, missing, touched } = window;
        let (first, consecutive, equal) = self.pattern(low, high, step);
        let start = self.loop_value(format_args!("add i64 {first}, {add}"));
        let span = self.span(op, access);
        let bounds = Bounds { length, missing };
        let reach = step * (self.shape.lanes() - 1);
        let consecutive = self.all_in_window(start, span, bounds, reach, consecutive);
        let equal = self.all_in_window(start, span, bounds, 0, equal);
        let (space, direction) = (access.space, access.direction);
        let group = Group {
            space,
            direction,
            low,
            high,
            base,
            step,
            bytes,
            length,
            add,
            missing,
            touched,
            exists: None,
            start,
            consecutive,
            equal,
        };
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.groups.push(group);
        }
        group
    }

    /// Tests a condition and that all bytes from the first access of the first lane to the last
    /// access of the last lane, `reach` bytes further, are in a window.
    fn all_in_window(
        &mut self,
        start: Value,
        span: Span,
        bounds: Bounds,
        reach: u32,
        condition: Value,
    ) -> Value {
        let Bounds { length, missing } = bounds;
        let bytes = span.end - span.first + i64::from(reach);
        let lowest = self.loop_value(format_args!("add i64 {start}, {}", span.first));
        let begins_in = self.loop_value(format_args!("icmp ule i64 {lowest}, {length}"));
        let highest = self.loop_value(format_args!("add i64 {lowest}, {bytes}"));
        let ends_in = self.loop_value(format_args!("icmp ule i64 {highest}, {length}"));
        let all_in = self.loop_value(format_args!("and i1 {begins_in}, {ends_in}"));
        let all = self.loop_value(format_args!("and i1 {all_in}, {condition}"));
        match missing {
            None => all,
            Some(missing) => {
                let there = self.value(format_args!("icmp eq i64 {missing}, 0"));
                self.loop_value(format_args!("and i1 {all}, {there}"))
            }
        }
    }

    /// The span of the accesses that use the same address registers, from the current instruction
    /// until a register changes.
    fn span(&self, op: &Op, access: Access) -> Span {
        let mut span = Span { first: i64::MAX, end: i64::MIN };
        for next in &self.source.ops[self.index..] {
            let access_of_group = Access::of(next, self.machine).filter(|candidate| {
                (candidate.space, candidate.direction, candidate.element.bytes())
                    == (access.space, access.direction, access.element.bytes())
                    && next.sources[0] == op.sources[0]
                    && (candidate.space == AccessSpace::Lds || next.sources[2] == op.sources[2])
            });
            for offset in access_of_group
                .iter()
                .flat_map(|access| &access.offsets[..usize::from(access.elements)])
            {
                span.first = span.first.min(*offset as i64);
                span.end = span.end.max(*offset as i64 + access.element.bytes() as i64);
            }
            if next.inst.writes.iter().any(|range| self.is_address(op, *range)) {
                break;
            }
        }
        span
    }

    /// Returns `true` if the range contains a register of an address.
    fn is_address(&self, op: &Op, range: RegisterRange) -> bool {
        (0..range.words).filter_map(|word| range.first.offset(word)).any(|register| {
            let row = self.machine.row(register).map(Word::Row);
            let scalar = self.machine.scalar(register).map(Word::Scalar);
            let mut words = op.sources[0].words.into_iter().chain(op.sources[2].words);
            words.any(|word| Some(word) == row || Some(word) == scalar)
        })
    }

    /// Loads the window of a new access to device memory.
    fn window(&mut self, access: WindowAccess, bytes: u32, base: Option<Value>) -> Window {
        let number = self.sites.len();
        self.sites.push(Site { instruction: self.index, access, bytes });
        let at = number * offset::WINDOW_SIZE;
        let window = self.value(format_args!("getelementptr i8, ptr %windows, i64 {at}"));
        let records = self.variant.footprint;
        let mut field = |offset: usize, kind: &str| self.field_of(window, offset, kind);
        let first = field(offset::WINDOW_BASE, "i64");
        let length = field(offset::WINDOW_LENGTH, "i64");
        let bytes = field(offset::WINDOW_BYTES, "ptr");
        let missing = field(offset::WINDOW_MISSING, "i64");
        let bits = records.then(|| field(offset::TOUCHED_BITS, "ptr"));
        let touched = bits.map(|bits| Touched { site: number, window, bits });
        let add = match base {
            None => self.value(format_args!("sub i64 0, {first}")),
            Some(base) => self.value(format_args!("sub i64 {base}, {first}")),
        };
        Window { bytes, length, add, missing: Some(missing), touched }
    }

    /// Computes the first lane's address, and whether lanes are consecutive or equal.
    fn pattern(&mut self, low: Value, high: Option<Value>, step: u32) -> (Value, Value, Value) {
        let lanes = self.shape.lanes();
        let [w, m] = self.types(["W", "M"]);
        let first = self.loop_value(format_args!("extractelement {w} {low}, i64 0"));
        let all = self.splat(first);
        let steps: Vec<String> = (0..lanes).map(|lane| format!("i32 {}", lane * step)).collect();
        let row = self.loop_value(format_args!("add {w} {all}, <{}>", steps.join(", ")));
        let mut follows = self.loop_value(format_args!("icmp eq {w} {low}, {row}"));
        let mut equals = self.loop_value(format_args!("icmp eq {w} {low}, {all}"));
        let mut address = self.loop_value(format_args!("zext i32 {first} to i64"));
        if let Some(high) = high {
            let upper = self.loop_value(format_args!("extractelement {w} {high}, i64 0"));
            let all = self.splat(upper);
            let same = self.loop_value(format_args!("icmp eq {w} {high}, {all}"));
            follows = self.loop_value(format_args!("and {m} {follows}, {same}"));
            equals = self.loop_value(format_args!("and {m} {equals}, {same}"));
            let upper = self.loop_value(format_args!("zext i32 {upper} to i64"));
            let upper = self.loop_value(format_args!("shl i64 {upper}, 32"));
            address = self.loop_value(format_args!("or i64 {address}, {upper}"));
        }
        // Low words must not wrap.
        let highest = u32::MAX - step * (lanes - 1);
        let fits = self.loop_value(format_args!("icmp ule i32 {first}, {}", highest as i32));
        let bits = self.loop_value(format_args!("bitcast {m} {follows} to i{lanes}"));
        let follow = self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"));
        let consecutive = self.loop_value(format_args!("and i1 {follow}, {fits}"));
        let bits = self.loop_value(format_args!("bitcast {m} {equals} to i{lanes}"));
        let equal = self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"));
        (address, consecutive, equal)
    }

    /// Computes the lanes that can be accessed, and their 32-bit unsigned offsets, which are 0 in
    /// other lanes. Active lanes that cannot be accessed bail out.
    fn lane_offsets(&mut self, group: Group, add: u64) -> (Value, Value) {
        let [w, m] = self.types(["W", "M"]);
        let last = self.loop_value(format_args!("sub i64 {}, {}", group.length, group.step));
        let (offsets, bad) = match group.missing {
            // LDS addresses have 32 bits.
            None => {
                let low = group.low;
                let offsets =
                    self.loop_value(format_args!("add {w} {low}, {}", Value::Splat(add as u32)));
                let last = self.loop_value(format_args!("trunc i64 {last} to i32"));
                let last = self.splat(last);
                (offsets, self.loop_value(format_args!("icmp ugt {w} {offsets}, {last}")))
            }
            Some(missing) => {
                let add = self.loop_value(format_args!("add i64 {}, {}", group.add, add as i64));
                let (offsets, beyond) = self.offsets(group, add);
                // Hosts gather with 32-bit offsets twice as fast as with 64-bit ones: the
                // interpreter handles lanes farther from the window's first byte.
                let most = u32::MAX;
                let is_long = self.loop_value(format_args!("icmp ugt i64 {last}, {most}"));
                let last =
                    self.loop_value(format_args!("select i1 {is_long}, i64 {most}, i64 {last}"));
                let last = self.loop_value(format_args!("trunc i64 {last} to i32"));
                let last = self.splat(last);
                let after = self.loop_value(format_args!("icmp ugt {w} {offsets}, {last}"));
                let beyond = self.loop_value(format_args!("or {m} {beyond}, {after}"));
                let gone = self.loop_value(format_args!("icmp ne i64 {missing}, 0"));
                let all = format!("{m} splat (i1 true)");
                (offsets, self.loop_value(format_args!("select i1 {gone}, {all}, {m} {beyond}")))
            }
        };
        let bad = match group.exists {
            None => bad,
            Some(exists) => self.loop_value(format_args!("and {m} {bad}, {exists}")),
        };
        self.bail_out_in(bad);
        let good = self.loop_value(format_args!("xor {m} {bad}, splat (i1 true)"));
        let mut safe = self.loop_value(format_args!("and {m} {good}, %active"));
        if let Some(exists) = group.exists {
            safe = self.loop_value(format_args!("and {m} {safe}, {exists}"));
        }
        let offsets =
            self.loop_value(format_args!("select {m} {safe}, {w} {offsets}, {w} zeroinitializer"));
        (safe, offsets)
    }

    /// Adds `add`, of 64 bits, to the lanes' addresses. Returns the low words of the sums, and
    /// which sums do not fit into them.
    fn offsets(&mut self, group: Group, add: Value) -> (Value, Value) {
        let [w, m] = self.types(["W", "M"]);
        let low = self.loop_value(format_args!("trunc i64 {add} to i32"));
        let high = self.loop_value(format_args!("lshr i64 {add}, 32"));
        let high = self.loop_value(format_args!("trunc i64 {high} to i32"));
        let (low, high) = (self.splat(low), self.splat(high));
        let offsets = self.loop_value(format_args!("add {w} {}, {low}", group.low));
        let carries = self.loop_value(format_args!("icmp ult {w} {offsets}, {low}"));
        let high = match group.high {
            Some(address_high) => self.loop_value(format_args!("add {w} {address_high}, {high}")),
            None => high,
        };
        let carried = self.loop_value(format_args!("sext {m} {carries} to {w}"));
        (offsets, self.loop_value(format_args!("icmp ne {w} {high}, {carried}")))
    }

    /// Host addresses of lanes at 32-bit offsets from an address.
    fn lane_pointers(&mut self, bytes: Value, offsets: Value) -> Value {
        // Hosts interpret offsets as signed.
        let w = self.shape.named("W");
        let middle =
            self.loop_value(format_args!("getelementptr i8, ptr {bytes}, i64 {}", 1u64 << 31));
        let offsets = self.loop_value(format_args!("xor {w} {offsets}, {}", Value::Splat(1 << 31)));
        self.loop_value(format_args!("getelementptr i8, ptr {middle}, {w} {offsets}"))
    }

    /// Host address of a lane at its offset.
    fn lane_pointer(&mut self, bytes: Value, offsets: Value, lane: u32) -> Value {
        let w = self.shape.named("W");
        let offset = self.loop_value(format_args!("extractelement {w} {offsets}, i64 {lane}"));
        let offset = self.loop_value(format_args!("zext i32 {offset} to i64"));
        self.loop_value(format_args!("getelementptr i8, ptr {bytes}, i64 {offset}"))
    }

    /// Tests whether all lanes of the iteration are active.
    fn all_active(&mut self) -> Value {
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let bits = self.loop_value(format_args!("bitcast {m} %active to i{lanes}"));
        self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"))
    }

    /// Makes the active lanes of `bad` bail out.
    fn bail_out_in(&mut self, bad: Value) {
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let active_bad = self.loop_value(format_args!("and {m} {bad}, %active"));
        let bits = self.loop_value(format_args!("bitcast {m} {active_bad} to i{lanes}"));
        let bits = self.loop_value(format_args!("zext i{lanes} {bits} to i64"));
        let known = self.loop_value(format_args!("load i64, ptr %bailout.at"));
        let all = self.loop_value(format_args!("or i64 {known}, {bits}"));
        self.loop_line(format_args!("  store i64 {all}, ptr %bailout.at"));
    }

    pub(super) fn loop_line(&mut self, code: std::fmt::Arguments<'_>) {
        if let Some(lane_loop) = &mut self.lane_loop {
            let _ = writeln!(lane_loop.body, "{code}");
        }
    }

    /// Begins a basic block in the loop body.
    fn label(&mut self, name: &str, number: u32) {
        self.loop_line(format_args!("{name}{number}:"));
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.label = format!("{name}{number}");
        }
    }
}
