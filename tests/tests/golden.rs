//! Results of the example campaigns without faults, compared with plain Rust bit by bit.
//!
//! The references use the order of operations of the kernels' sources. Explicit fused operations in the
//! sources leave the compiler no choice.

use flipwave_campaigns::{Campaign, Code, Prepared, prepare};
use flipwave_tests::{
    MACHINES, Machine, buffer, campaign_target, cases, examples, gpu, is_long_run, kernels_mut,
    to_bytes,
};
use std::path::Path;

/// Computes the outputs of an example, in the order of the campaign file.
type Reference = fn(&Campaign) -> Vec<Vec<u8>>;

const REFERENCES: [(&str, Reference); 8] = [
    ("jacobi", jacobi),
    ("matmul", matmul),
    ("quickstart", quickstart),
    ("reduction", reduction),
    ("saxpy", saxpy),
    ("scan", scan),
    ("stencil", stencil),
    ("vector_add", vector_add),
];

#[test]
fn examples_agree_with_plain_rust() {
    for file in examples() {
        let (name, campaign, expected) = example(&file);
        let levels = ["-O0", "-O1", "-O3", "-Os"];
        let all = MACHINES.into_iter().flat_map(|machine| levels.map(|level| (machine, level)));
        for (machine, level) in cases(all, 5) {
            // matmul takes by far the longest. The other examples run unoptimised on every machine.
            let is_long = name == "matmul" && level == "-O0" && !machine.is_typical();
            if (machine.runs_hip() || name != "saxpy") && (!is_long || is_long_run()) {
                println!("{name} {level} on {machine}");
                assert_computes(&expected, on(machine, level, campaign.clone()));
            }
        }
    }
}

/// Name, campaign and expected outputs of an example.
fn example(file: &Path) -> (&str, Campaign, Vec<Vec<u8>>) {
    let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
    let (_, reference) = REFERENCES
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap_or_else(|| panic!("the example {name} has no reference in this test"));
    let campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    let expected = reference(&campaign);
    (name, campaign, expected)
}

/// Generic targets, and processors that they cover.
const GENERIC: [(&str, &[&str]); 5] = [
    ("gfx9-generic", &["gfx906"]),
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1036"]),
    ("gfx11-generic", &["gfx1100", "gfx1103", "gfx1151"]),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

#[test]
fn generic_target_code_runs_on_covered_processors() {
    for file in examples() {
        let (name, campaign, expected) = example(&file);
        let all = GENERIC
            .iter()
            .flat_map(|(generic, all)| all.iter().map(move |target| (*generic, target)));
        for (generic, processor) in cases(all, 3) {
            println!("{name} for {generic} on {processor}");
            let prepared = prepare(&generic_on(processor, generic, campaign.clone()));
            let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
            let module = prepared.workload.program.dispatches[0].module;
            let object = gpu(&prepared.workload.device).code_object(module).expect("a module");
            assert_eq!((object.target().processor(), object.version()), (generic, 6));
            assert_runs(&expected, &prepared);
        }
    }
}

#[test]
fn generic_target_code_is_refused_by_other_processors() {
    let file = examples().into_iter().find(|file| file.ends_with("vector_add.yaml"));
    let campaign = Campaign::read(&file.expect("an example")).expect("a campaign");
    for (generic, processor) in
        [("gfx11-generic", "gfx1201"), ("gfx9-4-generic", "gfx90a"), ("gfx9-generic", "gfx908")]
    {
        let refused = prepare(&generic_on(processor, generic, campaign.clone()));
        let error = refused.err().expect("refused").to_string();
        assert!(error.contains(generic) && error.contains(processor), "{error}");
    }
}

/// The campaign on a processor, with kernels compiled for a generic target.
fn generic_on(processor: &str, generic: &str, mut campaign: Campaign) -> Campaign {
    campaign.target = campaign_target(&processor.parse().expect("a target"));
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options, .. } = &mut launch.code {
            options.push(format!("-mcpu={generic}"));
        }
    }
    campaign
}

/// The campaign on a machine, with kernels compiled at `level`.
fn on(machine: Machine, level: &str, mut campaign: Campaign) -> Campaign {
    campaign.target = campaign_target(&machine.target());
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options, .. } = &mut launch.code {
            options
                .extend([level].iter().chain(machine.options()).map(|&option| option.to_owned()));
        }
    }
    campaign
}

fn assert_computes(expected: &[Vec<u8>], campaign: Campaign) {
    assert_runs(expected, &prepare(&campaign).unwrap_or_else(|error| panic!("{error}")));
}

