//! The campaign file as it is written: the shape only. What the values mean, and which of them
//! go together, is checked in [`crate::file::check`].

use crate::application::schema::{Application, Comparison};
use crate::file::device::CampaignDevice;
use crate::file::element::ElementName;
use crate::file::faults::Ends;
use crate::file::faults::written::Faults;
use crate::file::number::Number;
use crate::file::yaml::{some_singleton, unique_entries, unique_keys};
use crate::golden::suspicion::Suspicion;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A campaign of `flipwave`. Paths in it are relative to the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a campaign: a mapping with `name`, `workload` and others")]
#[schemars(title = "Flipwave campaign")]
pub(crate) struct File {
    /// The campaign's name: letters, digits, `-`, `_` and `.`. Results go to `NAME.results/`.
    pub name: String,
    /// Seed of buffer contents and of the fault sites.
    #[serde(default)]
    pub seed: u64,
    /// The GPU that code is compiled for and run on, as LLVM calls it.
    #[serde(default = "default_target")]
    pub target: String,
    /// What the program runs on while faults are injected.
    #[serde(default)]
    pub device: CampaignDevice,
    /// What faults are injected into.
    pub workload: Workload,
    /// What to inject. `flipwave tool` and `flipwave emulate` need none.
    pub faults: Option<Faults>,
    /// What the campaign may do though it is suspicious.
    #[serde(default)]
    pub allow: Vec<Suspicion>,
    /// Instructions that the target lacks.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// The same work without the instructions that the target lacks, to be compared.
    pub software: Option<Workload>,
    /// How outputs are compared; exactly, where nothing is said of one.
    pub compare: Option<Compare>,
    /// Who says of silent data corruption whether it is critical or tolerable.
    pub severity: Option<Severity>,
    /// In what form rows are written besides `results.csv`.
    #[serde(default)]
    pub format: ResultsFormat,
    /// Makes a campaign of each combination of values: a mapping from dimensions to their values.
    pub vary: Option<Vary>,
}

/// Who says of silent data corruption whether it is critical or tolerable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `python`, `command` and `socket`")]
#[schemars(extend(
    "oneOf" = [{"required": ["python"]}, {"required": ["command"]}, {"required": ["socket"]}]
))]
pub(crate) struct Severity {
    /// A function of Python, `FILE.py:FUNCTION`, which the package `flipwave` calls.
    pub python: Option<String>,
    /// A program and its arguments; it is asked by its standard input, which is a socket.
    #[schemars(extend("minItems" = 1))]
    pub command: Option<Vec<String>>,
    /// The Unix socket of a server.
    pub socket: Option<PathBuf>,
    /// How long an answer may take, the first one with the start of the program.
    #[schemars(extend("default" = JUDGE_TIMEOUT))]
    pub timeout: Option<String>,
}

/// How long an answer of a judge may take where the file does not say: it may load a model first.
pub(crate) const JUDGE_TIMEOUT: &str = "10 min";

/// What varies: by the name of each dimension its values. That is a list of values of the field that the
/// dimension is called after, like `faults.model`, or a mapping from names to mappings from fields to
/// values.
// What is in it is read with the file as a tree (crate::vary), where values are as they were written.
#[derive(Debug)]
pub(crate) struct Vary;

impl<'de> Deserialize<'de> for Vary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Vary, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Vary)
    }
}

impl JsonSchema for Vary {
    fn schema_name() -> Cow<'static, str> {
        "Vary".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What varies, by the name of each dimension: a list of values of the field \
                            of that name (`faults.model`), or a mapping from names of variants to \
                            mappings from fields to values.",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [
                {"type": "array", "minItems": 1},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}}
            ]}
        })
    }
}

/// The form of a campaign's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultsFormat {
    /// Text alone, `results.csv`.
    #[default]
    Csv,
    /// `results.parquet` besides: the same columns with their types, compressed.
    Parquet,
}

/// How outputs are compared: buffers by their names, or a list for an application.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Compare {
    /// Of kernels: how far the elements of an output may be off, by the buffer's name.
    Buffers(BTreeMap<String, Tolerance>),
    /// Of an application: what is compared. Standard output exactly, if nothing is listed.
    Application(Vec<Comparison>),
}

impl<'de> Deserialize<'de> for Compare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Compare, D::Error> {
        struct CompareVisitor;

        impl<'de> Visitor<'de> for CompareVisitor {
            type Value = Compare;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping from outputs to tolerances, or of an application a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Compare, A::Error> {
                unique_entries(map).map(Compare::Buffers)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Compare, A::Error> {
                let all = SeqAccessDeserializer::new(sequence);
                Vec::deserialize(all).map(Compare::Application)
            }
        }

        deserializer.deserialize_any(CompareVisitor)
    }
}

pub(crate) fn default_target() -> String {
    "gfx90a".to_owned()
}

