//! The key `faults` of a campaign file: its YAML form, and the validated faults.

use crate::file::context::Context;
use crate::file::fault_tables::{read_masks, read_values};
use crate::file::location::{Field, FieldError, reject};
use crate::sample::{Sample, check_sample};
use flipwave_arch::{Architecture, LaneMask, Pc, RegisterSpan};
use flipwave_injector::{
    Counting, Duration, Fault, FaultModel, FaultTarget, Group, Intermittent, Lines, Scope,
    Selection, Stratification, Unreached, WrittenFaultModel,
};
use flipwave_injector_amdgpu::read_function;
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Maximum number of compute units of a device.
const MAX_UNITS: u32 = 4096;

/// First and last element of a range.
pub(crate) type Ends<T> = [T; 2];

/// YAML form of the faults.
pub(crate) mod written {
    use super::Ends;
    use crate::file::yaml::{singleton, some_singleton};
    use crate::sample::written::{Allocation, Draw, KnownMasked, Until};
    use flipwave_analysis::{Confidence, IntervalMethod};
    use flipwave_injector::{FaultTarget, Group, WrittenFaultModel};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// Faults to inject. A fault site must satisfy all filters.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `model`, `count` and others")]
    #[schemars(extend("anyOf" = [
        {"required": ["count"]}, {"required": ["until"]}, {"required": ["margin", "confidence"]},
        {"required": ["exhaustive"]}
    ]))]
    pub(crate) struct Faults {
        /// Change of the corrupted value.
        #[serde(deserialize_with = "singleton")]
        pub model: WrittenFaultModel,
        /// Target of the faults.
        #[schemars(extend(
            "enum" = words(FaultTarget::ALL.map(FaultTarget::name)),
            "default" = FaultTarget::DestinationRegister.name()
        ))]
        pub target: Option<String>,
        /// Lanes and waves that one fault affects.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Scope", extend("default" = "lane"))]
        pub scope: Option<Scope>,
        /// Duration of a fault.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Duration", extend("default" = "transient"))]
        pub duration: Option<Duration>,

        /// Filter: kernels by name, or by a pattern with `*` and `?`.
        pub kernels: Option<Vec<String>>,
        /// Include kernels that AMD's runtime launches itself, for example for copies.
        #[serde(default)]
        pub runtime_kernels: bool,
        /// Filter: first and last dispatch, counted from 0.
        pub dispatches: Option<Ends<u32>>,
        /// Filter: positions of workgroups in the grid.
        pub workgroups: Option<Vec<[u32; 3]>>,
        /// Filter: first and last wave of each workgroup, counted from 0.
        pub waves: Option<Ends<u32>>,
        /// Filter: lanes, counted from 0.
        pub lanes: Option<Vec<u8>>,
        /// Filter: instruction groups. An instruction must be in at least one of them.
        #[schemars(extend("items" = {"enum": Group::ALL.map(Group::name)}, "default" = ["all"]))]
        pub groups: Option<Vec<String>>,
        /// Filter: opcodes, for example `v_fma_f32`.
        pub opcodes: Option<Vec<String>>,
        /// Filter: addresses of instructions in the ELF file, as printed by disassemblers.
        pub pcs: Option<Vec<u64>>,
        /// Filter: source lines, `FILE:LINE` or `FILE:FIRST-LAST`.
        pub lines: Option<Vec<String>>,
        /// Filter: registers, for targets that are registers, for example `v4`, `s[0:3]` or `vcc`; on PTX also names
        /// that the code declares, such as `%r12` or `%rd3.hi`.
        pub registers: Option<Vec<String>>,
        /// Filter: first and last execution of an instruction by its wave, counted from 0.
        pub occurrences: Option<Ends<u64>>,
        /// Filter: first and last time, in instructions previously executed by the wave.
        pub window: Option<Ends<u64>>,

        /// Method of counting the fault space.
        #[serde(default)]
        pub profile: Counting,
        /// Number of faults; with `until`, the maximum number.
        pub count: Option<u64>,
        /// Inject faults until the rates are known with a given precision.
        pub until: Option<Until>,
        /// Inject as many faults as are needed for rates to be within this distance of the true rates, with
        /// probability `confidence`. Write 5 percentage points as 0.05.
        pub margin: Option<f64>,
        /// Confidence level of the reported intervals.
        #[schemars(extend("default" = Confidence::P95.probability()))]
        pub confidence: Option<f64>,
        /// Inject a fault into every fault site once.
        pub exhaustive: Option<bool>,
        /// The unit that is drawn with equal probability.
        #[serde(default)]
        #[schemars(extend("default" = "bits"))]
        pub draw: Draw,
        /// Strata of the fault space, which are sampled separately: each `kernel`, `group` or `opcode`.
        pub stratify: Option<String>,
        /// Division of the faults among the strata.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Allocation", extend("default" = "proportional"))]
        pub allocation: Option<Allocation>,
        /// Allow several faults with the same fault site.
        #[schemars(extend("default" = true))]
        pub replacement: Option<bool>,
        /// Treatment of fault sites whose value is overwritten or discarded before it is read. The golden
        /// run shows that these faults are masked.
        #[serde(default)]
        #[schemars(extend("default" = "sampled"))]
        pub known_masked: KnownMasked,
        /// Method of computing the intervals of rates.
        #[serde(default)]
        #[schemars(extend("default" = "wilson"))]
        pub intervals: IntervalMethod,
        /// Fraction of the golden run's wave instructions by which a run with correct outputs may differ
        /// before its timing counts as changed.
        #[schemars(extend("default" = TIMING_THRESHOLD))]
        pub timing_threshold: Option<f64>,
    }

    /// Default timing threshold.
    pub(crate) const TIMING_THRESHOLD: f64 = 0.0;

    /// Returns the names and `None`, for the schema of an optional key.
    fn words<const N: usize>(names: [&'static str; N]) -> Vec<Option<&'static str>> {
        names.into_iter().map(Some).chain([None]).collect()
    }

    /// Lanes and waves that one fault affects.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "the name of a scope, or a mapping with `lanes_every`")]
    pub(crate) enum Scope {
        /// The value of one lane.
        Lane,
        /// The values of all active lanes.
        ActiveLanes,
        /// The values of all active lanes whose distance is a multiple of a period.
        LanesEvery(LanesEvery),
        /// The values of all lanes of the wave.
        Wave,
        /// The values of the active lanes of all waves of the workgroup.
        Workgroup,
    }

    /// Active lanes whose distance is a multiple of a period.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `period` and `offset`")]
    pub(crate) struct LanesEvery {
        /// Distance between affected lanes, 2 to 63.
        pub period: u8,
        /// First affected lane.
        pub offset: Offset,
    }

    /// First affected lane.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`drawn`")]
    pub(crate) enum Offset {
        /// Drawn for each fault.
        Drawn,
    }

    /// Duration of a fault.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`transient`, or a mapping with `intermittent` or `permanent`")]
    pub(crate) enum Duration {
        /// The fault occurs once.
        Transient,
        /// The fault affects one execution of an instruction, and a fraction of the wave's next
        /// executions of it.
        Intermittent(Intermittent),
        /// The fault affects every execution of an opcode on one lane slot of a compute unit.
        Permanent(Permanent),
    }

    /// An intermittent fault.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `window` and `rate`")]
    pub(crate) struct Intermittent {
        /// Number of executions from the first affected one to the last that can be affected.
        pub window: u64,
        /// Fraction of these executions that are affected, above 0 and up to 1.
        pub rate: f64,
    }

    /// The fault affects every execution of an opcode on one lane slot of a compute unit.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `units`")]
    pub(crate) struct Permanent {
        /// Number of compute units of the device.
        pub units: u32,
    }

    /// Method of counting the fault space.
    #[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`exact` or `approximate`")]
    pub(crate) enum Counting {
        /// Count all dispatches.
        #[default]
        Exact,
        /// Count the first dispatch of each kernel with each grid, and assume that the others are alike.
        Approximate,
    }
}

/// The validated faults of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Model, target, scope and duration of the faults.
    pub fault: Fault,
    /// Filters on the fault space.
    pub selection: Selection,
    /// Method of counting the fault space.
    pub counting: Counting,
    /// Division of the fault space into strata.
    pub stratification: Stratification,
    /// Number of faults, and how they are drawn.
    pub sample: Sample,
    /// Fraction of the golden run's wave instructions by which a run with correct outputs may differ
    /// before its timing counts as changed.
    pub timing_threshold: f64,
}

