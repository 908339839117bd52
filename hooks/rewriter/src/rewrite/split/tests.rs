//! Simulates split live ranges on random paths through random code: words are in the computed registers,
//! and the program reads the same values as without them.

use super::{SplitRange, SplitScope};
use crate::dataflow::liveness::tests::search::{Random, random_function};
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::tests::assembled::{assemble, descriptor, text};
use crate::flow::{BlockEnd, Disassembly, FunctionIndex, InstIndex};
use crate::point::{ProgramPoint, When};
use crate::registers::Move;
use flipwave_isa::{Register, RegisterSet, Sgpr};
use std::collections::HashMap;

/// Functions of random code that call later functions; the first is a kernel.
fn random_program(random: &mut Random) -> Disassembly {
    let count = 1 + random.below(4);
    let link = |function: usize| format!("s[{}:{}]", 30 + 2 * function, 31 + 2 * function);
    let functions: Vec<(String, String)> = (0..count)
        .map(|number| {
            let name = format!("f{number}");
            let mut body = String::new();
            for line in random_function(random, &name) {
                let [to, from] = [random.below(8), random.below(8)].map(|register| register + 10);
                body += &match random.below(8) {
                    0 => format!("s_mov_b32 s{to}, s{from}\n"),
                    1 => format!("s_load_dword s{to}, s[0:1], 0x0\n"),
                    2 => "s_waitcnt lgkmcnt(0)\n".to_owned(),
                    3 if number + 1 < count => {
                        let callee = number + 1 + random.below(count - number - 1);
                        format!("s_call_b64 {}, f{callee}\n", link(callee))
                    }
                    _ => String::new(),
                };
                let end = format!("s_setpc_b64 {}", link(number));
                body += &match number {
                    0 => line.text,
                    _ => line.text.replace("s_endpgm", &end),
                };
                body.push('\n');
            }
            (name, body)
        })
        .collect();
    let functions: Vec<(&str, &str)> =
        functions.iter().map(|(name, body)| (name.as_str(), body.as_str())).collect();
    read(&functions)
}

fn read(functions: &[(&str, &str)]) -> Disassembly {
    let object = assemble("gfx90a", &(text(functions) + &descriptor("gfx90a", functions[0].0)));
    Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"))
}

/// Finds a split range in all functions reachable from the first, among the SGPRs that they name.
fn split(program: &Disassembly, words: usize) -> Option<SplitRange> {
    let functions = program.reachable(FunctionIndex(0));
    let named = program.registers_named(&functions);
    let scope = SplitScope {
        program,
        functions: &functions,
        liveness: &Liveness::new(program),
        loads: &OutstandingLoads::new(program, program.rules().expect("rules").counters),
        registers: named.intersection(RegisterSet::SGPRS),
    };
    SplitRange::find(&scope, words)
}

/// Values of registers. Registers that were not written have unique values.
#[derive(Clone, Default)]
struct Values(HashMap<Register, u64>);

impl Values {
    fn get(&self, register: Register) -> u64 {
        let initial = match register {
            Register::Sgpr(Sgpr(number)) => number.into(),
            _ => 0,
        };
        self.0.get(&register).copied().unwrap_or(initial)
    }
}

/// Simulation of a program without and with the moves of a split range.
struct Run<'a> {
    program: &'a Disassembly,
    range: &'a SplitRange,
    words: usize,
    /// Values without moves.
    plain: Values,
    /// Values with moves.
    values: Values,
    /// Results of outstanding loads.
    outstanding: Vec<(Register, u64)>,
    next: u64,
}

