//! Definition of faults: target, change of the value, scope and duration.

mod action;
mod duration;
mod float;
mod function;
mod masks;
mod model;
mod scope;
mod target;
mod values;

pub use action::Action;
pub use duration::{Duration, Intermittent};
pub use flipwave_arch::FloatFormat;
pub use float::RelativeError;
pub use function::{
    FaultFunction, FunctionCaller, FunctionError, FunctionInput, FunctionSource, FunctionValues,
};
pub use masks::{MaskDistribution, MasksError};
pub(crate) use model::all_ones;
pub use model::{FaultModel, WrittenFaultModel};
pub use scope::Scope;
pub(crate) use scope::lanes_at_offset;
pub use target::{FaultTarget, UnknownTarget};
pub use values::{MeasuredPair, MeasuredValues, Results, ValuesError};

use std::fmt;

/// A fault as described by a campaign, before sites are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The state that the fault strikes.
    pub target: FaultTarget,
    /// The change of the struck value.
    pub model: FaultModel,
    /// The lanes struck at once.
    pub scope: Scope,
    /// The duration of the fault.
    pub duration: Duration,
}

impl Fault {
    /// A transient fault in one destination register of one lane.
    pub fn transient(model: FaultModel) -> Fault {
        Fault {
            target: FaultTarget::DestinationRegister,
            model,
            scope: Scope::Lane,
            duration: Duration::Transient,
        }
    }

    /// Checks that the parts are consistent.
    ///
    /// # Errors
    /// [`FaultError`].
    pub fn check(&self) -> Result<(), FaultError> {
        let Fault { target, model, scope, duration } = self;
        if matches!(duration, Duration::Permanent(_)) {
            if *target != FaultTarget::DestinationRegister {
                return Err(FaultError::Permanent { target: *target });
            }
            if *scope != Scope::Lane {
                return Err(FaultError::PermanentScope { scope: *scope });
            }
        }
        if !target.has_scope(*scope) {
            return Err(FaultError::Scope { target: *target, scope: *scope });
        }
        if !model.fits(*target) {
            return Err(FaultError::Model { target: *target, model: model.clone() });
        }
        Ok(())
    }

    /// Checks that the golden run can determine, for each site, whether anything reads the struck
    /// value.
    ///
    /// # Errors
    /// [`FaultError::NotFollowed`].
    pub fn check_followed(&self) -> Result<(), FaultError> {
        let is_followed = self.target == FaultTarget::DestinationRegister
            && self.scope == Scope::Lane
            && self.duration == Duration::Transient
            && !self.model.changes_numbers()
            && !matches!(self.model, FaultModel::DrawnValues(_));
        if is_followed { Ok(()) } else { Err(FaultError::NotFollowed(Box::new(self.clone()))) }
    }
}

impl Fault {
    /// Checks that the fault supports drawing instructions.
    ///
    /// # Errors
    /// [`FaultError::NotByInstruction`].
    pub fn check_by_instruction(&self) -> Result<(), FaultError> {
        let has_words =
            matches!(self.target, FaultTarget::DestinationRegister | FaultTarget::SourceOperand);
        let is_permanent = matches!(self.duration, Duration::Permanent(_));
        if has_words && !is_permanent {
            Ok(())
        } else {
            Err(FaultError::NotByInstruction(Box::new(self.clone())))
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { target, model, scope, duration } = self;
        write!(f, "{duration} {model} in {target} of {}", scope.struck())
    }
}

/// Errors returned for inconsistent faults.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FaultError {
    /// A permanent fault in a target other than results.
    #[error(
        "a permanent fault strikes the results of a unit: expected target destination_register, \
         not {target}"
    )]
    Permanent {
        /// The target.
        target: FaultTarget,
    },
    /// A permanent fault with a scope other than one lane slot.
    #[error("a permanent fault strikes one lane slot: expected scope lane, not {scope}")]
    PermanentScope {
        /// The scope.
        scope: Scope,
    },
    /// Counting known-masked sites is not supported for the fault.
    #[error(
        "known-masked sites can only be counted for transient faults in destination_register \
         of one lane that change one word, not for {0}"
    )]
    NotFollowed(Box<Fault>),
    /// Drawing instructions is not supported for the fault.
    #[error(
        "instructions can only be drawn for faults in destination_register or source_operand that \
         are not permanent, not for {0}"
    )]
    NotByInstruction(Box<Fault>),
    /// The target does not support the scope.
    #[error(
        "scope {scope} is not supported for {target}; expected one of: {}",
        target.scopes().map(Scope::name).collect::<Vec<_>>().join(", ")
    )]
    Scope {
        /// The target.
        target: FaultTarget,
        /// The scope.
        scope: Scope,
    },
    /// The target does not support the model.
    #[error("{model} is not supported for {target}: {}", model.needs())]
    Model {
        /// The target.
        target: FaultTarget,
        /// The model.
        model: FaultModel,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_faults_are_rejected() {
        let fault = Fault::transient(FaultModel::FlipOneBit);
        assert_eq!(fault.check(), Ok(()));
        let refused = |fault: Fault| fault.check().unwrap_err().to_string();
        let permanent = Duration::Permanent(std::num::NonZeroU32::MIN);
        let text =
            refused(Fault { target: FaultTarget::Lds, duration: permanent, ..fault.clone() });
        assert!(text.contains("destination_register, not lds"), "{text}");
        let text = refused(Fault { scope: Scope::Wave, duration: permanent, ..fault.clone() });
        assert!(text.contains("expected scope lane, not wave"), "{text}");
        let text = refused(Fault { target: FaultTarget::Lds, scope: Scope::Wave, ..fault.clone() });
        assert!(text.contains("scope wave is not supported for lds"), "{text}");
        let relative = FaultModel::RelativeError(RelativeError::new(0.5).unwrap());
        let of_branch =
            Fault { target: FaultTarget::Branch, model: relative.clone(), ..fault.clone() };
        let text = refused(of_branch);
        assert!(text.contains("floating-point"), "{text}");
        assert_eq!(fault.check_by_instruction(), Ok(()));
        for unsupported in [
            Fault { target: FaultTarget::Lds, ..fault.clone() },
            Fault { duration: permanent, ..fault.clone() },
        ] {
            assert!(unsupported.check_by_instruction().is_err(), "{unsupported}");
        }
        assert_eq!(fault.check_followed(), Ok(()));
        for unsupported in [
            Fault { scope: Scope::Wave, ..fault.clone() },
            Fault { target: FaultTarget::SourceOperand, ..fault.clone() },
            Fault { duration: permanent, ..fault.clone() },
            Fault { model: relative, ..fault },
        ] {
            assert!(unsupported.check_followed().is_err(), "{unsupported}");
        }
    }
}
