//! Differential tests of compiled blocks against the interpreter, with random operations on random
//! registers.

mod batches;
mod far;
mod moves;
mod private;
mod successors;

use crate::compile::testing::{
    Block, Candidate, LaneAccess, Limits, Lowering, Plan, Resources, ScalarLowering, Source,
    Stored, Variant, VectorPlan, Workspace, lowerings, pair_element, scalar_lowerings,
};
use crate::compile::{Outcome, WaveContext};
use crate::dispatch::checker::{Counting, Unchecked};
use crate::dispatch::turns::TurnEnd;
use crate::execute::control::Step;
use crate::execute::lane::{Kind, ResultKind};
use crate::execute::operations::{TABLES, find, find_whole};
use crate::execute::step::step_in_range;
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory::{self, ScalarAccess};
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Adapt, Element, Half, Op, Run, Word};
use crate::memory::{AddressSpace, Memory, Recording, TouchedRegions};
use crate::tests::bench::op;
use crate::tests::operations::{DEFAULT_MODE, Random, edges};
use crate::wave::copy::WaveCopy;
use crate::wave::{Level, Machine, Row, RowIndex, ScalarIndex, Wave};
use flipwave_depth::Depth;
use flipwave_device::{Address, WaveId};
use flipwave_isa::{Generation, LaneMask, Register, RegisterRange, SdwaSelect, SdwaUnused};
use flipwave_machine::FootprintBuilder;
use std::ops::Range;
use std::sync::LazyLock;

/// Number of vector registers used as data operands.
const ROWS: u16 = 10;
/// First of the vector registers that hold addresses: per-lane offsets and pairs with whole
/// addresses.
const ADDRESSES: u16 = 12;
/// Number of scalar registers used as operands, excluding VCC.
const SCALARS: u64 = 12;
/// First register of the pair that holds the address of the buffer.
const BASE: u8 = 20;
/// Register that holds an offset from the buffer address.
const OFFSET: u8 = 22;
/// Register that holds a scalar buffer offset.
const BUFFER_OFFSET: u8 = 23;
/// First registers of the buffer resources.
const BUFFERS: [u8; 2] = [24, 28];
const BUFFER: u64 = 8192;
/// Size of a memory chunk. Private memory may begin this far from a chunk boundary.
const CHUNK: u64 = 64 << 10;
const NEAR: u64 = 32 << 10;
const LDS: usize = 1024;

/// Address of the block under test.
const START: u64 = 0x1000;

fn row(random: &mut Random) -> RowIndex {
    RowIndex((random.next() % u64::from(ROWS)) as u16)
}

fn scalar_pair(random: &mut Random) -> ScalarIndex {
    match random.next() % 3 {
        0 => ScalarIndex::VCC,
        _ => ScalarIndex((random.next() % (SCALARS / 2) * 2) as u8),
    }
}

fn pair_words(low: ScalarIndex) -> [Word; 2] {
    [Word::Scalar(low), Word::Scalar(ScalarIndex(low.0 + 1))]
}

/// Returns a random SDWA selector.
fn part(random: &mut Random) -> SdwaSelect {
    [
        SdwaSelect::Byte0,
        SdwaSelect::Byte1,
        SdwaSelect::Byte2,
        SdwaSelect::Byte3,
        SdwaSelect::Word0,
        SdwaSelect::Word1,
        SdwaSelect::Dword,
    ][random.next() as usize % 7]
}

/// Returns a vector operation with random operands.
fn vector(random: &mut Random, lowering: &'static Lowering, machine: Machine) -> (Op, Plan) {
    let row_of = find(lowering.name).expect("a row of the same name");
    let mut op = op(Run::Vector(row_of.function(Level::detect())));
    op.destination = row(random);
    let mut adapt = Adapt::default();
    for (index, kind) in row_of.sources.iter().enumerate() {
        op.sources[index].words = match (kind, random.next() % 8) {
            (Kind::Mask, _) => pair_words(scalar_pair(random)),
            (_, 0) => pair_words(scalar_pair(random)),
            (_, 1) => {
                let value = random.choose(&edges(*kind));
                [Word::Constant(value as u32), Word::Constant((value >> 32) as u32)]
            }
            _ => {
                let first = row(random);
                [Word::Row(first), Word::Row(first.plus(1))]
            }
        };
        let is_float = matches!(kind, Kind::F32 | Kind::F16 | Kind::F64 | Kind::Mixed);
        if is_float && random.next().is_multiple_of(8) {
            adapt.sources[index].negate = random.next() & 1 != 0;
            adapt.sources[index].absolute = random.next() & 1 != 0;
        }
        if matches!(kind, Kind::Word | Kind::F32 | Kind::F16) && random.next().is_multiple_of(8) {
            adapt.sources[index].select = part(random);
            adapt.sources[index].sign_extend = random.next() & 1 != 0;
        }
        if *kind == Kind::Mixed && random.next() & 1 == 0 {
            adapt.sources[index].select =
                [SdwaSelect::Word0, SdwaSelect::Word1][random.next() as usize % 2];
        }
    }
    // Often overwrite one of the sources.
    if random.next().is_multiple_of(4)
        && let Word::Row(register) =
            op.sources[random.next() as usize % row_of.sources.len()].words[0]
    {
        op.destination = register;
    }
    let writes_word = matches!(row_of.result, ResultKind::Rows(1) | ResultKind::RowsAndMask(1))
        && lowering.result != Stored::HighHalf;
    if writes_word && random.next().is_multiple_of(8) {
        adapt.finish.select = part(random);
        adapt.finish.unused = [SdwaUnused::Pad, SdwaUnused::SignExtend, SdwaUnused::Preserve]
            [random.next() as usize % 3];
    }
    if matches!(row_of.result, ResultKind::Rows(_))
        && row_of.sources.first().is_some_and(|kind| *kind != Kind::Mask)
        && random.next().is_multiple_of(4)
    {
        let first = row(random);
        op.sources[0].words = [Word::Row(first), Word::Row(first.plus(1))];
        adapt.lane_move = Some(moves::lane_move(random, machine));
    }
    if adapt != Adapt::default() {
        op.adapt = Some(Box::new(adapt));
    }
    if row_of.result == ResultKind::Mask || matches!(row_of.result, ResultKind::RowsAndMask(_)) {
        op.mask_destination = machine.mask_destination(scalar_pair(random));
    }
    op.per_lane = true;
    (op, Plan::Vector(VectorPlan { row: row_of, lowering }))
}

