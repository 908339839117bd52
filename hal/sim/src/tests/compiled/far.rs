//! Lanes that access addresses far from each other in one memory window. Compiled code uses 32-bit
//! offsets.

use super::{ADDRESSES, BASE, START, World, execute, interpret, machines, pair_words, world};
use crate::compile::testing::{Block, Candidate, Plan, Source, Variant, Workspace};
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Half, Op, Run, Word};
use crate::memory::{Memory, Region, RegionMut, Window, WindowAccess};
use crate::tests::bench::op;
use crate::tests::operations::Random;
use crate::wave::copy::WaveCopy;
use crate::wave::{Level, Row, RowIndex, ScalarIndex};
use flipwave_isa::LaneMask;
use std::ops::Range;
use std::ptr;

/// Address of the first byte. Adding an offset to its low word carries.
const FIRST: u64 = 0x12_ffff_f000;
const LENGTH: u64 = (4 << 30) + 0x8000;
/// Offsets that change sign or no longer fit into 32 bits.
const EDGES: [u64; 5] = [0x4000, 0x8000_0000, 0xffff_8000, 0x1_0000_0000, LENGTH - 0x4000];

/// Returns the offsets around an edge.
fn around(edge: u64) -> Range<usize> {
    edge as usize - 0x4000..edge as usize + 0x4000
}

fn contains(address: u64) -> bool {
    (FIRST..FIRST + LENGTH).contains(&address)
}

/// One contiguous range of bytes. Untouched bytes occupy no host memory.
struct Wide(Vec<u8>);

impl Memory for Wide {
    fn readable(&mut self, address: u64, _: usize) -> Option<Region<'_>> {
        let region = Region { base: FIRST, bytes: &self.0 };
        contains(address).then(|| region.near(address))
    }

    fn writable(&mut self, address: u64, _: usize) -> Option<RegionMut<'_>> {
        let region = RegionMut { base: FIRST, bytes: &mut self.0, is_shared: false };
        contains(address).then(|| region.near(address))
    }

    fn window(&mut self, address: u64, _: WindowAccess) -> Option<Window> {
        let bytes = self.0.as_mut_ptr();
        let window = Window { base: FIRST, length: LENGTH, bytes, touched: ptr::null_mut() };
        contains(address).then_some(window)
    }

    fn generation(&self) -> Option<u64> {
        Some(1)
    }
}

impl Wide {
    /// Returns the bytes around the edges.
    fn content(&self) -> Vec<u8> {
        EDGES.into_iter().flat_map(|edge| &self.0[around(edge)]).copied().collect()
    }

    fn new(random: &mut Random) -> Wide {
        let mut bytes = vec![0; LENGTH as usize];
        for edge in EDGES {
            bytes[around(edge)].fill_with(|| random.next() as u8);
        }
        Wide(bytes)
    }
}

/// Returns a distinct address for each lane, around some of the edges.
fn places(random: &mut Random, edges: &[u64]) -> [u64; 64] {
    std::array::from_fn(|lane| {
        let edge = random.choose(edges);
        edge - 0x3f00 + lane as u64 * 0x100 - random.next() % 16
    })
}

/// Returns a load to or a store from v0 to v3, with whole addresses or with offsets from a scalar
/// base.
fn access(transfer: Transfer, by_offset: bool) -> (Op, Plan) {
    let mut op = op(Run::VectorMemory(VectorAccess { space: Space::Global, transfer }));
    op.destination = RowIndex(0);
    let address = ADDRESSES + if by_offset { 1 } else { 2 };
    op.sources[0].words = [Word::Row(RowIndex(address)), Word::Row(RowIndex(address + 1))];
    if by_offset {
        op.sources[2].words = pair_words(ScalarIndex(BASE));
    }
    op.sources[1].words = [Word::Row(RowIndex(0)); 2];
    op.per_lane = true;
    let plan = Plan::of(&op, Default::default());
    assert!(matches!(plan, Plan::Access(_)));
    (op, plan)
}

#[test]
fn lanes_reach_whole_window_beyond_32_bit_offsets() {
    let mut random = Random(5);
    let mut bytes = Wide::new(&mut random);
    let part = |bytes| Element::Part { bytes, signed: true, half: Half::Whole };
    let elements = [Element::Words(1), Element::Words(3), part(1), part(2)];
    for (machine, element) in
        machines().into_iter().flat_map(|machine| elements.map(|e| (machine, e)))
    {
        for transfer in [Transfer::Load(element), Transfer::Store(element)] {
            for by_offset in [false, true] {
                let (op, plan) = access(transfer, by_offset);
                let addresses = vec![START, START + 4];
                let source = Source {
                    start: START,
                    ops: vec![op],
                    plans: vec![plan],
                    addresses,
                    next_runs: Default::default(),
                };
                let candidate = Candidate::new(Block::new(source, 0, machine));
                let variant = Variant::default();
                candidate.compile(machine, Level::detect(), variant, &mut flipwave_jit::InProcess);
                let mut workspace = Workspace::default();
                for round in 0..12 {
                    // Start without the edges that offsets do not reach.
                    let edges = if round < 6 { &EDGES[..3] } else { &EDGES[..] };
                    let World { mut wave, lds, .. } = world(&mut random, machine);
                    let at = self::places(&mut random, edges);
                    wave.set_exec(LaneMask(u64::MAX));
                    wave.write_scalar_pair(ScalarIndex(BASE), FIRST);
                    let rows = [
                        at.map(|offset| offset as u32),
                        at.map(|offset| (FIRST + offset) as u32),
                        at.map(|offset| ((FIRST + offset) >> 32) as u32),
                    ];
                    for (row, words) in (ADDRESSES + 1..).zip(rows) {
                        *wave.row_mut(RowIndex(row)) = Row(words);
                    }
                    let (mut one, mut other) = (wave.clone(), wave);
                    let before = bytes.content();
                    let (lds, source) = (&mut lds.clone()[..], &candidate.block.source);
                    let wanted = interpret(&mut one, lds, &mut bytes, source);
                    let interpreted = bytes.content();
                    for (edge, bytes_around) in EDGES.into_iter().zip(before.chunks(0x8000)) {
                        bytes.0[around(edge)].copy_from_slice(bytes_around);
                    }
                    let given =
                        execute(&mut other, lds, &mut bytes, &candidate, variant, &mut workspace);
                    let case = format!("{transfer:?}, {by_offset}, round {round}");
                    assert_eq!(wanted, given, "{case}");
                    assert!(WaveCopy::of(&one).is_state_of(&other), "{case}");
                    assert!(interpreted == bytes.content(), "{case}");
                }
            }
        }
    }
}
