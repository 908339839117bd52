//! Compilation of a tool's host side to a program.

use super::{MEMORY, seconds};
use crate::{ToolError, ToolFile};
use flipwave_hooks::hook::{HEADER, HookError, c_string, clang_path, clang_version, digest};
use flipwave_host::cache::Cache;
use flipwave_host::child::ChildError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The header with the functions for tools.
const TOOL_HEADER: &str = include_str!("../../include/flipwave_tool.h");
/// The header that it includes.
const TOOL_IMPLEMENTATION: &str = include_str!("../../include/flipwave_tool_impl.h");
/// `flipwave.h` for hooks in PTX.
pub const PTX_HEADER: &str = include_str!("../../include/ptx/flipwave.h");
/// The main program.
const MAIN: &str = include_str!("../../include/host.c");

/// Headers of the C library, reduced to declarations for the GPU side.
const DEVICE_HEADERS: [(&str, &str); 7] = [
    ("assert.h", include_str!("../../include/device/assert.h")),
    ("ctype.h", include_str!("../../include/device/ctype.h")),
    ("inttypes.h", include_str!("../../include/device/inttypes.h")),
    ("math.h", include_str!("../../include/device/math.h")),
    ("stdio.h", include_str!("../../include/device/stdio.h")),
    ("stdlib.h", include_str!("../../include/device/stdlib.h")),
    ("string.h", include_str!("../../include/device/string.h")),
];

/// Headers that do not change while a compiled program is cached.
const KNOWN_HEADERS: [&str; 4] = ["flipwave.h", "limits.h", "stdbool.h", "stdint.h"];

/// The functions that a tool may define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callbacks {
    /// `flipwave_on_dispatch`.
    pub on_dispatch: bool,
    /// `flipwave_finish`.
    pub finish: bool,
}

/// Folders for `#include`, whose files are in the user's cache.
#[derive(Clone, Debug)]
pub struct IncludeFolders {
    /// `flipwave.h` and `flipwave_tool.h`.
    pub common: PathBuf,
    /// Headers of the C library for the GPU side.
    pub device: PathBuf,
    /// Headers of the C library for the host side.
    pub host: PathBuf,
    /// `flipwave.h` for PTX.
    pub ptx: PathBuf,
    /// The main program.
    pub main: PathBuf,
}

impl IncludeFolders {
    /// Writes the files, unless they exist.
    ///
    /// # Errors
    /// [`ToolError::Hook`] if they cannot be written.
    pub fn prepare() -> Result<IncludeFolders, ToolError> {
        let cache = Cache::find();
        let all = [
            ("flipwave.h", HEADER),
            ("flipwave_tool.h", TOOL_HEADER),
            ("flipwave_tool_impl.h", TOOL_IMPLEMENTATION),
            ("ptx/flipwave.h", PTX_HEADER),
            ("host.c", MAIN),
        ];
        let texts = all.iter().chain(&DEVICE_HEADERS).map(|(_, text)| text.as_bytes());
        let digest = digest(texts);
        let write = |name: String, text: &str| {
            cache.file(&name, text.as_bytes()).map_err(|reason| {
                let path = cache.folder().join(&name);
                ToolError::Hook(HookError::Cache { path, reason })
            })
        };
        for (name, text) in all {
            write(format!("tool-{digest}/{name}"), text)?;
        }
        for (name, text) in DEVICE_HEADERS {
            write(format!("tool-{digest}/device/{name}"), text)?;
            write(format!("tool-{digest}/host/{name}"), &host_header(name))?;
        }
        let common = cache.folder().join(format!("tool-{digest}"));
        let [device, host, ptx] = ["device", "host", "ptx"].map(|name| common.join(name));
        Ok(IncludeFolders { device, host, ptx, main: common.join("host.c"), common })
    }
}

/// A header of the C library whose functions keep their linkage, unlike those of the tool.
fn host_header(name: &str) -> String {
    format!(
        "#ifdef FLIPWAVE_PUSHED\n#pragma clang attribute pop\n#endif\n\
         #include_next <{name}>\n\
         #ifdef FLIPWAVE_PUSHED\n{PUSH}#endif\n"
    )
}

