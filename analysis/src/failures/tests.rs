use super::*;
use crate::wilson;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn share(count: u64, total: u64) -> Share {
    let rate = count as f64 / total as f64;
    Share { count, rate, interval: wilson(count, total, Confidence::P95) }
}

fn class(name: &str) -> RowsOf {
    RowsOf::Class(name.to_owned())
}

/// A structure with this many SDC and DUE of so many injections.
fn structure(raw: RawRate, rows: RowsOf, [sdc, due]: [u64; 2], total: u64) -> Structure {
    let shares = [total - sdc - due, sdc, due, 0].map(|count| share(count, total));
    Structure { name: "x".to_owned(), raw, rows, injections: total, shares }
}

fn sdc(structures: &[Structure]) -> Estimate {
    failure_rate(structures, FailureKind::Only(Outcome::Sdc), Confidence::P95)
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-5, "{found}, not {expected}");
}

/// 10^-4 FIT a bit, 64 MiBit, 30 of 100: 6710.8864 x 0.3 FIT. Wilson's limits of 30 of 100 are 0.218949
/// and 0.395849. A relative deviation of 0.2 is one of sqrt(ln 1.04) = 0.198042 of the logarithm, and
/// exp(1.959964 x 0.198042) = 1.474259. The limits with it are those of Newcombe's formula for the ratio of
/// 0.3 and 1/6710.8864 [1/(6710.8864 x 1.474259), 1.474259/6710.8864], as it is printed.
#[test]
fn numbers_are_those_of_a_calculation_by_hand() {
    let raw = RawRate::of_bits(1e-4, 67_108_864.0, 0.0);
    let known = sdc(&[structure(raw, RowsOf::All, [30, 0], 100)]);
    near(known.value, 2_013.265_92);
    near(known.low, 6_710.886_4 * 0.218_948_853);
    near(known.high, 6_710.886_4 * 0.395_848_546);
    near(known.hours().value, 496_705.4);
    near(known.hours().low, 1e9 / known.high);
    near(known.hours().high, 1e9 / known.low);

    let raw = RawRate { uncertainty: 0.2, ..raw };
    near(raw.estimate(Confidence::P95).high, 6_710.886_4 * 1.474_259_13);
    near(raw.estimate(Confidence::P95).low, 6_710.886_4 / 1.474_259_13);
    let both = sdc(&[structure(raw, RowsOf::All, [30, 0], 100)]);
    near(both.value, 2_013.265_92);
    near(both.low, 1_219.364_593);
    near(both.high, 3_237.319_069);

    // So uncertain that the printed formula's denominator is below 0.
    let raw = RawRate { uncertainty: 1.0, ..raw };
    let wide = sdc(&[structure(raw, RowsOf::All, [30, 0], 100)]);
    near(wide.low, 375.575_655);
    near(wide.high, 10_419.740_61);

    // 10^-15 cm^2 at 13 per cm^2 and hour is 1.3 x 10^-5 faults in 10^9 hours; of a million bits 13.
    near(RawRate::of_cross_section(1e-15, NEW_YORK_FLUX, 1e6, 0.0).fit, 13.0);
}

#[test]
fn a_product_with_a_number_that_is_known_has_the_other_one_s_limits() {
    let number = Estimate { value: 0.3, low: 0.2, high: 0.5 };
    let sure = |value| Estimate { value, low: value, high: value };
    let product = number.times(sure(10.0));
    near(product.low, 2.0);
    near(product.high, 5.0);
    let product = sure(10.0).times(number);
    near(product.low, 2.0);
    near(product.high, 5.0);
}

#[test]
fn a_failure_is_sdc_or_due_and_nothing_else() {
    let raw = RawRate::of_bits(1.0, 1000.0, 0.0);
    let own = structure(raw, RowsOf::All, [30, 10], 100);
    let any = failure_rate([&own], FailureKind::Any, Confidence::P95);
    near(any.value, 400.0);
    // Wilson's limits of 10 of 100 are 0.055229 and 0.174366.
    near(any.low, 400.0 - 1000.0 * (0.3_f64 - 0.218_948_853).hypot(0.1 - 0.055_229_137));
    near(any.high, 400.0 + 1000.0 * (0.395_848_546_f64 - 0.3).hypot(0.174_365_662 - 0.1));
    let all = Structure { shares: [0, 1000, 0, 0].map(|count| share(count, 1000)), ..own };
    assert_eq!(all.probability(FailureKind::Any).high, 1.0);
}

#[test]
fn structures_of_the_same_rows_share_what_is_uncertain_of_them() {
    let raw = RawRate::of_bits(1.0, 100.0, 0.0);
    let above = |rows: [RowsOf; 2]| {
        let found = sdc(&rows.map(|rows| structure(raw, rows, [30, 0], 100)));
        near(found.value, 60.0);
        found.high - found.value
    };
    let of_one = 100.0 * (0.395_848_546 - 0.3);
    near(above([class("VGPR"), class("VGPR")]), 2.0 * of_one);
    near(above([class("VGPR"), class("SGPR")]), 2_f64.sqrt() * of_one);
    // A class and a kernel can have rows in common, and so can any of them and all.
    near(above([class("VGPR"), RowsOf::Kernel("k".to_owned())]), 2.0 * of_one);
    near(above([class("VGPR"), RowsOf::All]), 2.0 * of_one);
}

