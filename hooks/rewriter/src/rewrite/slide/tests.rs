//! State that slides, on random ways through random code: it is always where it is said to be, and
//! the code reads what it reads without it.

use super::{Ground, Move, Slide};
use crate::dataflow::liveness::tests::search::{Random, random_function};
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::tests::assembled::{assemble, descriptor, text};
use crate::flow::{BlockEnd, Disassembly, FunctionIndex, InstIndex};
use crate::point::{ProgramPoint, When};
use flipwave_isa::{Register, RegisterSet, Sgpr};
use std::collections::HashMap;

/// Functions of random code that call those after them; the first is a kernel.
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

/// State in all that a program's first function reaches, among the SGPRs that it names.
fn slide(program: &Disassembly, words: usize) -> Option<Slide> {
    let functions = program.reachable(FunctionIndex(0));
    let named = program.registers_named(&functions);
    let ground = Ground {
        program,
        functions: &functions,
        liveness: &Liveness::new(program),
        loads: &OutstandingLoads::new(program, program.rules().expect("rules").counters),
        registers: named.intersection(RegisterSet::SGPRS),
    };
    Slide::find(&ground, words)
}

/// Values in registers. Those that nothing was written to hold a value of their own.
#[derive(Clone, Default)]
struct Values(HashMap<Register, u64>);

impl Values {
    fn of(&self, register: Register) -> u64 {
        let own = match register {
            Register::Sgpr(Sgpr(number)) => number.into(),
            _ => 0,
        };
        self.0.get(&register).copied().unwrap_or(own)
    }
}

/// A run of a program, without state and with it.
struct Run<'a> {
    program: &'a Disassembly,
    slide: &'a Slide,
    words: usize,
    plain: Values,
    values: Values,
    /// What loads are going to deliver.
    outstanding: Vec<(Register, u64)>,
    next: u64,
}

impl Run<'_> {
    /// What word `word` of state is.
    fn state(word: usize) -> u64 {
        u64::MAX - word as u64
    }

    /// Follows one way of at most so many instructions.
    fn walk(&mut self, random: &mut Random, steps: usize) -> Result<(), String> {
        let first =
            self.places(self.program.functions[FunctionIndex(0)].instructions.start, When::Before);
        let first = first.ok_or("no state at the beginning")?;
        for (word, sgpr) in first.into_iter().enumerate() {
            self.values.0.insert(Register::Sgpr(sgpr), Run::state(word));
        }
        let mut block = self.program.functions[FunctionIndex(0)].blocks.start;
        let mut calls = Vec::new();
        let mut left = steps;
        loop {
            let own = &self.program.blocks[block];
            for at in own.instructions.iter() {
                self.step(random, at, own.end == BlockEnd::Call && at == own.last())?;
            }
            left = left.saturating_sub(own.instructions.len());
            let last = own.last();
            block = match own.end {
                _ if left == 0 => return Ok(()),
                BlockEnd::EndOfProgram => return Ok(()),
                BlockEnd::Edges => own.successors[random.below(own.successors.len())].to,
                BlockEnd::Call | BlockEnd::TailCall => {
                    calls.extend(own.successors.first().map(|edge| (last, edge.to)));
                    let function = &self.program.functions[own.function];
                    let call = function.calls.iter().find(|call| call.at == last);
                    let callee = call.and_then(|call| call.callee).expect("a callee");
                    self.program.functions[callee].blocks.start
                }
                BlockEnd::Return => {
                    let Some((call, back)) = calls.pop() else { return Ok(()) };
                    self.look(call, When::After)?;
                    back
                }
                end => panic!("{end:?}"),
            };
        }
    }

    fn places(&self, at: InstIndex, when: When) -> Option<Vec<Sgpr>> {
        self.slide.places(self.program, ProgramPoint::new(at, when))
    }

    /// Whether a hook finds state.
    fn look(&self, at: InstIndex, when: When) -> Result<(), String> {
        let places = self.places(at, when).ok_or("no state")?;
        assert_eq!(places.len(), self.words);
        for (word, sgpr) in places.into_iter().enumerate() {
            if self.values.of(Register::Sgpr(sgpr)) != Run::state(word) {
                let text = &self.program.inst(at).expect("an instruction").text;
                return Err(format!("word {word} is not in s{} {when:?} `{text}`", sgpr.0));
            }
        }
        Ok(())
    }

    fn step(&mut self, random: &mut Random, at: InstIndex, is_call: bool) -> Result<(), String> {
        self.look(at, When::Before)?;
        if let Some(moves) = self.slide.moves.get(&at) {
            if !moves.waits.is_empty() {
                self.deliver();
            }
            for Move { from, to } in &moves.moves {
                let value = self.values.of(Register::Sgpr(*from));
                self.values.0.insert(Register::Sgpr(*to), value);
            }
        }
        self.look(at, When::Instead)?;
        let inst = self.program.inst(at).expect("an instruction");
        let named = || inst.reads.iter().chain(&inst.writes);
        // What code names it has waited for.
        let is_named = |(own, _): &(Register, u64)| named().any(|range| range.contains(*own));
        if inst.operation.name() == "s_waitcnt"
            || self.outstanding.iter().any(is_named)
            || random.below(4) == 0
        {
            self.deliver();
        }
        for register in inst.reads.iter().flat_map(|range| range.iter()) {
            if self.plain.of(register) != self.values.of(register) {
                return Err(format!("`{}` reads something else in {register}", inst.text));
            }
        }
        for register in inst.writes.iter().flat_map(|range| range.iter()) {
            self.next += 1;
            self.outstanding.push((register, 1000 + self.next));
        }
        if !inst.operation.name().starts_with("s_load") {
            self.deliver_last(inst.writes.iter().map(|range| usize::from(range.words)).sum());
        }
        if is_call { Ok(()) } else { self.look(at, When::After) }
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

/// Follows many ways through a program.
fn walk(
    program: &Disassembly,
    slide: &Slide,
    words: usize,
    random: &mut Random,
) -> Result<(), String> {
    for _ in 0..20 {
        let mut run = Run {
            program,
            slide,
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
fn state_is_where_it_is_said_to_be_on_all_ways() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut found, mut moves, mut waits) = ([0; 2], 0, 0);
    for _ in 0..60 {
        let program = random_program(&mut random);
        for words in [1, 2, 4] {
            let slide = slide(&program, words);
            found[usize::from(slide.is_some())] += 1;
            let Some(slide) = slide else { continue };
            moves += slide.moves().map(|(_, own)| own.moves.len()).sum::<usize>();
            waits += slide.moves().filter(|(_, own)| !own.waits.is_empty()).count();
            walk(&program, &slide, words, &mut random)
                .unwrap_or_else(|wrong| panic!("{wrong}: {slide:?}\n{}", print(&program)));
        }
    }
    println!("found {}, not found {}, {moves} moves, {waits} with waits", found[1], found[0]);
    assert!(found[1] > 60 && moves > 300 && waits > 10, "{found:?} {moves} {waits}");
}

/// The negative control of the walks.
#[test]
fn a_move_that_is_left_out_is_noticed() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut noticed, mut left_out) = (0, 0);
    for _ in 0..40 {
        let program = random_program(&mut random);
        let Some(slide) = slide(&program, 2) else { continue };
        for at in slide.moves.keys() {
            let mut wrong = slide.clone();
            // What is said of places stays, what is done does not.
            let own = wrong.moves.get_mut(at).expect("moves");
            let Move { from, .. } = own.moves[0];
            own.moves[0].from = if from == Sgpr(101) { Sgpr(100) } else { Sgpr(101) };
            left_out += 1;
            noticed += usize::from(walk(&program, &wrong, 2, &mut random).is_err());
        }
    }
    println!("{noticed} of {left_out} noticed");
    assert!(left_out > 50 && noticed * 10 > left_out * 7, "{noticed} of {left_out}");
}

