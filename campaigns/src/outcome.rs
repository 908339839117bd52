//! What a fault did to the program: the outcome of an injection.

use crate::compare::{Difference, compare};
use crate::prepare::OutputFormat;
use flipwave_analysis::Outcome;
use flipwave_injector::{Ending, Golden};

/// The outcome of an injection, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The program ended, and its outputs are right within the tolerances.
    Masked(Difference),
    /// The program ended, and its outputs are wrong: silent data corruption.
    Sdc(Difference),
    /// The device stopped the program: a detected, unrecoverable error.
    Due {
        /// Why, as results name it.
        cause: &'static str,
    },
}

impl Verdict {
    /// The outcome alone.
    pub fn outcome(&self) -> Outcome {
        match self {
            Verdict::Masked(_) => Outcome::Masked,
            Verdict::Sdc(_) => Outcome::Sdc,
            Verdict::Due { .. } => Outcome::Due,
        }
    }

    /// Why the device stopped the program, if it did.
    pub fn cause(&self) -> Option<&'static str> {
        match self {
            Verdict::Masked(_) | Verdict::Sdc(_) => None,
            Verdict::Due { cause } => Some(cause),
        }
    }

    /// How the outputs differ from the fault-free ones; a stopped program has none.
    pub fn difference(&self) -> Option<Difference> {
        match self {
            Verdict::Masked(difference) | Verdict::Sdc(difference) => Some(*difference),
            Verdict::Due { .. } => None,
        }
    }
}

/// The outcome of a run. Outputs are looked at only where the run completed: a device fault is
/// `due` whatever the memory holds, and cannot become masked or SDC.
pub fn classify(ending: &Ending, golden: &Golden, formats: &[OutputFormat]) -> Verdict {
    let outputs = match ending {
        Ending::Faulted { fault, .. } => return Verdict::Due { cause: fault.cause.name() },
        Ending::Completed { outputs, .. } => outputs,
    };
    let difference = golden
        .outputs
        .iter()
        .zip(outputs)
        .zip(formats)
        .map(|((golden, faulty), format)| {
            compare(format.element, &format.tolerance, golden, faulty)
        })
        .fold(Difference::default(), Difference::and);
    match difference.elements_wrong {
        0 => Verdict::Masked(difference),
        _ => Verdict::Sdc(difference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Tolerance;
    use crate::element::ElementType;
    use flipwave_device::{AccessKind, Address, DeviceFault, FaultCause, Place, WaveId};
    use flipwave_isa::Pc;

    const FORMAT: OutputFormat = OutputFormat {
        element: ElementType::U8,
        tolerance: Tolerance { absolute: Some(1.0), relative: None, ulp: None },
    };

    fn golden() -> Golden {
        Golden { outputs: vec![vec![1, 2], vec![3]], statistics: Vec::new() }
    }

    fn completed(outputs: [Vec<u8>; 2]) -> Verdict {
        let ending = Ending::Completed { outputs: outputs.into(), statistics: Vec::new() };
        classify(&ending, &golden(), &[FORMAT, FORMAT])
    }

    #[test]
    fn a_completed_run_is_masked_or_sdc_by_its_outputs() {
        assert_eq!(completed([vec![1, 2], vec![3]]), Verdict::Masked(Difference::default()));
        assert_eq!(completed([vec![1, 3], vec![3]]).outcome(), Outcome::Masked);
        let wrong = completed([vec![4, 2], vec![9]]);
        assert_eq!(wrong.outcome(), Outcome::Sdc);
        assert_eq!(wrong.difference().map(|difference| difference.elements_wrong), Some(2));
        assert_eq!(wrong.cause(), None);
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
            let place = Place { pc: Pc(0), wave: WaveId { workgroup: [0; 3], wave: 0 } };
            let ending = Ending::Faulted { dispatch: 0, fault: DeviceFault { cause, place } };
            let verdict = classify(&ending, &golden(), &[FORMAT, FORMAT]);
            assert_eq!(verdict, Verdict::Due { cause: name });
            assert_eq!((verdict.outcome(), verdict.difference()), (Outcome::Due, None));
        }
    }
}
