//! The key `detector` of a campaign file.

use crate::file::location::{Field, FieldError, reject};
use crate::file::yaml::unique_keys;
use flipwave_tools::ToolFile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Tool whose hooks check the program: faults that it finds are `detected`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `c`")]
pub(crate) struct Detector {
    /// C file of the tool, which declares a `FLIPWAVE_DETECTOR`.
    pub c: PathBuf,
    /// Values of the tool's parameters.
    #[serde(default, deserialize_with = "unique_keys")]
    pub set: BTreeMap<String, Parameter>,
}

/// The value of a parameter: an integer or a text.
#[derive(Debug)]
pub(crate) struct Parameter(String);

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        struct ParameterVisitor;

        impl Visitor<'_> for ParameterVisitor {
            type Value = Parameter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or a text")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Parameter, E> {
                Ok(Parameter(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Parameter, E> {
                Ok(Parameter(value.to_string()))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Parameter, E> {
                Ok(Parameter(value.to_owned()))
            }
        }

        deserializer.deserialize_any(ParameterVisitor)
    }
}

impl JsonSchema for Parameter {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Parameter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "string"]})
    }
}

/// Reads the file of a detector, relative to `directory`.
pub(crate) fn check_detector(detector: Detector, directory: &Path) -> Result<ToolFile, FieldError> {
    let field = Field::root().key("detector");
    let file = ToolFile::read(&directory.join(detector.c));
    let mut file = file.or_else(|error| reject(&field.key("c"), error.to_string()))?;
    let parameters = detector.set.into_iter();
    file.parameters = parameters.map(|(name, Parameter(value))| (name, value)).collect();
    Ok(file)
}
