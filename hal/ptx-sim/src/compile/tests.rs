//! Both tiers execute random programs of all compiled forms.

use super::emit::is_compiled;
use crate::{Program, PtxGpu};
use flipwave_arch::{LaneMask, Pc};
use flipwave_device::{Address, Completion, Dispatch};
use flipwave_jit::Compiling;
use flipwave_machine::{Fidelity, Footprints, Machine, Progress, Unobserved, WaveCounts};
use flipwave_ptx::{Ptx, parse, resolve};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Operations by form: name, and widths of the operands. `h`, `r` and `d` are registers of 16, 32 and 64 bits,
/// `p` is a predicate and `|` separates two results.
fn forms() -> Vec<(String, &'static str)> {
    let mut forms: Vec<(String, &str)> = Vec::new();
    let mut add = |name: String, widths| forms.push((name, widths));
    for (kind, one, two, three, shift) in [
        ("16", "hh", "hhh", "hhhh", "hhr"),
        ("32", "rr", "rrr", "rrrr", "rrr"),
        ("64", "dd", "ddd", "dddd", "ddr"),
    ] {
        for sign in ["s", "u"] {
            for name in ["add", "sub", "mul.lo", "min", "max"] {
                add(format!("{name}.{sign}{kind}"), two);
            }
            add(format!("mad.lo.{sign}{kind}"), three);
            add(format!("shr.{sign}{kind}"), shift);
        }
        for name in ["abs.s", "neg.s", "not.b", "mov.b"] {
            add(format!("{name}{kind}"), one);
        }
        for name in ["and.b", "or.b", "xor.b"] {
            add(format!("{name}{kind}"), two);
        }
    }
    for (kind, shift, select, compare) in
        [("16", "hhr", "hhhp", "phh"), ("32", "rrr", "rrrp", "prr"), ("64", "ddr", "dddp", "pdd")]
    {
        add(format!("shl.b{kind}"), shift);
        add(format!("selp.b{kind}"), select);
        for order in ["eq", "ne"] {
            add(format!("setp.{order}.b{kind}"), compare);
        }
        for order in ["lt", "le", "gt", "ge"] {
            add(format!("setp.{order}.s{kind}"), compare);
            add(format!("setp.{order}.u{kind}"), compare);
        }
    }
    for order in ["lo", "ls", "hi", "hs"] {
        add(format!("setp.{order}.u32"), "prr");
    }
    for sign in ["s", "u"] {
        add(format!("mul.hi.{sign}16"), "hhh");
        add(format!("mul.hi.{sign}32"), "rrr");
        add(format!("mul.wide.{sign}16"), "rhh");
        add(format!("mul.wide.{sign}32"), "drr");
        add(format!("mad.hi.{sign}32"), "rrrr");
        add(format!("mad.wide.{sign}16"), "rhhr");
        add(format!("mad.wide.{sign}32"), "drrd");
    }
    for name in ["popc.b", "clz.b"] {
        add(format!("{name}32"), "rr");
        add(format!("{name}64"), "rd");
    }
    add("brev.b32".into(), "rr");
    add("brev.b64".into(), "dd");
    add("shf.l.wrap.b32".into(), "rrrr");
    add("shf.r.wrap.b32".into(), "rrrr");
    for name in ["and", "or", "xor"] {
        add(format!("{name}.pred"), "ppp");
        add(format!("setp.lt.{name}.s32"), "p|prrp");
        add(format!("setp.geu.{name}.f64"), "p|pddp");
    }
    add("not.pred".into(), "pp");
    add("mov.pred".into(), "pp");
    add("setp.gt.u64".into(), "p|pdd");
    for (kind, one, two, three, compare) in
        [("f32", "rr", "rrr", "rrrr", "prr"), ("f64", "dd", "ddd", "dddd", "pdd")]
    {
        for flush in ["", ".ftz"] {
            if kind == "f64" && !flush.is_empty() {
                continue;
            }
            for name in ["add", "sub", "mul"] {
                add(format!("{name}.rn{flush}.{kind}"), two);
                add(format!("{name}{flush}.{kind}"), two);
            }
            for name in ["min", "max"] {
                add(format!("{name}{flush}.{kind}"), two);
            }
            add(format!("div.rn{flush}.{kind}"), two);
            add(format!("fma.rn{flush}.{kind}"), three);
            for name in ["rcp.rn", "sqrt.rn", "abs", "neg"] {
                add(format!("{name}{flush}.{kind}"), one);
            }
            for order in [
                "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                "num", "nan",
            ] {
                add(format!("setp.{order}{flush}.{kind}"), compare);
            }
            for round in ["rni", "rzi", "rmi", "rpi"] {
                add(format!("cvt.{round}{flush}.{kind}.{kind}"), one);
                for (to, width) in [("32", "r"), ("64", "d")] {
                    let widths = match (width, kind) {
                        ("r", "f32") => "rr",
                        ("r", _) => "rd",
                        ("d", "f32") => "dr",
                        _ => "dd",
                    };
                    add(format!("cvt.{round}{flush}.s{to}.{kind}"), widths);
                    add(format!("cvt.{round}{flush}.u{to}.{kind}"), widths);
                }
            }
        }
        add(format!("copysign.{kind}"), two);
        for (from, width) in [("s32", "r"), ("u32", "r"), ("s64", "d"), ("u64", "d")] {
            let widths = match (kind, width) {
                ("f32", "r") => "rr",
                ("f32", _) => "rd",
                (_, "r") => "dr",
                _ => "dd",
            };
            add(format!("cvt.rn.{kind}.{from}"), widths);
        }
    }
    for name in ["div.approx", "div.full", "div.approx.ftz"] {
        add(format!("{name}.f32"), "rrr");
    }
    for name in ["rcp.approx", "rcp.approx.ftz", "sqrt.approx", "sqrt.approx.ftz"] {
        add(format!("{name}.f32"), "rr");
    }
    for flush in ["", ".ftz"] {
        add(format!("cvt{flush}.f64.f32"), "dr");
        add(format!("cvt.rn{flush}.f32.f64"), "rd");
    }
    for (to, result) in [("16", "h"), ("32", "r"), ("64", "d")] {
        for (from, source) in [("8", "r"), ("16", "h"), ("32", "r"), ("64", "d")] {
            let widths = match (result, source) {
                ("h", "h") => "hh",
                ("h", "r") => "hr",
                ("h", _) => "hd",
                ("r", "h") => "rh",
                ("r", "r") => "rr",
                ("r", _) => "rd",
                (_, "h") => "dh",
                (_, "r") => "dr",
                _ => "dd",
            };
            for (a, b) in [("s", "s"), ("s", "u"), ("u", "s"), ("u", "u")] {
                add(format!("cvt.{a}{to}.{b}{from}"), widths);
            }
        }
    }
    add("cvt.s8.s32".into(), "rr");
    add("cvt.u8.u32".into(), "rr");
    for space in ["global", "shared", "local"] {
        add(format!("cvta.{space}.u64"), "dd");
        add(format!("cvta.to.{space}.u64"), "dd");
    }
    forms
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Values at the ends of types, small and large numbers, subnormal numbers, infinities and NaNs.
const SPECIAL: [u64; 40] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0000_0001_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x3f80_0000,
    0x3f00_0000,
    0x4020_0000,
    0x3fe0_0000_0000_0000,
    0x4004_0000_0000_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_1234,
    0x7f80_0001,
    0x0080_0000,
    0x807f_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x3ff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
];