/// Validates the faults of a campaign file in `directory`.
pub(crate) fn check_faults(
    faults: written::Faults,
    context: Context<'_>,
) -> Result<Faults, FieldError> {
    let field = Field::root().key("faults");
    let fault = Fault {
        target: parse_optional(&field, "target", &faults.target, FaultTarget::DestinationRegister)?,
        model: check_model(&faults.model, context, &field.key("model"))?,
        scope: check_scope(faults.scope, &field.key("scope"))?,
        duration: check_duration(faults.duration, &field.key("duration"))?,
    };
    if let Err(error) = fault.check() {
        return reject(&field, error.to_string());
    }
    let threshold = faults.timing_threshold.unwrap_or(written::TIMING_THRESHOLD);
    if !(threshold >= 0.0 && threshold.is_finite()) {
        return reject(
            &field.key("timing_threshold"),
            format!("{threshold:?} is not a valid threshold; write one percent as 0.01"),
        );
    }
    let target = fault.target;
    let stratification =
        parse_optional(&field, "stratify", &faults.stratify, Stratification::None)?;
    let sample = check_sample(&faults, &fault, stratification, &field)?;
    Ok(Faults {
        fault,
        selection: check_selection(&faults, target, context.target, &field)?,
        counting: match faults.profile {
            written::Counting::Exact => Counting::Exact,
            written::Counting::Approximate => Counting::Approximate,
        },
        stratification,
        sample,
        timing_threshold: threshold,
    })
}

