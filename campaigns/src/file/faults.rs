//! Faults: what a campaign file says of them, and that checked.

use crate::file::fault_tables::{read_masks, read_values};
use crate::file::location::{Field, Wrong, wrong};
use crate::sample::{Sample, check_sample};
use flipwave_injector::{
    Counting, Duration, Fault, FaultModel, FaultTarget, Group, Intermittent, Lines, Scope,
    Selection, Stratification, Unreached, WrittenFaultModel,
};
use flipwave_isa::{LaneMask, Pc, Register, RegisterRange};
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

/// Compute units of a device at most.
const MAX_UNITS: u32 = 4096;

/// The first and the last of a range.
pub(crate) type Ends<T> = [T; 2];

/// Faults as the file writes them.
pub(crate) mod written {
    use super::Ends;
    use crate::file::yaml::{singleton, some_singleton};
    use crate::sample::written::{Allocation, Draw, KnownMasked, Until};
    use flipwave_analysis::{Confidence, IntervalMethod};
    use flipwave_injector::{FaultTarget, Group, WrittenFaultModel};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// What to inject. A place is struck if all that is said of it holds.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `model`, `count` and others")]
    #[schemars(extend("anyOf" = [
        {"required": ["count"]}, {"required": ["until"]}, {"required": ["margin", "confidence"]},
        {"required": ["exhaustive"]}
    ]))]
    pub(crate) struct Faults {
        /// Change of the value that a fault strikes.
        #[serde(deserialize_with = "singleton")]
        pub model: WrittenFaultModel,
        /// What a fault strikes.
        #[schemars(extend(
            "enum" = words(FaultTarget::ALL.map(FaultTarget::name)),
            "default" = FaultTarget::DestinationRegister.name()
        ))]
        pub target: Option<String>,
        /// How much a fault strikes at once.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Scope", extend("default" = "lane"))]
        pub scope: Option<Scope>,
        /// For how long a fault strikes.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Duration", extend("default" = "transient"))]
        pub duration: Option<Duration>,

        /// Kernels, by name.
        pub kernels: Option<Vec<String>>,
        /// Also kernels that AMD's runtime launches by itself, for copies and the like.
        #[serde(default)]
        pub runtime_kernels: bool,
        /// The first and the last launch, from 0.
        pub dispatches: Option<Ends<u32>>,
        /// Positions of workgroups in the grid.
        pub workgroups: Option<Vec<[u32; 3]>>,
        /// The first and the last wave of workgroups, from 0.
        pub waves: Option<Ends<u32>>,
        /// Lanes, from 0.
        pub lanes: Option<Vec<u8>>,
        /// Groups of instructions, one of which is enough.
        #[schemars(extend("items" = {"enum": Group::ALL.map(Group::name)}, "default" = ["all"]))]
        pub groups: Option<Vec<String>>,
        /// Operations, for example `v_fma_f32`.
        pub opcodes: Option<Vec<String>>,
        /// Addresses of instructions in the ELF file, as disassemblers print them.
        pub pcs: Option<Vec<u64>>,
        /// Source lines, `FILE:LINE` or `FILE:FIRST-LAST`.
        pub lines: Option<Vec<String>>,
        /// Registers, of targets that are registers: for example `v4`, `s[0:3]`, `vcc`.
        pub registers: Option<Vec<String>>,
        /// The first and the last execution of an instruction by its wave, from 0.
        pub occurrences: Option<Ends<u64>>,
        /// The first and the last time, in instructions that the wave has executed before.
        pub window: Option<Ends<u64>>,

        /// How the places that can be struck are counted.
        #[serde(default)]
        pub profile: Counting,
        /// How many faults; with `until` at most.
        pub count: Option<u64>,
        /// Faults are injected until rates are known.
        pub until: Option<Until>,
        /// How far rates may be from the true ones: faults are injected until they are within this,
        /// with the probability `confidence`. 5 percentage points are 0.05.
        pub margin: Option<f64>,
        /// Probability with which the intervals that are reported hold the rates.
        #[schemars(extend("default" = Confidence::P95.probability()))]
        pub confidence: Option<f64>,
        /// Inject every place once.
        pub exhaustive: Option<bool>,
        /// What is equally likely to be struck.
        #[serde(default)]
        #[schemars(extend("default" = "bits"))]
        pub draw: Draw,
        /// What is sampled by itself: each `kernel`, each `group`, or each `opcode`.
        pub stratify: Option<String>,
        /// How many of the faults each part gets that is sampled by itself.
        #[serde(default, deserialize_with = "some_singleton")]
        #[schemars(with = "Allocation", extend("default" = "proportional"))]
        pub allocation: Option<Allocation>,
        /// Whether a place can be struck by more than one of the faults.
        #[schemars(extend("default" = true))]
        pub replacement: Option<bool>,
        /// What becomes of places whose value nothing reads before it is gone: the fault-free run shows
        /// that faults in them are masked.
        #[serde(default)]
        #[schemars(extend("default" = "sampled"))]
        pub known_masked: KnownMasked,
        /// How the intervals of rates are computed.
        #[serde(default)]
        #[schemars(extend("default" = "wilson"))]
        pub intervals: IntervalMethod,
        /// By which part of the fault-free run's wave instructions a run with right outputs may differ
        /// before its timing counts as changed.
        #[schemars(extend("default" = TIMING_THRESHOLD))]
        pub timing_threshold: Option<f64>,
    }

    /// The timing threshold where a file says none.
    pub(crate) const TIMING_THRESHOLD: f64 = 0.0;

    /// Words, or nothing, as of a key that is left out.
    fn words<const N: usize>(names: [&'static str; N]) -> Vec<Option<&'static str>> {
        names.into_iter().map(Some).chain([None]).collect()
    }

    /// How much a fault strikes at once.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "the name of a scope, or a mapping with `lanes_every`")]
    pub(crate) enum Scope {
        /// One lane's value.
        Lane,
        /// Those of all lanes that the instruction runs on.
        ActiveLanes,
        /// Those of lanes that are a multiple of a period apart.
        LanesEvery(LanesEvery),
        /// Those of all lanes of the wave.
        Wave,
        /// Those of the active lanes of all waves of the workgroup.
        Workgroup,
    }

    /// Lanes that are a multiple of a period apart.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `period` and `offset`")]
    pub(crate) struct LanesEvery {
        /// From one lane to the next, 2 to 63.
        pub period: u8,
        /// Which lane is the first.
        pub offset: Offset,
    }

    /// Which of the lanes within a period is struck.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`drawn`")]
    pub(crate) enum Offset {
        /// One that is drawn for each fault.
        Drawn,
    }

    /// For how long a fault strikes.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`transient`, or a mapping with `intermittent` or `permanent`")]
    pub(crate) enum Duration {
        /// Once.
        Transient,
        /// Some of the executions of an instruction by a wave, from one of them on.
        Intermittent(Intermittent),
        /// Every execution of an operation on one lane slot of a compute unit.
        Permanent(Permanent),
    }

    /// Some of the executions of an instruction by a wave.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `window` and `rate`")]
    pub(crate) struct Intermittent {
        /// Executions from the first that is struck to the last that may be.
        pub window: u64,
        /// The part of them that is struck, above 0, up to 1.
        pub rate: f64,
    }

    /// Every execution of an operation on one lane slot of a compute unit.
    #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[serde(expecting = "a mapping with `units`")]
    pub(crate) struct Permanent {
        /// Compute units of the device.
        pub units: u32,
    }

    /// How the places that can be struck are counted.
    #[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[serde(expecting = "`exact` or `approximate`")]
    pub(crate) enum Counting {
        /// In all dispatches.
        #[default]
        Exact,
        /// In the first dispatch of each kernel with each grid.
        Approximate,
    }
}

/// What to inject.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// The kind of fault.
    pub fault: Fault,
    /// What of the program is struck.
    pub selection: Selection,
    /// How the profile counts.
    pub counting: Counting,
    /// What divides the population into parts that are sampled by themselves.
    pub stratification: Stratification,
    /// How many faults, and how they are drawn.
    pub sample: Sample,
    /// By which part of the fault-free run's wave instructions a run with right outputs may differ
    /// before its timing counts as changed.
    pub timing_threshold: f64,
}

