//! Accesses to private memory. Dwords of a lane lie as far apart as a wave has lanes, so that the words of
//! lanes that have the same offset are adjacent; those of others are gathered, or scattered. What is
//! elsewhere than where the last accesses were is left to the interpreter: waves take turns. So is what
//! lies outside the wave's own private memory.

use super::buffer::{ADD_THREAD, Resource};
use crate::compile::access::{Access, Direction, PrivateAccess};
use crate::compile::emit::emitter::Emitter;
use crate::compile::frame::{PRIVATE_LOAD, PRIVATE_STORE, offset};
use crate::compile::value::{Shape, Value};
use crate::compile::workspace::{PRIVATE_BLOCK, PRIVATE_WINDOWS};
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Run, Word};
use crate::memory::{LINE, aperture};
use crate::wave::{RowIndex, ScalarIndex};
use flipwave_isa::Generation;
use std::fmt::{Display, Write};

/// Where the word of the first active lane is.
struct Private {
    /// The address of lane 0's word at the same offset.
    address: Value,
    /// The offset, in bytes of a lane.
    offset: Value,
    /// Whether it is as it should be.
    fits: Value,
    /// What each lane has of its own.
    own: Option<Own>,
}

/// A part of offsets that each lane has of its own.
#[derive(Clone, Copy)]
struct Own {
    row: RowIndex,
    /// The first active lane's.
    first: Value,
    /// Whether all active lanes have that.
    is_same: Value,
}

/// The window that accesses are looked for in, whose fields are those of
/// [`Window`](crate::memory::Window), and how far from its start the first lane's word is.
#[derive(Clone, Copy)]
struct Held {
    /// All windows.
    windows: Value,
    bytes: Value,
    length: Value,
    is_there: Value,
    start: Value,
    /// How far that is from the start of the wave's own private memory, and how many bytes that has.
    own_start: Value,
    own_length: Value,
}

/// Where it is noted what is touched of private memory.
#[derive(Clone, Copy)]
struct Noted {
    /// For each line the bytes that need not be noted any more, a bit each: what was read, and what was
    /// written.
    read: Value,
    written: Value,
    /// How far from the first line the first lane's word is.
    offset: Value,
    /// Whether it begins a line.
    begins_line: Value,
}

