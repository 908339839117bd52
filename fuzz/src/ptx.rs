//! Fuzzes the reader and the writer of PTX.

use flipwave_ptx::{CallGraph, ControlFlow, parse, resolve};

/// Parses bytes as a PTX module. Writing and parsing a module must give the same text, and its names and
/// control flow are resolved.
pub fn ptx(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let module = match parse(&text) {
        Ok(module) => module,
        Err(error) => {
            assert!(error.position.line > 0 && error.position.column > 0, "{error}");
            return;
        }
    };
    let printed = module.to_string();
    let again = parse(&printed).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    assert_eq!(again.to_string(), printed);
    if let Ok(code) = resolve(&module) {
        CallGraph::of(&code);
        for function in &code.functions {
            ControlFlow::of(&code, function);
        }
    }
}