impl Run<'_> {
    /// Value of a word of the range.
    fn state(word: usize) -> u64 {
        u64::MAX - word as u64
    }

    /// Follows one path of at most `steps` instructions.
    fn walk(&mut self, random: &mut Random, steps: usize) -> Result<(), String> {
        let first = self
            .registers(self.program.functions[FunctionIndex(0)].instructions.start, When::Before);
        let first = first.ok_or("no registers at the start")?;
        for (word, sgpr) in first.into_iter().enumerate() {
            self.values.0.insert(Register::Sgpr(sgpr), Run::state(word));
        }
        let mut block = self.program.functions[FunctionIndex(0)].blocks.start;
        let mut calls = Vec::new();
        let mut left = steps;
        loop {
            let current = &self.program.blocks[block];
            for at in current.instructions.iter() {
                let is_call = current.end == BlockEnd::Call && at == current.last();
                self.step(random, at, is_call)?;
            }
            left = left.saturating_sub(current.instructions.len());
            let last = current.last();
            block = match current.end {
                _ if left == 0 => return Ok(()),
                BlockEnd::EndOfProgram => return Ok(()),
                BlockEnd::Edges => current.successors[random.below(current.successors.len())].to,
                BlockEnd::Call | BlockEnd::TailCall => {
                    calls.extend(current.successors.first().map(|edge| (last, edge.to)));
                    let function = &self.program.functions[current.function];
                    let call = function.calls.iter().find(|call| call.at == last);
                    let callee = call.and_then(|call| call.callee).expect("a callee");
                    self.program.functions[callee].blocks.start
                }
                BlockEnd::Return => {
                    let Some((call, back)) = calls.pop() else { return Ok(()) };
                    self.check(call, When::After)?;
                    back
                }
                end => panic!("{end:?}"),
            };
        }
    }

    fn registers(&self, at: InstIndex, when: When) -> Option<Vec<Sgpr>> {
        self.range.registers_at(self.program, ProgramPoint::new(at, when))
    }

    /// Checks that a hook finds all words.
    fn check(&self, at: InstIndex, when: When) -> Result<(), String> {
        let registers = self.registers(at, when).ok_or("no registers")?;
        assert_eq!(registers.len(), self.words);
        for (word, sgpr) in registers.into_iter().enumerate() {
            if self.values.get(Register::Sgpr(sgpr)) != Run::state(word) {
                let text = &self.program.inst(at).expect("an instruction").text;
                return Err(format!("word {word} is not in s{} {when:?} `{text}`", sgpr.0));
            }
        }
        Ok(())
    }

    fn step(&mut self, random: &mut Random, at: InstIndex, is_call: bool) -> Result<(), String> {
        self.check(at, When::Before)?;
        if let Some(group) = self.range.moves.get(&at) {
            if !group.waits.is_empty() {
                self.deliver();
            }
            for Move { from, to } in &group.moves {
                let value = self.values.get(Register::Sgpr(*from));
                self.values.0.insert(Register::Sgpr(*to), value);
            }
        }
        self.check(at, When::Instead)?;
        let inst = self.program.inst(at).expect("an instruction");
        let named = || inst.reads.iter().chain(&inst.writes);
        // The program has waited for the registers that it names.
        let is_named =
            |(register, _): &(Register, u64)| named().any(|range| range.contains(*register));
        if inst.operation.name() == "s_waitcnt"
            || self.outstanding.iter().any(is_named)
            || random.below(4) == 0
        {
            self.deliver();
        }
        for register in inst.reads.iter().flat_map(|range| range.iter()) {
            if self.plain.get(register) != self.values.get(register) {
                return Err(format!("`{}` reads another value in {register}", inst.text));
            }
        }
        for register in inst.writes.iter().flat_map(|range| range.iter()) {
            self.next += 1;
            self.outstanding.push((register, 1000 + self.next));
        }
        if !inst.operation.name().starts_with("s_load") {
            self.deliver_last(inst.writes.iter().map(|range| usize::from(range.words)).sum());
        }
        if is_call { Ok(()) } else { self.check(at, When::After) }
    }

    fn deliver(&mut self) {
        self.deliver_last(self.outstanding.len());
    }

    fn deliver_last(&mut self, count: usize) {
        for (register, value) in self.outstanding.split_off(self.outstanding.len() - count) {
            self.plain.0.insert(register, value);
            self.values.0.insert(register, value);
        }
    }
}

/// Follows 20 paths through a program.
fn walk(
    program: &Disassembly,
    range: &SplitRange,
    words: usize,
    random: &mut Random,
) -> Result<(), String> {
    for _ in 0..20 {
        let mut run = Run {
            program,
            range,
            words,
            plain: Values::default(),
            values: Values::default(),
            outstanding: Vec::new(),
            next: 0,
        };
        run.walk(random, 300)?;
    }
    Ok(())
}

fn print(program: &Disassembly) -> String {
    program.insts().map(|(at, inst)| format!("{}: {}\n", at.0, inst.text)).collect()
}

