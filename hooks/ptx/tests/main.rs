//! Hooks in a kernel that the simulated GPU executes.

mod common;

use common::{KERNEL, LANES, Run, call, library, module};
use flipwave_arch::SourceLines;
use flipwave_ptx::{
    Expression, Instruction, Number, Operand, PREDICATES, ScalarType, WORDS, resolve,
};
use flipwave_ptx_hooks::{
    Argument, HookCall, Instrumentation, Lanes, LibraryIndex, Place, Point, PtxHookError,
};

/// Hooks that change nothing, and count.
const NEUTRAL: &str = "uint32_t count[4];
    uint32_t same(uint32_t value) { __atomic_fetch_add(&count[0], 1, __ATOMIC_RELAXED); return value; }
    uint64_t same_wide(uint64_t value) { __atomic_fetch_add(&count[1], 1, __ATOMIC_RELAXED); return value; }
    void seen(void) { __atomic_fetch_add(&count[2], 1, __ATOMIC_RELAXED); }
    /* Changes the carry, which must be preserved. */
    uint32_t carries(uint32_t value)
    {
        uint32_t sum;
        __asm__ volatile(\"add.cc.u32 %0, %1, %2;\" : \"=r\"(sum) : \"r\"(value), \"r\"(~value));
        return value;
    }";

fn instrumented(text: &str) -> (Instrumentation, LibraryIndex) {
    let mut instrumentation = Instrumentation::new(&module(KERNEL)).expect("a module");
    let library = instrumentation.add_library(library(text));
    (instrumentation, library)
}

/// Number of the first instruction whose text begins with `text`.
fn find(instrumentation: &Instrumentation, text: &str) -> usize {
    let found = instrumentation.sites().find(|site| site.inst.text().starts_with(text));
    found.unwrap_or_else(|| panic!("no {text}")).number
}

#[test]
fn addresses_and_registers_stay_those_of_the_original() {
    let original = resolve(&module(KERNEL)).expect("code");
    let instrumentation = Instrumentation::new(&module(KERNEL)).expect("a module");
    let code = instrumentation.code();
    assert_eq!(code.registers, original.registers);
    for (new, old) in code.instructions.iter().zip(&original.instructions) {
        assert_eq!((new.pc, new.accesses()), (old.pc, old.accesses()), "{old:?}");
        assert_eq!(code.lookup(new.pc), original.lookup(old.pc));
    }
}

/// Every register before every instruction, and what it writes after it, passes through a hook.
#[test]
fn neutral_hooks_change_no_result_and_no_count() {
    let expected = Run::new().outputs();
    let (mut instrumentation, library) = instrumented(NEUTRAL);
    let mut calls = Vec::new();
    for site in instrumentation.sites() {
        let change = |function: &str, argument, place| HookCall {
            arguments: vec![argument],
            results: vec![place],
            lanes: Lanes::Active,
            ..call(library, function)
        };
        let words = site.function.words.clone();
        for number in words {
            let word = flipwave_arch::RegisterId { class: &WORDS, number };
            let value = Argument::Word(word);
            calls.push((Point::Before(site.number), change("same", value, Place::Word(word))));
        }
        for number in site.function.predicates.clone() {
            let word = flipwave_arch::RegisterId { class: &PREDICATES, number };
            let value = Argument::Word(word);
            calls.push((Point::Before(site.number), change("same", value, Place::Word(word))));
        }
        let carry = flipwave_ptx::carry();
        let value = Argument::Word(carry);
        calls.push((Point::Before(site.number), change("same", value, Place::ReadWord(carry))));
        for word in &site.inst.accesses().sources {
            let value = Argument::Word(*word);
            let call = change("carries", value, Place::ReadWord(*word));
            calls.push((Point::Before(site.number), call));
        }
        if !site.leaves() {
            let mut seen = call(library, "seen");
            seen.lanes = Lanes::Active;
            calls.push((Point::After(site.number), seen));
            for (register, _) in &site.function.names {
                if register.kind.bits() == 64 {
                    let value = Argument::Register(*register);
                    let call = change("same_wide", value, Place::Register(*register));
                    calls.push((Point::After(site.number), call));
                }
            }
        }
    }
    for function in 0..2 {
        calls.push((Point::Entry(function), call(library, "seen")));
    }
    for (point, call) in calls {
        instrumentation.call(point, call).expect("a call");
    }
    let rewritten = instrumentation.rewrite().expect("a module");
    let mut run = Run::rewritten(&rewritten);
    assert_eq!(run.outputs(), expected);
    let count = run.variable(&rewritten, library, "count");
    assert!(count.iter().take(3).all(|count| *count > 0), "{count:?}");
    // The original instructions keep their lines.
    let new = resolve(&rewritten.module).expect("code");
    let code = instrumentation.code();
    for inst in &code.instructions {
        let moved = rewritten.moved(inst.pc).expect("an address");
        assert_eq!(rewritten.original(moved), Some(inst.pc));
        assert_eq!(new.lookup(moved), code.lookup(inst.pc));
    }
    let again = instrumentation.rewrite().expect("a module");
    assert_eq!(again.module.to_string(), rewritten.module.to_string());
}

/// Negative control: one hook that changes a value.
#[test]
fn changed_values_reach_the_result() {
    let expected = Run::new().outputs().0;
    for (text, word) in [("add.u32 %r10, %r10", 0), ("@%p1 add.u32", 1)] {
        let (mut instrumentation, library) =
            instrumented("uint32_t more(uint32_t value) { return value + 16; }");
        let number = find(&instrumentation, text);
        let site = instrumentation.site(number).expect("a site");
        let register = site.inst.accesses().destinations[0];
        let call = HookCall {
            arguments: vec![Argument::Word(register)],
            results: vec![Place::Word(register)],
            ..call(library, "more")
        };
        instrumentation.call(Point::After(number), call).expect("a call");
        let found = Run::rewritten(&instrumentation.rewrite().expect("a module")).outputs().0;
        let changed = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
        match word {
            0 => {
                let more: Vec<u32> = expected.iter().map(|word| word.wrapping_add(16)).collect();
                assert_eq!(found, more);
            }
            _ => assert!((1..LANES as usize).contains(&changed), "{changed}"),
        }
    }
}

#[test]
fn arguments_have_the_values_of_the_instruction() {
    let (mut instrumentation, library) = instrumented(
        "uint64_t kept[8];
         void keep(uint64_t a, uint64_t b, uint32_t c, uint32_t d, uint64_t e, uint32_t f, bool g)
         {
             if (flipwave_thread() != 5) return;
             kept[0] = a; kept[1] = b; kept[2] = c; kept[3] = d; kept[4] = e; kept[5] = f; kept[6] = g;
         }",
    );
    let load = find(&instrumentation, "ld.global.u32");
    let register = |name: &str| {
        let function = instrumentation.code().function("mix").expect("the kernel");
        function.names.iter().find(|(_, found)| **found == *name).expect("a register").0
    };
    let wide = register("%rd1");
    let high = wide.first.offset(1).expect("a word");
    let keep = HookCall {
        arguments: vec![
            Argument::Address,
            Argument::Words(wide.first, high),
            Argument::Constant(0x1_0000_0007),
            Argument::Special("%ntid.x"),
            Argument::Pc,
            Argument::Operand(0),
            Argument::Guard,
        ],
        ..call(library, "keep")
    };
    let pc = instrumentation.code().instructions[load].pc;
    instrumentation.call(Point::After(load), keep).expect("a call");
    let rewritten = instrumentation.rewrite().expect("a module");
    let mut run = Run::rewritten(&rewritten);
    run.outputs();
    let kept = run.variable(&rewritten, library, "kept");
    let wide = |index: usize| u64::from(kept[2 * index]) | u64::from(kept[2 * index + 1]) << 32;
    assert_eq!(wide(0), wide(1));
    let loaded = 5u32.wrapping_mul(0x9e37_79b9) >> 5;
    let rest = [2, 3, 4, 5, 6].map(wide);
    assert_eq!(rest, [7, LANES.into(), pc.0, loaded.into(), 1]);
}

/// A hook runs in the lanes whose guard is true, unless it asks for all of them.
#[test]
fn guards_decide_which_lanes_call_a_hook() {
    let odd = (0..LANES).filter(|i| i.wrapping_mul(0x9e37_79b9) >> 5 & 1 == 1).count() as u32;
    let (mut instrumentation, library) = instrumented(
        "uint32_t count[4];
         void add(uint32_t place, bool guard)
         {
             __atomic_fetch_add(&count[place], 1, __ATOMIC_RELAXED);
             if (guard) __atomic_fetch_add(&count[place + 1], 1, __ATOMIC_RELAXED);
         }",
    );
    let number = find(&instrumentation, "@%p1 add.u32");
    for (place, lanes) in [(0, Lanes::Executing), (2, Lanes::Active)] {
        let arguments = vec![Argument::Constant(place), Argument::Guard];
        let add = HookCall { arguments, lanes, ..call(library, "add") };
        instrumentation.call(Point::After(number), add).expect("a call");
    }
    let rewritten = instrumentation.rewrite().expect("a module");
    let mut run = Run::rewritten(&rewritten);
    run.outputs();
    let count = run.variable(&rewritten, library, "count");
    assert_eq!(count, [LANES - odd, LANES - odd, LANES, LANES - odd]);
}

#[test]
fn hooks_replace_instructions() {
    let expected = Run::new().outputs().0;
    let (instrumentation, library) = instrumented(
        "uint32_t sum(uint32_t a, uint32_t b) { return a + b; }
         uint32_t difference(uint32_t a, uint32_t b) { return a - b; }",
    );
    let number = find(&instrumentation, "add.u32 %r10, %r5");
    let outputs = |function: &str| {
        let mut instrumentation = instrumentation.clone();
        let site = instrumentation.site(number).expect("a site");
        let destination = site.inst.accesses().destinations[0];
        let replacement = HookCall {
            arguments: vec![Argument::Operand(1), Argument::Operand(2)],
            results: vec![Place::Word(destination)],
            ..call(library, function)
        };
        instrumentation.call(Point::Instead(number), replacement).expect("a call");
        Run::rewritten(&instrumentation.rewrite().expect("a module")).outputs().0
    };
    assert_eq!(outputs("sum"), expected);
    assert_ne!(outputs("difference"), expected);
}

/// The instruction counts as one with its hook, whose results go to several registers in lanes whose guard is
/// true, also if a result changes the guard.
#[test]
fn emulated_instructions_count_as_one_and_write_several_registers() {
    let (plain, statistics) = Run::new().outputs();
    let outputs = |text: &str| {
        let (mut instrumentation, library) = instrumented(text);
        let number = find(&instrumentation, "@%p1 add.u32");
        let site = instrumentation.site(number).expect("a site");
        let destination = site.inst.accesses().destinations[0];
        let guard = site.inst.guard.expect("a guard").register;
        let emulated = HookCall {
            arguments: vec![Argument::Operand(1), Argument::Guard],
            results: vec![Place::Word(guard), Place::Word(destination)],
            lanes: Lanes::Reaching,
            ..call(library, "more")
        };
        instrumentation.emulate(number, emulated).expect("a call");
        let rewritten = instrumentation.rewrite().expect("a module");
        let mut run = Run::rewritten(&rewritten);
        let (words, counted) = run.outputs();
        assert_eq!(counted, statistics);
        (words, run.variable(&rewritten, library, "count"))
    };
    let hook = |added: u32| {
        format!(
            "struct results {{ uint64_t guard, sum; }};
             uint32_t count[2];
             struct results more(uint32_t value, uint32_t executes)
             {{
                 __atomic_fetch_add(&count[executes], 1, __ATOMIC_RELAXED);
                 return (struct results){{1, value + {added}}};
             }}"
        )
    };
    let (words, count) = outputs(&hook(7));
    assert_eq!(words, plain);
    assert!(count[0] > 0 && count[1] > 0 && count[0] + count[1] == LANES, "{count:?}");
    let (words, count) = outputs(&hook(9));
    let changed = words.iter().zip(&plain).filter(|(new, old)| new != old).count();
    assert_eq!(changed, count[1] as usize);
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    let (instrumentation, library) = instrumented(
        "struct three { uint32_t a, b, c; };
         struct three two(void) { return (struct three){1, 2, 3}; }
         __attribute__((noinline)) uint32_t inner(uint32_t a) { __asm__ volatile(\"\"); return a + 1; }
         uint32_t outer(uint32_t a) { return inner(a) + inner(a + 1); }
         void nothing(void) {}",
    );
    let branch = find(&instrumentation, "@!%p1 bra");
    let refused = |point, call: HookCall| {
        let mut copy = instrumentation.clone();
        let result = copy.call(point, call).and_then(|()| copy.rewrite());
        result.expect_err("refused").to_string()
    };
    let text = refused(Point::After(branch), call(library, "nothing"));
    assert!(text.contains("@!%p1 bra ODD") && text.contains("do not continue"), "{text}");
    let text = refused(Point::Before(branch), call(library, "missing"));
    assert!(
        text.contains("no function `missing`") && text.contains("inner, nothing, outer, two"),
        "{text}"
    );
    let text = refused(Point::Before(branch), call(library, "two"));
    assert!(text.contains("no structures"), "{text}");
    let text = refused(Point::Before(branch), call(library, "inner"));
    assert!(text.contains("call a static function"), "{text}");
    let text = refused(Point::Before(branch), call(library, "outer"));
    assert!(text.contains("1 parameters, the call has 0"), "{text}");
    let address = HookCall { arguments: vec![Argument::Address], ..call(library, "outer") };
    let text = refused(Point::Before(branch), address);
    assert!(text.contains("accesses no memory"), "{text}");
    let mut older = Instrumentation::new(&module(&KERNEL.replace("sm_80", "sm_75"))).expect("code");
    older.add_library(common::library("void nothing(void) {}"));
    let text = older.rewrite().expect_err("a newer target").to_string();
    assert!(text.contains("sm_80") && text.contains("sm_75"), "{text}");
    let small = module(".version 7.8\n.target sm_80\n.address_size 32\n");
    assert!(matches!(Instrumentation::new(&small), Err(PtxHookError::Module(_))));
}

/// Inserted instructions use added registers and variables, and what they write in registers of the module remains.
#[test]
fn inserted_instructions_are_executed_as_they_are() {
    let expected = Run::new().outputs().0;
    let mut instrumentation = Instrumentation::new(&module(KERNEL)).expect("a module");
    instrumentation.add_variable("executed", ScalarType::U32).expect("a new name");
    let again = instrumentation.add_variable("executed", ScalarType::U32);
    assert!(matches!(again, Err(PtxHookError::Module(_))));
    assert!(instrumentation.add_variable("mix", ScalarType::U32).is_err(), "a kernel");
    let mut functions = instrumentation.code().functions.iter();
    let kernel = functions.position(|function| &*function.name == "mix").expect("the kernel");
    let one = instrumentation.add_register(kernel, ScalarType::U32);
    let other = instrumentation.add_register(kernel, ScalarType::U32);
    assert_ne!(one, other);
    let op = |name: &str, operands: Vec<Operand>| Instruction {
        guard: None,
        name: name.into(),
        operands,
    };
    let number = |value| Operand::Value(Expression::Number(Number::decimal(value)));
    let set = op("mov.u32", vec![Operand::symbol(&one), number(2)]);
    let add = vec![Operand::Address(vec![Operand::symbol("executed")]), Operand::symbol(&one)];
    instrumentation.insert(Point::Entry(kernel), vec![set]).expect("inserted");
    let exits = instrumentation.exits(kernel);
    for point in exits {
        instrumentation
            .insert(point, vec![op("red.global.add.u32", add.clone())])
            .expect("inserted");
    }
    let missing = instrumentation.insert(Point::Before(1 << 20), Vec::new());
    assert!(matches!(missing, Err(PtxHookError::Refused { .. })));
    let rewritten = instrumentation.rewrite().expect("a module");
    let mut run = Run::rewritten(&rewritten);
    assert_eq!(run.outputs().0, expected);
    let (address, _) = run.gpu.variable(run.module, "executed").expect("a variable");
    let mut found = [0; 4];
    flipwave_machine::Machine::read(&run.gpu, address, &mut found).expect("read");
    assert_eq!(u32::from_le_bytes(found), 2 * LANES);
}
