//! A campaign, checked: what its file says, with every value in range and every name known.

use crate::buffers::Init;
use crate::compare::Tolerance;
use crate::element::ElementType;
use crate::location::Field;
use crate::schema;
use flipwave_analysis::Confidence;
use flipwave_device::Dim3;
use flipwave_injector::{FaultModel, Group};
use flipwave_isa::Target;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Work-items of a workgroup that every AMD GPU allows at most.
const MAX_WORKGROUP: u64 = 1024;

/// LDS bytes of a workgroup that any AMD GPU has at most.
const MAX_LOCAL_MEMORY: u32 = 160 * 1024;

/// Bytes of one buffer at most: buffers are filled and compared on the host.
const MAX_BUFFER_BYTES: u64 = 1 << 32;

/// Injections of one campaign at most: plan and results are kept in memory.
pub(crate) const MAX_COUNT: u64 = 10_000_000;

/// What a campaign file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Name of the campaign; results are called after it.
    pub name: String,
    /// Seed of buffer contents and of the fault sites.
    pub seed: u64,
    /// The GPU that kernels are compiled for and run on.
    pub target: Target,
    /// The buffers of all launches, in the order of their definition.
    pub buffers: Vec<Buffer>,
    /// What to launch, in order.
    pub launches: Vec<Launch>,
    /// What to inject.
    pub faults: Faults,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
}

/// Device memory of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Its name in the file.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Number of elements.
    pub count: usize,
    /// What it holds before the first launch.
    pub init: Init,
    /// How it is compared afterwards, if it is an output.
    pub output: Option<Tolerance>,
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Where the kernel's code comes from.
    pub code: Code,
    /// The kernel's name.
    pub kernel: String,
    /// Work-items per dimension.
    pub grid: Dim3,
    /// Work-items of a workgroup per dimension.
    pub workgroup: Dim3,
    /// The explicit arguments.
    pub arguments: Vec<Argument>,
}

/// Where a kernel's code comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Compiled on the fly.
    Source {
        /// OpenCL C (`.cl`) or HIP (`.hip`).
        path: PathBuf,
        /// The compiler's flags.
        options: Vec<String>,
    },
    /// Compiled before: an ELF file, an offload bundle or a HIP fat binary.
    Object {
        /// The file.
        path: PathBuf,
    },
}

/// An explicit kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Pointer to a buffer, by its index in [`Campaign::buffers`].
    Buffer(usize),
    /// A value, little-endian.
    Scalar(Vec<u8>),
    /// Pointer to this many bytes of dynamic LDS.
    LocalMemory(u32),
}

/// What to inject.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// What a fault does to the register it hits.
    pub model: FaultModel,
    /// The instructions whose destination registers can be hit.
    pub groups: Vec<Group>,
    /// How many faults.
    pub size: SampleSize,
}

/// How many faults a campaign injects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleSize {
    /// This many.
    Count(u64),
    /// As many as the estimate of a rate needs.
    Precision {
        /// Half-width of the interval around a rate, between 0 and 1.
        margin: f64,
        /// Probability that the interval holds the rate.
        confidence: Confidence,
    },
}

/// A campaign file that is wrong, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Line and column, both from 1, where it is wrong.
    pub position: Option<(usize, usize)>,
    /// What is wrong, what was expected, what to do.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for FileError {}

impl Buffer {
    /// The bytes it holds before the first launch, elements little-endian.
    ///
    /// # Errors
    /// Says what is wrong with the file that they should come from.
    pub fn contents(&self, seed: u64) -> Result<Vec<u8>, String> {
        self.init.bytes(&self.name, self.element, self.count, seed)
    }
}

impl Campaign {
    /// Reads a campaign file. Paths in it are relative to the file.
    ///
    /// # Errors
    /// [`FileError`] with the position of the field that is wrong.
    pub fn read(path: &Path) -> Result<Campaign, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| FileError {
            path: path.to_owned(),
            position: None,
            message: format!("cannot read the campaign file: {error}"),
        })?;
        Campaign::parse(&text, path)
    }

    /// Reads a campaign from the text of the file `path`.
    ///
    /// # Errors
    /// [`FileError`] with the position of the field that is wrong.
    pub fn parse(text: &str, path: &Path) -> Result<Campaign, FileError> {
        let file: schema::File =
            serde_yaml::from_str(text).map_err(|error| syntax_error(&error, path))?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let digest = crate::digest::hexadecimal(&Sha256::digest(text.as_bytes()));
        check(file, &directory, digest).map_err(|wrong| FileError {
            path: path.to_owned(),
            position: wrong.field.locate(text),
            message: format!("{}: {}", wrong.field, wrong.message),
        })
    }
}

