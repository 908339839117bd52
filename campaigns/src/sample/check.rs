//! Validation of the number of faults and of how they are drawn.

use super::written;
use super::{Allocation, Per, Sample, SampleSize};
use crate::file::faults::list;
use crate::file::faults::written::{Counting, Duration, Faults};
use crate::file::location::{Field, FieldError, reject};
use flipwave_analysis::{Confidence, Outcome};
use flipwave_injector::{Draw, Fault, KnownMasked, Stratification};

/// Validates the sampling keys of `faults`, for the fault model `fault` and a fault space that is divided
/// into strata by `stratification`.
pub(crate) fn check_sample(
    faults: &Faults,
    fault: &Fault,
    stratification: Stratification,
    field: &Field,
) -> Result<Sample, FieldError> {
    let (size, confidence) = check_size(faults, field)?;
    let allocation = check_allocation(faults, &size, stratification, &field.key("allocation"))?;
    let is_exhaustive = size == SampleSize::Exhaustive;
    if is_exhaustive && stratification != Stratification::None {
        return reject(
            &field.key("stratify"),
            "is not possible with `exhaustive`; remove one of them",
        );
    }
    if is_exhaustive && faults.replacement == Some(true) {
        return reject(
            &field.key("replacement"),
            "is not possible with `exhaustive`, which injects into each fault site once",
        );
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
            return reject(&field, error.to_string());
        }
        if is_approximate {
            return reject(
                &field,
                "requires `profile: exact`, because it counts in all dispatches",
            );
        }
    }
    if is_approximate && faults.replacement == Some(false) {
        return reject(
            &field.key("replacement"),
            "sampling without replacement requires `profile: exact`, because all fault sites must be known",
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

/// Validates `draw`. If instructions are drawn, an index denotes several fault sites, which can have
/// different outcomes; none of them can be left out or drawn at most once.
fn check_draw(faults: &Faults, fault: &Fault, field: &Field) -> Result<Draw, FieldError> {
    if matches!(faults.draw, written::Draw::Bits) {
        return Ok(Draw::Bits);
    }
    let conflicts = [
        ("exhaustive", faults.exhaustive == Some(true)),
        ("replacement", faults.replacement == Some(false)),
        ("known_masked", matches!(faults.known_masked, written::KnownMasked::Counted)),
    ];
    if let Some((key, _)) = conflicts.iter().find(|(_, is_present)| *is_present) {
        let message = "requires `draw: bits`; with `draw: instructions`, a fault flips one of many bits of the \
                       drawn instruction";
        return reject(&field.key(key), message);
    }
    match fault.check_by_instruction() {
        Ok(()) => Ok(Draw::Instructions),
        Err(error) => reject(&field.key("draw"), error.to_string()),
    }
}

fn check_confidence(confidence: Option<f64>, field: &Field) -> Result<Confidence, FieldError> {
    match confidence.map(Confidence::new) {
        None => Ok(Confidence::P95),
        Some(Ok(confidence)) => Ok(confidence),
        Some(Err(error)) => reject(&field.key("confidence"), error.to_string()),
    }
}

fn check_margin(margin: f64, field: &Field) -> Result<f64, FieldError> {
    if margin > 0.0 && margin < 1.0 {
        return Ok(margin);
    }
    reject(
        &field.key("margin"),
        format!("{margin:?} is not between 0 and 1; write 5 percentage points as 0.05"),
    )
}

/// Validates the number of faults and the confidence of the rates.
fn check_size(faults: &Faults, field: &Field) -> Result<(SampleSize, Confidence), FieldError> {
    let Faults { count, margin, confidence, exhaustive, until, .. } = faults;
    if *count == Some(0) {
        return reject(&field.key("count"), "0 injections; expected 1 or more");
    }
    if let Some(until) = until {
        return check_until(faults, until, field);
    }
    let checked_confidence = check_confidence(*confidence, field)?;
    let size = match (count, margin, confidence, exhaustive) {
        (Some(count), None, _, None) => SampleSize::Count(*count),
        (None, Some(margin), Some(_), None) => {
            SampleSize::Precision { margin: check_margin(*margin, field)? }
        }
        (None, None, _, Some(true)) => SampleSize::Exhaustive,
        _ => {
            return reject(
                field,
                "expected one of `count`, `until`, both `margin` and `confidence`, and \
                 `exhaustive: true`",
            );
        }
    };
    Ok((size, checked_confidence))
}

fn check_until(
    faults: &Faults,
    until: &written::Until,
    field: &Field,
) -> Result<(SampleSize, Confidence), FieldError> {
    let conflicts = [
        ("margin", faults.margin.is_some()),
        ("confidence", faults.confidence.is_some()),
        ("exhaustive", faults.exhaustive.is_some()),
    ];
    if let Some((key, _)) = conflicts.iter().find(|(_, is_present)| *is_present) {
        return reject(
            &field.key(key),
            format!(
                "is not possible next to `until`, which has its own margin and confidence; remove `{key}`"
            ),
        );
    }
    let field = field.key("until");
    let per = match &until.per {
        None => vec![Per::All],
        some => list(some, &field.key("per"), |part, _| {
            Ok(match part {
                written::Per::All => Per::All,
                written::Per::Kernel => Per::Kernel,
                written::Per::Group => Per::Group,
                written::Per::Opcode => Per::Opcode,
            })
        })?,
    };
    let is_permanent = matches!(faults.duration, Some(Duration::Permanent(_)));
    if is_permanent && per.iter().any(|part| *part != Per::All) {
        return reject(
            &field.key("per"),
            "permanent faults are in units of the device, not in parts of the program; expected [all]",
        );
    }
    let outcomes = check_outcomes(&until.outcomes, &field)?;
    let size = SampleSize::Until {
        margin: check_margin(until.margin, &field)?,
        outcomes: outcomes.unwrap_or_else(|| vec![Outcome::Sdc, Outcome::Due]),
        per,
        max_count: faults.count,
    };
    Ok((size, check_confidence(until.confidence, &field)?))
}

fn check_outcomes(
    names: &Option<Vec<String>>,
    field: &Field,
) -> Result<Option<Vec<Outcome>>, FieldError> {
    if names.is_none() {
        return Ok(None);
    }
    let outcomes = list(names, &field.key("outcomes"), |name, field| {
        name.parse()
            .or_else(|error: flipwave_analysis::UnknownOutcome| reject(field, error.to_string()))
    })?;
    Ok(Some(outcomes))
}

fn check_allocation(
    faults: &Faults,
    size: &SampleSize,
    stratification: Stratification,
    field: &Field,
) -> Result<Allocation, FieldError> {
    let Some(allocation) = &faults.allocation else { return Ok(Allocation::Proportional) };
    if stratification == Stratification::None {
        return reject(
            field,
            "requires `stratify`, because it divides the faults among the strata",
        );
    }
    let by_margin = matches!(size, SampleSize::Precision { .. });
    Ok(match allocation {
        written::Allocation::Equal => Allocation::Equal,
        _ if by_margin => {
            return reject(
                field,
                "is not possible with `margin`, where each stratum gets as many faults as its own margin \
                 requires; remove `allocation`, or use `count` or `until`",
            );
        }
        written::Allocation::Proportional => Allocation::Proportional,
        written::Allocation::Optimal(optimal) => {
            let field = field.key("optimal");
            let max_count = match size {
                SampleSize::Count(count) => Some(*count),
                SampleSize::Until { max_count, .. } => *max_count,
                SampleSize::Precision { .. } | SampleSize::Exhaustive => None,
            };
            if optimal.pilot == 0 || max_count.is_some_and(|count| optimal.pilot >= count) {
                let limit =
                    max_count.map_or(String::new(), |count| format!(", fewer than all {count}"));
                return reject(
                    &field.key("pilot"),
                    format!("{} injections; expected 1 or more{limit}", optimal.pilot),
                );
            }
            let outcomes = check_outcomes(&optimal.outcomes, &field)?;
            let outcomes = outcomes.unwrap_or_else(|| match size {
                SampleSize::Until { outcomes, .. } => outcomes.clone(),
                _ => vec![Outcome::Sdc],
            });
            Allocation::Optimal { pilot: optimal.pilot, outcomes }
        }
    })
}
