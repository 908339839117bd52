//! Inline constants: for every processor, each vector operation with each inline constant in each
//! source gives the same result as with a register that holds the bits of LLVM's operand type. The
//! bits are derived from the encoded number of the constant, not from its printed form. Some
//! integers are executed; for the others, the operand bits are compared.

use super::coverage::VOP3;
use super::{DEFAULT_MODE, Random};
use crate::execute::control::Step;
use crate::execute::step::step;
use crate::instruction::Run;
use crate::memory::AddressSpace;
use crate::translate::translate;
use crate::wave::{Level, Machine, RowIndex, ScalarIndex, Wave};
use flipwave_depth::cases;
use flipwave_device::WaveId;
use flipwave_isa::{ConstantType, Encoding, Generation, Inst, Isa, Pc, Role, Target, Value};
use std::collections::BTreeSet;
use std::thread::ScopedJoinHandle;

/// Encodings of all inline integers in a source field: 0 to 64 and -1 to -16.
const INTEGERS: std::ops::RangeInclusive<u32> = 128..=208;

/// Encodings of the inline constants to execute: 0, 1, 64, -1, -16, and all floating-point
/// constants.
const CODES: [u32; 14] = [128, 129, 192, 193, 208, 240, 241, 242, 243, 244, 245, 246, 247, 248];

/// First register that holds the bits of the constant.
const HOLDERS: u16 = 32;