/// Gives functions internal linkage.
pub const PUSH: &str =
    "#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)\n";

/// Macros that set the parameters of a tool. A number or an enumerator is also passed as a text, because only
/// the file knows the kind of a parameter.
pub fn parameter_macros(file: &ToolFile) -> Vec<(String, String)> {
    let mut macros = Vec::new();
    for (name, value) in &file.parameters {
        let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
        if !value.is_empty() && value.chars().all(is_simple) {
            macros.push((format!("FLIPWAVE_SET_{name}"), format!("~,{value}")));
        }
        macros.push((format!("FLIPWAVE_TEXT_{name}"), format!("~,{}", c_string(value))));
    }
    macros
}

/// Program of a host side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A tool with these functions, in addition to `flipwave_instrument`.
    Tool(Callbacks),
    /// A fault model.
    FaultModel,
}

/// Compiles and links a host side, or takes it from the cache.
///
/// # Errors
/// [`ToolError::Rejected`] with the compiler's messages, and [`ToolError::Hook`] if it cannot be run.
pub fn compile(
    file: &ToolFile,
    folders: &IncludeFolders,
    program: Program,
) -> Result<Vec<u8>, ToolError> {
    let text = program.text(file);
    let mut options = options(file, folders);
    let header_folders: &[&Path] = match program {
        Program::Tool(_) => &[&folders.host],
        Program::FaultModel => {
            // The GPU has no C library.
            options.extend(
                ["-DFLIPWAVE_FAULT_MODEL", "-nostdlibinc", "-ffp-contract=off"].map(OsString::from),
            );
            &[]
        }
    };
    for folder in header_folders {
        options.extend(["-I".into(), folder.into()]);
    }
    let clang = clang_path();
    let failed = |error: ChildError| {
        let clang = clang.clone();
        ToolError::Hook(match error {
            ChildError::Run(reason) => HookError::Clang { clang, reason },
            ChildError::Interrupted => HookError::Interrupted { clang },
        })
    };
    let version = clang_version(&clang).map_err(failed)?;
    let parts = options.iter().map(|option| option.as_encoded_bytes());
    let name = digest(parts.chain([version.as_bytes(), text.as_bytes()]));
    let (cache, name) = (Cache::find(), format!("{name}.host"));
    let is_cached = includes_known_files(&file.text);
    if is_cached && let Some(program) = cache.get(&name) {
        return Ok(program);
    }
    let unwritable = |reason: std::io::Error| failed(ChildError::Run(reason));
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let [object, path] = ["file.o", "host"].map(|name| folder.path().join(name));
    let run = |command: &mut Command, text: &str| {
        let output = flipwave_host::child::run(command, text.as_bytes()).map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Err(ToolError::Rejected { name: file.name.clone(), messages })
    };
    run(Command::new(&clang).args(&options).args(["-c", "-"]).arg("-o").arg(&object), &text)?;
    let mut link = Command::new(&clang);
    link.args(common_options()).arg("-include").arg(folders.common.join("flipwave.h"));
    run(link.arg("-o").arg(&path).arg(&folders.main).args(["-xnone"]).arg(&object).arg("-lm"), "")?;
    let program =
        flipwave_host::input::read(&path, flipwave_host::input::BINARY).map_err(unwritable)?;
    if is_cached {
        // Without a cache, the program is compiled again.
        let _ = cache.put(&name, &program);
    }
    Ok(program)
}

