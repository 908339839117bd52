//! An application and its comparisons as the campaign file writes them.

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

/// An application, run in a process of its own for each fault.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an application: a mapping with `command` and others")]
pub(crate) struct Application {
    /// The program, found from `directory` or in PATH, and its arguments.
    pub command: Words,
    /// Where programs and inputs are found. No run writes there.
    #[serde(default)]
    pub directory: PathBuf,
    /// The process that faults strike, of an application in which several dispatch kernels.
    pub process: Option<Process>,
    /// Variables added to PATH, HOME, TMPDIR, LANG, LC_ALL and TZ.
    #[serde(default, deserialize_with = "unique_keys")]
    #[schemars(with = "BTreeMap<String, Text>")]
    pub environment: BTreeMap<String, String>,
    /// Files and folders in `directory`, copied into the folder of each run.
    #[serde(default)]
    pub input: Vec<PathBuf>,
    /// The file that is standard input; empty without.
    pub stdin: Option<PathBuf>,
    /// What the program ends with when all is well.
    #[serde(default)]
    pub exit_code: u8,
    /// How long a run may take, for example `60 s`: 10 times the longest run without a fault, and
    /// 30 s at least, if not said.
    pub timeout: Option<String>,
    /// How much memory all processes of a run may take together.
    #[schemars(extend("default" = MEMORY))]
    pub memory: Option<String>,
    /// How much a run may write to each of standard output, standard error, and files together.
    #[schemars(extend("default" = OUTPUT))]
    pub output: Option<String>,
    /// How many runs without a fault are made and compared.
    #[schemars(extend("default" = GOLDEN_RUNS))]
    pub golden_runs: Option<u32>,
    /// What it means that runs without a fault differ.
    #[serde(default)]
    pub nondeterminism: Nondeterminism,
}

/// A process of an application, by one of its properties.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `rank`, `index` and `command`")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Process {
    /// The MPI rank.
    pub rank: Option<u32>,
    /// The index among those that dispatch kernels, in the order in which they start.
    pub index: Option<u32>,
    /// A part of its program and arguments.
    pub command: Option<String>,
}

/// Memory that a run may take if the file does not say.
pub(super) const MEMORY: &str = "8 GiB";

/// How much a run may write if the file does not say.
pub(super) const OUTPUT: &str = "1 GiB";

/// Runs without a fault if the file does not say.
pub(super) const GOLDEN_RUNS: u32 = 3;

/// What it means that runs without a fault differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`error` or `allow`")]
pub(crate) enum Nondeterminism {
    /// It is an error, unless they differ in ignored lines only.
    #[default]
    Error,
    /// It is none while they keep the tolerances.
    Allow,
}

/// One thing that is compared, or a check that is run.
// Distinguished by which of `stdout`, `stderr`, `file` and `check` is there. One flat mapping
// instead of a choice, because the parser loses the position of errors inside that.
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
    /// A program that ends with 0 where the run is right and with 1 where it is wrong, and its
    /// arguments.
    pub check: Option<Words>,
    /// Of a text file: regular expressions of lines that are left out.
    pub ignore: Option<Vec<String>>,
    /// How far numbers in the file may be off.
    pub tolerance: Option<Tolerance>,
    /// Type of the elements of a binary file, which are little-endian. Without, it is text.
    #[serde(rename = "type")]
    pub element: Option<ElementName>,
    /// Dimensions of a binary file's elements, one to three, the last that of neighbours in the file.
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub shape: Option<Vec<u64>>,
}

/// What of standard output or standard error is not compared exactly.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `ignore` and `tolerance`")]
pub(crate) struct Inexact {
    /// Regular expressions of lines that are left out.
    pub ignore: Option<Vec<String>>,
    /// How far numbers in the text may be off.
    pub tolerance: Option<Tolerance>,
}

/// How standard output or standard error is compared: `exact`, or a mapping.
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
