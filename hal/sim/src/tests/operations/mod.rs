//! Operation tables, checked against independent references at every SIMD level of the host.

mod choice;
mod compare;
mod constants;
pub mod control;
mod convert;
pub(crate) mod coverage;
mod cross_lane;
mod cube;
mod division;
mod exact;
mod float;
mod integer;
mod matrix;
mod modifiers;
mod newest;
mod packed;
mod rdna;
mod small_float;
mod summed_dots;
mod tables;
mod transcendental;

use crate::execute::lane::{Kind, ResultKind};
use crate::execute::operations::find;
use crate::instruction::VectorOperation;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::wave::{LANES, Level, Machine, Mode, RowIndex, ScalarIndex, Wave};
use exact::Format;
use flipwave_isa::LaneMask;

/// MODE as set by compilers: no flushing, IEEE rules, DX10 clamp.
pub const DEFAULT_MODE: Mode = Mode(0x3f0);

/// Values of MODE that cover its effects on arithmetic: each direction in each field, combined with
/// another direction in the other field; denormals kept, flushed, and flushed only in sources or
/// results; overflow clamped; IEEE rules and DX10 clamp off.
pub const MODES: [Mode; 9] = [
    DEFAULT_MODE,
    Mode(0x300),
    Mode(0x3f0 | 0b1001),
    Mode(0x3f0 | 0b1110),
    Mode(0x3f0 | 0b0111),
    Mode(0x390 | 0b0101),
    Mode(0x360 | 0b1111 | Mode::FP16_OVERFLOW),
    Mode(0x0f0 | Mode::FP16_OVERFLOW),
    Mode(0b1010),
];

/// Returns whether MODE flushes denormal sources and results of a format. Bits 5:4 allow denormals
/// in single precision and bits 7:6 in the other formats; the lower bit of each pair applies to
/// sources.
pub fn flushes(format: Format, mode: Mode) -> [bool; 2] {
    let allowed = if format == exact::SINGLE { mode.0 >> 4 } else { mode.0 >> 6 };
    [allowed & 1 == 0, allowed & 2 == 0]
}

/// Replaces a denormal by zero if `flush` is set.
pub fn flushed_if(flush: bool, format: Format, bits: u64) -> u64 {
    if flush { format.flush(bits) } else { bits }
}

/// First register of the result.
const DESTINATION: RowIndex = RowIndex(100);

/// Returns the SIMD levels of this host.
pub fn levels() -> Vec<Level> {
    let all = [Level::Plain, Level::Avx2, Level::Avx512];
    all[..=Level::detect() as usize].to_vec()
}

/// Sources of one lane.
pub type Sources = [u64; 4];

/// Result of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The words of the per-lane result.
    pub value: u64,
    /// The lane's bit of the mask result.
    pub mask: bool,
}

/// Returns an instruction that executes `operation` on registers 0, 2, 4 and 6.
pub fn instruction(operation: &VectorOperation, level: Level) -> Op {
    let mut op = op(Run::Vector(operation.function(level)));
    op.destination = DESTINATION;
    op.mask_destination = Machine::default().mask_destination(ScalarIndex::VCC);
    for (index, kind) in operation.sources.iter().enumerate() {
        let first = 2 * index as u16;
        let words = match kind {
            Kind::Mask => [Word::Scalar(ScalarIndex(10)), Word::Scalar(ScalarIndex(11))],
            _ => [Word::Row(RowIndex(first)), Word::Row(RowIndex(first + 1))],
        };
        op.sources[index] = Source { words };
    }
    op
}

