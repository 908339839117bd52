//! Enumeration of encodings: everything that LLVM decodes for gfx90a, and samples for other
//! processors that cover each kind of instruction with every modifier.

use super::table::pages;
use super::{Treatment, treatment};
use crate::instruction::control::Control;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::translate::translate;
use crate::wave::{Level, Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Encoding, Inst, Isa, Pc, RegisterRange, Target, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread::ScopedJoinHandle;

/// Words of an instruction, padded at the end.
pub type Words = [u32; 4];

/// Number of additional random encodings.
const RANDOM_WORDS: u32 = if cfg!(debug_assertions) { 300_000 } else { 5_000_000 };

/// Returns the instruction decoder of a processor.
pub fn isa(processor: &str) -> Isa {
    Isa::new(&processor.parse().expect("a target")).expect("LLVM has it")
}

/// Decodes the instruction at the start of `words`.
pub fn decode(isa: &Isa, words: Words) -> Option<Inst> {
    isa.decode(&words.map(u32::to_le_bytes).concat(), Pc(0)).ok()
}

/// Returns every opcode combined with words that name registers, constants, sub-dword selects and
/// DPP controls.
pub fn structured() -> impl Iterator<Item = Words> {
    /// Low halves of the first word, with second and third words.
    const SHORT: [(u32, u32); 10] = [
        (0, 0),
        (0x8000, 0x0080_0000),
        (0x0102, 0x0001_0203),
        (0x8004, 0x0404_0200),
        (0x1234, 0x8182_8384),
        (0x0000, 0x0080_0102),
        (0x0006, 0x1806_0502),
        // Sub-dword selects, DPP, a literal.
        (0x02f9, 0x0606_0602),
        (0x02fa, 0xff00_e402),
        (0x02ff, 0x3f80_0000),
    ];
    /// Second and third words of instructions that always have them.
    const LONG: [(u32, u32); 14] = [
        (0, 0),
        // Three sources: vector registers, accumulation registers, scalar registers and constants.
        (0x0422_0902, 0),
        (0x1c22_0902, 0x0004_0200),
        (0x0200_0102, 0),
        (0x0a22_0902, 0),
        (0x0001_0200, 0),
        (0x0080_0082, 0),
        // Addresses, data and resources of memory operations of gfx9 to gfx11.
        (0x0404_0200, 0),
        (0x7c04_0200, 0),
        (0x8004_0402, 0),
        // Memory operations of gfx12, which have three words.
        (0x0200_0004, 0x0000_0008),
        (0xf800_0000, 0),
        // DPP with a control word, and with eight lane selects.
        (0x0422_08fa, 0xff00_e402),
        (0x0422_08e9, 0x00fa_c602),
    ];
    /// Low halves of the first word: result, null or scalar address; an accumulation register, a
    /// literal.
    const LOW: [u32; 3] = [0x0004, 0x807c, 0x1110];
    // If the first two bits are not both set, the next seven bits hold the opcode, except for VOPC,
    // SOPC and SOPP, whose opcodes begin at bit 16 or 17.
    let short = (0..0x180_u32)
        .flat_map(|opcode| [0, 4, 0x6a].map(|result| opcode << 7 | result))
        .chain(0x7c00..0x7e00)
        .chain(0xbf00..0xc000)
        .chain(0xc000..=0xffff_u32)
        .flat_map(|upper| SHORT.map(|(lower, second)| [upper << 16 | lower, second, 0, 0]));
    let long = |first: u32| LONG.map(|(second, third)| [first, second, third, 0]);
    let vector = (0xc000..=0xffff_u32)
        .flat_map(move |upper| LOW.into_iter().flat_map(move |low| long(upper << 16 | low)));
    // Memory operations of gfx12 have their opcodes in bits 13 to 21 (SMEM: 13 to 18): buffers,
    // scalar memory, and the three kinds of flat memory.
    let memory = [0xc400_0000, 0xf400_0000, 0xec00_0000, 0xed00_0000, 0xee00_0000_u32]
        .into_iter()
        .flat_map(move |prefix| {
            (0..0x200).flat_map(move |opcode| {
                [4, 0x7c].into_iter().flat_map(move |low| long(prefix | opcode << 13 | low))
            })
        });
    // SOP1 and VOP1 have their opcodes in lower bits.
    let sop1 = (0..256).flat_map(|opcode| {
        [0xbe80_0002 | opcode << 8, 0xbe84_0008 | opcode << 8].map(|first| [first, 0, 0, 0])
    });
    let vop1 = (0..256).flat_map(|opcode| {
        [[0x102, 0], [2, 0], [0xf9, 0x0006_0602], [0xfa, 0xff00_e402]]
            .map(|[source, second]| [0x7e04_0000 | opcode << 9 | source, second, 0, 0])
    });
    // Matrix operations of gfx11 and gfx12 set another bit and take no constants.
    let matrix = (0xcc40..0xcc80_u32)
        .flat_map(|upper| [0x4004, 0x4010].map(|lower| [upper << 16 | lower, 0x1c22_0902, 0, 0]));
    short.chain(vector).chain(matrix).chain(memory).chain(sop1).chain(vop1).chain(newest())
}

/// Returns the instructions of gfx1250 with four words, or with three words of a new format: scaled
/// matrix products and tensor operations.
fn newest() -> impl Iterator<Item = Words> {
    let scaled = [(0xcc35_0000, 0x0402_0501), (0xcc3a_0000, 0x0402_0902)].into_iter();
    let products = [[0xcc33_0000, 0x04a2_3108], [0xcc88_4000, 0x1ca2_4110]];
    let scaled = scaled.flat_map(move |(first, second)| {
        products.map(|[third, fourth]| [first, second, third, fourth])
    });
    let tensors = [0xd071_0001, 0xd071_4001].map(|first| [first, 0x7c00_0000, 0x7c7c_0400, 0]);
    scaled.chain(tensors)
}

/// Returns deterministic random words.
pub fn random() -> impl Iterator<Item = Words> {
    let mut random = Random(3);
    (0..RANDOM_WORDS).map(move |_| {
        let [first, second] = [random.next(), random.next()];
        [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
    })
}

/// Sample encodings by instruction encoding and name.
pub type Samples = BTreeMap<(Encoding, &'static str), Vec<Words>>;

/// Collects sample encodings of each kind of instruction of the target.
fn samples(isa: &Isa) -> Samples {
    const MOST: usize = 4;
    let mut samples = Samples::new();
    for words in structured().chain(random().take(100_000)) {
        let Some(inst) = decode(isa, words) else { continue };
        let known = samples.entry((inst.encoding, inst.operation.name())).or_default();
        if known.len() < MOST {
            known.push(words);
        }
    }
    samples
}

/// Returns the entries of [`WALKED`] whose pages are checked.
fn walked() -> impl Iterator<Item = (&'static str, usize)> {
    let is_looked_at = |walked: &str| pages().any(|(processor, _)| processor == walked);
    WALKED.into_iter().filter(move |(processor, _)| is_looked_at(processor))
}

/// Processors whose encodings are enumerated, each with the sampling interval of neighbours.
const WALKED: [(&str, usize); 6] = [
    ("gfx90a", 1),
    ("gfx942", 5),
    ("gfx950", 5),
    ("gfx1150", 10),
    ("gfx1201", 10),
    ("gfx1250", 10),
];

/// Samples of all checked processors, shared by several tests.
pub static SAMPLES: LazyLock<BTreeMap<&'static str, Samples>> =
    LazyLock::new(|| for_each_page(|processor| samples(&isa(processor))));

/// Computes a value for each checked processor in parallel. Tests that wait for it leave the host's
/// cores to it.
pub fn for_each_page<T: Send>(compute: impl Fn(&str) -> T + Sync) -> BTreeMap<&'static str, T> {
    let compute = &compute;
    std::thread::scope(|scope| {
        let start = |(processor, _)| (processor, scope.spawn(move || compute(processor)));
        let threads: Vec<_> = pages().map(start).collect();
        let end = |(processor, thread): (_, ScopedJoinHandle<'_, T>)| {
            (processor, thread.join().expect("no panic"))
        };
        threads.into_iter().map(end).collect()
    })
}

/// Returns the sampled encodings of a processor.
fn sampled(processor: &str) -> impl Iterator<Item = Words> {
    SAMPLES[processor].values().flatten().copied()
}

/// Returns every `apart`-th of the sampled encodings and their neighbours.
fn sampled_with_neighbours(processor: &str, apart: usize) -> impl Iterator<Item = Words> {
    sampled(processor).flat_map(neighbours).step_by(apart)
}

/// Returns the machines of a processor, one for each wave size.
fn machines(processor: &str) -> Vec<Machine> {
    let target: Target = processor.parse().expect("a target");
    target.wave_sizes().iter().map(|lanes| Machine::new(&target, *lanes)).collect()
}

/// Returns an encoding and all encodings that differ from it in one bit.
pub fn neighbours(sample: Words) -> impl Iterator<Item = Words> {
    let flipped = (0..64).map(move |bit| {
        let mut words = sample;
        words[bit / 32] ^= 1 << (bit % 32);
        words
    });
    std::iter::once(sample).chain(flipped)
}

#[test]
fn every_instruction_that_decodes_is_executed_or_refused_by_type() {
    let isa = isa("gfx90a");
    let mut decoded = 0;
    let mut gaps = BTreeMap::new();
    for words in structured().chain(random()).chain(sampled_with_neighbours("gfx90a", 1)) {
        let Some(inst) = decode(&isa, words) else { continue };
        decoded += 1;
        if let Treatment::Gap(reason) = treatment(&inst, Machine::default()) {
            gaps.entry((inst.operation.name(), reason)).or_insert_with(|| inst.text.clone());
        }
    }
    assert!(decoded > 500_000, "only {decoded} decoded");
    assert!(gaps.is_empty(), "{gaps:#?}");
}

/// Negative control: an unknown operation or modifier is reported as a gap.
#[test]
fn an_unknown_operation_or_modifier_is_a_gap() {
    let isa = isa("gfx90a");
    let inst = |text: &str| {
        let bytes = isa.assemble(text).expect("an instruction");
        isa.decode(&bytes, Pc(0)).expect("an instruction")
    };
    for text in ["v_add_f32 v0, v1, v2", "ds_read_b32 v0, v1", "s_load_dword s0, s[2:3], 0x0"] {
        assert_eq!(treatment(&inst(text), Machine::default()), Treatment::Exact, "{text}");
        let mut unknown = inst(text);
        unknown.modifiers.unrecognized.push("sideways".into());
        assert!(matches!(treatment(&unknown, Machine::default()), Treatment::Gap(_)), "{text}");
        let mut unknown = inst(text);
        unknown.operation = flipwave_isa::Operation::named("v_sideways_f32");
        assert!(matches!(treatment(&unknown, Machine::default()), Treatment::Gap(_)), "{text}");
    }
}

/// Returns the first explicit register operand that a translated instruction neither reads nor
/// writes.
fn unaccessed_operand(inst: &Inst, op: &Op) -> Option<RegisterRange> {
    // The halves of a dual instruction have their own operands.
    if matches!(
        op.run,
        Run::NotCompute(_)
            | Run::Unspecified(_)
            | Run::Gap(_)
            | Run::Control(Control::Nothing)
            | Run::Dual
    ) {
        return None;
    }
    let registers = inst.operands.iter().filter_map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    });
    let mut known: Vec<Word> = op.sources.iter().flat_map(|source| source.words).collect();
    known.push(Word::Row(op.destination));
    known.push(Word::Scalar(op.scalar_destination));
    known.extend(op.mask_destination.map(Word::Scalar));
    registers.into_iter().find(|range| {
        let row = RowIndex::nominal(range.first).map(Word::Row);
        let place = row.or(ScalarIndex::of(range.first).map(Word::Scalar));
        place.is_some_and(|place| !known.contains(&place))
    })
}

