//! Loads and stores.
//!
//! Compiled code accesses local memory at addresses that lanes share, the kernel's arguments, and the part of
//! shared or device memory that a window shows. The interpreter executes all other accesses, among them those
//! that fault: it finds the window for the next time.

use super::Emitter;
use super::lanes::{is_destination, is_source};
use super::value::{Value, vector};
use crate::compile::frame::offset;
use crate::memory::Window;
use crate::program::{Destination, MemoryAccess, MemorySpace, MemoryValue, Source};
use std::mem::offset_of;

/// Lanes that one vector of the host holds: accesses are emitted for each half of a wave.
const HALF: usize = 16;

/// Largest access of a lane in bytes. Pages have at least as many.
const MOST_BYTES: u64 = 16;

/// A part of memory in contiguous host memory.
struct Place {
    /// Host address of the first byte.
    bytes: String,
    /// Offset of each lane's access; zero in lanes that do not execute the instruction.
    offsets: Value,
    /// Label of the code that lets the interpreter execute the instruction.
    slow: String,
}

/// A half of a wave.
struct HalfPlace {
    half: usize,
    bytes: String,
    /// Names of vectors with 16 lanes.
    offsets: String,
    mask: String,
    mask_bits: String,
}

impl Emitter<'_> {
    /// Loads values; returns `false` for accesses that only the interpreter executes.
    pub(super) fn load(
        &mut self,
        at: usize,
        access: &MemoryAccess,
        values: &[(MemoryValue, Destination)],
    ) -> bool {
        let bits = |value: &MemoryValue| 8 * value.bytes as u32;
        // The sign of narrow values reaches the whole register.
        let is_written = |(value, to): &(MemoryValue, Destination)| {
            value.bytes <= 8 && is_destination(*to, 64) && bits(value) >= 8
        };
        if access.bytes > MOST_BYTES || !values.iter().all(is_written) {
            return false;
        }
        match (access.space, access.base) {
            (MemorySpace::Local, Source::Frame(start)) => {
                let Some(start) = self.local_offset(access, start) else { return false };
                for (value, destination) in values {
                    let loaded = self.load_local(start + value.offset, value.bytes);
                    let loaded = self.resized(loaded, 64, value.is_signed);
                    self.set_loaded(*destination, loaded);
                }
                true
            }
            (MemorySpace::Arguments, Source::Constant(start)) => {
                let start = start.wrapping_add(access.offset as u64);
                if !start.is_multiple_of(access.bytes) || start > u64::from(u32::MAX) {
                    return false;
                }
                self.load_arguments(at, start, access, values);
                true
            }
            (MemorySpace::Shared | MemorySpace::Global | MemorySpace::Generic, base)
                if is_source(base, 64) =>
            {
                self.load_vectors(at, access, values);
                true
            }
            _ => false,
        }
    }

    /// Stores values; returns `false` for accesses that only the interpreter executes.
    pub(super) fn store(
        &mut self,
        at: usize,
        access: &MemoryAccess,
        values: &[(MemoryValue, Source)],
    ) -> bool {
        let is_read =
            |(value, source): &(MemoryValue, Source)| value.bytes <= 8 && is_source(*source, 64);
        if access.bytes > MOST_BYTES || !values.iter().all(is_read) {
            return false;
        }
        match (access.space, access.base) {
            (MemorySpace::Local, Source::Frame(start)) => {
                let Some(start) = self.local_offset(access, start) else { return false };
                for (value, source) in values {
                    let stored = self.operand(*source, 8 * value.bytes as u32);
                    self.store_local(start + value.offset, stored);
                }
                true
            }
            (MemorySpace::Shared | MemorySpace::Global | MemorySpace::Generic, base)
                if is_source(base, 64) =>
            {
                self.store_vectors(at, access, values);
                true
            }
            _ => false,
        }
    }

    /// Offset of an access in the frame of the function, if it is inside and aligned.
    fn local_offset(&self, access: &MemoryAccess, start: u64) -> Option<u64> {
        let start = start.checked_add_signed(access.offset)?;
        let function = &self.program.code.functions[self.region[0].function];
        let is_inside = start + access.bytes <= function.frame_bytes;
        (is_inside && start.is_multiple_of(access.bytes)).then_some(start)
    }

    fn load_local(&mut self, start: u64, bytes: u64) -> Value {
        let row = (start / 4) as usize;
        let low = self.load_local_row(row);
        if bytes == 8 {
            let high = self.load_local_row(row + 1);
            return self.joined(low, high);
        }
        let shift = 8 * (start % 4);
        let value = self.value(32, format_args!("lshr <32 x i32> {low}, splat (i32 {shift})"));
        self.resized(value, 8 * bytes as u32, false)
    }

    fn load_local_row(&mut self, row: usize) -> Value {
        let pointer = self.row_pointer("local", row);
        self.value(32, format_args!("load <32 x i32>, ptr {pointer}, align 64"))
    }

    fn store_local(&mut self, start: u64, value: Value) {
        let (row, mask) = ((start / 4) as usize, self.mask());
        match value.bits() {
            64 => {
                let (low, high) = self.split(value);
                self.store_row_in("local", row, low, mask);
                self.store_row_in("local", row + 1, high, mask);
            }
            32 => self.store_row_in("local", row, value, mask),
            bits => {
                let shift = 8 * (start % 4);
                let kept = !(((1u32 << bits) - 1) << shift) as i32;
                let old = self.load_local_row(row);
                let old = self.value(32, format_args!("and <32 x i32> {old}, splat (i32 {kept})"));
                let value = self.resized(value, 32, false);
                let value =
                    self.value(32, format_args!("shl <32 x i32> {value}, splat (i32 {shift})"));
                let value = self.value(32, format_args!("or <32 x i32> {old}, {value}"));
                self.store_row_in("local", row, value, mask);
            }
        }
    }

    /// Writes a loaded value, extended to 64 bits.
    fn set_loaded(&mut self, destination: Destination, value: Value) {
        let value = match destination {
            Destination::Word { .. } => self.resized(value, 32, false),
            _ => value,
        };
        self.set(destination, value);
    }

    /// Loads arguments of the kernel, which all lanes share.
    fn load_arguments(
        &mut self,
        at: usize,
        start: u64,
        access: &MemoryAccess,
        values: &[(MemoryValue, Destination)],
    ) {
        self.flush();
        let length = self.field("i64", offset::ARGUMENTS_LENGTH);
        let end = start + access.bytes;
        let is_inside = self.scalar(format_args!("icmp uge i64 {length}, {end}"));
        let slow = format!("slow{}", self.name());
        let fast = format!("fast{}", self.name());
        self.line(format_args!("br i1 {is_inside}, label %{fast}, label %{slow}"));
        self.begin(fast);
        let arguments = self.field("ptr", offset::ARGUMENTS);
        let mut loaded = Vec::new();
        for (value, _) in values {
            let (bits, at) = (8 * value.bytes as u32, start + value.offset);
            let place = self.scalar(format_args!("getelementptr i8, ptr {arguments}, i64 {at}"));
            let scalar = self.scalar(format_args!("load i{bits}, ptr {place}, align 1"));
            loaded.push(self.splat(bits, &scalar));
        }
        self.join_loaded(at, &slow, values, loaded);
    }

    /// Continues after a fast load and the interpreter's.
    fn join_loaded(
        &mut self,
        at: usize,
        slow: &str,
        values: &[(MemoryValue, Destination)],
        loaded: Vec<Value>,
    ) {
        let join = format!("join{}", self.name());
        let extended: Vec<Value> = values
            .iter()
            .zip(loaded)
            .map(|((value, to), loaded)| {
                let loaded = self.resized(loaded, 64, value.is_signed);
                match to {
                    Destination::Pair(_) => loaded,
                    Destination::Word { bits, .. } => {
                        let loaded = self.resized(loaded, *bits, false);
                        self.resized(loaded, 32, false)
                    }
                    _ => self.resized(loaded, 32, false),
                }
            })
            .collect();
        let fast = self.label.clone();
        self.line(format_args!("br label %{join}"));
        self.begin(slow.to_owned());
        self.call_interpreter(at);
        // The interpreter has written the registers.
        let reloaded: Vec<Value> = values
            .iter()
            .map(|(_, to)| match to {
                Destination::Word { word, .. } => self.load_row("words", *word),
                Destination::Pair(word) => {
                    let low = self.load_row("words", *word);
                    let high = self.load_row("words", word + 1);
                    self.joined(low, high)
                }
                _ => Value::Constant { value: 0, bits: 32 },
            })
            .collect();
        let slow = self.label.clone();
        self.line(format_args!("br label %{join}"));
        self.begin(join);
        let mut joined = Vec::new();
        for (fast_value, slow_value) in extended.into_iter().zip(reloaded) {
            let kind = vector(fast_value.bits());
            joined.push(self.value(
                fast_value.bits(),
                format_args!("phi {kind} [ {fast_value}, %{fast} ], [ {slow_value}, %{slow} ]"),
            ));
        }
        for ((_, to), value) in values.iter().zip(joined) {
            match to {
                Destination::Word { word, .. } | Destination::Pair(word) => {
                    self.set_words(*word, value);
                }
                _ => {}
            }
        }
    }

    /// Finds the memory of an access: branches to the slow code if a lane's address is misaligned or not in the
    /// window.
    fn place(&mut self, at: usize, access: &MemoryAccess) -> Place {
        let address = self.operand(access.base, 64);
        // A fault, or the interpreter, needs the registers as they are before the instruction.
        self.flush();
        let (base, length, bytes) = match access.space {
            MemorySpace::Shared => ("0".to_owned(), "%shared.length".into(), "%shared".into()),
            _ => {
                let start = self.blocks.sites[at] * size_of::<Window>();
                let mut field = |kind: &str, at: usize| {
                    let place = self
                        .scalar(format_args!("getelementptr i8, ptr %windows, i64 {}", start + at));
                    self.scalar(format_args!("load {kind}, ptr {place}, align 8"))
                };
                let base = field("i64", offset_of!(Window, base));
                let length = field("i64", offset_of!(Window, length));
                (base, length, field("ptr", offset_of!(Window, bytes)))
            }
        };
        let start = self.scalar(format_args!("sub i64 {base}, {}", access.offset));
        let start = self.splat(64, &start);
        let offsets = self.value(64, format_args!("sub <32 x i64> {address}, {start}"));
        // Rotated, misaligned offsets exceed every length.
        let shift = access.bytes.trailing_zeros();
        let count = self.scalar(format_args!("lshr i64 {length}, {shift}"));
        let count = self.splat(64, &count);
        let elements = self.value(
            64,
            format_args!(
                "call <32 x i64> @llvm.fshr.v32i64(<32 x i64> {offsets}, <32 x i64> {offsets}, \
                 <32 x i64> splat (i64 {shift}))"
            ),
        );
        let is_outside = self.value(1, format_args!("icmp uge <32 x i64> {elements}, {count}"));
        let mask = self.mask();
        let outside = self.value(1, format_args!("and <32 x i1> {is_outside}, {mask}"));
        let outside = self.scalar(format_args!("bitcast <32 x i1> {outside} to i32"));
        let is_slow = self.scalar(format_args!("icmp ne i32 {outside}, 0"));
        let number = self.name();
        let (slow, fast) = (format!("slow{number}"), format!("fast{number}"));
        self.line(format_args!("br i1 {is_slow}, label %{slow}, label %{fast}, !prof !0"));
        self.begin(fast);
        if access.space != MemorySpace::Shared {
            self.record(at, access, address);
        }
        let offsets = self.resized(offsets, 32, false);
        let offsets = self.value(
            32,
            format_args!(
                "select <32 x i1> {mask}, <32 x i32> {offsets}, <32 x i32> zeroinitializer"
            ),
        );
        Place { bytes, offsets, slow }
    }

    /// Records an access to device memory, if accesses are recorded.
    fn record(&mut self, at: usize, access: &MemoryAccess, address: Value) {
        let records = self.field("i64", offset::RECORDS);
        let is_recorded = self.scalar(format_args!("icmp ne i64 {records}, 0"));
        let number = self.name();
        self.line(format_args!(
            "br i1 {is_recorded}, label %record{number}, label %access{number}, !prof !0"
        ));
        self.begin(format!("record{number}"));
        let address =
            self.value(64, format_args!("add <32 x i64> {address}, splat (i64 {})", access.offset));
        let addresses = self.field("ptr", offset::ADDRESSES);
        self.line(format_args!("store <32 x i64> {address}, ptr {addresses}, align 8"));
        let mask = self.mask();
        let lanes = self.scalar(format_args!("bitcast <32 x i1> {mask} to i32"));
        let touch = self.field("ptr", offset::TOUCH);
        self.line(format_args!("call void {touch}(ptr %frame, i32 {at}, i32 {lanes})"));
        self.line(format_args!("br label %access{number}"));
        self.begin(format!("access{number}"));
    }

    /// Half of the lanes of an access.
    fn half(&mut self, place: &Place, half: usize) -> HalfPlace {
        let (offsets, mask) = (place.offsets, self.mask());
        let lanes: Vec<String> =
            (half * HALF..(half + 1) * HALF).map(|lane| format!("i32 {lane}")).collect();
        let lanes = lanes.join(", ");
        let offsets = self.scalar(format_args!(
            "shufflevector <32 x i32> {offsets}, <32 x i32> poison, <16 x i32> <{lanes}>"
        ));
        let bits = self.scalar(format_args!("bitcast <32 x i1> {mask} to i32"));
        let bits = self.scalar(format_args!("lshr i32 {bits}, {}", half * HALF));
        let mask_bits = self.scalar(format_args!("trunc i32 {bits} to i16"));
        let mask = self.scalar(format_args!("bitcast i16 {mask_bits} to <16 x i1>"));
        HalfPlace { half, bytes: place.bytes.clone(), offsets, mask, mask_bits }
    }

    /// For each step, a condition that is true if the offsets of consecutive executing lanes differ by it; and the
    /// host address of the first lane.
    fn steps(&mut self, place: &HalfPlace, steps: [u64; 2]) -> ([String; 2], String) {
        let HalfPlace { offsets, mask, .. } = place;
        let first = self.scalar(format_args!("extractelement <16 x i32> {offsets}, i64 0"));
        let all = self.scalar(format_args!("insertelement <16 x i32> poison, i32 {first}, i64 0"));
        let all = self.scalar(format_args!(
            "shufflevector <16 x i32> {all}, <16 x i32> poison, <16 x i32> zeroinitializer"
        ));
        let distance = self.scalar(format_args!("sub <16 x i32> {offsets}, {all}"));
        let are = steps.map(|step| {
            let expected: Vec<String> =
                (0..HALF as u64).map(|lane| format!("i32 {}", lane * step)).collect();
            let differ = self
                .scalar(format_args!("icmp ne <16 x i32> {distance}, <{}>", expected.join(", ")));
            let differ = self.scalar(format_args!("and <16 x i1> {differ}, {mask}"));
            let differ = self.scalar(format_args!("bitcast <16 x i1> {differ} to i16"));
            self.scalar(format_args!("icmp eq i16 {differ}, 0"))
        });
        let first = self.scalar(format_args!("zext i32 {first} to i64"));
        let at = self.scalar(format_args!("getelementptr i8, ptr {}, i64 {first}", place.bytes));
        (are, at)
    }

    /// Host address per lane of a half, for a part of the access.
    fn pointers(&mut self, place: &HalfPlace, at: u64) -> String {
        let base = self.scalar(format_args!("getelementptr i8, ptr {}, i64 {at}", place.bytes));
        self.scalar(format_args!("getelementptr i8, ptr {base}, <16 x i32> {}", place.offsets))
    }

    fn load_vectors(
        &mut self,
        at: usize,
        access: &MemoryAccess,
        values: &[(MemoryValue, Destination)],
    ) {
        let place = self.place(at, access);
        let parts: Vec<MemoryValue> = values.iter().map(|(value, _)| *value).collect();
        let halves = [0, 1].map(|half| {
            let half = self.half(&place, half);
            self.load_half(&half, access.bytes, &parts)
        });
        let all: Vec<String> = (0..32).map(|lane| format!("i32 {lane}")).collect();
        let all = all.join(", ");
        let mut loaded = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let bits = 8 * part.bytes as u32;
            let [low, high] = [&halves[0][number], &halves[1][number]];
            loaded.push(self.value(
                bits,
                format_args!(
                    "shufflevector <16 x i{bits}> {low}, <16 x i{bits}> {high}, <32 x i32> <{all}>"
                ),
            ));
        }
        self.join_loaded(at, &place.slow, values, loaded);
    }

    /// Loads the values of half of the lanes: with one load if lanes are consecutive, once if all addresses are
    /// equal, otherwise lane by lane.
    fn load_half(&mut self, place: &HalfPlace, bytes: u64, parts: &[MemoryValue]) -> Vec<String> {
        let ([mut is_whole, is_same], first) = self.steps(place, [bytes, 0]);
        let number = self.name();
        if parts.len() > 1 {
            let is_full = self.scalar(format_args!("icmp eq i16 {}, -1", place.mask_bits));
            is_whole = self.scalar(format_args!("and i1 {is_whole}, {is_full}"));
        }
        self.line(format_args!("br i1 {is_whole}, label %whole{number}, label %parts{number}"));
        self.begin(format!("parts{number}"));
        self.line(format_args!("br i1 {is_same}, label %same{number}, label %each{number}"));

        self.begin(format!("whole{number}"));
        let whole = self.load_whole(place, &first, parts);
        let whole_label = self.label.clone();
        self.line(format_args!("br label %half{number}"));

        self.begin(format!("same{number}"));
        let mut same = Vec::new();
        for part in parts {
            let bits = 8 * part.bytes;
            let at =
                self.scalar(format_args!("getelementptr i8, ptr {first}, i64 {}", part.offset));
            let value = self.scalar(format_args!("load i{bits}, ptr {at}, align 1"));
            let one = self.scalar(format_args!(
                "insertelement <16 x i{bits}> poison, i{bits} {value}, i64 0"
            ));
            same.push(self.scalar(format_args!(
                "shufflevector <16 x i{bits}> {one}, <16 x i{bits}> poison, <16 x i32> \
                 zeroinitializer"
            )));
        }
        self.line(format_args!("br label %half{number}"));

        self.begin(format!("each{number}"));
        let each: Vec<String> = parts.iter().map(|part| self.gather(place, part)).collect();
        self.line(format_args!("br label %half{number}"));

        self.begin(format!("half{number}"));
        let mut loaded = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let bits = 8 * part.bytes;
            loaded.push(self.scalar(format_args!(
                "phi <16 x i{bits}> [ {}, %{whole_label} ], [ {}, %same{number} ], [ {}, %each{number} ]",
                whole[index], same[index], each[index]
            )));
        }
        loaded
    }

    /// Loads the values of consecutive lanes.
    fn load_whole(&mut self, place: &HalfPlace, first: &str, parts: &[MemoryValue]) -> Vec<String> {
        let [part, rest @ ..] = parts else { return Vec::new() };
        let bits = 8 * part.bytes;
        if rest.is_empty() {
            return vec![self.scalar(format_args!(
                "call <16 x i{bits}> @llvm.masked.load.v16i{bits}.p0(ptr align 1 {first}, \
                 <16 x i1> {}, <16 x i{bits}> zeroinitializer)",
                place.mask
            ))];
        }
        let count = HALF * parts.len();
        let all = self.scalar(format_args!("load <{count} x i{bits}>, ptr {first}, align 1"));
        let mut loaded = Vec::new();
        for number in 0..parts.len() {
            let lanes: Vec<String> =
                (0..HALF).map(|lane| format!("i32 {}", lane * parts.len() + number)).collect();
            loaded.push(self.scalar(format_args!(
                "shufflevector <{count} x i{bits}> {all}, <{count} x i{bits}> poison, <16 x i32> <{}>",
                lanes.join(", ")
            )));
        }
        loaded
    }

    /// Loads a value per lane.
    fn gather(&mut self, place: &HalfPlace, part: &MemoryValue) -> String {
        let bits = 8 * part.bytes;
        if part.bytes >= 4 {
            let pointers = self.pointers(place, part.offset);
            return self.scalar(format_args!(
                "call <16 x i{bits}> @llvm.masked.gather.v16i{bits}.v16p0(<16 x ptr> align 1 \
                 {pointers}, <16 x i1> splat (i1 true), <16 x i{bits}> poison)"
            ));
        }
        // Hosts have no gather of bytes: load the word that has them.
        let offsets = self
            .scalar(format_args!("add <16 x i32> {}, splat (i32 {})", place.offsets, part.offset));
        let words = self.scalar(format_args!("and <16 x i32> {offsets}, splat (i32 -4)"));
        let pointers =
            self.scalar(format_args!("getelementptr i8, ptr {}, <16 x i32> {words}", place.bytes));
        let words = self.scalar(format_args!(
            "call <16 x i32> @llvm.masked.gather.v16i32.v16p0(<16 x ptr> align 1 {pointers}, \
             <16 x i1> splat (i1 true), <16 x i32> poison)"
        ));
        let bytes = self.scalar(format_args!("and <16 x i32> {offsets}, splat (i32 3)"));
        let amounts = self.scalar(format_args!("shl <16 x i32> {bytes}, splat (i32 3)"));
        let shifted = self.scalar(format_args!("lshr <16 x i32> {words}, {amounts}"));
        self.scalar(format_args!("trunc <16 x i32> {shifted} to <16 x i{bits}>"))
    }

    fn store_vectors(
        &mut self,
        at: usize,
        access: &MemoryAccess,
        values: &[(MemoryValue, Source)],
    ) {
        let stored: Vec<(MemoryValue, Value)> = values
            .iter()
            .map(|(value, source)| (*value, self.operand(*source, 8 * value.bytes as u32)))
            .collect();
        let place = self.place(at, access);
        for half in 0..2 {
            let half = self.half(&place, half);
            self.store_half(&half, access.bytes, &stored, &place.slow);
        }
        let join = format!("join{}", self.name());
        self.line(format_args!("br label %{join}"));
        self.begin(place.slow);
        self.call_interpreter(at);
        self.line(format_args!("br label %{join}"));
        self.begin(join);
    }

    /// Stores the values of half of the lanes. Where lanes have the same address, the last one wins, as in the
    /// interpreter.
    fn store_half(
        &mut self,
        place: &HalfPlace,
        bytes: u64,
        stored: &[(MemoryValue, Value)],
        slow: &str,
    ) {
        let lanes: Vec<String> = (place.half * HALF..(place.half + 1) * HALF)
            .map(|lane| format!("i32 {lane}"))
            .collect();
        let lanes = lanes.join(", ");
        let mut halves = Vec::new();
        for (part, value) in stored {
            let bits = value.bits();
            let half = self.scalar(format_args!(
                "shufflevector <32 x i{bits}> {value}, <32 x i{bits}> poison, <16 x i32> <{lanes}>"
            ));
            halves.push((*part, bits, half));
        }
        let number = self.name();
        if let [(part, bits, value)] = &halves[..] {
            let ([is_whole, _], first) = self.steps(place, [bytes, 0]);
            // The host cannot scatter bytes; the interpreter repeats all lanes.
            let others = if part.bytes < 4 { slow.to_owned() } else { format!("each{number}") };
            self.line(format_args!("br i1 {is_whole}, label %whole{number}, label %{others}"));
            self.begin(format!("whole{number}"));
            self.line(format_args!(
                "call void @llvm.masked.store.v16i{bits}.p0(<16 x i{bits}> {value}, ptr align 1 \
                 {first}, <16 x i1> {})",
                place.mask
            ));
            self.line(format_args!("br label %half{number}"));
            if part.bytes >= 4 {
                self.begin(format!("each{number}"));
                self.scatter(place, part, *bits, value);
                self.line(format_args!("br label %half{number}"));
            }
            self.begin(format!("half{number}"));
        } else if halves.iter().any(|(part, ..)| part.bytes < 4) {
            let (slow, rest) = (slow.to_owned(), format!("half{number}"));
            let is_idle = self.scalar(format_args!("icmp eq i16 {}, 0", place.mask_bits));
            self.line(format_args!("br i1 {is_idle}, label %{rest}, label %{slow}"));
            self.begin(rest);
        } else {
            for (part, bits, value) in &halves {
                self.scatter(place, part, *bits, value);
            }
        }
    }

    fn scatter(&mut self, place: &HalfPlace, part: &MemoryValue, bits: u32, value: &str) {
        let pointers = self.pointers(place, part.offset);
        self.line(format_args!(
            "call void @llvm.masked.scatter.v16i{bits}.v16p0(<16 x i{bits}> {value}, <16 x ptr> align 1 \
             {pointers}, <16 x i1> {})",
            place.mask
        ));
    }
}
