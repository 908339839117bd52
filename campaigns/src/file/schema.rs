//! The YAML form of a campaign file. [`crate::file::check`] validates values and their combinations. The
//! doc comments of fields are part of the JSON schema and of `docs/reference-keys.md`.

use crate::application::schema::{Application, Comparison};
use crate::file::detector::Detector;
use crate::file::device::CampaignDevice;
use crate::file::element::ElementName;
use crate::file::faults::Ends;
use crate::file::faults::written::Faults;
use crate::file::number::Number;
use crate::file::yaml::{some_singleton, unique_entries, unique_keys};
use crate::golden::suspicion::Suspicion;
use crate::program::heap::DEFAULT_BYTES;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A campaign of `flipwave`. Paths are relative to the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a campaign: a mapping with `name`, `workload` and others")]
#[schemars(title = "Flipwave campaign")]
pub(crate) struct File {
    /// Name of the campaign: letters, digits, `-`, `_` and `.`. Results are written to `NAME.results/`.
    pub name: String,
    /// Seed of random buffer contents and of fault sites.
    #[serde(default)]
    pub seed: u64,
    /// GPU that the code is compiled for and executed on, by its LLVM name.
    #[serde(default = "default_target")]
    pub target: String,
    /// Device that executes the program during injections.
    #[serde(default)]
    pub device: CampaignDevice,
    /// Program that faults are injected into.
    pub workload: Workload,
    /// Faults to inject. `flipwave tool` and `flipwave emulate` do not need them.
    pub faults: Option<Faults>,
    /// Suspicious properties that are permitted. Without permission, they are errors.
    #[serde(default)]
    pub allow: Vec<Suspicion>,
    /// Proxy instructions, which the target does not have and Flipwave emulates.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    /// A version of the program without proxy instructions. `flipwave emulate` compares its outputs.
    pub software: Option<Workload>,
    /// Tool whose hooks check the program: faults that it finds are `detected`.
    pub detector: Option<Detector>,
    /// Comparison of outputs. Outputs that are not listed are compared exactly.
    pub compare: Option<Compare>,
    /// Judge that rates silent data corruption as critical or tolerable.
    pub severity: Option<Severity>,
    /// File format of the rows, in addition to `results.csv`.
    #[serde(default)]
    pub format: ResultsFormat,
    /// Parameter sweep: runs a campaign for each combination of values.
    pub vary: Option<Vary>,
}

/// Judge that rates silent data corruption as critical or tolerable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `python`, `command` and `socket`")]
#[schemars(extend(
    "oneOf" = [{"required": ["python"]}, {"required": ["command"]}, {"required": ["socket"]}]
))]
pub(crate) struct Severity {
    /// Python function, `FILE.py:FUNCTION`. The Python package `flipwave` calls it.
    pub python: Option<String>,
    /// Program and arguments. The program receives questions on its standard input, which is a socket.
    #[schemars(extend("minItems" = 1))]
    pub command: Option<Vec<String>>,
    /// Unix socket of a server.
    pub socket: Option<PathBuf>,
    /// Time limit of an answer. For the first answer, it includes the start of the program.
    #[schemars(extend("default" = JUDGE_TIMEOUT))]
    pub timeout: Option<String>,
}

/// Default time limit of a judge's answer. It allows for loading a model.
pub(crate) const JUDGE_TIMEOUT: &str = "10 min";

/// Dimensions of a parameter sweep. Each is a list of values of the field that the dimension is named
/// after, like `faults.model`, or a mapping from names to mappings from fields to values.
// crate::vary reads the content from the file as a tree, which preserves the spelling of values.
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
            "description": "Dimensions of a parameter sweep. Each is a list of values of the field that \
                            the dimension is named after (`faults.model`), or a mapping from names of \
                            variants to mappings from fields to values.",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [
                {"type": "array", "minItems": 1},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}}
            ]}
        })
    }
}

/// File format of the rows of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultsFormat {
    /// Only text, `results.csv`.
    #[default]
    Csv,
    /// Also `results.parquet`, with typed and compressed columns.
    Parquet,
}

/// Comparison of outputs: a mapping for kernels, a list for applications.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Compare {
    /// For kernels: tolerances by buffer name.
    Buffers(BTreeMap<String, Tolerance>),
    /// For an application: the outputs that are compared. The default is an exact comparison of standard
    /// output.
    Application(Vec<Comparison>),
}

impl<'de> Deserialize<'de> for Compare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Compare, D::Error> {
        struct CompareVisitor;

        impl<'de> Visitor<'de> for CompareVisitor {
            type Value = Compare;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping from outputs to tolerances, or for an application a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Compare, A::Error> {
                unique_entries(map).map(Compare::Buffers)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Compare, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(sequence)).map(Compare::Application)
            }
        }

        deserializer.deserialize_any(CompareVisitor)
    }
}

pub(crate) fn default_target() -> String {
    "gfx90a".to_owned()
}