/// Executes `operation` once, with the sources of each lane.
pub fn run(
    operation: &VectorOperation,
    level: Level,
    mode: Mode,
    lanes: &[Sources; LANES],
) -> [Outcome; LANES] {
    let mut wave = Wave::new(level);
    wave.mode = control::mode(mode);
    wave.set_exec(LaneMask::FULL);
    let op = instruction(operation, level);
    for (index, kind) in operation.sources.iter().enumerate() {
        let mut mask = 0;
        for (lane, sources) in lanes.iter().enumerate() {
            wave.rows[2 * index].0[lane] = sources[index] as u32;
            wave.rows[2 * index + 1].0[lane] = (sources[index] >> 32) as u32;
            mask |= (sources[index] & 1) << lane;
        }
        if *kind == Kind::Mask {
            wave.write_scalar_pair(ScalarIndex(10), mask);
        }
    }
    let Run::Vector(function) = op.run else { panic!("not a vector operation") };
    // SAFETY: `levels` returns only levels that the host supports.
    unsafe { function(&mut wave, &op) };
    let (words, masked) = match operation.result {
        ResultKind::Rows(words) => (words, false),
        ResultKind::Mask => (0, true),
        ResultKind::RowsAndMask(words) => (words, true),
    };
    std::array::from_fn(|lane| {
        let word = |index: u16| u64::from(wave.row(DESTINATION.plus(index)).0[lane]);
        Outcome {
            value: match words {
                0 => 0,
                1 => word(0),
                _ => word(0) | word(1) << 32,
            },
            mask: masked && wave.vcc() >> lane & 1 != 0,
        }
    })
}

/// Returns the operation `name`, which must exist.
pub fn operation(name: &str) -> &'static VectorOperation {
    find(control::operation(name)).unwrap_or_else(|| panic!("no row: {name}"))
}

/// Deterministic random numbers (Steele, Lea, Flood: SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns one of `among`.
    pub fn choose(&mut self, among: &[u64]) -> u64 {
        among[self.next() as usize % among.len()]
    }
}

/// Returns edge cases of a source of this kind.
pub fn edges(kind: Kind) -> Vec<u64> {
    let magnitudes: &[u64] = match kind {
        Kind::F16 | Kind::Packed => &[
            0, 1, 0x3ff, 0x400, 0x401, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3e00, 0x4000, 0x6400,
            0x7bff, 0x7c00, 0x7c01, 0x7dff, 0x7e00, 0x7fff,
        ],
        Kind::F32 | Kind::Mixed | Kind::PackedWords => &[
            0,
            1,
            0x7f_ffff,
            0x80_0000,
            0x80_0001,
            0x3f00_0000,
            0x3f7f_ffff,
            0x3f80_0000,
            0x3f80_0001,
            0x3fc0_0000,
            0x4000_0000,
            0x4b00_0000,
            0x4b80_0001,
            0x4f00_0000,
            0x5f00_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fbf_ffff,
            0x7fc0_0000,
            0x7fff_ffff,
            0x3880_0000,
            0x3380_0000,
            0x477f_e000,
            0x477f_f000,
        ],
        Kind::F64 => &[
            0,
            1,
            0xf_ffff_ffff_ffff,
            0x10_0000_0000_0000,
            0x10_0000_0000_0001,
            0x3fe0_0000_0000_0000,
            0x3fef_ffff_ffff_ffff,
            0x3ff0_0000_0000_0000,
            0x3ff0_0000_0000_0001,
            0x3ff8_0000_0000_0000,
            0x4000_0000_0000_0000,
            0x41df_ffff_ffc0_0000,
            0x41f0_0000_0000_0000,
            0x4330_0000_0000_0001,
            0x7fef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff7_ffff_ffff_ffff,
            0x7ff8_0000_0000_0000,
            0x7fff_ffff_ffff_ffff,
            0x3810_0000_0000_0000,
            0x3690_0000_0000_0000,
            0x47ef_ffff_efff_ffff,
        ],
        _ => {
            return vec![
                0,
                1,
                2,
                3,
                7,
                8,
                15,
                16,
                31,
                32,
                33,
                63,
                64,
                0x7f,
                0x80,
                0xff,
                0x7fff,
                0x8000,
                0xffff,
                0x1_0000,
                0x7f_ffff,
                0x80_0000,
                0xff_ffff,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_ffff,
                0x8000_8000,
                0x7fff_7fff,
                0xffff_fffe,
                0x1_0000_0000,
                0x7fff_ffff_ffff_ffff,
                0x8000_0000_0000_0000,
                u64::MAX,
            ];
        }
    };
    let sign = match kind {
        Kind::F16 | Kind::Packed => 15,
        Kind::F64 => 63,
        _ => 31,
    };
    magnitudes.iter().flat_map(|bits| [*bits, bits | 1 << sign]).collect()
}

