//! Compilation of hooks from C to bodies.

use super::clang::Clang;
use super::object::Object;
use super::self_contained::is_self_contained;
use super::signature::{Declarations, Signature};
use super::{Body, EntryPoint, HookData, HookError, body, wrapper};
use flipwave_host::cache::Cache;
use flipwave_isa::{Isa, Target};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The header for hooks.
pub const HEADER: &str = include_str!("../../include/flipwave.h");

/// A source file of hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Include folders.
    pub include: Vec<PathBuf>,
    /// Macros: names and values.
    pub defines: Vec<(String, String)>,
}

impl Source {
    /// Reads a source file. Its folder becomes an include folder.
    ///
    /// # Errors
    /// [`HookError::Source`].
    pub fn read(file: &Path) -> Result<Source, HookError> {
        let text = flipwave_host::input::read_text(file, flipwave_host::input::TEXT)
            .map_err(|reason| HookError::Source { file: file.to_owned(), reason })?;
        Ok(Source {
            name: file.display().to_string(),
            text,
            include: file.parent().map(Path::to_owned).into_iter().collect(),
            defines: Vec::new(),
        })
    }
}

/// A preprocessed source for a target, with the signatures of its functions.
#[derive(Clone, Debug)]
pub struct HookSource {
    name: String,
    target: Target,
    wave_size: u8,
    options: Vec<OsString>,
    /// The preprocessed text.
    text: String,
    declarations: Declarations,
}

impl HookSource {
    /// The function with a name.
    ///
    /// # Errors
    /// [`HookError::NoFunction`].
    pub fn function(&self, name: &str) -> Result<&Signature, HookError> {
        self.functions().find(|function| function.name == name).ok_or_else(|| {
            HookError::NoFunction {
                source_name: self.name.clone(),
                function: name.to_owned(),
                present: self.functions().map(|function| function.name.clone()).collect(),
            }
        })
    }

    /// Functions that the source defines, without those of the header.
    pub fn functions(&self) -> impl Iterator<Item = &Signature> {
        self.declarations.hooks()
    }

    /// Returns `true` if the source defines a function, including those with names of the header.
    pub fn defines(&self, name: &str) -> bool {
        self.declarations.defines(name)
    }

    /// The declarations.
    pub fn declarations(&self) -> &Declarations {
        &self.declarations
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The wave size.
    pub fn wave_size(&self) -> u8 {
        self.wave_size
    }
}

/// Hooks compiled for a target.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledHooks {
    /// The body of each entry point.
    pub bodies: Vec<Body>,
    /// Variables and constants of the source, which all bodies share.
    pub data: HookData,
}

/// Compiles hooks with clang and caches the results.
#[derive(Clone, Debug)]
pub struct HookCompiler {
    clang: Clang,
    cache: Cache,
    /// Sources read so far, shared by clones: reading a source takes as long as compiling it.
    read: Arc<Mutex<ReadSources>>,
}

/// Sources by source, target and wave size.
type ReadSources = HashMap<(Source, String, u8), HookSource>;

impl HookCompiler {
    /// Finds clang ([`clang_path`](super::clang_path)) and the cache (`FLIPWAVE_CACHE`, or `flipwave` in the
    /// user's cache folder).
    ///
    /// # Errors
    /// [`HookError::Clang`].
    pub fn find() -> Result<HookCompiler, HookError> {
        Ok(HookCompiler { clang: Clang::find()?, cache: Cache::find(), read: Arc::default() })
    }