#[test]
fn every_explicit_operand_is_accessed() {
    for (processor, apart) in walked() {
        let isa = isa(processor);
        let mut forgotten_operands = BTreeMap::new();
        let mut checked = 0;
        for words in sampled_with_neighbours(processor, apart) {
            let Some(inst) = decode(&isa, words) else { continue };
            for machine in machines(processor) {
                let op = translate(inst.clone(), Level::Plain, machine);
                checked += 1;
                if let Some(range) = unaccessed_operand(&inst, &op) {
                    forgotten_operands
                        .entry(inst.operation.name())
                        .or_insert((range.to_string(), inst.text.clone()));
                }
            }
        }
        assert!(checked > 20_000, "{processor}: only {checked}");
        assert!(forgotten_operands.is_empty(), "{processor}: {forgotten_operands:#?}");
    }
}

/// Negative control: an operation without its last source.
#[test]
fn comparison_detects_dropped_source() {
    let isa = isa("gfx90a");
    // v_add_f32 v4, v2, v3
    let inst = decode(&isa, [0x0208_0702, 0, 0, 0]).expect("an instruction");
    let mut op = translate(inst.clone(), Level::Plain, Machine::default());
    assert_eq!(unaccessed_operand(&inst, &op), None);
    op.sources[1] = Source::NONE;
    assert!(unaccessed_operand(&inst, &op).is_some());
}

/// Every instruction completes or ends in a typed fault, whatever the register contents.
#[test]
fn no_instruction_crashes_the_host() {
    for (processor, apart) in walked() {
        let isa = isa(processor);
        let mut bench = Bench::with_processor(processor);
        let mut random_values = Random(11);
        let mut executed = 0;
        for machine in machines(processor) {
            bench.wave.machine = machine;
            bench.wave.set_exec(machine.all_lanes());
            for words in sampled(processor).chain(random().take(200_000 / apart)) {
                if let Some(inst) = decode(&isa, words) {
                    bench.randomize(&mut random_values);
                    executed += u32::from(bench.step(inst).is_ok());
                }
            }
        }
        assert!(executed > 10_000, "{processor}: only {executed} executed");
    }
}
