//! Validation of launches, buffers, arguments and outputs in a campaign file.

use crate::file::check_arguments::PendingPointer;
use crate::file::compiler_options;
use crate::file::context::Context;
use crate::file::element::ElementType;
use crate::file::kernels::{Argument, Buffer, BufferRole, Code, Launch};
use crate::file::location::{Field, FieldError, reject};
use crate::file::schema::{self, GOLDEN_INSTRUCTION_LIMIT, Grid, OPTIONS};
use crate::golden::suspicion::Suspicion;
use crate::outputs::compare::Tolerance;
use crate::outputs::extents::Extents;
use crate::program::buffers::Init;
use crate::program::triton::{Scratch, TritonMetadata};
use flipwave_device::Dim3;
use std::collections::BTreeMap;

/// Maximum number of work-items per workgroup on all AMD GPUs.
const MAX_WORKGROUP: u64 = 1024;

/// Maximum number of LDS bytes per workgroup on any AMD GPU.
const MAX_LOCAL_MEMORY: u32 = 160 * 1024;

/// Maximum number of bytes of a label.
const MAX_LABEL: usize = 200;

/// Maximum number of bytes of a buffer. Buffers are filled and compared on the host.
const MAX_BUFFER_BYTES: u64 = 1 << 32;

/// Buffers and launches of a workload, added launch by launch.
#[derive(Default)]
pub(crate) struct KernelsBuilder {
    pub buffers: Vec<Buffer>,
    pub launches: Vec<Launch>,
    pub(super) pointers: Vec<PendingPointer>,
}

impl KernelsBuilder {
    /// Validates the launches of a workload, and adds them.
    pub fn check(
        &mut self,
        workload: schema::Workload,
        context: Context<'_>,
        field: &Field,
    ) -> Result<(), FieldError> {
        self.check_buffers(workload.buffers, context, &field.key("buffers"))?;
        match (workload.kernel, workload.dispatches, workload.app) {
            (Some(launch), None, None) => self.add_launch(launch, context, &field.key("kernel")),
            (None, Some(launches), None) if launches.is_empty() => {
                reject(&field.key("dispatches"), "is empty; list at least one launch")
            }
            (None, Some(launches), None) => {
                let field = field.key("dispatches");
                for (index, launch) in launches.into_iter().enumerate() {
                    self.add_launch(launch, context, &field.index(index))?;
                }
                Ok(())
            }
            _ => reject(
                field,
                "expected exactly one of `kernel` (one launch), `dispatches` (a list of launches), and for \
                 a `workload` also `app` (an application)",
            ),
        }
    }