/// The parser's error, with the position in front instead of behind.
fn syntax_error(error: &serde_yaml::Error, path: &Path) -> FileError {
    let position = error.location().map(|location| (location.line(), location.column()));
    let mut message = error.to_string();
    if let Some((line, column)) = position {
        let behind = format!(" at line {line} column {column}");
        message = message.replacen(&behind, "", 1);
    }
    FileError { path: path.to_owned(), position, message }
}

/// A field whose value cannot be.
#[derive(Debug)]
struct Wrong {
    field: Field,
    message: String,
}

/// Fails with `message` about `field`.
fn wrong<T>(field: &Field, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { field: field.clone(), message: message.into() })
}

fn check(file: schema::File, directory: &Path, digest: String) -> Result<Campaign, Wrong> {
    let root = Field::root();
    let name_is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !file.name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || !file.name.chars().all(name_is_plain)
    {
        return wrong(
            &root.key("name"),
            format!(
                "`{}` cannot name a results folder; use letters, digits, `-`, `_` and `.`, and \
                 begin with a letter or digit",
                file.name
            ),
        );
    }
    let target = match file.target.parse::<Target>() {
        Ok(target) => target,
        Err(error) => return wrong(&root.key("target"), error.to_string()),
    };
    let mut program = Program::default();
    program.check(file.workload, directory)?;
    program.check_outputs(file.compare)?;
    Ok(Campaign {
        name: file.name,
        seed: file.seed,
        target,
        buffers: program.buffers,
        launches: program.launches,
        faults: check_faults(file.faults)?,
        digest,
    })
}

fn check_faults(faults: schema::Faults) -> Result<Faults, Wrong> {
    let field = Field::root().key("faults");
    let model = match faults.model.parse() {
        Ok(model) => model,
        Err(error) => return wrong::<Faults>(&field.key("model"), format!("{error}")),
    };
    // One target exists; the key is there so that files state what they mean.
    let _: Option<schema::FaultTarget> = faults.target;
    let groups = match faults.groups {
        None => vec![Group::All],
        Some(names) if names.is_empty() => {
            return wrong(
                &field.key("groups"),
                "is empty; name at least one group, or leave the key out for all instructions",
            );
        }
        Some(names) => {
            let mut groups = Vec::new();
            for (index, name) in names.iter().enumerate() {
                match name.parse() {
                    Ok(group) => groups.push(group),
                    Err(error) => {
                        return wrong(&field.key("groups").index(index), format!("{error}"));
                    }
                }
            }
            groups
        }
    };
    let size = match (faults.count, faults.margin, faults.confidence) {
        (Some(count), None, None) => {
            if count == 0 || count > MAX_COUNT {
                return wrong(
                    &field.key("count"),
                    format!("{count} injections; expected 1 to {MAX_COUNT}"),
                );
            }
            SampleSize::Count(count)
        }
        (None, Some(margin), Some(confidence)) => {
            if !(margin > 0.0 && margin < 1.0) {
                return wrong(
                    &field.key("margin"),
                    format!("{margin:?} is not between 0 and 1; 5 percentage points are 0.05"),
                );
            }
            let confidence = match Confidence::new(confidence) {
                Ok(confidence) => confidence,
                Err(error) => return wrong(&field.key("confidence"), error.to_string()),
            };
            SampleSize::Precision { margin, confidence }
        }
        _ => {
            return wrong(&field, "expected either `count`, or both `margin` and `confidence`");
        }
    };
    Ok(Faults { model, groups, size })
}

/// The workload as it is put together launch by launch.
#[derive(Default)]
struct Program {
    buffers: Vec<Buffer>,
    launches: Vec<Launch>,
}

