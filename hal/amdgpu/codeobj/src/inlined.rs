//! Functions at an address, including inlined ones, from DWARF.

use crate::lines::contents;
use crate::{CodeObject, CodeObjectError};
use addr2line::Context;
use flipwave_arch::{Pc, SourceLine};
use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Reader = EndianArcSlice<LittleEndian>;

/// Limit on the depth of nested debugging entries. The reader recurses once per nested inlined function,
/// and a hostile file could nest arbitrarily many.
const DEPTH_LIMIT: isize = 512;

/// A function whose code contains an address, or that is inlined there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionFrame {
    /// The linkage name, or the name in the source if there is no linkage name.
    pub name: Option<String>,
    /// Source line of the address in this function: for functions into which others are inlined, the line
    /// of the inlined call.
    pub line: Option<SourceLine>,
}

/// Functions by address, see [`CodeObject::inlined_functions`].
pub struct InlinedFunctions(Mutex<Context<Reader>>);

impl InlinedFunctions {
    /// The functions at an address, innermost first; the last one is not inlined. Empty without debug
    /// information for the address.
    pub fn at(&self, pc: Pc) -> Vec<FunctionFrame> {
        let context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        let Ok(mut frames) = context.find_frames(pc.0).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let line = frame.location.and_then(|location| {
                let (line, column) = (location.line?, location.column.unwrap_or(0));
                Some(SourceLine { file: Arc::from(location.file?), line, column })
            });
            found.push(FunctionFrame { name, line });
        }
        found
    }
}

impl fmt::Debug for InlinedFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlinedFunctions").finish_non_exhaustive()
    }
}

impl CodeObject {
    /// Opens the descriptions of functions in DWARF; `None` if there are none. Functions are read when
    /// they are looked up.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the debug sections are invalid, or nested too deeply.
    pub fn inlined_functions(&self) -> Result<Option<InlinedFunctions>, CodeObjectError> {
        if self.section(".debug_info").is_none() {
            return Ok(None);
        }
        let dwarf = Dwarf::load(|id| self.debug_section(id))?;
        let invalid =
            |reason| CodeObjectError::LineTable { section: ".debug_info", offset: 0, reason };
        if deepest(&dwarf).map_err(invalid)? > DEPTH_LIMIT {
            let (what, unit, limit) = ("nesting of .debug_info", "levels", DEPTH_LIMIT as u64);
            return Err(CodeObjectError::TooLarge { what, unit, size: limit + 1, limit });
        }
        let context = Context::from_dwarf(dwarf).map_err(invalid)?;
        Ok(Some(InlinedFunctions(Mutex::new(context))))
    }

    fn debug_section(&self, id: SectionId) -> Result<Reader, CodeObjectError> {
        let bytes = match self.section(id.name()) {
            Some(section) => Arc::from(&*contents(section)?),
            None => Arc::from([]),
        };
        Ok(Reader::new(bytes, LittleEndian))
    }
}

/// Depth of the most deeply nested debugging entry, counted up to one more than the limit.
fn deepest(dwarf: &Dwarf<Reader>) -> Result<isize, gimli::Error> {
    let mut deepest = 0;
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let abbreviations = dwarf.abbreviations(&header)?;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        while deepest <= DEPTH_LIMIT && !entries.is_empty() {
            deepest = deepest.max(entries.next_depth());
            if let Some(abbreviation) = entries.read_abbreviation()? {
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
    }
    Ok(deepest)
}