/// Options for all files of a program.
fn common_options() -> Vec<OsString> {
    let mut options: Vec<OsString> = [
        "-xc",
        "-std=gnu17",
        "-O1",
        "-gdwarf-4",
        "-gline-tables-only",
        // The GPU side has shown all warnings.
        "-w",
        // Hooks are parsed, but their functions do not exist on the host. The GPU side rejects functions
        // that are not declared.
        "-Wno-implicit-function-declaration",
        "-fno-omit-frame-pointer",
        "-fno-pie",
        "-no-pie",
        "-fuse-ld=lld",
        "-fno-color-diagnostics",
        "-fno-caret-diagnostics",
        "-DFLIPWAVE_HOST",
    ]
    .iter()
    .map(OsString::from)
    .collect();
    options.push(format!("-DFLIPWAVE_SECONDS={}", seconds()).into());
    options.push(format!("-DFLIPWAVE_MEMORY={MEMORY}").into());
    options
}

/// Options for the user's file.
fn options(file: &ToolFile, folders: &IncludeFolders) -> Vec<OsString> {
    let mut options = common_options();
    for (name, value) in parameter_macros(file) {
        options.push(format!("-D{name}={value}").into());
    }
    options.extend(["-include".into(), folders.common.join("flipwave.h").into()]);
    for folder in file.include.iter().chain([&folders.common]) {
        options.extend(["-I".into(), folder.into()]);
    }
    options
}

impl Program {
    /// The user's file, with a pointer to each function that `host.c` calls.
    fn text(self, file: &ToolFile) -> String {
        let name = c_string(&file.name);
        let (before, after, entries) = match self {
            Program::Tool(callbacks) => {
                let entry = |is_defined, name| if is_defined { name } else { "0" };
                let entries = [
                    "flipwave_instrument",
                    entry(callbacks.on_dispatch, "flipwave_on_dispatch"),
                    entry(callbacks.finish, "flipwave_finish"),
                    "0",
                    "0",
                ];
                let before = format!("#define FLIPWAVE_PUSHED\n{PUSH}");
                (before, "#pragma clang attribute pop\n", entries)
            }
            Program::FaultModel => {
                let entries = ["0", "0", "0", "flipwave_fault_word", "flipwave_fault_number"];
                (String::new(), "", entries)
            }
        };
        let [instrument, on_dispatch, finish, fault_word, fault_number] = entries;
        format!(
            "{before}# 1 {name}\n{}\n{after}\
             # 1 \"<flipwave>\"\n\
             void (*const flipwave_entry_instrument)(const flipwave_inst *) = {instrument};\n\
             bool (*const flipwave_entry_on_dispatch)(const flipwave_dispatch *) = {on_dispatch};\n\
             void (*const flipwave_entry_finish)(const flipwave_dispatch *) = {finish};\n\
             uint32_t (*const flipwave_entry_fault_word)(uint32_t, flipwave_fault) = {fault_word};\n\
             double (*const flipwave_entry_fault_number)(double, flipwave_fault) = {fault_number};\n",
            file.text,
        )
    }
}

/// Returns `true` if a text includes only files of Flipwave and of the C library.
fn includes_known_files(text: &str) -> bool {
    let known = || DEVICE_HEADERS.iter().map(|(name, _)| *name).chain(KNOWN_HEADERS);
    let is_known = |line: &str| known().any(|name| line.contains(&format!("<{name}>")));
    !text.contains("__DATE__")
        && !text.contains("__TIME")
        && !text.contains("??/")
        && text.lines().all(|line| {
            !["include", "embed", "import"].iter().any(|word| line.contains(word)) || is_known(line)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_known_headers_are_cached() {
        assert!(includes_known_files("#include <flipwave.h>\n#include <stdlib.h>\nint a;\n"));
        assert!(!includes_known_files("#include \"mine.h\"\n"));
        assert!(!includes_known_files("char now[] = __TIME__;\n"));
    }

    #[test]
    fn parameters_become_macros() {
        let file = ToolFile {
            name: "a.c".into(),
            text: String::new(),
            include: Vec::new(),
            parameters: vec![("a".into(), "-1".into()), ("b".into(), "x \"*\"".into())],
        };
        let expected = [
            ("FLIPWAVE_SET_a", "~,-1"),
            ("FLIPWAVE_TEXT_a", "~,\"-1\""),
            ("FLIPWAVE_TEXT_b", "~,\"x \\\"*\\\"\""),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parameter_macros(&file), expected);
    }
}