    /// Reads a source for a target and a wave size: its functions and their parameters. A source that was
    /// read before is not read again, even if files that it includes have changed.
    ///
    /// # Errors
    /// [`HookError::Rejected`] if it does not compile, [`HookError::Unsupported`] if it has variables in LDS,
    /// [`HookError::Clang`], and [`HookError::Cache`].
    pub fn read(
        &self,
        source: &Source,
        target: &Target,
        wave_size: u8,
    ) -> Result<HookSource, HookError> {
        let all = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.clone(), target.to_string(), wave_size);
        let known = all().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let read = self.read_uncached(source, target, wave_size)?;
        all().insert(key, read.clone());
        Ok(read)
    }

    fn read_uncached(
        &self,
        source: &Source,
        target: &Target,
        wave_size: u8,
    ) -> Result<HookSource, HookError> {
        let options = Clang::options(target, wave_size);
        let header = format!("include-{}/flipwave.h", &digest([HEADER.as_bytes()])[..16]);
        let header = self.cache.file(&header, HEADER.as_bytes()).map_err(|reason| {
            HookError::Cache { path: self.cache.folder().join(&header), reason }
        })?;
        let mut preprocess = options.clone();
        preprocess.extend(["-xc".into(), "-E".into(), "-include".into(), header.clone().into()]);
        for folder in source.include.iter().map(PathBuf::as_path).chain(header.parent()) {
            preprocess.extend(["-I".into(), folder.into()]);
        }
        for (name, value) in &source.defines {
            preprocess.push(format!("-D{name}={value}").into());
        }
        let mut read = HookSource {
            name: source.name.clone(),
            target: target.clone(),
            wave_size,
            options,
            text: format!("# 1 {}\n{}\n", c_string(&source.name), source.text),
            declarations: Declarations::default(),
        };
        let text = if is_self_contained(&source.text) {
            self.cached(&read, "i", preprocess, &read.text)?
        } else {
            self.run(&read, preprocess, &read.text)?
        };
        // Hooks of any size are inlined into their wrappers, and not emitted separately.
        read.text = format!(
            "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n\
             #pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)\n\
             {}\n#pragma clang attribute pop\n#pragma clang attribute pop\n",
            String::from_utf8_lossy(&text)
        );
        let declarations =
            self.compile_text(&read, "json", &["-fsyntax-only", "-Xclang", "-ast-dump=json"], "")?;
        let declarations =
            Declarations::parse(&declarations).map_err(|error| read.output(&error))?;
        if let Some(variable) = declarations.lds.first() {
            return Err(HookError::Unsupported {
                function: variable.clone(),
                reason: "is in LDS, which belongs to the kernel: hooks have no LDS".into(),
            });
        }
        read.declarations = declarations;
        Ok(read)
    }

    /// Compiles entry points of a source.
    ///
    /// # Errors
    /// [`HookError::Unsupported`] for unsupported features, and all errors of [`HookCompiler::read`].
    pub fn compile(
        &self,
        source: &HookSource,
        entries: &[EntryPoint],
    ) -> Result<CompiledHooks, HookError> {
        let called: Vec<(&EntryPoint, &Signature)> = entries
            .iter()
            .map(|entry| Ok((entry, source.function(&entry.function)?)))
            .collect::<Result<_, HookError>>()?;
        let wrappers = wrapper::text(&called)?;
        let bytes = self
            .compile_text(source, "o", &["-c"], &wrappers)
            .map_err(|error| explain(error, &called))?;
        let object = Object::parse(&bytes).map_err(|error| source.output(&error))?;
        let isa = Isa::with_wave_size(&source.target, source.wave_size)?;
        let mut bodies = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let code = object.code(&wrapper::name(index)).map_err(|error| source.output(&error))?;
            bodies.push(body::build(&isa, &entry.function, code, entry.pins()?)?);
        }
        Ok(CompiledHooks { bodies, data: object.data })
    }

    /// Compiles a source with `more` appended, and caches the output in a file with the extension `suffix`.
    fn compile_text(
        &self,
        source: &HookSource,
        suffix: &str,
        options: &[&str],
        more: &str,
    ) -> Result<Vec<u8>, HookError> {
        let mut arguments = source.options.clone();
        arguments.push("-xcpp-output".into());
        arguments.extend(options.iter().map(OsString::from));
        let text = format!("{}{more}", source.text);
        self.cached(source, suffix, arguments, &text)
    }

    /// Compiles a text without includes, and caches the output in a file with the extension `suffix`.
    fn cached(
        &self,
        source: &HookSource,
        suffix: &str,
        arguments: Vec<OsString>,
        text: &str,
    ) -> Result<Vec<u8>, HookError> {
        let parts = [self.clang.version.as_bytes(), text.as_bytes()];
        let name = digest(
            parts.into_iter().chain(arguments.iter().map(|argument| argument.as_encoded_bytes())),
        );
        let name = format!("{name}.{suffix}");
        if let Some(output) = self.cache.get(&name) {
            return Ok(output);
        }
        let output = self.run(source, arguments, text)?;
        let failed = |reason| HookError::Cache { path: self.cache.path(&name), reason };
        self.cache.put(&name, &output).map_err(failed)?;
        Ok(output)
    }

    fn run(
        &self,
        source: &HookSource,
        options: Vec<OsString>,
        text: &str,
    ) -> Result<Vec<u8>, HookError> {
        self.clang.run(&options, text)?.map_err(|messages| HookError::Rejected {
            source_name: source.name.clone(),
            target: source.target.to_string(),
            messages,
        })
    }
}

impl HookSource {
    /// An error for unexpected compiler output.
    fn output(&self, reason: &dyn std::fmt::Display) -> HookError {
        HookError::Output { source_name: self.name.clone(), reason: reason.to_string() }
    }
}

/// Hexadecimal SHA-256 digest of `parts` and their lengths, for names of cached files.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text as a C string literal.
pub fn c_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Converts failed size assertions of wrappers to errors about arguments and results. Only the compiler
/// knows the sizes.
fn explain(error: HookError, called: &[(&EntryPoint, &Signature)]) -> HookError {
    let HookError::Rejected { messages, .. } = &error else { return error };
    let Some((_, rest)) = messages.split_once("flipwave: ") else { return error };
    let mut words = rest.split([' ', '\n']);
    let called = words
        .next()
        .and_then(|index| index.parse::<usize>().ok())
        .and_then(|index| called.get(index));
    let Some((entry, signature)) = called else { return error };
    // "expression evaluates to '4 == 2'": words of the type and words of the argument.
    let sizes = messages
        .split_once("expression evaluates to '")
        .and_then(|(_, sizes)| sizes.split_once('\''))
        .and_then(|(sizes, _)| sizes.split_once(" == "));
    let Some((type_words, given)) = sizes else { return error };
    let function = entry.function.clone();
    match (words.next(), words.next().and_then(|at| at.trim_end_matches('"').parse().ok())) {
        (Some("argument"), Some(at)) => {
            let parameter = signature.parameters.get::<usize>(at).map(ToString::to_string);
            HookError::Argument {
                function,
                parameter: parameter.unwrap_or_default(),
                reason: format!("takes {type_words} registers, {given} are given"),
            }
        }
        _ => HookError::Results {
            function,
            reason: format!(
                "returns {} in {type_words} registers, but the call provides {given}",
                signature.result
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_names_are_quoted_for_c() {
        assert_eq!(c_string("bits_register.c"), r#""bits_register.c""#);
        assert_eq!(c_string("a \"b\"\\c.c"), r#""a \"b\"\\c.c""#);
    }
}