#[test]
fn without_failures_there_is_no_end_of_time_but_an_upper_limit_of_the_rate() {
    let raw = RawRate::of_bits(1.0, 100.0, 0.5);
    let none = sdc(&[structure(raw, RowsOf::All, [0, 0], 1000)]);
    assert_eq!((none.value, none.low), (0.0, 0.0));
    assert!(none.high > 0.3 && none.high.is_finite(), "{none:?}");
    let hours = none.hours();
    assert_eq!((hours.value, hours.high), (f64::INFINITY, f64::INFINITY));
    near(hours.low, 1e9 / none.high);
}

/// Campaigns made again and again, on a device whose raw rates were measured with a log-normal error: how
/// often intervals hold the rate of failures, with the user's uncertainty and without, and with the
/// structures' rows taken for different ones though two have the same.
fn coverage(truth: &[(f64, f64, &str)], uncertainty: f64) -> [f64; 3] {
    const INJECTIONS: u64 = 300;
    const SAMPLES: u32 = 3000;
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let mut fraction = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let expected: f64 = truth.iter().map(|(raw, rate, _)| raw * rate).sum();
    let deviation = uncertainty.powi(2).ln_1p().sqrt();
    let mut held = [0_u32; 3];
    for _ in 0..SAMPLES {
        let mut found: Vec<Structure> = Vec::new();
        for (raw, rate, rows) in truth {
            let rows = class(rows);
            let hits = match found.iter().find(|own| own.rows == rows) {
                Some(same) => same.shares[Outcome::Sdc as usize].count,
                None => (0..INJECTIONS).filter(|_| fraction() < *rate).count() as u64,
            };
            // Twelve uniform numbers less six are normal to within what matters here.
            let normal: f64 = (0..12).map(|_| fraction()).sum::<f64>() - 6.0;
            let raw = RawRate { fit: raw * (normal * deviation).exp(), uncertainty };
            found.push(structure(raw, rows, [hits, 0], INJECTIONS));
        }
        let mut certain = found.clone();
        certain.iter_mut().for_each(|own| own.raw.uncertainty = 0.0);
        let mut apart = found.clone();
        for (own, number) in apart.iter_mut().zip(0..) {
            own.rows = class(&number.to_string());
        }
        for (held, structures) in held.iter_mut().zip([found, certain, apart]) {
            let Estimate { low, high, .. } = sdc(&structures);
            *held += u32::from((low..=high).contains(&expected));
        }
    }
    held.map(|held| f64::from(held) / f64::from(SAMPLES))
}

#[test]
fn intervals_hold_the_rate_of_failures() {
    for (rates, uncertainty) in [([0.3, 0.05], 0.2), ([0.5, 0.3], 0.5), ([0.02, 0.01], 0.3)] {
        let truth = [(1000.0, rates[0], "VGPR"), (400.0, rates[1], "lds")];
        let [held, ignored, _] = coverage(&truth, uncertainty);
        assert!((0.935..=0.975).contains(&held), "{rates:?}, {uncertainty}: {held}");
        // What the user is unsure of, left out.
        let least = if rates[0] < 0.1 { 0.94 } else { 0.9 };
        assert!(ignored < least && ignored < held, "{rates:?}, {uncertainty}: {ignored}");
    }
}

#[test]
fn intervals_hold_where_structures_have_the_same_rows() {
    let truth = [(1000.0, 0.1, "VGPR"), (1000.0, 0.1, "VGPR"), (500.0, 0.1, "VGPR")];
    let [held, _, apart] = coverage(&truth, 0.05);
    assert!((0.935..=0.975).contains(&held), "{held}");
    assert!(apart < 0.85, "{apart}");
}

#[test]
fn what_is_even_over_time_is_no_probability_of_an_instruction() {
    let of = |target: &str| {
        Vulnerability::of(&format!("transient flip_one_bit in {target} of one lane"))
    };
    for target in ["register", "lds", "global_memory", "scratch"] {
        assert_eq!(of(target), Vulnerability::OverTime, "{target}");
    }
    for target in ["destination_register", "source_operand", "store_value", "instruction"] {
        assert_eq!(of(target), Vulnerability::OverInstructions, "{target}");
    }
}

#[test]
fn the_table_has_each_structure_a_device_and_all_devices() {
    let raw = RawRate::of_bits(1.0, 1000.0, 0.0);
    let structures = vec![
        structure(raw, class("VGPR"), [30, 10], 100),
        Structure { name: "y".to_owned(), ..structure(raw, RowsOf::All, [0, 0], 100) },
    ];
    let failures = DeviceFailures { structures, devices: 50, confidence: Confidence::P95 };
    let lines = failures.lines();
    assert_eq!(lines.len(), 4);
    near(lines[0].raw.value, 1000.0);
    near(lines[2].raw.value, 2000.0);
    near(lines[3].raw.value, 100_000.0);
    near(lines[2].failures[0].value, 300.0);
    near(lines[3].failures[0].value, 15_000.0);
    let mut text = Vec::new();
    failures.write_csv(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let found: Vec<&str> = text.lines().collect();
    assert_eq!(found.len(), 1 + 4 * FailureLine::KINDS.len());
    assert_eq!(
        found[1],
        "structure,x,1,class VGPR,100,sdc,1.000000e3,1.000000e3,1.000000e3,3.000000e-1,\
         2.189489e-1,3.958485e-1,3.000000e2,2.189489e2,3.958485e2,3.333333e6,2.526219e6,\
         4.567277e6,0.95"
    );
    assert!(found[5].contains(",0.000000e0,") && found[5].contains(",inf,"), "{}", found[5]);
    assert!(found[13].starts_with("devices,,50,,,sdc,1.000000e5,"), "{}", found[13]);
}
