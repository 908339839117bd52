//! Accesses to memory. Those of lanes are part of a segment: each turn of its loop accesses the memory of its lanes.
//!
//! Mostly the lanes of a turn access words that follow each other, or the same ones; what is known of
//! their addresses is computed once for all accesses that differ by a constant. All must fall into the
//! stretch of memory that was found when the interpreter last executed the access; where a lane does
//! not, the segment is undone.

mod batch;
mod buffer;
pub(super) mod group;
mod load;
mod private;
mod scalar;
mod store;
mod touch;

use super::emitter::{Emitter, WORDS};
use crate::compile::access::{Access, AccessSpace, Direction};
use crate::compile::compiled::Site;
use crate::compile::frame::offset;
use crate::compile::value::Value;
use crate::instruction::{Op, Word};
use crate::memory::WindowAccess;
use flipwave_isa::RegisterRange;
use group::{Group, Span, Touched, Window};
use std::fmt::Write;

impl Emitter<'_> {
    /// Writes an access.
    pub(super) fn access(&mut self, op: &Op, access: Access) {
        let step = access.element.bytes() as u32;
        // Once, since the first element may replace the address.
        let mut group = self.group(op, access, step);
        let is_batched = self.is_batched(op, access, &group);
        for (element, offset) in (0..access.elements).zip(access.offsets) {
            if element > 0 && access.direction == Direction::Store {
                // All lanes' first elements are written before any lane's second one.
                self.index += 1;
                self.close_loop();
                self.index -= 1;
                self.open_loop_for(self.index, &[(op, &WORDS)]);
                self.record_access(access);
                if let Some(open) = &mut self.lane_loop {
                    open.is_second_half = true;
                }
                group = self.group(op, access, step);
            }
            match access.direction {
                Direction::Load => {
                    let words = u16::from(access.element.words());
                    let first = op.destination.plus(u16::from(element) * words);
                    match is_batched {
                        true => self.add_to_batch(group, offset, access.element, first),
                        false => self.load(group, offset, access.element, first),
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

    /// Closes the open segment if an access cannot be part of it: what lanes store is seen by other
    /// lanes' loads, where two stores overlap, the later one's words stay, and nothing is stored after an
    /// access of any lane that faults. Nor is it noted what is touched at addresses that the segment
    /// itself may not have right.
    pub(super) fn close_loop_before(&mut self, op: &Op, access: Access) {
        let stores = |own: &Access| own.direction == Direction::Store;
        let collides = |own: &Access| {
            (stores(own) && stores(&access))
                || (own.space == AccessSpace::Global && stores(&access))
                || (own.space == access.space && (stores(own) || stores(&access)))
        };
        let Some(open) = &self.lane_loop else { return };
        let is_own = |word: &Word| match word {
            Word::Row(row) => open.rows.get(row).is_some_and(|lanes| lanes.is_written),
            _ => false,
        };
        let may_be_wrong = !open.bailout_lanes.is_empty() || !open.accesses.is_empty();
        let notes = self.variant.footprint && access.space == AccessSpace::Global;
        if open.accesses.iter().any(collides)
            || notes && may_be_wrong && op.sources[0].words.iter().any(is_own)
        {
            self.close_loop();
        }
    }

    /// Notes that the open segment has an access, and what it has written before the first that may fault.
    pub(super) fn record_access(&mut self, access: Access) {
        let Some(open) = &mut self.lane_loop else { return };
        if access.space == AccessSpace::Global && !open.may_fault() {
            let written = open.rows.iter().filter(|(_, lanes)| lanes.is_written);
            open.written_first = written.map(|(row, _)| *row).collect();
        }
        open.accesses.push(access);
    }

    /// The group of an access.
    fn group(&mut self, op: &Op, access: Access, step: u32) -> Group {
        if access.is_in_buffer {
            return self.group_in_buffer(op, access);
        }
        let words = op.sources[0].words;
        let low = self.lane_word(words[0], false);
        let has_base = !matches!(op.sources[2].words[0], Word::Constant(_));
        let is_global = access.space == AccessSpace::Global;
        let high = (is_global && !has_base).then(|| self.lane_word(words[1], false));
        let base = (is_global && has_base).then(|| op.sources[2].words.map(|word| self.word(word)));
        let known = self.lane_loop.iter().flat_map(|open| &open.groups).find(|own| {
            own.exists.is_none()
                && (own.space, own.direction, own.low, own.high, own.base, own.step)
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
        let reach = step * (self.shape.lanes() - 1);
        let consecutive = self.all_in(start, span, (length, missing), (reach, consecutive));
        let equal = self.all_in(start, span, (length, missing), (0, equal));
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
        if let Some(open) = &mut self.lane_loop {
            open.groups.push(group);
        }
        group
    }

    /// Whether lanes are as a flag says, and all from what the first one accesses to what the last one does,
    /// `reach` bytes further, is in a window.
    fn all_in(
        &mut self,
        start: Value,
        span: Span,
        (length, missing): (Value, Option<Value>),
        (reach, flag): (u32, Value),
    ) -> Value {
        let bytes = span.end - span.first + i64::from(reach);
        let lowest = self.loop_value(format_args!("add i64 {start}, {}", span.first));
        let begins_in = self.loop_value(format_args!("icmp ule i64 {lowest}, {length}"));
        let highest = self.loop_value(format_args!("add i64 {lowest}, {bytes}"));
        let ends_in = self.loop_value(format_args!("icmp ule i64 {highest}, {length}"));
        let all_in = self.loop_value(format_args!("and i1 {begins_in}, {ends_in}"));
        let all = self.loop_value(format_args!("and i1 {all_in}, {flag}"));
        match missing {
            None => all,
            Some(missing) => {
                let there = self.value(format_args!("icmp eq i64 {missing}, 0"));
                self.loop_value(format_args!("and i1 {all}, {there}"))
            }
        }
    }

    /// From where to where the accesses reach that have the same registers for their addresses, from
    /// the one being written to where a register is another value.
    fn span(&self, op: &Op, access: Access) -> Span {
        let mut span = Span { first: i64::MAX, end: i64::MIN };
        for next in &self.source.ops[self.index..] {
            let own = Access::of(next, self.machine).filter(|own| {
                (own.space, own.direction, own.element.bytes())
                    == (access.space, access.direction, access.element.bytes())
                    && next.sources[0] == op.sources[0]
                    && (own.space == AccessSpace::Lds || next.sources[2] == op.sources[2])
            });
            for offset in own.iter().flat_map(|own| &own.offsets[..usize::from(own.elements)]) {
                span.first = span.first.min(*offset as i64);
                span.end = span.end.max(*offset as i64 + access.element.bytes() as i64);
            }
            if next.inst.writes.iter().any(|range| self.is_address(op, *range)) {
                break;
            }
        }
        span
    }

    /// Whether some of these registers are those of an address.
    fn is_address(&self, op: &Op, range: RegisterRange) -> bool {
        (0..range.words).filter_map(|word| range.first.offset(word)).any(|register| {
            let row = self.machine.row(register).map(Word::Row);
            let scalar = self.machine.scalar(register).map(Word::Scalar);
            let mut words = op.sources[0].words.into_iter().chain(op.sources[2].words);
            words.any(|word| Some(word) == row || Some(word) == scalar)
        })
    }

    /// A window of device memory: the host's address of its first byte, how many bytes, what makes an
    /// address an offset, and whether it is missing; and where it is noted what is touched of it.
    fn window(&mut self, access: WindowAccess, bytes: u32, base: Option<Value>) -> Window {
        let number = self.sites.len();
        self.sites.push(Site { instruction: self.index, access, bytes });
        let at = number * offset::WINDOW_SIZE;
        let window = self.value(format_args!("getelementptr i8, ptr %windows, i64 {at}"));
        let notes = self.variant.footprint;
        let mut field = |of: usize, kind: &str| self.field_of(window, of, kind);
        let first = field(offset::WINDOW_BASE, "i64");
        let length = field(offset::WINDOW_LENGTH, "i64");
        let bytes = field(offset::WINDOW_BYTES, "ptr");
        let missing = field(offset::WINDOW_MISSING, "i64");
        let bits = notes.then(|| field(offset::TOUCHED_BITS, "ptr"));
        let touched = bits.map(|bits| Touched { site: number, window, bits });
        let add = match base {
            None => self.value(format_args!("sub i64 0, {first}")),
            Some(base) => self.value(format_args!("sub i64 {base}, {first}")),
        };
        Window { bytes, length, add, missing: Some(missing), touched }
    }

    /// The first lane's address, and whether lanes follow each other, or have all the same.
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
        // The low words must not wrap.
        let highest = u32::MAX - step * (lanes - 1);
        let fits = self.loop_value(format_args!("icmp ule i32 {first}, {}", highest as i32));
        let bits = self.loop_value(format_args!("bitcast {m} {follows} to i{lanes}"));
        let follow = self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"));
        let consecutive = self.loop_value(format_args!("and i1 {follow}, {fits}"));
        let bits = self.loop_value(format_args!("bitcast {m} {equals} to i{lanes}"));
        let equal = self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"));
        (address, consecutive, equal)
    }

    /// The lanes that may access what they want to, and offsets, of 32 bits without a sign, which are 0 in
    /// the others. Notes the active ones that may not.
    fn each(&mut self, group: Group, add: u64) -> (Value, Value) {
        let [w, m] = self.types(["W", "M"]);
        let last = self.loop_value(format_args!("sub i64 {}, {}", group.length, group.step));
        let (offsets, bad) = match group.missing {
            // Addresses in LDS are of 32 bits.
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
                // Hosts access lanes by offsets of 32 bits twice as fast as by those of 64: what is
                // farther from the window's first byte is left to the interpreter.
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

    /// The low words of the lanes' addresses and `add`, of 64 bits, and which of the sums have more than
    /// these.
    fn offsets(&mut self, group: Group, add: Value) -> (Value, Value) {
        let [w, m] = self.types(["W", "M"]);
        let low = self.loop_value(format_args!("trunc i64 {add} to i32"));
        let high = self.loop_value(format_args!("lshr i64 {add}, 32"));
        let high = self.loop_value(format_args!("trunc i64 {high} to i32"));
        let (low, high) = (self.splat(low), self.splat(high));
        let offsets = self.loop_value(format_args!("add {w} {}, {low}", group.low));
        let carries = self.loop_value(format_args!("icmp ult {w} {offsets}, {low}"));
        let high = match group.high {
            Some(own) => self.loop_value(format_args!("add {w} {own}, {high}")),
            None => high,
        };
        let carried = self.loop_value(format_args!("sext {m} {carries} to {w}"));
        (offsets, self.loop_value(format_args!("icmp ne {w} {high}, {carried}")))
    }

    /// Where the words of lanes are that are at such offsets from an address of the host.
    fn at_each(&mut self, bytes: Value, offsets: Value) -> Value {
        // Hosts take offsets for numbers with a sign.
        let w = self.shape.named("W");
        let middle =
            self.loop_value(format_args!("getelementptr i8, ptr {bytes}, i64 {}", 1u64 << 31));
        let offsets = self.loop_value(format_args!("xor {w} {offsets}, {}", Value::Splat(1 << 31)));
        self.loop_value(format_args!("getelementptr i8, ptr {middle}, {w} {offsets}"))
    }

    /// A lane's bytes at such an offset.
    fn at_one(&mut self, bytes: Value, offsets: Value, lane: u32) -> Value {
        let w = self.shape.named("W");
        let offset = self.loop_value(format_args!("extractelement {w} {offsets}, i64 {lane}"));
        let offset = self.loop_value(format_args!("zext i32 {offset} to i64"));
        self.loop_value(format_args!("getelementptr i8, ptr {bytes}, i64 {offset}"))
    }

    /// Whether all lanes of the turn are active.
    fn all_active(&mut self) -> Value {
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let bits = self.loop_value(format_args!("bitcast {m} %active to i{lanes}"));
        self.loop_value(format_args!("icmp eq i{lanes} {bits}, -1"))
    }

    /// Notes lanes whose accesses are left to the interpreter, if they are active.
    fn bail_out_in(&mut self, bad: Value) {
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let doubtful = self.loop_value(format_args!("and {m} {bad}, %active"));
        let bits = self.loop_value(format_args!("bitcast {m} {doubtful} to i{lanes}"));
        let bits = self.loop_value(format_args!("zext i{lanes} {bits} to i64"));
        let known = self.loop_value(format_args!("load i64, ptr %bailout.at"));
        let all = self.loop_value(format_args!("or i64 {known}, {bits}"));
        self.loop_line(format_args!("  store i64 {all}, ptr %bailout.at"));
    }

    pub(super) fn loop_line(&mut self, code: std::fmt::Arguments<'_>) {
        if let Some(open) = &mut self.lane_loop {
            let _ = writeln!(open.body, "{code}");
        }
    }

    /// Begins a basic block in the loop.
    fn label(&mut self, name: &str, number: u32) {
        self.loop_line(format_args!("{name}{number}:"));
        if let Some(open) = &mut self.lane_loop {
            open.label = format!("{name}{number}");
        }
    }
}
