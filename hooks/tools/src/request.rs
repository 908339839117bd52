//! Requests for hooks from the host side of a tool.

use super::code::{Shown, Site};
use super::host::{Malformed, Reader};
use super::output::Output;
use flipwave_hooks::flow::{InstIndex, Key};
use flipwave_hooks::hook::{Mask, Signature};
use flipwave_hooks::rewrite::When;
use std::sync::Arc;

/// All requests for a code object.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub calls: Vec<Call>,
    /// The rows of tables, by output.
    pub shown: Vec<Vec<Shown>>,
    /// The sites of streams, by output.
    pub sites: Vec<Vec<Site>>,
    /// The number of rows in memory, by output.
    pub used: Vec<u32>,
}

/// A requested call.
#[derive(Debug)]
pub(super) struct Call {
    pub at: InstIndex,
    pub hook: String,
    pub when: When,
    pub line: u32,
    pub mask: Mask,
    pub arguments: Vec<Passed>,
    pub results: Vec<Place>,
}

/// Registers, by operand or by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Operand(u64),
    Vgpr(u64, u64),
    AccVgpr(u64, u64),
    Sgpr(u64, u64),
    Vcc,
    Exec,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Passed {
    Place(Place),
    /// Lanes that execute the instruction.
    ActiveLanes,
    /// Lanes that reach the instruction, whether its guard is true or false.
    ReachingLanes,
    /// The address of the memory access.
    Address,
    /// A number, in scalar or in vector registers.
    Number(u64),
    LaneNumber(u64),
    Pc,
    /// Position of the workgroup in a dimension.
    Workgroup(u8),
    /// Number of the wave in its workgroup.
    Wave,
    KernelArguments,
    /// The address of a variable, plus an offset.
    Variable {
        name: String,
        offset: u64,
    },
    /// The address of a row in the memory of an output.
    Row {
        output: usize,
        row: u32,
        offset: u64,
    },
}

/// Kinds of requests (`host.c`).
const CALL: u32 = 1;
const MASK: u32 = 2;
const ARGUMENT: u32 = 3;
const RESULT: u32 = 4;
const ADD_SHOWN: u32 = 5;
const ADD_SITE: u32 = 6;

impl Requests {
    /// Reads the answer to a request to instrument code.
    pub fn read(reader: &mut Reader<'_>, outputs: usize) -> Result<Requests, Malformed> {
        let mut requests = Requests::default();
        requests.shown.resize_with(outputs, Vec::new);
        requests.sites.resize_with(outputs, Vec::new);
        loop {
            match reader.word()? {
                0 => break,
                CALL => requests.calls.push(Call::read(reader)?),
                MASK => requests.last()?.mask = mask(reader.word()?)?,
                ARGUMENT => {
                    let argument = Passed::read(reader)?;
                    requests.last()?.arguments.push(argument);
                }
                RESULT => {
                    let place = Place::read(reader.word()?, reader.wide()?, reader.wide()?);
                    requests.last()?.results.push(place.ok_or(Malformed)?);
                }
                ADD_SHOWN => {
                    let output = reader.word()? as usize;
                    let (at, row) = (inst_index(reader)?, reader.word()?);
                    let keys = keys(reader)?;
                    let shown = Shown { at, row, keys };
                    requests.shown.get_mut(output).ok_or(Malformed)?.push(shown);
                }
                ADD_SITE => {
                    let output = reader.word()? as usize;
                    let site = Site { at: inst_index(reader)?, keys: keys(reader)? };
                    requests.sites.get_mut(output).ok_or(Malformed)?.push(site);
                }
                _ => return Err(Malformed),
            }
        }
        requests.used = (0..outputs).map(|_| reader.word()).collect::<Result<_, _>>()?;
        Ok(requests)
    }

    fn last(&mut self) -> Result<&mut Call, Malformed> {
        self.calls.last_mut().ok_or(Malformed)
    }
}

impl Call {
    /// Checks that the hook takes the rows of a table as pointers to its structure, to numbers, or to nothing.
    ///
    /// # Errors
    /// A message for the line of the call.
    pub fn check_rows(&self, outputs: &[Output], hook: &Signature) -> Result<(), String> {
        for (passed, parameter) in self.arguments.iter().zip(&hook.parameters) {
            let Passed::Row { output, .. } = passed else { continue };
            let Some(output) = outputs.get(*output) else { continue };
            let Some(target) = parameter.ctype.resolved.strip_suffix('*') else { continue };
            let target = target.trim().trim_start_matches("const ").trim_start_matches("volatile ");
            if target.starts_with("struct ") && target != output.structure {
                return Err(format!(
                    "hook `{}`, parameter `{parameter}`: the rows of `{}` are `{}`",
                    self.hook, output.name, output.structure
                ));
            }
        }
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Call, Malformed> {
        let (at, hook) = (inst_index(reader)?, reader.text()?);
        let when = match reader.word()? {
            0 => When::Before,
            1 => When::After,
            2 => When::Instead,
            _ => return Err(Malformed),
        };
        let (line, mask) = (reader.word()?, Mask::Guest);
        Ok(Call { at, hook, when, line, mask, arguments: Vec::new(), results: Vec::new() })
    }
}

impl Passed {
    fn read(reader: &mut Reader<'_>) -> Result<Passed, Malformed> {
        let (kind, first, second) = (reader.word()?, reader.wide()?, reader.wide()?);
        if let Some(place) = Place::read(kind, first, second) {
            return Ok(Passed::Place(place));
        }
        Ok(match kind {
            5 => Passed::ActiveLanes,
            6 => Passed::Address,
            7 => Passed::Number(first),
            8 => Passed::LaneNumber(first),
            9 => Passed::Pc,
            10 => Passed::Workgroup(first.min(3) as u8),
            11 => Passed::Wave,
            12 => Passed::KernelArguments,
            13 => Passed::Variable { name: reader.text()?, offset: first },
            14 => {
                let output = reader.word()? as usize;
                Passed::Row { output, row: first as u32, offset: second }
            }
            16 => Passed::ReachingLanes,
            _ => return Err(Malformed),
        })
    }
}

impl Place {
    fn read(kind: u32, first: u64, second: u64) -> Option<Place> {
        Some(match kind {
            0 => Place::Operand(first),
            1 => Place::Vgpr(first, second),
            2 => Place::AccVgpr(first, second),
            3 => Place::Sgpr(first, second),
            4 => Place::Vcc,
            15 => Place::Exec,
            _ => return None,
        })
    }
}

fn mask(number: u32) -> Result<Mask, Malformed> {
    match number {
        1 => Ok(Mask::Single),
        2 => Ok(Mask::Whole),
        _ => Err(Malformed),
    }
}

fn inst_index(reader: &mut Reader<'_>) -> Result<InstIndex, Malformed> {
    Ok(InstIndex::new(reader.word()? as usize))
}

/// Reads the keys of a row: their number, and the texts.
fn keys(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Malformed> {
    let count = reader.word()?;
    (0..count).map(|_| Ok(Arc::from(reader.text()?))).collect()
}
