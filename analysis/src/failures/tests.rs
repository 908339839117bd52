use super::*;
use crate::wilson;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn share(count: u64, total: u64) -> Share {
    let rate = count as f64 / total as f64;
    Share { count, rate, interval: wilson(count, total, Confidence::P95) }
}

fn class(name: &str) -> RowFilter {
    RowFilter::Class(name.to_owned())
}

/// Outcome counts of a structure's injections.
struct Counts {
    sdc: u64,
    due: u64,
    total: u64,
}

fn structure(raw: RawRate, rows: RowFilter, Counts { sdc, due, total }: Counts) -> Structure {
    let shares = [total - sdc - due, sdc, due, 0].map(|count| share(count, total));
    Structure { name: "x".to_owned(), raw, rows, injections: total, shares }
}

fn sdc_rate(structures: &[Structure]) -> Estimate {
    failure_rate(structures, FailureKind::Only(Outcome::Sdc), Confidence::P95)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-5, "{found}, not {expected}");
}

/// 10^-4 FIT per bit, 64 MiBit and 30 SDC of 100 give 6710.8864 x 0.3 FIT. Wilson's limits of 30 of 100 are
/// 0.218949 and 0.395849. A relative deviation of 0.2 is a deviation of sqrt(ln 1.04) = 0.198042 of the
/// logarithm, and exp(1.959964 x 0.198042) = 1.474259. The expected limits are those of Newcombe's published
/// formula for the ratio of 0.3 and 1/6710.8864 [1/(6710.8864 x 1.474259), 1.474259/6710.8864].
#[test]
fn rates_match_a_calculation_by_hand() {
    let raw = RawRate::from_fit_per_bit(1e-4, 67_108_864.0, 0.0);
    let counts = || Counts { sdc: 30, due: 0, total: 100 };
    let exact = sdc_rate(&[structure(raw, RowFilter::All, counts())]);
    assert_near(exact.value, 2_013.265_92);
    assert_near(exact.low, 6_710.886_4 * 0.218_948_853);
    assert_near(exact.high, 6_710.886_4 * 0.395_848_546);
    assert_near(exact.hours().value, 496_705.4);
    assert_near(exact.hours().low, 1e9 / exact.high);
    assert_near(exact.hours().high, 1e9 / exact.low);

    let raw = RawRate { uncertainty: 0.2, ..raw };
    assert_near(raw.estimate(Confidence::P95).high, 6_710.886_4 * 1.474_259_13);
    assert_near(raw.estimate(Confidence::P95).low, 6_710.886_4 / 1.474_259_13);
    let uncertain = sdc_rate(&[structure(raw, RowFilter::All, counts())]);
    assert_near(uncertain.value, 2_013.265_92);
    assert_near(uncertain.low, 1_219.364_593);
    assert_near(uncertain.high, 3_237.319_069);

    // An uncertainty for which the denominator of the published formula is negative.
    let raw = RawRate { uncertainty: 1.0, ..raw };
    let wide = sdc_rate(&[structure(raw, RowFilter::All, counts())]);
    assert_near(wide.low, 375.575_655);
    assert_near(wide.high, 10_419.740_61);

    // 10^-15 cm^2 at 13 per cm^2 and hour is 1.3 x 10^-5 faults in 10^9 hours, 13 for a million bits.
    assert_near(RawRate::from_cross_section(1e-15, NEW_YORK_FLUX, 1e6, 0.0).fit, 13.0);
}

#[test]
fn product_with_an_exact_factor_scales_the_limits() {
    let estimate = Estimate { value: 0.3, low: 0.2, high: 0.5 };
    let exact = |value| Estimate { value, low: value, high: value };
    for product in [estimate.times(exact(10.0)), exact(10.0).times(estimate)] {
        assert_near(product.low, 2.0);
        assert_near(product.high, 5.0);
    }
}