/// Parses the optional name under a key.
fn parse_optional<T: FromStr<Err: ToString>>(
    field: &Field,
    key: &str,
    name: &Option<String>,
    default: T,
) -> Result<T, FieldError> {
    match name {
        None => Ok(default),
        Some(name) => parse_name(name, &field.key(key)),
    }
}

fn parse_name<T: FromStr<Err: ToString>>(text: &str, field: &Field) -> Result<T, FieldError> {
    text.parse().or_else(|error: T::Err| reject(field, error.to_string()))
}

fn check_model(
    model: &WrittenFaultModel,
    context: Context<'_>,
    field: &Field,
) -> Result<FaultModel, FieldError> {
    let checked = model.checked(
        |path| read_masks(&context.directory.join(path)),
        |path| read_values(&context.directory.join(path), context.target),
        |path| read_function(&context.directory.join(path)).map_err(|error| error.to_string()),
    );
    checked.or_else(|(key, message)| reject(&field.key(key), message))
}

fn check_scope(scope: Option<written::Scope>, field: &Field) -> Result<Scope, FieldError> {
    Ok(match scope {
        None | Some(written::Scope::Lane) => Scope::Lane,
        Some(written::Scope::ActiveLanes) => Scope::ActiveLanes,
        Some(written::Scope::LanesEvery(lanes)) => {
            let written::LanesEvery { period, offset: written::Offset::Drawn } = lanes;
            match NonZeroU8::new(period).filter(|period| (2..64).contains(&period.get())) {
                Some(period) => Scope::LanesEvery(period),
                None => {
                    let field = field.key("lanes_every").key("period");
                    return reject(&field, format!("{period} lanes; expected 2 to 63"));
                }
            }
        }
        Some(written::Scope::Wave) => Scope::Wave,
        Some(written::Scope::Workgroup) => Scope::Workgroup,
    })
}

fn check_duration(
    duration: Option<written::Duration>,
    field: &Field,
) -> Result<Duration, FieldError> {
    Ok(match duration {
        None | Some(written::Duration::Transient) => Duration::Transient,
        Some(written::Duration::Intermittent(written::Intermittent { window, rate })) => {
            let field = field.key("intermittent");
            let Some(window) = NonZeroU64::new(window) else {
                return reject(&field.key("window"), "0 executions; expected 1 or more");
            };
            if !(rate > 0.0 && rate <= 1.0) {
                return reject(
                    &field.key("rate"),
                    format!("{rate:?} is not a fraction of executions; expected above 0, up to 1"),
                );
            }
            // The largest rate affects all but one of 2^32 executions.
            let rate = (rate * (f64::from(u32::MAX) + 1.0)) as u32;
            Duration::Intermittent(Intermittent { window, rate })
        }
        Some(written::Duration::Permanent(written::Permanent { units })) => {
            match NonZeroU32::new(units).filter(|units| units.get() <= MAX_UNITS) {
                Some(units) => Duration::Permanent(units),
                None => {
                    return reject(
                        &field.key("permanent").key("units"),
                        format!("{units} compute units; expected 1 to {MAX_UNITS}"),
                    );
                }
            }
        }
    })
}