/// Names of the operations on pairs of words or halves.
static PAIRS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = TABLES.iter().flat_map(|table| table.iter()).map(|row| row.name);
    names.filter(|name| pair_element(name).is_some()).collect()
});

/// Returns the pair operation `name` with random operands.
fn pair(random: &mut Random, name: &str) -> (Op, Plan) {
    let row_of = find(name).expect("a row of the same name");
    let single = pair_element(name).expect("the operation on one word");
    let lowering = lowerings().find(|lowering| lowering.name == single).expect("its code");
    let mut op = op(Run::Vector(row_of.function(Level::detect())));
    op.destination = row(random);
    let mut adapt = Adapt::default();
    for index in 0..row_of.sources.len() {
        op.sources[index].words = match random.next() % 6 {
            0 => pair_words(scalar_pair(random)),
            1 => [Word::Constant(random.choose(&edges(Kind::F32)) as u32), Word::Constant(0)],
            _ => {
                let first = row(random);
                [Word::Row(first), Word::Row(first.plus(1))]
            }
        };
        let bits = random.next();
        let modifiers = &mut adapt.sources[index];
        (modifiers.low_from_high, modifiers.high_from_low) = (bits & 1 != 0, bits & 2 != 0);
        if name != "v_pk_mov_b32" {
            (modifiers.negate_low, modifiers.negate_high) = (bits & 4 != 0, bits & 8 != 0);
        }
    }
    op.adapt = Some(Box::new(adapt));
    op.per_lane = true;
    (op, Plan::Pair(lowering))
}

/// Returns a move between a lane and a scalar register.
fn lane_access(random: &mut Random, machine: Machine) -> (Op, Plan) {
    let (name, access) = [
        ("v_readfirstlane_b32", LaneAccess::ReadFirst),
        ("v_readlane_b32", LaneAccess::Read),
        ("v_writelane_b32", LaneAccess::Write),
    ][random.next() as usize % 3];
    let mut op = op(Run::Whole(find_whole(name, machine).expect("a row").function));
    op.destination = row(random);
    let pair = scalar_pair(random);
    op.scalar_destination = ScalarIndex(pair.0 + (random.next() & 1) as u8);
    let scalar = Word::Scalar(scalar_pair(random));
    op.sources[0].words = match access {
        LaneAccess::Write => [scalar; 2],
        _ if random.next().is_multiple_of(8) => [scalar; 2],
        _ => [Word::Row(row(random)); 2],
    };
    op.sources[1].words = match random.next() % 3 {
        0 => [Word::Scalar(scalar_pair(random)); 2],
        _ => [Word::Constant(random.next() as u32 % 70); 2],
    };
    (op, Plan::Lane(access))
}

/// Returns a scalar operation that writes EXEC.
fn exec_operation(random: &mut Random, machine: Machine) -> (Op, Plan) {
    let words = machine.lanes / 32;
    let fits = |lowering: &&ScalarLowering| lowering.words == words;
    let all: Vec<&ScalarLowering> = scalar_lowerings().iter().filter(fits).collect();
    let lowering = all[random.next() as usize % all.len()];
    let (mut op, plan) = scalar_operation_of(random, lowering);
    if !lowering.saves_exec {
        op.scalar_destination = ScalarIndex::EXEC;
    }
    op.inst_mut().writes.push(RegisterRange::new(Register::ExecLo, words));
    if random.next() & 1 == 0 {
        op.sources[0].words = pair_words(ScalarIndex::EXEC);
    }
    (op, plan)
}

/// Returns a scalar operation with random operands.
fn scalar_operation(random: &mut Random) -> (Op, Plan) {
    let leaves_exec = |lowering: &&ScalarLowering| !lowering.saves_exec;
    let all: Vec<&ScalarLowering> = scalar_lowerings().iter().filter(leaves_exec).collect();
    let lowering = all[random.next() as usize % all.len()];
    scalar_operation_of(random, lowering)
}

fn scalar_operation_of(random: &mut Random, lowering: &'static ScalarLowering) -> (Op, Plan) {
    let row = crate::execute::scalar::find(lowering.name).expect("a row of the same name");
    let mut op = op(Run::Scalar(row.run));
    op.scalar_destination = scalar_pair(random);
    op.immediate = (random.next() & 0xffff) as i64;
    for (index, words) in row.sources.iter().enumerate() {
        let low = scalar_pair(random);
        let narrow = ScalarIndex(low.0 + (random.next() & 1) as u8);
        op.sources[index].words = match (words, random.next() % 4) {
            (_, 0) => {
                let value = random.choose(&edges(Kind::Wide));
                [Word::Constant(value as u32), Word::Constant((value >> 32) as u32)]
            }
            (1, 1) if random.next() & 1 == 0 => [Word::Scc, Word::Constant(0)],
            (1, _) => [Word::Scalar(narrow); 2],
            _ => pair_words(low),
        };
    }
    (op, Plan::Scalar(row, lowering))
}

