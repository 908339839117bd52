//! Calls of functions, and the paths of diverged lanes.

use super::{Registers, Rows, Word};
use crate::program::Program;
use flipwave_ptx::INSTRUCTION_BYTES;
use smallvec::{SmallVec, smallvec};

/// A call of a function, or the kernel.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Number of the function.
    pub function: usize,
    /// Number of the call instruction; `None` for the kernel.
    pub call: Option<usize>,
    /// Local address of the frame.
    pub base: u64,
    /// Bytes of the frame per lane.
    pub bytes: u64,
    /// Memory of the frame: the first 4 bytes of all lanes, the next 4 bytes, and so on.
    pub memory: Rows,
    /// Diverged lanes. The last path executes; the others wait for it. Never empty between instructions.
    pub paths: SmallVec<[Path; 4]>,
    /// Registers of the function before the call, if it calls itself.
    pub saved: Option<Box<Registers>>,
}

/// Lanes at the same instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Address of the next instruction.
    pub pc: u64,
    /// Address at which the path ends, because its lanes meet those of the path below.
    pub until: Option<u64>,
    /// The lanes.
    pub lanes: u32,
}

impl Frame {
    /// The frame of a call that begins with these lanes.
    pub fn new(
        program: &Program,
        function: usize,
        call: Option<usize>,
        base: u64,
        lanes: u32,
    ) -> Frame {
        let code = &program.code.functions[function];
        let bytes = code.frame_bytes.next_multiple_of(16);
        let memory = Rows::new((bytes / 4) as usize);
        let path = Path { pc: code.entry().0, until: None, lanes };
        Frame { function, call, base, bytes, memory, paths: smallvec![path], saved: None }
    }

    /// Reads at most 8 bytes of a lane at a local address; `None` if they are not in the frame.
    pub fn read(&self, address: u64, bytes: u64, lane: usize) -> Option<u64> {
        let offset = self.offset_of(address, bytes)?;
        let byte =
            |at: u64| u64::from(self.memory[at as usize / 4].0[lane] >> (8 * (at % 4)) & 0xff);
        if bytes == 4 && offset.is_multiple_of(4) {
            return Some(self.memory[offset as usize / 4].0[lane].into());
        }
        Some((0..bytes).fold(0, |value, number| value | byte(offset + number) << (8 * number)))
    }

    /// Writes at most 8 bytes of a lane; `None` if they are not in the frame.
    pub fn write(&mut self, address: u64, bytes: u64, value: u64, lane: usize) -> Option<()> {
        let offset = self.offset_of(address, bytes)?;
        if bytes == 4 && offset.is_multiple_of(4) {
            self.memory[offset as usize / 4].0[lane] = value as u32;
            return Some(());
        }
        for number in 0..bytes {
            let (at, byte) = (offset + number, (value >> (8 * number)) as u32 & 0xff);
            let (word, shift) = (&mut self.memory[at as usize / 4].0[lane], 8 * (at % 4));
            *word = *word & !(0xff << shift) | byte << shift;
        }
        Some(())
    }

    /// The rows of 4 or 8 aligned bytes at a local address, which all lanes share; `None` for other accesses.
    pub fn rows(&mut self, address: u64, bytes: u64) -> Option<&mut [Word]> {
        let offset = self.offset_of(address, bytes)?;
        let is_aligned = matches!(bytes, 4 | 8) && offset.is_multiple_of(4);
        let first = (offset / 4) as usize;
        if is_aligned { self.memory.get_mut(first..first + (bytes / 4) as usize) } else { None }
    }

    /// Offset of bytes in the frame.
    fn offset_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        offset.checked_add(bytes).is_some_and(|end| end <= self.bytes).then_some(offset)
    }

    /// Removes lanes that have returned or ended.
    pub fn remove(&mut self, lanes: u32) {
        self.paths.iter_mut().for_each(|path| path.lanes &= !lanes);
    }

    /// Ends paths without lanes, and paths that meet others.
    pub fn settle(&mut self) {
        self.paths.retain(|path| path.lanes != 0);
        while let [.., _, top] = self.paths[..]
            && Some(top.pc) == top.until
        {
            self.paths.pop();
        }
    }

    /// Continues the lanes of the executing path at several addresses. Lanes at the lowest address execute
    /// first. All lanes meet at `meeting`, or in the path below if it is unknown.
    pub fn diverge(&mut self, groups: &[(u64, u32)], meeting: Option<u64>) {
        let Some(top) = self.paths.last_mut() else { return };
        if let [(target, _)] = groups {
            top.pc = *target;
            return;
        }
        let until = match meeting {
            // The path below waits for the lanes already.
            Some(meeting) if Some(meeting) != top.until => {
                top.pc = meeting;
                Some(meeting)
            }
            _ => {
                let until = top.until;
                self.paths.pop();
                until
            }
        };
        let mut groups: SmallVec<[(u64, u32); 4]> = groups.into();
        groups.sort_unstable_by(|first, second| second.cmp(first));
        let is_under_way = |(target, _): &(u64, u32)| Some(*target) != until;
        let paths = groups.into_iter().filter(is_under_way);
        self.paths.extend(paths.map(|(pc, lanes)| Path { pc, until, lanes }));
    }
}

/// Address of the instruction after another.
pub(crate) fn next(pc: u64) -> u64 {
    pc.wrapping_add(INSTRUCTION_BYTES.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(paths: &[(u64, Option<u64>, u32)]) -> Frame {
        let path = |&(pc, until, lanes): &(u64, Option<u64>, u32)| Path { pc, until, lanes };
        let (function, call, base, bytes) = (0, None, 0, 0);
        let paths = paths.iter().map(path).collect();
        Frame { function, call, base, bytes, memory: Rows::new(0), paths, saved: None }
    }

    fn paths(frame: &Frame) -> Vec<(u64, Option<u64>, u32)> {
        frame.paths.iter().map(|path| (path.pc, path.until, path.lanes)).collect()
    }

    #[test]
    fn diverged_lanes_meet_again() {
        let mut diamond = frame(&[(0, None, 0b1111)]);
        diamond.diverge(&[(32, 0b0011), (16, 0b1100)], Some(64));
        let expected = [(64, None, 0b1111), (32, Some(64), 0b0011), (16, Some(64), 0b1100)];
        assert_eq!(paths(&diamond), expected);
        diamond.paths.last_mut().expect("a path").pc = 64;
        diamond.settle();
        assert_eq!(paths(&diamond), expected[..2]);
        diamond.remove(0b0011);
        diamond.settle();
        assert_eq!(paths(&diamond), [(64, None, 0b1100)]);
    }

    #[test]
    fn loops_do_not_add_paths() {
        let mut looping = frame(&[(0, None, 0b1111)]);
        for lane in 0..3 {
            let lanes = looping.paths.last().expect("a path").lanes;
            looping.diverge(&[(0, lanes & !(1 << lane)), (16, 1 << lane)], Some(16));
            assert_eq!(looping.paths.len(), 2);
        }
        assert_eq!(paths(&looping), [(16, None, 0b1111), (0, Some(16), 0b1000)]);
    }
}
