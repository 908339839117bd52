//! Liveness of random code, compared with a search for a path on which a value is read before it is
//! overwritten. The search follows one lane. It takes the effects of instructions from a handwritten table
//! and shares no code with LLVM or with the analysis.

use crate::dataflow::Liveness;
use crate::flow::tests::assembled::{assemble, descriptor, text};
use crate::flow::{Disassembly, InstIndex};
use flipwave_isa::Register;
use std::collections::HashSet;

/// A line of assembly and its effects.
pub struct Line {
    /// The assembly.
    pub text: String,
    /// Registers read; vector registers are read in the followed lane.
    reads: Vec<String>,
    /// Vector registers that may be read in any lane.
    reads_any_lane: Vec<String>,
    /// Registers written; vector registers are written in the followed lane.
    writes: Vec<String>,
    /// For writes of EXEC: computes whether the lane is active afterwards from the lane's bit in the other
    /// source and whether the lane was active.
    exec: Option<fn(bool, bool) -> bool>,
    /// Possible next lines.
    next: Vec<usize>,
}

/// Random numbers by xorshift (G. Marsaglia, 2003).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % count
    }
}

/// A form of a line. `D`, `A` and `B` in names of registers are placeholders for numbers.
struct Form {
    text: &'static str,
    reads: &'static [&'static str],
    reads_any_lane: &'static [&'static str],
    writes: &'static [&'static str],
    exec: Option<fn(bool, bool) -> bool>,
}

const fn form(
    text: &'static str,
    reads: &'static [&'static str],
    reads_any_lane: &'static [&'static str],
    writes: &'static [&'static str],
    exec: Option<fn(bool, bool) -> bool>,
) -> Form {
    Form { text, reads, reads_any_lane, writes, exec }
}

const FORMS: [Form; 22] = [
    form("v_mov_b32 vD, vA", &["vA"], &[], &["vD"], None),
    form("v_mov_b32 vD, 0", &[], &[], &["vD"], None),
    form("v_add_u32 vD, vA, vB", &["vA", "vB"], &[], &["vD"], None),
    form("v_readlane_b32 s4, vA, 1", &[], &["vA"], &["s4"], None),
    form("v_writelane_b32 vD, s4, 2", &["s4"], &[], &[], None),
    form("ds_bpermute_b32 vD, vA, vB", &[], &["vA", "vB"], &["vD"], None),
    form("v_mov_b32_dpp vD, vA row_shl:1", &[], &["vA"], &[], None),
    form("v_fmac_f32 vD, vA, vB", &["vD", "vA", "vB"], &[], &["vD"], None),
    form("v_cmp_gt_u32 vcc, vA, vB", &["vA", "vB"], &[], &["vcc_lo", "vcc_hi"], None),
    form("v_cndmask_b32 vD, vA, vB, vcc", &["vA", "vB", "vcc_lo", "vcc_hi"], &[], &["vD"], None),
    form("s_add_u32 s5, s5, s6", &["s5", "s6"], &[], &["s5", "scc"], None),
    form("s_addc_u32 s6, s5, s4", &["s5", "s4", "scc"], &[], &["s6", "scc"], None),
    form(
        "s_and_saveexec_b64 s[8:9], vcc",
        &["vcc_lo", "vcc_hi"],
        &[],
        &["s8", "s9", "scc"],
        Some(|bit, on| bit & on),
    ),
    form(
        "s_andn2_saveexec_b64 s[8:9], s[8:9]",
        &["s8", "s9"],
        &[],
        &["s8", "s9", "scc"],
        Some(|bit, on| bit & !on),
    ),
    form("s_or_b64 exec, exec, s[8:9]", &["s8", "s9"], &[], &["scc"], Some(|bit, on| bit | on)),
    form("s_xor_b64 exec, exec, s[8:9]", &["s8", "s9"], &[], &["scc"], Some(|bit, on| bit ^ on)),
    form("s_mov_b64 exec, s[8:9]", &["s8", "s9"], &[], &[], Some(|bit, _| bit)),
    form("s_mov_b64 exec, 0", &[], &[], &[], Some(|_, _| false)),
    form("s_or_saveexec_b64 s[8:9], -1", &[], &[], &["s8", "s9", "scc"], Some(|_, _| true)),
    form("s_xor_saveexec_b64 s[8:9], -1", &[], &[], &["s8", "s9", "scc"], Some(|_, on| !on)),
    form("s_mov_b64 exec, -1", &[], &[], &[], Some(|_, _| true)),
    form(
        "v_cmpx_gt_u32 vcc, vA, vB",
        &["vA", "vB"],
        &[],
        &["vcc_lo", "vcc_hi"],
        Some(|bit, on| bit & on),
    ),
];

