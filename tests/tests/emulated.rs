//! Examples of emulated instructions: results of their hooks, compared with references that use other
//! algorithms, for inputs of several seeds.

use flipwave_campaigns::{Campaign, Code, Emulation, Init, emulate};
use flipwave_tests::{
    Element, buffer, emulated_examples, emulated_folder, kernels_mut, to_bytes, to_values,
    yaml_files,
};
use std::path::Path;

/// Counts the wrong elements of an example's output.
type WrongElements = fn(&Campaign, &[u8]) -> usize;

const REFERENCES: [(&str, WrongElements); 4] =
    [("fft32", fft32), ("packed_i4", packed_i4), ("posit16", posit16), ("sparse_dot", sparse_dot)];

const LEVELS: [&str; 2] = ["-O0", "-O3"];

/// An example, compiled at `level` and with inputs of `seed`.
fn example(name: &str, level: &str, seed: u64) -> Campaign {
    let file = emulated_folder().join(format!("{name}.yaml"));
    let mut campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    campaign.seed = seed;
    let kernels = kernels_mut(&mut campaign);
    for launch in kernels.launches.iter_mut().chain(&mut kernels.software) {
        if let Code::Source { options, .. } = &mut launch.code {
            *options = vec![level.to_owned()];
        }
    }
    campaign
}

fn emulated(campaign: &Campaign) -> Emulation {
    emulate(campaign).unwrap_or_else(|error| panic!("{error}"))
}

/// Number of elements of an output that differ from `expected`.
fn differing<T: Element + PartialEq>(found: &[u8], expected: impl Iterator<Item = T>) -> usize {
    let expected: Vec<T> = expected.collect();
    let found: Vec<T> = to_values(found);
    assert_eq!(found.len(), expected.len());
    found.iter().zip(&expected).filter(|(found, expected)| found != expected).count()
}

fn packed_i4(campaign: &Campaign, found: &[u8]) -> usize {
    let (a, b): (Vec<u32>, Vec<u32>) = (buffer(campaign, "a"), buffer(campaign, "b"));
    let signed = |word: u32, at: u32| match (word / 16u32.pow(at) % 16) as i32 {
        digit @ 0..8 => digit,
        digit => digit - 16,
    };
    let sum = |(a, b): (&u32, &u32)| {
        let digit = |at| (signed(*a, at) + signed(*b, at)).clamp(-8, 7).rem_euclid(16) as u32;
        (0..8).map(|at| digit(at) * 16u32.pow(at)).sum::<u32>()
    };
    differing(found, a.iter().zip(&b).map(sum))
}

fn sparse_dot(campaign: &Campaign, found: &[u8]) -> usize {
    let (a, index): (Vec<u32>, Vec<u32>) = (buffer(campaign, "a"), buffer(campaign, "index"));
    let b: Vec<u64> = buffer(campaign, "b");
    let dot = |((a, index), b): ((&u32, &u32), &u64)| {
        let (a, b) = (a.to_le_bytes().map(|n| n as i8), b.to_le_bytes().map(|n| n as i8));
        // The sparse factor, expanded with zeros.
        let mut full = [0i64; 8];
        for (n, value) in a.into_iter().enumerate() {
            let position = (index / 4u32.pow(n as u32) % 4) as usize;
            full[n / 2 * 4 + position] += i64::from(value);
        }
        full.iter().zip(b).map(|(a, b)| a * i64::from(b)).sum::<i64>()
    };
    differing(found, a.iter().zip(&index).zip(&b).map(dot))
}

/// Number of transforms with a larger error than a correct FFT can have (N. J. Higham, "Accuracy and
/// Stability of Numerical Algorithms", 2nd edition, theorem 24.2).
fn fft32(campaign: &Campaign, found: &[u8]) -> usize {
    const POINTS: usize = 32;
    let unit = f64::from(f32::EPSILON) / 2.0;
    let gamma = 4.0 * unit / (1.0 - 4.0 * unit);
    let step = unit + gamma * (2f64.sqrt() + unit);
    let bound = 5.0 * step / (1.0 - 5.0 * step);
    let (input, found): (Vec<f32>, Vec<f32>) = (buffer(campaign, "x"), to_values(found));
    let is_wrong = |(input, found): &(&[f32], &[f32])| {
        let (mut error, mut norm) = (0.0, 0.0);
        for (k, found) in found.chunks(2).enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (n, x) in input.chunks(2).enumerate() {
                let angle = -std::f64::consts::TAU * (k * n % POINTS) as f64 / POINTS as f64;
                let (sin, cos) = angle.sin_cos();
                let (x_re, x_im) = (f64::from(x[0]), f64::from(x[1]));
                re += x_re * cos - x_im * sin;
                im += x_re * sin + x_im * cos;
            }
            error += (f64::from(found[0]) - re).powi(2) + (f64::from(found[1]) - im).powi(2);
            norm += re.powi(2) + im.powi(2);
        }
        // NaN counts as wrong.
        !matches!(error.sqrt().partial_cmp(&(bound * norm.sqrt())), Some(order) if order.is_le())
    };
    assert_eq!(found.len(), input.len());
    let transforms = input.chunks(2 * POINTS).zip(found.chunks(2 * POINTS));
    transforms.filter(is_wrong).count()
}