impl Program {
    fn check(&mut self, workload: schema::Workload, directory: &Path) -> Result<(), Wrong> {
        let field = Field::root().key("workload");
        match (workload.kernel, workload.dispatches) {
            (Some(launch), None) => self.add_launch(launch, directory, &field.key("kernel")),
            (None, Some(launches)) if launches.is_empty() => {
                wrong(&field.key("dispatches"), "is empty; list at least one launch")
            }
            (None, Some(launches)) => {
                let field = field.key("dispatches");
                for (index, launch) in launches.into_iter().enumerate() {
                    self.add_launch(launch, directory, &field.index(index))?;
                }
                Ok(())
            }
            _ => wrong(
                &field,
                "expected either `kernel` (one launch) or `dispatches` (a list of launches)",
            ),
        }
    }

    fn add_launch(
        &mut self,
        launch: schema::Launch,
        directory: &Path,
        field: &Field,
    ) -> Result<(), Wrong> {
        let code = check_code(&launch, directory, field)?;
        if launch.name.is_empty() {
            return wrong(&field.key("name"), "is empty; give the kernel's name");
        }
        let grid = check_extent(&launch.grid, &field.key("grid"))?;
        let workgroup = check_extent(&launch.workgroup, &field.key("workgroup"))?;
        if launch.grid.0.len() != launch.workgroup.0.len() {
            return wrong(
                &field.key("workgroup"),
                format!(
                    "has {} dimensions where the grid has {}; give both the same number",
                    launch.workgroup.0.len(),
                    launch.grid.0.len()
                ),
            );
        }
        let work_items: u64 =
            workgroup.iter().map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul);
        if work_items > MAX_WORKGROUP {
            return wrong(
                &field.key("workgroup"),
                format!("{work_items} work-items; at most {MAX_WORKGROUP} are possible"),
            );
        }
        let mut arguments = Vec::new();
        for (index, argument) in launch.args.into_iter().enumerate() {
            arguments.push(self.check_argument(
                argument,
                directory,
                &field.key("args").index(index),
            )?);
        }
        self.launches.push(Launch { code, kernel: launch.name, grid, workgroup, arguments });
        Ok(())
    }

    fn check_argument(
        &mut self,
        argument: schema::Argument,
        directory: &Path,
        field: &Field,
    ) -> Result<Argument, Wrong> {
        match (&argument.buffer, argument.scalar, argument.local_memory) {
            (Some(_), None, None) => self.check_buffer(argument, directory, field),
            (None, Some(value), None) => {
                refuse_keys(&argument, &["type"], "a scalar", field)?;
                let Some(element) = argument.element else {
                    return wrong(field, "a scalar needs its `type`, for example `type: i32`");
                };
                let mut bytes = Vec::new();
                match element.encode(value, &mut bytes) {
                    Ok(()) => Ok(Argument::Scalar(bytes)),
                    Err(message) => wrong(&field.key("scalar"), message),
                }
            }
            (None, None, Some(bytes)) => {
                refuse_keys(&argument, &[], "local memory", field)?;
                if bytes == 0 || bytes > MAX_LOCAL_MEMORY {
                    return wrong(
                        &field.key("local_memory"),
                        format!("{bytes} bytes; expected 1 to {MAX_LOCAL_MEMORY}"),
                    );
                }
                Ok(Argument::LocalMemory(bytes))
            }
            _ => wrong(
                field,
                "expected exactly one of `buffer` (a name), `scalar` (a value) and `local_memory` \
                 (bytes)",
            ),
        }
    }

    /// A buffer argument: the definition of a new buffer, or the name of one defined before.
    fn check_buffer(
        &mut self,
        argument: schema::Argument,
        directory: &Path,
        field: &Field,
    ) -> Result<Argument, Wrong> {
        let name = argument.buffer.clone().unwrap_or_default();
        if let Some(index) = self.buffers.iter().position(|buffer| buffer.name == name) {
            let again = format!(
                "buffer `{name}`, which was defined before (refer to it by its name alone, or \
                 choose another name),"
            );
            refuse_keys(&argument, &[], &again, field)?;
            return Ok(Argument::Buffer(index));
        }
        let (Some(element), Some(count)) = (argument.element, argument.count) else {
            return wrong(
                field,
                format!("buffer `{name}` is used here first: it needs its `type` and `count`"),
            );
        };
        if name.is_empty() {
            return wrong(&field.key("buffer"), "is empty; give the buffer a name");
        }
        let bytes = count.saturating_mul(element.size() as u64);
        if bytes == 0 || bytes > MAX_BUFFER_BYTES {
            return wrong(
                &field.key("count"),
                format!(
                    "{count} elements; expected 1 to {}",
                    MAX_BUFFER_BYTES / element.size() as u64
                ),
            );
        }
        let count = count as usize;
        let init = match Init::new(argument.init, element, count, directory) {
            Ok(init) => init,
            Err(message) => return wrong(&field.key("init"), message),
        };
        let output = argument.output.unwrap_or(false).then(Tolerance::default);
        self.buffers.push(Buffer { name, element, count, init, output });
        Ok(Argument::Buffer(self.buffers.len() - 1))
    }

    /// Gives the outputs their tolerances.
    fn check_outputs(&mut self, compare: BTreeMap<String, schema::Tolerance>) -> Result<(), Wrong> {
        if self.buffers.iter().all(|buffer| buffer.output.is_none()) {
            return wrong(
                &Field::root().key("workload"),
                "no buffer is an output; mark those that hold results with `output: true`",
            );
        }
        for (name, tolerance) in compare {
            let field = Field::root().key("compare").key(&name);
            let outputs: Vec<&str> = self
                .buffers
                .iter()
                .filter(|buffer| buffer.output.is_some())
                .map(|buffer| buffer.name.as_str())
                .collect();
            if !outputs.contains(&name.as_str()) {
                return wrong(
                    &field,
                    format!(
                        "no output is called `{name}`; the outputs are: {}",
                        outputs.join(", ")
                    ),
                );
            }
            for buffer in self.buffers.iter_mut().filter(|buffer| buffer.name == name) {
                match Tolerance::new(&tolerance, buffer.element) {
                    Ok(tolerance) => buffer.output = Some(tolerance),
                    Err(message) => return wrong(&field, message),
                }
            }
        }
        Ok(())
    }
}

