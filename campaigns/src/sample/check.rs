//! Checks how many faults there are, and how they are drawn.

use super::written;
use super::{Allocation, Per, Sample, SampleSize};
use crate::file::faults::list;
use crate::file::faults::written::{Counting, Duration, Faults};
use crate::file::location::{Field, Wrong, wrong};
use flipwave_analysis::{Confidence, Outcome};
use flipwave_injector::{Draw, Fault, KnownMasked, Stratification};

/// Checks how `faults` are drawn, which are `fault` in a population divided by `stratification`.
pub(crate) fn check_sample(
    faults: &Faults,
    (fault, stratification): (&Fault, Stratification),
    field: &Field,
) -> Result<Sample, Wrong> {
    let (size, confidence) = check_size(faults, field)?;
    let allocation = check_allocation(faults, &size, stratification, &field.key("allocation"))?;
    let is_exhaustive = size == SampleSize::Exhaustive;
    if is_exhaustive && stratification != Stratification::None {
        return wrong(&field.key("stratify"), "an exhaustive campaign takes all of every stratum");
    }
    if is_exhaustive && faults.replacement == Some(true) {
        return wrong(&field.key("replacement"), "an exhaustive campaign takes each place once");
    }
    let known_masked = match faults.known_masked {
        written::KnownMasked::Sampled => KnownMasked::Sampled,
        written::KnownMasked::Counted => KnownMasked::Counted,
    };
    let draw = check_draw(faults, fault, field)?;
    let is_approximate = matches!(faults.profile, Counting::Approximate);
    if known_masked == KnownMasked::Counted {
        let field = field.key("known_masked");
        if let Err(error) = fault.check_followed() {
            return wrong(&field, error.to_string());
        }
        if is_approximate {
            return wrong(&field, "takes `profile: exact`: it counts in all dispatches");
        }
    }
    if is_approximate && faults.replacement == Some(false) {
        return wrong(
            &field.key("replacement"),
            "without replacement all places have to be known: it takes `profile: exact`",
        );
    }
    Ok(Sample {
        size,
        confidence,
        intervals: faults.intervals,
        allocation,
        replacement: !is_exhaustive && faults.replacement.unwrap_or(true),
        draw,
        known_masked,
    })
}

/// Of instructions drawn a place has several outcomes, so that none can be left out or taken but once.
fn check_draw(faults: &Faults, fault: &Fault, field: &Field) -> Result<Draw, Wrong> {
    if matches!(faults.draw, written::Draw::Bits) {
        return Ok(Draw::Bits);
    }
    let others = [
        ("exhaustive", faults.exhaustive == Some(true)),
        ("replacement", faults.replacement == Some(false)),
        ("known_masked", matches!(faults.known_masked, written::KnownMasked::Counted)),
    ];
    if let Some((key, _)) = others.iter().find(|(_, is_there)| *is_there) {
        let message =
            "takes `draw: bits`: of an instruction that is drawn one of many bits is struck";
        return wrong(&field.key(key), message);
    }
    match fault.check_by_instruction() {
        Ok(()) => Ok(Draw::Instructions),
        Err(error) => wrong(&field.key("draw"), error.to_string()),
    }
}

fn check_confidence(confidence: Option<f64>, field: &Field) -> Result<Confidence, Wrong> {
    match confidence.map(Confidence::new) {
        None => Ok(Confidence::P95),
        Some(Ok(confidence)) => Ok(confidence),
        Some(Err(error)) => wrong(&field.key("confidence"), error.to_string()),
    }
}

fn check_margin(margin: f64, field: &Field) -> Result<f64, Wrong> {
    if margin > 0.0 && margin < 1.0 {
        return Ok(margin);
    }
    wrong(
        &field.key("margin"),
        format!("{margin:?} is not between 0 and 1; 5 percentage points are 0.05"),
    )
}