/// Kernels, an application, or a recorded run of an application.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `kernel`, `dispatches`, `app` and `capture`")]
#[schemars(extend("oneOf" = [
    {"required": ["kernel"]}, {"required": ["dispatches"]}, {"required": ["app"]},
    {"required": ["capture"]}
]))]
pub(crate) struct Workload {
    /// A single kernel launch.
    pub kernel: Option<Launch>,
    /// A sequence of kernel launches, which share buffers by name.
    pub dispatches: Option<Vec<Launch>>,
    /// For kernels: buffers that are not arguments themselves. Pointers in arguments and in other buffers
    /// refer to them.
    #[serde(default)]
    pub buffers: Vec<Argument>,
    /// For kernels: bytes of memory for device-side `malloc`, if a kernel uses it.
    #[schemars(extend("default" = DEFAULT_BYTES))]
    pub heap: Option<u64>,
    /// An application. Each injection runs it in a new process.
    pub app: Option<Application>,
    /// A run of an application recorded by `flipwave capture`.
    pub capture: Option<Capture>,
}

/// A run of an application recorded by `flipwave capture`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `file` and `dispatches`")]
pub(crate) struct Capture {
    /// File written by `flipwave capture`.
    pub file: PathBuf,
    /// First and last dispatch, counted from 0, that faults are injected into. The memory that these
    /// dispatches write is compared. By default, faults are injected into all dispatches, and the memory
    /// that the host reads is compared.
    pub dispatches: Option<Ends<u32>>,
}

/// A kernel launch.
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
    /// Source file in OpenCL C (`.cl`) or HIP (`.hip`). Flipwave compiles it.
    pub source: Option<PathBuf>,
    /// Compiled code: an ELF file, an offload bundle or a HIP program.
    pub code_object: Option<PathBuf>,
    /// Compiler options.
    #[schemars(extend("default" = OPTIONS))]
    pub options: Option<Vec<String>>,
    /// JSON file that Triton writes next to a code object in its cache. It provides defaults for `name`,
    /// `workgroup` and `local_memory`, and the two scratch memory arguments that follow `args`.
    pub metadata: Option<PathBuf>,
    /// Name of the kernel; for C++ functions the mangled name.
    pub name: Option<String>,
    /// Label for grouping results, for example `layer0.attention.softmax`.
    pub label: Option<String>,
    /// Number of work-items or of workgroups in each dimension.
    pub grid: Grid,
    /// Work-items per workgroup in each dimension. It has as many dimensions as `grid`.
    pub workgroup: Option<Extent>,
    /// Bytes of dynamic LDS that no argument points to, such as HIP's `extern __shared__` and Triton's
    /// `shared`.
    pub local_memory: Option<u32>,
    /// Maximum number of wave instructions of the launch in the golden run. A launch that exceeds it
    /// counts as endless, which is an error.
    #[schemars(extend("default" = GOLDEN_INSTRUCTION_LIMIT))]
    pub instruction_limit: Option<u64>,
    /// Explicit kernel arguments, in order; `null` is the null pointer.
    #[serde(default)]
    pub args: Vec<Option<Argument>>,
}

/// Default compiler options.
pub(crate) const OPTIONS: [&str; 1] = ["-O3"];

/// Default instruction limit of a launch: an hour or more on the embedded GPU.
pub(crate) const GOLDEN_INSTRUCTION_LIMIT: u64 = 100_000_000_000;

/// A kernel argument, a member of a struct, or a buffer.
// The kind depends on which key of `oneOf` is present. This is a flat mapping and not an untagged enum,
// because the parser loses the position of errors inside the latter.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an argument: a mapping with `buffer`, `scalar`, `struct` or others")]
#[schemars(extend("oneOf" = [
    {"required": ["buffer"]}, {"required": ["scalar"]}, {"required": ["local_memory"]},
    {"required": ["pointer"]}, {"required": ["struct"]}, {"required": ["values"]},
    {"required": ["bytes"]}
]))]
pub(crate) struct Argument {
    /// Pointer to the buffer with this name. The first use defines the buffer; later uses have no other
    /// keys.
    pub buffer: Option<String>,
    /// Value passed to the kernel.
    pub scalar: Option<Number>,
    /// Pointer to dynamic LDS of this many bytes.
    pub local_memory: Option<u32>,
    /// Pointer to a buffer that is defined elsewhere in the file, or into it: `NAME` or `NAME + BYTES`.
    pub pointer: Option<String>,
    /// Struct passed by value: its members in order, at the offsets that C gives them; `null` is the null
    /// pointer.
    #[serde(rename = "struct")]
    pub members: Option<Vec<Option<Argument>>>,
    /// Array passed by value.
    pub values: Option<Vec<Number>>,
    /// Bytes passed by value, as pairs of hexadecimal digits.
    pub bytes: Option<String>,
    /// For a member of a struct: distance from the start of the struct in bytes. By default, the member
    /// follows the previous one, at a multiple of its alignment in C.
    pub offset: Option<u32>,
    /// For a struct: its size in bytes. The default is the end of its last member, rounded up to the
    /// largest alignment of its members.
    pub size: Option<u32>,
    /// Type of the scalar, of the array's elements or of the buffer's elements.
    #[serde(rename = "type")]
    pub element: Option<ElementName>,
    /// Number of elements.
    pub count: Option<u64>,
    /// Dimensions of an output in row-major order, one to three. They enable error patterns in the results.
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub shape: Option<Vec<u64>>,
    /// Content of the buffer before the first launch.
    #[serde(default, deserialize_with = "some_singleton")]
    #[schemars(with = "Init", extend("default" = "zeros"))]
    pub init: Option<Init>,
    /// `true` for a buffer with results, which are compared.
    pub output: Option<bool>,
    /// For an output: file with its expected content after the golden run, which is compared with the
    /// tolerance in `compare`. It has the buffer's size, and elements are little-endian.
    pub expected: Option<PathBuf>,
    /// `true` for a buffer with the result of an error check in the program.
    pub detector: Option<bool>,
}