    fn add_launch(
        &mut self,
        launch: schema::Launch,
        context: Context<'_>,
        field: &Field,
    ) -> Result<(), FieldError> {
        let code = check_code(&launch, context, field)?;
        let metadata = match &launch.metadata {
            None => None,
            Some(path) => match TritonMetadata::read(&context.directory.join(path), context.target)
            {
                Ok(metadata) => Some(metadata),
                Err(message) => return reject(&field.key("metadata"), message),
            },
        };
        let metadata_name = metadata.as_ref().map(|metadata| metadata.name.clone());
        let Some(kernel) = launch.name.or(metadata_name) else {
            return reject(field, "missing: the kernel's `name`");
        };
        if kernel.is_empty() {
            return reject(&field.key("name"), "is empty; give the kernel's name");
        }
        if let Some(label) = &launch.label
            && (label.is_empty() || label.len() > MAX_LABEL || label.contains(char::is_control))
        {
            let message = format!("expected text of one line with at most {MAX_LABEL} bytes");
            return reject(&field.key("label"), message);
        }
        let default_workgroup = metadata.as_ref().map(|metadata| metadata.workgroup);
        let (grid, workgroup) =
            check_grid(launch.grid, launch.workgroup, default_workgroup, field)?;
        let work_items: u64 =
            workgroup.iter().map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul);
        if work_items > MAX_WORKGROUP {
            return reject(
                &field.key("workgroup"),
                format!("{work_items} work-items; expected at most {MAX_WORKGROUP}"),
            );
        }
        let local_memory = match (launch.local_memory, &metadata) {
            (Some(bytes), _) => check_local_memory(bytes, field)?,
            (None, Some(metadata)) => metadata.local_memory,
            (None, None) => 0,
        };
        let mut arguments = Vec::new();
        for (index, argument) in launch.args.into_iter().enumerate() {
            let field = field.key("args").index(index);
            arguments.push(match argument {
                None => Argument::Null,
                Some(argument) => self.check_argument(argument, context, &field)?,
            });
        }
        if let Some(metadata) = &metadata {
            for (kind, scratch) in metadata.scratch() {
                let field = field.key("metadata");
                arguments.push(self.add_scratch(kind, scratch, grid, workgroup, &field)?);
            }
        }
        let instruction_limit = launch.instruction_limit.unwrap_or(GOLDEN_INSTRUCTION_LIMIT);
        if instruction_limit == 0 {
            return reject(&field.key("instruction_limit"), "is 0; expected 1 or more");
        }
        let label = launch.label;
        self.launches.push(Launch {
            code,
            kernel,
            label,
            grid,
            workgroup,
            local_memory,
            arguments,
            instruction_limit,
        });
        Ok(())
    }

    /// Validates the buffers of a workload that are not arguments themselves.
    fn check_buffers(
        &mut self,
        buffers: Vec<schema::Argument>,
        context: Context<'_>,
        field: &Field,
    ) -> Result<(), FieldError> {
        for (index, buffer) in buffers.into_iter().enumerate() {
            let field = field.index(index);
            match self.check_argument(buffer, context, &field)? {
                Argument::Buffer(_) => {}
                _ => return reject(&field, "is not a buffer; expected the key `buffer`"),
            }
        }
        Ok(())
    }

    /// Validates a buffer argument, which defines a new buffer or refers to an existing one. Returns its
    /// index.
    pub(super) fn check_buffer(
        &mut self,
        argument: schema::Argument,
        context: Context<'_>,
        field: &Field,
    ) -> Result<usize, FieldError> {
        let name = argument.buffer.clone().unwrap_or_default();
        if let Some(index) = self.buffers.iter().position(|buffer| buffer.name == name) {
            let kind = format!(
                "buffer `{name}`, which is already defined (refer to it without other keys, or choose \
                 another name),"
            );
            reject_keys(&argument, &[], &kind, field)?;
            return Ok(index);
        }
        if argument.size.is_some() {
            return reject(
                &field.key("size"),
                "requires a struct; the size of a buffer is its `count`",
            );
        }
        if name.is_empty() {
            return reject(&field.key("buffer"), "is empty; give the buffer a name");
        }
        let (element, count, image) = self.check_content(&argument, &name, context, field)?;
        if !element.bytes_of(count).is_some_and(|bytes| (1..=MAX_BUFFER_BYTES).contains(&bytes)) {
            let max = element.elements_in(MAX_BUFFER_BYTES).unwrap_or_default();
            let step = match element.elements_of_unit() {
                1 => "",
                _ => ", an even number",
            };
            let message = format!("{count} elements; expected 1 to {max}{step}");
            return reject(&field.key("count"), message);
        }
        let count = count as usize;
        let init = match image {
            Some(image) => Init::Image(image),
            None => match Init::new(argument.init, element, count, context.directory) {
                Ok(init) => init,
                Err(message) => return reject(&field.key("init"), message),
            },
        };
        let role = match (argument.output, argument.detector) {
            (Some(true), Some(true)) => {
                return reject(
                    &field.key("detector"),
                    "a buffer is either an output or a detector; use different buffers for results and \
                     for the result of the program's error check",
                );
            }
            (Some(true), _) => BufferRole::Output(Tolerance::default()),
            (_, Some(true)) => BufferRole::Detector,
            _ => BufferRole::Data,
        };
        let extents = match &argument.shape {
            None => None,
            Some(_) if !matches!(role, BufferRole::Output(_)) => {
                let message = "requires an output; mark the buffer with `output: true`";
                return reject(&field.key("shape"), message);
            }
            Some(shape) => Some(check_shape(shape, Some(count as u64), &field.key("shape"))?),
        };
        let expected = match &argument.expected {
            Some(_) if !matches!(role, BufferRole::Output(_)) => {
                let message = "requires an output; mark the buffer with `output: true`";
                return reject(&field.key("expected"), message);
            }
            path => path.as_ref().map(|path| context.directory.join(path)),
        };
        // The members of a struct in this buffer may have defined a buffer with the same name.
        if self.buffers.iter().any(|buffer| buffer.name == name) {
            return reject(&field.key("buffer"), format!("buffer `{name}` is defined in itself"));
        }
        self.buffers.push(Buffer { name, element, count, extents, init, role, expected });
        Ok(self.buffers.len() - 1)
    }

    /// Adds a buffer for one kind of scratch memory of a Triton kernel, and returns its argument.
    fn add_scratch(
        &mut self,
        kind: &str,
        scratch: Scratch,
        grid: Dim3,
        workgroup: Dim3,
        field: &Field,
    ) -> Result<Argument, FieldError> {
        let workgroups = (0..3).map(|axis| u64::from(grid[axis].div_ceil(workgroup[axis])));
        let bytes = scratch.bytes_of(workgroups.product());
        if bytes == Some(0) {
            return Ok(Argument::Null);
        }
        let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_BUFFER_BYTES) else {
            let message = format!("the {kind} of all workgroups exceeds {MAX_BUFFER_BYTES} bytes");
            return reject(field, message);
        };
        self.buffers.push(Buffer {
            name: format!("{kind} of launch {}", self.launches.len()),
            element: ElementType::U8,
            count: bytes as usize,
            extents: None,
            init: Init::Zeros,
            role: BufferRole::Data,
            expected: None,
        });
        Ok(Argument::Buffer(self.buffers.len() - 1))
    }

    /// Validates the tolerances, and assigns them to outputs. `faults` states that a fault will be
    /// injected, whose outcome depends on the outputs.
    pub fn check_outputs(
        &mut self,
        compare: BTreeMap<String, schema::Tolerance>,
        faults: FaultsPresence,
    ) -> Result<(), FieldError> {
        if faults == FaultsPresence::Present && !self.buffers.iter().any(Buffer::is_output) {
            return reject(
                &Field::root().key("workload"),
                "no buffer is an output, so that faults have no outcome; mark buffers that contain results \
                 with `output: true`. Only files without `faults` need no output",
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
                return reject(
                    &field,
                    format!("no output `{name}`; the outputs are: {}", outputs.join(", ")),
                );
            }
            for buffer in self.buffers.iter_mut().filter(|buffer| buffer.name == name) {
                match Tolerance::new(&tolerance, buffer.element) {
                    Ok(tolerance) => buffer.role = BufferRole::Output(tolerance),
                    Err(message) => return reject(&field, message),
                }
            }
        }
        Ok(())
    }
}

