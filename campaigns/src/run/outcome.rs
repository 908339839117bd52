//! What a fault did to the program: the outcome of an injection.

use crate::error::CampaignError;
use crate::outputs::compare::{Difference, OutputFormat, OutputRole, compare_outputs};
use crate::severity::{Judge, Judgement};
use flipwave_analysis::Outcome;
use flipwave_device::{DeviceFault, Statistics};
use flipwave_injector::{Ending, Golden, Injection, NextUse, Output, Struck};

/// The outcome of an injection, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The program ended, and its outputs are right within the tolerances.
    Masked {
        /// What became of the fault.
        cause: MaskedCause,
        /// How the run differs.
        run: CompletedRun,
    },
    /// The program ended, and its outputs are wrong: silent data corruption.
    Sdc {
        /// How the run differs.
        run: CompletedRun,
        /// How bad it is, where somebody judges.
        judgement: Option<Judgement>,
    },
    /// The program ended, and its own check noticed the fault.
    Detected {
        /// The buffer that shows it.
        detector: String,
        /// How the run differs.
        run: CompletedRun,
    },
    /// The device stopped the program: a detected, unrecoverable error.
    Due {
        /// Why, as results name it.
        cause: &'static str,
    },
}

/// What became of a fault that did no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskedCause {
    /// It left the value as it was.
    Unchanged,
    /// The wave ended before anything read the value.
    Dead,
    /// The value was overwritten before anything read it.
    Overwritten,
    /// The value may have been read, and the outputs are right all the same.
    Logical,
}

/// How a run that completed differs from the fault-free one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompletedRun {
    /// Its outputs.
    pub difference: Difference,
    /// Wave instructions executed more, negative for less; nothing where the program's own cannot be
    /// distinguished from others.
    pub instructions: Option<i64>,
    /// Whether they are more, or less, by more than the threshold.
    pub timing_changed: Option<bool>,
}

impl MaskedCause {
    /// What became of a fault that did no harm; `next_use` is what becomes of the value in the
    /// fault-free run, where that is known.
    pub(crate) fn of(struck: &Struck, next_use: Option<NextUse>) -> MaskedCause {
        match next_use {
            _ if struck.is_unchanged() => MaskedCause::Unchanged,
            Some(NextUse::Dead) => MaskedCause::Dead,
            Some(NextUse::Overwritten) => MaskedCause::Overwritten,
            Some(NextUse::Read) | None => MaskedCause::Logical,
        }
    }

    /// The cause's name in results.
    pub fn name(self) -> &'static str {
        match self {
            MaskedCause::Unchanged => "unchanged",
            MaskedCause::Dead => "dead",
            MaskedCause::Overwritten => "overwritten",
            MaskedCause::Logical => "logical",
        }
    }
}

impl Verdict {
    /// The outcome alone.
    pub fn outcome(&self) -> Outcome {
        match self {
            Verdict::Masked { .. } => Outcome::Masked,
            Verdict::Sdc { .. } => Outcome::Sdc,
            Verdict::Detected { .. } => Outcome::Detected,
            Verdict::Due { .. } => Outcome::Due,
        }
    }

    /// Why, as results name it; SDC has no cause.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Verdict::Masked { cause, .. } => Some(cause.name()),
            Verdict::Sdc { .. } => None,
            Verdict::Detected { detector, .. } => Some(detector),
            Verdict::Due { cause } => Some(cause),
        }
    }

    /// How the run differs; one that was stopped is not compared.
    pub fn run(&self) -> Option<&CompletedRun> {
        match self {
            Verdict::Masked { run, .. }
            | Verdict::Sdc { run, .. }
            | Verdict::Detected { run, .. } => Some(run),
            Verdict::Due { .. } => None,
        }
    }

    /// What was said of SDC.
    pub fn judgement(&self) -> Option<&Judgement> {
        match self {
            Verdict::Sdc { judgement, .. } => judgement.as_ref(),
            _ => None,
        }
    }

    /// The same, judged: injection `index` came to it, which ended as `injected`.
    ///
    /// # Errors
    /// [`CampaignError::Severity`].
    pub(crate) fn judged(
        self,
        judge: Option<&Judge<'_>>,
        index: u64,
        injected: &Injected,
    ) -> Result<Verdict, CampaignError> {
        match (self, judge, &injected.end) {
            (
                Verdict::Sdc { run, .. },
                Some(judge),
                RunEnd::Completed { outputs: Some(outputs), .. },
            ) => {
                let judgement = Some(judge.judge(index, outputs)?);
                Ok(Verdict::Sdc { run, judgement })
            }
            (verdict, ..) => Ok(verdict),
        }
    }

    /// How the outputs differ from the fault-free ones; a stopped program has none.
    pub fn difference(&self) -> Option<Difference> {
        self.run().map(|run| run.difference)
    }
}