/// Returns the bits of a constant by its encoding (ISA manuals, "Inline constants"; LLVM's
/// disassembler, `getInlineImmVal16`, `getInlineImmVal32` and `getInlineImmVal64`).
fn bits(code: u32, constant: ConstantType) -> u64 {
    use ConstantType::*;
    #[rustfmt::skip]
    const HALF: [u16; 9] =
        [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
    #[rustfmt::skip]
    const BRAIN: [u16; 9] =
        [0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22];
    const SINGLE: [u32; 9] = [
        0x3f00_0000,
        0xbf00_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x4000_0000,
        0xc000_0000,
        0x4080_0000,
        0xc080_0000,
        0x3e22_f983,
    ];
    const DOUBLE: [u64; 9] = [
        0x3fe0_0000_0000_0000,
        0xbfe0_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x4000_0000_0000_0000,
        0xc000_0000_0000_0000,
        0x4010_0000_0000_0000,
        0xc010_0000_0000_0000,
        0x3fc4_5f30_6dc9_c882,
    ];
    let is_wide = matches!(constant, U64 | I64 | F64);
    let integer = match code {
        0..=192 => u64::from(code) - 128,
        _ => (192u64).wrapping_sub(code.into()),
    };
    let Some(at) = code.checked_sub(240).map(|at| at as usize) else {
        return if is_wide { integer } else { integer & 0xffff_ffff };
    };
    match constant {
        F16 | PackedF16 => HALF[at].into(),
        SplatF16 => u64::from(HALF[at]) << 16 | u64::from(HALF[at]),
        Bf16 | PackedBf16 => BRAIN[at].into(),
        U64 | I64 | F64 => DOUBLE[at],
        I16 | I32 | F32 | UpperBf16 | PackedI16 | PackedI32 | PackedF32 => SINGLE[at].into(),
    }
}

/// A source field of an encoding.
#[derive(Clone, Copy)]
struct SourceField {
    /// The lowest bit of the field.
    bit: u32,
    /// The width of the field in bits.
    width: u32,
    /// Bits to set elsewhere in the encoding if the field does not hold a vector register.
    without_vector: u64,
}

impl SourceField {
    const fn new(bit: u32, width: u32, without_vector: u64) -> SourceField {
        SourceField { bit, width, without_vector }
    }
}

/// Encodings of an operation in one format.
struct Form {
    /// Candidate encodings with register sources. The first valid one is used.
    words: Vec<u64>,
    /// Source fields.
    fields: Vec<SourceField>,
    /// Bits to flip for operands of 16 bits or two parts.
    variants: Vec<u64>,
}

fn forms(generation: Generation) -> Vec<Form> {
    let vop1 = (0..256).map(|opcode| 0x7e00_0102 | 4 << 17 | opcode << 9);
    let vop2 = (0..62).map(|opcode| opcode << 25 | 6 << 17 | 4 << 9 | 0x102 | 0x3f80_0000 << 32);
    let vopc = (0..256).map(|opcode| 0x7c00_0102 | opcode << 17 | 4 << 9);
    let short: Vec<u64> = vop1.chain(vop2).chain(vopc).collect();
    let mut forms = Vec::new();
    for words in short {
        forms.push(Form {
            words: vec![words],
            fields: vec![SourceField::new(0, 9, 0)],
            variants: Vec::new(),
        });
        if generation < Generation::Gfx11 {
            // Sub-dword selects of the destination, if any, and of each source.
            let select = if words >> 25 & 0x7f == 0x3e { 0 } else { 6 << 40 };
            let sub_dword = words & 0xffff_fe00 | 0xf9 | 2 << 32 | select;
            forms.push(Form {
                words: vec![sub_dword | 6 << 48 | 6 << 56],
                fields: vec![SourceField::new(32, 8, 1 << 55), SourceField::new(9, 8, 1 << 63)],
                variants: vec![3 << 48, 3 << 56],
            });
        }
    }
    let sources =
        [0x102 | 0x104 << 9 | 0x106 << 18, 0x102 | 0x104 << 9, 0x102 | 4 << 9, 0x102, 2 | 4 << 9];
    // Halves of the first source, of all sources, and of pairs.
    let halves = [1 << 11, 7 << 11, 7 << 11 | 1 << 14 | 3 << 59, 1 << 14 | 3 << 59];
    let prefixes = if generation < Generation::Gfx10 { &VOP3[..1] } else { &VOP3[1..] };
    for (prefix, opcode) in prefixes.iter().flat_map(|prefix| (0..1024).map(move |at| (prefix, at)))
    {
        let words = sources.iter().flat_map(|sources: &u64| {
            // Operations with a carry have a second result, here VCC.
            [6, 6 | 0x6a << 8]
                .map(|result| u64::from(*prefix) | opcode << 16 | result | sources << 32)
        });
        forms.push(Form {
            words: words.collect(),
            fields: vec![
                SourceField::new(32, 9, 0),
                SourceField::new(41, 9, 0),
                SourceField::new(50, 9, 0),
            ],
            variants: halves.to_vec(),
        });
    }
    forms
}

/// Changes a constant's type, to plant an error in the simulator's input.
type Planted = fn(&Inst, ConstantType) -> ConstantType;

struct Bench {
    isa: Isa,
    machine: Machine,
    wave: Wave,
    planted: Planted,
}

impl Bench {
    fn new(processor: &str, planted: Planted) -> Bench {
        let target: Target = processor.parse().expect("a target");
        let machine = Machine::new(&target, target.default_wave_size());
        let mut wave = Wave::new(Level::detect());
        wave.reset(machine, WaveId { workgroup: [0; 3], wave: 0 }, 96, 96);
        wave.mode = DEFAULT_MODE;
        wave.set_exec(machine.all_lanes());
        let mut random = Random(3);
        for row in (0..96).chain(256..352) {
            wave.rows[row].0.iter_mut().for_each(|word| *word = random.next() as u32 & 0xbfff_bfff);
        }
        (0..104).for_each(|at| wave.write_scalar(ScalarIndex(at), random.next() as u32));
        wave.write_scalar_pair(ScalarIndex::VCC, random.next());
        Bench { isa: Isa::new(&target).expect("LLVM has it"), machine, wave, planted }
    }

    fn decode(&self, bits: u64) -> Option<Inst> {
        let mut bytes = bits.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        let inst = self.isa.decode(&bytes, Pc(0)).ok()?;
        let is_vector = matches!(
            inst.encoding,
            Encoding::Vop1
                | Encoding::Vop2
                | Encoding::Vopc
                | Encoding::Vop3
                | Encoding::Vop3p
                | Encoding::Sdwa
        );
        (is_vector && inst.operation.name() != "v_nop").then_some(inst)
    }

    /// Executes an instruction with `bits` in the registers that hold the constant.
    fn executed(&self, mut inst: Inst, bits: u64, is_wide: bool) -> Option<Wave> {
        let mut wave = self.wave.clone();
        for at in 0..32 {
            let word = (if is_wide && at % 2 != 0 { bits >> 32 } else { bits }) as u32;
            for first in [RowIndex(0), RowIndex::UPPER_HALF] {
                wave.row_mut(first.plus(HOLDERS + at)).0.fill(word);
            }
            wave.write_scalar(ScalarIndex((HOLDERS + at) as u8), word);
        }
        for at in 0..inst.operands.len() {
            if let Some(constant) = inst.operands[at].constant {
                inst.operands[at].constant = Some((self.planted)(&inst, constant));
            }
        }
        let op = translate(inst, wave.level, self.machine);
        if matches!(op.run, Run::Gap(_) | Run::Unspecified(_) | Run::NotCompute(_)) {
            return None;
        }
        match step(&mut wave, &op, &mut AddressSpace::default(), &mut []) {
            Step::Next => Some(wave),
            _ => None,
        }
    }
}

fn state(wave: &Wave) -> impl PartialEq + use<> {
    (wave.rows[..96].to_vec(), wave.rows[256..352].to_vec(), wave.scalars, wave.scc)
}

/// Returns LLVM's operand type. Mixed-precision operands are half precision or bfloat16 if
/// `op_sel_hi` says so.
fn described(inst: &Inst, operand: usize) -> Option<ConstantType> {
    let source = inst.operands[..operand].iter().filter(|operand| operand.role == Role::Source);
    let at = source.count();
    if inst.operation.name().contains("_mix") {
        let is_half = inst.modifiers.op_sel_hi.unwrap_or(0) >> at & 1 != 0;
        // Only gfx1250 has these operations in bfloat16.
        let is_brain = inst.operation.name().ends_with("bf16");
        let half = if is_brain { ConstantType::UpperBf16 } else { ConstantType::F16 };
        return Some(if is_half { half } else { ConstantType::F32 });
    }
    inst.operands[operand].constant
}

#[derive(Default)]
struct Findings {
    /// Compared operations and operands.
    compared: BTreeSet<(&'static str, usize)>,
    wrong: BTreeSet<String>,
}

/// Returns `true` if modifiers can select parts of the constant.
fn has_parts(constant: ConstantType) -> bool {
    use ConstantType::*;
    !matches!(constant, I32 | U64 | I64 | F32 | F64)
}

/// Compares all operations of a processor.
fn compare(processor: &str, planted: Planted, only: Option<&str>) -> Findings {
    let bench = Bench::new(processor, planted);
    let mut findings = Findings::default();
    for form in forms(bench.machine.generation) {
        let found = form.words.iter().find_map(|words| Some((*words, bench.decode(*words)?)));
        let Some((words, plain)) = found else { continue };
        if only.is_some_and(|only| !plain.operation.name().contains(only)) {
            continue;
        }
        for field in &form.fields {
            let constant = bench.compare(words, &plain, *field, &CODES, &mut findings);
            bench.compare_integers(words, &plain, *field, &mut findings);
            if constant.is_some_and(has_parts) || plain.operation.name().contains("_mix") {
                for variant in &form.variants {
                    bench.compare(words ^ variant, &plain, *field, &CODES[3..9], &mut findings);
                }
            }
        }
    }
    findings
}

impl Bench {
    /// Compares constants in one source field with registers in their place. Returns the type of
    /// the constants.
    fn compare(
        &self,
        words: u64,
        plain: &Inst,
        field: SourceField,
        codes: &[u32],
        findings: &mut Findings,
    ) -> Option<ConstantType> {
        let SourceField { bit, width, without_vector: scalar } = field;
        let mask = ((1u64 << width) - 1) << bit;
        let with = |value: u64| words & !mask | value << bit;
        let same = |inst: &Inst| inst.operation == plain.operation;
        // A vector register, or a scalar one if the field cannot hold a vector register.
        let register = 0x100 & ((1 << width) - 1) | u64::from(HOLDERS);
        let held = self.decode(with(register)).filter(same);
        let held = held.or_else(|| self.decode(with(HOLDERS.into()) | scalar).filter(same))?;
        let mut found = None;
        for code in codes {
            let constant = self.decode(with((*code).into()) | scalar).filter(same);
            let Some(constant) = constant else { continue };
            let Some(at) = constant_operand(&constant, &held) else { continue };
            let Some(described) = described(&constant, at) else {
                findings.wrong.insert(format!("{constant}: no type"));
                continue;
            };
            found = Some(described);
            use ConstantType::*;
            let is_wide = matches!(described, U64 | I64 | F64 | PackedI32 | PackedF32);
            let bits = bits(*code, described);
            let text = constant.text.clone();
            let (Some(found), Some(expected)) = (
                self.executed(constant, bits, is_wide),
                self.executed(held.clone(), bits, is_wide),
            ) else {
                continue;
            };
            findings.compared.insert((plain.operation.name(), at));
            if state(&found) != state(&expected) {
                findings.wrong.insert(format!("{text} ({held}): {described:?}"));
            }
        }
        found
    }

    /// Compares the bits of all inline integers in one source field with those of their type.
    fn compare_integers(
        &self,
        words: u64,
        plain: &Inst,
        field: SourceField,
        findings: &mut Findings,
    ) {
        let SourceField { bit, width, without_vector: scalar } = field;
        let mask = ((1u64 << width) - 1) << bit;
        let decode = |value: u32| {
            let inst = self.decode(words & !mask | u64::from(value) << bit | scalar)?;
            (inst.operation == plain.operation).then_some(inst)
        };
        let Some(held) = decode(HOLDERS.into()) else { return };
        for code in INTEGERS {
            let Some(constant) = decode(code) else { continue };
            let Some(at) = constant_operand(&constant, &held) else { continue };
            let given = constant.operands[at]
                .constant
                .map(|constant_type| (self.planted)(&constant, constant_type));
            let given =
                given.and_then(|constant_type| constant_type.bits(&constant.operands[at].value));
            let wanted = described(&constant, at).map(|constant_type| bits(code, constant_type));
            if given.is_none() || given != wanted {
                findings.wrong.insert(format!("{}: {given:x?}", constant.text));
            }
        }
    }
}

/// Returns the index of the operand that is a constant in one instruction and a register in the
/// other.
fn constant_operand(constant: &Inst, held: &Inst) -> Option<usize> {
    constant.operands.iter().zip(&held.operands).position(|(operand, held)| {
        !matches!(operand.value, Value::Register(_)) && matches!(held.value, Value::Register(_))
    })
}

fn unchanged(_: &Inst, constant: ConstantType) -> ConstantType {
    constant
}

#[test]
fn constants_match_their_operand_types() {
    let results = std::thread::scope(|scope| {
        let start =
            |processor| (processor, scope.spawn(move || compare(processor, unchanged, None)));
        let runs: Vec<_> = cases(super::coverage::DIFFERENT, 3).map(start).collect();
        let end = |(processor, run): (_, ScopedJoinHandle<'_, Findings>)| {
            (processor, run.join().expect("no panic"))
        };
        runs.into_iter().map(end).collect::<Vec<_>>()
    });
    for (processor, Findings { compared, wrong }) in &results {
        assert!(wrong.is_empty(), "{processor}: {} are wrong: {wrong:#?}", wrong.len());
        println!("{processor}: {} sources", compared.len());
        assert!(compared.len() > 700, "{processor}: only {}", compared.len());
    }
}

/// A planted error in the constant type of one family is found in that family.
#[test]
fn comparison_detects_wrong_constant_types() {
    let plants: [(&str, &str, Planted); 3] = [
        ("gfx1100", "v_pk_add_u16", |_, constant| match constant {
            ConstantType::PackedI16 => ConstantType::PackedF16,
            other => other,
        }),
        ("gfx942", "v_fma_mix_f32", |_, constant| match constant {
            ConstantType::F16 => ConstantType::F32,
            other => other,
        }),
        ("gfx1030", "v_add_u16", |_, constant| match constant {
            ConstantType::I16 => ConstantType::F16,
            other => other,
        }),
    ];
    for (processor, operation, planted) in plants {
        let found = compare(processor, planted, Some(operation)).wrong;
        assert!(!found.is_empty(), "{processor}: {operation}");
        assert!(compare(processor, unchanged, Some(operation)).wrong.is_empty(), "{operation}");
    }
}
