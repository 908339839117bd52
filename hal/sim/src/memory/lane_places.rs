//! Combined accesses of the lanes of one instruction.

use flipwave_isa::LaneMask;

/// Parts of memory that lanes access.
#[derive(Clone, Copy, Debug)]
pub struct LanePlaces<'a> {
    /// Base address of the offsets.
    pub base: u64,
    /// Offset of the first part of each lane.
    pub offsets: &'a [u32; 64],
    /// The lanes that access memory.
    pub lanes: LaneMask,
    /// Parts per lane.
    pub parts: u32,
    /// Bytes per part.
    pub bytes: u32,
    /// Byte distance between consecutive parts.
    pub apart: u32,
}

impl LanePlaces<'_> {
    /// Calls `visit` with the accessed bytes, in runs: address and number of bytes.
    pub fn runs(&self, mut visit: impl FnMut(u64, u64)) {
        let LanePlaces { base, offsets, lanes, parts, bytes, apart } = *self;
        let (together, pieces) = if apart == bytes { (bytes * parts, 1) } else { (bytes, parts) };
        for piece in 0..pieces {
            let base = base + u64::from(piece * apart);
            let first = offsets[0];
            let in_line = (0..)
                .zip(offsets)
                .map(|(lane, offset)| offset.wrapping_sub(first) ^ (lane * together));
            if lanes == LaneMask::FULL && in_line.fold(0, |all, difference| all | difference) == 0 {
                visit(base + u64::from(first), 64 * u64::from(together));
                continue;
            }
            let (mut start, mut end) = (0, 0);
            for lane in lanes.lanes() {
                let offset = u64::from(offsets[usize::from(lane.0)]);
                let after = offset + u64::from(together);
                if offset < start || offset > end {
                    if end > start {
                        visit(base + start, end - start);
                    }
                    (start, end) = (offset, after);
                } else {
                    end = end.max(after);
                }
            }
            if end > start {
                visit(base + start, end - start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::operations::Random;
    use flipwave_device::Address;
    use flipwave_machine::ByteSetBuilder;

    /// The runs consist of exactly the bytes that the lanes access, in any arrangement.
    #[test]
    fn runs_contain_exactly_the_bytes_of_all_lanes() {
        let mut random = Random(18);
        let mut next = |below: u32| random.next() as u32 % below;
        for case in 0..400 {
            let (parts, bytes) = [(1 + next(4), 4), (1, 2), (1, 1)][next(3) as usize];
            let apart = [bytes, 256][next(2) as usize];
            let (base, start, together) = (0x20_0000 + u64::from(next(64)), next(4096), next(40));
            let offsets: [u32; 64] = std::array::from_fn(|lane| match case % 4 {
                0 => start + lane as u32 * bytes * parts,
                1 => start + lane as u32 / 16 * 1024 + lane as u32 % 16 * 4,
                2 => start,
                _ => next(together + 1) * 4,
            });
            let lanes = [LaneMask::FULL, LaneMask(0x8000_f0f0_0000_ff01), LaneMask(1 << 9)];
            for lanes in lanes {
                let offsets = &offsets;
                let places = LanePlaces { base, offsets, lanes, parts, bytes, apart };
                let [mut found, mut expected] = [(); 2].map(|()| ByteSetBuilder::default());
                let mut count = 0;
                places.runs(|start, bytes| {
                    found.insert(Address(start), bytes);
                    count += 1;
                });
                for lane in lanes.lanes() {
                    for part in 0..u64::from(parts) {
                        let offset = u64::from(offsets[usize::from(lane.0)]);
                        let at = base + offset + part * u64::from(apart);
                        expected.insert(Address(at), u64::from(bytes));
                    }
                }
                assert_eq!(
                    found.build(),
                    expected.build(),
                    "case {case}, {parts} of {bytes}, {apart} apart"
                );
                assert!(case % 4 != 0 || apart != bytes || lanes != LaneMask::FULL || count == 1);
            }
        }
    }
}