/// Returns a load to scalar registers, rarely from an unmapped address.
fn scalar_load(random: &mut Random) -> (Op, Plan) {
    let words = [1, 2, 4, 8][random.next() as usize % 4];
    let access = ScalarAccess {
        space: scalar_memory::Space::Address,
        transfer: scalar_memory::Transfer::Load(words),
        is_scaled: false,
    };
    let mut op = op(Run::ScalarMemory(access));
    op.scalar_destination = match (words, random.next() % 4) {
        (1 | 2, 0) => ScalarIndex::VCC,
        _ => ScalarIndex((random.next() % (SCALARS - u64::from(words))) as u8),
    };
    op.sources[0].words = pair_words(ScalarIndex(BASE));
    op.sources[1].words = match random.next() % 2 {
        0 => [Word::Scalar(ScalarIndex(OFFSET)); 2],
        _ => [Word::Constant(random.next() as u32 % 256); 2],
    };
    op.immediate = match random.next() % 16 {
        0 => -8192,
        1 => BUFFER as i64 - 8,
        _ => (random.next() % 4000) as i64,
    };
    let plan = Plan::of(&op, Machine::default());
    assert!(matches!(plan, Plan::ScalarLoad(_)));
    (op, plan)
}

/// Returns an access to memory or LDS.
fn access(random: &mut Random, machine: Machine) -> (Op, Plan) {
    let words = [1, 1, 2, 3, 4][random.next() as usize % 5];
    let element = match random.next() % 3 {
        0 => Element::Part {
            bytes: 1 + (random.next() & 1) as u8,
            signed: random.next() & 1 == 0,
            half: [Half::Whole, Half::Low, Half::High][random.next() as usize % 3],
        },
        _ => Element::Words(words),
    };
    let stores = random.next().is_multiple_of(3);
    let is_lds = random.next() & 1 == 0;
    let two = (words.min(2), 4 * u32::from(words.min(2)));
    let run = match (is_lds, stores) {
        (true, false) if random.next() & 1 == 0 => {
            Run::Lds(LdsAccess::Read2 { words: two.0, scale: two.1 })
        }
        (true, false) => Run::Lds(LdsAccess::Read(element)),
        (true, true) if random.next() & 1 == 0 => {
            Run::Lds(LdsAccess::Write2 { words: two.0, scale: two.1 })
        }
        (true, true) => Run::Lds(LdsAccess::Write(element)),
        (false, _) => {
            let transfer = if stores { Transfer::Store(element) } else { Transfer::Load(element) };
            let offset = random.next() & 1 == 0;
            let space = match random.next() % 4 {
                0 => Space::Global,
                1 => Space::Flat,
                _ => Space::Buffer { offset, index: false },
            };
            Run::VectorMemory(VectorAccess { space, transfer })
        }
    };
    let mut op = op(run);
    op.destination = match random.next() % 8 {
        // Loads may overwrite address registers.
        0 => RowIndex(ADDRESSES + (random.next() & 1) as u16),
        _ => RowIndex((random.next() % u64::from(ROWS - 3)) as u16),
    };
    op.immediate = (random.next() % 64) as i64 & !3;
    if is_lds {
        op.sources[0].words = [Word::Row(RowIndex(ADDRESSES)); 2];
    } else if let Run::VectorMemory(VectorAccess { space: Space::Buffer { offset, .. }, .. }) = run
    {
        let choice = random.next() as usize % 2;
        if offset {
            op.sources[0].words = [Word::Row(RowIndex(ADDRESSES + choice as u16)); 2];
        }
        op.immediate = (random.next() % 4096) as i64;
        if random.next() & 1 == 0 {
            op.immediate &= !3;
        }
        let resource = ScalarIndex(BUFFERS[choice]);
        op.sources[2].words = [Word::Scalar(resource); 2];
        if random.next() & 1 == 0 {
            op.sources[3].words = [Word::Scalar(ScalarIndex(BUFFER_OFFSET)); 2];
        }
    } else {
        op.immediate -= 16;
        if random.next() & 1 == 0 {
            op.sources[0].words = [Word::Row(RowIndex(ADDRESSES + 1)); 2];
            op.sources[2].words = pair_words(ScalarIndex(BASE));
        } else {
            op.sources[0].words =
                [Word::Row(RowIndex(ADDRESSES + 2)), Word::Row(RowIndex(ADDRESSES + 3))];
        }
    }
    for source in [1, 2] {
        if stores && (source == 1 || is_lds) {
            op.sources[source].words = [Word::Row(row(random)); 2];
        }
    }
    op.per_lane = true;
    let plan = Plan::of(&op, machine);
    assert!(matches!(plan, Plan::Access(_)), "{:?}", op.run);
    (op, plan)
}

/// All state that instructions can change.
#[derive(Clone)]
struct World {
    wave: Wave,
    space: AddressSpace,
    /// Address of the chunked memory.
    chunks: Address,
    lds: Vec<u8>,
}