/// Checks the faults of the campaign file in `directory`.
pub(crate) fn check_faults(faults: written::Faults, directory: &Path) -> Result<Faults, Wrong> {
    let field = Field::root().key("faults");
    let fault = Fault {
        target: named(&field, "target", &faults.target, FaultTarget::DestinationRegister)?,
        model: check_model(&faults.model, directory, &field.key("model"))?,
        scope: check_scope(faults.scope, &field.key("scope"))?,
        duration: check_duration(faults.duration, &field.key("duration"))?,
    };
    if let Err(error) = fault.check() {
        return wrong(&field, error.to_string());
    }
    let threshold = faults.timing_threshold.unwrap_or(written::TIMING_THRESHOLD);
    if !(threshold >= 0.0 && threshold.is_finite()) {
        return wrong(
            &field.key("timing_threshold"),
            format!("{threshold:?} is no threshold; one part in a hundred is 0.01"),
        );
    }
    let target = fault.target;
    let stratification = named(&field, "stratify", &faults.stratify, Stratification::None)?;
    let sample = check_sample(&faults, &fault, stratification, &field)?;
    Ok(Faults {
        fault,
        selection: check_selection(&faults, target, &field)?,
        counting: match faults.profile {
            written::Counting::Exact => Counting::Exact,
            written::Counting::Approximate => Counting::Approximate,
        },
        stratification,
        sample,
        timing_threshold: threshold,
    })
}