/// Returns a value of this kind, often an edge case or close to one.
pub fn draw(random: &mut Random, kind: Kind) -> u64 {
    let one = |random: &mut Random, kind: Kind| match random.next() % 4 {
        0 => random.choose(&edges(kind)),
        1 => random.choose(&edges(kind)) ^ (random.next() & 0xff),
        _ => random.next(),
    };
    match kind {
        Kind::Packed => one(random, kind) & 0xffff | (one(random, kind) & 0xffff) << 16,
        Kind::PackedWords => one(random, kind) & 0xffff_ffff | one(random, kind) << 32,
        Kind::Mask => random.next() & 1,
        _ if kind.words() == 1 => one(random, kind) & 0xffff_ffff,
        _ => one(random, kind),
    }
}

/// Returns sources for a check: all pairs of edge cases and `count` random ones.
pub fn samples(operation: &VectorOperation, count: usize) -> Vec<Sources> {
    let mut random = Random(0x5eed);
    let kinds = operation.sources;
    let mut samples = Vec::new();
    let random_source =
        |random: &mut Random, index: usize| kinds.get(index).map_or(0, |kind| draw(random, *kind));
    for a in edges(kinds[0]) {
        for b in kinds.get(1).map_or(vec![0], |kind| edges(*kind)) {
            samples.push([a, b, random_source(&mut random, 2), random_source(&mut random, 3)]);
        }
    }
    for _ in 0..count {
        samples.push(std::array::from_fn(|index| random_source(&mut random, index)));
    }
    samples
}

/// Returns all 16-bit numbers as first source.
pub fn all_halves() -> Vec<Sources> {
    (0..0x1_0000).map(|bits| [bits, 0, 0, 0]).collect()
}

/// Compares an operation with a reference at all levels. Sources of a word or a half are truncated
/// before they are passed to the reference.
pub fn differs(
    name: &str,
    mode: Mode,
    samples: &[Sources],
    reference: impl Fn(&Sources) -> Outcome,
) -> Option<String> {
    let operation = operation(name);
    let cut = |sources: &Sources| -> Sources {
        std::array::from_fn(|index| match operation.sources.get(index) {
            Some(Kind::Half | Kind::F16) => sources[index] & 0xffff,
            Some(Kind::Mask) => sources[index] & 1,
            Some(kind) if kind.words() == 1 => sources[index] & 0xffff_ffff,
            Some(_) => sources[index],
            None => 0,
        })
    };
    if control::records() {
        return None;
    }
    for chunk in samples.chunks(LANES) {
        let mut lanes = [[0; 4]; LANES];
        lanes[..chunk.len()].copy_from_slice(chunk);
        let expected: Vec<_> = chunk.iter().map(|sources| reference(&cut(sources))).collect();
        for level in levels() {
            let outcomes = run(operation, level, mode, &lanes);
            for ((sources, outcome), expected) in chunk.iter().zip(outcomes).zip(&expected) {
                if outcome != *expected {
                    return Some(format!(
                        "{name} {level:?} {:#x}: {:x?} gives {outcome:x?}, not {expected:x?}",
                        mode.0,
                        cut(sources)
                    ));
                }
            }
        }
    }
    None
}

/// Fails if an operation differs from a reference that returns words.
pub fn check(name: &str, mode: Mode, samples: &[Sources], reference: impl Fn(&Sources) -> u64) {
    let reference = |sources: &Sources| Outcome { value: reference(sources), mask: false };
    if let Some(difference) = differs(name, mode, samples, reference) {
        panic!("{difference}");
    }
}