impl Emitter<'_> {
    /// Writes a flat access that has led elsewhere than to device memory.
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

    /// Writes an access to private memory.
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
        let held = self.held(access.direction, private.address);
        let end = self.value(format_args!("add i64 {}, {}", held.start, self.bytes_of(access)));
        let begins_in = self.value(format_args!("icmp ule i64 {}, {}", held.start, held.length));
        let ends_in = self.value(format_args!("icmp ule i64 {end}, {}", held.length));
        let is_in = self.all([held.is_there, begins_in, ends_in]);
        let is_same = private.own.map_or(Value::Bit(true), |own| own.is_same);
        let noted = self.variant.footprint.then(|| self.noted_private(held, private.address));
        let begins_line = noted.map_or(Value::Bit(true), |noted| noted.begins_line);
        let own_end =
            self.value(format_args!("add i64 {}, {}", held.own_start, self.bytes_of(access)));
        let begins_in_own =
            self.value(format_args!("icmp ule i64 {}, {}", held.own_start, held.own_length));
        let ends_in_own = self.value(format_args!("icmp ule i64 {own_end}, {}", held.own_length));
        let is_own = self.all([begins_in_own, ends_in_own]);
        let are_adjacent = self.all([private.fits, is_in, is_own, is_same, begins_line]);
        let other = if private.own.is_some() { "apart" } else { "elsewhere" };
        let _ = writeln!(
            self.text,
            "  br i1 {are_adjacent}, label %private{number}, label %{other}{number}"
        );
        if let Some(own) = private.own {
            let _ = writeln!(self.text, "apart{number}:");
            let are_in = self.are_in(&private, own, held, access);
            let _ = write!(
                self.text,
                "  br i1 {are_in}, label %each{number}, label %elsewhere{number}\n\
                 each{number}:\n"
            );
            self.move_each(op, access, (own, held), noted);
            let _ = writeln!(self.text, "  br label %accessed{number}");
        }
        let _ = writeln!(self.text, "elsewhere{number}:");
        let is_out = self.value(format_args!("xor i1 {is_in}, true"));
        let lacks = self.all([private.fits, is_out]);
        let lacks = self.value(format_args!("zext i1 {lacks} to i64"));
        let pointer = self.value(format_args!(
            "getelementptr i8, ptr %frame, i64 {}",
            offset::PRIVATE_WINDOW_MISSED
        ));
        let _ = writeln!(self.text, "  store i64 {lacks}, ptr {pointer}");
        self.call_interpreter(index);
        let _ = write!(self.text, "  br label %accessed{number}\nprivate{number}:\n");
        if let Some(noted) = noted {
            self.note_private(access, noted, number);
        }
        let at =
            self.value(format_args!("getelementptr i8, ptr {}, i64 {}", held.bytes, held.start));
        for word in 0..access.words.into() {
            self.move_row(access.direction, (at, word), data(op, access).plus(word));
        }
        let _ = write!(self.text, "  br label %accessed{number}\naccessed{number}:\n");
        self.label = format!("accessed{number}");
    }

    /// Where it is noted what is touched of private memory, if some is known.
    fn noted_private(&mut self, held: Held, address: Value) -> Noted {
        let base = self.field_of(held.windows, offset::PRIVATE_BASE, "i64");
        let read = self.field_of(held.windows, offset::PRIVATE_READ, "ptr");
        let written = self.field_of(held.windows, offset::PRIVATE_WRITTEN, "ptr");
        let offset = self.value(format_args!("sub i64 {address}, {base}"));
        let rest = self.value(format_args!("and i64 {offset}, {}", LINE - 1));
        let begins_line = self.value(format_args!("icmp eq i64 {rest}, 0"));
        Noted { read, written, offset, begins_line }
    }

    /// Notes what active lanes touch whose words are side by side, unless that is known of whole lines.
    fn note_private(&mut self, access: PrivateAccess, noted: Noted, number: u32) {
        let lines = self.bytes_of(access) / LINE;
        let line = self.value(format_args!("lshr i64 {}, {}", noted.offset, LINE.trailing_zeros()));
        let mut known = |of: Value| {
            let at = self.value(format_args!("getelementptr i64, ptr {of}, i64 {line}"));
            self.value(format_args!("load <{lines} x i64>, ptr {at}, align 8"))
        };
        let mut all = known(noted.written);
        if access.direction == Direction::Load {
            let read = known(noted.read);
            all = self.value(format_args!("or <{lines} x i64> {all}, {read}"));
        }
        let all = self.value(format_args!(
            "call i64 @llvm.vector.reduce.and.v{lines}i64(<{lines} x i64> {all})"
        ));
        let are_known = self.value(format_args!("icmp eq i64 {all}, -1"));
        let _ = write!(
            self.text,
            "  br i1 {are_known}, label %noted{number}, label %note{number}\nnote{number}:\n"
        );
        self.touch_private(offset::TOUCH_PRIVATE, access, line, "%exec");
        let _ = write!(self.text, "  br label %noted{number}\nnoted{number}:\n");
    }

    /// Calls what notes that lanes touch private memory.
    fn touch_private(
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

    /// The window that an address may be in.
    fn held(&mut self, direction: Direction, address: Value) -> Held {
        let at = match direction {
            Direction::Load => offset::PRIVATE_LOAD,
            Direction::Store => offset::PRIVATE_STORE,
        };
        let windows = self.field(offset::PRIVATE, "ptr");
        let block = self.value(format_args!("lshr i64 {address}, {PRIVATE_BLOCK}"));
        let slot = self.value(format_args!("and i64 {block}, {}", PRIVATE_WINDOWS - 1));
        let slot = self.value(format_args!("mul i64 {slot}, {}", offset::WINDOW_SIZE));
        let window = self.value(format_args!("getelementptr i8, ptr {windows}, i64 {slot}"));
        let mut field = |of: usize, kind: &str| self.field_of(window, at + of, kind);
        let first = field(offset::WINDOW_BASE, "i64");
        let length = field(offset::WINDOW_LENGTH, "i64");
        let bytes = field(offset::WINDOW_BYTES, "ptr");
        let missing = field(offset::WINDOW_MISSING, "i64");
        let start = self.value(format_args!("sub i64 {address}, {first}"));
        let is_there = self.value(format_args!("icmp eq i64 {missing}, 0"));
        let own = self.field(offset::WAVE_PRIVATE, "i64");
        let own_start = self.value(format_args!("sub i64 {address}, {own}"));
        let own_length = self.field(offset::WAVE_PRIVATE_BYTES, "i64");
        Held { windows, bytes, length, is_there, start, own_start, own_length }
    }

    /// Whether the words of all active lanes, whose offsets differ, are in the window, the first 2 GiB
    /// of it.
    fn are_in(
        &mut self,
        private: &Private,
        Own { row, first, .. }: Own,
        held: Held,
        access: PrivateAccess,
    ) -> Value {
        let (w, count) = (self.shape.named("W"), self.shape.lanes());
        let all = self.splat_of(first);
        // Lanes that are not active count as the first one.
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
            [least, most].map(|own| self.value(format_args!("sub i64 {own}, {first}")));
        // All are multiples of four, as the first one is with what is added to it.
        let rest = self.value(format_args!("and i64 {bits}, 3"));
        let rest = self.value(format_args!("icmp eq i64 {rest}, 0"));
        let lowest = self.value(format_args!("add i64 {}, {before}", private.offset));
        let is_low = self.value(format_args!("icmp sge i64 {lowest}, 0"));
        let highest = self.value(format_args!("add i64 {}, {after}", private.offset));
        let is_high = self.value(format_args!("icmp ult i64 {highest}, {}", self.most_offset()));
        let before = self.value(format_args!("mul i64 {before}, {lanes}"));
        let begin = self.value(format_args!("add i64 {}, {before}", held.start));
        let begins_in = self.value(format_args!("icmp sge i64 {begin}, 0"));
        let after = self.value(format_args!("mul i64 {after}, {lanes}"));
        let after = self.value(format_args!("add i64 {after}, {}", self.bytes_of(access)));
        let end = self.value(format_args!("add i64 {}, {after}", held.start));
        let own_begin = self.value(format_args!("add i64 {}, {before}", held.own_start));
        let begins_in_own = self.value(format_args!("icmp sge i64 {own_begin}, 0"));
        let own_end = self.value(format_args!("add i64 {}, {after}", held.own_start));
        let ends_in_own = self.value(format_args!("icmp sle i64 {own_end}, {}", held.own_length));
        let is_own = self.all([begins_in_own, ends_in_own]);
        let ends_in = self.value(format_args!("icmp ule i64 {end}, {}", held.length));
        let is_near = self.value(format_args!("icmp ule i64 {end}, {}", i32::MAX));
        let is_right = self.all([private.fits, held.is_there, rest, is_low, is_high]);
        self.all([is_right, begins_in, ends_in, is_near, is_own])
    }

    /// Moves the words of lanes whose offsets differ.
    fn move_each(
        &mut self,
        op: &Op,
        access: PrivateAccess,
        (own, held): (Own, Held),
        noted: Option<Noted>,
    ) {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
        let lanes = u32::from(self.machine.lanes);
        // Numbers of 32 bits wrap on the way to what is less than 2^31.
        let start = self.value(format_args!("trunc i64 {} to i32", held.start));
        let first = self.value(format_args!("mul i32 {}, {lanes}", own.first));
        let start = self.value(format_args!("sub i32 {start}, {first}"));
        let start = self.splat_of(start);
        let offsets: Vec<Value> = self
            .parts()
            .map(|part| {
                let words = self.part_of_row(own.row, part);
                let within = self.value(format_args!("mul {w} {words}, {}", Value::Splat(lanes)));
                let within = self.value(format_args!("add {w} {within}, {start}"));
                let places: Vec<String> = (part * count..(part + 1) * count)
                    .map(|lane| format!("i32 {}", lane * 4))
                    .collect();
                self.value(format_args!("add {w} {within}, <{}>", places.join(", ")))
            })
            .collect();
        if let Some(noted) = noted {
            self.note_each_private(access, (held, noted), &offsets);
        }
        // Hosts without AVX-512 scatter nothing, and gather what all lanes have.
        let is_wide = matches!(self.shape, Shape::Sixteen);
        if !is_wide && access.direction == Direction::Store {
            return self.store_each_private(op, access, (own, held));
        }
        let active: Vec<Value> = self.parts().map(|part| self.active(part)).collect();
        let offsets: Vec<Value> = match is_wide {
            true => offsets,
            false => std::iter::zip(&active, offsets)
                .map(|(active, offsets)| {
                    let own = format_args!("{w} {offsets}, {w} zeroinitializer");
                    self.value(format_args!("select {m} {active}, {own}"))
                })
                .collect(),
        };
        for word in 0..access.words.into() {
            let row = data(op, access).plus(word);
            let before = u32::from(word) * lanes * 4;
            let bytes =
                self.value(format_args!("getelementptr i8, ptr {}, i64 {before}", held.bytes));
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
                    self.store_selected((new, words, *active), pointer);
                }
            }
        }
    }

    /// Stores words of lanes whose offsets differ, one active lane after the other.
    fn store_each_private(&mut self, op: &Op, access: PrivateAccess, (own, held): (Own, Held)) {
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
        let offset = in_row(own.row);
        let words: Vec<Value> =
            (0..access.words.into()).map(|word| in_row(data(op, access).plus(word))).collect();
        let [offset, first] =
            [offset, own.first].map(|own| self.value(format_args!("zext i32 {own} to i64")));
        let within = self.value(format_args!("sub i64 {offset}, {first}"));
        let within = self.value(format_args!("mul i64 {within}, {lanes}"));
        let within = self.value(format_args!("add i64 {within}, {}", held.start));
        let first = self.value(format_args!("getelementptr i8, ptr {}, i64 {within}", held.bytes));
        for (index, word) in (0..).zip(words) {
            let line = index * u32::from(lanes);
            let line = self.value(format_args!("add i64 {lane}, {line}"));
            let at = self.value(format_args!("getelementptr i32, ptr {first}, i64 {line}"));
            let _ = writeln!(self.text, "  store i32 {word}, ptr {at}, align 4");
        }
        let _ = write!(self.text, "  br label %next{number}\nend{number}:\n");
    }

    /// Notes what active lanes touch whose first words are at these offsets in the window.
    fn note_each_private(
        &mut self,
        access: PrivateAccess,
        (held, noted): (Held, Noted),
        offsets: &[Value],
    ) {
        let ([w, m, d], count) = (self.types(["W", "M", "D"]), self.shape.lanes());
        let window = self.value(format_args!("sub i64 {}, {}", noted.offset, held.start));
        let window = self.splat_as((d, "i64"), window);
        for (part, offsets) in (0..).zip(offsets) {
            let offsets = self.value(format_args!("zext {w} {offsets} to {d}"));
            let offsets = self.value(format_args!("add {d} {offsets}, {window}"));
            let places = self
                .value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::LANE_OFFSETS));
            let _ = writeln!(self.text, "  store {d} {offsets}, ptr {places}, align 8");
            let active = self.active(part);
            let bits = self.value(format_args!("bitcast {m} {active} to i{count}"));
            let lanes = self.value(format_args!("zext i{count} {bits} to i64"));
            self.touch_private(offset::TOUCH_EACH_PRIVATE, access, Value::Wide(0), lanes);
        }
    }

    /// Offsets from which on they are left to the interpreter.
    fn most_offset(&self) -> u32 {
        u32::MAX / (2 * u32::from(self.machine.lanes))
    }

    /// Bytes from the first lane's first word to the last lane's last one.
    fn bytes_of(&self, access: PrivateAccess) -> u64 {
        u64::from(access.words) * u64::from(self.machine.lanes) * 4
    }

    /// An offset in the lanes' private memory.
    fn in_scratch(&mut self, op: &Op) -> Private {
        let base = match op.sources[2].words[0] {
            Word::Constant(_) => Value::Word(0),
            word => self.word(word),
        };
        let mut offset = self.value(format_args!("add i32 {base}, {}", op.immediate as i32));
        let own = self.own(op);
        if let Some(Own { first, .. }) = own {
            offset = self.value(format_args!("add i32 {offset}, {first}"));
        }
        let rest = self.value(format_args!("and i32 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i32 {rest}, 0"));
        let is_small = self.value(format_args!("icmp ult i32 {offset}, {}", self.most_offset()));
        let fits = self.all([is_aligned, is_small]);
        let offset = self.value(format_args!("zext i32 {offset} to i64"));
        Private { address: self.in_wave(offset), offset, fits, own }
    }

    /// A flat address in the window that leads to private memory.
    fn in_window(&mut self, op: &Op) -> Private {
        let (own, first) = match self.own(op) {
            Some(own) => (Some(own), own.first),
            None => (None, Value::Word(0)),
        };
        let upper = (aperture::PRIVATE >> 32) as u32;
        let is_private = match op.sources[0].words[1] {
            Word::Row(row) => self.all_have(row, Value::Splat(upper)),
            _ => Value::Bit(false),
        };
        let first = self.value(format_args!("zext i32 {first} to i64"));
        let offset = self.value(format_args!("add i64 {first}, {}", op.immediate));
        let rest = self.value(format_args!("and i64 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i64 {rest}, 0"));
        // Sums that are less than zero are not small either.
        let is_small = self.value(format_args!("icmp ult i64 {offset}, {}", self.most_offset()));
        let fits = self.all([is_private, is_aligned, is_small]);
        Private { address: self.in_wave(offset), offset, fits, own }
    }

    /// The address of lane 0's word at an offset of 64 bits in the wave's private memory.
    fn in_wave(&mut self, offset: Value) -> Value {
        let (first, lanes) = (self.machine.flat_scratch, self.machine.lanes);
        let base = self.wide([first, ScalarIndex(first.0 + 1)].map(Word::Scalar));
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        self.value(format_args!("add i64 {base}, {within}"))
    }

    /// An offset in the buffer that private memory is described as: a sum of 32 bits, which wraps.
    fn in_buffer(&mut self, op: &Op) -> Private {
        let Resource { base, high, records, flags, .. } = self.resource(op);
        let own = self.own(op);
        let first = own.map_or(Value::Word(0), |own| own.first);
        let offset = self.value(format_args!("add i32 {first}, {}", op.immediate as i32));
        let rest = self.value(format_args!("and i32 {offset}, 3"));
        let is_aligned = self.value(format_args!("icmp eq i32 {rest}, 0"));
        let offset = self.value(format_args!("zext i32 {offset} to i64"));
        // Words of records side by side, as many as there are lanes, each the record of its lane.
        let is_swizzled = self.value(format_args!("icmp slt i32 {high}, 0"));
        let index_stride = self.machine.lanes.trailing_zeros() - 3;
        let layout = self.value(format_args!("and i32 {flags}, {}", ADD_THREAD | 3 << 21));
        let is_by_lane =
            self.value(format_args!("icmp eq i32 {layout}, {}", ADD_THREAD | index_stride << 21));
        let lanes = u64::from(self.machine.lanes);
        let within = self.value(format_args!("mul i64 {offset}, {lanes}"));
        // From gfx10 on it is chosen what is out of range; mostly it is nothing. On gfx9 nothing is.
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
        Private { address, offset, fits, own }
    }

    /// What lanes have of an offset for themselves.
    fn own(&mut self, op: &Op) -> Option<Own> {
        let Word::Row(row) = op.sources[0].words[0] else { return None };
        let lane = self.value(format_args!("call i64 @llvm.cttz.i64(i64 %exec, i1 false)"));
        let lane = self.value(format_args!("and i64 {lane}, 63"));
        let first = self.word_of_row(row, lane);
        let all = self.splat_of(first);
        Some(Own { row, first, is_same: self.all_have(row, all) })
    }

    /// Whether a row has the same word in all active lanes as a vector has.
    fn all_have(&mut self, row: RowIndex, all: Value) -> Value {
        let ([w, m], count) = (self.types(["W", "M"]), self.shape.lanes());
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
        others.map_or(Value::Bit(true), |others| {
            let bits = self.value(format_args!("bitcast {m} {others} to i{count}"));
            self.value(format_args!("icmp eq i{count} {bits}, 0"))
        })
    }

    /// A word in all lanes of a part.
    fn splat_of(&mut self, word: Value) -> Value {
        self.splat_as((self.shape.named("W"), "i32"), word)
    }

    /// A number in all lanes of a vector of such.
    fn splat_as(&mut self, (vector, number): (&str, &str), own: Value) -> Value {
        let count = self.shape.lanes();
        let one = self.value(format_args!("insertelement {vector} poison, {number} {own}, i64 0"));
        self.value(format_args!(
            "shufflevector {vector} {one}, {vector} poison, <{count} x i32> zeroinitializer"
        ))
    }

    /// Moves the active lanes of a row from or to the host's address, so many words after it.
    fn move_row(&mut self, direction: Direction, (at, word): (Value, u16), row: RowIndex) {
        let w = self.shape.named("W");
        for part in self.parts() {
            let at = self.pointer_after(at, word, part);
            let (own, active) = (self.part_of_row(row, part), self.active(part));
            let there = self.value(format_args!("load {w}, ptr {at}, align 4"));
            match direction {
                Direction::Load => {
                    let pointer = self.row_pointer(row, part);
                    self.store_selected((there, own, active), pointer);
                }
                Direction::Store => self.store_selected((own, there, active), at),
            }
        }
    }

    /// Stores words to where others are, of active lanes.
    fn store_selected(&mut self, (new, old, active): (Value, Value, Value), pointer: Value) {
        let ([w, m], store) = (self.types(["W", "M"]), self.shape.store_selected());
        let new = self.value(format_args!("select {m} {active}, {w} {new}, {w} {old}"));
        let _ = writeln!(self.text, "  {store} {w} {new}, ptr {pointer}, align 4");
    }

    /// Where the words of a part's lanes are.
    fn pointer_after(&mut self, at: Value, word: u16, part: u32) -> Value {
        let word = u32::from(word) * u32::from(self.machine.lanes) * 4;
        let after = word + part * self.shape.lanes() * 4;
        self.value(format_args!("getelementptr i8, ptr {at}, i64 {after}"))
    }

    fn all<const COUNT: usize>(&mut self, conditions: [Value; COUNT]) -> Value {
        let [first, rest @ ..] = &conditions[..] else { return Value::Bit(true) };
        rest.iter().fold(*first, |all, own| self.value(format_args!("and i1 {all}, {own}")))
    }
}

/// The first register of what is loaded or stored.
fn data(op: &Op, access: PrivateAccess) -> RowIndex {
    match access.direction {
        Direction::Load => op.destination,
        Direction::Store => op.sources[1].row().unwrap_or(op.destination),
    }
}
