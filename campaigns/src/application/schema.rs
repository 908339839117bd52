//! An application and its comparisons as the campaign file writes them.

use crate::element::ElementType;
use crate::schema::{Tolerance, unique_keys};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor, value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an application: a mapping with `command` and others")]
pub(crate) struct Application {
    pub command: Words,
    #[serde(default)]
    pub directory: PathBuf,
    #[serde(default, deserialize_with = "unique_keys")]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub input: Vec<PathBuf>,
    pub stdin: Option<PathBuf>,
    #[serde(default)]
    pub exit_code: u8,
    pub timeout: Option<String>,
    pub memory: Option<String>,
    pub output: Option<String>,
    pub golden_runs: Option<u32>,
    #[serde(default)]
    pub nondeterminism: Nondeterminism,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`error` or `allow`")]
pub(crate) enum Nondeterminism {
    #[default]
    Error,
    Allow,
}

/// One comparison, told apart by which of `stdout`, `stderr`, `file` and `check` is there. One
/// flat mapping instead of a choice, because the parser loses the position of errors inside that.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `stdout`, `stderr`, `file` or `check`")]
pub(crate) struct Comparison {
    pub stdout: Option<Stream>,
    pub stderr: Option<Stream>,
    pub file: Option<PathBuf>,
    pub check: Option<Words>,
    pub ignore: Option<Vec<String>>,
    pub tolerance: Option<Tolerance>,
    #[serde(rename = "type")]
    pub element: Option<ElementType>,
}

/// How standard output or standard error is compared: `exact`, or a mapping.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub ignore: Option<Vec<String>>,
    pub tolerance: Option<Tolerance>,
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Stream, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        #[serde(expecting = "a mapping with `ignore` and `tolerance`")]
        struct Mapping {
            ignore: Option<Vec<String>>,
            tolerance: Option<Tolerance>,
        }

        struct StreamVisitor;

        impl<'de> Visitor<'de> for StreamVisitor {
            type Value = Stream;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`exact`, or a mapping with `ignore` and `tolerance`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Stream, E> {
                match text {
                    "exact" => Ok(Stream::default()),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Stream, A::Error> {
                let mapping = value::MapAccessDeserializer::new(map);
                let Mapping { ignore, tolerance } = Mapping::deserialize(mapping)?;
                Ok(Stream { ignore, tolerance })
            }
        }

        deserializer.deserialize_any(StreamVisitor)
    }
}

/// A program and its arguments: a list, or the program alone.
#[derive(Debug)]
pub(crate) struct Words(pub Vec<String>);

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