fn assert_runs(expected: &[Vec<u8>], prepared: &Prepared) {
    let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(golden.outputs.len(), expected.len());
    for ((output, found), expected) in
        prepared.workload.program.outputs.iter().zip(&golden.outputs).zip(expected)
    {
        let found = found.bytes();
        let first = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(first, None, "first byte of `{}` that differs", output.name);
        assert_eq!(found.len(), expected.len(), "size of `{}`", output.name);
    }
}

fn sums(left: &[f32], right: &[f32]) -> Vec<f32> {
    left.iter().zip(right).map(|(left, right)| left + right).collect()
}

fn product(left: &[f32], right: &[f32]) -> Vec<f32> {
    let size = left.len().isqrt();
    let element = |row: usize, column: usize| {
        (0..size).fold(0.0f32, |sum, k| left[row * size + k].mul_add(right[k * size + column], sum))
    };
    (0..size * size).map(|at| element(at / size, at % size)).collect()
}

/// Sum in fixed point with 20 fractional bits, and maximum of the integer parts.
fn reduced(values: &[f32]) -> (i64, i32) {
    let fixed = values.iter().map(|value| (value * 1_048_576.0).round_ties_even() as i64);
    let maximum = fixed.clone().map(|value| (value >> 20) as i32).max();
    (fixed.sum(), maximum.expect("values"))
}

fn vector_add(campaign: &Campaign) -> Vec<Vec<u8>> {
    vec![to_bytes(&sums(&buffer(campaign, "a"), &buffer(campaign, "b")))]
}

fn matmul(campaign: &Campaign) -> Vec<Vec<u8>> {
    vec![to_bytes(&product(&buffer(campaign, "left"), &buffer(campaign, "right")))]
}

fn reduction(campaign: &Campaign) -> Vec<Vec<u8>> {
    let (sum, maximum) = reduced(&buffer(campaign, "values"));
    vec![to_bytes(&[sum]), to_bytes(&[maximum])]
}

fn quickstart(campaign: &Campaign) -> Vec<Vec<u8>> {
    let left = sums(&buffer(campaign, "a"), &buffer(campaign, "b"));
    let product = product(&left, &buffer(campaign, "right"));
    let (sum, maximum) = reduced(&product);
    vec![to_bytes(&product), to_bytes(&[sum]), to_bytes(&[maximum])]
}

fn saxpy(campaign: &Campaign) -> Vec<Vec<u8>> {
    let (x, y): (Vec<f32>, Vec<f32>) = (buffer(campaign, "x"), buffer(campaign, "y"));
    let result: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5f32.mul_add(*x, *y)).collect();
    vec![to_bytes(&result)]
}

fn scan(campaign: &Campaign) -> Vec<Vec<u8>> {
    const WORKGROUP: usize = 256;
    let values: Vec<u32> = buffer(campaign, "values");
    let running: Vec<u32> = values
        .iter()
        .scan(0u32, |sum, value| {
            *sum = sum.wrapping_add(*value);
            Some(*sum)
        })
        .collect();
    let totals: Vec<u32> = values.chunks(WORKGROUP).map(|block| block.iter().sum()).collect();
    vec![to_bytes(&running), to_bytes(&totals)]
}

fn stencil(campaign: &Campaign) -> Vec<Vec<u8>> {
    const WIDTH: usize = 125;
    const HEIGHT: usize = 96;
    let before: Vec<f32> = buffer(campaign, "before");
    assert_eq!(before.len(), WIDTH * HEIGHT);
    let after = |at: usize| {
        let (x, y) = (at % WIDTH, at / WIDTH);
        let temperature = before[at];
        if x == 0 || x == WIDTH - 1 || y == 0 || y == HEIGHT - 1 {
            return temperature;
        }
        let neighbours =
            (before[at - 1] + before[at + 1]) + (before[at - WIDTH] + before[at + WIDTH]);
        0.5f32.mul_add(0.25f32.mul_add(neighbours, -temperature), temperature)
    };
    vec![to_bytes(&(0..before.len()).map(after).collect::<Vec<f32>>())]
}

fn jacobi(campaign: &Campaign) -> Vec<Vec<u8>> {
    let matrix: Vec<f64> = buffer(campaign, "a");
    let (b, x): (Vec<f64>, Vec<f64>) = (buffer(campaign, "b"), buffer(campaign, "x"));
    let size = b.len();
    let next = |row: usize| {
        let others = (0..size).filter(|column| *column != row);
        let rest = others
            .fold(b[row], |rest, column| (-matrix[column * size + row]).mul_add(x[column], rest));
        rest / matrix[row * size + row]
    };
    vec![to_bytes(&(0..size).map(next).collect::<Vec<f64>>())]
}
