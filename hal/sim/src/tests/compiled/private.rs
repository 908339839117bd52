//! Random accesses to private memory.

use super::{ADDRESSES, BUFFER, ROWS, row};
use crate::compile::testing::Plan;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Half, Op, Run, Word};
use crate::memory::aperture;
use crate::tests::bench::op;
use crate::tests::operations::Random;
use crate::wave::private::Private;
use crate::wave::{Machine, Row, RowIndex, ScalarIndex, Wave};
use flipwave_device::Address;
use flipwave_isa::Generation;

/// The register that holds offsets. The register before it holds the upper words of the flat
/// addresses.
const OFFSETS: RowIndex = RowIndex(ADDRESSES + 4);
const UPPER: RowIndex = RowIndex(ADDRESSES + 5);
/// First register of the resource of private memory.
const RESOURCE: ScalarIndex = ScalarIndex(96);
/// Register that is added to the private address or to an offset.
const ADDED: ScalarIndex = ScalarIndex(100);

/// Places a wave's private memory at `at` and gives its lanes offsets into it, mostly equal ones.
pub fn describe(random: &mut Random, wave: &mut Wave, at: Address) {
    let lanes = u32::from(wave.machine.lanes);
    let bits = random.next() as u32;
    let range = if wave.machine.generation >= Generation::Gfx10 { bits >> 8 & 3 } else { 0 };
    let range = if bits & 0x30 == 0 { range } else { range & 2 };
    // Sometimes use another index stride, or omit the swizzle or add-thread flag.
    let index_stride = lanes.trailing_zeros() - 3 - u32::from(bits & 0x1c0 == 0);
    let swizzle = u32::from(bits & 0xe00 != 0) << 31;
    let flags = u32::from(bits & 0x7000 != 0) << 23 | index_stride << 21 | range << 28;
    let records = [BUFFER as u32, 4000, u32::MAX][bits as usize >> 16 & 1];
    let words = [at.0 as u32, (at.0 >> 32) as u32 | swizzle, records, flags];
    for (word, value) in (0..).zip(words) {
        wave.write_scalar(ScalarIndex(RESOURCE.0 + word), value);
    }
    // Mostly large enough for all offsets.
    let bytes = [128, 128, 128, 60][bits as usize >> 24 & 3];
    wave.private = Private { base: at.0, bytes, ..Private::default() };
    wave.write_scalar(ADDED, random.next() as u32 % 16 * 4);
    let flat_scratch = wave.machine.flat_scratch;
    wave.write_scalar_pair(flat_scratch, at.0);
    let common = random.next() as u32 % 16 * 4;
    let pattern = random.next() % 6;
    *wave.row_mut(OFFSETS) = Row(std::array::from_fn(|_| match (pattern, random.next()) {
        (0, bits) => bits as u32 % 64,
        (1, bits) if bits % 64 == 0 => common + 4,
        (2 | 3, bits) => bits as u32 % 16 * 4,
        // Some offsets lie outside private memory.
        (4, bits) if bits % 64 == 0 => [4000, -4i32 as u32][bits as usize >> 6 & 1],
        (4, bits) => bits as u32 % 8 * 4,
        _ => common,
    }));
    let aperture_case = random.next() % 8;
    *wave.row_mut(UPPER) = Row(std::array::from_fn(|_| {
        let window = match (aperture_case, random.next() % 64) {
            (0, bits) if bits % 4 == 0 => aperture::SHARED,
            (1, _) => aperture::SHARED,
            (2, 0) => 0,
            (3, 0) => aperture::PRIVATE + (1 << 32),
            _ => aperture::PRIVATE,
        };
        (window >> 32) as u32
    }));
}

/// Activates all lanes and points their flat addresses to `offset` in private memory.
pub fn point(wave: &mut Wave, offset: u32) {
    wave.set_exec(wave.machine.all_lanes());
    wave.row_mut(OFFSETS).0.fill(offset);
    wave.row_mut(UPPER).0.fill((aperture::PRIVATE >> 32) as u32);
}

/// Returns an access by a scratch instruction, a buffer instruction, or a flat instruction.
pub fn access(random: &mut Random, machine: Machine) -> (Op, Plan) {
    let element = Element::Words(1 + (random.next() % 4) as u8);
    let stores = random.next() & 1 != 0;
    let transfer = if stores { Transfer::Store(element) } else { Transfer::Load(element) };
    let (has_offset, has_base) = (random.next() & 1 != 0, random.next() & 1 != 0);
    if random.next().is_multiple_of(3) {
        return flat(random, machine, transfer);
    }
    let has_buffers = machine.generation <= Generation::Gfx10 && random.next() & 1 != 0;
    let space = if has_buffers {
        Space::Buffer { offset: has_offset, index: false }
    } else {
        Space::Scratch
    };
    let mut op = op(Run::VectorMemory(VectorAccess { space, transfer }));
    op.destination = RowIndex((random.next() % u64::from(ROWS - 3)) as u16);
    op.immediate = (random.next() % 16 * 4) as i64;
    op.immediate += match random.next() % 8 {
        0 => 2,
        1 => 300,
        2 if !has_buffers => -32,
        _ => 0,
    };
    if has_offset {
        op.sources[0].words = [Word::Row(OFFSETS); 2];
    }
    if stores {
        op.sources[1].words = [Word::Row(RowIndex(row(random).0.min(ROWS - 4))); 2];
    }
    if has_buffers {
        op.sources[2].words = [Word::Scalar(RESOURCE); 2];
    }
    if has_base {
        op.sources[if has_buffers { 3 } else { 2 }].words = [Word::Scalar(ADDED); 2];
    }
    op.per_lane = true;
    let plan = Plan::of(&op, machine);
    assert!(matches!(plan, Plan::Private(_)), "{:?}", op.run);
    (op, plan)
}

/// Returns a flat access, mostly of words.
pub fn flat(random: &mut Random, machine: Machine, transfer: Transfer) -> (Op, Plan) {
    let part = Element::Part { bytes: 1, half: Half::Whole, signed: false };
    let transfer = match (random.next() % 8, transfer) {
        (0, Transfer::Load(_)) => Transfer::Load(part),
        (0, _) => Transfer::Store(part),
        _ => transfer,
    };
    let mut op = op(Run::VectorMemory(VectorAccess { space: Space::Flat, transfer }));
    op.destination = RowIndex((random.next() % u64::from(ROWS - 3)) as u16);
    op.immediate = [0, 4, 8, 60, 2, 300, -4, -32][random.next() as usize % 8];
    op.sources[0].words = [OFFSETS, UPPER].map(Word::Row);
    if let Transfer::Store(_) = transfer {
        op.sources[1].words = [Word::Row(RowIndex(row(random).0.min(ROWS - 4))); 2];
    }
    op.per_lane = true;
    let plan = Plan::of(&op, machine);
    assert!(matches!(plan, Plan::Access(_)), "{:?}", op.run);
    (op, plan)
}