/// How many faults there are, and the confidence of the rates.
fn check_size(faults: &Faults, field: &Field) -> Result<(SampleSize, Confidence), Wrong> {
    let Faults { count, margin, confidence, exhaustive, until, .. } = faults;
    if *count == Some(0) {
        return wrong(&field.key("count"), "0 injections; expected 1 or more");
    }
    if let Some(until) = until {
        return check_until(faults, until, field);
    }
    let known = check_confidence(*confidence, field)?;
    let size = match (count, margin, confidence, exhaustive) {
        (Some(count), None, _, None) => SampleSize::Count(*count),
        (None, Some(margin), Some(_), None) => {
            SampleSize::Precision { margin: check_margin(*margin, field)? }
        }
        (None, None, _, Some(true)) => SampleSize::Exhaustive,
        _ => {
            return wrong(
                field,
                "expected one of `count`, `until`, both `margin` and `confidence`, and \
                 `exhaustive: true`",
            );
        }
    };
    Ok((size, known))
}

fn check_until(
    faults: &Faults,
    until: &written::Until,
    field: &Field,
) -> Result<(SampleSize, Confidence), Wrong> {
    let others = [
        ("margin", faults.margin.is_some()),
        ("confidence", faults.confidence.is_some()),
        ("exhaustive", faults.exhaustive.is_some()),
    ];
    if let Some((key, _)) = others.iter().find(|(_, is_there)| *is_there) {
        return wrong(
            &field.key(key),
            format!("with `until` there is no `{key}` here; it has its own margin and confidence"),
        );
    }
    let field = field.key("until");
    let per = match &until.per {
        None => vec![Per::All],
        some => list(some, &field.key("per"), |own, _| {
            Ok(match own {
                written::Per::All => Per::All,
                written::Per::Kernel => Per::Kernel,
                written::Per::Group => Per::Group,
                written::Per::Opcode => Per::Opcode,
            })
        })?,
    };
    let is_permanent = matches!(faults.duration, Some(Duration::Permanent(_)));
    if is_permanent && per.iter().any(|own| *own != Per::All) {
        return wrong(
            &field.key("per"),
            "permanent faults strike units of the device, not parts of the program: expected [all]",
        );
    }
    let outcomes = check_outcomes(&until.of, &field)?;
    let size = SampleSize::Until {
        margin: check_margin(until.margin, &field)?,
        outcomes: outcomes.unwrap_or_else(|| vec![Outcome::Sdc, Outcome::Due]),
        per,
        most: faults.count,
    };
    Ok((size, check_confidence(until.confidence, &field)?))
}

fn check_outcomes(
    names: &Option<Vec<String>>,
    field: &Field,
) -> Result<Option<Vec<Outcome>>, Wrong> {
    if names.is_none() {
        return Ok(None);
    }
    let outcomes = list(names, &field.key("of"), |name, field| {
        name.parse()
            .or_else(|error: flipwave_analysis::UnknownOutcome| wrong(field, error.to_string()))
    })?;
    Ok(Some(outcomes))
}

fn check_allocation(
    faults: &Faults,
    size: &SampleSize,
    stratification: Stratification,
    field: &Field,
) -> Result<Allocation, Wrong> {
    let Some(allocation) = &faults.allocation else { return Ok(Allocation::Proportional) };
    if stratification == Stratification::None {
        return wrong(field, "needs `stratify`: it says how many faults each stratum gets");
    }
    let by_margin = matches!(size, SampleSize::Precision { .. });
    Ok(match allocation {
        written::Allocation::Equal => Allocation::Equal,
        _ if by_margin => {
            return wrong(
                field,
                "with `margin` every stratum gets as many faults as its own margin takes; leave \
                 `allocation` out, or say how many there are with `count` or `until`",
            );
        }
        written::Allocation::Proportional => Allocation::Proportional,
        written::Allocation::Optimal(optimal) => {
            let field = field.key("optimal");
            let most = match size {
                SampleSize::Count(count) => Some(*count),
                SampleSize::Until { most, .. } => *most,
                SampleSize::Precision { .. } | SampleSize::Exhaustive => None,
            };
            if optimal.pilot == 0 || most.is_some_and(|most| optimal.pilot >= most) {
                let most = most.map_or(String::new(), |most| format!(", fewer than all {most}"));
                return wrong(
                    &field.key("pilot"),
                    format!("{} injections; expected 1 or more{most}", optimal.pilot),
                );
            }
            let outcomes = check_outcomes(&optimal.of, &field)?;
            let outcomes = outcomes.unwrap_or_else(|| match size {
                SampleSize::Until { outcomes, .. } => outcomes.clone(),
                _ => vec![Outcome::Sdc],
            });
            Allocation::Optimal { pilot: optimal.pilot, outcomes }
        }
    })
}