impl World {
    /// Returns the mapped ranges of memory, each contiguous.
    fn parts(&self) -> [(u64, u64); 3] {
        let (end, start) = (self.chunks.0 + CHUNK, self.chunks.0 + CHUNK - NEAR);
        [(AddressSpace::START, BUFFER), (start, NEAR), (end, NEAR)]
    }

    /// Returns the private memory of the workgroup and that of all workgroups. They cover some of
    /// the accessed addresses, or none.
    fn private_memory(&self, random: &mut Random) -> [Range<u64>; 2] {
        let chunks = self.chunks.0 + CHUNK;
        let private = match random.next() % 5 {
            0 => return [0..0, 0..0],
            1 => AddressSpace::START..AddressSpace::START + BUFFER,
            2 => AddressSpace::START + 512..AddressSpace::START + 1540,
            3 => chunks - 1024..chunks + NEAR,
            _ => chunks - NEAR..chunks + NEAR,
        };
        [private.clone(), private.start - 4096..private.end + 4096]
    }

    fn memory(&self) -> Vec<Vec<u8>> {
        let part = |(start, length)| {
            let mut bytes = vec![0; length as usize];
            self.space.read(Address(start), &mut bytes).expect("memory");
            bytes
        };
        self.parts().map(part).into()
    }

    /// Copies the state of `other` but keeps memory at its addresses.
    fn reset_to(&mut self, other: &World) {
        self.wave = other.wave.clone();
        self.lds.clone_from(&other.lds);
        for ((start, _), content) in self.parts().into_iter().zip(other.memory()) {
            let place = self.space.writable(start, content.len()).expect("memory");
            let at = (start - place.base) as usize;
            place.bytes[at..at + content.len()].copy_from_slice(&content);
        }
    }
}

/// Returns per-lane offsets: consecutive, equal, or arbitrary; a few are far out of range.
fn offsets(random: &mut Random, limit: u64) -> Row {
    let (first, kind, wild) = (random.next() % (limit / 4), random.next() % 4, random.next() % 8);
    let step = [1, 2, 4, 8, 12, 16][random.next() as usize % 6];
    // Often start at a cache line boundary.
    let first = if random.next() & 1 == 0 { first & !63 } else { first };
    Row(std::array::from_fn(|lane| match kind {
        _ if wild == 0 && random.next().is_multiple_of(16) => random.next() as u32,
        0 => (random.next() % (limit - 256)) as u32,
        1 => first as u32 & !3,
        _ => (first as u32 & !3) + lane as u32 * step,
    }))
}

/// Returns random memory contents, or offsets into the same memory, for loads into address
/// registers.
fn content(random: &mut Random, length: u64, holds_offsets: bool) -> Vec<u8> {
    let mut word = || {
        if holds_offsets {
            (random.next() % (length - 64)) as u32 & !3
        } else {
            random.next() as u32
        }
    };
    (0..length / 4).flat_map(|_| word().to_le_bytes()).collect()
}

/// Returns a floating-point number near a boundary between cases: a single, two halves, or the
/// upper half of a double. The exponent is arbitrary, near an end of the range, or near zero; the
/// mantissa is arbitrary, or nearly all zeros or all ones.
fn boundary_bits(random: &mut Random) -> u32 {
    if random.next().is_multiple_of(4) {
        return random.choose(&[0, 1, u64::from(u32::MAX)]) as u32;
    }
    match random.next() % 3 {
        0 => boundary_number(random, 32, 8),
        1 => boundary_number(random, 16, 5) | boundary_number(random, 16, 5) << 16,
        _ => boundary_number(random, 32, 11),
    }
}

/// Returns a boundary case of a `width`-bit number, or of its upper part, with `bits` exponent bits.
fn boundary_number(random: &mut Random, width: u32, bits: u32) -> u32 {
    let bias = (1 << (bits - 1)) - 1;
    let top = (1 << bits) - 1;
    let exponent = match random.next() % 4 {
        0 => random.next() % 4,
        1 => top - random.next() % 4,
        2 => bias - 2 + random.next() % 4,
        _ => random.next() & top,
    };
    let mantissa = match random.next() % 4 {
        0 => random.next() % 2,
        1 => u64::MAX - random.next() % 2,
        _ => random.next(),
    };
    let rest = width - 1 - bits;
    ((random.next() & 1) << (width - 1) | exponent << rest | mantissa & ((1 << rest) - 1)) as u32
}

/// Returns the second word (without the address) and the fourth word of two buffer resources,
/// mostly for buffers of bytes.
fn descriptions(random: &mut Random, machine: Machine) -> [[u32; 2]; 2] {
    let flags = if machine.generation >= Generation::Gfx10 { 0x3101_6000 } else { 0x27000 };
    let all = [[0, flags]; 2];
    all.map(|[high, flags]| match random.next() % 16 {
        0 => [high ^ 1 << 31, flags],
        1 => [high, flags ^ 1 << 23],
        2 => [high, flags ^ 1 << 28],
        3 => [high | 16 << 16, flags],
        _ => [high, flags],
    })
}