fn check_selection(
    faults: &written::Faults,
    target: FaultTarget,
    architecture: &dyn Architecture,
    field: &Field,
) -> Result<Selection, FieldError> {
    let group = |name: &String, field: &Field| match parse_name(name, field)? {
        group if target.part_of_sum().is_some() && !Group::has_matrices(group) => reject(
            field,
            format!(
                "target {target} requires matrix instructions, but {group} has none; expected matrix"
            ),
        ),
        group => Ok(group),
    };
    Ok(Selection {
        unreached: Unreached::default(),
        kernels: list(&faults.kernels, &field.key("kernels"), |name, _| Ok(name.clone()))?,
        runtime_kernels: faults.runtime_kernels,
        dispatches: range(faults.dispatches, &field.key("dispatches"))?,
        workgroups: list(&faults.workgroups, &field.key("workgroups"), |position, _| {
            Ok(*position)
        })?,
        waves: range(faults.waves, &field.key("waves"))?,
        lanes: match &faults.lanes {
            None => None,
            lanes => {
                let field = field.key("lanes");
                let lanes = list(lanes, &field, |lane, field| match lane {
                    0..64 => Ok(1u64 << lane),
                    _ => reject(field, format!("invalid lane {lane}; a wave has lanes 0 to 63")),
                })?;
                Some(LaneMask(lanes.into_iter().fold(0, |mask, lane| mask | lane)))
            }
        },
        groups: list(&faults.groups, &field.key("groups"), group)?,
        opcodes: list(&faults.opcodes, &field.key("opcodes"), |name, _| Ok(name.clone()))?,
        pcs: list(&faults.pcs, &field.key("pcs"), |pc, _| Ok(Pc(*pc)))?,
        lines: list(&faults.lines, &field.key("lines"), |text, field| lines(text, field))?,
        registers: list(&faults.registers, &field.key("registers"), |text, field| {
            registers(text, architecture, field)
        })?,
        occurrences: range(faults.occurrences, &field.key("occurrences"))?,
        window: range(faults.window, &field.key("window"))?,
    })
}

/// Checks a list of alternative conditions.
pub(crate) fn list<T, U>(
    entries: &Option<Vec<T>>,
    field: &Field,
    check: impl Fn(&T, &Field) -> Result<U, FieldError>,
) -> Result<Vec<U>, FieldError> {
    match entries {
        None => Ok(Vec::new()),
        Some(entries) if entries.is_empty() => reject(
            field,
            "is empty and matches nothing; list at least one value, or remove the key to match everything",
        ),
        Some(entries) => {
            (0..).zip(entries).map(|(index, entry)| check(entry, &field.index(index))).collect()
        }
    }
}

/// Checks a range from its first to its last element.
pub(crate) fn range<T: PartialOrd + ToString>(
    ends: Option<Ends<T>>,
    field: &Field,
) -> Result<Option<RangeInclusive<T>>, FieldError> {
    match ends {
        Some([first, last]) if last < first => {
            let (first, last) = (first.to_string(), last.to_string());
            reject(
                field,
                format!("[{first}, {last}] ends before it begins; expected [FIRST, LAST]"),
            )
        }
        ends => Ok(ends.map(|[first, last]| first..=last)),
    }
}

/// Parses `FILE:LINE` or `FILE:FIRST-LAST`.
fn lines(text: &str, field: &Field) -> Result<Lines, FieldError> {
    let lines = text.rsplit_once(':').and_then(|(file, lines)| {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (!file.is_empty() && first <= last)
            .then(|| Lines { file: file.to_owned(), lines: first..=last })
    });
    match lines {
        Some(lines) => Ok(lines),
        None => reject(
            field,
            format!("invalid source lines `{text}`; expected FILE:LINE or FILE:FIRST-LAST"),
        ),
    }
}

/// Parses registers in assembler syntax, such as `v4`, `s[0:3]`, `vcc` or `exec`.
fn registers(
    text: &str,
    architecture: &dyn Architecture,
    field: &Field,
) -> Result<RegisterSpan, FieldError> {
    let examples = architecture.span_examples();
    let invalid = || format!("invalid registers `{text}`; expected names like {examples}");
    architecture.register_span(text).map_or_else(|| reject(field, invalid()), Ok)
}
