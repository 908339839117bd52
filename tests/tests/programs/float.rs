//! Random floating-point programs: expressions, branches and loops in half, single and double precision,
//! without contraction, on random operands.

use super::case::{Buffer, Case};
use super::{LEVELS, compare, host_output};
use flipwave_tests::{Once, cases};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fmt::Write;
use std::sync::Arc;

/// Number of lanes, each with different operands.
const LANES: u32 = 256;
/// Number of programs in a source.
const PROGRAMS: usize = 4;
/// Number of variables of a program, all of which are results.
const VARIABLES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Half,
    Single,
    Double,
    Int,
    Long,
}

use Type::{Double, Half, Int, Long, Single};

impl Type {
    const ALL: [Type; 5] = [Half, Single, Double, Int, Long];
    const FLOATS: [Type; 3] = [Half, Single, Double];

    fn name(self) -> &'static str {
        match self {
            Half => "half",
            Single => "float",
            Double => "double",
            Int => "int32_t",
            Long => "int64_t",
        }
    }

    fn is_float(self) -> bool {
        Type::FLOATS.contains(&self)
    }

    /// An expression for an input of the program.
    fn input(self, index: usize) -> String {
        match self {
            Half => format!("inputs->h[{}]", index % 4),
            Single => format!("inputs->f[{}]", index % 4),
            Double => format!("inputs->d[{}]", index % 4),
            Int => format!("inputs->i[{}]", index % 2),
            Long => format!("inputs->l[{}]", index % 2),
        }
    }
}

/// Writes a random program.
struct Writer {
    random: ChaCha8Rng,
    /// Types of the variables `v0`, `v1` ... that are defined so far.
    variables: Vec<Type>,
}