fn world(random: &mut Random, machine: Machine) -> World {
    let mut wave = Wave::new(Level::detect());
    wave.reset(machine, WaveId { workgroup: [0; 3], wave: 0 }, 32, 0);
    wave.mode = DEFAULT_MODE;
    wave.pc = START;
    let mut space = AddressSpace::default();
    let buffer = space.allocate(BUFFER).expect("memory");
    let holds_offsets = random.next() & 1 == 0;
    let bytes = content(random, BUFFER, holds_offsets);
    space.write(buffer, &bytes).expect("the buffer");
    let chunks = space.reserve(2 * CHUNK, CHUNK).expect("memory");
    let near = bytes.repeat(2 * (NEAR / BUFFER) as usize);
    space.write(Address(chunks.0 + CHUNK - NEAR), &near).expect("the chunks");
    if random.next() & 1 == 0 {
        space.share();
    }
    let (has_nans, is_sharp) =
        [(false, false), (true, false), (false, true)][random.next() as usize % 3];
    // Give several registers equal values in a lane.
    let common: [u32; 3] = std::array::from_fn(|_| random.next() as u32 & 0x3fff_ffff);
    for row in 0..ROWS + 2 {
        *wave.row_mut(RowIndex(row)) = Row(std::array::from_fn(|_| {
            let float = 0x3f00_0000 + (random.next() as u32 & 0x81ff_ffff);
            match random.next() % 5 {
                4 => common[random.next() as usize % 3],
                _ if is_sharp => boundary_bits(random),
                0 if has_nans => random.choose(&edges(Kind::F32)) as u32,
                1 if has_nans => random.next() as u32,
                1 => random.next() as u32 & 0x3ff,
                _ => float,
            }
        }));
    }
    for index in 0..=SCALARS as u8 {
        wave.write_scalar(ScalarIndex(index), random.next() as u32);
    }
    wave.write_scalar_pair(ScalarIndex::VCC, random.next());
    wave.write_scalar_pair(ScalarIndex(BASE), buffer.0);
    wave.write_scalar(ScalarIndex(OFFSET), random.next() as u32 % 4000);
    wave.write_scalar(ScalarIndex(BUFFER_OFFSET), (random.next() as u32 % 64) & !3);
    for (first, [high, flags]) in BUFFERS.into_iter().zip(descriptions(random, machine)) {
        let records = match random.next() % 4 {
            0 => random.next() as u32 % 6000,
            1 => u32::MAX,
            _ => BUFFER as u32 - 64,
        };
        let words = [buffer.0 as u32, (buffer.0 >> 32) as u32 | high, records, flags];
        for (word, value) in (0..).zip(words) {
            wave.write_scalar(ScalarIndex(first + word), value);
        }
    }
    let rows = random.next() % 16 * 256;
    let private = [buffer.0 + rows, chunks.0 + CHUNK - rows][random.next() as usize % 2];
    private::describe(random, &mut wave, Address(private));
    wave.scc = random.next() & 1 != 0;
    *wave.row_mut(RowIndex(ADDRESSES)) = offsets(random, LDS as u64);
    *wave.row_mut(RowIndex(ADDRESSES + 1)) = offsets(random, BUFFER);
    let places = offsets(random, BUFFER).0.map(|offset| buffer.0 + u64::from(offset));
    *wave.row_mut(RowIndex(ADDRESSES + 2)) = Row(places.map(|place| place as u32));
    *wave.row_mut(RowIndex(ADDRESSES + 3)) = Row(places.map(|place| (place >> 32) as u32));
    wave.set_exec(LaneMask(match random.next() % 8 {
        0 => 0,
        1..4 => random.next(),
        _ => u64::MAX,
    }));
    World { wave, space, chunks, lds: content(random, LDS as u64, holds_offsets) }
}

/// Runs the instructions in the interpreter. Returns the number of lane operations and the fault,
/// if any.
fn interpret(
    wave: &mut Wave,
    lds: &mut [u8],
    space: &mut dyn Memory,
    source: &Source,
) -> (u64, Option<String>) {
    let mut lane_operations = 0;
    for (index, op) in source.ops.iter().enumerate() {
        lane_operations += if op.per_lane { u64::from(wave.active_lanes()) } else { 1 };
        wave.pc = source.addresses[index + 1];
        wave.executed += 1;
        if let Step::Fault(cause) = step_in_range(wave, op, space, lds) {
            return (lane_operations, Some(format!("{:x} {cause:?}", source.addresses[index])));
        }
    }
    (lane_operations, None)
}

/// Runs the compiled code of a block. Returns the number of lane operations and the fault, if any.
fn execute(
    wave: &mut Wave,
    lds: &mut [u8],
    space: &mut dyn Memory,
    candidate: &Candidate,
    variant: Variant,
    workspace: &mut Workspace,
) -> (u64, Option<String>) {
    let variant = Variant { footprint: space.notes_windows(), ..variant };
    let compiled = candidate.compiled(variant).expect("it compiles");
    let block = &compiled.block;
    let mut lane_operations = 0;
    loop {
        if wave.pc == START {
            workspace.prepare(1, compiled.sites.len());
            let until = wave.executed + block.len() as u64;
            let limits = Limits { until, turn: TurnEnd::NEVER, counting: Counting::Nothing };
            workspace.check_generation(space);
            let resources = Resources::of_wave(wave, lds, workspace);
            let context = WaveContext { wave: &mut *wave, memory: &mut *space, lds: &mut *lds };
            let checker = &mut Unchecked;
            let mut outcome = Outcome::default();
            compiled.execute(context, workspace, checker, resources, limits, &mut outcome);
            lane_operations += outcome.lane_operations;
            if let Some((place, cause)) = outcome.fault {
                return (lane_operations, Some(format!("{place:x} {cause:?}")));
            }
        } else if let Some(index) = block
            .source
            .ops
            .iter()
            .enumerate()
            .position(|(index, _)| block.source.addresses[index] == wave.pc)
        {
            // Interpret the instructions after a region that bailed out.
            let op = &block.source.ops[index];
            lane_operations += if op.per_lane { u64::from(wave.active_lanes()) } else { 1 };
            wave.pc = block.source.addresses[index + 1];
            wave.executed += 1;
            if let Step::Fault(cause) = step_in_range(wave, op, space, lds) {
                let place = block.source.addresses[index];
                return (lane_operations, Some(format!("{place:x} {cause:?}")));
            }
        } else {
            return (lane_operations, None);
        }
    }
}