#[test]
fn failures_are_sdc_and_due() {
    let raw = RawRate::from_fit_per_bit(1.0, 1000.0, 0.0);
    let failing = structure(raw, RowFilter::All, Counts { sdc: 30, due: 10, total: 100 });
    let any = failure_rate([&failing], FailureKind::Any, Confidence::P95);
    assert_near(any.value, 400.0);
    // Wilson's limits of 10 of 100 are 0.055229 and 0.174366.
    assert_near(any.low, 400.0 - 1000.0 * (0.3_f64 - 0.218_948_853).hypot(0.1 - 0.055_229_137));
    assert_near(any.high, 400.0 + 1000.0 * (0.395_848_546_f64 - 0.3).hypot(0.174_365_662 - 0.1));
    let all_sdc = Structure { shares: [0, 1000, 0, 0].map(|count| share(count, 1000)), ..failing };
    assert_eq!(all_sdc.probability(FailureKind::Any).high, 1.0);
}

#[test]
fn structures_with_equal_row_filters_share_their_uncertainty() {
    let raw = RawRate::from_fit_per_bit(1.0, 100.0, 0.0);
    let above = |filters: [RowFilter; 2]| {
        let counts = || Counts { sdc: 30, due: 0, total: 100 };
        let rate = sdc_rate(&filters.map(|rows| structure(raw, rows, counts())));
        assert_near(rate.value, 60.0);
        rate.high - rate.value
    };
    let single = 100.0 * (0.395_848_546 - 0.3);
    assert_near(above([class("VGPR"), class("VGPR")]), 2.0 * single);
    assert_near(above([class("VGPR"), class("SGPR")]), 2_f64.sqrt() * single);
    // Filters of different scopes can select the same rows.
    assert_near(above([class("VGPR"), RowFilter::Kernel("k".to_owned())]), 2.0 * single);
    assert_near(above([class("VGPR"), RowFilter::All]), 2.0 * single);
}

#[test]
fn rate_without_failures_has_an_upper_limit() {
    let raw = RawRate::from_fit_per_bit(1.0, 100.0, 0.5);
    let none = Counts { sdc: 0, due: 0, total: 1000 };
    let rate = sdc_rate(&[structure(raw, RowFilter::All, none)]);
    assert_eq!((rate.value, rate.low), (0.0, 0.0));
    assert!(rate.high > 0.3 && rate.high.is_finite(), "{rate:?}");
    let hours = rate.hours();
    assert_eq!((hours.value, hours.high), (f64::INFINITY, f64::INFINITY));
    assert_near(hours.low, 1e9 / rate.high);
}

/// True rates of a structure in a simulation.
struct TrueRates {
    raw_fit: f64,
    sdc: f64,
    class: &'static str,
}

/// Fractions of simulated campaigns whose interval contains the true failure rate.
struct MeasuredCoverage {
    /// With the intervals as reported.
    reported: f64,
    /// With intervals that ignore the uncertainty of the raw rates.
    without_raw_uncertainty: f64,
    /// With intervals that treat the rows of all structures as independent.
    independent_rows: f64,
}

/// Simulates campaigns on a device whose raw rates are measured with a log-normal error.
fn measure_coverage(structures: &[TrueRates], uncertainty: f64) -> MeasuredCoverage {
    const INJECTIONS: u64 = 300;
    const SAMPLES: u32 = 3000;
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let mut fraction = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let expected: f64 = structures.iter().map(|rates| rates.raw_fit * rates.sdc).sum();
    let deviation = uncertainty.powi(2).ln_1p().sqrt();
    let mut contained = [0_u32; 3];
    for _ in 0..SAMPLES {
        let mut measured: Vec<Structure> = Vec::new();
        for rates in structures {
            let rows = class(rates.class);
            let sdc = match measured.iter().find(|structure| structure.rows == rows) {
                Some(same_rows) => same_rows.shares[Outcome::Sdc as usize].count,
                None => (0..INJECTIONS).filter(|_| fraction() < rates.sdc).count() as u64,
            };
            // The sum of twelve uniform numbers is close enough to a normal distribution.
            let normal: f64 = (0..12).map(|_| fraction()).sum::<f64>() - 6.0;
            let raw = RawRate { fit: rates.raw_fit * (normal * deviation).exp(), uncertainty };
            let counts = Counts { sdc, due: 0, total: INJECTIONS };
            measured.push(structure(raw, rows, counts));
        }
        let mut exact_raw = measured.clone();
        exact_raw.iter_mut().for_each(|structure| structure.raw.uncertainty = 0.0);
        let mut independent = measured.clone();
        for (number, structure) in independent.iter_mut().enumerate() {
            structure.rows = class(&number.to_string());
        }
        for (contained, structures) in contained.iter_mut().zip([measured, exact_raw, independent])
        {
            let Estimate { low, high, .. } = sdc_rate(&structures);
            *contained += u32::from((low..=high).contains(&expected));
        }
    }
    let [reported, without_raw_uncertainty, independent_rows] =
        contained.map(|contained| f64::from(contained) / f64::from(SAMPLES));
    MeasuredCoverage { reported, without_raw_uncertainty, independent_rows }
}