/// Refuses the keys of an argument that mean nothing for its kind.
fn refuse_keys(
    argument: &schema::Argument,
    allowed: &[&str],
    kind: &str,
    field: &Field,
) -> Result<(), Wrong> {
    let keys = [
        ("type", argument.element.is_some()),
        ("count", argument.count.is_some()),
        ("init", argument.init.is_some()),
        ("output", argument.output.is_some()),
    ];
    for (key, present) in keys {
        if present && !allowed.contains(&key) {
            return wrong(&field.key(key), format!("{kind} takes no `{key}`"));
        }
    }
    Ok(())
}

fn check_code(launch: &schema::Launch, directory: &Path, field: &Field) -> Result<Code, Wrong> {
    match (&launch.source, &launch.code_object) {
        (Some(source), None) => {
            let options = launch.options.clone().unwrap_or_else(|| vec!["-O3".to_owned()]);
            Ok(Code::Source { path: directory.join(source), options })
        }
        (None, Some(_)) if launch.options.is_some() => {
            wrong(&field.key("options"), "are the compiler's; a code object is compiled already")
        }
        (None, Some(path)) => Ok(Code::Object { path: directory.join(path) }),
        _ => wrong(
            field,
            "expected either `source` (an OpenCL C or HIP file) or `code_object` (a compiled one)",
        ),
    }
}

