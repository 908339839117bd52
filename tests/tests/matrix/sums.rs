//! Faults inside matrix instructions, compared with plain Rust. A fault replaces a product, a partial
//! sum or the accumulator with another small integer, and one element must differ by the same amount.

use super::format::Sum;
use super::inputs::{Inputs, Values};
use super::reference::Terms;
use super::variants::{Kind, Variant, everyday, variants};
use flipwave_campaigns::{Campaign, InjectionPath, replay};
use flipwave_depth::Depth;
use flipwave_injector::{
    Action, Ending, Fault, FaultModel, FaultTarget, Injection, Place, Planned, Scope, Site,
    SumPlace, TraceEvent, What, Workload, Wrong, inject, trace,
};
use flipwave_sim::SumPart;
use flipwave_tests::{
    TestProgram, cases, example, examples_folder, flipwave, is_long_run, plan_of, profile_of, site,
};

const TARGETS: [FaultTarget; 3] =
    [FaultTarget::MatrixProduct, FaultTarget::MatrixPartialSum, FaultTarget::MatrixAccumulator];

/// The variants that are matrix instructions.
fn matrix_variants() -> Vec<Variant> {
    let all = if is_long_run() { variants() } else { everyday() };
    cases(all.into_iter().filter(|variant| variant.opcode() != "dot"), 3).collect()
}

/// A kernel on small integers, with its golden run and the terms of its sums.
struct Bench<'a> {
    variant: &'a Variant,
    workload: Workload,
    limits: Vec<u64>,
    golden: Vec<f64>,
    terms: Terms<'a>,
}

impl<'a> Bench<'a> {
    fn new(variant: &'a Variant, inputs: &'a Inputs) -> Bench<'a> {
        let mut program = TestProgram::new(&variant.code_object("-O3"));
        variant.launch(&mut program, inputs);
        let workload = program.workload();
        let golden = workload.golden().unwrap_or_else(|error| panic!("{variant}: {error}"));
        let limits = golden.instruction_limits();
        let golden = elements(variant, &golden.outputs[0].bytes());
        Bench { variant, workload, limits, golden, terms: Terms::new(variant, inputs) }
    }

    fn inject(&self, site: &Site) -> Injection {
        let injected = inject(&self.workload, site, &self.limits);
        injected.unwrap_or_else(|error| panic!("{} {site}: {error}", self.variant))
    }

    /// The number at a fault site, read by a fault that changes nothing.
    fn look(&self, site: &Site) -> f64 {
        let injection = self.inject(&Site { action: Action::StuckAtOne(0), ..*site });
        assert!(injection.struck.is_unchanged(), "{} {site}", self.variant);
        assert!(self.outputs(&injection) == self.golden, "{} {site}", self.variant);
        number(self.variant, injection.struck.before)
    }

    fn outputs(&self, injection: &Injection) -> Vec<f64> {
        match &injection.ending {
            Ending::Completed { outputs, .. } => elements(self.variant, &outputs[0].bytes()),
            Ending::Faulted { fault, .. } => panic!("{}: {fault}", self.variant),
        }
    }

    /// Sites of a fault. For double precision, sites in the upper half of the number: small integers have
    /// a zero lower half.
    fn sites(&self, target: FaultTarget, count: u64) -> Vec<Site> {
        let fault = Fault { target, ..Fault::transient(FaultModel::ZeroValue) };
        let profile = profile_of(&self.workload, &fault, &[]);
        let plan = plan_of(&self.workload, &profile, 5, count);
        let word = u8::from(self.variant.sum == Sum::F64);
        let upper = |Planned { site, .. }: Planned| {
            let place = sum_place(&site);
            Site { place: Place::Sum(SumPlace { word, ..place }), ..site }
        };
        plan.into_iter().map(upper).collect()
    }
}

fn sum_place(site: &Site) -> SumPlace {
    match site.place {
        Place::Sum(place) => place,
        place => panic!("{place} is not inside a sum"),
    }
}

/// The elements of D as numbers.
fn elements(variant: &Variant, bytes: &[u8]) -> Vec<f64> {
    let code =
        |element: &[u8]| element.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
    let all = bytes.chunks_exact(variant.sum.bytes()).map(code);
    match variant.sum.format() {
        None => all.map(|code| f64::from(code as i32)).collect(),
        Some(format) => all.map(|code| format.value(code)).collect(),
    }
}

