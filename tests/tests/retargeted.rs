//! Real instructions replaced by hooks: the conversions of gfx942 to 8 bits and back agree with AMD's
//! documentation and with the simulator.

use flipwave_campaigns::{Campaign, Code, emulate, prepare};
use flipwave_tests::{contents, emulated_folder, kernels, kernels_mut, to_values};

/// The number that a code encodes, by definition: a sign, an exponent with bias 8, three fraction bits, and
/// no leading one for the smallest exponent. The code of -0 is NaN.
fn number(code: u8) -> Option<f64> {
    let (exponent, fraction) = (i32::from(code >> 3 & 0xf), f64::from(code & 7));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-10),
        _ => (8.0 + fraction) * 2f64.powi(exponent - 11),
    };
    match code {
        0x80 => None,
        _ if code & 0x80 != 0 => Some(-magnitude),
        _ => Some(magnitude),
    }
}

/// The code nearest to a number, with ties to even; `None` if the number is too large.
fn nearest(wanted: f64) -> Option<u8> {
    let magnitude = wanted.abs();
    // The code after the largest one would be 256.
    let codes = (0..=0x7f).filter_map(|code| Some((u32::from(code), number(code)?)));
    let distance = |number: f64| (number - magnitude).abs();
    let (code, _) = codes
        .chain([(0x80, 256.0)])
        .min_by(|(one, a), (two, b)| {
            distance(*a).total_cmp(&distance(*b)).then((one & 1).cmp(&(two & 1)))
        })
        .expect("a code");
    match code {
        0x80 => None,
        0 => Some(0),
        code => Some(code as u8 | if wanted < 0.0 { 0x80 } else { 0 }),
    }
}

/// Runs the example on `numbers` at `level`, with hooks and with the simulator's instructions, and asserts
/// equal results. Returns the numbers, their codes, and the numbers converted back.
fn converted(numbers: &str, level: &str, seed: u64) -> (Vec<f32>, Vec<u8>, Vec<f32>) {
    let file = emulated_folder().join("fp8.yaml");
    let text = std::fs::read_to_string(&file).expect("the example");
    let text = text.replace("{uniform: [-300.0, 300.0]}", numbers);
    let mut campaign = Campaign::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
    campaign.seed = seed;
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options, .. } = &mut launch.code {
            *options = vec![level.to_owned()];
        }
    }
    let inputs = kernels(&campaign).buffers[0].contents(seed).expect("the numbers");
    let workload = prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload;
    let native = workload.golden().unwrap_or_else(|error| panic!("{error}")).outputs;
    let mut outputs = emulate(&campaign).unwrap_or_else(|error| panic!("{error}")).outputs;
    assert!(outputs == contents(&native), "{numbers} {level}: the device computes something else");
    let back = to_values(&outputs.pop().expect("numbers"));
    (to_values(&inputs), outputs.pop().expect("codes"), back)
}

/// Number of results that differ from the definition.
fn wrong(inputs: &[f32], codes: &[u8], back: &[f32], nearest: fn(f64) -> Option<u8>) -> usize {
    let results = inputs.iter().zip(codes).zip(back);
    let is_right = |((input, code), back): &((&f32, &u8), &f32)| {
        let expected = number(**code).map_or(f64::NAN, |number| number);
        let same = f64::from(**back) == expected || (back.is_nan() && expected.is_nan());
        same && nearest(f64::from(**input)).unwrap_or(0x80) == **code
    };
    results.filter(|result| !is_right(result)).count()
}

#[test]
fn fp8_conversions_by_hooks_agree_with_the_simulator() {
    for level in ["-O0", "-O3"] {
        for (numbers, seed) in [
            ("{uniform: [-300.0, 300.0]}", 1),
            ("{uniform: [-0.03, 0.03]}", 2),
            ("{uniform: [-0.002, 0.002]}", 3),
            // Every number of the format, the midpoints between them, and numbers far out of range.
            ("{range: {start: -2.0, step: 0.00390625}}", 4),
            ("{range: {start: 128.0, step: 0.25}}", 5),
        ] {
            let (inputs, codes, back) = converted(numbers, level, seed);
            assert_eq!((inputs.len(), codes.len(), back.len()), (1024, 1024, 1024));
            assert_eq!(wrong(&inputs, &codes, &back, nearest), 0, "{numbers} {level}");
            // Negative control: rounding to the lower code gives other results.
            let cut = |wanted: f64| {
                let codes = (0..=0x7f).rev().find(|code| number(*code) <= Some(wanted.abs()));
                codes.map(|code| if wanted < 0.0 && code > 0 { code | 0x80 } else { code })
            };
            assert!(wrong(&inputs, &codes, &back, cut) > 100, "{numbers} {level}");
        }
    }
}