fn check_extent(extent: &schema::Extent, field: &Field) -> Result<Dim3, Wrong> {
    let dimensions = &extent.0;
    if dimensions.is_empty() || dimensions.len() > 3 {
        return wrong(field, format!("{} dimensions; expected 1 to 3", dimensions.len()));
    }
    if dimensions.contains(&0) {
        return wrong(field, "is 0 in a dimension; expected at least 1 work-item");
    }
    let mut all = [1; 3];
    all[..dimensions.len()].copy_from_slice(dimensions);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
name: add
seed: 7
workload:
  kernel:
    source: kernels/add.cl
    name: add
    grid: 256
    workgroup: 64
    args:
      - {buffer: a, type: f32, count: 256, init: {uniform: [-1.0, 1.0]}}
      - {buffer: sum, type: f32, count: 256, output: true}
      - {scalar: 256, type: i32}
      - {local_memory: 64}
faults: {model: flip_one_bit, target: destination_register, groups: [valu, vmem], count: 100}
compare: {sum: {relative: 1.0e-5}}
";

    fn parse(text: &str) -> Result<Campaign, FileError> {
        Campaign::parse(text, Path::new("campaigns/add.yaml"))
    }

    /// Checks the error about the good campaign with `from` replaced by `to`: that it points to
    /// `at` in the new text, and has `parts` in it.
    fn assert_error(from: &str, to: &str, at: &str, parts: &[&str]) {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = parse(&text).expect_err(to).to_string();
        let (line, column) = text
            .lines()
            .enumerate()
            .find_map(|(index, line)| Some((index + 1, line.find(at)? + 1)))
            .expect(at);
        assert!(error.starts_with(&format!("campaigns/add.yaml:{line}:{column}: ")), "{error}");
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }

    #[test]
    fn a_campaign_is_read() {
        let campaign = parse(GOOD).expect("good");
        assert_eq!((campaign.name.as_str(), campaign.seed), ("add", 7));
        assert_eq!(campaign.target.to_string(), "gfx90a");
        assert_eq!(campaign.buffers.len(), 2);
        assert_eq!(campaign.buffers[0].output, None);
        let tolerance = Tolerance { relative: Some(1.0e-5), ..Tolerance::default() };
        assert_eq!(campaign.buffers[1].output, Some(tolerance));
        let launch = &campaign.launches[0];
        assert_eq!((launch.grid, launch.workgroup), ([256, 1, 1], [64, 1, 1]));
        let path = PathBuf::from("campaigns/kernels/add.cl");
        assert_eq!(launch.code, Code::Source { path, options: vec!["-O3".to_owned()] });
        assert_eq!(
            launch.arguments,
            [
                Argument::Buffer(0),
                Argument::Buffer(1),
                Argument::Scalar(vec![0, 1, 0, 0]),
                Argument::LocalMemory(64)
            ]
        );
        assert_eq!(campaign.faults.groups, [Group::Valu, Group::Vmem]);
        assert_eq!(campaign.faults.size, SampleSize::Count(100));
    }

    #[test]
    fn launches_share_buffers_by_name() {
        let again = "  dispatches:
    - {source: add.cl, name: add, grid: [64, 2], workgroup: [64, 1], args: [
        {buffer: x, type: u32, count: 4, output: true}]}
    - {code_object: add.co, name: more, grid: 64, workgroup: 64, args: [{buffer: x}]}
";
        let start = GOOD.find("  kernel:").expect("kernel");
        let end = GOOD.find("faults:").expect("faults");
        let text = format!("{}{again}{}", &GOOD[..start], &GOOD[end..]).replace("sum:", "x:");
        let campaign = parse(&text).expect("good");
        assert_eq!(campaign.buffers.len(), 1);
        assert_eq!(campaign.launches.len(), 2);
        assert_eq!(campaign.launches[0].grid, [64, 2, 1]);
        assert_eq!(campaign.launches[1].arguments, [Argument::Buffer(0)]);
        assert_eq!(campaign.launches[1].code, Code::Object { path: "campaigns/add.co".into() });
    }

    #[test]
    fn unknown_keys_are_refused_everywhere() {
        assert_error("seed: 7", "sede: 7", "sede", &["sede", "seed"]);
        assert_error("grid: 256", "gird: 256", "gird", &["workload.kernel", "gird", "grid"]);
        assert_error("output: true", "outptu: true", "outptu", &["args[1]", "outptu", "output"]);
        assert_error("count: 100", "cuont: 100", "cuont", &["faults", "cuont", "count"]);
        assert_error("relative:", "relativ:", "relativ:", &["compare", "relativ", "relative"]);
        assert_error("uniform:", "unifrom:", "unifrom", &["init", "unifrom", "uniform"]);
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused() {
        assert_error("seed: 7", "seed: seven", "seven", &["seed", "seven"]);
        assert_error("type: f32", "type: float", "float", &["float", "f32"]);
        assert_error("grid: 256", "grid: wide", "wide", &["grid", "work-items"]);
        assert_error("count: 256", "count: -1", "-1", &["count", "-1"]);
        assert_error("name: add\nseed", "seed", "seed", &["name"]);
        assert_error("seed: 7", "seed: 7\nseed: 8", "name", &["duplicate", "seed"]);
        let twice = "{exact: true}, sum: {exact: true}";
        assert_error("{relative: 1.0e-5}", twice, "{sum", &["compare", "twice"]);
    }

    #[test]
    fn names_that_cannot_be_are_refused_where_they_stand() {
        assert_error("name: add\n", "name: ../add\n", "../add", &["name", "folder"]);
        assert_error("seed: 7", "target: gfx9", "gfx9", &["gfx9", "gfx90a"]);
        assert_error("flip_one_bit", "flip_bit", "flip_bit", &["flip_bit", "flip_one_bit"]);
        assert_error("[valu, vmem]", "[valu, vmme]", "vmme", &["groups[1]", "vmme", "vmem"]);
        assert_error("[valu, vmem]", "[]", "[]", &["groups", "empty"]);
        assert_error("compare: {sum", "compare: {a", "{relative", &["`a`", "outputs are: sum"]);
        assert_error(", output: true", "", "kernel:", &["output: true"]);
        assert_error("buffer: sum, type", "buffer: a, type", "f32, count: 256, output", &["`a`"]);
    }

    #[test]
    fn shapes_that_cannot_be_are_refused_where_they_stand() {
        assert_error("grid: 256", "grid: 0", "0", &["workload.kernel.grid", "at least 1"]);
        assert_error("grid: 256", "grid: [1, 1, 1, 1]", "[1, 1", &["4 dimensions"]);
        assert_error("workgroup: 64", "workgroup: 2048", "2048", &["1024"]);
        assert_error("workgroup: 64", "workgroup: [64, 1]", "[64, 1]", &["dimensions"]);
        assert_error("256, output", "0, output", "0, output", &["args[1].count", "expected 1"]);
        assert_error("local_memory: 64", "local_memory: 0", "0}", &["expected 1"]);
    }

    #[test]
    fn arguments_that_cannot_be_are_refused_where_they_stand() {
        assert_error("scalar: 256, type: i32", "scalar: 256, type: u8", "256, type: u8", &["u8"]);
        assert_error("scalar: 256, type: i32", "scalar: 256", "{scalar", &["type"]);
        assert_error("[-1.0, 1.0]", "[1.0, -1.0]", "{uniform", &["init", "smaller first"]);
        assert_error("{local_memory: 64}", "{}", "{}", &["exactly one"]);
        let counted = "local_memory: 64, count: 1";
        assert_error("local_memory: 64", counted, "1}", &["takes no `count`"]);
        let untyped = "buffer: sum, output";
        assert_error(
            "buffer: sum, type: f32, count: 256, output",
            untyped,
            "{buffer: sum",
            &["`type` and `count`"],
        );
        let source = "source: kernels/add.cl";
        assert_error(source, "options: []", "options", &["source", "code_object"]);
        assert_error(source, "source: a\n    code_object: b", "source", &["either"]);
        assert_error(source, "code_object: b\n    options: []", "[]", &["compiled already"]);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_where_they_stand() {
        assert_error("count: 100", "count: 0", "0}", &["faults.count"]);
        assert_error(", count: 100", "", "{model", &["margin", "confidence"]);
        assert_error("count: 100", "margin: 0.05", "{model", &["margin", "confidence"]);
        assert_error("count: 100", "margin: 5, confidence: 0.95", "5, confidence", &["0.05"]);
        assert_error("count: 100", "margin: 0.05, confidence: 95", "95}", &["95"]);
        assert_error("1.0e-5", ".nan", "{relative", &["compare.sum", "relative"]);
        assert_error("relative: 1.0e-5", "ulp: 1, exact: true", "{ulp", &["exact"]);
    }

    #[test]
    fn the_example_of_the_documentation_is_a_campaign() {
        let (_, behind) = include_str!("../README.md").split_once("```yaml\n").expect("an example");
        let (example, _) = behind.split_once("```").expect("an end");
        assert_eq!(parse(example).expect("good").name, "matmul");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Campaign::read(Path::new("/nowhere/x.yaml")).expect_err("missing").to_string();
        assert!(error.starts_with("/nowhere/x.yaml: cannot read"), "{error}");
    }

    #[test]
    fn text_that_is_no_yaml_is_an_error_with_its_position() {
        let error = parse("name: add\nseed: }").expect_err("no YAML").to_string();
        assert!(error.starts_with("campaigns/add.yaml:2:7: "), "{error}");
        for text in ["", "[]", "3", "\u{0}"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