const REGISTERS: usize = 6;

/// A register of a width.
fn register(width: char, random: &mut Random) -> String {
    let number = random.below(REGISTERS);
    match width {
        'h' => format!("%h{number}"),
        'r' => format!("%r{number}"),
        'd' => format!("%d{number}"),
        _ => format!("%p{}", random.below(4)),
    }
}

/// An instruction of a form.
fn instruction((name, widths): &(String, &str), random: &mut Random) -> String {
    let (results, sources) = match widths.split_once('|') {
        Some((first, rest)) => (2, format!("{first}{rest}")),
        None => (1, (*widths).to_owned()),
    };
    let mut operands: Vec<String> = Vec::new();
    for (number, width) in sources.chars().enumerate() {
        let is_float = name.contains(".f32") || name.contains(".f64");
        let is_constant = number >= results && width != 'p' && !is_float && random.one_in(6);
        operands.push(if is_constant && number > results {
            (SPECIAL[random.below(14)] as u16).to_string()
        } else {
            register(width, random)
        });
    }
    let results = operands.drain(..results).collect::<Vec<_>>().join("|");
    format!("{name} {results}, {}", operands.join(", "))
}

/// An access to the memory of the lane, of the workgroup or of the grid.
fn access(random: &mut Random) -> String {
    let space = ["global", "shared", "local", "const"][random.below(3)];
    let base = match space {
        "global" => ["%global", "%same", "%spread"][random.below(3)],
        "shared" => ["%shared", "%zero", "%mixed"][random.below(3)],
        _ => "stack",
    };
    let offset = 16 * random.below(2);
    let is_store = random.one_in(2);
    // Lanes of different waves must not store to the same address.
    let is_store = is_store && base != "%same" && base != "%zero" && base != "%mixed";
    let (kind, width) =
        [("b8", 'r'), ("u16", 'h'), ("s16", 'r'), ("b32", 'r'), ("s32", 'd'), ("b64", 'd')]
            [random.below(6)];
    let value = register(width, random);
    if random.one_in(4) {
        let other = register('r', random);
        let vector = format!("{{{}, {other}}}", register('r', random));
        let place = format!("[{base}+{offset}]");
        return if is_store {
            format!("st.{space}.v2.b32 {place}, {vector}")
        } else {
            format!("ld.{space}.v2.b32 {vector}, {place}")
        };
    }
    if is_store && kind != "s32" {
        format!("st.{space}.{} [{base}+{offset}], {value}", kind.replace('s', "u"))
    } else {
        format!("ld.{space}.{kind} {value}, [{base}+{offset}]")
    }
}

