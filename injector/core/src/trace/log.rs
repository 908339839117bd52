//! Log of the golden run by wave, kept until the faulty run has executed as much.

use super::bytes::differing;
use super::registers::{Words, words};
use super::workgroups::Workgroups;
use flipwave_arch::{Instruction, Pc, RegisterId};
use flipwave_device::{Address, Dim3, WaveId};
use flipwave_machine::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// One instruction of the golden run.
#[derive(Debug)]
pub struct Entry {
    /// Next PC of the wave.
    pub next: Pc,
    /// `true` if the instruction ends the wave.
    pub ends: bool,
    /// Registers that it wrote, or may have written, with their values.
    pub registers: Vec<(RegisterId, Words)>,
    pub bytes: Bytes,
}

/// Bytes written by an instruction of the golden run.
#[derive(Debug, Default)]
pub struct Bytes {
    /// Offsets in LDS, with values.
    pub lds: Vec<(u32, u8)>,
    /// Addresses in device memory, with values.
    pub memory: Vec<(Address, u8)>,
}

impl Entry {
    /// Approximate size in words.
    fn size(&self) -> usize {
        let registers: usize = self.registers.iter().map(|(_, words)| 8 + words.len()).sum();
        16 + registers + 2 * self.bytes.lds.len() + 4 * self.bytes.memory.len()
    }
}

impl Bytes {
    fn is_empty(&self) -> bool {
        self.lds.is_empty() && self.memory.is_empty()
    }
}

/// Amount of logging for a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Logs everything.
    #[default]
    All,
    /// Logs only bytes: the wave is on a different path in the faulty run.
    Bytes,
    /// Logs nothing, because the faulty run does not execute this wave; its written bytes are reported
    /// at once.
    Nothing,
}

#[derive(Debug, Default)]
struct Stream {
    keep: Keep,
    has_ended: bool,
    entries: VecDeque<Entry>,
}

/// Log of the golden run of a dispatch.
#[derive(Debug)]
pub struct Log {
    /// Maximum size of all entries in words.
    capacity: usize,
    size: usize,
    streams: HashMap<WaveId, Stream>,
    /// LDS of each workgroup after the last logged instruction.
    lds: Workgroups<Vec<u8>>,
    /// Bytes written by waves that are not logged.
    apart: Vec<(Dim3, Bytes)>,
    /// Waves excluded for lack of space.
    left_out: BTreeSet<WaveId>,
}

impl Log {
    /// Creates an empty log with a maximum size of about this many words.
    pub fn new(capacity: usize) -> Log {
        Log {
            capacity,
            size: 0,
            streams: HashMap::new(),
            lds: Workgroups::new(),
            apart: Vec::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// Takes the next instruction of a wave from the log, if there is one.
    pub fn next(&mut self, wave: WaveId) -> Option<Entry> {
        let stream = self.streams.get_mut(&wave)?;
        let entry = stream.entries.pop_front()?;
        if stream.has_ended && stream.entries.is_empty() {
            stream.entries = VecDeque::new();
        }
        self.size -= entry.size();
        Some(entry)
    }

    /// Returns `true` if advancing the golden run may log more instructions of the wave.
    pub fn has_more(&self, wave: WaveId) -> bool {
        let stream = self.streams.get(&wave);
        stream.is_none_or(|stream| !stream.has_ended && stream.keep != Keep::Nothing)
    }

    /// Reduces the logging of a wave from now on.
    pub fn keep(&mut self, wave: WaveId, keep: Keep) {
        let stream = self.streams.entry(wave).or_default();
        stream.keep = keep;
        if keep == Keep::Nothing {
            for entry in stream.entries.drain(..) {
                self.size -= entry.size();
                self.apart.push((wave.workgroup, entry.bytes));
            }
        }
    }

    /// Takes the bytes written since the last call by waves that are not logged.
    pub fn take_apart(&mut self) -> Vec<(Dim3, Bytes)> {
        std::mem::take(&mut self.apart)
    }

    /// Returns `true` if the wave was excluded for lack of space.
    pub fn has_left_out(&self, wave: WaveId) -> bool {
        self.left_out.contains(&wave)
    }

    fn add(&mut self, wave: WaveId, entry: Entry) {
        if self.size + entry.size() > self.capacity {
            self.left_out.insert(wave);
            self.keep(wave, Keep::Nothing);
        }
        let stream = self.streams.entry(wave).or_default();
        stream.has_ended = entry.ends;
        match stream.keep {
            Keep::Nothing if entry.bytes.is_empty() => {}
            Keep::Nothing => self.apart.push((wave.workgroup, entry.bytes)),
            _ => {
                self.size += entry.size();
                stream.entries.push_back(entry);
            }
        }
    }
}

impl Observer for Log {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.lds.start(wave);
        true
    }

    fn before(&mut self, _: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        if !state.lds().is_empty() {
            self.lds.get_or(wave.workgroup, || state.lds().to_vec());
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let Executed { inst, wave, .. } = *executed;
        let keep = self.streams.get(&wave).map_or(Keep::All, |stream| stream.keep);
        let registers = if keep == Keep::All { state.written_by(inst) } else { Vec::new() };
        let held = |register| words(state, register).map(|words| (register, words));
        let registers = registers.into_iter().filter_map(held).collect();
        let mut bytes = Bytes::default();
        if inst.accesses_memory() {
            if let Some(before) = self.lds.get(wave.workgroup) {
                bytes.lds = differing(before, state.lds());
                if !bytes.lds.is_empty() {
                    before.copy_from_slice(state.lds());
                }
            }
            let written = state.take_written();
            bytes.memory = written.into_iter().map(|byte| (byte.address, byte.after)).collect();
        }
        let (next, ends) = (state.pc(), inst.ends_wave());
        self.add(wave, Entry { next, ends, registers, bytes });
        if ends {
            self.lds.end(wave);
        }
        Watch::On
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;

    fn entry(pc: u64, ends: bool) -> Entry {
        let bytes = Bytes { lds: Vec::new(), memory: vec![(Address(pc), 1)] };
        Entry { next: Pc(pc), ends, registers: Vec::new(), bytes }
    }

    #[test]
    fn log_keeps_the_order_of_each_wave() {
        let mut log = Log::new(1000);
        for (x, pc) in [(0, 0), (1, 100), (0, 4), (1, 104)] {
            log.add(wave(x, 0), entry(pc, pc == 104));
        }
        let pcs = |log: &mut Log, x| -> Vec<u64> {
            std::iter::from_fn(|| log.next(wave(x, 0))).map(|entry| entry.next.0).collect()
        };
        assert_eq!(pcs(&mut log, 1), [100, 104]);
        assert_eq!(pcs(&mut log, 0), [0, 4]);
        assert!(log.has_more(wave(0, 0)) && !log.has_more(wave(1, 0)));
        assert_eq!(log.size, 0);
    }

    /// The log stays bounded however far the golden run is ahead; excluded waves are reported, and
    /// their bytes are not lost.
    #[test]
    fn full_log_excludes_the_wave_but_keeps_its_bytes() {
        let mut log = Log::new(100);
        log.add(wave(1, 0), entry(0, false));
        for pc in 0..1000 {
            log.add(wave(0, 0), entry(4 * pc, false));
            assert!(log.size <= 100);
        }
        assert!(log.has_left_out(wave(0, 0)) && !log.has_left_out(wave(1, 0)));
        assert!(log.next(wave(0, 0)).is_none() && log.next(wave(1, 0)).is_some());
        assert_eq!(log.take_apart().len(), 1000);
        assert_eq!(log.take_apart().len(), 0);
    }
}