/// The value of a positive posit of `width` bits with one exponent bit, by its definition.
fn posit_value(posit: u32, width: u32) -> f64 {
    let digits: Vec<bool> = (0..width - 1).rev().map(|at| posit >> at & 1 == 1).collect();
    let run = digits.iter().take_while(|digit| **digit == digits[0]).count();
    let regime = if digits[0] { run as i32 - 1 } else { -(run as i32) };
    let mut rest = digits.iter().skip(run + 1).copied();
    let exponent = i32::from(rest.next().unwrap_or(false));
    let places = (1..).map(|place| 0.5f64.powi(place));
    let fraction: f64 = rest.zip(places).filter(|(digit, _)| *digit).map(|(_, value)| value).sum();
    4f64.powi(regime) * 2f64.powi(exponent) * (1.0 + fraction)
}

/// A value in units of the squared smallest posit, 2^-56. Sums of products of posits are integers in this
/// unit.
fn fixed(value: f64) -> i128 {
    (value * 56f64.exp2()) as i128
}

fn posit16(campaign: &Campaign, found: &[u8]) -> usize {
    const NAR: u16 = 0x8000;
    let values: Vec<i64> =
        (0..=u16::MAX).map(|posit| (signed_value(posit) * 28f64.exp2()) as i64).collect();
    // The rounding boundary between two neighbours `n` and `n + 1` is the posit with one more bit between
    // them. The boundary itself is rounded up if `n` is odd. Nothing is rounded to zero.
    let cut = |n: u32| fixed(posit_value(2 * n + 1, 17)) - i128::from(n % 2);
    let cuts: Vec<i128> = (1..0x7fff).map(cut).collect();
    let rounded = |sum: i128| {
        let nearest = 1 + cuts.partition_point(|cut| *cut < sum.abs()) as u16;
        match sum.signum() {
            0 => 0,
            1 => nearest,
            _ => nearest.wrapping_neg(),
        }
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| buffer::<u16>(campaign, name));
    let sum = |((a, b), c): ((&u16, &u16), &u16)| {
        if [a, b, c].contains(&&NAR) {
            return NAR;
        }
        let [a, b, c] = [a, b, c].map(|posit| i128::from(values[usize::from(*posit)]));
        rounded(a * b + (c << 28))
    };
    differing(found, a.iter().zip(&b).zip(&c).map(sum))
}

/// The value of a 16-bit posit. Returns zero for NaR.
fn signed_value(posit: u16) -> f64 {
    match posit {
        0 | 0x8000 => 0.0,
        ..0x8000 => posit_value(posit.into(), 16),
        _ => -posit_value(posit.wrapping_neg().into(), 16),
    }
}

#[test]
fn emulated_examples_agree_with_plain_rust() {
    let on_ptx = REFERENCES.map(|(name, wrong)| (format!("ptx/{name}"), wrong));
    let all = REFERENCES.map(|(name, wrong)| (name.to_owned(), wrong)).into_iter().chain(on_ptx);
    for (name, wrong_elements) in all {
        let name = &name;
        for (level, seed) in LEVELS.iter().flat_map(|level| [1, 2, 3].map(|seed| (level, seed))) {
            println!("{name} {level}, seed {seed}");
            let campaign = example(name, level, seed);
            let emulation = emulated(&campaign);
            assert_eq!(wrong_elements(&campaign, &emulation.outputs[0]), 0);
            for (output, difference) in &emulation.differences {
                assert_eq!(difference.elements_wrong, 0, "`{output}` of the software version");
            }
            let [proxy] = emulation.instructions.as_slice() else { panic!("one proxy") };
            assert_eq!(proxy.executions, emulation.executed[0].waves);
        }
    }
}

