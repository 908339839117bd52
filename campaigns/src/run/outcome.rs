//! Classification of faulty runs.

use crate::error::CampaignError;
use crate::outputs::compare::{Difference, OutputFormat, OutputRole, compare_outputs};
use crate::run::due_cause::DueCause;
use crate::severity::{Judge, Judgement};
use flipwave_analysis::Outcome;
use flipwave_device::{DeviceFault, Statistics};
use flipwave_injector::{Ending, Golden, InjectedChange, Injection, NextUse, Output};

/// The outcome of an injection, with its details.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The program completed with correct outputs, within the tolerances.
    Masked {
        /// Why the fault had no effect.
        cause: MaskedCause,
        /// Differences from the golden run.
        run: CompletedRun,
    },
    /// Silent data corruption: the program completed with wrong outputs.
    Sdc {
        /// Differences from the golden run.
        run: CompletedRun,
        /// The severity, if the campaign has a judge.
        judgement: Option<Judgement>,
    },
    /// The program completed, and one of its detectors noticed the fault.
    Detected {
        /// Buffer of the detector.
        detector: String,
        /// Differences from the golden run.
        run: CompletedRun,
    },
    /// Detected unrecoverable error: the program was stopped.
    Due {
        /// Why the program was stopped.
        cause: DueCause,
    },
}

/// Why a fault was masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskedCause {
    /// The fault did not change the value.
    Unchanged,
    /// The wave ended before anything read the value.
    Dead,
    /// The value was overwritten before anything read it.
    Overwritten,
    /// The value may have been read, but the outputs are correct.
    Logical,
}

/// Differences of a completed run from the golden run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompletedRun {
    /// Differences of the outputs.
    pub difference: Difference,
    /// Additional wave instructions, negative for fewer; `None` if the program's instructions
    /// cannot be distinguished from those of hooks.
    pub instructions: Option<i64>,
    /// `true` if the number of instructions changed by more than the threshold.
    pub timing_changed: Option<bool>,
}

impl MaskedCause {
    /// Derives the cause from the struck value and, if known, its next use in the golden run.
    pub(crate) fn new(struck: &InjectedChange, next_use: Option<NextUse>) -> MaskedCause {
        match next_use {
            _ if struck.is_unchanged() => MaskedCause::Unchanged,
            Some(NextUse::Dead) => MaskedCause::Dead,
            Some(NextUse::Overwritten) => MaskedCause::Overwritten,
            Some(NextUse::Read) | None => MaskedCause::Logical,
        }
    }

    /// Name in result tables.
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
    /// The outcome without details.
    pub fn outcome(&self) -> Outcome {
        match self {
            Verdict::Masked { .. } => Outcome::Masked,
            Verdict::Sdc { .. } => Outcome::Sdc,
            Verdict::Detected { .. } => Outcome::Detected,
            Verdict::Due { .. } => Outcome::Due,
        }
    }

    /// Name of the cause in result tables; `None` for SDC.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Verdict::Masked { cause, .. } => Some(cause.name()),
            Verdict::Sdc { .. } => None,
            Verdict::Detected { detector, .. } => Some(detector),
            Verdict::Due { cause } => Some(cause.name()),
        }
    }

    /// Differences from the golden run; `None` if the run was stopped.
    pub fn run(&self) -> Option<&CompletedRun> {
        match self {
            Verdict::Masked { run, .. }
            | Verdict::Sdc { run, .. }
            | Verdict::Detected { run, .. } => Some(run),
            Verdict::Due { .. } => None,
        }
    }

    /// The judgement of SDC.
    pub fn judgement(&self) -> Option<&Judgement> {
        match self {
            Verdict::Sdc { judgement, .. } => judgement.as_ref(),
            _ => None,
        }
    }

    /// Asks `judge` for the severity of SDC. `ending` is the end of injection `index`.
    ///
    /// # Errors
    /// [`CampaignError::Severity`].
    pub(crate) fn judged(
        self,
        judge: Option<&Judge<'_>>,
        index: u64,
        ending: &ComparedEnding,
    ) -> Result<Verdict, CampaignError> {
        match (self, judge, ending) {
            (
                Verdict::Sdc { run, .. },
                Some(judge),
                ComparedEnding::Completed { outputs: Some(outputs), .. },
            ) => {
                let judgement = Some(judge.judge(index, outputs)?);
                Ok(Verdict::Sdc { run, judgement })
            }
            (verdict, ..) => Ok(verdict),
        }
    }

    /// Differences of the outputs; `None` if the run was stopped.
    pub fn difference(&self) -> Option<Difference> {
        self.run().map(|run| run.difference)
    }
}

