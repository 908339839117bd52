//! A folder that behaves as on a slow file server.

use crate::Once;
use std::path::{Path, PathBuf};
use std::process::Command;

static LIBRARY: Once<(), PathBuf> = Once::new();

/// Environment variables that make `folder` behave as on a slow file server: renames are slow, and new
/// names become visible with a delay (`slow_folder.c`).
pub fn slow_folder(folder: &Path) -> [(String, String); 2] {
    let library = LIBRARY.get((), || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/slow_folder.c");
        let folder = tempfile::tempdir().expect("a folder").keep();
        let library = folder.join("slow_folder.so");
        let mut compiler = Command::new("clang-22");
        compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        assert!(compiler.status().expect("clang-22").success(), "{}", source.display());
        library
    });
    let text = |path: &Path| path.display().to_string();
    [("LD_PRELOAD".to_owned(), text(&library)), ("FLIPWAVE_SLOW".to_owned(), text(folder))]
}