/// Compares interpreter and compiled code on `worlds` random states. Returns a description of the
/// first difference.
fn difference(
    random: &mut Random,
    machine: Machine,
    operations: Vec<(Op, Plan)>,
    worlds: usize,
) -> Option<String> {
    // Hosts with AVX-512 can also execute code compiled for AVX2.
    let level = match Level::detect() {
        Level::Avx512 if random.next().is_multiple_of(3) => Level::Avx2,
        level => level,
    };
    let (ops, plans): (Vec<Op>, Vec<Plan>) = operations.into_iter().unzip();
    let names: Vec<String> = ops.iter().zip(&plans).map(|(op, plan)| text(op, plan)).collect();
    let addresses = (0..=ops.len() as u64).map(|index| START + 4 * index).collect();
    let source = Source { start: START, ops, plans, addresses, next_runs: Default::default() };
    let candidate = Candidate::new(Block::new(source, 0, machine));
    // In some blocks, mark all or some flat accesses as having resolved to non-global memory.
    let flat_private = random.next() & 1 != 0;
    let flat = |op: &Op| matches!(op.run, Run::VectorMemory(access) if access.space.is_flat());
    for index in 0..candidate.block.len() {
        if flat(&candidate.block.source.ops[index]) && !random.next().is_multiple_of(4) {
            candidate.block.record_non_global(index);
        }
    }
    let usual = Variant { flat_private, ..Variant::default() };
    for (footprint, nan_exact) in [(false, false), (true, false), (false, true)] {
        let variant = Variant { footprint, nan_exact, ..usual };
        candidate.compile(machine, level, variant, &mut flipwave_jit::InProcess);
    }
    for world_number in 0..worlds {
        let mut workspace = Workspace::default();
        let before = world(random, machine);
        let mut found = before.clone();
        let footprint = world_number % 3 == 1;
        let variant = Variant { nan_exact: world_number % 3 == 2, ..usual };
        let mut touched = TouchedRegions::default();
        let private = before.private_memory(random);
        // The first run finds memory windows, the second run reuses them, and the third run meets
        // windows found for other registers.
        let different = world(random, machine);
        for before in [&before, &before, &different] {
            let mut expected = before.clone();
            found.reset_to(before);
            let [mut one, mut other] = [(); 2].map(|()| FootprintBuilder::default());
            let World { wave, space, lds, .. } = &mut expected;
            let wanted = if footprint {
                let mut unused = TouchedRegions::default();
                let mut memory = Recording::new(space, &mut one, &mut unused, private.clone());
                interpret(wave, lds, &mut memory, &candidate.block.source)
            } else {
                interpret(wave, lds, space, &candidate.block.source)
            };
            let World { wave, space, lds, .. } = &mut found;
            let given = if footprint {
                // Reset private memory as at the start of a workgroup's turn.
                workspace.forget_private();
                let mut memory = Recording::new(space, &mut other, &mut touched, private.clone());
                execute(wave, lds, &mut memory, &candidate, variant, &mut workspace)
            } else {
                execute(wave, lds, space, &candidate, variant, &mut workspace)
            };
            let [one, other] = [one, other].map(FootprintBuilder::build);
            // After a NaN bailout, values are recomputed and may yield other addresses.
            let same_footprint = match wanted.1 {
                None => one == other,
                Some(_) => true,
            };
            if !same_footprint {
                return Some(format!("{names:#?}: {one:?} {other:?}"));
            }
            let same_wave = WaveCopy::of(&expected.wave).is_state_of(&found.wave);
            let is_same = wanted == given
                && same_wave
                && expected.wave.exec_row() == found.wave.exec_row()
                && expected.wave.active_lanes() == found.wave.active_lanes()
                && expected.wave.executed == found.wave.executed
                && expected.lds == found.lds
                && expected.memory() == found.memory();
            if !is_same {
                let rows: Vec<String> = (0..ADDRESSES + 4)
                    .filter_map(|row| {
                        let [one, other] =
                            [&expected, &found].map(|world| world.wave.row(RowIndex(row)).0);
                        let lane = (0..64).find(|lane| one[*lane] != other[*lane])?;
                        Some(format!("v{row}[{lane}] {:x} {:x}", one[lane], other[lane]))
                    })
                    .collect();
                let words = expected.wave.scalars.iter().zip(&found.wave.scalars).enumerate();
                let words: Vec<_> = words.filter(|(_, (one, other))| one != other).collect();
                let lds = expected.lds.iter().zip(&found.lds).position(|(one, other)| one != other);
                return Some(format!(
                    "{names:#?}: {wanted:?} {given:?} {rows:?} {words:x?} SCC {} {} LDS {lds:?}",
                    expected.wave.scc, found.wave.scc
                ));
            }
        }
    }
    None
}