/// Kernels, an application, or the recorded run of one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `kernel`, `dispatches`, `app` and `capture`")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Workload {
    /// One launch of a kernel.
    pub kernel: Option<Launch>,
    /// Launches of kernels, one after the other. They share buffers by name.
    pub dispatches: Option<Vec<Launch>>,
    /// An application, run in a process of its own for each fault.
    pub app: Option<Application>,
    /// A run of an application that `flipwave capture` has recorded.
    pub capture: Option<Capture>,
}

/// A run of an application that `flipwave capture` has recorded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `file` and `dispatches`")]
pub(crate) struct Capture {
    /// The file that `flipwave capture` has written.
    pub file: PathBuf,
    /// The first and the last of the dispatches that count, from 0: faults strike in them, and what
    /// they have written is compared. All, and what the host reads, if not said.
    pub dispatches: Option<Ends<u32>>,
}

/// A launch of a kernel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(
    expecting = "a launch: a mapping with `source` or `code_object`, `name`, `grid`, `workgroup`, `args`"
)]
#[schemars(extend(
    "oneOf" = [{"required": ["source"]}, {"required": ["code_object"]}],
    "anyOf" = [{"required": ["metadata"]}, {"required": ["name", "workgroup"]}],
    "dependentRequired" = {"metadata": ["code_object"]}
))]
pub(crate) struct Launch {
    /// OpenCL C (`.cl`) or HIP (`.hip`), compiled on the fly.
    pub source: Option<PathBuf>,
    /// Compiled code: an ELF file, an offload bundle or a HIP program.
    pub code_object: Option<PathBuf>,
    /// The compiler's flags.
    #[schemars(extend("default" = OPTIONS))]
    pub options: Option<Vec<String>>,
    /// What Triton says of a code object that it has made: the JSON file beside it in its cache.
    /// Gives the `name`, the `workgroup` and the `local_memory` where they are not said, and the two
    /// arguments for scratch memory after those in `args`.
    pub metadata: Option<PathBuf>,
    /// The kernel; of C++ functions the mangled name.
    pub name: Option<String>,
    /// What the launch is a part of, for example `layer0.attention.softmax`: results are grouped by it.
    pub label: Option<String>,
    /// Work-items in each dimension, or workgroups.
    pub grid: Grid,
    /// Work-items of a workgroup in each dimension, as many dimensions as the grid has.
    pub workgroup: Option<Extent>,
    /// Bytes of dynamic LDS to which no argument points, as HIP's `extern __shared__` and Triton's
    /// `shared`.
    pub local_memory: Option<u32>,
    /// Wave instructions after which the launch is said not to end without a fault.
    #[schemars(extend("default" = GOLDEN_INSTRUCTION_LIMIT))]
    pub instruction_limit: Option<u64>,
    /// The kernel's parameters, in order, without those that the compiler adds; `null` is the null
    /// pointer.
    #[serde(default)]
    pub args: Vec<Option<Argument>>,
}

/// The compiler's flags where a file names none.
pub(crate) const OPTIONS: [&str; 1] = ["-O3"];

/// The instruction limit of a launch for which the file says none: an hour or more on the embedded
/// GPU.
pub(crate) const GOLDEN_INSTRUCTION_LIMIT: u64 = 100_000_000_000;

/// A parameter of a kernel: a buffer, a scalar, or dynamic LDS.
// Distinguished by which of `buffer`, `scalar` and `local_memory` is there. One flat mapping
// instead of an untagged choice, because the parser loses the position of errors inside the latter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an argument: a mapping with `buffer`, `scalar` or `local_memory`")]
#[schemars(extend("oneOf" = [
    {"required": ["buffer"]}, {"required": ["scalar"]}, {"required": ["local_memory"]}
]))]
pub(crate) struct Argument {
    /// Pointer to the buffer of this name: defined here, or, with no other key, where it was used
    /// first.
    pub buffer: Option<String>,
    /// A value.
    pub scalar: Option<Number>,
    /// Pointer to this many bytes of dynamic LDS.
    pub local_memory: Option<u32>,
    /// Type of the scalar or of the buffer's elements.
    #[serde(rename = "type")]
    pub element: Option<ElementName>,
    /// Number of elements.
    pub count: Option<u64>,
    /// Dimensions of an output, one to three, the last that of neighbours in memory. Results say then
    /// where in it wrong elements lie.
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub shape: Option<Vec<u64>>,
    /// What the buffer holds before the first launch.
    #[serde(default, deserialize_with = "some_singleton")]
    #[schemars(with = "Init", extend("default" = "zeros"))]
    pub init: Option<Init>,
    /// Whether it holds results, which are compared.
    pub output: Option<bool>,
    /// Of an output: the file of what it must hold after the fault-free run, as far as `compare` says;
    /// a regular file of the buffer's size, elements little-endian.
    pub expected: Option<PathBuf>,
    /// Whether it holds the verdict of the program's own check.
    pub detector: Option<bool>,
}