/// Presence of `faults` in a campaign file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultsPresence {
    /// Faults are injected.
    Present,
    /// The file is for commands that inject no faults.
    Absent,
}

/// Validates the bytes of dynamic LDS in the key `local_memory` of a field.
pub(super) fn check_local_memory(bytes: u32, field: &Field) -> Result<u32, FieldError> {
    match bytes {
        1..=MAX_LOCAL_MEMORY => Ok(bytes),
        _ => {
            let message = format!("{bytes} bytes; expected 1 to {MAX_LOCAL_MEMORY}");
            reject(&field.key("local_memory"), message)
        }
    }
}

/// Validates the dimensions of an output, and that they match `count` if it is known.
pub(crate) fn check_shape(
    shape: &[u64],
    count: Option<u64>,
    field: &Field,
) -> Result<Extents, FieldError> {
    let extents = Extents::new(shape).or_else(|message| reject(field, message))?;
    match count.map_or(Ok(()), |count| extents.check(count)) {
        Ok(()) => Ok(extents),
        Err(message) => reject(field, message),
    }
}

/// Rejects keys of an argument that its kind does not support.
pub(super) fn reject_keys(
    argument: &schema::Argument,
    allowed: &[&str],
    kind: &str,
    field: &Field,
) -> Result<(), FieldError> {
    let keys = [
        ("type", argument.element.is_some()),
        ("count", argument.count.is_some()),
        ("shape", argument.shape.is_some()),
        ("init", argument.init.is_some()),
        ("output", argument.output.is_some()),
        ("detector", argument.detector.is_some()),
        ("expected", argument.expected.is_some()),
        ("size", argument.size.is_some()),
        ("offset", argument.offset.is_some()),
    ];
    for (key, present) in keys {
        if present && !allowed.contains(&key) {
            return reject(&field.key(key), format!("{kind} does not support `{key}`"));
        }
    }
    Ok(())
}

