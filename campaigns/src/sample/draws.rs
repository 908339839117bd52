//! Text form of the part of a sample that determines the fault site of each injection index. It is part of
//! the digest of a shard space.
//!
//! The text is a persistent format, see [`Sample::draws`]. It is produced by explicit matches, so types,
//! variants and fields can be renamed without changing a digest.

use super::{Allocation, Per, Sample, SampleSize};
use flipwave_analysis::Outcome;
use flipwave_host::output::float_text;
use flipwave_injector::Stratification;

impl Sample {
    /// Returns the settings that determine the fault site of each injection index, as text.
    ///
    /// Without strata, a longer plan begins with the shorter one, so the text omits the number of
    /// injections. With strata, the number for each stratum depends on the total:
    ///
    /// ```text
    /// exhaustive
    /// random
    /// count=100 ALLOCATION
    /// margin=0.01 confidence=0.95 ALLOCATION
    /// until=0.01 confidence=0.95 outcomes=sdc,due per=all,kernel most=5000 ALLOCATION
    /// ```
    ///
    /// `most` is `unlimited` if the file gives no limit. `ALLOCATION` is one of:
    ///
    /// ```text
    /// allocation=proportional
    /// allocation=equal
    /// allocation=optimal pilot=20 outcomes=sdc,due
    /// ```
    ///
    /// Numbers are formatted by [`float_text`]. Changing this text changes the digests of shard spaces:
    /// raise [`ShardPlan::FORMAT`] at the same time.
    ///
    /// [`ShardPlan::FORMAT`]: crate::ShardPlan::FORMAT
    pub(crate) fn draws(&self, stratification: Stratification) -> String {
        let is_stratified = match stratification {
            Stratification::None => false,
            Stratification::Kernel | Stratification::Group | Stratification::Opcode => true,
        };
        let size = match (&self.size, is_stratified) {
            (SampleSize::Exhaustive, _) => return "exhaustive".to_owned(),
            (
                SampleSize::Count(_) | SampleSize::Precision { .. } | SampleSize::Until { .. },
                false,
            ) => return "random".to_owned(),
            (SampleSize::Count(count), true) => format!("count={count}"),
            (SampleSize::Precision { margin }, true) => {
                format!("margin={} {}", float_text(*margin), self.confidence_text())
            }
            (SampleSize::Until { margin, outcomes, per, max_count }, true) => {
                let most = max_count.map_or("unlimited".to_owned(), |count| count.to_string());
                format!(
                    "until={} {} outcomes={} per={} most={most}",
                    float_text(*margin),
                    self.confidence_text(),
                    outcome_list(outcomes),
                    per.iter().map(|per| per.name()).collect::<Vec<_>>().join(","),
                )
            }
        };
        format!("{size} {}", self.allocation.text())
    }

    fn confidence_text(&self) -> String {
        format!("confidence={}", float_text(self.confidence.probability()))
    }
}

impl Allocation {
    fn text(&self) -> String {
        match self {
            Allocation::Proportional => "allocation=proportional".to_owned(),
            Allocation::Equal => "allocation=equal".to_owned(),
            Allocation::Optimal { pilot, outcomes } => {
                let outcomes = outcome_list(outcomes);
                format!("allocation=optimal pilot={pilot} outcomes={outcomes}")
            }
        }
    }
}

impl Per {
    fn name(self) -> &'static str {
        match self {
            Per::All => "all",
            Per::Kernel => "kernel",
            Per::Group => "group",
            Per::Opcode => "opcode",
        }
    }
}

fn outcome_list(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| outcome.name()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_analysis::{Confidence, IntervalMethod};
    use flipwave_injector::{Draw, KnownMasked};

    fn draws(size: SampleSize, allocation: Allocation, stratification: Stratification) -> String {
        let sample = Sample {
            size,
            confidence: Confidence::P95,
            intervals: IntervalMethod::default(),
            allocation,
            replacement: true,
            draw: Draw::default(),
            known_masked: KnownMasked::default(),
        };
        sample.draws(stratification)
    }

    const STRATA: [Stratification; 3] =
        [Stratification::Kernel, Stratification::Group, Stratification::Opcode];

    fn until(max_count: Option<u64>) -> SampleSize {
        SampleSize::Until {
            margin: 0.01,
            outcomes: vec![Outcome::Masked, Outcome::Sdc, Outcome::Due, Outcome::Detected],
            per: vec![Per::All, Per::Kernel, Per::Group, Per::Opcode],
            max_count,
        }
    }

    #[test]
    fn text_of_each_sample_is_fixed() {
        let optimal = Allocation::Optimal { pilot: 20, outcomes: vec![Outcome::Sdc, Outcome::Due] };
        for (size, allocation, text) in [
            (SampleSize::Exhaustive, Allocation::Proportional, "exhaustive"),
            (SampleSize::Count(100), Allocation::Proportional, "count=100 allocation=proportional"),
            (SampleSize::Count(100), Allocation::Equal, "count=100 allocation=equal"),
            (
                SampleSize::Count(100),
                optimal.clone(),
                "count=100 allocation=optimal pilot=20 outcomes=sdc,due",
            ),
            (
                SampleSize::Precision { margin: 0.05 },
                Allocation::Equal,
                "margin=0.05 confidence=0.95 allocation=equal",
            ),
            (
                until(None),
                Allocation::Proportional,
                "until=0.01 confidence=0.95 outcomes=masked,sdc,due,detected \
                 per=all,kernel,group,opcode most=unlimited allocation=proportional",
            ),
            (
                until(Some(500)),
                optimal,
                "until=0.01 confidence=0.95 outcomes=masked,sdc,due,detected \
                 per=all,kernel,group,opcode most=500 \
                 allocation=optimal pilot=20 outcomes=sdc,due",
            ),
        ] {
            for strata in STRATA {
                assert_eq!(draws(size.clone(), allocation.clone(), strata), text);
            }
        }
    }

    #[test]
    fn text_without_strata_omits_the_number_of_faults() {
        let sizes = [SampleSize::Count(100), SampleSize::Precision { margin: 0.05 }, until(None)];
        for size in sizes {
            let text = draws(size, Allocation::Proportional, Stratification::None);
            assert_eq!(text, "random");
        }
        let all = draws(SampleSize::Exhaustive, Allocation::Proportional, Stratification::None);
        assert_eq!(all, "exhaustive");
    }
}
