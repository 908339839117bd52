//! Fault models of users: C files with a function from a value to the value after a fault.

use super::host::{HostProcess, IncludeFolders, Program, Reader, Request, Writer, compile};
use super::{ToolError, ToolFile};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A fault model that is called on the host, in a separate process.
#[derive(Debug)]
pub struct FaultModelFile {
    file: ToolFile,
    folders: IncludeFolders,
    /// The process, started by the first call.
    process: Mutex<Option<HostProcess>>,
}

/// The function that a fault model defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultModelFunction {
    /// `flipwave_fault_word`.
    Word,
    /// `flipwave_fault_number`.
    Number,
}

/// Facts about a value, as `flipwave_fault` in `flipwave.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultFacts {
    /// Width of the value in bits.
    pub bits: u32,
    /// Lane of the value.
    pub lane: u32,
    /// Random number of the fault.
    pub random: u64,
}

impl FaultModelFile {
    /// Prepares a file that is compiled by the first call.
    ///
    /// # Errors
    /// [`ToolError::Hook`] if the headers cannot be written.
    pub fn new(file: ToolFile) -> Result<FaultModelFile, ToolError> {
        let folders = IncludeFolders::prepare()?;
        Ok(FaultModelFile { file, folders, process: Mutex::default() })
    }

    /// Compiles the file, and returns the function that it defines.
    ///
    /// # Errors
    /// [`ToolError`] if the file does not compile, or defines none or both of the functions.
    pub fn function(&self) -> Result<FaultModelFunction, ToolError> {
        let answer = self.ask(Request::FaultFunctions, &[])?;
        match Reader::new(&answer).word() {
            Ok(1) => Ok(FaultModelFunction::Word),
            Ok(2) => Ok(FaultModelFunction::Number),
            Ok(3) => Err(self.file.error(
                "defines both `flipwave_fault_word` and `flipwave_fault_number`; expected one of them",
            )),
            _ => Err(self.file.error(
                "no fault function; define `uint32_t flipwave_fault_word(uint32_t value, flipwave_fault \
                 fault)` or `double flipwave_fault_number(double value, flipwave_fault fault)`",
            )),
        }
    }

    /// Calls the function with a word, or with the bits of a number in double precision, and returns the
    /// value after the fault.
    ///
    /// # Errors
    /// [`ToolError`] if the function crashes or does not return in time.
    pub fn call(&self, value: u64, facts: FaultFacts) -> Result<u64, ToolError> {
        let mut request = Writer::default();
        request.wide(value);
        request.word(facts.bits);
        request.word(facts.lane);
        request.wide(facts.random);
        let answer = self.ask(Request::Corrupt, &request.into_bytes())?;
        Reader::new(&answer)
            .wide()
            .map_err(|_| self.file.error("its host side sent an invalid value"))
    }

    /// Folders with the headers that the file includes.
    pub fn include_folders(&self) -> Vec<PathBuf> {
        self.file.include.iter().chain([&self.folders.common]).cloned().collect()
    }

    fn ask(&self, request: Request, content: &[u8]) -> Result<Vec<u8>, ToolError> {
        let mut slot = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let process = match &mut *slot {
            Some(process) => process,
            none => {
                let program = compile(&self.file, &self.folders, Program::FaultModel)?;
                none.insert(HostProcess::start(&self.file, program)?)
            }
        };
        let answer = process.ask(request, content);
        if answer.is_err() {
            // Other calls need a new process.
            *slot = None;
        }
        answer
    }
}