fn check_code(
    launch: &schema::Launch,
    context: Context<'_>,
    field: &Field,
) -> Result<Code, FieldError> {
    let directory = context.directory;
    match (&launch.source, &launch.code_object) {
        (Some(_), None) if launch.metadata.is_some() => reject(
            &field.key("metadata"),
            "requires `code_object`, a code object written by Triton",
        ),
        (Some(source), None) => {
            let options = launch.options.clone();
            let options = options.unwrap_or_else(|| OPTIONS.map(str::to_owned).to_vec());
            if !context.allow.contains(&Suspicion::CompilerPlugins)
                && let Some((index, option)) = compiler_options::first_unsafe(&options)
            {
                let message = format!(
                    "`{option}` may make the compiler write other files or load code; if this is \
                     intended, use `allow: [compiler_plugins]`"
                );
                return reject(&field.key("options").index(index), message);
            }
            Ok(Code::Source { path: directory.join(source), options })
        }
        (None, Some(_)) if launch.options.is_some() => {
            reject(&field.key("options"), "require `source`; a code object is already compiled")
        }
        (None, Some(path)) => Ok(Code::Object { path: directory.join(path) }),
        _ => reject(
            field,
            "expected either `source` (an OpenCL C or HIP file) or `code_object` (a compiled file)",
        ),
    }
}

/// Validates the sizes of a grid and its workgroups, and returns them in work-items. `default_workgroup`
/// is the workgroup size of a Triton kernel.
fn check_grid(
    grid: Grid,
    workgroup: Option<schema::Extent>,
    default_workgroup: Option<u32>,
    field: &Field,
) -> Result<(Dim3, Dim3), FieldError> {
    let (extent, at, is_in_workgroups) = match &grid {
        Grid::WorkItems(extent) => (extent, field.key("grid"), false),
        Grid::Workgroups(extent) => (extent, field.key("grid").key("workgroups"), true),
    };
    let mut all = check_extent(extent, &at)?;
    let dimensions = extent.0.len();
    let workgroup = match (workgroup, default_workgroup) {
        (Some(extent), _) if extent.0.len() != dimensions => {
            let found = extent.0.len();
            let message = format!("{found} dimensions; expected {dimensions} as in the grid");
            return reject(&field.key("workgroup"), message);
        }
        (Some(extent), _) => check_extent(&extent, &field.key("workgroup"))?,
        (None, Some(work_items)) => [work_items, 1, 1],
        (None, None) => return reject(field, "missing: the work-items of the `workgroup`"),
    };
    if is_in_workgroups {
        for (size, workgroup_size) in all.iter_mut().zip(workgroup) {
            let Some(work_items) = size.checked_mul(workgroup_size) else {
                let message = format!(
                    "{size} workgroups of {workgroup_size} work-items; expected at most {} work-items in a \
                     dimension",
                    u32::MAX
                );
                return reject(&at, message);
            };
            *size = work_items;
        }
    }
    Ok((all, workgroup))
}

/// Validates a size in one to three dimensions. Missing dimensions are 1.
fn check_extent(extent: &schema::Extent, field: &Field) -> Result<Dim3, FieldError> {
    let dimensions = &extent.0;
    if dimensions.is_empty() || dimensions.len() > 3 {
        return reject(field, format!("{} dimensions; expected 1 to 3", dimensions.len()));
    }
    if dimensions.contains(&0) {
        return reject(field, "is 0 in a dimension; expected at least 1 work-item");
    }
    let mut all = [1; 3];
    all[..dimensions.len()].copy_from_slice(dimensions);
    Ok(all)
}
