//! Random programs that compute addresses: arrays in private, local and global memory, accessed with
//! indices from the end, pointers beyond the end and far outside, wrapping numbers, constants at the limits
//! of instruction fields, in functions, and through generic pointers.

use super::case::{Buffer, Case};
use super::{host_output, in_parallel};
use flipwave_sim::Compiling;
use flipwave_tests::{MACHINES, Machine, Once, cases};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Constants that `addressing.h` also defines.
const LANES: u32 = 64;
const TABLE_WORDS: usize = 65536;
const MEMORY_BYTES: usize = 65536;
/// Number of results of a program.
const WORDS: usize = 6;
/// Number of programs in a source.
const PROGRAMS: usize = 20;
/// Number of statements in a program.
const STATEMENTS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Private,
    Local,
    Global,
}

impl Space {
    /// Macro for pointers to the address space, and its name in functions.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Space::Private => ("PRIVATE", "private"),
            Space::Local => ("LOCAL", "local"),
            Space::Global => ("GLOBAL", "global"),
        }
    }
}

/// An element type: name, size, and members. A scalar's member is the scalar itself.
struct Element {
    name: &'static str,
    bytes: usize,
    members: &'static [&'static str],
}

const ELEMENTS: [Element; 11] = [
    Element { name: "int8_t", bytes: 1, members: &[""] },
    Element { name: "uint8_t", bytes: 1, members: &[""] },
    Element { name: "int16_t", bytes: 2, members: &[""] },
    Element { name: "uint16_t", bytes: 2, members: &[""] },
    Element { name: "int32_t", bytes: 4, members: &[""] },
    Element { name: "uint32_t", bytes: 4, members: &[""] },
    Element { name: "int64_t", bytes: 8, members: &[""] },
    Element { name: "uint64_t", bytes: 8, members: &[""] },
    Element { name: "vector", bytes: 16, members: &[".x", ".y", ".z", ".w"] },
    Element { name: "pair", bytes: 8, members: &[".a", ".b", ".c"] },
    Element { name: "record", bytes: 24, members: &[".a", ".b[1]", ".b[2]", ".c", ".d[1]"] },
];

/// An array.
struct Array {
    name: String,
    element: &'static Element,
    space: Space,
    length: usize,
}

/// Writes a random program.
struct Writer {
    random: ChaCha8Rng,
    arrays: Vec<Array>,
    /// Functions and declarations before the program.
    before: String,
    number: usize,
    functions: usize,
}

/// Offsets in bytes near the limits of instruction fields: 8, 11 to 13, 16, 20, 21, 23 and 24 bits, signed
/// or unsigned.
const ENDS: [i64; 13] = [
    255,
    1020,
    2047,
    2048,
    4095,
    4096,
    8191,
    65535,
    65536,
    1 << 19,
    1 << 20,
    (1 << 22) + 4,
    1 << 23,
];