const CALL: &str = "s_call_b64 s[30:31], second";

#[test]
fn a_function_that_returns_in_place_of_another_has_state_where_its_caller_expects_it() {
    let kernel = format!("s_load_dword s8, s[0:1], 0x0\n s_mov_b32 s9, 0\n {CALL}\n s_endpgm");
    let second = "s_mov_b32 s9, s8\n s_mov_b32 s10, s9\n s_branch third";
    let third = "s_mov_b32 s8, s10\n s_mov_b32 s9, s8\n s_setpc_b64 s[30:31]";
    let program = read(&[("kernel", &kernel), ("second", second), ("third", third)]);
    assert!(program.blocks.iter().any(|block| block.end == BlockEnd::TailCall));
    let slide = slide(&program, 1).expect("a way");
    walk(&program, &slide, 1, &mut Random(1)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn where_no_register_is_dead_or_control_is_lost_state_cannot_slide() {
    let full = "s_mov_b32 s4, 1
        s_mov_b32 s5, 2
        s_nop 1
        v_mov_b32 v0, s5
        v_mov_b32 v0, s4
        s_load_dword s4, s[0:1], 0x0
        s_endpgm";
    assert_eq!(slide(&read(&[("kernel", full)]), 1), None);
    let less = "s_mov_b32 s4, 1
        s_nop 1
        v_mov_b32 v0, s4
        s_load_dword s5, s[0:1], 0x0
        s_endpgm";
    assert!(slide(&read(&[("kernel", less)]), 1).is_some());
    assert_eq!(slide(&read(&[("kernel", less)]), 2), None);
    let lost = format!("s_mov_b32 s9, 0\n {CALL}\n s_endpgm");
    let callee = "s_load_dwordx2 s[4:5], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_setpc_b64 s[4:5]";
    assert_eq!(slide(&read(&[("kernel", &lost), ("second", callee)]), 1), None);
    let known = callee
        .replace("s[4:5]\n        s_w", "s[6:7]\n        s_w")
        .replace("s_setpc_b64 s[4:5]", "s_setpc_b64 s[30:31]");
    assert!(slide(&read(&[("kernel", &lost), ("second", &known)]), 1).is_some());
}

#[test]
fn what_can_stay_stays() {
    let body = "s_mov_b32 s4, 1\n v_mov_b32 v0, s4\n s_mov_b32 s4, 2\n v_mov_b32 v1, s4
        s_nop 3\n s_mov_b32 s5, 3\n s_endpgm";
    let slide = slide(&read(&[("kernel", body)]), 1).expect("a way");
    assert_eq!(slide.moves.len(), 1, "{slide:?}");
}