#[test]
fn every_emulated_example_has_a_reference() {
    // fp8 has a separate test, in retargeted.rs.
    let mut known = vec!["fp8"];
    known.extend(REFERENCES.map(|(name, _)| name));
    known.sort_unstable();
    let known = known.into_iter().map(|name| emulated_folder().join(format!("{name}.yaml")));
    assert_eq!(emulated_examples(), known.collect::<Vec<_>>());
    let mut on_ptx = yaml_files(&emulated_folder().join("ptx"));
    on_ptx.sort_unstable();
    let mut known = REFERENCES.map(|(name, _)| emulated_folder().join(format!("ptx/{name}.yaml")));
    known.sort_unstable();
    assert_eq!(on_ptx, known);
}

/// Zero, the smallest and the largest posits, posits around one, and NaR.
const CORNERS: [u16; 16] = [
    0x0000, 0x0001, 0x0002, 0x0003, 0x0005, 0x3fff, 0x4000, 0x4001, 0x7ffc, 0x7ffe, 0x7fff, 0x8000,
    0x8001, 0x8002, 0xc000, 0xffff,
];

/// The posit example with all triples of [`CORNERS`] as inputs, in files in `folder`.
fn posits_at_corners(folder: &Path) -> Campaign {
    let mut campaign = example("posit16", "-O3", 1);
    for (name, divisor) in [("a", 1), ("b", 16), ("c", 256)] {
        let values: Vec<u16> = (0..4096).map(|at| CORNERS[at / divisor % 16]).collect();
        let file = folder.join(name);
        std::fs::write(&file, to_bytes(&values)).expect("written");
        let buffer =
            kernels_mut(&mut campaign).buffers.iter_mut().find(|buffer| buffer.name == name);
        buffer.expect(name).init = Init::File(file);
    }
    campaign
}

#[test]
fn extreme_posits_neither_overflow_nor_vanish() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = posits_at_corners(folder.path());
    assert_eq!(posit16(&campaign, &emulated(&campaign).outputs[0]), 0);
}

/// Negative control: each reference detects a slightly wrong hook.
#[test]
fn references_detect_slightly_wrong_hooks() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = emulated_folder().join("hooks/posit16.h");
    let header = std::fs::read_to_string(header).expect("a header");
    let changed = |mut campaign: Campaign, from: &str, to: &str| {
        let text = &mut kernels_mut(&mut campaign).instructions[0].source.text;
        *text = text.replace("#include \"posit16.h\"", &header);
        assert_eq!(text.matches(from).count(), 1, "{from}");
        *text = text.replace(from, to);
        campaign
    };
    let optimised = |name| example(name, "-O3", 1);
    let corners = || posits_at_corners(folder.path());
    let wrong_hooks = [
        // A twiddle factor with an error of 0.001.
        (
            changed(optimised("fft32"), "{0.980785280f, -0.1", "{0.981785280f, -0.1"),
            fft32 as WrongElements,
        ),
        (changed(optimised("ptx/fft32"), "{0.980785280f, -0.1", "{0.981785280f, -0.1"), fft32),
        (changed(optimised("ptx/packed_i4"), "sum > 7 ? 7", "sum > 7 ? 6"), packed_i4),
        (changed(optimised("ptx/sparse_dot"), "i < 2", "i < 1"), sparse_dot),
        (changed(optimised("ptx/posit16"), "rest > middle", "rest > ~0ul"), posit16),
        // Swapped halves of a wave.
        (changed(optimised("fft32"), "| (lane & 32)", "| (~lane & 32)"), fft32),
        (changed(optimised("packed_i4"), "sum > 7 ? 7", "sum > 7 ? 6"), packed_i4),
        (changed(optimised("sparse_dot"), "i < 2", "i < 1"), sparse_dot),
        // A product that is rounded down.
        (changed(optimised("posit16"), "rest > middle", "rest > ~0ul"), posit16),
        // Ties that are rounded away from zero, or down.
        (changed(corners(), "&& (posit & 1)", ""), posit16),
        (changed(corners(), "(rest == middle && (posit & 1))", "false"), posit16),
        // The smallest sums are rounded to zero.
        (changed(corners(), "return MINPOS", "return 0"), posit16),
        // The largest sums become NaR.
        (changed(corners(), "return MAXPOS", "return NAR"), posit16),
    ];
    for (campaign, wrong_elements) in wrong_hooks {
        let found = emulated(&campaign);
        assert!(wrong_elements(&campaign, &found.outputs[0]) > 0, "{}", campaign.name);
    }
}