/// What a buffer holds before the first launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Init {
    /// Zero bytes.
    Zeros,
    /// The same number everywhere.
    Value(Number),
    /// Evenly spaced numbers.
    Range(Range),
    /// Random numbers from the first to the second, which is included for integers.
    Uniform(Number, Number),
    /// The bytes of a regular file of the buffer's size, elements little-endian.
    File(PathBuf),
}

/// Evenly spaced numbers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `start` and `step`")]
pub(crate) struct Range {
    /// Element 0.
    pub start: Number,
    /// How much each element is more than the one before.
    pub step: Number,
}

/// An instruction that the target lacks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an instruction: a mapping with `name`, `proxy`, `hook` and others")]
pub(crate) struct Instruction {
    /// Its name, in reports: letters, digits and `_`.
    pub name: String,
    /// What stands in its place, as the assembler writes it, with names of operands in place of
    /// registers.
    pub proxy: String,
    /// The operands that have names, and the registers that each takes: for example `vgpr`, or
    /// `vgpr x2`.
    #[serde(default, deserialize_with = "unique_keys")]
    pub operands: BTreeMap<String, String>,
    /// What it does.
    pub hook: Hook,
    /// The lanes that the hook runs in.
    #[serde(default)]
    pub lanes: Lanes,
    /// Which instructions that fit the proxy are meant.
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

/// What an instruction does, in C.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `source` and `function`")]
pub(crate) struct Hook {
    /// The file.
    pub source: PathBuf,
    /// The function, whose parameters are called as the operands that it reads.
    pub function: String,
}

/// The lanes that a hook runs in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`active` or `all`")]
pub(crate) enum Lanes {
    /// Those that EXEC selects.
    #[default]
    Active,
    /// All of the wave.
    All,
}

/// Which instructions that fit a proxy are meant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`marked` or `all`")]
pub(crate) enum Matching {
    /// Those that `FLIPWAVE_PROXY` has written.
    #[default]
    Marked,
    /// All.
    All,
}

/// How far elements may be off. Of several limits an element need meet one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `exact`, `absolute`, `relative` or `ulp`")]
pub(crate) struct Tolerance {
    /// Not at all.
    pub exact: Option<bool>,
    /// By this.
    pub absolute: Option<f64>,
    /// By this part of the fault-free element.
    pub relative: Option<f64>,
    /// By this many units in the last place.
    pub ulp: Option<u64>,
}

/// What is launched: so many work-items, or so many workgroups.
#[derive(Debug, PartialEq)]
pub(crate) enum Grid {
    /// Work-items in each dimension, `[256, 4]`.
    WorkItems(Extent),
    /// Workgroups in each dimension, `{workgroups: [4, 4]}`.
    Workgroups(Extent),
}

/// A grid in workgroups.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `workgroups`")]
struct InWorkgroups {
    /// Workgroups in each dimension.
    workgroups: Extent,
}

impl JsonSchema for Grid {
    fn schema_name() -> Cow<'static, str> {
        "Grid".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Work-items in each dimension, or workgroups.",
            "anyOf": [generator.subschema_for::<Extent>(), generator.subschema_for::<InWorkgroups>()]
        })
    }
}

impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Grid, D::Error> {
        struct GridVisitor;

        impl<'de> Visitor<'de> for GridVisitor {
            type Value = Grid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of work-items, a list of one to three of them, or a mapping with `workgroups`")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Grid, E> {
                Extent::deserialize(value.into_deserializer()).map(Grid::WorkItems)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Grid, A::Error> {
                Extent::deserialize(SeqAccessDeserializer::new(sequence)).map(Grid::WorkItems)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Grid, A::Error> {
                let own = InWorkgroups::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Grid::Workgroups(own.workgroups))
            }
        }

        deserializer.deserialize_any(GridVisitor)
    }
}

/// One to three dimensions, as written: `256` or `[256, 4]`.
#[derive(Debug, PartialEq)]
pub(crate) struct Extent(pub Vec<u32>);

impl JsonSchema for Extent {
    fn schema_name() -> Cow<'static, str> {
        "Extent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<u32>();
        json_schema!({
            "description": "One to three dimensions: `256` or `[256, 4]`.",
            "anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": 3}]
        })
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Extent, D::Error> {
        struct ExtentVisitor;

        impl<'de> Visitor<'de> for ExtentVisitor {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of work-items or a list of one to three of them")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Extent, E> {
                let extent = u32::try_from(value).map_err(|_| {
                    E::custom(format!("{value} work-items; at most {} are possible", u32::MAX))
                })?;
                Ok(Extent(vec![extent]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Extent, A::Error> {
                let mut extents = Vec::new();
                while let Some(extent) = sequence.next_element()? {
                    extents.push(extent);
                }
                Ok(Extent(extents))
            }
        }

        deserializer.deserialize_any(ExtentVisitor)
    }
}