#[test]
fn words_are_in_the_computed_registers_on_all_paths() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut found, mut moves, mut waits) = ([0; 2], 0, 0);
    for _ in 0..60 {
        let program = random_program(&mut random);
        for words in [1, 2, 4] {
            let range = split(&program, words);
            found[usize::from(range.is_some())] += 1;
            let Some(range) = range else { continue };
            moves += range.moves().map(|(_, group)| group.moves.len()).sum::<usize>();
            waits += range.moves().filter(|(_, group)| !group.waits.is_empty()).count();
            walk(&program, &range, words, &mut random)
                .unwrap_or_else(|wrong| panic!("{wrong}: {range:?}\n{}", print(&program)));
        }
    }
    println!("found {}, not found {}, {moves} moves, {waits} with waits", found[1], found[0]);
    assert!(found[1] > 60 && moves > 300 && waits > 10, "{found:?} {moves} {waits}");
}

/// Negative control of the simulation.
#[test]
fn wrong_moves_are_detected() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut detected, mut planted) = (0, 0);
    for _ in 0..40 {
        let program = random_program(&mut random);
        let Some(range) = split(&program, 2) else { continue };
        for at in range.moves.keys() {
            let mut wrong = range.clone();
            // The move reads another register than the computed one.
            let group = wrong.moves.get_mut(at).expect("moves");
            let Move { from, .. } = group.moves[0];
            group.moves[0].from = if from == Sgpr(101) { Sgpr(100) } else { Sgpr(101) };
            planted += 1;
            detected += usize::from(walk(&program, &wrong, 2, &mut random).is_err());
        }
    }
    println!("{detected} of {planted} detected");
    assert!(planted > 50 && detected * 10 > planted * 7, "{detected} of {planted}");
}

const CALL: &str = "s_call_b64 s[30:31], second";

#[test]
fn tail_called_function_returns_words_where_the_caller_expects_them() {
    let kernel = format!("s_load_dword s8, s[0:1], 0x0\n s_mov_b32 s9, 0\n {CALL}\n s_endpgm");
    let second = "s_mov_b32 s9, s8\n s_mov_b32 s10, s9\n s_branch third";
    let third = "s_mov_b32 s8, s10\n s_mov_b32 s9, s8\n s_setpc_b64 s[30:31]";
    let program = read(&[("kernel", &kernel), ("second", second), ("third", third)]);
    assert!(program.blocks.iter().any(|block| block.end == BlockEnd::TailCall));
    let range = split(&program, 1).expect("a split range");
    walk(&program, &range, 1, &mut Random(1)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn no_range_without_dead_registers_or_with_unknown_control_flow() {
    let full = "s_mov_b32 s4, 1
        s_mov_b32 s5, 2
        s_nop 1
        v_mov_b32 v0, s5
        v_mov_b32 v0, s4
        s_load_dword s4, s[0:1], 0x0
        s_endpgm";
    assert_eq!(split(&read(&[("kernel", full)]), 1), None);
    let less = "s_mov_b32 s4, 1
        s_nop 1
        v_mov_b32 v0, s4
        s_load_dword s5, s[0:1], 0x0
        s_endpgm";
    assert!(split(&read(&[("kernel", less)]), 1).is_some());
    assert_eq!(split(&read(&[("kernel", less)]), 2), None);
    let lost = format!("s_mov_b32 s9, 0\n {CALL}\n s_endpgm");
    let callee = "s_load_dwordx2 s[4:5], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_setpc_b64 s[4:5]";
    assert_eq!(split(&read(&[("kernel", &lost), ("second", callee)]), 1), None);
    let known = callee
        .replace("s[4:5]\n        s_w", "s[6:7]\n        s_w")
        .replace("s_setpc_b64 s[4:5]", "s_setpc_b64 s[30:31]");
    assert!(split(&read(&[("kernel", &lost), ("second", &known)]), 1).is_some());
}

#[test]
fn words_move_only_if_necessary() {
    let body = "s_mov_b32 s4, 1\n v_mov_b32 v0, s4\n s_mov_b32 s4, 2\n v_mov_b32 v1, s4
        s_nop 3\n s_mov_b32 s5, 3\n s_endpgm";
    let range = split(&read(&[("kernel", body)]), 1).expect("a split range");
    assert_eq!(range.moves.len(), 1, "{range:?}");
}