/// Formats an operation for a failure message.
fn text(op: &Op, plan: &Plan) -> String {
    let name = match plan {
        Plan::Vector(plan) => plan.lowering.name,
        Plan::Scalar(_, lowering) => lowering.name,
        Plan::Pair(lowering) => lowering.name,
        Plan::Lane(_) => "lane",
        Plan::Exchange(_) => "exchange",
        Plan::ScalarLoad(_) => "scalar load",
        _ => "access",
    };
    let Op { run, destination, scalar_destination, mask_destination, sources, .. } = op;
    let run = if name == "access" { format!("{run:?}") } else { String::new() };
    let lane_move = op.lane_move();
    format!(
        "{name} {run} {destination:?} {scalar_destination:?} {mask_destination:?} {sources:?} {lane_move:?}"
    )
}

fn machines() -> [Machine; 4] {
    let of = |processor: &str, lanes| Machine::new(&processor.parse().expect("a target"), lanes);
    [of("gfx90a", 64), of("gfx1100", 32), of("gfx1030", 32), of("gfx1100", 64)]
}

#[test]
fn compiled_operation_matches_interpreter() {
    let mut random = Random(1);
    for round in 0..2 * blocks().div_ceil(100) {
        let machine = machines()[round as usize % 4];
        for lowering in lowerings() {
            let operations = vec![vector(&mut random, lowering, machine)];
            if let Some(difference) = difference(&mut random, machine, operations, 12) {
                panic!("{}: {difference}", lowering.name);
            }
        }
        for name in PAIRS.iter() {
            let operations = vec![pair(&mut random, name)];
            if let Some(difference) = difference(&mut random, machine, operations, 12) {
                panic!("{name}: {difference}");
            }
        }
    }
}

/// Returns random operations, including memory accesses.
fn sequence(random: &mut Random, machine: Machine, length: u64) -> Vec<(Op, Plan)> {
    let all: Vec<&Lowering> = lowerings().collect();
    let mut operations: Vec<(Op, Plan)> = (0..1 + random.next() % length)
        .map(|_| match random.next() % 20 {
            0..5 => scalar_operation(random),
            5..9 => access(random, machine),
            9 => lane_access(random, machine),
            10 => {
                let name = PAIRS[random.next() as usize % PAIRS.len()];
                pair(random, name)
            }
            11 => scalar_load(random),
            12 => moves::exchange(random, machine),
            13 => private::access(random, machine),
            _ => {
                let lowering = all[random.next() as usize % all.len()];
                vector(random, lowering, machine)
            }
        })
        .collect();
    if random.next().is_multiple_of(3) {
        operations.push(exec_operation(random, machine));
        operations.extend((0..random.next() % 3).map(|_| scalar_operation(random)));
    }
    operations
}

/// Number of random blocks to test: `FLIPWAVE_BLOCKS`, or the default of the test suite.
fn blocks() -> u64 {
    let asked = std::env::var("FLIPWAVE_BLOCKS").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if Depth::asked() == Depth::Sample { 36 } else { 100 })
}

#[test]
fn random_blocks_match_interpreter() {
    for seed in 0..blocks() {
        let mut random = Random(seed);
        let machine = machines()[seed as usize % 4];
        let operations = sequence(&mut random, machine, 24);
        if let Some(difference) = difference(&mut random, machine, operations, 8) {
            panic!("seed {seed}: {difference}");
        }
    }
}

/// Loads and stores that touch bytes of the same cache lines, partially and in full.
#[test]
fn footprint_has_exactly_the_touched_device_memory() {
    for seed in 0..blocks() {
        let mut random = Random(seed ^ 0x70_0000);
        let machine = machines()[seed as usize % 4];
        let mut accesses = Vec::new();
        while accesses.len() < 2 + seed as usize % 5 {
            let (mut op, _) = access(&mut random, machine);
            if let Run::VectorMemory(VectorAccess { space, .. }) = op.run {
                if !matches!(space, Space::Buffer { .. }) {
                    op.immediate = [0, 0, 0, 4, -32, 60][random.next() as usize % 6];
                }
                let plan = Plan::of(&op, machine);
                accesses.push((op, plan));
            }
        }
        if let Some(difference) = difference(&mut random, machine, accesses, 24) {
            panic!("seed {seed}: {difference}");
        }
    }
}

/// Repeated loads and stores of registers to memory that others hold copies of.
#[test]
fn private_loads_return_last_store() {
    for seed in 0..blocks() {
        let mut random = Random(seed ^ 0x70_0001);
        let machine = machines()[seed as usize % 4];
        let accesses = (0..2 + seed % 7).map(|_| private::access(&mut random, machine)).collect();
        if let Some(difference) = difference(&mut random, machine, accesses, 12) {
            panic!("seed {seed}: {difference}");
        }
    }
}