/// The number that a word of a sum encodes.
fn number(variant: &Variant, word: u64) -> f64 {
    match variant.sum {
        Sum::F64 => f64::from_bits(word << 32),
        Sum::I32 => f64::from(word as u32 as i32),
        _ => f32::from_bits(word as u32).into(),
    }
}

/// The word that encodes a number.
fn word(variant: &Variant, number: f64) -> u32 {
    match variant.sum {
        Sum::F64 => (number.to_bits() >> 32) as u32,
        Sum::I32 => number as i32 as u32,
        _ => (number as f32).to_bits(),
    }
}

/// An exact sum converted to the type of D.
fn sum(variant: &Variant, exact: f64) -> f64 {
    if variant.sum == Sum::I32 { f64::from(exact as i64 as i32) } else { exact }
}

/// The value at a fault site equals the term that plain Rust computes, and replacing it changes one element
/// by the difference. The inputs are integers, so sums are exact.
#[test]
fn faults_inside_sums_agree_with_plain_rust() {
    let mut struck = 0;
    for variant in matrix_variants() {
        let inputs = Inputs::new(&variant, Values::Exact);
        let bench = Bench::new(&variant, &inputs);
        for target in TARGETS {
            for site in bench.sites(target, 3) {
                struck += strike(&bench, &site);
            }
        }
    }
    println!("{struck} elements differ");
    assert!(struck > 100, "{struck}");
}

/// Injects one fault and checks the results. Returns the number of elements that differ: 0 or 1.
fn strike(bench: &Bench<'_>, site: &Site) -> u32 {
    let variant = bench.variant;
    let what = format!("{variant} {site}");
    let before = bench.look(site);
    let wanted = if before == 5.0 { 6.0 } else { 5.0 };
    let injection = bench.inject(&Site { action: Action::Set(word(variant, wanted)), ..*site });
    assert_eq!(number(variant, injection.struck.before), before, "{what}");
    let found = bench.outputs(&injection);
    let differing: Vec<usize> =
        (0..found.len()).filter(|at| found[*at] != bench.golden[*at]).collect();
    if variant.saturates() && differing.is_empty() {
        return 0;
    }
    let [at] = differing[..] else { panic!("{what}: {} elements differ", differing.len()) };
    let (row, column) = (at / variant.columns(), at % variant.columns());
    let element = sum_place(site).element;
    let struck = [element.row, element.column].map(usize::from);
    assert_eq!([row, column].map(|at| at % variant.size), struck, "{what}");
    let expected = sum(variant, bench.golden[at] + wanted - before);
    if !variant.saturates() {
        assert_eq!(found[at], expected, "{what}: of {} with {before} struck", bench.golden[at]);
    }
    check_parts(bench, site, row, column);
    1
}

/// Checks that accumulator, products and last sum of an element equal those that plain Rust computes for
/// one of the kernel's instructions.
fn check_parts(bench: &Bench<'_>, site: &Site, row: usize, column: usize) {
    let variant = bench.variant;
    let SumPlace { element, word, .. } = sum_place(site);
    let look = |part, step| {
        bench.look(&Site { place: Place::Sum(SumPlace { part, element, step, word }), ..*site })
    };
    let products = match variant.kind {
        Kind::Sparse => variant.depth / 2,
        _ => variant.depth,
    };
    let accumulator = look(SumPart::Accumulator, 0);
    let last = look(SumPart::PartialSum, products as u8 - 1);
    let sorted = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.iter().map(|product| product + 0.0).collect::<Vec<_>>()
    };
    let found: Vec<f64> = (0..products).map(|k| look(SumPart::Product, k as u8)).collect();
    let all: Vec<f64> = bench.terms.factors(row, column).map(|(a, b)| a * b).collect();
    let mut so_far = bench.terms.before(row, column);
    let mut is_found = false;
    for factors in all.chunks(products) {
        let after = so_far + factors.iter().sum::<f64>();
        let saturated = |value: f64| {
            if variant.saturates() { value.clamp(i32::MIN.into(), i32::MAX.into()) } else { value }
        };
        let sums = [sum(variant, so_far), sum(variant, after)];
        is_found |=
            sums == [accumulator, last] && sorted(factors.to_vec()) == sorted(found.clone());
        so_far = saturated(after);
    }
    assert!(is_found, "{variant} {site}: {accumulator}, {found:?}, {last} of {all:?}");
}