/// End of a faulty run on any device, compared with the golden run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComparedEnding {
    /// The run completed.
    Completed {
        /// `true` if all outputs are correct.
        is_correct: bool,
        /// Differences of the outputs.
        difference: Difference,
        /// The detector that noticed the fault.
        detector: Option<String>,
        /// Executed wave instructions; `None` if the program's instructions cannot be distinguished
        /// from those of hooks.
        wave_instructions: Option<u64>,
        /// Contents of the outputs, if available.
        outputs: Option<Vec<Output>>,
    },
    /// The embedded GPU of this process stopped a dispatch.
    Faulted {
        /// Index of the dispatch.
        dispatch: u32,
        /// Cause and location.
        fault: DeviceFault,
    },
    /// The run took place in another process, and was stopped or failed.
    Stopped(DueCause),
}

impl ComparedEnding {
    /// Compares the end of a run with the golden run. `formats` are the formats of the outputs.
    pub fn new(golden: &Golden, formats: &[OutputFormat], ending: Ending) -> ComparedEnding {
        let (outputs, statistics) = match ending {
            Ending::Completed { outputs, statistics } => (outputs, statistics),
            Ending::Faulted { dispatch, fault } => {
                return ComparedEnding::Faulted { dispatch, fault };
            }
        };
        let mut difference = Difference::default();
        let mut detector = None;
        for ((golden, faulty), format) in golden.outputs.iter().zip(&outputs).zip(formats) {
            match &format.role {
                OutputRole::Result(tolerance) => {
                    let OutputFormat { element, extents, .. } = *format;
                    let output = compare_outputs(element, tolerance, extents, golden, faulty);
                    difference = difference.and(output);
                }
                OutputRole::Detector(name) if golden != faulty => {
                    detector = detector.or(Some(name.clone()));
                }
                OutputRole::Detector(_) => {}
            }
        }
        ComparedEnding::Completed {
            is_correct: difference.elements_wrong == 0,
            difference,
            detector,
            wave_instructions: Some(wave_instructions(&statistics)),
            outputs: Some(outputs),
        }
    }

    /// Removes the instruction count, which includes instructions of hooks.
    pub fn without_instructions(mut self) -> ComparedEnding {
        if let ComparedEnding::Completed { wave_instructions, .. } = &mut self {
            *wave_instructions = None;
        }
        self
    }
}

fn wave_instructions(statistics: &[Statistics]) -> u64 {
    statistics.iter().map(|dispatch| dispatch.wave_instructions).sum()
}

/// Classifies faulty runs by comparison with the golden run.
#[derive(Clone, Copy, Debug)]
pub struct Classifier<'a> {
    /// The golden run.
    pub golden: &'a Golden,
    /// Relative change of the number of wave instructions above which the timing counts as changed.
    pub timing_threshold: f64,
}