/// What a fault did to a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Injected {
    /// What was struck.
    pub struck: Struck,
    /// How the run ended.
    pub end: RunEnd,
}

/// How a run with a fault ended, beside the one without.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunEnd {
    /// It came to its end.
    Completed {
        /// Whether its outputs are right.
        is_right: bool,
        /// How they differ.
        difference: Difference,
        /// The detector that found the fault, if one did.
        detector: Option<String>,
        /// The wave instructions that it executed; nothing where the program's own cannot be
        /// counted apart from others.
        wave_instructions: Option<u64>,
        /// The content of the workload's outputs, of those who have it.
        outputs: Option<Vec<Output>>,
    },
    /// It was stopped, or failed.
    Stopped {
        /// Why, as results name it.
        cause: &'static str,
        /// The dispatch that the device stopped, and why and where, where that is known.
        fault: Option<(u32, DeviceFault)>,
    },
}

impl Injected {
    /// The same where what hooks executed counts, too.
    pub fn without_instructions(mut self) -> Injected {
        if let RunEnd::Completed { wave_instructions, .. } = &mut self.end {
            *wave_instructions = None;
        }
        self
    }
}

/// An injection beside the fault-free run: its outputs compared as their formats say.
pub(crate) fn beside(golden: &Golden, formats: &[OutputFormat], injection: Injection) -> Injected {
    let Injection { struck, ending } = injection;
    let (outputs, statistics) = match ending {
        Ending::Completed { outputs, statistics } => (outputs, statistics),
        Ending::Faulted { dispatch, fault } => {
            let cause = fault.cause.name();
            let end = RunEnd::Stopped { cause, fault: Some((dispatch, fault)) };
            return Injected { struck, end };
        }
    };
    let mut difference = Difference::default();
    let mut detector = None;
    for ((golden, faulty), format) in golden.outputs.iter().zip(&outputs).zip(formats) {
        match &format.role {
            OutputRole::Result(tolerance) => {
                let own = (format.element, tolerance);
                difference = difference.and(compare_outputs(format.extents, own, golden, faulty));
            }
            OutputRole::Detector(name) if golden != faulty => {
                detector = detector.or(Some(name.clone()));
            }
            OutputRole::Detector(_) => {}
        }
    }
    let end = RunEnd::Completed {
        is_right: difference.elements_wrong == 0,
        difference,
        detector,
        wave_instructions: Some(wave_instructions(&statistics)),
        outputs: Some(outputs),
    };
    Injected { struck, end }
}

fn wave_instructions(statistics: &[Statistics]) -> u64 {
    statistics.iter().map(|own| own.wave_instructions).sum()
}

/// Forms the verdicts on runs with faults, all beside the same fault-free run.
#[derive(Clone, Copy, Debug)]
pub struct Classifier<'a> {
    /// The fault-free run.
    pub golden: &'a Golden,
    /// By which part of the fault-free run's wave instructions those of a run may differ before
    /// its timing counts as changed.
    pub timing_threshold: f64,
}

