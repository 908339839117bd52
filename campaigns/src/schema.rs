//! The campaign file as it is written: the shape only. What the values mean, and which of them
//! go together, is checked in [`crate::check`].

use crate::application::schema::{Application, Comparison};
use crate::device::CampaignDevice;
use crate::element::{ElementType, Number};
use crate::golden::Suspicion;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a campaign: a mapping with `name`, `workload` and others")]
pub(crate) struct File {
    pub name: String,
    #[serde(default)]
    pub seed: u64,
    #[serde(default = "default_target")]
    pub target: String,
    #[serde(default)]
    pub device: CampaignDevice,
    pub workload: Workload,
    pub faults: Option<Faults>,
    #[serde(default)]
    pub allow: Vec<Suspicion>,
    #[serde(default)]
    pub instructions: Vec<Instruction>,
    pub software: Option<Workload>,
    pub compare: Option<Compare>,
}

/// How outputs are compared: buffers by their names, or a list for an application.
#[derive(Debug)]
pub(crate) enum Compare {
    Buffers(BTreeMap<String, Tolerance>),
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

fn default_target() -> String {
    "gfx90a".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `kernel`, `dispatches`, `app` and `capture`")]
pub(crate) struct Workload {
    pub kernel: Option<Launch>,
    pub dispatches: Option<Vec<Launch>>,
    pub app: Option<Application>,
    pub capture: Option<Capture>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `file` and `dispatches`")]
pub(crate) struct Capture {
    pub file: PathBuf,
    pub dispatches: Option<Ends<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(
    expecting = "a launch: a mapping with `source` or `code_object`, `name`, `grid`, `workgroup`, `args`"
)]
pub(crate) struct Launch {
    pub source: Option<PathBuf>,
    pub code_object: Option<PathBuf>,
    pub options: Option<Vec<String>>,
    pub name: String,
    pub grid: Extent,
    pub workgroup: Extent,
    pub local_memory: Option<u32>,
    pub instruction_limit: Option<u64>,
    /// `null` is the null pointer.
    #[serde(default)]
    pub args: Vec<Option<Argument>>,
}

/// A buffer, a scalar or dynamic LDS, told apart by which of `buffer`, `scalar` and
/// `local_memory` is there. One flat mapping instead of an untagged choice, because the parser
/// loses the position of errors inside the latter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an argument: a mapping with `buffer`, `scalar` or `local_memory`")]
pub(crate) struct Argument {
    pub buffer: Option<String>,
    pub scalar: Option<Number>,
    pub local_memory: Option<u32>,
    #[serde(rename = "type")]
    pub element: Option<ElementType>,
    pub count: Option<u64>,
    #[serde(default, deserialize_with = "some_singleton")]
    pub init: Option<Init>,
    pub output: Option<bool>,
    pub detector: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Init {
    Zeros,
    Value(Number),
    Range(Range),
    Uniform(Number, Number),
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `start` and `step`")]
pub(crate) struct Range {
    pub start: Number,
    pub step: Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an instruction: a mapping with `name`, `proxy`, `hook` and others")]
pub(crate) struct Instruction {
    pub name: String,
    pub proxy: String,
    #[serde(default, deserialize_with = "unique_keys")]
    pub operands: BTreeMap<String, String>,
    pub hook: Hook,
    #[serde(default)]
    pub lanes: Lanes,
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `source` and `function`")]
pub(crate) struct Hook {
    pub source: PathBuf,
    pub function: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`active` or `all`")]
pub(crate) enum Lanes {
    #[default]
    Active,
    All,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`marked` or `all`")]
pub(crate) enum Matching {
    #[default]
    Marked,
    All,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `model`, `count` and others")]
pub(crate) struct Faults {
    #[serde(deserialize_with = "singleton")]
    pub model: Model,
    pub target: Option<String>,
    pub scope: Option<String>,
    #[serde(default, deserialize_with = "some_singleton")]
    pub duration: Option<Duration>,

    pub kernels: Option<Vec<String>>,
    #[serde(default)]
    pub runtime_kernels: bool,
    pub dispatches: Option<Ends<u32>>,
    pub workgroups: Option<Vec<[u32; 3]>>,
    pub waves: Option<Ends<u32>>,
    pub lanes: Option<Vec<u8>>,
    pub groups: Option<Vec<String>>,
    pub opcodes: Option<Vec<String>>,
    pub pcs: Option<Vec<u64>>,
    pub lines: Option<Vec<String>>,
    pub registers: Option<Vec<String>>,
    pub occurrences: Option<Ends<u64>>,
    pub window: Option<Ends<u64>>,

    #[serde(default)]
    pub profile: Counting,
    pub count: Option<u64>,
    pub margin: Option<f64>,
    pub confidence: Option<f64>,
    pub exhaustive: Option<bool>,
    pub stratify: Option<String>,
    pub allocation: Option<Allocation>,
    pub timing_threshold: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "the name of a fault model, or a mapping from it to its number")]
pub(crate) enum Model {
    FlipOneBit,
    FlipTwoAdjacentBits,
    FlipAdjacentBits(u8),
    FlipRandomBits(u8),
    FlipMask(u64),
    FlipDrawnMask(PathBuf),
    RandomValue,
    ZeroValue,
    OnesValue,
    StuckAtZero,
    StuckAtOne,
    RelativeError(f64),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`transient`, or a mapping with `intermittent` or `permanent`")]
pub(crate) enum Duration {
    Transient,
    Intermittent(Intermittent),
    Permanent(Permanent),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `window` and `rate`")]
pub(crate) struct Intermittent {
    pub window: u64,
    pub rate: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `units`")]
pub(crate) struct Permanent {
    pub units: u32,
}

/// The first and the last of a range.
pub(crate) type Ends<T> = [T; 2];

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`exact` or `approximate`")]
pub(crate) enum Counting {
    #[default]
    Exact,
    Approximate,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`proportional` or `equal`")]
pub(crate) enum Allocation {
    Proportional,
    Equal,
}

/// A choice written as its name, or as a mapping from its name to what belongs to it.
fn singleton<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    serde_yaml::with::singleton_map::deserialize(deserializer)
}

fn some_singleton<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    singleton(deserializer).map(Some)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `exact`, `absolute`, `relative` or `ulp`")]
pub(crate) struct Tolerance {
    pub exact: Option<bool>,
    pub absolute: Option<f64>,
    pub relative: Option<f64>,
    pub ulp: Option<u64>,
}

/// One to three dimensions, as written: `256` or `[256, 4]`.
#[derive(Debug, PartialEq)]
pub(crate) struct Extent(pub Vec<u32>);

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

/// A mapping in which no key may stand twice; by itself the parser would keep the last.
pub(crate) fn unique_keys<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct UniqueKeys<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for UniqueKeys<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            unique_entries(map)
        }
    }

    deserializer.deserialize_map(UniqueKeys(PhantomData))
}

fn unique_entries<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    mut map: A,
) -> Result<BTreeMap<String, T>, A::Error> {
    let mut entries = BTreeMap::new();
    while let Some((key, value)) = map.next_entry::<String, T>()? {
        if entries.contains_key(&key) {
            return Err(de::Error::custom(format!("`{key}` is there twice")));
        }
        entries.insert(key, value);
    }
    Ok(entries)
}
