//! Schema of applications and their comparisons in campaign files.

use crate::file::element::ElementName;
use crate::file::schema::Tolerance;
use crate::file::yaml::unique_keys;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// An application. Each injection runs it in a new process.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an application: a mapping with `command` and others")]
pub(crate) struct Application {
    /// The program, which is searched for in `directory` or PATH, and its arguments.
    pub command: Words,
    /// Folder of programs and inputs. Runs do not write to it.
    #[serde(default)]
    pub directory: PathBuf,
    /// The target process, if several processes of the application dispatch kernels.
    pub process: Option<Process>,
    /// Number of GPUs that each process finds.
    #[schemars(extend("default" = GPUS))]
    pub gpus: Option<u32>,
    /// The GPU whose kernels get faults, counted from 0.
    #[schemars(extend("default" = 0))]
    pub gpu: Option<u32>,
    /// Names or patterns of kernels that get no faults and are not replayed, such as those that wait
    /// for another GPU or process.
    #[serde(default)]
    pub ignored_kernels: Vec<String>,
    /// Variables to add to PATH, HOME, TMPDIR, LANG, LC_ALL and TZ.
    #[serde(default, deserialize_with = "unique_keys")]
    #[schemars(with = "BTreeMap<String, Text>")]
    pub environment: BTreeMap<String, String>,
    /// Files and folders in `directory` to copy into the folder of each run.
    #[serde(default)]
    pub input: Vec<PathBuf>,
    /// File for standard input, which is empty without one.
    pub stdin: Option<PathBuf>,
    /// Exit code of a correct run.
    #[serde(default)]
    pub exit_code: u8,
    /// Time limit of a run, such as `60 s`. The default is 10 times the longest golden run, and at
    /// least 30 s.
    pub timeout: Option<String>,
    /// Memory limit of all processes of a run.
    #[schemars(extend("default" = MEMORY))]
    pub memory: Option<String>,
    /// Size limit of standard output, of standard error, and of all files of a run.
    #[schemars(extend("default" = OUTPUT))]
    pub output: Option<String>,
    /// Number of golden runs to execute and compare.
    #[schemars(extend("default" = GOLDEN_RUNS))]
    pub golden_runs: Option<u32>,
    /// Treatment of differences between golden runs.
    #[serde(default)]
    pub nondeterminism: Nondeterminism,
}

/// A process of an application, selected by one of its properties.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `rank`, `index` and `command`")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Process {
    /// The MPI rank.
    pub rank: Option<u32>,
    /// The index among the processes that dispatch kernels, in the order in which they start.
    pub index: Option<u32>,
    /// A part of the program and its arguments.
    pub command: Option<String>,
}

/// Default number of GPUs.
pub(super) const GPUS: u32 = 1;

/// Default memory limit.
pub(super) const MEMORY: &str = "8 GiB";

/// Default output limit.
pub(super) const OUTPUT: &str = "1 GiB";

/// Default number of golden runs.
pub(super) const GOLDEN_RUNS: u32 = 3;

/// Treatment of differences between golden runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`error` or `allow`")]
pub(crate) enum Nondeterminism {
    /// Differences are an error, except in ignored lines.
    #[default]
    Error,
    /// Differences within the tolerances are allowed.
    Allow,
}

/// A compared output, or a check to run.
// A flat mapping with optional `stdout`, `stderr`, `file` and `check` instead of an enum, because
// the parser loses the position of errors inside enums.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `stdout`, `stderr`, `file` or `check`")]
#[schemars(extend("oneOf" = [
    {"required": ["stdout"]}, {"required": ["stderr"]}, {"required": ["file"]},
    {"required": ["check"]}
]))]
pub(crate) struct Comparison {
    /// Standard output.
    pub stdout: Option<Stream>,
    /// Standard error.
    pub stderr: Option<Stream>,
    /// A file in the folder of the run.
    pub file: Option<PathBuf>,
    /// A program and its arguments. It accepts a run with exit code 0, and rejects it with 1.
    pub check: Option<Words>,
    /// Regular expressions of lines to ignore, for text files.
    pub ignore: Option<Vec<String>>,
    /// Tolerance of the numbers in the file.
    pub tolerance: Option<Tolerance>,
    /// Type of the elements of a binary file, which are little-endian. Without a type, the file is
    /// text.
    #[serde(rename = "type")]
    pub element: Option<ElementName>,
    /// One to three dimensions of a binary file's elements. The last index is contiguous in the
    /// file.
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub shape: Option<Vec<u64>>,
}

/// Exceptions from the exact comparison of standard output or standard error.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `ignore` and `tolerance`")]
pub(crate) struct Inexact {
    /// Regular expressions of lines to ignore.
    pub ignore: Option<Vec<String>>,
    /// Tolerance of the numbers in the text.
    pub tolerance: Option<Tolerance>,
}

/// Comparison of standard output or standard error: `exact`, or a mapping.
#[derive(Debug)]
pub(crate) struct Stream(pub Inexact);

impl JsonSchema for Stream {
    fn schema_name() -> Cow<'static, str> {
        "Stream".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"const": "exact"}, generator.subschema_for::<Inexact>()]})
    }
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Stream, D::Error> {
        struct StreamVisitor;

        impl<'de> Visitor<'de> for StreamVisitor {
            type Value = Stream;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`exact`, or a mapping with `ignore` and `tolerance`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Stream, E> {
                match text {
                    "exact" => Ok(Stream(Inexact::default())),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Stream, A::Error> {
                Inexact::deserialize(value::MapAccessDeserializer::new(map)).map(Stream)
            }
        }

        deserializer.deserialize_any(StreamVisitor)
    }
}

/// A program and its arguments: a list, or the program alone.
#[derive(Debug)]
pub(crate) struct Words(pub Vec<String>);

impl JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<Text>();
        json_schema!({
            "description": "A program alone, or a list of a program and its arguments.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": word, "minItems": 1}]
        })
    }
}

/// Text that may look like a number, or like `true` or `false`, without quotes.
struct Text;

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        struct WordsVisitor;

        impl<'de> Visitor<'de> for WordsVisitor {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program, or a list of a program and its arguments")
            }

            fn visit_str<E: de::Error>(self, program: &str) -> Result<Words, E> {
                Ok(Words(vec![program.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = sequence.next_element()? {
                    words.push(word);
                }
                Ok(Words(words))
            }
        }

        deserializer.deserialize_any(WordsVisitor)
    }
}