#[test]
fn nan_exact_code_does_not_bail_out_at_nans() {
    let machine = machines()[0];
    for name in ["v_add_f32", "v_fma_f32", "v_mul_f64", "v_rcp_f32", "v_sqrt_f32", "v_mul_f16"] {
        let lowering = lowerings().find(|lowering| lowering.name == name).expect("its code");
        let row_of = find(name).expect("a row");
        let [bailed_out, settled] = [false, true].map(|nan_exact| {
            let mut op = op(Run::Vector(row_of.function(Level::detect())));
            let all = [Word::Row(RowIndex(0)), Word::Row(RowIndex(1))];
            op.sources[..row_of.sources.len()].fill(crate::instruction::Source { words: all });
            op.destination = RowIndex(2);
            op.per_lane = true;
            let plan = Plan::Vector(VectorPlan { row: row_of, lowering });
            let addresses = vec![START, START + 4];
            let source = Source {
                start: START,
                ops: vec![op],
                plans: vec![plan],
                addresses,
                next_runs: Default::default(),
            };
            let candidate = Candidate::new(Block::new(source, 0, machine));
            let variant = Variant { nan_exact, ..Variant::default() };
            candidate.compile(machine, Level::detect(), variant, &mut flipwave_jit::InProcess);
            for _ in 0..20 {
                let World { mut wave, mut space, mut lds, .. } = world(&mut Random(3), machine);
                wave.set_exec(LaneMask(u64::MAX));
                // NaNs, and negative numbers, whose square roots are NaNs.
                for row in 0..2 {
                    wave.row_mut(RowIndex(row)).0.fill(0xffff_fc01);
                }
                let mut workspace = Workspace::default();
                execute(&mut wave, &mut lds, &mut space, &candidate, variant, &mut workspace);
            }
            candidate.block.has_frequent_nan_bailouts()
        });
        assert_eq!((bailed_out, settled), (true, false), "{name}");
    }
}

#[test]
fn flat_private_code_does_not_bail_out_at_private_accesses() {
    for machine in machines() {
        let transfer = Transfer::Load(Element::Words(2));
        let (mut op, _) = private::flat(&mut Random(5), machine, transfer);
        op.run = Run::VectorMemory(VectorAccess { space: Space::Flat, transfer });
        op.immediate = 8;
        let plan = Plan::of(&op, machine);
        let addresses = vec![START, START + 4];
        let source = Source {
            start: START,
            ops: vec![op],
            plans: vec![plan],
            addresses,
            next_runs: Default::default(),
        };
        let candidate = Candidate::new(Block::new(source, 0, machine));
        candidate.block.record_non_global(0);
        let [private, bailed_out] = [true, false].map(|flat_private| {
            let variant = Variant { flat_private, ..Variant::default() };
            candidate.compile(machine, Level::detect(), variant, &mut flipwave_jit::InProcess);
            let mut workspace = Workspace::default();
            let World { wave, mut space, mut lds, .. } = world(&mut Random(3), machine);
            for round in 0..20 {
                let mut wave = wave.clone();
                private::point(&mut wave, round * 4);
                execute(&mut wave, &mut lds, &mut space, &candidate, variant, &mut workspace);
            }
            candidate.block.has_frequent_non_global()
        });
        assert_eq!((private, bailed_out), (false, true), "{machine:?}");
    }
}

#[test]
fn comparison_detects_wrong_code() {
    let wrong = [
        (" add ", " sub "),
        (" sub ", " add "),
        (" and ", " or "),
        (" xor ", " or "),
        (" shl ", " lshr "),
        (" lshr ", " ashr "),
        ("#31", "#63"),
        (" ult ", " ule "),
        (" slt ", " ult "),
        (" sgt ", " sge "),
        (" eq ", " ne "),
        (" olt ", " ult "),
        (" oeq ", " ueq "),
        (" fadd ", " fsub "),
        (" fmul ", " fadd "),
        (".fma.", ".fmuladd."),
        (".floor.", ".ceil."),
        (".roundeven.", ".trunc."),
        (".umin.", ".smin."),
        (" uitofp ", " sitofp "),
        (" zext ", " sext "),
        (".fptosi.sat.", ".fptoui.sat."),
        ("sub W %a, %b", "sub W %b, %a"),
    ];
    let mut random = Random(7);
    let mut noticed = 0;
    for (right, wrong) in wrong {
        let mut changed = lowerings().filter(|lowering| lowering.code.contains(right));
        // Some mistakes have no effect in some operations, such as swapped addends.
        let machine = machines()[0];
        let is_noticed = changed.any(|lowering| {
            let code: &'static str = lowering.code.replacen(right, wrong, 1).leak();
            let altered: &'static Lowering = Box::leak(Box::new(Lowering { code, ..*lowering }));
            // A mistake may not show with all operands, so try several.
            (0..4).any(|_| {
                let operations = vec![vector(&mut random, altered, machine)];
                difference(&mut random, machine, operations, 8).is_some()
            })
        });
        // A product and a sum that the host rounds once give the same result as a fused operation.
        assert!(is_noticed || wrong == ".fmuladd.", "{right} as {wrong}");
        noticed += usize::from(is_noticed);
    }
    assert!(noticed >= 20, "{noticed}");
}

/// 1046/1024 * 2005/4096 + 1024 is a little more than half way from 1024 to 1025.
#[test]
fn fused_products_of_halves_are_rounded_once() {
    let row_of = find("v_fma_f16").expect("a row");
    let right = lowerings().find(|lowering| lowering.name == row_of.name).expect("its code");
    let cut =
        right.code.replace("%odd = or D %above, %last", "%odd = or D %above, zeroinitializer");
    assert_ne!(cut, right.code);
    let cut: &'static Lowering = Box::leak(Box::new(Lowering { code: cut.leak(), ..*right }));
    let differs = |lowering| {
        let mut op = op(Run::Vector(row_of.function(Level::detect())));
        for (source, bits) in op.sources.iter_mut().zip([0x3c16, 0x37d5, 0x6400]) {
            source.words = [Word::Constant(bits); 2];
        }
        op.per_lane = true;
        let operations = vec![(op, Plan::Vector(VectorPlan { row: row_of, lowering }))];
        difference(&mut Random(8), machines()[0], operations, 12)
    };
    assert_eq!(differs(right), None);
    assert!(differs(cut).is_some());
}
