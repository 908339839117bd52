//! What a fault is: what it strikes, how it changes a value, how much it strikes at once, how
//! long it lasts.

mod action;
mod duration;
mod float;
mod masks;
mod model;
mod scope;
mod target;
mod values;

pub use action::Action;
pub use duration::{Duration, Intermittent};
pub use float::{FloatFormat, RelativeError};
pub use masks::{MaskDistribution, MasksError};
pub(crate) use model::all_ones;
pub use model::{FaultModel, WrittenFaultModel};
pub use scope::Scope;
pub(crate) use scope::lanes_at_offset;
pub use target::{FaultTarget, UnknownTarget};
pub use values::{MeasuredPair, MeasuredValues, Results, ValuesError};

use std::fmt;

/// A kind of fault: what a campaign injects, before sites are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What it strikes.
    pub target: FaultTarget,
    /// What it does to the value there.
    pub model: FaultModel,
    /// How much it strikes at once.
    pub scope: Scope,
    /// How long it lasts.
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

    /// Checks that the parts go together.
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

    /// Checks that the fault-free run shows of each place whether anything reads its value.
    ///
    /// # Errors
    /// [`FaultError::NotFollowed`].
    pub fn check_followed(&self) -> Result<(), FaultError> {
        let is_followed = self.target == FaultTarget::DestinationRegister
            && self.scope == Scope::Lane
            && self.duration == Duration::Transient
            && !matches!(self.model, FaultModel::RelativeError(_) | FaultModel::DrawnValues(_));
        if is_followed { Ok(()) } else { Err(FaultError::NotFollowed(Box::new(self.clone()))) }
    }
}

impl Fault {
    /// Checks that a fault can be one of an instruction that was drawn.
    ///
    /// # Errors
    /// [`FaultError::NotByInstruction`].
    pub fn check_by_instruction(&self) -> Result<(), FaultError> {
        let has_words =
            matches!(self.target, FaultTarget::DestinationRegister | FaultTarget::SourceOperand);
        let is_permanent = matches!(self.duration, Duration::Permanent(_));
        match has_words && !is_permanent {
            true => Ok(()),
            false => Err(FaultError::NotByInstruction(Box::new(self.clone()))),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { target, model, scope, duration } = self;
        write!(f, "{duration} {model} in {target} of {}", scope.struck())
    }
}

/// Parts of a fault that do not go together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FaultError {
    /// A permanent fault is one of a unit that computes results.
    #[error(
        "a permanent fault strikes what a unit computes: expected target destination_register, \
         not {target}"
    )]
    Permanent {
        /// The target.
        target: FaultTarget,
    },
    /// The place of a permanent fault is its lane slot.
    #[error("a permanent fault strikes one lane slot: expected scope lane, not {scope}")]
    PermanentScope {
        /// The scope.
        scope: Scope,
    },
    /// Values are followed only of registers, each by itself.
    #[error(
        "which places are known to be masked is counted of transient faults in destination_register \
         of one lane that change one word; these are {0}"
    )]
    NotFollowed(Box<Fault>),
    /// Instructions are drawn for what they write or read.
    #[error(
        "instructions are drawn for faults in destination_register or source_operand that are not \
         permanent; these are {0}"
    )]
    NotByInstruction(Box<Fault>),
    /// What is struck has no parts of that kind.
    #[error(
        "scope {scope} has no meaning for {target}; expected one of: {}",
        target.scopes().map(Scope::name).collect::<Vec<_>>().join(", ")
    )]
    Scope {
        /// The target.
        target: FaultTarget,
        /// The scope.
        scope: Scope,
    },
    /// The model does not apply to what is struck.
    #[error("{model} has no meaning for {target}: {}", model.needs())]
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
    fn faults_without_meaning_are_refused() {
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
        assert!(text.contains("scope wave has no meaning for lds"), "{text}");
        let relative = FaultModel::RelativeError(RelativeError::new(0.5).unwrap());
        let of_branch =
            Fault { target: FaultTarget::Branch, model: relative.clone(), ..fault.clone() };
        let text = refused(of_branch);
        assert!(text.contains("floating-point"), "{text}");
        assert_eq!(fault.check_by_instruction(), Ok(()));
        for other in [
            Fault { target: FaultTarget::Lds, ..fault.clone() },
            Fault { duration: permanent, ..fault.clone() },
        ] {
            assert!(other.check_by_instruction().is_err(), "{other}");
        }
        assert_eq!(fault.check_followed(), Ok(()));
        for other in [
            Fault { scope: Scope::Wave, ..fault.clone() },
            Fault { target: FaultTarget::SourceOperand, ..fault.clone() },
            Fault { duration: permanent, ..fault.clone() },
            Fault { model: relative, ..fault },
        ] {
            assert!(other.check_followed().is_err(), "{other}");
        }
    }
}
