//! Launches, their buffers and arguments, and outputs of the campaign file, checked.

use crate::buffers::Init;
use crate::campaign::{Argument, Buffer, BufferRole, Code, Launch};
use crate::compare::Tolerance;
use crate::extents::Extents;
use crate::location::{Field, Wrong, wrong};
use crate::schema::{self, GOLDEN_INSTRUCTION_LIMIT, OPTIONS};
use flipwave_device::Dim3;
use std::collections::BTreeMap;
use std::path::Path;

/// Work-items of a workgroup that every AMD GPU allows at most.
const MAX_WORKGROUP: u64 = 1024;

/// LDS bytes of a workgroup that any AMD GPU has at most.
const MAX_LOCAL_MEMORY: u32 = 160 * 1024;

/// Bytes of one buffer at most: buffers are filled and compared on the host.
const MAX_BUFFER_BYTES: u64 = 1 << 32;

/// The workload as it is put together launch by launch.
#[derive(Default)]
pub(crate) struct KernelsInProgress {
    pub buffers: Vec<Buffer>,
    pub launches: Vec<Launch>,
}

impl KernelsInProgress {
    pub fn check(
        &mut self,
        workload: schema::Workload,
        directory: &Path,
        field: &Field,
    ) -> Result<(), Wrong> {
        match (workload.kernel, workload.dispatches, workload.app) {
            (Some(launch), None, None) => self.add_launch(launch, directory, &field.key("kernel")),
            (None, Some(launches), None) if launches.is_empty() => {
                wrong(&field.key("dispatches"), "is empty; list at least one launch")
            }
            (None, Some(launches), None) => {
                let field = field.key("dispatches");
                for (index, launch) in launches.into_iter().enumerate() {
                    self.add_launch(launch, directory, &field.index(index))?;
                }
                Ok(())
            }
            _ => wrong(
                field,
                "expected one of `kernel` (one launch), `dispatches` (a list of launches) and, of \
                 a `workload`, `app` (an application)",
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
        let local_memory = match launch.local_memory {
            Some(bytes) => check_local_memory(bytes, field)?,
            None => 0,
        };
        let mut arguments = Vec::new();
        for (index, argument) in launch.args.into_iter().enumerate() {
            let field = field.key("args").index(index);
            arguments.push(match argument {
                None => Argument::Null,
                Some(argument) => self.check_argument(argument, directory, &field)?,
            });
        }
        let instruction_limit = launch.instruction_limit.unwrap_or(GOLDEN_INSTRUCTION_LIMIT);
        if instruction_limit == 0 {
            return wrong(&field.key("instruction_limit"), "is 0; expected 1 or more");
        }
        let kernel = launch.name;
        self.launches.push(Launch {
            code,
            kernel,
            grid,
            workgroup,
            local_memory,
            arguments,
            instruction_limit,
        });
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
                Ok(Argument::LocalMemory(check_local_memory(bytes, field)?))
            }
            _ => wrong(
                field,
                "expected exactly one of `buffer` (a name), `scalar` (a value) and `local_memory` \
                 (bytes); or `null` in the place of all, for a pointer to nothing",
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
        let role = match (argument.output, argument.detector) {
            (Some(true), Some(true)) => {
                return wrong(
                    &field.key("detector"),
                    "a buffer is either an output or a detector; results and the verdict of the \
                     program's own check must not be mixed up",
                );
            }
            (Some(true), _) => BufferRole::Output(Tolerance::default()),
            (_, Some(true)) => BufferRole::Detector,
            _ => BufferRole::Data,
        };
        let extents = match &argument.shape {
            None => None,
            Some(_) if !matches!(role, BufferRole::Output(_)) => {
                let message = "is for outputs; mark the buffer with `output: true`";
                return wrong(&field.key("shape"), message);
            }
            Some(shape) => Some(check_shape(shape, Some(count as u64), &field.key("shape"))?),
        };
        self.buffers.push(Buffer { name, element, count, extents, init, role });
        Ok(Argument::Buffer(self.buffers.len() - 1))
    }

    /// Gives the outputs their tolerances.
    pub fn check_outputs(
        &mut self,
        compare: BTreeMap<String, schema::Tolerance>,
    ) -> Result<(), Wrong> {
        if !self.buffers.iter().any(Buffer::is_output) {
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
                .filter(|buffer| buffer.is_output())
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
                    Ok(tolerance) => buffer.role = BufferRole::Output(tolerance),
                    Err(message) => return wrong(&field, message),
                }
            }
        }
        Ok(())
    }
}

/// The bytes of dynamic LDS that the key `local_memory` of a field gives.
fn check_local_memory(bytes: u32, field: &Field) -> Result<u32, Wrong> {
    match bytes {
        1..=MAX_LOCAL_MEMORY => Ok(bytes),
        _ => {
            let message = format!("{bytes} bytes; expected 1 to {MAX_LOCAL_MEMORY}");
            wrong(&field.key("local_memory"), message)
        }
    }
}

/// Dimensions of an output, which are those of `count` elements where their number is known.
pub(crate) fn check_shape(
    shape: &[u64],
    count: Option<u64>,
    field: &Field,
) -> Result<Extents, Wrong> {
    let extents = Extents::new(shape).or_else(|message| wrong(field, message))?;
    match count.map_or(Ok(()), |count| extents.check(count)) {
        Ok(()) => Ok(extents),
        Err(message) => wrong(field, message),
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
        ("shape", argument.shape.is_some()),
        ("init", argument.init.is_some()),
        ("output", argument.output.is_some()),
        ("detector", argument.detector.is_some()),
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
            let options = launch.options.clone();
            let options = options.unwrap_or_else(|| OPTIONS.map(str::to_owned).to_vec());
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
