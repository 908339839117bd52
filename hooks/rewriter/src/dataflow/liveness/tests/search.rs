//! Random code, compared with a search for a way on which a value is read before it is written.
//! The search follows one lane, knows what each line does from a table written by hand, and
//! nothing of LLVM or of the analysis.

use crate::dataflow::Liveness;
use crate::flow::tests::assembled::{assemble, descriptor, text};
use crate::flow::{Disassembly, InstIndex};
use flipwave_isa::Register;
use std::collections::HashSet;

/// What a line does.
pub struct Line {
    /// The line.
    pub text: String,
    /// Registers read; of vector registers, in the lane.
    reads: Vec<String>,
    /// Vector registers of which any lane may be read.
    reads_any_lane: Vec<String>,
    /// Registers written; of vector registers, in the lane.
    writes: Vec<String>,
    /// Whether the lane is on afterwards, by whether a bit of the other source is set and whether
    /// it was on.
    exec: Option<fn(bool, bool) -> bool>,
    /// Lines that may be next.
    next: Vec<usize>,
}

/// xorshift, G. Marsaglia 2003.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % count
    }
}

type Form = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
    Option<fn(bool, bool) -> bool>,
);

/// Text, reads, reads of any lane, writes, change of EXEC. `D`, `A` and `B` stand for numbers.
const FORMS: [Form; 22] = [
    ("v_mov_b32 vD, vA", &["vA"], &[], &["vD"], None),
    ("v_mov_b32 vD, 0", &[], &[], &["vD"], None),
    ("v_add_u32 vD, vA, vB", &["vA", "vB"], &[], &["vD"], None),
    ("v_readlane_b32 s4, vA, 1", &[], &["vA"], &["s4"], None),
    ("v_writelane_b32 vD, s4, 2", &["s4"], &[], &[], None),
    ("ds_bpermute_b32 vD, vA, vB", &[], &["vA", "vB"], &["vD"], None),
    ("v_mov_b32_dpp vD, vA row_shl:1", &[], &["vA"], &[], None),
    ("v_fmac_f32 vD, vA, vB", &["vD", "vA", "vB"], &[], &["vD"], None),
    ("v_cmp_gt_u32 vcc, vA, vB", &["vA", "vB"], &[], &["vcc_lo", "vcc_hi"], None),
    ("v_cndmask_b32 vD, vA, vB, vcc", &["vA", "vB", "vcc_lo", "vcc_hi"], &[], &["vD"], None),
    ("s_add_u32 s5, s5, s6", &["s5", "s6"], &[], &["s5", "scc"], None),
    ("s_addc_u32 s6, s5, s4", &["s5", "s4", "scc"], &[], &["s6", "scc"], None),
    (
        "s_and_saveexec_b64 s[8:9], vcc",
        &["vcc_lo", "vcc_hi"],
        &[],
        &["s8", "s9", "scc"],
        Some(|bit, on| bit & on),
    ),
    (
        "s_andn2_saveexec_b64 s[8:9], s[8:9]",
        &["s8", "s9"],
        &[],
        &["s8", "s9", "scc"],
        Some(|bit, on| bit & !on),
    ),
    ("s_or_b64 exec, exec, s[8:9]", &["s8", "s9"], &[], &["scc"], Some(|bit, on| bit | on)),
    ("s_xor_b64 exec, exec, s[8:9]", &["s8", "s9"], &[], &["scc"], Some(|bit, on| bit ^ on)),
    ("s_mov_b64 exec, s[8:9]", &["s8", "s9"], &[], &[], Some(|bit, _| bit)),
    ("s_mov_b64 exec, 0", &[], &[], &[], Some(|_, _| false)),
    ("s_or_saveexec_b64 s[8:9], -1", &[], &[], &["s8", "s9", "scc"], Some(|_, _| true)),
    ("s_xor_saveexec_b64 s[8:9], -1", &[], &[], &["s8", "s9", "scc"], Some(|_, on| !on)),
    ("s_mov_b64 exec, -1", &[], &[], &[], Some(|_, _| true)),
    (
        "v_cmpx_gt_u32 vcc, vA, vB",
        &["vA", "vB"],
        &[],
        &["vcc_lo", "vcc_hi"],
        Some(|bit, on| bit & on),
    ),
];

const REGISTERS: [&str; 12] =
    ["v0", "v1", "v2", "v3", "s4", "s5", "s6", "s8", "s9", "vcc_lo", "vcc_hi", "scc"];