/// The value that a name stands for.
fn named<T: FromStr<Err: ToString>>(
    field: &Field,
    key: &str,
    name: &Option<String>,
    default: T,
) -> Result<T, Wrong> {
    match name {
        None => Ok(default),
        Some(name) => parsed(name, &field.key(key)),
    }
}

fn parsed<T: FromStr<Err: ToString>>(text: &str, field: &Field) -> Result<T, Wrong> {
    text.parse().or_else(|error: T::Err| wrong(field, error.to_string()))
}

fn check_model(
    model: &WrittenFaultModel,
    directory: &Path,
    field: &Field,
) -> Result<FaultModel, Wrong> {
    let checked = model.checked(
        |path| read_masks(&directory.join(path)),
        |path| read_values(&directory.join(path)),
    );
    checked.or_else(|(key, message)| wrong(&field.key(key), message))
}

fn check_scope(scope: Option<written::Scope>, field: &Field) -> Result<Scope, Wrong> {
    Ok(match scope {
        None | Some(written::Scope::Lane) => Scope::Lane,
        Some(written::Scope::ActiveLanes) => Scope::ActiveLanes,
        Some(written::Scope::LanesEvery(own)) => {
            let written::LanesEvery { period, offset: written::Offset::Drawn } = own;
            match NonZeroU8::new(period).filter(|own| (2..64).contains(&own.get())) {
                Some(period) => Scope::LanesEvery(period),
                None => {
                    let field = field.key("lanes_every").key("period");
                    return wrong(&field, format!("{period} lanes; expected 2 to 63"));
                }
            }
        }
        Some(written::Scope::Wave) => Scope::Wave,
        Some(written::Scope::Workgroup) => Scope::Workgroup,
    })
}

fn check_duration(duration: Option<written::Duration>, field: &Field) -> Result<Duration, Wrong> {
    Ok(match duration {
        None | Some(written::Duration::Transient) => Duration::Transient,
        Some(written::Duration::Intermittent(own)) => {
            let field = field.key("intermittent");
            let Some(window) = NonZeroU64::new(own.window) else {
                return wrong(&field.key("window"), "0 executions; expected 1 or more");
            };
            if !(own.rate > 0.0 && own.rate <= 1.0) {
                return wrong(
                    &field.key("rate"),
                    format!(
                        "{:?} is no part of the executions; expected above 0, up to 1",
                        own.rate
                    ),
                );
            }
            // The largest rate strikes all but one of 2^32.
            let rate = (own.rate * (f64::from(u32::MAX) + 1.0)) as u32;
            Duration::Intermittent(Intermittent { window, rate })
        }
        Some(written::Duration::Permanent(own)) => {
            match NonZeroU32::new(own.units).filter(|units| units.get() <= MAX_UNITS) {
                Some(units) => Duration::Permanent(units),
                None => {
                    return wrong(
                        &field.key("permanent").key("units"),
                        format!("{} compute units; expected 1 to {MAX_UNITS}", own.units),
                    );
                }
            }
        }
    })
}

