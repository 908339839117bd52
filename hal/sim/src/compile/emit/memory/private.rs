//! Accesses to private memory. Consecutive dwords of a lane are as many dwords apart as the wave
//! has lanes, so that the words of lanes with equal offsets are adjacent; words of other lanes are
//! gathered or scattered. The interpreter handles accesses outside the windows of the last
//! accesses, since waves take turns, and outside the wave's private memory.

use super::buffer::{ADD_THREAD, Resource};
use crate::compile::access::{Access, Direction, PrivateAccess};
use crate::compile::emit::emitter::Emitter;
use crate::compile::frame::{PRIVATE_LOAD, PRIVATE_STORE, offset};
use crate::compile::value::{Shape, Value};
use crate::compile::workspace::{PRIVATE_BLOCK, PRIVATE_WINDOWS};
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Run, Word};
use crate::memory::aperture;
use crate::wave::{RowIndex, ScalarIndex};
use flipwave_isa::Generation;
use flipwave_machine::LINE;
use std::fmt::{Display, Write};

/// Location of the first active lane's word.
struct Private {
    /// Address of lane 0's word at the first active lane's offset.
    address: Value,
    /// Offset in bytes of a lane.
    offset: Value,
    /// `true` if compiled code can handle the offset.
    fits: Value,
    /// Per-lane part of the offset.
    per_lane: Option<PerLane>,
}

/// A part of the offset that differs between lanes.
#[derive(Clone, Copy)]
struct PerLane {
    row: RowIndex,
    /// Value of the first active lane.
    first: Value,
    /// `true` if all active lanes have this value.
    is_same: Value,
}

/// The cached window of an access, with the fields of [`Window`](crate::memory::Window), and the
/// distance of the first lane's word from its start.
#[derive(Clone, Copy)]
struct PrivateWindow {
    /// Pointer to all windows.
    windows: Value,
    bytes: Value,
    length: Value,
    is_there: Value,
    start: Value,
    /// Distance of the word from the start of the wave's private memory, and the size of that.
    wave_start: Value,
    wave_length: Value,
}

/// Footprint of private memory.
#[derive(Clone, Copy)]
struct Footprint {
    /// For each line, a bit per byte that need not be recorded again: after reads, and after
    /// writes.
    read: Value,
    written: Value,
    /// Distance of the first lane's word from the first line.
    offset: Value,
    /// `true` if the word begins a line.
    begins_line: Value,
}