impl Writer {
    fn below(&mut self, bound: usize) -> usize {
        self.random.next_u32() as usize % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// An expression with a value below `bound` that the compiler does not know.
    fn unknown(&mut self, bound: usize) -> String {
        let input = self.below(8);
        match self.below(3) {
            0 => format!("(int)(in->r[{input}] % {bound}u)"),
            1 => format!("(int)((in->r[{input}] >> {}) % {bound}u)", self.below(20)),
            _ => format!("(int)(uint16_t)(opaque(in->r[{input}]) % {bound}u)"),
        }
    }

    fn declare(&mut self) -> String {
        let mut text = String::new();
        let count = 2 + self.below(3);
        let mut used = 0;
        for index in 0..count {
            let element = &ELEMENTS[self.below(ELEMENTS.len())];
            // Repeated types allow generic pointers to one of two arrays.
            let repeats = self.below(2) == 0;
            let last = self.arrays.last().filter(|_| repeats);
            let element = last.map_or(element, |last| last.element);
            let space = self.one_of(&[Space::Private, Space::Private, Space::Local, Space::Global]);
            let length = match (space, self.below(6)) {
                (Space::Local, _) => 3 + self.below(10),
                // Long enough for offsets at the limits of instruction fields.
                (_, 0) => 4200 / element.bytes + 3 + self.below(20),
                _ => 3 + self.below(30),
            };
            let name = format!("a{}_{index}", self.number);
            let kind = element.name;
            let at = match space {
                Space::Private => {
                    _ = writeln!(text, "    {kind} {name}_array[{length}];");
                    format!("{name}_array")
                }
                Space::Local => {
                    _ = writeln!(self.before, "LOCAL_ARRAY({kind}, {name}, {length})");
                    format!("LOCAL_POINTER({name})")
                }
                Space::Global => {
                    let at = used;
                    used = (used + length * element.bytes).next_multiple_of(16);
                    assert!(used <= MEMORY_BYTES, "memory of a lane is too small");
                    format!("(memory + {at})")
                }
            };
            let (macro_name, _) = space.names();
            _ = write!(
                text,
                "    {macro_name} {kind} *{name} = ({macro_name} {kind} *){at};\n    \
                 for (int i = 0; i < {length}; ++i)\n        \
                 {name}[i] = fill_{kind}(MIX(s, i + {index}));\n"
            );
            self.arrays.push(Array { name, element, space, length });
        }
        text
    }

    /// An expression for a pointer into an array, and the number of elements to add to reach element 0.
    fn pointer(&mut self, array: usize) -> (String, i64) {
        let Array { name, element, space, length } = &self.arrays[array];
        let (name, kind, bytes) = (name.clone(), element.name, element.bytes as i64);
        let (space, length) = (*space, *length as i64);
        let (macro_name, part) = space.names();
        match self.below(7) {
            0 => (format!("({name} + {length})"), -length),
            1 => (format!("({name} + {})", length - 1), 1 - length),
            2 | 3 => {
                // Far outside the array, and back by a constant.
                let end = self.one_of(&ENDS) / bytes * if self.below(2) == 0 { 1 } else { -1 };
                let end = end + self.one_of(&[0, 0, -1, 1, -2]);
                let before = format!(
                    "(({macro_name} {kind} *)before_{part}(({macro_name} char *){name}, {}))",
                    end * bytes
                );
                (before, end)
            }
            // A generic pointer.
            4 => (format!("(({kind} *){name})"), 0),
            _ => (name, 0),
        }
    }

    /// An expression for an index into an array of `length` elements.
    fn index(&mut self, length: usize) -> String {
        let last = length - 1;
        let unknown = self.unknown(length);
        match self.below(9) {
            0 => format!("{last} - {unknown}"),
            1 => format!("{length} - (1 + {unknown})"),
            2 => {
                // A sum that wraps.
                let far = self.random.next_u32();
                format!("(int)(opaque({unknown} + {far}u) - {far}u)")
            }
            3 => {
                let far = self.random.next_u32();
                format!("(int)({far}u - opaque({far}u - {unknown}))")
            }
            4 if length > 12 => {
                let near = self.unknown(8);
                let at = self.below(length - 8);
                format!("{at} + {near}")
            }
            5 if length > 12 => {
                let near = self.unknown(8);
                let at = 7 + self.below(length - 8);
                format!("{at} - {near}")
            }
            6 => format!("~(-1 - {unknown})"),
            7 => format!("{}", self.below(length)),
            _ => unknown,
        }
    }

    /// An expression for an element of an array, or for a member of an element.
    fn place(&mut self, array: usize) -> String {
        let (pointer, more) = self.pointer(array);
        let (length, members) = (self.arrays[array].length, self.arrays[array].element.members);
        let (index, member) = (self.index(length), self.one_of(members));
        match (more, self.below(3)) {
            (0, _) => format!("{pointer}[{index}]{member}"),
            (_, 0) => format!("({pointer} + ({index}))[{more}]{member}"),
            _ => format!("{pointer}[{more} + ({index})]{member}"),
        }
    }

    /// A call of a new function that loads or stores an element.
    fn call(&mut self, array: usize) -> String {
        let Array { name, element, space, length } = &self.arrays[array];
        let (name, kind, length) = (name.clone(), element.name, *length);
        let (macro_name, _) = space.names();
        let member = self.one_of(self.arrays[array].element.members);
        let function = format!("f{}_{}", self.number, self.functions);
        self.functions += 1;
        let pointer = match self.below(3) {
            0 => format!("{kind} *p"),
            _ => format!("{macro_name} {kind} *p"),
        };
        let (from, back) = match self.below(3) {
            0 => (format!("{name} + {length}"), format!("-1 - ({})", self.index(length))),
            1 => (format!("{name} + {}", length - 1), format!("-({})", self.index(length))),
            _ => (name, self.index(length)),
        };
        if self.below(2) == 0 {
            _ = writeln!(
                self.before,
                "NOINLINE uint64_t {function}({pointer}, int i) {{ return (uint64_t)p[i]{member}; }}"
            );
            format!("s = MIX(s, {function}({from}, {back}));")
        } else {
            _ = writeln!(
                self.before,
                "NOINLINE void {function}({pointer}, int i, uint64_t x) {{ p[i]{member} += x; }}"
            );
            format!("{function}({from}, {back}, s);")
        }
    }

    /// A loop over an array, backwards or with an index that starts below zero.
    fn sweep(&mut self, array: usize) -> String {
        let Array { name, element, length, .. } = &self.arrays[array];
        let (name, kind, length) = (name.clone(), element.name, *length);
        let member = self.one_of(self.arrays[array].element.members);
        let step = 1 + self.below(3);
        let from = self.unknown(length);
        let (head, place) = match self.below(5) {
            0 => (format!("for (int i = {length} - 1; i >= 0; i -= {step})"), format!("{name}[i]")),
            1 => (format!("for (int i = -{length}; i < 0; ++i)"), format!("{name}[i + {length}]")),
            2 => (format!("for (int i = {from} + 1; i > 0; --i)"), format!("{name}[{length} - i]")),
            3 => (
                format!("for (uint32_t i = {from}; i-- > 0;)"),
                format!("({name} + {length})[-1 - (int)i]"),
            ),
            _ => (
                format!("for (__typeof__({name}) p = {name} + {length}; p-- > {name} + {from};)"),
                "(*p)".into(),
            ),
        };
        let body = match self.below(3) {
            0 => format!("s = MIX(s, (uint64_t){place}{member});"),
            1 => format!("{place} = fill_{kind}(s += 77);"),
            _ => format!("{place}{member} ^= s >> 5;"),
        };
        format!("{head} {body}")
    }

    /// An access through a generic pointer to one of two arrays of the same type.
    fn either(&mut self, array: usize) -> Option<String> {
        let (kind, members) = (self.arrays[array].element.name, self.arrays[array].element.members);
        let has_type = |index: &usize| *index != array && self.arrays[*index].element.name == kind;
        let partner = (0..self.arrays.len()).find(has_type)?;
        let [first, second] = [array, partner].map(|at| self.arrays[at].name.clone());
        let length = self.arrays[array].length.min(self.arrays[partner].length);
        let (index, member) = (self.index(length), self.one_of(members));
        let (input, bit) = (self.below(8), self.below(32));
        let choice = format!(
            "{kind} *p = in->r[{input}] >> {bit} & 1 ? ({kind} *){first} : ({kind} *){second};"
        );
        Some(match self.below(2) {
            0 => format!("{{ {choice} s = MIX(s, (uint64_t)p[{index}]{member}); }}"),
            _ => format!("{{ {choice} p += {length}; p[({index}) - {length}]{member} = s >> 3; }}"),
        })
    }

    /// A load from the table that all lanes share: with scalar loads, buffer loads, or per lane.
    fn table(&mut self) -> String {
        let far = self.below(TABLE_WORDS / 2);
        let near = self.below(TABLE_WORDS / 2);
        let text = match self.below(10) {
            0 => format!("((CONSTANT const uint32_t *)table)[opaque_uniform({far}) + {near}]"),
            1 => format!(
                "((CONSTANT const uint32_t *)table)[{} - opaque_uniform({near})]",
                near + far
            ),
            2 => {
                let unknown = self.unknown(TABLE_WORDS / 2);
                format!("(table + {far})[{unknown}]")
            }
            3 => {
                // A 32-bit offset from a scalar base, which may be far before the table.
                let unknown = self.unknown(TABLE_WORDS);
                let ends = [0, 4, 1 << 16, (1 << 31) - 4, 1 << 31, (1 << 31) + 4096, 3 << 30];
                let before: u32 = self.one_of(&ends);
                format!(
                    "word_at(before_table(table, {before}), opaque({before}u + 4u * {unknown}))"
                )
            }
            4 => {
                // A scalar offset, with or without a constant.
                let constant = self.one_of(&[0, 0, 4, 1020, 4092, 65536, (1 << 20) - 4]);
                let offset = 4 * self.below(TABLE_WORDS) + constant;
                format!("scalar_word_at(before_table(table, {constant}), opaque_uniform({offset}))")
            }
            5 => {
                // A scalar offset to which a constant is added.
                let constant = self.one_of(&[4, 1020, 4092, 65536, (1 << 20) - 4]);
                let offset = 4 * self.below(TABLE_WORDS);
                format!(
                    "scalar_word_at(before_table(table, {constant}) + {constant}, \
                     opaque_uniform({offset}))"
                )
            }
            _ => self.buffer_load(),
        };
        format!("s = MIX(s, {text});")
    }

    /// A buffer load from the table, with a buffer that covers its first bytes.
    fn buffer_load(&mut self) -> String {
        let (bytes, scalar) = (4 * self.below(TABLE_WORDS), 4 * self.below(64));
        let unknown = self.unknown(TABLE_WORDS);
        let constant = self.one_of(&[0, 4, 1020, 2048, 4092, 4096]);
        let register = match self.below(3) {
            0 => format!("4u * {unknown}"),
            1 => format!("opaque(4u * {unknown})"),
            // The sum of register and constant wraps.
            _ => format!("opaque(4u * {unknown} - {constant})"),
        };
        let offset = format!("{register} + {constant}");
        // Some lanes are out of bounds.
        let offset = match self.below(2) {
            0 => offset,
            _ => format!("(in->r[{}] & 1 ? {offset} : ~0u)", self.below(8)),
        };
        format!("buffer_dword(table, {bytes}, {offset}, opaque_uniform({scalar}))")
    }

    fn statement(&mut self) -> String {
        let array = self.below(self.arrays.len());
        let kind = self.arrays[array].element.name;
        match self.below(14) {
            0..=2 => format!("s = MIX(s, (uint64_t){});", self.place(array)),
            3 | 4 => format!("{} = s >> {};", self.place(array), self.below(40)),
            5 => format!("{} += {};", self.place(array), self.unknown(100)),
            6 => {
                let length = self.arrays[array].length;
                let name = self.arrays[array].name.clone();
                let [to, from] = [(); 2].map(|()| self.index(length));
                let whole = format!("{name}[{to}] = {name}[{from}];");
                match self.below(2) {
                    0 => whole,
                    _ => format!("s = MIX(s, word_{kind}({name}[{from}]));"),
                }
            }
            7 => self.call(array),
            8 | 9 => self.sweep(array),
            10 => self.either(array).unwrap_or_else(|| self.table()),
            _ => self.table(),
        }
    }

    fn program(&mut self) -> String {
        let arrays = self.declare();
        let statements: Vec<String> = (0..STATEMENTS).map(|_| self.statement()).collect();
        let mut text = format!(
            "static void program_{}(GLOBAL const struct inputs *in, GLOBAL const uint32_t *table,\n    \
             GLOBAL char *memory, GLOBAL uint64_t *words) {{\n    \
             uint64_t s = in->r[0];\n{arrays}",
            self.number
        );
        statements.iter().for_each(|statement| _ = writeln!(text, "    {statement}"));
        _ = writeln!(text, "    words[0] = s;");
        for (index, Array { name, element, length, .. }) in self.arrays.iter().enumerate() {
            _ = write!(
                text,
                "    s = 0;\n    for (int i = 0; i < {length}; ++i)\n        \
                 s = MIX(s, word_{}({name}[i]));\n    words[{}] = s;\n",
                element.name,
                index + 1
            );
        }
        for index in self.arrays.len() + 1..WORDS {
            _ = writeln!(text, "    words[{index}] = 0;");
        }
        text + "}\n"
    }
}

fn source(seed: u64) -> String {
    let mut text =
        format!("#include \"addressing.h\"\n#define PROGRAMS {PROGRAMS}\n#define WORDS {WORDS}\n");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for number in 0..PROGRAMS {
        random.set_stream(number as u64);
        let mut writer = Writer {
            random: random.clone(),
            arrays: Vec::new(),
            before: String::new(),
            number,
            functions: 0,
        };
        let program = writer.program();
        text += &writer.before;
        text += &program;
    }
    let each: Vec<String> = (0..PROGRAMS).map(|number| format!("DO({number})")).collect();
    _ = writeln!(text, "#define EACH_PROGRAM(DO) {}", each.join(" "));
    text + "#include \"addressing_entry.h\"\n"
}

/// Options that avoid two miscompilations by LLVM 22.
///
/// The first two keep arrays in memory: if a private array is in registers, wrapping indices are
/// miscompiled: in an array of 16-bit numbers, element 0 is read instead of element 18 + 2^31, whose address is
/// that of element 18. The last one keeps the scheduler from moving `scratch_store_b32 v5, v18, off
/// offset:65624` across loads such as `scratch_load_b128 v[8:11], off, off offset:80`: it compares the
/// offsets although only the store has a base register, which here is -65532.
const CORRECT_CODE: [&str; 6] = [
    "-mllvm",
    "-disable-promote-alloca-to-vector",
    "-mllvm",
    "-disable-promote-alloca-to-lds",
    "-mllvm",
    "-enable-aa-sched-mi=0",
];

/// The programs of a seed, with their results on the host.
fn case(seed: u32) -> Arc<Case> {
    static CASES: Once<u32, Arc<Case>> = Once::new();
    CASES.get(seed, || Arc::new(made(seed.into())))
}

fn made(seed: u64) -> Case {
    let source = source(seed);
    let mut random = ChaCha8Rng::seed_from_u64(!seed);
    let mut words = |count: usize| -> Vec<u8> {
        (0..count).flat_map(|_| random.next_u32().to_le_bytes()).collect()
    };
    let (inputs, table) = (words(8 * LANES as usize), words(TABLE_WORDS));
    let input = [inputs.as_slice(), &table].concat();
    let expected = host_output(&source, &["-O1"], &input).expect("results of the host");
    Case {
        name: format!("addresses {seed}"),
        source,
        options: CORRECT_CODE.map(str::to_owned).into(),
        kernels: (0..PROGRAMS).map(|number| format!("kernel_{number}")).collect(),
        lanes: LANES,
        workgroup: LANES,
        buffers: vec![
            Buffer::Input(inputs),
            Buffer::Input(table),
            Buffer::Input(vec![0; LANES as usize * MEMORY_BYTES]),
            Buffer::Output(LANES as usize * PROGRAMS * WORDS * 8),
        ],
        expected: vec![expected],
    }
}

/// Runs sources on the machines and levels selected by `runs`, on both tiers.
fn compare(seeds: &[u32], runs: impl Fn(u32) -> Vec<(Machine, &'static str)> + Sync) {
    let done = AtomicUsize::new(0);
    let results = in_parallel(seeds, |&seed| {
        let case = case(seed);
        let check = |(machine, level)| {
            let tiers = [Compiling::Never, Compiling::AtOnce];
            let result = case.check_in(machine, level, &tiers);
            done.fetch_add(PROGRAMS, Ordering::Relaxed);
            result
        };
        let results: Vec<_> = runs(seed).into_iter().map(check).collect();
        let wrong = results.iter().filter(|result| result.is_err()).count();
        println!("{}: {wrong} of {} runs are wrong", case.name, results.len());
        results
    });
    println!("{} runs of kernels on both tiers", done.load(Ordering::Relaxed));
    let wrong: Vec<String> = results.into_iter().flatten().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_addressing_agrees_with_the_host() {
    let seeds: Vec<u32> = cases(0..MACHINES.len() as u32, 4).collect();
    compare(&seeds, |seed| {
        let machine = MACHINES[seed as usize % MACHINES.len()];
        vec![(machine, ["-O0", "-O2", "-O3", "-O1"][seed as usize % 4])]
    });
}

/// One machine for each variant of address arithmetic or compiler output.
const MACHINES_OF_SET: [Machine; 8] = [
    Machine::new("gfx906", 64),
    Machine::new("gfx90a", 64),
    Machine::new("gfx942", 64),
    Machine::new("gfx950", 64),
    Machine::new("gfx1030", 32),
    Machine::new("gfx1100", 32),
    Machine::new("gfx1201", 32),
    Machine::new("gfx1250", 32),
];

#[test]
#[ignore = "long: 2,000 kernels about addresses on eight machines at three levels, on both tiers"]
fn thousands_of_random_addressing_programs_agree_with_the_host() {
    let seeds: Vec<u32> = (1000..1000 + 2000 / PROGRAMS as u32).collect();
    compare(&seeds, |_| {
        let levels = |machine| ["-O0", "-O1", "-O3"].map(|level| (machine, level));
        MACHINES_OF_SET.into_iter().flat_map(levels).collect()
    });
}