/// A fault in a partial sum after its last step equals a fault in the result register, if the result is
/// the unconverted sum.
#[test]
fn fault_in_the_last_partial_sum_equals_fault_in_the_result() {
    let mut compared = 0;
    for variant in matrix_variants() {
        if matches!(variant.sum, Sum::F16 | Sum::Bf16 | Sum::F64) || variant.saturates() {
            continue;
        }
        let inputs = Inputs::new(&variant, Values::Near);
        let bench = Bench::new(&variant, &inputs);
        let products = if variant.kind == Kind::Sparse { variant.depth / 2 } else { variant.depth };
        for (bit, site) in (0..).step_by(7).zip(bench.sites(FaultTarget::MatrixPartialSum, 4)) {
            let step = products as u8 - 1;
            let place = Place::Sum(SumPlace { step, ..sum_place(&site) });
            let site = Site { place, action: Action::Flip(1 << bit), ..site };
            let traced = trace(&bench.workload, &site, &bench.limits);
            let traced = traced.unwrap_or_else(|error| panic!("{site}: {error}"));
            let register = |event: &TraceEvent| match event.what {
                What::Value(Wrong::Register { register, lane, .. }) => Some((register, lane)),
                _ => None,
            };
            let found = traced.events.iter().find_map(register);
            let (register, lane) = found.unwrap_or_else(|| panic!("{site}: nothing wrong"));
            let lanes = lane.map(flipwave_injector::Lanes::One);
            let in_register = Site { place: Place::Register(register), lanes, ..site };
            assert!(
                bench.inject(&site) == bench.inject(&in_register),
                "{variant}: {site}, {in_register}"
            );
            // Negative control: the next bit.
            let wrong = Site { action: Action::Flip(2 << bit), ..in_register };
            assert!(bench.inject(&site) != bench.inject(&wrong), "{variant}: {site}");
            compared += 1;
        }
    }
    let least = if Depth::asked() == Depth::Sample { 30 } else { 60 };
    assert!(compared >= least, "{compared}");
}

/// The fault space of an execution is elements times steps times bits, regardless of the active lanes.
#[test]
fn fault_space_is_elements_times_steps_times_bits() {
    let check = |target, operation: &str, group: u64, words: u64| {
        let variant = variants().into_iter().find(|variant| variant.operation == operation);
        let variant = variant.unwrap_or_else(|| panic!("{operation}"));
        let mut program = TestProgram::new(&variant.code_object("-O3"));
        variant.launch_near(&mut program);
        let workload = program.workload();
        let fault = Fault { target, ..Fault::transient(FaultModel::FlipOneBit) };
        let profile = profile_of(&workload, &fault, &[]);
        let products = if variant.kind == Kind::Sparse { variant.depth / 2 } else { variant.depth };
        let steps = match target {
            FaultTarget::MatrixProduct => products as u64,
            FaultTarget::MatrixPartialSum => (products as u64).div_ceil(group),
            _ => 1,
        };
        let elements = (variant.size * variant.size) as u64;
        let executions: u64 = profile
            .instructions
            .iter()
            .filter(|inst| inst.opcode.contains(variant.opcode()))
            .map(|inst| inst.executions)
            .sum();
        let places = profile.fault_space.sites;
        assert_eq!(places, executions * elements * steps * 32 * words, "{target} {operation}");
        let whole = Fault { scope: Scope::Workgroup, ..fault };
        assert_eq!(profile_of(&workload, &whole, &[]).fault_space.sites, places);
        let model = FaultModel::ZeroValue;
        let values = profile_of(&workload, &Fault { model, scope: Scope::Lane, ..whole }, &[]);
        assert_eq!(values.fault_space.sites * 32, places);
    };
    for target in TARGETS {
        check(target, "mfma_f32_16x16x16f16", 4, 1);
        check(target, "mfma_f64_16x16x4f64", 1, 2);
        check(target, "smfmac_f32_16x16x32_f16", 8, 1);
        check(target, "mfma_scale_f32_16x16x128_f8f6f4", 16, 1);
        check(target, "swmmac_f32_16x16x32_f16_{}", 1, 1);
        check(target, "wmma_i32_16x16x16_iu8_{}", 1, 1);
    }
}