/// Negative control: intervals that ignore the uncertainty of the raw rates are too narrow.
#[test]
fn intervals_contain_the_true_failure_rate() {
    for (rates, uncertainty) in [([0.3, 0.05], 0.2), ([0.5, 0.3], 0.5), ([0.02, 0.01], 0.3)] {
        let structures = [
            TrueRates { raw_fit: 1000.0, sdc: rates[0], class: "VGPR" },
            TrueRates { raw_fit: 400.0, sdc: rates[1], class: "lds" },
        ];
        let MeasuredCoverage { reported, without_raw_uncertainty, .. } =
            measure_coverage(&structures, uncertainty);
        assert!((0.935..=0.975).contains(&reported), "{rates:?}, {uncertainty}: {reported}");
        let limit = if rates[0] < 0.1 { 0.94 } else { 0.9 };
        assert!(
            without_raw_uncertainty < limit && without_raw_uncertainty < reported,
            "{rates:?}, {uncertainty}: {without_raw_uncertainty}"
        );
    }
}

/// Negative control: intervals that treat the shared rows as independent are too narrow.
#[test]
fn intervals_contain_the_true_rate_of_structures_with_shared_rows() {
    let structures =
        [1000.0, 1000.0, 500.0].map(|raw_fit| TrueRates { raw_fit, sdc: 0.1, class: "VGPR" });
    let MeasuredCoverage { reported, independent_rows, .. } = measure_coverage(&structures, 0.05);
    assert!((0.935..=0.975).contains(&reported), "{reported}");
    assert!(independent_rows < 0.85, "{independent_rows}");
}

#[test]
fn storage_targets_give_an_architectural_vulnerability_factor() {
    let factor = |target: &str| {
        VulnerabilityFactor::of_fault(&format!("transient flip_one_bit in {target} of one lane"))
    };
    for target in ["register", "lds", "global_memory", "scratch"] {
        assert_eq!(factor(target), VulnerabilityFactor::Architectural, "{target}");
    }
    for target in ["destination_register", "source_operand", "store_value", "instruction"] {
        assert_eq!(factor(target), VulnerabilityFactor::PerInstruction, "{target}");
    }
}

#[test]
fn table_has_lines_for_structures_one_device_and_all_devices() {
    let raw = RawRate::from_fit_per_bit(1.0, 1000.0, 0.0);
    let none = Counts { sdc: 0, due: 0, total: 100 };
    let structures = vec![
        structure(raw, class("VGPR"), Counts { sdc: 30, due: 10, total: 100 }),
        Structure { name: "y".to_owned(), ..structure(raw, RowFilter::All, none) },
    ];
    let failures = DeviceFailures { structures, devices: 50, confidence: Confidence::P95 };
    let lines = failures.lines();
    assert_eq!(lines.len(), 4);
    assert_near(lines[0].raw.value, 1000.0);
    assert_near(lines[2].raw.value, 2000.0);
    assert_near(lines[3].raw.value, 100_000.0);
    assert_near(lines[2].failures[0].value, 300.0);
    assert_near(lines[3].failures[0].value, 15_000.0);
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
