//! Functions of users from a value to the value after a fault.

use super::float::{number, with_number};
use super::{FloatFormat, all_ones};
use flipwave_arch::Lane;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A function in C that computes faulty values: a pure function of the value and of the facts in
/// [`FunctionInput`]. Sites refer to it by name, so each process has a list of the known functions.
#[derive(Clone, Copy)]
pub struct FaultFunction(&'static Registered);

struct Registered {
    source: FunctionSource,
    caller: Box<dyn FunctionCaller>,
}

/// Functions of this process. Entries are never removed: sites refer to them.
static FUNCTIONS: Mutex<Vec<FaultFunction>> = Mutex::new(Vec::new());

/// Source code of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSource {
    /// Name in fault sites, without whitespace. Functions with equal names are equal.
    pub name: String,
    /// Values that the function computes.
    pub values: FunctionValues,
    /// Name of the file, for messages.
    pub file: String,
    /// Content of the file.
    pub text: String,
    /// Folders of the files that it includes.
    pub include: Vec<PathBuf>,
}

/// Values that a function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionValues {
    /// Words of at most 32 bits: `flipwave_fault_word`.
    Words,
    /// Floating-point numbers in double precision: `flipwave_fault_number`.
    Numbers,
}

/// Arguments of a function, in addition to the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInput {
    /// Width of the value in bits, 1 to 32, or 64 for numbers.
    pub bits: u32,
    /// Lane of the value; lane 0 for values that lanes share.
    pub lane: Lane,
    /// Random number of the fault.
    pub random: u64,
}

/// Executes a function on the host.
pub trait FunctionCaller: Send + Sync {
    /// Calls the function with a value: a word, or the bits of a number in double precision.
    ///
    /// # Errors
    /// A message if the function crashes or does not return in time.
    fn call(&self, value: u64, input: FunctionInput) -> Result<u64, String>;
}

impl FaultFunction {
    /// Adds a function to those that fault sites can refer to, and returns it. Returns the existing one
    /// if there is one of this name.
    pub fn register(source: FunctionSource, caller: Box<dyn FunctionCaller>) -> FaultFunction {
        let mut functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let existing = functions.iter().find(|function| function.name() == source.name);
        existing.copied().unwrap_or_else(|| {
            let function = FaultFunction(Box::leak(Box::new(Registered { source, caller })));
            functions.push(function);
            function
        })
    }

    /// Returns the registered function of this name.
    pub(crate) fn find(name: &str) -> Option<FaultFunction> {
        let functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        functions.iter().find(|function| function.name() == name).copied()
    }

    /// The source code.
    pub fn source(self) -> &'static FunctionSource {
        &self.0.source
    }

    /// Name in fault sites.
    pub fn name(self) -> &'static str {
        &self.0.source.name
    }

    /// Values that the function computes.
    pub fn values(self) -> FunctionValues {
        self.0.source.values
    }

    /// Applies the function to a word, or to the number of `format` in the bits `before`. NaNs stay
    /// unchanged.
    pub(super) fn apply(
        self,
        format: Option<FloatFormat>,
        before: u64,
        input: FunctionInput,
    ) -> Result<u64, FunctionError> {
        let call = |value, input| {
            let result = self.0.caller.call(value, input);
            result.map_err(|message| FunctionError { name: self.name(), message })
        };
        let Some(format) = format else {
            return Ok(call(before, input)? & u64::from(all_ones(input.bits)));
        };
        let old = number(format, before);
        if old.is_nan() {
            return Ok(before);
        }
        let new = call(old.to_bits(), FunctionInput { bits: 64, ..input })?;
        Ok(with_number(format, before, f64::from_bits(new)))
    }
}

/// Functions are compared by name.
impl PartialEq for FaultFunction {
    fn eq(&self, other: &FaultFunction) -> bool {
        self.name() == other.name()
    }
}

impl Eq for FaultFunction {}

impl std::hash::Hash for FaultFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for FaultFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultFunction").field(&self.name()).finish()
    }
}

/// Error returned if a function did not compute a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FunctionError {
    /// Name of the function.
    pub name: &'static str,
    /// The problem, and where it is.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Action;

    /// Negates words, and halves numbers.
    struct Caller;

    impl FunctionCaller for Caller {
        fn call(&self, value: u64, input: FunctionInput) -> Result<u64, String> {
            match (input.random, input.bits) {
                (13, _) => Err("unlucky".to_owned()),
                (_, 64) => Ok((f64::from_bits(value) / 2.0).to_bits()),
                _ => Ok(!value),
            }
        }
    }

    fn function(name: &str, values: FunctionValues) -> FaultFunction {
        let source = FunctionSource {
            name: name.to_owned(),
            values,
            file: String::new(),
            text: String::new(),
            include: Vec::new(),
        };
        FaultFunction::register(source, Box::new(Caller))
    }

    fn apply(action: Action, before: u64, bits: u32) -> Result<u64, FunctionError> {
        action.apply(before, bits, Lane(3))
    }

    #[test]
    fn results_have_the_width_of_the_value() {
        let function = function("negate@test", FunctionValues::Words);
        let action = Action::Function { function, format: None, random: 7 };
        assert_eq!(apply(action, 5, 32), Ok(0xffff_fffa));
        assert_eq!(apply(action, 1, 1), Ok(0));
        let unlucky = Action::Function { function, format: None, random: 13 };
        assert!(apply(unlucky, 1, 1).is_err());
    }

    #[test]
    fn numbers_are_converted_from_and_to_their_format() {
        let function = function("halve@test", FunctionValues::Numbers);
        let of = |format| Action::Function { function, format: Some(format), random: 7 };
        assert_eq!(apply(of(FloatFormat::F16High), 0x4000_abcd, 32), Ok(0x3c00_abcd));
        assert_eq!(apply(of(FloatFormat::F64), 3.0f64.to_bits(), 32), Ok(1.5f64.to_bits()));
        assert_eq!(apply(of(FloatFormat::F32), 0x7fc0_1234, 32), Ok(0x7fc0_1234), "NaN");
        assert_eq!(of(FloatFormat::F64).words(), 2);
    }

    #[test]
    fn functions_are_found_by_name() {
        let first = function("find@test", FunctionValues::Words);
        assert_eq!(function("find@test", FunctionValues::Words), first);
        assert_eq!(FaultFunction::find("find@test"), Some(first));
        assert_eq!(FaultFunction::find("missing@test"), None);
    }
}