impl Classifier<'_> {
    /// Classifies an injection into a workload whose outputs have these `formats`. `next_use` is
    /// the next use of the struck value in the golden run, if known.
    pub fn classify(
        &self,
        injection: Injection,
        formats: &[OutputFormat],
        next_use: Option<NextUse>,
    ) -> Verdict {
        let compare = |ending| ComparedEnding::new(self.golden, formats, ending);
        self.verdict(&injection.map_ending(compare), next_use)
    }

    /// Classifies a compared injection. A stopped run is DUE regardless of its outputs.
    pub(crate) fn verdict(
        &self,
        injection: &Injection<ComparedEnding>,
        next_use: Option<NextUse>,
    ) -> Verdict {
        let (is_correct, difference, detector, executed) = match &injection.ending {
            ComparedEnding::Completed {
                is_correct,
                difference,
                detector,
                wave_instructions,
                ..
            } => (is_correct, difference, detector, wave_instructions),
            ComparedEnding::Faulted { fault, .. } => {
                return Verdict::Due { cause: fault.cause.kind().into() };
            }
            ComparedEnding::Stopped(cause) => return Verdict::Due { cause: *cause },
        };
        let golden = wave_instructions(&self.golden.statistics);
        let instructions = executed.map(|executed| executed as i64 - golden as i64);
        let relative = |more: i64| more.unsigned_abs() as f64 / golden.max(1) as f64;
        let timing_changed = instructions.map(|more| relative(more) > self.timing_threshold);
        let run = CompletedRun { difference: *difference, instructions, timing_changed };
        if let Some(detector) = detector {
            Verdict::Detected { detector: detector.clone(), run }
        } else if *is_correct {
            Verdict::Masked { cause: MaskedCause::new(&injection.struck, next_use), run }
        } else {
            Verdict::Sdc { run, judgement: None }
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

    fn verdict(ending: Ending, struck: InjectedChange, next_use: Option<NextUse>) -> Verdict {
        let outputs = [vec![1, 2], vec![3], vec![0]].map(Output::from).into();
        let golden = Golden { outputs, statistics: statistics(1000) };
        let classifier = Classifier { golden: &golden, timing_threshold: 0.01 };
        classifier.classify(Injection { struck, ending }, &formats(), next_use)
    }

    const STRUCK: InjectedChange =
        InjectedChange { before: 0, after: 1, words: 1, absorbed: false };

    fn completed(outputs: [Vec<u8>; 3], instructions: u64) -> Verdict {
        let statistics = statistics(instructions);
        let ending = Ending::Completed { outputs: outputs.map(Output::from).into(), statistics };
        verdict(ending, STRUCK, None)
    }

    #[test]
    fn completed_runs_are_classified_by_their_outputs() {
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

    /// A detector takes precedence over the outputs: what the program noticed is not silent.
    #[test]
    fn faults_noticed_by_a_detector_are_detected_regardless_of_the_outputs() {
        for outputs in [[vec![1, 2], vec![3], vec![1]], [vec![9, 9], vec![9], vec![1]]] {
            let found = completed(outputs, 1000);
            assert_eq!((found.outcome(), found.cause()), (Outcome::Detected, Some("errors")));
            assert!(found.difference().is_some());
        }
    }

    #[test]
    fn timing_is_changed_if_the_instruction_count_differs_by_more_than_the_threshold() {
        let outputs = || [vec![1, 2], vec![3], vec![0]];
        for (instructions, changed) in [(1000, false), (1010, false), (1011, true), (989, true)] {
            let found = completed(outputs(), instructions);
            let run = found.run().copied().unwrap_or_default();
            assert_eq!(run.timing_changed, Some(changed), "{instructions}");
            assert_eq!(run.instructions, Some(instructions as i64 - 1000));
        }
    }

    #[test]
    fn masked_cause_follows_from_the_next_use() {
        let unchanged = InjectedChange { after: 0, ..STRUCK };
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
    fn device_faults_are_due() {
        let address = Address(0);
        let causes = [
            FaultCause::MemoryViolation { address, access: AccessKind::Read, lane: None },
            FaultCause::Misaligned { address, alignment: 4, lane: None },
            FaultCause::IllegalInstruction { word: 0 },
            FaultCause::Trap { id: 2 },
            FaultCause::Watchdog { executed: 1 },
        ];
        for cause in causes {
            let kind = cause.kind();
            let place = WaveLocation { pc: Pc(0), wave: WaveId { workgroup: [0; 3], wave: 0 } };
            let ending = Ending::Faulted { dispatch: 0, fault: DeviceFault::new(cause, place) };
            let verdict = verdict(ending, STRUCK, Some(NextUse::Dead));
            assert_eq!(verdict, Verdict::Due { cause: DueCause::Device(kind) });
            assert_eq!((verdict.outcome(), verdict.difference()), (Outcome::Due, None));
        }
    }
}