const REGISTERS: [&str; 12] =
    ["v0", "v1", "v2", "v3", "s4", "s5", "s6", "s8", "s9", "vcc_lo", "vcc_hi", "scc"];

/// Generates blocks of random lines with random branches between them. The last block ends the program.
pub fn random_function(random: &mut Random, name: &str) -> Vec<Line> {
    let blocks = 3 + random.below(4);
    let mut lines: Vec<Line> = Vec::new();
    let mut starts = Vec::new();
    let mut branches = Vec::new();
    for block in 0..blocks {
        starts.push(lines.len());
        for _ in 0..1 + random.below(4) {
            let form = &FORMS[random.below(FORMS.len())];
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
                text: filled(form.text),
                reads: all(form.reads),
                reads_any_lane: all(form.reads_any_lane),
                writes: all(form.writes),
                exec: form.exec,
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

/// Returns `true` if the value of `register` before a line may be read, in a lane that is active or masked.
fn is_live(lines: &[Line], line: usize, register: &str, is_active: bool) -> bool {
    let is_vector = register.starts_with('v') && !register.starts_with("vcc");
    let names = |list: &[String]| list.iter().any(|name| name == register);
    let mut seen = HashSet::new();
    let mut waiting = vec![(line, is_active)];
    while let Some((at, is_active)) = waiting.pop() {
        if !seen.insert((at, is_active)) {
            continue;
        }
        let line = &lines[at];
        let is_accessed = is_active || !is_vector;
        if names(&line.reads_any_lane) || (names(&line.reads) && is_accessed) {
            return true;
        }
        if names(&line.writes) && is_accessed {
            continue;
        }
        let after = match line.exec {
            Some(exec) => vec![exec(false, is_active), exec(true, is_active)],
            None => vec![is_active],
        };
        for next in &line.next {
            waiting.extend(after.iter().map(|is_active| (*next, *is_active)));
        }
    }
    false
}

#[test]
fn liveness_equals_exhaustive_search() {
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
    let mut dead_and_live = [0usize; 2];
    for (name, lines) in &functions {
        let first = program.named(name).instructions.start;
        assert_eq!(program.named(name).instructions.len(), lines.len());
        for at in 0..lines.len() {
            let live = liveness.before(InstIndex(first.0 + at as u32));
            for name in REGISTERS {
                let register: Register = name.parse().expect("a register");
                let sets = [(true, live.active), (false, live.masked)];
                let count = if register.is_per_lane() { 2 } else { 1 };
                for (is_active, set) in sets.into_iter().take(count) {
                    let expected = is_live(lines, at, name, is_active);
                    dead_and_live[usize::from(expected)] += 1;
                    assert_eq!(
                        set.contains(register),
                        expected,
                        "before `{}`: {name} in {} lanes, in\n{}",
                        lines[at].text,
                        if is_active { "active" } else { "masked" },
                        lines.iter().map(|line| format!("{}\n", line.text)).collect::<String>()
                    );
                }
            }
        }
    }
    println!("dead {}, live {}", dead_and_live[0], dead_and_live[1]);
    assert!(dead_and_live.iter().all(|count| *count > 5_000), "{dead_and_live:?}");
}
