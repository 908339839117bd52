//! Fault models in C, which hooks contain and the host executes.

use flipwave_hooks::hook::digest;
use flipwave_injector::{
    FaultFunction, FunctionCaller, FunctionInput, FunctionSource, FunctionValues,
};
use flipwave_tools::{FaultFacts, FaultModelFile, FaultModelFunction, ToolError, ToolFile};
use std::path::Path;

/// Digits of the digest in the name of a function.
const DIGITS: usize = 8;

/// Reads and compiles a fault model, and registers its function for fault sites.
///
/// # Errors
/// [`ToolError`] if the file cannot be read, does not compile, or defines no function.
pub fn read_function(path: &Path) -> Result<FaultFunction, ToolError> {
    let file = ToolFile::read(path)?;
    let model = FaultModelFile::new(file.clone())?;
    let values = match model.function()? {
        FaultModelFunction::Word => FunctionValues::Words,
        FaultModelFunction::Number => FunctionValues::Numbers,
    };
    let digest = digest([file.text.as_bytes()]);
    let source = FunctionSource {
        name: format!("{}@{}", site_name(path), &digest[..DIGITS]),
        values,
        file: file.name,
        text: file.text,
        include: model.include_folders(),
    };
    Ok(FaultFunction::register(source, Box::new(Caller(model))))
}

/// Registers a function that another process of this build has read.
///
/// # Errors
/// [`ToolError`] if the headers of fault models cannot be written.
pub fn register_function(source: FunctionSource) -> Result<FaultFunction, ToolError> {
    let model = FaultModelFile::new(ToolFile {
        name: source.file.clone(),
        text: source.text.clone(),
        include: source.include.clone(),
        parameters: Vec::new(),
    })?;
    Ok(FaultFunction::register(source, Box::new(Caller(model))))
}

/// Name of a file without its extension, with characters that fault sites permit.
fn site_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    stem.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Calls a function in a process of the host.
struct Caller(FaultModelFile);

impl FunctionCaller for Caller {
    fn call(&self, value: u64, input: FunctionInput) -> Result<u64, String> {
        let FunctionInput { bits, lane, random } = input;
        let facts = FaultFacts { bits, lane: lane.0.into(), random };
        self.0.call(value, facts).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_no_whitespace() {
        assert_eq!(site_name(Path::new("a b/my model.c")), "my_model");
        assert_eq!(site_name(Path::new("stuck-lane.v2.c")), "stuck-lane.v2");
    }
}
