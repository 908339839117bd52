//! Words that lanes take from other lanes.
//!
//! Where those are lanes of the same turn of a segment's loop, and the same in each turn, they are moved
//! within a vector. Else the whole row is read before the loop: no turn sees what another one has written.

use super::emitter::{Emitter, Moved};
use crate::compile::plan::{Exchange, ExchangeControls, Plan};
use crate::compile::value::{Shape, Value};
use crate::compile::workspace::SAVED_ROWS;
use crate::instruction::lane_move::LaneMove;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, RowIndex};
use std::fmt::Write;

/// From where lanes take words.
enum From {
    /// From lanes of their turn, by their places in it: as many as there are where there is none.
    Turn(Vec<u32>),
    /// From lanes of any turn, by their numbers.
    Wave(Value),
}

impl Emitter<'_> {
    /// Whether the open segment has written a row of which an instruction takes words in other turns.
    pub(super) fn takes_written_rows(&self, op: &Op) -> bool {
        let Some(open) = &self.lane_loop else { return false };
        let within_turn = |lane_move| within_turns(lane_move, self.shape).is_some();
        let source = match self.source.plans[self.index] {
            Plan::Exchange(exchange) => exchange.data(op).map(|row| [Word::Row(row); 2]),
            _ => op.lane_move().map(|_| op.sources[0].words),
        };
        let is_written = |word| match word {
            Word::Row(row) => open.rows.get(&row).is_some_and(|lanes| lanes.is_written),
            _ => false,
        };
        !op.lane_move().is_some_and(within_turn) && source.into_iter().flatten().any(is_written)
    }

    /// A row whose words are moved between lanes: zeros where a lane cannot take one.
    pub(super) fn moved(&mut self, row: RowIndex, lane_move: &LaneMove) -> Value {
        let from = self.from(lane_move);
        let value = self.taken(row, &from, lane_move.fetch_inactive());
        match self.readable(lane_move, &from) {
            Some(readable) => self.zero_unless(readable, value),
            None => value,
        }
    }

    /// The lanes that are written where words are moved so; nothing if all are.
    pub(super) fn written(&mut self, lane_move: &LaneMove) -> Option<Value> {
        let from = self.from(lane_move);
        let readable = match lane_move.bound_control() {
            true => None,
            false => self.readable(lane_move, &from),
        };
        let enabled = self.constant_lanes(lane_move.enabled().0);
        self.both(readable, enabled)
    }

    /// Lanes that take words of other lanes, and nothing else.
    pub(super) fn exchange(&mut self, op: &Op, exchange: Exchange) {
        let Some(row) = exchange.data(op) else { return };
        if let Some(lane_move) = op.lane_move() {
            let value = self.moved(row, lane_move);
            return self.write_row(op.destination, value, false);
        }
        let lanes = self.source_lanes(op, exchange);
        let from = From::Wave(lanes);
        let ExchangeControls { fetch_inactive, bound_control } = exchange.controls(op);
        let mut value = self.taken(row, &from, fetch_inactive);
        if !fetch_inactive {
            let readable = self.active_at(&from);
            value = match bound_control {
                true => self.zero_unless(readable, value),
                false => self.blended(readable, value, op.destination),
            };
        }
        self.write_row(op.destination, value, false);
    }

    /// The numbers of the lanes that words are taken from, below [`LANES`].
    fn source_lanes(&mut self, op: &Op, exchange: Exchange) -> Value {
        let [w, d] = self.types(["W", "D"]);
        let own = self.lane_numbers();
        let in_row = |emitter: &mut Self, select: Value, distance: u32| {
            let select = emitter.loop_value(format_args!("and {w} {select}, {}", Value::Splat(15)));
            let row = emitter.loop_value(format_args!("and {w} {own}, {}", Value::Splat(!15)));
            let row = emitter.loop_value(format_args!("xor {w} {row}, {}", Value::Splat(distance)));
            emitter.loop_value(format_args!("or {w} {row}, {select}"))
        };
        match exchange {
            Exchange::ByAddress { .. } => {
                let within = u32::from(self.machine.permute_lanes) - 1;
                let address = self.lane_word(op.sources[0].words[0], false);
                let offset = Value::Splat(op.immediate as u32);
                let address = self.loop_value(format_args!("add {w} {address}, {offset}"));
                let lane = self.loop_value(format_args!("lshr {w} {address}, {}", Value::Splat(2)));
                let lane =
                    self.loop_value(format_args!("and {w} {lane}, {}", Value::Splat(within)));
                let group =
                    self.loop_value(format_args!("and {w} {own}, {}", Value::Splat(!within)));
                self.loop_value(format_args!("or {w} {group}, {lane}"))
            }
            Exchange::BySelects { distance } => {
                let selects = self.wide([1, 2].map(|source| op.sources[source].words[0]));
                let count = self.shape.lanes();
                let one =
                    self.loop_value(format_args!("insertelement {d} poison, i64 {selects}, i64 0"));
                let all = self.loop_value(format_args!(
                    "shufflevector {d} {one}, {d} poison, <{count} x i32> zeroinitializer"
                ));
                let shift = self.loop_value(format_args!("and {w} {own}, {}", Value::Splat(15)));
                let shift = self.loop_value(format_args!("shl {w} {shift}, {}", Value::Splat(2)));
                let shift = self.loop_value(format_args!("zext {w} {shift} to {d}"));
                let select = self.loop_value(format_args!("lshr {d} {all}, {shift}"));
                let select = self.loop_value(format_args!("trunc {d} {select} to {w}"));
                in_row(self, select, distance)
            }
            Exchange::BySelectOfLane { distance } => {
                let select = self.lane_word(op.sources[1].words[0], false);
                in_row(self, select, distance)
            }
            Exchange::Fixed | Exchange::ByHalves => {
                self.loop_value(format_args!("xor {w} {own}, {}", Value::Splat(LANES as u32 / 2)))
            }
        }
    }

    /// From where a move has lanes take words.
    fn from(&mut self, lane_move: &LaneMove) -> From {
        if let Some(places) = within_turns(lane_move, self.shape) {
            return From::Turn(places);
        }
        let number = self.number();
        let lanes: Vec<String> = (0..LANES)
            .map(|lane| format!("i32 {}", lane_move.source(lane).unwrap_or(lane)))
            .collect();
        let _ = writeln!(
            self.constants,
            "@lanes{number} = private unnamed_addr constant [{LANES} x i32] [{}], align 64",
            lanes.join(", ")
        );
        let w = self.shape.named("W");
        let pointer =
            self.loop_value(format_args!("getelementptr i32, ptr @lanes{number}, i64 %lane"));
        From::Wave(
            self.loop_value(format_args!("load {w}, ptr {pointer}, align {}", self.shape.lanes())),
        )
    }

    /// The words of a row that lanes take; of no meaning where there is none to take. `of_inactive` says
    /// whether inactive lanes have some.
    fn taken(&mut self, row: RowIndex, from: &From, of_inactive: bool) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        match from {
            From::Turn(places) => {
                let mut value = self.lane_word(Word::Row(row), false);
                if of_inactive {
                    // What the segment has computed in inactive lanes is no register's.
                    self.save_row_before(row);
                    let before =
                        self.lane_loop.as_ref().and_then(|open| open.before.get(&row).copied());
                    let before = before.unwrap_or(value);
                    value = self
                        .loop_value(format_args!("select {m} %active, {w} {value}, {w} {before}"));
                }
                let places = shuffle(places);
                self.loop_value(format_args!(
                    "shufflevector {w} {value}, {w} zeroinitializer, <{count} x i32> <{places}>"
                ))
            }
            From::Wave(lanes) => match self.whole(row) {
                Moved::Vectors([first, second, third, fourth]) => {
                    let select = "@llvm.x86.avx512.vpermi2var.d.512";
                    let low = self.loop_value(format_args!(
                        "call {w} {select}({w} {first}, {w} {lanes}, {w} {second})"
                    ));
                    if self.machine.lanes == 32 {
                        return low;
                    }
                    let high = self.loop_value(format_args!(
                        "call {w} {select}({w} {third}, {w} {lanes}, {w} {fourth})"
                    ));
                    let is_low =
                        self.loop_value(format_args!("icmp ult {w} {lanes}, {}", Value::Splat(32)));
                    self.loop_value(format_args!("select {m} {is_low}, {w} {low}, {w} {high}"))
                }
                Moved::Copy(copy) => {
                    let at =
                        self.loop_value(format_args!("getelementptr i32, ptr {copy}, {w} {lanes}"));
                    self.loop_value(format_args!(
                        "call {w} @llvm.masked.gather.v{count}i32.v{count}p0(<{count} x ptr> \
                         align 4 {at}, {m} splat (i1 true), {w} poison)"
                    ))
                }
            },
        }
    }

    /// A row as it is before the open segment, which has not written it.
    fn whole(&mut self, row: RowIndex) -> Moved {
        let known = self.lane_loop.iter().flat_map(|open| &open.moved).find(|(own, _)| *own == row);
        if let Some((_, moved)) = known {
            return *moved;
        }
        // What is undone reads it again.
        self.save_row_before(row);
        let (w, count) = (self.shape.named("W"), self.shape.lanes());
        let parts: Vec<Value> = self.parts().map(|part| self.part_of_row(row, part)).collect();
        let moved = match self.shape {
            Shape::Sixteen => Moved::Vectors(std::array::from_fn(|part| parts[part % parts.len()])),
            Shape::Eight => {
                let slot = SAVED_ROWS + self.lane_loop.as_ref().map_or(0, |open| open.moved.len());
                let copy =
                    self.value(format_args!("getelementptr i8, ptr %saved, i64 {}", slot * 256));
                for (index, part) in parts.iter().enumerate() {
                    let at = index * count as usize * 4;
                    let pointer =
                        self.value(format_args!("getelementptr i8, ptr {copy}, i64 {at}"));
                    let _ = writeln!(
                        self.text,
                        "  store {w} {part}, ptr {pointer}, align {}",
                        count * 4
                    );
                }
                Moved::Copy(copy)
            }
        };
        if let Some(open) = &mut self.lane_loop {
            open.moved.push((row, moved));
        }
        moved
    }

    /// The lanes that can take a word; nothing if all can.
    fn readable(&mut self, lane_move: &LaneMove, from: &From) -> Option<Value> {
        let sourced = self.constant_lanes(lane_move.sourced().0);
        let active = (!lane_move.fetch_inactive()).then(|| self.active_at(from));
        self.both(sourced, active)
    }

    /// Whether the lanes that others take words from are active.
    fn active_at(&mut self, from: &From) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        match from {
            From::Turn(places) => {
                let places = shuffle(places);
                self.loop_value(format_args!(
                    "shufflevector {m} %active, {m} zeroinitializer, <{count} x i32> <{places}>"
                ))
            }
            From::Wave(lanes) => {
                let low = self.loop_value(format_args!("trunc i64 %exec to i32"));
                let mut bits = self.splat(low);
                if self.machine.lanes == 64 {
                    let high = self.loop_value(format_args!("lshr i64 %exec, 32"));
                    let high = self.loop_value(format_args!("trunc i64 {high} to i32"));
                    let high = self.splat(high);
                    let is_low =
                        self.loop_value(format_args!("icmp ult {w} {lanes}, {}", Value::Splat(32)));
                    bits = self
                        .loop_value(format_args!("select {m} {is_low}, {w} {bits}, {w} {high}"));
                }
                let bit_index =
                    self.loop_value(format_args!("and {w} {lanes}, {}", Value::Splat(31)));
                let bit = self.loop_value(format_args!("lshr {w} {bits}, {bit_index}"));
                self.loop_value(format_args!("trunc {w} {bit} to {m}"))
            }
        }
    }

    /// Lanes that are always the same; nothing if they are all.
    fn constant_lanes(&mut self, lanes: u64) -> Option<Value> {
        let all = self.machine.all_lanes().0;
        (lanes & all != all).then(|| self.mask_part(Value::Wide(lanes)))
    }

    fn both(&mut self, one: Option<Value>, other: Option<Value>) -> Option<Value> {
        let m = self.shape.named("M");
        match (one, other) {
            (Some(one), Some(other)) => {
                Some(self.loop_value(format_args!("and {m} {one}, {other}")))
            }
            (one, other) => one.or(other),
        }
    }

    fn zero_unless(&mut self, condition: Value, value: Value) -> Value {
        let [w, m] = self.types(["W", "M"]);
        self.loop_value(format_args!("select {m} {condition}, {w} {value}, {w} zeroinitializer"))
    }
}

/// Where lanes take words in their turn, if they do and do so in the same way in each one.
fn within_turns(lane_move: &LaneMove, shape: Shape) -> Option<Vec<u32>> {
    let count = shape.lanes() as usize;
    let place = |lane: usize| match lane_move.source(lane) {
        None => Some(count as u32),
        Some(source) => (source / count == lane / count).then_some((source % count) as u32),
    };
    let places: Vec<u32> = (0..count).map(place).collect::<Option<_>>()?;
    let is_same = |lane: usize| place(lane) == Some(places[lane % count]);
    (count..LANES).all(is_same).then_some(places)
}

fn shuffle(places: &[u32]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("i32 {place}")).collect();
    places.join(", ")
}
