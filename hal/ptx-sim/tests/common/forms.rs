//! Single instructions on many operands.

use super::{Bench, arguments};
use flipwave_device::Dispatch;

/// Operands of a thread.
pub type Operands = [u64; 4];

/// Lines that move a value between memory and an operand: `%a` to `%d` for the widths `h` (16 bits), `r` (32
/// bits), `d` (64 bits) and `p` (predicate).
fn load(name: char, width: char, offset: usize) -> String {
    match width {
        'h' => format!(".reg .b16 %{name}; ld.global.b16 %{name}, [%address+{offset}];\n"),
        'r' => format!(".reg .b32 %{name}; ld.global.b32 %{name}, [%address+{offset}];\n"),
        'd' => format!(".reg .b64 %{name}; ld.global.b64 %{name}, [%address+{offset}];\n"),
        'p' => format!(
            ".reg .pred %{name}; ld.global.b64 %wide, [%address+{offset}]; setp.ne.u64 %{name}, \
             %wide, 0;\n"
        ),
        _ => panic!("{width}"),
    }
}

fn store(name: &str, width: char, offset: usize) -> String {
    match width {
        'h' => format!("st.global.b16 [%result+{offset}], {name};\n"),
        'r' => format!("st.global.b32 [%result+{offset}], {name};\n"),
        'd' => format!("st.global.b64 [%result+{offset}], {name};\n"),
        'p' => format!("selp.b64 %wide, 1, 0, {name}; st.global.b64 [%result+{offset}], %wide;\n"),
        _ => panic!("{width}"),
    }
}

fn declare(name: &str, width: char) -> String {
    let kind = match width {
        'h' => "b16",
        'r' => "b32",
        'd' => "b64",
        _ => "pred",
    };
    format!(".reg .{kind} {name};\n")
}

/// A kernel with one thread per operands. `widths` are those of the result `%x`, a second result `%y`, and the
/// operands `%a` to `%d`; `-` for none.
fn kernel(inst: &str, widths: &str) -> String {
    let widths: Vec<char> = widths.chars().collect();
    let mut body = String::from(
        ".reg .b64 %address, %result, %wide; .reg .b32 %item, %group;
         ld.param.u64 %address, [in]; ld.param.u64 %result, [out];
         mov.u32 %item, %tid.x; mov.u32 %group, %ctaid.x; mad.lo.u32 %item, %group, 64, %item;
         mad.wide.u32 %address, %item, 32, %address; mad.wide.u32 %result, %item, 16, %result;\n",
    );
    for (number, name) in "abcd".chars().enumerate() {
        if let Some(width) = widths.get(2 + number).filter(|width| **width != '-') {
            body += &load(name, *width, 8 * number);
        }
    }
    for (name, width) in ["%x", "%y"].iter().zip(&widths).filter(|(_, width)| **width != '-') {
        body += &declare(name, *width);
    }
    body += &format!("{inst};\n");
    for (number, (name, width)) in ["%x", "%y"].iter().zip(&widths).enumerate() {
        if *width != '-' {
            body += &store(name, *width, 8 * number);
        }
    }
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 \
         out)\n{{\n{body}ret;\n}}\n"
    )
}

/// Executes an instruction; returns both results of each thread.
pub fn execute(inst: &str, widths: &str, operands: &[Operands]) -> Vec<[u64; 2]> {
    let mut bench = Bench::new(&kernel(inst, widths));
    let threads = operands.len().next_multiple_of(64);
    let mut input: Vec<u64> = operands.iter().flatten().copied().collect();
    input.resize(4 * threads, 0);
    let input = bench.buffer(&arguments(&input));
    let output = bench.buffer(&vec![0; 16 * threads]);
    let dispatch = bench.dispatch("k", threads as u32, 64, &arguments(&[input.0, output.0]));
    bench.run(&Dispatch { instruction_limit: u64::MAX, ..dispatch });
    let bytes = bench.read(output, 16 * operands.len());
    let words: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.as_chunks::<2>().0.to_vec()
}

/// Executes an instruction and compares each thread's first result with the host's.
pub fn check(inst: &str, widths: &str, operands: &[Operands], host: impl Fn(Operands) -> u64) {
    let results = execute(inst, widths, operands);
    for (operands, [result, _]) in operands.iter().zip(results) {
        let expected = host(*operands);
        assert_eq!(result, expected, "{inst} on {operands:#x?}: {result:#x}, not {expected:#x}");
    }
}

/// A linear congruential generator: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let step = |state: u64| {
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
        };
        self.0 = step(self.0);
        let high = self.0 >> 32;
        self.0 = step(self.0);
        high << 32 | self.0 >> 32
    }
}

/// Combinations of special values, and random operands.
pub fn operands(special: &[u64], count: usize) -> Vec<Operands> {
    let mut all = Vec::new();
    for (number, a) in special.iter().enumerate() {
        for b in special {
            let c = special[(number * 7 + all.len()) % special.len()];
            all.push([*a, *b, c, special[all.len() % special.len()]]);
        }
    }
    let mut random = Random(7);
    all.extend((0..count).map(|_| [0; 4].map(|_: u64| random.next())));
    all
}