fn check_selection(
    faults: &written::Faults,
    target: FaultTarget,
    field: &Field,
) -> Result<Selection, Wrong> {
    let group = |name: &String, field: &Field| match parsed(name, field)? {
        group if target.part_of_sum().is_some() && !Group::has_matrices(group) => wrong(
            field,
            format!("{target} strikes products of matrices, and {group} has none; expected matrix"),
        ),
        group => Ok(group),
    };
    Ok(Selection {
        unreached: Unreached::default(),
        kernels: list(&faults.kernels, &field.key("kernels"), |name, _| Ok(name.clone()))?,
        runtime_kernels: faults.runtime_kernels,
        dispatches: range(faults.dispatches, &field.key("dispatches"))?,
        workgroups: list(&faults.workgroups, &field.key("workgroups"), |own, _| Ok(*own))?,
        waves: range(faults.waves, &field.key("waves"))?,
        lanes: match &faults.lanes {
            None => None,
            some => {
                let field = field.key("lanes");
                let lanes = list(some, &field, |lane, field| match lane {
                    0..64 => Ok(1u64 << lane),
                    _ => wrong(field, format!("{lane} is no lane; a wave has lanes 0 to 63")),
                })?;
                Some(LaneMask(lanes.into_iter().fold(0, |mask, lane| mask | lane)))
            }
        },
        groups: list(&faults.groups, &field.key("groups"), group)?,
        opcodes: list(&faults.opcodes, &field.key("opcodes"), |name, _| Ok(name.clone()))?,
        pcs: list(&faults.pcs, &field.key("pcs"), |pc, _| Ok(Pc(*pc)))?,
        lines: list(&faults.lines, &field.key("lines"), |text, field| lines(text, field))?,
        registers: list(&faults.registers, &field.key("registers"), |text, field| {
            registers(text, field)
        })?,
        occurrences: range(faults.occurrences, &field.key("occurrences"))?,
        window: range(faults.window, &field.key("window"))?,
    })
}

/// A list of conditions, one of which has to hold.
pub(crate) fn list<T, U>(
    entries: &Option<Vec<T>>,
    field: &Field,
    check: impl Fn(&T, &Field) -> Result<U, Wrong>,
) -> Result<Vec<U>, Wrong> {
    match entries {
        None => Ok(Vec::new()),
        Some(entries) if entries.is_empty() => wrong(
            field,
            "is empty, and nothing fits it; name something, or leave the key out for everything",
        ),
        Some(entries) => {
            (0..).zip(entries).map(|(index, entry)| check(entry, &field.index(index))).collect()
        }
    }
}

/// A range from its first to its last.
pub(crate) fn range<T: PartialOrd + ToString>(
    ends: Option<Ends<T>>,
    field: &Field,
) -> Result<Option<RangeInclusive<T>>, Wrong> {
    match ends {
        Some([first, last]) if last < first => {
            let (first, last) = (first.to_string(), last.to_string());
            wrong(field, format!("[{first}, {last}] ends before it begins; expected [FIRST, LAST]"))
        }
        ends => Ok(ends.map(|[first, last]| first..=last)),
    }
}

/// `FILE:LINE` or `FILE:FIRST-LAST`.
fn lines(text: &str, field: &Field) -> Result<Lines, Wrong> {
    let lines = text.rsplit_once(':').and_then(|(file, lines)| {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (!file.is_empty() && first <= last)
            .then(|| Lines { file: file.to_owned(), lines: first..=last })
    });
    match lines {
        Some(lines) => Ok(lines),
        None => {
            wrong(field, format!("`{text}` names no lines; expected FILE:LINE or FILE:FIRST-LAST"))
        }
    }
}

/// `v4`, `s[0:3]`, `vcc`, `exec` and the like, as assemblers write them.
fn registers(text: &str, field: &Field) -> Result<RegisterRange, Wrong> {
    let pair = match text {
        "vcc" => Some(Register::VccLo),
        "exec" => Some(Register::ExecLo),
        "flat_scratch" => Some(Register::FlatScratchLo),
        _ => None,
    };
    let range = text.strip_suffix(']').and_then(|text| {
        let (file, numbers) = text.split_once('[')?;
        let (first, last) = numbers.split_once(':')?;
        let words = last.parse::<u8>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)?;
        Some(RegisterRange::new(format!("{file}{first}").parse().ok()?, words))
    });
    let one = text.parse().ok().map(|register| RegisterRange::new(register, 1));
    match pair.map(|first| RegisterRange::new(first, 2)).or(range).or(one) {
        Some(range) => Ok(range),
        None => wrong(
            field,
            format!("`{text}` names no registers; expected names like v4, s[0:3], vcc, m0 or scc"),
        ),
    }
}