impl Emitter<'_> {
    /// Emits a flat access that resolved to non-global memory before.
    pub(in crate::compile::emit) fn non_global_access(
        &mut self,
        index: usize,
        op: &Op,
        access: Access,
    ) {
        match PrivateAccess::of_flat(op, access) {
            Some(access) => self.private(index, op, access),
            None => {
                self.close_loop();
                self.store_scalars();
                self.call_interpreter(index);
            }
        }
    }

    /// Emits an access to private memory.
    pub(in crate::compile::emit) fn private(
        &mut self,
        index: usize,
        op: &Op,
        access: PrivateAccess,
    ) {
        self.close_loop();
        let Run::VectorMemory(VectorAccess { space, .. }) = op.run else { return };
        let private = match space {
            Space::Buffer { .. } => self.in_buffer(op),
            Space::Flat => self.in_window(op),
            _ => self.in_scratch(op),
        };
        self.store_scalars();
        let number = self.number();
        let window = self.private_window(access.direction, private.address);
        let end = self.value(format_args!("add i64 {}, {}", window.start, self.bytes_of(access)));
        let begins_in =
            self.value(format_args!("icmp ule i64 {}, {}", window.start, window.length));
        let ends_in = self.value(format_args!("icmp ule i64 {end}, {}", window.length));
        let is_in = self.all([window.is_there, begins_in, ends_in]);
        let is_same = private.per_lane.map_or(Value::Bit(true), |per_lane| per_lane.is_same);
        let footprint =
            self.variant.footprint.then(|| self.private_footprint(window, private.address));
        let begins_line = footprint.map_or(Value::Bit(true), |footprint| footprint.begins_line);
        let wave_end =
            self.value(format_args!("add i64 {}, {}", window.wave_start, self.bytes_of(access)));
        let begins_in_wave =
            self.value(format_args!("icmp ule i64 {}, {}", window.wave_start, window.wave_length));
        let ends_in_wave =
            self.value(format_args!("icmp ule i64 {wave_end}, {}", window.wave_length));
        let is_in_wave = self.all([begins_in_wave, ends_in_wave]);
        let are_adjacent = self.all([private.fits, is_in, is_in_wave, is_same, begins_line]);
        let otherwise = if private.per_lane.is_some() { "apart" } else { "interpret" };
        let _ = writeln!(
            self.text,
            "  br i1 {are_adjacent}, label %private{number}, label %{otherwise}{number}"
        );
        if let Some(per_lane) = private.per_lane {
            let _ = writeln!(self.text, "apart{number}:");
            let are_in = self.are_in_window(&private, per_lane, window, access);
            let _ = write!(
                self.text,
                "  br i1 {are_in}, label %each{number}, label %interpret{number}\n\
                 each{number}:\n"
            );
            self.move_each(op, access, per_lane, window, footprint);
            let _ = writeln!(self.text, "  br label %accessed{number}");
        }
        let _ = writeln!(self.text, "interpret{number}:");
        let is_out = self.value(format_args!("xor i1 {is_in}, true"));
        let window_missed = self.all([private.fits, is_out]);
        let window_missed = self.value(format_args!("zext i1 {window_missed} to i64"));
        let pointer = self.value(format_args!(
            "getelementptr i8, ptr %frame, i64 {}",
            offset::PRIVATE_WINDOW_MISSED
        ));
        let _ = writeln!(self.text, "  store i64 {window_missed}, ptr {pointer}");
        self.call_interpreter(index);
        let _ = write!(self.text, "  br label %accessed{number}\nprivate{number}:\n");
        if let Some(footprint) = footprint {
            self.record_private(access, footprint, number);
        }
        let at = self
            .value(format_args!("getelementptr i8, ptr {}, i64 {}", window.bytes, window.start));
        for word in 0..access.words.into() {
            self.move_row(access.direction, at, word, data(op, access).plus(word));
        }
        let _ = write!(self.text, "  br label %accessed{number}\naccessed{number}:\n");
        self.label = format!("accessed{number}");
    }

    /// Loads the footprint of private memory.
    fn private_footprint(&mut self, window: PrivateWindow, address: Value) -> Footprint {
        let base = self.field_of(window.windows, offset::PRIVATE_BASE, "i64");
        let read = self.field_of(window.windows, offset::PRIVATE_READ, "ptr");
        let written = self.field_of(window.windows, offset::PRIVATE_WRITTEN, "ptr");
        let offset = self.value(format_args!("sub i64 {address}, {base}"));
        let remainder = self.value(format_args!("and i64 {offset}, {}", LINE - 1));
        let begins_line = self.value(format_args!("icmp eq i64 {remainder}, 0"));
        Footprint { read, written, offset, begins_line }
    }

    /// Records what active lanes with adjacent words touch, unless whole lines are recorded
    /// already.
    fn record_private(&mut self, access: PrivateAccess, footprint: Footprint, number: u32) {
        let lines = self.bytes_of(access) / LINE;
        let line =
            self.value(format_args!("lshr i64 {}, {}", footprint.offset, LINE.trailing_zeros()));
        let mut known = |bits: Value| {
            let at = self.value(format_args!("getelementptr i64, ptr {bits}, i64 {line}"));
            self.value(format_args!("load <{lines} x i64>, ptr {at}, align 8"))
        };
        let mut all = known(footprint.written);
        if access.direction == Direction::Load {
            let read = known(footprint.read);
            all = self.value(format_args!("or <{lines} x i64> {all}, {read}"));
        }
        let all = self.value(format_args!(
            "call i64 @llvm.vector.reduce.and.v{lines}i64(<{lines} x i64> {all})"
        ));
        let are_known = self.value(format_args!("icmp eq i64 {all}, -1"));
        let _ = write!(
            self.text,
            "  br i1 {are_known}, label %recorded{number}, label %note{number}\nnote{number}:\n"
        );
        self.call_record_private(offset::TOUCH_PRIVATE, access, line, "%exec");
        let _ = write!(self.text, "  br label %recorded{number}\nrecorded{number}:\n");
    }

    /// Calls a function that records private memory accesses.
    fn call_record_private(
        &mut self,
        at: usize,
        access: PrivateAccess,
        line: Value,
        lanes: impl Display,
    ) {
        let direction = match access.direction {
            Direction::Load => PRIVATE_LOAD,
            Direction::Store => PRIVATE_STORE,
        };
        let touch = self.field(at, "ptr");
        let words = access.words;
        let _ = writeln!(
            self.text,
            "  call void {touch}(ptr %frame, i64 {direction}, i64 {line}, i64 {words}, i64 {lanes})"
        );
    }

    /// Loads the window slot of an address.
    fn private_window(&mut self, direction: Direction, address: Value) -> PrivateWindow {
        let at = match direction {
            Direction::Load => offset::PRIVATE_LOAD,
            Direction::Store => offset::PRIVATE_STORE,
        };
        let windows = self.field(offset::PRIVATE, "ptr");
        let block = self.value(format_args!("lshr i64 {address}, {PRIVATE_BLOCK}"));
        let slot = self.value(format_args!("and i64 {block}, {}", PRIVATE_WINDOWS - 1));
        let slot = self.value(format_args!("mul i64 {slot}, {}", offset::WINDOW_SIZE));
        let window = self.value(format_args!("getelementptr i8, ptr {windows}, i64 {slot}"));
        let mut field = |field: usize, kind: &str| self.field_of(window, at + field, kind);
        let first = field(offset::WINDOW_BASE, "i64");
        let length = field(offset::WINDOW_LENGTH, "i64");
        let bytes = field(offset::WINDOW_BYTES, "ptr");
        let missing = field(offset::WINDOW_MISSING, "i64");
        let start = self.value(format_args!("sub i64 {address}, {first}"));
        let is_there = self.value(format_args!("icmp eq i64 {missing}, 0"));
        let wave_private = self.field(offset::WAVE_PRIVATE, "i64");
        let wave_start = self.value(format_args!("sub i64 {address}, {wave_private}"));
        let wave_length = self.field(offset::WAVE_PRIVATE_BYTES, "i64");
        PrivateWindow { windows, bytes, length, is_there, start, wave_start, wave_length }
    }

    /// Emits code that tests that the words of all active lanes are aligned and in the first 2 GiB
    /// of the window. The lanes may have different offsets.
    fn are_in_window(
        &mut self,
        private: &Private,
        PerLane { row, first, .. }: PerLane,
        window: PrivateWindow,
        access: PrivateAccess,
    ) -> Value {
        let (w, count) = (self.shape.named("W"), self.shape.lanes());
        let all = self.splat_of(first);
        // Inactive lanes are given the value of the first active one.
        let [mut least, mut most, mut bits] = [all; 3];
        for part in self.parts() {
            let (m, words) = (self.shape.named("M"), self.part_of_row(row, part));
            let active = self.active(part);
            let words = self.value(format_args!("select {m} {active}, {w} {words}, {w} {all}"));
            [least, most] = [("umin", least), ("umax", most)].map(|(which, known)| {
                self.value(format_args!(
                    "call {w} @llvm.{which}.v{count}i32({w} {known}, {w} {words})"
                ))
            });
            bits = self.value(format_args!("or {w} {bits}, {words}"));
        }
        let mut reduced = |which: &str, words: Value| {
            let word = self.value(format_args!(
                "call i32 @llvm.vector.reduce.{which}.v{count}i32({w} {words})"
            ));
            self.value(format_args!("zext i32 {word} to i64"))
        };
        let [least, most] = [reduced("umin", least), reduced("umax", most)];
        let bits = reduced("or", bits);
        let first = self.value(format_args!("zext i32 {first} to i64"));
        let lanes = u64::from(self.machine.lanes);
        let [before, after] =
            [least, most].map(|offset| self.value(format_args!("sub i64 {offset}, {first}")));
        // All values must be multiples of four; with the constant part, the first one is.
        let remainder = self.value(format_args!("and i64 {bits}, 3"));
        let remainder = self.value(format_args!("icmp eq i64 {remainder}, 0"));
        let lowest = self.value(format_args!("add i64 {}, {before}", private.offset));
        let is_low = self.value(format_args!("icmp sge i64 {lowest}, 0"));
        let highest = self.value(format_args!("add i64 {}, {after}", private.offset));
        let is_high = self.value(format_args!("icmp ult i64 {highest}, {}", self.most_offset()));
        let before = self.value(format_args!("mul i64 {before}, {lanes}"));
        let begin = self.value(format_args!("add i64 {}, {before}", window.start));
        let begins_in = self.value(format_args!("icmp sge i64 {begin}, 0"));
        let after = self.value(format_args!("mul i64 {after}, {lanes}"));
        let after = self.value(format_args!("add i64 {after}, {}", self.bytes_of(access)));
        let end = self.value(format_args!("add i64 {}, {after}", window.start));
        let wave_begin = self.value(format_args!("add i64 {}, {before}", window.wave_start));
        let begins_in_wave = self.value(format_args!("icmp sge i64 {wave_begin}, 0"));
        let wave_end = self.value(format_args!("add i64 {}, {after}", window.wave_start));
        let ends_in_wave =
            self.value(format_args!("icmp sle i64 {wave_end}, {}", window.wave_length));
        let is_in_wave = self.all([begins_in_wave, ends_in_wave]);
        let ends_in = self.value(format_args!("icmp ule i64 {end}, {}", window.length));
        let is_near = self.value(format_args!("icmp ule i64 {end}, {}", i32::MAX));
        let is_right = self.all([private.fits, window.is_there, remainder, is_low, is_high]);
        self.all([is_right, begins_in, ends_in, is_near, is_in_wave])
    }

    /// Moves words of lanes with different offsets.
    fn move_each(
        &mut self,
        op: &Op,
        access: PrivateAccess,
        per_lane: PerLane,
        window: PrivateWindow,
        footprint: Option<Footprint>,
    ) {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        let lanes = u32::from(self.machine.lanes);
        // 32-bit sums may wrap, but the final offsets are less than 2^31.
        let start = self.value(format_args!("trunc i64 {} to i32", window.start));
        let first = self.value(format_args!("mul i32 {}, {lanes}", per_lane.first));
        let start = self.value(format_args!("sub i32 {start}, {first}"));
        let start = self.splat_of(start);
        let offsets: Vec<Value> = self
            .parts()
            .map(|part| {
                let words = self.part_of_row(per_lane.row, part);
                let within = self.value(format_args!("mul {w} {words}, {}", Value::Splat(lanes)));
                let within = self.value(format_args!("add {w} {within}, {start}"));
                let places: Vec<String> = (part * count..(part + 1) * count)
                    .map(|lane| format!("i32 {}", lane * 4))
                    .collect();
                self.value(format_args!("add {w} {within}, <{}>", places.join(", ")))
            })
            .collect();
        if let Some(footprint) = footprint {
            self.record_each_private(access, window, footprint, &offsets);
        }
        // Hosts without AVX-512 have no scatter and no masked gather.
        let is_wide = matches!(self.shape, Shape::Sixteen);
        if !is_wide && access.direction == Direction::Store {
            return self.store_each_private(op, access, per_lane, window);
        }
        let active: Vec<Value> = self.parts().map(|part| self.active(part)).collect();
        let offsets: Vec<Value> = if is_wide {
            offsets
        } else {
            std::iter::zip(&active, offsets)
                .map(|(active, offsets)| {
                    self.value(format_args!(
                        "select {m} {active}, {w} {offsets}, {w} zeroinitializer"
                    ))
                })
                .collect()
        };
        for word in 0..access.words.into() {
            let row = data(op, access).plus(word);
            let before = u32::from(word) * lanes * 4;
            let bytes =
                self.value(format_args!("getelementptr i8, ptr {}, i64 {before}", window.bytes));
            for (part, (offsets, active)) in (0..).zip(std::iter::zip(&offsets, &active)) {
                let words = self.part_of_row(row, part);
                let at = self.value(format_args!("getelementptr i8, ptr {bytes}, {w} {offsets}"));
                if access.direction == Direction::Store {
                    let _ = writeln!(
                        self.text,
                        "  call void @llvm.masked.scatter.v{count}i32.v{count}p0({w} {words}, \
                         <{count} x ptr> align 4 {at}, {m} {active})"
                    );
                    continue;
                }
                let gathered = |there: &str| {
                    format!(
                        "call {w} @llvm.masked.gather.v{count}i32.v{count}p0(<{count} x ptr> \
                         align 4 {at}, {m} {there}, {w} {words})"
                    )
                };
                let pointer = self.row_pointer(row, part);
                if is_wide {
                    let new = self.value(format_args!("{}", gathered(&active.to_string())));
                    let _ = writeln!(self.text, "  store {w} {new}, ptr {pointer}, align 4");
                } else {
                    let new = self.value(format_args!("{}", gathered("splat (i1 true)")));
                    self.store_selected(new, words, *active, pointer);
                }
            }
        }
    }

    /// Stores words of lanes with different offsets, in lane order.
    fn store_each_private(
        &mut self,
        op: &Op,
        access: PrivateAccess,
        per_lane: PerLane,
        window: PrivateWindow,
    ) {
        let (number, lanes) = (self.number(), self.machine.lanes);
        let _ = write!(
            self.text,
            "  br label %begin{number}\nbegin{number}:\n  br label %next{number}\n\
             next{number}:\n  \
             %left{number} = phi i64 [ %exec, %begin{number} ], [ %rest{number}, %lane{number} ]\n  \
             %done{number} = icmp eq i64 %left{number}, 0\n  \
             br i1 %done{number}, label %end{number}, label %lane{number}\nlane{number}:\n  \
             %less{number} = sub i64 %left{number}, 1\n  \
             %rest{number} = and i64 %left{number}, %less{number}\n"
        );
        let lane = self.value(format_args!("call i64 @llvm.cttz.i64(i64 %left{number}, i1 true)"));
        let mut in_row = |row| self.word_of_row(row, lane);
        let offset = in_row(per_lane.row);
        let words: Vec<Value> =
            (0..access.words.into()).map(|word| in_row(data(op, access).plus(word))).collect();
        let [offset, first] =
            [offset, per_lane.first].map(|word| self.value(format_args!("zext i32 {word} to i64")));
        let within = self.value(format_args!("sub i64 {offset}, {first}"));
        let within = self.value(format_args!("mul i64 {within}, {lanes}"));
        let within = self.value(format_args!("add i64 {within}, {}", window.start));
        let first =
            self.value(format_args!("getelementptr i8, ptr {}, i64 {within}", window.bytes));
        for (index, word) in (0..).zip(words) {
            let line = index * u32::from(lanes);
            let line = self.value(format_args!("add i64 {lane}, {line}"));
            let at = self.value(format_args!("getelementptr i32, ptr {first}, i64 {line}"));
            let _ = writeln!(self.text, "  store i32 {word}, ptr {at}, align 4");
        }
        let _ = write!(self.text, "  br label %next{number}\nend{number}:\n");
    }

    /// Records what active lanes touch whose first words are at these offsets in the window.
    fn record_each_private(
        &mut self,
        access: PrivateAccess,
        window: PrivateWindow,
        footprint: Footprint,
        offsets: &[Value],
    ) {
        let ([w, m, d], count) = (self.types(["W", "M", "D"]), self.shape.lanes());
        let distance = self.value(format_args!("sub i64 {}, {}", footprint.offset, window.start));
        let distance = self.splat_as(d, "i64", distance);
        for (part, offsets) in (0..).zip(offsets) {
            let offsets = self.value(format_args!("zext {w} {offsets} to {d}"));
            let offsets = self.value(format_args!("add {d} {offsets}, {distance}"));
            let places = self
                .value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::LANE_OFFSETS));
            let _ = writeln!(self.text, "  store {d} {offsets}, ptr {places}, align 8");
            let active = self.active(part);
            let bits = self.value(format_args!("bitcast {m} {active} to i{count}"));
            let lanes = self.value(format_args!("zext i{count} {bits} to i64"));
            self.call_record_private(offset::TOUCH_EACH_PRIVATE, access, Value::Wide(0), lanes);
        }
    }

    /// Offset from which on the interpreter handles the access.
    fn most_offset(&self) -> u32 {
        u32::MAX / (2 * u32::from(self.machine.lanes))
    }

    /// Bytes from the first lane's first word to the last lane's last one.
    fn bytes_of(&self, access: PrivateAccess) -> u64 {
        u64::from(access.words) * u64::from(self.machine.lanes) * 4
    }

    /// Location of a scratch access.
    fn in_scratch(&mut self, op: &Op) -> Private {
        let base = match op.sources[2].words[0] {
            Word::Constant(_) => Value::Word(0),
            word => self.word(word),
        };
        let mut offset = self.value(format_args!("add i32 {base}, {}", op.immediate as i32));
        let per_lane = self.per_lane_offset(op);
        if let Some(PerLane { first, .. }) = per_lane {
            offset = self.value(format_args!("add i32 {offset}, {first}"));
        }
        let remainder = self.value(format_args!("and i32 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i32 {remainder}, 0"));
        let is_small = self.value(format_args!("icmp ult i32 {offset}, {}", self.most_offset()));
        let fits = self.all([is_aligned, is_small]);
        let offset = self.value(format_args!("zext i32 {offset} to i64"));
        Private { address: self.in_wave(offset), offset, fits, per_lane }
    }

    /// Location of a flat access in the private aperture.
    fn in_window(&mut self, op: &Op) -> Private {
        let (per_lane, first) = match self.per_lane_offset(op) {
            Some(per_lane) => (Some(per_lane), per_lane.first),
            None => (None, Value::Word(0)),
        };
        let upper = (aperture::PRIVATE >> 32) as u32;
        let is_private = match op.sources[0].words[1] {
            Word::Row(row) => self.all_have(row, Value::Splat(upper)),
            _ => Value::Bit(false),
        };
        let first = self.value(format_args!("zext i32 {first} to i64"));
        let offset = self.value(format_args!("add i64 {first}, {}", op.immediate));
        let remainder = self.value(format_args!("and i64 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i64 {remainder}, 0"));
        // Negative sums are not small either.
        let is_small = self.value(format_args!("icmp ult i64 {offset}, {}", self.most_offset()));
        let fits = self.all([is_private, is_aligned, is_small]);
        Private { address: self.in_wave(offset), offset, fits, per_lane }
    }

    /// Address of lane 0's word at a 64-bit offset in the wave's private memory.
    fn in_wave(&mut self, offset: Value) -> Value {
        let (first, lanes) = (self.machine.flat_scratch, self.machine.lanes);
        let base = self.wide([first, ScalarIndex(first.0 + 1)].map(Word::Scalar));
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        self.value(format_args!("add i64 {base}, {within}"))
    }

    /// Location of an access to the buffer that describes private memory: a 32-bit sum, which
    /// wraps.
    fn in_buffer(&mut self, op: &Op) -> Private {
        let Resource { base, high, records, flags, .. } = self.resource(op);
        let per_lane = self.per_lane_offset(op);
        let first = per_lane.map_or(Value::Word(0), |per_lane| per_lane.first);
        let offset = self.value(format_args!("add i32 {first}, {}", op.immediate as i32));
        let remainder = self.value(format_args!("and i32 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i32 {remainder}, 0"));
        let offset = self.value(format_args!("zext i32 {offset} to i64"));
        // Swizzled records of all lanes are adjacent, each the record of its lane.
        let is_swizzled = self.value(format_args!("icmp slt i32 {high}, 0"));
        let index_stride = self.machine.lanes.trailing_zeros() - 3;
        let layout = self.value(format_args!("and i32 {flags}, {}", ADD_THREAD | 3 << 21));
        let is_by_lane =
            self.value(format_args!("icmp eq i32 {layout}, {}", ADD_THREAD | index_stride << 21));
        let lanes = u64::from(self.machine.lanes);
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        // From gfx10 on the resource selects the range check; mostly nothing is out of range. On
        // gfx9 nothing is.
        let exists = if self.machine.generation >= Generation::Gfx10 {
            let range = self.value(format_args!("and i32 {flags}, {}", 3 << 28));
            let is_by_none = self.value(format_args!("icmp eq i32 {range}, {}", 2 << 28));
            let are_records = self.value(format_args!("icmp ne i32 {records}, 0"));
            self.all([is_by_none, are_records])
        } else {
            Value::Bit(true)
        };
        let fits = self.all([is_aligned, is_swizzled, is_by_lane, exists]);
        let address = self.value(format_args!("add i64 {base}, {within}"));
        Private { address, offset, fits, per_lane }
    }

    /// Loads the per-lane part of an offset.
    fn per_lane_offset(&mut self, op: &Op) -> Option<PerLane> {
        let Word::Row(row) = op.sources[0].words[0] else { return None };
        let lane = self.value(format_args!("call i64 @llvm.cttz.i64(i64 %exec, i1 false)"));
        let lane = self.value(format_args!("and i64 {lane}, 63"));
        let first = self.word_of_row(row, lane);
        let all = self.splat_of(first);
        Some(PerLane { row, first, is_same: self.all_have(row, all) })
    }

    /// Tests whether a row has the words of a vector in all active lanes.
    fn all_have(&mut self, row: RowIndex, all: Value) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        let mut differing = None;
        for part in self.parts() {
            let words = self.part_of_row(row, part);
            let differs = self.value(format_args!("icmp ne {w} {words}, {all}"));
            let active = self.active(part);
            let differs = self.value(format_args!("and {m} {differs}, {active}"));
            differing = Some(match differing {
                None => differs,
                Some(differing) => self.value(format_args!("or {m} {differing}, {differs}")),
            });
        }
        differing.map_or(Value::Bit(true), |differing| {
            let bits = self.value(format_args!("bitcast {m} {differing} to i{count}"));
            self.value(format_args!("icmp eq i{count} {bits}, 0"))
        })
    }

    /// Broadcasts a word to all lanes of a part.
    fn splat_of(&mut self, word: Value) -> Value {
        self.splat_as(self.shape.named("W"), "i32", word)
    }

    /// Broadcasts a number to a vector type.
    fn splat_as(&mut self, vector: &str, number: &str, value: Value) -> Value {
        let count = self.shape.lanes();
        let one =
            self.value(format_args!("insertelement {vector} poison, {number} {value}, i64 0"));
        self.value(format_args!(
            "shufflevector {vector} {one}, {vector} poison, <{count} x i32> zeroinitializer"
        ))
    }

    /// Moves the active lanes of a row from or to the host address of a word.
    fn move_row(&mut self, direction: Direction, at: Value, word: u16, row: RowIndex) {
        let w = self.shape.named("W");
        for part in self.parts() {
            let at = self.pointer_after(at, word, part);
            let (words, active) = (self.part_of_row(row, part), self.active(part));
            let stored = self.value(format_args!("load {w}, ptr {at}, align 4"));
            match direction {
                Direction::Load => {
                    let pointer = self.row_pointer(row, part);
                    self.store_selected(stored, words, active, pointer);
                }
                Direction::Store => self.store_selected(words, stored, active, at),
            }
        }
    }

    /// Stores `new` in active lanes and `old` in differing.
    fn store_selected(&mut self, new: Value, old: Value, active: Value, pointer: Value) {
        let ([w, m], store) = (self.types(["W", "M"]), self.shape.store_selected());
        let new = self.value(format_args!("select {m} {active}, {w} {new}, {w} {old}"));
        let _ = writeln!(self.text, "  {store} {w} {new}, ptr {pointer}, align 4");
    }

    /// Host address of a part of a word's lanes.
    fn pointer_after(&mut self, at: Value, word: u16, part: u32) -> Value {
        let word = u32::from(word) * u32::from(self.machine.lanes) * 4;
        let after = word + part * self.shape.lanes() * 4;
        self.value(format_args!("getelementptr i8, ptr {at}, i64 {after}"))
    }

    fn all<const COUNT: usize>(&mut self, conditions: [Value; COUNT]) -> Value {
        let [first, differing @ ..] = &conditions[..] else { return Value::Bit(true) };
        differing
            .iter()
            .fold(*first, |all, condition| self.value(format_args!("and i1 {all}, {condition}")))
    }
}

/// First register loaded or stored.
fn data(op: &Op, access: PrivateAccess) -> RowIndex {
    match access.direction {
        Direction::Load => op.destination,
        Direction::Store => op.sources[1].row().unwrap_or(op.destination),
    }
}