/// A program: a loop with random instructions, guards and branches.
fn program(forms: &[(String, &'static str)], seed: u64) -> String {
    let mut random = Random(seed);
    let mut body = String::new();
    let mut open = None;
    for number in 0..60 {
        let guard = match random.below(5) {
            0 => format!("@%p{} ", random.below(4)),
            1 => format!("@!%p{} ", random.below(4)),
            _ => String::new(),
        };
        let text = match random.below(6) {
            0 => access(&mut random),
            1 if random.one_in(4) => "mov.u32 %r1, %tid.x".to_owned(),
            1 if random.one_in(4) => "mov.b64 %d1, {%r1, %r2}".to_owned(),
            1 if random.one_in(4) => "mov.b64 {%r3, %r4}, %d2".to_owned(),
            1 if random.one_in(4) => "mov.u32 %r2, %clock".to_owned(),
            _ => instruction(&forms[random.below(forms.len())], &mut random),
        };
        let _ = writeln!(body, "{guard}{text};");
        match open {
            None if random.one_in(6) => {
                let negation = if random.one_in(2) { "!" } else { "" };
                let _ = writeln!(body, "@{negation}%p{} bra L{number};", random.below(4));
                open = Some(number);
            }
            Some(label) if random.one_in(4) => {
                let _ = writeln!(body, "L{label}:");
                open = None;
            }
            _ => {}
        }
    }
    if let Some(label) = open {
        let _ = writeln!(body, "L{label}:");
    }
    let mut loads = String::new();
    for number in 0..REGISTERS {
        let at = 8 * number;
        let _ = writeln!(loads, "ld.global.b64 %d{number}, [%in+{at}];");
        let _ = writeln!(loads, "ld.global.b32 %r{number}, [%in+{}];", at + 48);
        let _ = writeln!(loads, "ld.global.b16 %h{number}, [%in+{}];", at + 96);
    }
    for number in 0..4 {
        let _ = writeln!(loads, "setp.lt.s32 %p{number}, %r{number}, %r{};", number + 1);
    }
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 pool[4096];\n.visible .entry \
         k(.param .u64 in, .param .u64 out) {{\n.local .align 16 .b8 stack[64];\n.reg .b16 %h<6>; .reg .b32 \
         %r<6>; .reg .b64 %d<6>; .reg .pred %p<5>; .reg .b64 %in, %out, %global, %same, %spread, %shared, \
         %zero, %mixed; .reg .b32 %item, %group, %count, %half;\nld.param.u64 %in, [in]; ld.param.u64 %out, \
         [out]; mov.u32 %item, %tid.x; mov.u32 %group, %ctaid.x; mad.lo.u32 %group, %group, 48, %item; \
         mad.wide.u32 %in, %group, 144, %in; mad.wide.u32 %global, %group, 32, %out; add.u64 %same, %out, 64; \
         mul.lo.u32 %group, %group, 7; rem.u32 %group, %group, 96; mad.wide.u32 %spread, %group, 32, %out; \
         mul.wide.u32 %shared, %item, 32; mov.u64 %zero, pool; and.b32 %half, %item, 15; mul.wide.u32 %mixed, \
         %half, 32; mov.u32 %count, 0;\n{loads}LOOP:\n{body}add.u32 %count, %count, 1; setp.lt.u32 %p4, %count, \
         4; @%p4 bra LOOP;\nret;\n}}\n"
    )
}

/// A module on a GPU, with its buffers.
struct Case {
    gpu: PtxGpu,
    dispatch: Dispatch,
}

/// Lanes of a workgroup: the second wave is partial.
const LANES: u32 = 48;
const WORKGROUPS: u32 = 2;

impl Case {
    fn new(text: &str, seed: u64) -> Case {
        let module = parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let mut gpu = PtxGpu::new(Ptx::new("sm_90").expect("a target"));
        let module = gpu.load(&module).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let mut random = Random(seed ^ 0x5555);
        let items = LANES * WORKGROUPS;
        let input: Vec<u8> = (0..18 * items)
            .flat_map(|_| {
                let value = match random.below(3) {
                    0 => random.next() << 40 ^ random.next() << 20 ^ random.next(),
                    1 => {
                        SPECIAL[random.below(SPECIAL.len())]
                            | SPECIAL[random.below(SPECIAL.len())] << 32
                    }
                    _ => SPECIAL[random.below(SPECIAL.len())],
                };
                value.to_le_bytes()
            })
            .collect();
        let buffer = |gpu: &mut PtxGpu, bytes: &[u8]| {
            let address = gpu.allocate(bytes.len() as u64).expect("memory");
            gpu.write(address, bytes).expect("memory");
            address
        };
        let addresses: [Address; 2] = [buffer(&mut gpu, &input), buffer(&mut gpu, &vec![3; 4096])];
        let dispatch = Dispatch {
            module,
            kernel: "k".into(),
            grid: [items, 1, 1],
            workgroup: [LANES, 1, 1],
            kernarg: addresses.iter().flat_map(|address| address.0.to_le_bytes()).collect(),
            dynamic_lds: 0,
            instruction_limit: 1_000_000,
            queued: None,
            is_cooperative: false,
        };
        Case { gpu, dispatch }
    }

    /// Executes the program in both tiers, with pauses.
    ///
    /// # Errors
    /// If the tiers differ.
    fn compare(&self, pause: u64) -> Result<(), String> {
        let mut gpus = [self.gpu.clone(), self.gpu.clone()];
        gpus[0].set_compiling(Compiling::Never);
        gpus[1].set_compiling(Compiling::AtOnce);
        let [first, second] = &mut gpus;
        let mut executions = [first.begin(&self.dispatch), second.begin(&self.dispatch)]
            .map(|execution| execution.expect("a launch"));
        let mut until = 0;
        loop {
            until += pause;
            let [a, b] = &mut executions;
            let first_end = first.advance(a, &mut Unobserved, until).expect("an execution");
            let second_end = second.advance(b, &mut Unobserved, until).expect("an execution");
            let are_equal = a.continues_like(b) && first.is_in_state_of(second);
            if first_end != second_end || !are_equal {
                return Err(format!("{first_end:?} and {second_end:?} after {until} instructions"));
            }
            if let Progress::Ended(completion) = first_end {
                assert!(matches!(completion, Completion::Completed(_)), "{completion:?}");
                return Ok(());
            }
        }
    }
}

/// Everything that a survey of a dispatch finds.
#[derive(Debug, PartialEq)]
struct Surveyed {
    end: Progress,
    counts: Vec<WaveCounts>,
    instructions: Vec<Pc>,
    footprints: Footprints,
    fidelity: Fidelity,
}

impl Case {
    /// Surveys the program in a tier.
    fn survey(&self, compiling: Compiling) -> Surveyed {
        let mut gpu = self.gpu.clone();
        gpu.set_compiling(compiling);
        let mut execution = gpu.begin(&self.dispatch).expect("a launch");
        let mut survey =
            gpu.begin_survey(&execution, Some(LaneMask(0xffff_ff0f))).expect("a survey");
        let (mut check, mut footprints) = (gpu.fidelity_check(), Footprints::default());
        gpu.begin_fidelity("k", &execution, &mut *check);
        let end = gpu
            .advance_surveyed(
                &mut execution,
                &mut Unobserved,
                &mut *survey,
                Some(&mut *check),
                Some(&mut footprints),
                u64::MAX,
            )
            .expect("an execution");
        let counts = survey.counts().expect("counts");
        let instructions =
            (0..counts.len()).map(|number| counts.instruction(number).pc()).collect();
        let counts = counts.take_ended();
        Surveyed { end, counts, instructions, footprints, fidelity: gpu.fidelity(&mut *check) }
    }
}

#[test]
fn surveys_are_equal_in_both_tiers() {
    let (forms, mut written) = (forms(), 0);
    for seed in flipwave_depth::cases(100..120, 8) {
        let case = Case::new(&program(&forms, seed), seed);
        let interpreted = case.survey(Compiling::Never);
        let bytes = interpreted.footprints.iter().map(|(_, found)| found.bytes_written());
        written += bytes.sum::<u64>();
        assert!(case.survey(Compiling::AtOnce) == interpreted, "seed {seed}");
    }
    assert!(written > 0);
}

/// The forms of which a program exists.
fn compiled_forms(program: &Program) -> BTreeSet<String> {
    let steps = program.steps.iter().filter_map(|step| match &step.op {
        crate::program::Op::Compute { sources, destinations, .. } => {
            let is_compiled = is_compiled(&step.inst.form, sources.len(), destinations.len());
            is_compiled.then(|| step.inst.form.name().to_owned())
        }
        _ => None,
    });
    steps.collect()
}

#[test]
fn random_programs_are_equal_in_both_tiers() {
    let forms = forms();
    let mut seen = BTreeSet::new();
    for seed in 0..flipwave_depth::cases(0..40, 8).count() as u64 {
        let text = program(&forms, seed);
        let case = Case::new(&text, seed);
        for pause in [u64::MAX, 1009, 97] {
            case.compare(pause).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        }
        seen.extend(compiled_forms(case.gpu.program(case.dispatch.module).expect("a program")));
    }
    println!("{} forms", seen.len());
}

#[test]
fn all_forms_are_equal_in_both_tiers() {
    // Few forms per program, so that each of them meets many operands.
    for (number, part) in forms().chunks(16).enumerate() {
        let text = program(part, number as u64);
        let case = Case::new(&text, number as u64);
        case.compare(u64::MAX).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn all_forms_of_the_list_are_compiled() {
    let forms = forms();
    let mut random = Random(1);
    for form in &forms {
        let text = program(std::slice::from_ref(form), random.next());
        let module = parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let code = resolve(&module).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        assert!(code.instructions.iter().any(|inst| inst.form.name() == form.0), "{text}");
        let case = Case::new(&text, 1);
        let program = case.gpu.program(case.dispatch.module).expect("a program");
        assert!(compiled_forms(program).contains(&form.0), "{} is not compiled", form.0);
    }
}

/// Mistakes in the IR, which the comparison must notice.
const MISTAKES: [(&str, &str); 8] = [
    ("add <32 x i32>", "sub <32 x i32>"),
    ("icmp slt <32 x i32>", "icmp sle <32 x i32>"),
    ("splat (i32 2147483647)", "splat (i32 2143289344)"),
    ("select <32 x i1> %active, <32 x i32>", "select <32 x i1> splat (i1 true), <32 x i32>"),
    ("xor <32 x i1>", "and <32 x i1>"),
    ("llvm.roundeven.v32f32", "llvm.round.v32f32"),
    ("<16 x i32> <i32 16, i32 17", "<16 x i32> <i32 17, i32 16"),
    ("fcmp oge <32 x double>", "fcmp ogt <32 x double>"),
];

#[test]
fn mistakes_in_compiled_code_are_noticed() {
    let forms = forms();
    for (right, wrong) in MISTAKES {
        let is_noticed = (0..120).any(|seed| {
            let text = program(&forms, seed);
            super::MISTAKE.set(Some((right, wrong)));
            let found = Case::new(&text, seed).compare(u64::MAX).is_err();
            super::MISTAKE.set(None);
            found
        });
        assert!(is_noticed, "{right}: {wrong}");
    }
}