/// Content of a buffer before the first launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Init {
    /// Zeros.
    Zeros,
    /// The same number in all elements.
    Value(Number),
    /// Evenly spaced numbers.
    Range(Range),
    /// Uniformly distributed random numbers from the first number to the second, inclusive for integers.
    Uniform(Number, Number),
    /// Content of a file of the buffer's size, with little-endian elements.
    File(PathBuf),
    /// Addresses of buffers or inside buffers, `NAME` or `NAME + BYTES`; `null` is the null pointer. The
    /// defaults of `type` and `count` are `u64` and the length of the list.
    Pointers(Vec<Option<String>>),
    /// The members of a struct, as in an argument. For an array of structs, its elements are the members.
    /// The defaults of `type` and `count` are `u8` and the size of the struct.
    Struct(Vec<Option<Argument>>),
}

/// Evenly spaced numbers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `start` and `step`")]
pub(crate) struct Range {
    /// Value of element 0.
    pub start: Number,
    /// Difference between consecutive elements.
    pub step: Number,
}

/// A proxy instruction.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an instruction: a mapping with `name`, `proxy`, `hook` and others")]
pub(crate) struct Instruction {
    /// Name in reports: letters, digits and `_`.
    pub name: String,
    /// Assembly text of the proxy, with operand names in place of registers.
    pub proxy: String,
    /// Registers of each named operand, for example `vgpr`, `vgpr x2`, or `b32` in PTX.
    #[serde(default, deserialize_with = "unique_keys")]
    pub operands: BTreeMap<String, String>,
    /// Implementation of the instruction.
    pub hook: Hook,
    /// Lanes that execute the hook.
    #[serde(default)]
    pub lanes: Lanes,
    /// Instructions matching the proxy that are emulated.
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

/// Implementation of an instruction in C.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `source` and `function`")]
pub(crate) struct Hook {
    /// Source file.
    pub source: PathBuf,
    /// Function. Its parameters are named like the operands that it reads.
    pub function: String,
}

/// Lanes that execute a hook.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`active` or `all`")]
pub(crate) enum Lanes {
    /// Lanes that execute the instruction.
    #[default]
    Active,
    /// All lanes of the wave; in PTX, those that reach the instruction.
    All,
}

/// Instructions matching a proxy that are emulated.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`marked` or `all`")]
pub(crate) enum Matching {
    /// Instructions written with `FLIPWAVE_PROXY`.
    #[default]
    Marked,
    /// All matching instructions.
    All,
}

/// Tolerance of elements. If several limits are given, an element must meet one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `exact`, `absolute`, `relative` or `ulp`")]
pub(crate) struct Tolerance {
    /// Requires equal elements.
    pub exact: Option<bool>,
    /// Maximum absolute error.
    pub absolute: Option<f64>,
    /// Maximum error relative to the element of the golden run.
    pub relative: Option<f64>,
    /// Maximum error in units in the last place.
    pub ulp: Option<u64>,
}

/// Size of a launch, in work-items or workgroups.
#[derive(Debug, PartialEq)]
pub(crate) enum Grid {
    /// Work-items in each dimension, `[256, 4]`.
    WorkItems(Extent),
    /// Workgroups in each dimension, `{workgroups: [4, 4]}`.
    Workgroups(Extent),
}

/// Size of a grid in workgroups.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `workgroups`")]
struct InWorkgroups {
    /// Number of workgroups in each dimension.
    workgroups: Extent,
}

impl JsonSchema for Grid {
    fn schema_name() -> Cow<'static, str> {
        "Grid".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Number of work-items or of workgroups in each dimension.",
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
                let grid = InWorkgroups::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Grid::Workgroups(grid.workgroups))
            }
        }

        deserializer.deserialize_any(GridVisitor)
    }
}

/// Size in one to three dimensions: `256` or `[256, 4]`.
#[derive(Debug, PartialEq)]
pub(crate) struct Extent(pub Vec<u32>);

impl JsonSchema for Extent {
    fn schema_name() -> Cow<'static, str> {
        "Extent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<u32>();
        json_schema!({
            "description": "Size in one to three dimensions: `256` or `[256, 4]`.",
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
                    E::custom(format!("{value} work-items; expected at most {}", u32::MAX))
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