/// Blocks of random lines with random branches between them; the last ends the program.
pub fn random_function(random: &mut Random, name: &str) -> Vec<Line> {
    let blocks = 3 + random.below(4);
    let mut lines: Vec<Line> = Vec::new();
    let mut starts = Vec::new();
    let mut branches = Vec::new();
    for block in 0..blocks {
        starts.push(lines.len());
        for _ in 0..1 + random.below(4) {
            let (text, reads, any, writes, exec) = FORMS[random.below(FORMS.len())];
            let numbers =
                [random.below(4), random.below(4), random.below(4)].map(|n| n.to_string());
            let filled = |text: &str| {
                let text = text.replace("vD", &format!("v{}", numbers[0]));
                let text = text.replace("vA", &format!("v{}", numbers[1]));
                text.replace("vB", &format!("v{}", numbers[2]))
            };
            let all = |names: &[&str]| names.iter().map(|name| filled(name)).collect();
            let next = vec![lines.len() + 1];
            lines.push(Line {
                text: filled(text),
                reads: all(reads),
                reads_any_lane: all(any),
                writes: all(writes),
                exec,
                next,
            });
        }
        let plain = |text: String, reads: &[&str]| Line {
            text,
            reads: reads.iter().map(|&name| name.to_owned()).collect(),
            reads_any_lane: Vec::new(),
            writes: Vec::new(),
            exec: None,
            next: Vec::new(),
        };
        if block + 1 == blocks {
            lines.push(plain("s_endpgm".into(), &[]));
        } else if random.below(3) > 0 {
            let to = random.below(blocks);
            branches.push((lines.len(), to));
            let mut line = plain(format!("s_cbranch_scc1 {name}_{to}"), &["scc"]);
            line.next.push(lines.len() + 1);
            lines.push(line);
        }
    }
    for (line, to) in branches {
        lines[line].next.push(starts[to]);
    }
    for (block, start) in starts.iter().enumerate() {
        lines[*start].text = format!("{name}_{block}: {}", lines[*start].text);
    }
    lines
}

/// Whether the value that `register` has before a line may be read, in a lane that is on or off.
fn is_wanted(lines: &[Line], line: usize, register: &str, on: bool) -> bool {
    let is_vector = register.starts_with('v') && !register.starts_with("vcc");
    let names = |list: &[String]| list.iter().any(|name| name == register);
    let mut seen = HashSet::new();
    let mut open = vec![(line, on)];
    while let Some((at, on)) = open.pop() {
        if !seen.insert((at, on)) {
            continue;
        }
        let line = &lines[at];
        let counts = on || !is_vector;
        if names(&line.reads_any_lane) || (names(&line.reads) && counts) {
            return true;
        }
        if names(&line.writes) && counts {
            continue;
        }
        let after = line.exec.map_or(vec![on], |exec| vec![exec(false, on), exec(true, on)]);
        for next in &line.next {
            open.extend(after.iter().map(|on| (*next, *on)));
        }
    }
    false
}

#[test]
fn liveness_is_what_a_search_finds() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let functions: Vec<(String, Vec<Line>)> = (0..400)
        .map(|number| {
            let name = format!("f{number}");
            let lines = random_function(&mut random, &name);
            (name, lines)
        })
        .collect();
    let bodies: Vec<String> = functions
        .iter()
        .map(|(_, lines)| lines.iter().map(|line| format!("{}\n", line.text)).collect())
        .collect();
    let named: Vec<(&str, &str)> = functions
        .iter()
        .map(|(name, _)| name.as_str())
        .zip(bodies.iter().map(String::as_str))
        .collect();
    let object = assemble("gfx90a", &(text(&named) + &descriptor("gfx90a", "f0")));
    let program = Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"));
    let liveness = Liveness::new(&program);
    let mut wanted = [0usize; 2];
    for (name, lines) in &functions {
        let first = program.named(name).instructions.start;
        assert_eq!(program.named(name).instructions.len(), lines.len());
        for at in 0..lines.len() {
            let live = liveness.before(InstIndex(first.0 + at as u32));
            for register in REGISTERS {
                let own: Register = register.parse().expect("a register");
                let planes = [(true, live.active), (false, live.masked)];
                let count = if own.is_per_lane() { 2 } else { 1 };
                for (on, set) in planes.into_iter().take(count) {
                    let expected = is_wanted(lines, at, register, on);
                    wanted[usize::from(expected)] += 1;
                    assert_eq!(
                        set.contains(own),
                        expected,
                        "before `{}`: {register} in a lane that is {}, in\n{}",
                        lines[at].text,
                        if on { "on" } else { "off" },
                        lines.iter().map(|line| format!("{}\n", line.text)).collect::<String>()
                    );
                }
            }
        }
    }
    println!("dead {}, live {}", wanted[0], wanted[1]);
    assert!(wanted.iter().all(|count| *count > 5_000), "{wanted:?}");
}
