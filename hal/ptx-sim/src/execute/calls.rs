//! Calls and returns.

use super::Reach;
use crate::address::Windows;
use crate::compute::{LANES, Row};
use crate::program::{CallOp, CallTarget, Op, Place};
use crate::wave::Frame;
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_ptx::{Slot, Space};

/// The largest number of nested calls.
const MOST_CALLS: usize = 1000;
/// The largest local memory of a lane in bytes: the limit of NVIDIA's GPUs (CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability").
pub(crate) const MOST_LOCAL_BYTES: u64 = 512 << 10;

/// A value that is passed: a register, or bytes per lane.
#[allow(clippy::large_enum_variant)]
enum Passed {
    Row(Row),
    Bytes(Vec<u8>),
}

impl Reach<'_> {
    /// Calls the functions that lanes name. Lanes that name another function than the first lane's call it
    /// later.
    pub fn call(
        &mut self,
        call: &CallOp,
        number: usize,
        lanes: u32,
        after: u64,
    ) -> Result<(), FaultCause> {
        let pc = self.wave.pc();
        let (function, lanes) = match call.target {
            CallTarget::Function(function) => (function, lanes),
            CallTarget::Address(source) => {
                let addresses = self.row(source);
                let first = addresses[lanes.trailing_zeros() as usize % LANES];
                let alike = Self::lanes(lanes).filter(|lane| addresses[*lane] == first);
                let alike = alike.fold(0, |mask, lane| mask | 1u32 << lane);
                if alike != lanes {
                    // The others execute the instruction again.
                    let waiting = self.wave.active() & !lanes;
                    let groups = [(pc, lanes & !alike), (after, waiting)];
                    self.split(&groups, alike, after);
                }
                (self.function_at(first)?, alike)
            }
        };
        if let Some(path) = self.wave.path_mut() {
            path.pc = after;
        }
        self.enter(call, function, number, lanes)
    }

    /// Makes a path of some lanes, and others for the rest; all meet at `after`.
    fn split(&mut self, others: &[(u64, u32)], lanes: u32, after: u64) {
        let Some(frame) = self.wave.frames.last_mut() else { return };
        let Some(top) = frame.paths.last_mut() else { return };
        top.pc = after;
        let path = |(pc, lanes): (u64, u32)| crate::wave::Path { pc, until: Some(after), lanes };
        let others = others.iter().copied().filter(|(pc, lanes)| *lanes != 0 && *pc != after);
        let others: Vec<_> = others.map(path).collect();
        frame.paths.extend(others);
        frame.paths.push(path((after, lanes)));
    }

    /// The function at an address.
    fn function_at(&self, address: u64) -> Result<usize, FaultCause> {
        let found = self.program.functions.iter().position(|known| *known == address);
        found.ok_or(FaultCause::MemoryViolation {
            address: Address(address),
            access: AccessKind::Fetch,
            lane: None,
        })
    }

    fn enter(
        &mut self,
        call: &CallOp,
        function: usize,
        number: usize,
        lanes: u32,
    ) -> Result<(), FaultCause> {
        let program = self.program;
        let callee = &program.code.functions[function];
        let Some(caller) = self.wave.frames.last() else { return Ok(()) };
        let base = caller.base + caller.bytes;
        let top = base + callee.frame_bytes;
        if self.wave.frames.len() >= MOST_CALLS || top > MOST_LOCAL_BYTES {
            return Err(FaultCause::MemoryViolation {
                address: Address(Windows::base(Space::Local) + top),
                access: AccessKind::Write,
                lane: None,
            });
        }
        let mut frame = Frame::new(program, function, Some(number), base, lanes);
        let mut passed = Vec::new();
        for (place, slot) in call.arguments.iter().zip(&callee.parameters) {
            if !self.pass_words(*place, slot, &mut frame, lanes) {
                passed.push((self.passed(*place, slot), slot));
            }
        }
        // A fault may have changed the address of the function.
        self.wave.registers.extend(&program.ranges[function]);
        if program.calls.recursive.contains(&function) {
            frame.saved = Some(Box::new(self.wave.registers.of_function(callee)));
        }
        self.wave.frames.push(frame);
        for (value, slot) in passed {
            self.put_slot(value, slot, lanes);
        }
        Ok(())
    }

    /// Passes one or two words from the frame of the caller to that of the called function; returns `false` for
    /// other arguments.
    fn pass_words(&mut self, place: Place, slot: &Slot, frame: &mut Frame, lanes: u32) -> bool {
        let (Place::Frame(from), Slot::Memory { offset: to, bytes }) = (place, slot) else {
            return false;
        };
        let Some(caller) = self.wave.frames.last_mut() else { return false };
        let (from, to) = (caller.base + from, frame.base + to);
        let (Some(from), Some(to)) = (caller.rows(from, *bytes), frame.rows(to, *bytes)) else {
            return false;
        };
        for (to, from) in to.iter_mut().zip(from) {
            to.put(lanes, |lane| from.0[lane]);
        }
        true
    }

    /// The value of an argument.
    fn passed(&mut self, place: Place, slot: &Slot) -> Passed {
        match (place, slot) {
            (Place::Value(source), _) => Passed::Row(self.row(source)),
            (Place::Frame(offset), Slot::Memory { bytes, .. }) if *bytes > 8 => {
                Passed::Bytes(self.frame_bytes(offset, *bytes))
            }
            (Place::Frame(offset), Slot::Memory { bytes, .. }) => {
                Passed::Row(self.frame_row(offset, *bytes))
            }
            (Place::Frame(offset), Slot::Register(register)) => {
                Passed::Row(self.frame_row(offset, register.kind.bytes()))
            }
            (Place::Register(_), _) => Passed::Row([0; LANES]),
        }
    }

    /// Bytes of the innermost frame, lane after lane; zeroes beyond its end.
    fn frame_bytes(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let Some(frame) = self.wave.frames.last() else { return Vec::new() };
        let (address, mut content) = (frame.base + offset, Vec::new());
        for lane in 0..LANES {
            for (at, part) in parts(bytes) {
                let value = frame.read(address + at, part, lane).unwrap_or(0);
                content.extend_from_slice(&value.to_le_bytes()[..part as usize]);
            }
        }
        content
    }

    /// At most 8 bytes of the innermost frame; zeroes beyond its end.
    fn frame_row(&mut self, offset: u64, bytes: u64) -> Row {
        let Some(frame) = self.wave.frames.last_mut() else { return [0; LANES] };
        let address = frame.base + offset;
        match frame.rows(address, bytes) {
            Some([low]) => return low.0.map(u64::from),
            Some([low, high]) => {
                return std::array::from_fn(|lane| {
                    u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32
                });
            }
            _ => {}
        }
        std::array::from_fn(|lane| frame.read(address, bytes.min(8), lane).unwrap_or(0))
    }

    /// Writes bytes of the innermost frame.
    fn put_frame(&mut self, offset: u64, content: &[u8], lanes: u32) {
        let Some(frame) = self.wave.frames.last_mut() else { return };
        let (bytes, address) = (content.len() / LANES, frame.base + offset);
        for lane in Self::lanes(lanes) {
            let content = &content[lane * bytes..(lane + 1) * bytes];
            for (at, part) in parts(bytes as u64) {
                let value = value(&content[at as usize..(at + part) as usize]);
                let _ = frame.write(address + at, part, value, lane);
            }
        }
    }

    /// Writes values, of which only 8 bytes may not be zero, to the innermost frame.
    fn put_frame_row(&mut self, offset: u64, row: &Row, bytes: u64, lanes: u32) {
        if bytes > 8 {
            return self.put_frame(offset, &content(row, bytes), lanes);
        }
        let Some(frame) = self.wave.frames.last_mut() else { return };
        let address = frame.base + offset;
        if let Some(rows) = frame.rows(address, bytes) {
            for (number, word) in rows.iter_mut().enumerate() {
                word.put(lanes, |lane| (row[lane] >> (32 * number)) as u32);
            }
            return;
        }
        for lane in Self::lanes(lanes) {
            let _ = frame.write(address, bytes, row[lane], lane);
        }
    }

    /// Stores a value in a parameter of the innermost frame's function.
    fn put_slot(&mut self, value: Passed, slot: &Slot, lanes: u32) {
        match (value, slot) {
            (Passed::Row(row), Slot::Register(register)) => {
                let destination = crate::program::register_destination(*register);
                self.wave.registers.write(destination, lanes, &row);
            }
            (Passed::Row(row), Slot::Memory { offset, bytes }) => {
                self.put_frame_row(*offset, &row, *bytes, lanes);
            }
            (Passed::Bytes(content), Slot::Memory { offset, .. }) => {
                self.put_frame(*offset, &content, lanes);
            }
            (Passed::Bytes(_), Slot::Register(_)) => {}
        }
    }

    /// Returns lanes from the innermost call, or ends them if it is the kernel.
    pub fn return_from(&mut self, lanes: u32) {
        let program = self.program;
        let Some(frame) = self.wave.frames.last() else { return };
        let Some(number) = frame.call else {
            self.wave.exit(lanes);
            return;
        };
        let callee = &program.code.functions[frame.function];
        let Op::Call(call) = &program.steps[number].op else { return };
        let results: Vec<Passed> = callee
            .results
            .iter()
            .map(|slot| match slot {
                Slot::Register(register) => {
                    let kind = register.kind;
                    let source = crate::program::register_source(*register, kind);
                    Passed::Row(self.row(source))
                }
                Slot::Memory { offset, bytes } if *bytes <= 8 => {
                    Passed::Row(self.frame_row(*offset, *bytes))
                }
                Slot::Memory { offset, bytes } => Passed::Bytes(self.frame_bytes(*offset, *bytes)),
            })
            .collect();
        let Some(mut frame) = self.wave.frames.pop() else { return };
        if let Some(saved) = &frame.saved {
            self.wave.registers.restore(callee, saved, lanes);
        }
        for ((value, place), slot) in results.into_iter().zip(&call.results).zip(&callee.results) {
            let bytes = match slot {
                Slot::Register(register) => register.kind.bytes(),
                Slot::Memory { bytes, .. } => *bytes,
            };
            match (value, place) {
                (Passed::Row(row), Place::Register(destination)) => {
                    self.wave.registers.write(*destination, lanes, &row);
                }
                (Passed::Bytes(content), Place::Register(destination)) => {
                    self.wave.registers.write(*destination, lanes, &rows(&content, bytes));
                }
                (Passed::Bytes(content), Place::Frame(offset)) => {
                    self.put_frame(*offset, &content, lanes);
                }
                (Passed::Row(row), Place::Frame(offset)) => {
                    self.put_frame_row(*offset, &row, bytes, lanes);
                }
                (_, Place::Value(_)) => {}
            }
        }
        frame.remove(lanes);
        self.wave.frames.push(frame);
    }
}

/// Splits a number of bytes: offset and size of each part of at most 8 bytes.
fn parts(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes).step_by(8).map(move |at| (at, (bytes - at).min(8)))
}

/// The value of at most 8 bytes.
fn value(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The first values of at most 8 bytes, lane after lane.
fn rows(content: &[u8], bytes: u64) -> Row {
    let mut row = [0; LANES];
    for (lane, part) in row.iter_mut().zip(content.chunks(bytes.max(1) as usize)) {
        *lane = value(&part[..part.len().min(8)]);
    }
    row
}

/// Values with a number of bytes, lane after lane.
fn content(row: &Row, bytes: u64) -> Vec<u8> {
    let lane = |value: &u64| {
        let mut part = value.to_le_bytes().to_vec();
        part.resize(bytes as usize, 0);
        part
    };
    row.iter().flat_map(lane).collect()
}