const SITE: &str = "dispatch=0 workgroup=1,0,0 wave=0 pc=0x18d0 occurrence=1";

#[test]
fn invalid_sum_sites_are_refused() {
    let file = examples_folder().join("matrix/mfma.yaml");
    let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let refused = |what: &str| {
        let site = site(&format!("{SITE} {what} flip=0x1"));
        let replayed = replay(&campaign, &site, InjectionPath::Embedded);
        replayed.expect_err(what).to_string()
    };
    for what in [
        "product=16,0 step=0",
        "product=0,16 step=0",
        "product=0,0 block=1 step=0",
        "product=0,0 step=16",
        "product=0,0 step=0 word=1",
        // The instruction adds four products per step.
        "partial_sum=0,0 step=4",
        "accumulator=0,0 word=1",
    ] {
        let message = refused(what);
        assert!(message.contains("16 rows, 16 columns, 1 block(s), 16 products"), "{message}");
        assert!(message.contains("a partial sum after each 4"), "{message}");
    }
    // Control: sites that exist.
    for what in ["product=15,15 step=15", "partial_sum=0,0 step=3", "accumulator=0,0"] {
        let site = site(&format!("{SITE} {what} flip=0x1"));
        let replayed = replay(&campaign, &site, InjectionPath::Embedded);
        assert!(replayed.is_ok(), "{what}: {replayed:?}");
    }
    let elsewhere = format!("{SITE} product=0,0 step=0 flip=0x1").replace("0x18d0", "0x1898");
    let site = site(&elsewhere);
    let replayed = replay(&campaign, &site, InjectionPath::Embedded).expect_err("no product");
    assert!(replayed.to_string().contains("is not a matrix multiplication"), "{replayed}");
    let hooked = replay(&campaign, &site, InjectionPath::Hook).expect_err("no hook");
    assert!(hooked.to_string().contains("hooks cannot strike product=0,0 step=0"), "{hooked}");
}

#[test]
fn invalid_campaigns_on_sums_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let product = std::fs::read_to_string(examples_folder().join("matrix/mfma.yaml"));
    let product = product.expect("the example");
    let source = examples_folder().canonicalize().expect("the examples").join("matrix/gemm.cl");
    let run = |name: &str, faults: &str, more: &[&str]| {
        let file = match name {
            "mfma" => {
                let end = product.find("faults:").expect("faults");
                let text = product[..end].replace("gemm.cl\n", &format!("{}\n", source.display()));
                let file = folder.path().join("mfma.yaml");
                std::fs::write(&file, format!("{text}faults: {faults}\n")).expect("a file");
                file
            }
            _ => example(name, faults, folder.path()),
        };
        let mut arguments = vec!["run".as_ref(), file.as_os_str()];
        arguments.extend(more.iter().map(std::ffi::OsStr::new));
        flipwave(folder.path(), &arguments, &[])
    };
    let faults = "{target: matrix_product, model: flip_one_bit, count: 5}";
    run("quickstart", faults, &[]).expect_refused(&["matrix_product", "wave instructions"]);
    run("mfma", faults, &["--by", "hook"])
        .expect_refused(&["target matrix_product is inside an instruction", "--by hook"]);
    let faults = "{target: matrix_product, model: flip_one_bit, groups: [valu], count: 5}";
    run("mfma", faults, &[]).expect_refused(&["groups", "valu has none", "expected matrix"]);
    let faults = "{target: matrix_product, model: flip_one_bit, scope: wave, count: 5}";
    run("mfma", faults, &[]).expect_refused(&["scope wave is not supported for matrix_product"]);
    // Control: a valid campaign, with a self-test of its injections.
    let faults = "{target: matrix_product, model: flip_one_bit, groups: [matrix, fp16], count: 5}";
    run("mfma", faults, &["--self-test", "--out", "results"]).expect_success();
}