impl Writer {
    fn below(&mut self, bound: usize) -> usize {
        self.random.next_u32() as usize % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn leaf(&mut self, kind: Type) -> String {
        let known: Vec<usize> =
            (0..self.variables.len()).filter(|&index| self.variables[index] == kind).collect();
        match self.below(5) {
            0 if kind.is_float() => self.constant(kind),
            0 => format!("({}){}", kind.name(), self.random.next_u32() as i32 >> self.below(32)),
            1..=3 if !known.is_empty() => format!("v{}", self.one_of(&known)),
            _ => kind.input(self.below(4)),
        }
    }

    fn constant(&mut self, kind: Type) -> String {
        let special = ["0.0", "-0.0", "__builtin_inf()", "0x1p-149", "0x1.8p-1070", "65504.0"];
        match self.below(4) {
            0 => format!("({}){}", kind.name(), self.one_of(&special)),
            _ => {
                let (fraction, exponent) = (self.random.next_u32() >> 8, self.below(24));
                format!("({})0x1.{fraction:06x}p{}", kind.name(), exponent as i32 - 12)
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let kind = self.one_of(&Type::ALL);
        let (a, b) = (self.expression(kind, depth), self.expression(kind, depth));
        let ordering = self.one_of(&["==", "!=", "<", "<=", ">", ">="]);
        match self.below(6) {
            0 if kind.is_float() => format!("__builtin_isunordered({a}, {b})"),
            1 if kind.is_float() => format!("__builtin_islessgreater({a}, {b})"),
            2 if kind.is_float() => format!("!({a} {ordering} {b})"),
            _ => format!("({a} {ordering} {b})"),
        }
    }

    fn expression(&mut self, kind: Type, depth: usize) -> String {
        if depth == 0 || self.below(8) == 0 {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        if self.below(8) == 0 {
            let condition = self.condition(depth.min(1));
            let (a, b) = (self.expression(kind, depth), self.expression(kind, depth));
            return format!("({condition} ? {a} : {b})");
        }
        if kind.is_float() { self.number(kind, depth) } else { self.integer(kind, depth) }
    }

    fn number(&mut self, kind: Type, depth: usize) -> String {
        let name = kind.name();
        let operand = |writer: &mut Writer| writer.expression(kind, depth);
        let a = operand(self);
        match self.below(20) {
            0..=7 => {
                let operator = self.one_of(&["+", "-", "*", "*", "/"]);
                let b = operand(self);
                match operator {
                    // LLVM 22 compiles a subtraction from zero to a negation, which gives another zero.
                    "-" if is_constant(&a, name) => format!("({b} - {a})"),
                    // LLVM 22 divides halves with a reciprocal in single precision, which does not always
                    // round correctly.
                    "/" if kind == Half => format!("({a} * {b})"),
                    _ => format!("({a} {operator} {b})"),
                }
            }
            8..=9 => format!("fma_{name}({a}, {}, {})", operand(self), operand(self)),
            10 => format!("sqrt_{name}({a})"),
            11 => format!("sqrt_{name}(fabs_{name}({a}))"),
            12 => format!("(-{a})"),
            13 => format!("copysign_{name}({a}, {})", operand(self)),
            14 => {
                let function = self.one_of(&["floor", "ceil", "trunc", "rint", "fabs"]);
                format!("{function}_{name}({a})")
            }
            15..=16 => {
                let function = self.one_of(&["min", "max"]);
                format!("{function}_{name}({a}, {})", operand(self))
            }
            17 => {
                let source = self.one_of(&Type::FLOATS);
                format!("({name})({})", self.expression(source, depth))
            }
            _ => {
                let source = self.one_of(&[Int, Long]);
                let sign = self.one_of(&["", "u"]);
                format!("({name})({sign}{})({})", source.name(), self.expression(source, depth))
            }
        }
    }

    fn integer(&mut self, kind: Type, depth: usize) -> String {
        let name = kind.name();
        match self.below(4) {
            0..=1 => {
                let from = self.one_of(&Type::FLOATS);
                let sign = self.one_of(&["", "u"]);
                let number = self.expression(from, depth);
                format!("({name}){}_to_{sign}{name}({number})", from.name())
            }
            2 => {
                let operator = self.one_of(&["+", "-", "*", "&", "|", "^"]);
                let (a, b) = (self.expression(kind, depth), self.expression(kind, depth));
                format!("({a} {operator} {b})")
            }
            _ => format!("(({name}){})", self.condition(depth)),
        }
    }

    /// A statement that defines the next variable.
    fn statement(&mut self) -> String {
        let kind = self.one_of(&[Half, Half, Single, Single, Single, Double, Double, Int, Long]);
        let target = format!("v{}", self.variables.len());
        let mut text = format!("    {} {target} = {};\n", kind.name(), self.expression(kind, 3));
        self.variables.push(kind);
        match self.below(4) {
            0 => {
                let condition = self.condition(2);
                let (a, b) = (self.expression(kind, 2), self.expression(kind, 2));
                _ = writeln!(text, "    if ({condition})\n        {target} = {a};");
                _ = writeln!(text, "    else\n        {target} = {target} + {b};");
            }
            1 => {
                let count = self.one_of(&["inputs->i[0] & 7", "inputs->l[1] & 3", "5"]);
                let next = self.expression(kind, 2);
                _ = writeln!(text, "    for (int k = 0; k < ({count}); ++k)");
                _ = writeln!(text, "        {target} = {next};");
            }
            _ => {}
        }
        text
    }
}

/// Returns `true` if an expression is a constant of the type called `name`.
fn is_constant(expression: &str, name: &str) -> bool {
    let rest = expression.strip_prefix('(').and_then(|rest| rest.strip_prefix(name));
    rest.and_then(|rest| rest.strip_prefix(')')).is_some_and(|rest| !rest.starts_with('('))
}

fn source(seed: u64) -> String {
    let mut text = String::from("#include \"float.h\"\n");
    let mut calls = String::new();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for program in 0..PROGRAMS {
        random.set_stream(program as u64);
        let mut writer = Writer { random: random.clone(), variables: Vec::new() };
        _ = writeln!(
            text,
            "static void program_{program}(const struct inputs *inputs, uint64_t *words) {{"
        );
        (0..VARIABLES).for_each(|_| text += &writer.statement());
        for (index, kind) in writer.variables.iter().enumerate() {
            _ = writeln!(text, "    words[{index}] = bits_{}(v{index});", kind.name());
        }
        text += "}\n";
        _ = write!(calls, "program_{program}(inputs, words + {}); ", program * VARIABLES);
    }
    let words = PROGRAMS * VARIABLES;
    _ = writeln!(text, "#define PROGRAMS {calls}\n#define WORDS {words}");
    text + "#include \"float_entry.h\"\n"
}

/// The bits of a random number: arbitrary bits, or a number of moderate size. Signalling NaNs are made
/// quiet, because their result depends on how often a value is loaded and stored.
fn number(random: &mut ChaCha8Rng, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let word = random.next_u64();
    let width = 1 + exponent_bits + fraction_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fraction = word & ((1 << fraction_bits) - 1);
    let sign = word >> 63 << (width - 1);
    let greatest = (1 << exponent_bits) - 1;
    let exponent = match word >> 54 & 7 {
        0 => word >> 40 & greatest,
        1 => (word >> 40 & 1) * greatest,
        // Includes integers.
        2 => {
            return (sign | (bias + (word >> 40 & 7)) << fraction_bits)
                | fraction & 7 << (fraction_bits - 3);
        }
        _ => bias + (word >> 40 & 15) - 8,
    };
    let quiet = u64::from(exponent == greatest && fraction != 0) << (fraction_bits - 1);
    sign | exponent << fraction_bits | fraction | quiet
}

/// Content of an array of `struct inputs` (`float.h`), with an element for each lane.
fn inputs(seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(!seed);
    let mut bytes = Vec::new();
    for _ in 0..LANES {
        for (count, exponent_bits, fraction_bits) in [(4, 5, 10), (4, 8, 23), (4, 11, 52)] {
            for _ in 0..count {
                let word = number(&mut random, exponent_bits, fraction_bits).to_le_bytes();
                bytes.extend(&word[..(1 + exponent_bits + fraction_bits) as usize / 8]);
            }
        }
        // Integers of every magnitude, and four bytes of padding before the 64-bit ones.
        let mut integer = |bits: u32| {
            let word = random.next_u64() as i64;
            word >> (64 - bits) >> (random.next_u32() % bits)
        };
        let (small, large) = ([integer(32), integer(32)], [integer(64), integer(64)]);
        small.iter().for_each(|word| bytes.extend((*word as i32).to_le_bytes()));
        large.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    bytes
}

/// The programs of a seed, with their results on the host.
pub fn case(seed: u32) -> Arc<Case> {
    static CASES: Once<u32, Arc<Case>> = Once::new();
    CASES.get(seed, || Arc::new(made(seed.into())))
}

fn made(seed: u64) -> Case {
    let (source, inputs) = (source(seed), inputs(seed));
    // Conversions of half precision follow IEEE 754 in x86 processors that support them, and in the library
    // used otherwise.
    let expected = host_output(&source, &["-O1", "-lm"], &inputs);
    let words = PROGRAMS * VARIABLES;
    Case {
        name: format!("float {seed}"),
        source,
        options: Vec::new(),
        kernels: vec!["entry".into()],
        lanes: LANES,
        workgroup: 64,
        buffers: vec![Buffer::Input(inputs), Buffer::Output(LANES as usize * words * 8)],
        expected: vec![expected.expect("results of the host")],
    }
}

#[test]
fn random_expressions_agree_with_the_host() {
    compare(cases(0..16, 3), |seed| Some(case(seed)), |seed| vec![LEVELS[seed as usize % 4]]);
}

#[test]
#[ignore = "long: 100 floating-point sources at four levels, on two machines each"]
fn hundreds_of_random_expressions_agree_with_the_host() {
    compare(1000..1100, |seed| Some(case(seed)), |_| LEVELS.to_vec());
}
