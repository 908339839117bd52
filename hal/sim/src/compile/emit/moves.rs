//! Moves of words between lanes.
//!
//! If source and destination lanes belong to the same loop iteration, in the same way in each
//! iteration, the move is a vector shuffle. Otherwise the whole row is read before the loop, so
//! that no iteration sees results of another.

use super::emitter::{Emitter, Moved, NanCheck};
use crate::compile::plan::{Exchange, ExchangeControls, Plan};
use crate::compile::value::{Shape, Value};
use crate::compile::workspace::SAVED_ROWS;
use crate::instruction::lane_move::LaneMove;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, RowIndex};
use std::fmt::Write;

/// Source lanes of a move.
enum SourceLanes {
    /// Lanes of the same iteration, by their position in it; the number of lanes stands for no
    /// source.
    Iteration(Vec<u32>),
    /// Lanes of any iteration, by their number.
    Wave(Value),
}

impl Emitter<'_> {
    /// Returns `true` if the current loop has written a row from which an instruction reads words
    /// of other iterations.
    pub(super) fn reads_written_rows(&self, op: &Op) -> bool {
        let Some(lane_loop) = &self.lane_loop else { return false };
        let within_iteration = |lane_move| iteration_positions(lane_move, self.shape).is_some();
        let source = match self.source.plans[self.index] {
            Plan::Exchange(exchange) => exchange.data(op).map(|row| [Word::Row(row); 2]),
            _ => op.lane_move().map(|_| op.sources[0].words),
        };
        let is_written = |word| match word {
            Word::Row(row) => lane_loop.rows.get(&row).is_some_and(|lanes| lanes.is_written),
            _ => false,
        };
        !op.lane_move().is_some_and(within_iteration)
            && source.into_iter().flatten().any(is_written)
    }

    /// A row with its words moved between lanes; zero where a lane cannot read its source.
    pub(super) fn moved_row(&mut self, row: RowIndex, lane_move: &LaneMove) -> Value {
        let from = self.move_sources(lane_move);
        let value = self.read_lanes(row, &from, lane_move.fetch_inactive());
        match self.readable_lanes(lane_move, &from) {
            Some(readable) => self.zero_unless(readable, value),
            None => value,
        }
    }

    /// Lanes that a move writes; `None` if it writes all.
    pub(super) fn written_lanes(&mut self, lane_move: &LaneMove) -> Option<Value> {
        let from = self.move_sources(lane_move);
        let readable =
            if lane_move.bound_control() { None } else { self.readable_lanes(lane_move, &from) };
        let enabled = self.constant_lanes(lane_move.enabled().0);
        self.and_masks(readable, enabled)
    }

    /// Emits an instruction that only moves words between lanes.
    pub(super) fn exchange(&mut self, op: &Op, exchange: Exchange) {
        let Some(row) = exchange.data(op) else { return };
        if let Some(lane_move) = op.lane_move() {
            let value = self.moved_row(row, lane_move);
            return self.write_row(op.destination, value, NanCheck::Done);
        }
        let lanes = self.exchange_sources(op, exchange);
        let from = SourceLanes::Wave(lanes);
        let ExchangeControls { fetch_inactive, bound_control } = exchange.controls(op);
        let mut value = self.read_lanes(row, &from, fetch_inactive);
        if !fetch_inactive {
            let readable = self.active_sources(&from);
            value = if bound_control {
                self.zero_unless(readable, value)
            } else {
                self.blend(readable, value, op.destination)
            };
        }
        self.write_row(op.destination, value, NanCheck::Done);
    }

    /// Numbers of the source lanes, below [`LANES`].
    fn exchange_sources(&mut self, op: &Op, exchange: Exchange) -> Value {
        let [w, d] = self.types(["W", "D"]);
        let lane_numbers = self.lane_numbers();
        let in_row = |emitter: &mut Self, select: Value, distance: u32| {
            let select = emitter.loop_value(format_args!("and {w} {select}, {}", Value::Splat(15)));
            let row =
                emitter.loop_value(format_args!("and {w} {lane_numbers}, {}", Value::Splat(!15)));
            let row = emitter.loop_value(format_args!("xor {w} {row}, {}", Value::Splat(distance)));
            emitter.loop_value(format_args!("or {w} {row}, {select}"))
        };
        match exchange {
            Exchange::ByAddress { .. } => {
                let within = u32::from(self.machine.permute_lanes) - 1;
                let address = self.lane_word(op.sources[0].words[0], NanCheck::Done);
                let offset = Value::Splat(op.immediate as u32);
                let address = self.loop_value(format_args!("add {w} {address}, {offset}"));
                let lane = self.loop_value(format_args!("lshr {w} {address}, {}", Value::Splat(2)));
                let lane =
                    self.loop_value(format_args!("and {w} {lane}, {}", Value::Splat(within)));
                let group = self
                    .loop_value(format_args!("and {w} {lane_numbers}, {}", Value::Splat(!within)));
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
                let shift =
                    self.loop_value(format_args!("and {w} {lane_numbers}, {}", Value::Splat(15)));
                let shift = self.loop_value(format_args!("shl {w} {shift}, {}", Value::Splat(2)));
                let shift = self.loop_value(format_args!("zext {w} {shift} to {d}"));
                let select = self.loop_value(format_args!("lshr {d} {all}, {shift}"));
                let select = self.loop_value(format_args!("trunc {d} {select} to {w}"));
                in_row(self, select, distance)
            }
            Exchange::BySelectOfLane { distance } => {
                let select = self.lane_word(op.sources[1].words[0], NanCheck::Done);
                in_row(self, select, distance)
            }
            Exchange::Fixed | Exchange::ByHalves => self.loop_value(format_args!(
                "xor {w} {lane_numbers}, {}",
                Value::Splat(LANES as u32 / 2)
            )),
        }
    }

    /// Source lanes of a move.
    fn move_sources(&mut self, lane_move: &LaneMove) -> SourceLanes {
        if let Some(places) = iteration_positions(lane_move, self.shape) {
            return SourceLanes::Iteration(places);
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
        SourceLanes::Wave(
            self.loop_value(format_args!("load {w}, ptr {pointer}, align {}", self.shape.lanes())),
        )
    }

    /// Words read from the source lanes; meaningless where a lane has no source.
    fn read_lanes(&mut self, row: RowIndex, from: &SourceLanes, fetch_inactive: bool) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        match from {
            SourceLanes::Iteration(places) => {
                let mut value = self.lane_word(Word::Row(row), NanCheck::Done);
                if fetch_inactive {
                    // Values computed in inactive lanes are not in the register.
                    self.save_row_before(row);
                    let before = self
                        .lane_loop
                        .as_ref()
                        .and_then(|lane_loop| lane_loop.before.get(&row).copied());
                    let before = before.unwrap_or(value);
                    value = self
                        .loop_value(format_args!("select {m} %active, {w} {value}, {w} {before}"));
                }
                let places = shuffle(places);
                self.loop_value(format_args!(
                    "shufflevector {w} {value}, {w} zeroinitializer, <{count} x i32> <{places}>"
                ))
            }
            SourceLanes::Wave(lanes) => match self.whole_row(row) {
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

    /// A row as it is before the current loop, which has not written it.
    fn whole_row(&mut self, row: RowIndex) -> Moved {
        let known = self
            .lane_loop
            .iter()
            .flat_map(|lane_loop| &lane_loop.moved)
            .find(|(moved_row, _)| *moved_row == row);
        if let Some((_, moved)) = known {
            return *moved;
        }
        // The interpreter reads it again after a bailout.
        self.save_row_before(row);
        let (w, count) = (self.shape.named("W"), self.shape.lanes());
        let parts: Vec<Value> = self.parts().map(|part| self.part_of_row(row, part)).collect();
        let moved = match self.shape {
            Shape::Sixteen => Moved::Vectors(std::array::from_fn(|part| parts[part % parts.len()])),
            Shape::Eight => {
                let slot = SAVED_ROWS
                    + self.lane_loop.as_ref().map_or(0, |lane_loop| lane_loop.moved.len());
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
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.moved.push((row, moved));
        }
        moved
    }

    /// Lanes that can read their source; `None` if all can.
    fn readable_lanes(&mut self, lane_move: &LaneMove, from: &SourceLanes) -> Option<Value> {
        let sourced = self.constant_lanes(lane_move.sourced().0);
        let active = (!lane_move.fetch_inactive()).then(|| self.active_sources(from));
        self.and_masks(sourced, active)
    }

    /// Lanes whose source lane is active.
    fn active_sources(&mut self, from: &SourceLanes) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        match from {
            SourceLanes::Iteration(places) => {
                let places = shuffle(places);
                self.loop_value(format_args!(
                    "shufflevector {m} %active, {m} zeroinitializer, <{count} x i32> <{places}>"
                ))
            }
            SourceLanes::Wave(lanes) => {
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

    /// A constant lane mask; `None` if it contains all lanes.
    fn constant_lanes(&mut self, lanes: u64) -> Option<Value> {
        let all = self.machine.all_lanes().0;
        (lanes & all != all).then(|| self.mask_part(Value::Wide(lanes)))
    }

    fn and_masks(&mut self, first: Option<Value>, second: Option<Value>) -> Option<Value> {
        let m = self.shape.named("M");
        match (first, second) {
            (Some(first), Some(second)) => {
                Some(self.loop_value(format_args!("and {m} {first}, {second}")))
            }
            (first, second) => first.or(second),
        }
    }

    fn zero_unless(&mut self, condition: Value, value: Value) -> Value {
        let [w, m] = self.types(["W", "M"]);
        self.loop_value(format_args!("select {m} {condition}, {w} {value}, {w} zeroinitializer"))
    }
}

/// Source positions within an iteration, if all iterations have the same ones.
fn iteration_positions(lane_move: &LaneMove, shape: Shape) -> Option<Vec<u32>> {
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