impl Classifier<'_> {
    /// The verdict on an injection into a workload whose outputs have these `formats`. `next_use` is
    /// what becomes of the value in the fault-free run, where that is known.
    pub fn classify(
        &self,
        injection: Injection,
        formats: &[OutputFormat],
        next_use: Option<NextUse>,
    ) -> Verdict {
        self.verdict(&beside(self.golden, formats, injection), next_use)
    }

    /// The verdict on a run. Outputs count only where it completed: one that was stopped is `due`
    /// whatever it left in memory, and cannot become masked or SDC.
    pub(crate) fn verdict(&self, injected: &Injected, next_use: Option<NextUse>) -> Verdict {
        let (is_right, difference, detector, own) = match &injected.end {
            RunEnd::Stopped { cause, .. } => return Verdict::Due { cause },
            RunEnd::Completed { is_right, difference, detector, wave_instructions, .. } => {
                (is_right, difference, detector, wave_instructions)
            }
        };
        let golden = wave_instructions(&self.golden.statistics);
        let instructions = own.map(|own| own as i64 - golden as i64);
        let share = |more: i64| more.unsigned_abs() as f64 / golden.max(1) as f64;
        let timing_changed = instructions.map(|more| share(more) > self.timing_threshold);
        let run = CompletedRun { difference: *difference, instructions, timing_changed };
        match (detector, is_right) {
            (Some(detector), _) => Verdict::Detected { detector: detector.clone(), run },
            (None, false) => Verdict::Sdc { run, judgement: None },
            (None, true) => {
                Verdict::Masked { cause: MaskedCause::of(&injected.struck, next_use), run }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::element::ElementType;
    use crate::outputs::compare::Tolerance;
    use flipwave_device::{
        AccessKind, Address, DeviceFault, FaultCause, Statistics, WaveId, WaveLocation,
    };
    use flipwave_isa::Pc;

    fn formats() -> [OutputFormat; 3] {
        let tolerance = Tolerance { absolute: Some(1.0), relative: None, ulp: None };
        let result = OutputFormat {
            element: ElementType::U8,
            extents: None,
            role: OutputRole::Result(tolerance),
        };
        let detector = OutputRole::Detector("errors".to_owned());
        [result.clone(), result.clone(), OutputFormat { role: detector, ..result }]
    }

    fn statistics(wave_instructions: u64) -> Vec<Statistics> {
        vec![Statistics { wave_instructions, ..Statistics::default() }]
    }

    fn verdict(ending: Ending, struck: Struck, next_use: Option<NextUse>) -> Verdict {
        let outputs = [vec![1, 2], vec![3], vec![0]].map(Output::from).into();
        let golden = Golden { outputs, statistics: statistics(1000) };
        let classifier = Classifier { golden: &golden, timing_threshold: 0.01 };
        classifier.classify(Injection { struck, ending }, &formats(), next_use)
    }

    const STRUCK: Struck = Struck { before: 0, after: 1, words: 1, absorbed: false };

    fn completed(outputs: [Vec<u8>; 3], instructions: u64) -> Verdict {
        let statistics = statistics(instructions);
        let ending = Ending::Completed { outputs: outputs.map(Output::from).into(), statistics };
        verdict(ending, STRUCK, None)
    }

    #[test]
    fn a_completed_run_is_classified_by_its_outputs() {
        let cause = MaskedCause::Logical;
        let same = completed([vec![1, 2], vec![3], vec![0]], 1000);
        let run = CompletedRun {
            instructions: Some(0),
            timing_changed: Some(false),
            ..CompletedRun::default()
        };
        assert_eq!(same, Verdict::Masked { cause, run });
        let near = completed([vec![1, 3], vec![3], vec![0]], 1000);
        assert_eq!(near.outcome(), Outcome::Masked);
        let wrong = completed([vec![4, 2], vec![9], vec![0]], 1000);
        assert_eq!((wrong.outcome(), wrong.cause()), (Outcome::Sdc, None));
        assert_eq!(wrong.difference().map(|difference| difference.elements_wrong), Some(2));
    }

    /// The detector stands above the outputs: what the program noticed is not silent.
    #[test]
    fn a_fault_that_the_program_noticed_is_detected_whatever_its_outputs() {
        for outputs in [[vec![1, 2], vec![3], vec![1]], [vec![9, 9], vec![9], vec![1]]] {
            let found = completed(outputs, 1000);
            assert_eq!((found.outcome(), found.cause()), (Outcome::Detected, Some("errors")));
            assert!(found.difference().is_some());
        }
    }

    #[test]
    fn timing_has_changed_where_more_instructions_than_the_threshold_differ() {
        let outputs = || [vec![1, 2], vec![3], vec![0]];
        for (instructions, changed) in [(1000, false), (1010, false), (1011, true), (989, true)] {
            let found = completed(outputs(), instructions);
            let run = found.run().copied().unwrap_or_default();
            assert_eq!(run.timing_changed, Some(changed), "{instructions}");
            assert_eq!(run.instructions, Some(instructions as i64 - 1000));
        }
    }

    #[test]
    fn masked_faults_say_what_became_of_the_value() {
        let unchanged = Struck { after: 0, ..STRUCK };
        for (struck, next_use, cause) in [
            (STRUCK, None, "logical"),
            (STRUCK, Some(NextUse::Read), "logical"),
            (STRUCK, Some(NextUse::Overwritten), "overwritten"),
            (STRUCK, Some(NextUse::Dead), "dead"),
            (unchanged, Some(NextUse::Dead), "unchanged"),
        ] {
            let outputs = [vec![1, 2], vec![3], vec![0]].map(Output::from).into();
            let ending = Ending::Completed { outputs, statistics: statistics(1000) };
            assert_eq!(verdict(ending, struck, next_use).cause(), Some(cause));
        }
    }

    #[test]
    fn every_device_fault_is_due() {
        let address = Address(0);
        let causes = [
            FaultCause::MemoryViolation { address, access: AccessKind::Read, lane: None },
            FaultCause::Misaligned { address, alignment: 4, lane: None },
            FaultCause::IllegalInstruction { word: 0 },
            FaultCause::Trap { id: 2 },
            FaultCause::Watchdog { executed: 1 },
        ];
        for cause in causes {
            let name = cause.name();
            let place = WaveLocation { pc: Pc(0), wave: WaveId { workgroup: [0; 3], wave: 0 } };
            let ending = Ending::Faulted { dispatch: 0, fault: DeviceFault { cause, place } };
            let verdict = verdict(ending, STRUCK, Some(NextUse::Dead));
            assert_eq!(verdict, Verdict::Due { cause: name });
            assert_eq!((verdict.outcome(), verdict.difference()), (Outcome::Due, None));
        }
    }
}
