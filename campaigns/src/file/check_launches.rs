//! Launches, their buffers and arguments, and outputs of the campaign file, checked.

use crate::file::campaign::{Argument, Buffer, BufferRole, Code, Launch};
use crate::file::compiler_options;
use crate::file::context::Context;
use crate::file::element::ElementType;
use crate::file::location::{Field, Wrong, wrong};
use crate::file::schema::{self, GOLDEN_INSTRUCTION_LIMIT, Grid, OPTIONS};
use crate::golden::suspicion::Suspicion;
use crate::outputs::compare::Tolerance;
use crate::outputs::extents::Extents;
use crate::program::buffers::Init;
use crate::program::triton::{Scratch, TritonMetadata};
use flipwave_device::Dim3;
use std::collections::BTreeMap;

/// Work-items of a workgroup that every AMD GPU allows at most.
const MAX_WORKGROUP: u64 = 1024;

/// LDS bytes of a workgroup that any AMD GPU has at most.
const MAX_LOCAL_MEMORY: u32 = 160 * 1024;

/// Bytes of a label at most.
const MAX_LABEL: usize = 200;

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
        context: Context<'_>,
        field: &Field,
    ) -> Result<(), Wrong> {
        match (workload.kernel, workload.dispatches, workload.app) {
            (Some(launch), None, None) => self.add_launch(launch, context, &field.key("kernel")),
            (None, Some(launches), None) if launches.is_empty() => {
                wrong(&field.key("dispatches"), "is empty; list at least one launch")
            }
            (None, Some(launches), None) => {
                let field = field.key("dispatches");
                for (index, launch) in launches.into_iter().enumerate() {
                    self.add_launch(launch, context, &field.index(index))?;
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
        context: Context<'_>,
        field: &Field,
    ) -> Result<(), Wrong> {
        let code = check_code(&launch, context, field)?;
        let metadata = match &launch.metadata {
            None => None,
            Some(path) => match TritonMetadata::read(&context.directory.join(path), context.target)
            {
                Ok(metadata) => Some(metadata),
                Err(message) => return wrong(&field.key("metadata"), message),
            },
        };
        let Some(kernel) = launch.name.or(metadata.as_ref().map(|own| own.name.clone())) else {
            return wrong(field, "needs the kernel's `name`");
        };
        if kernel.is_empty() {
            return wrong(&field.key("name"), "is empty; give the kernel's name");
        }
        if let Some(label) = &launch.label
            && (label.is_empty() || label.len() > MAX_LABEL || label.contains(char::is_control))
        {
            let message = format!("expected a text of one line, at most {MAX_LABEL} bytes long");
            return wrong(&field.key("label"), message);
        }
        let own_workgroup = metadata.as_ref().map(|own| own.workgroup);
        let (grid, workgroup) = check_grid(launch.grid, launch.workgroup, own_workgroup, field)?;
        let work_items: u64 =
            workgroup.iter().map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul);
        if work_items > MAX_WORKGROUP {
            return wrong(
                &field.key("workgroup"),
                format!("{work_items} work-items; at most {MAX_WORKGROUP} are possible"),
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
                arguments.push(self.add_scratch(kind, scratch, (grid, workgroup), &field)?);
            }
        }
        let instruction_limit = launch.instruction_limit.unwrap_or(GOLDEN_INSTRUCTION_LIMIT);
        if instruction_limit == 0 {
            return wrong(&field.key("instruction_limit"), "is 0; expected 1 or more");
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

    fn check_argument(
        &mut self,
        argument: schema::Argument,
        context: Context<'_>,
        field: &Field,
    ) -> Result<Argument, Wrong> {
        match (&argument.buffer, argument.scalar, argument.local_memory) {
            (Some(_), None, None) => self.check_buffer(argument, context, field),
            (None, Some(value), None) => {
                refuse_keys(&argument, &["type"], "a scalar", field)?;
                let Some(name) = argument.element else {
                    return wrong(field, "a scalar needs its `type`, for example `type: i32`");
                };
                let element = name.on(context.target);
                if element.elements_of_unit() > 1 {
                    let message =
                        format!("{element} is less than a byte; a scalar has whole bytes");
                    return wrong(&field.key("type"), message);
                }
                match element.encode(value) {
                    Ok(bits) => Ok(Argument::Scalar(element.pack([bits]))),
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
        context: Context<'_>,
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
        let (Some(written), Some(count)) = (argument.element, argument.count) else {
            return wrong(
                field,
                format!("buffer `{name}` is used here first: it needs its `type` and `count`"),
            );
        };
        if name.is_empty() {
            return wrong(&field.key("buffer"), "is empty; give the buffer a name");
        }
        let element = written.on(context.target);
        if !element.bytes_of(count).is_some_and(|bytes| (1..=MAX_BUFFER_BYTES).contains(&bytes)) {
            let most = element.elements_in(MAX_BUFFER_BYTES).unwrap_or_default();
            let step = match element.elements_of_unit() {
                1 => "",
                _ => ", an even number",
            };
            let message = format!("{count} elements; expected 1 to {most}{step}");
            return wrong(&field.key("count"), message);
        }
        let count = count as usize;
        let init = match Init::new(argument.init, element, count, context.directory) {
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
        let expected = match &argument.expected {
            Some(_) if !matches!(role, BufferRole::Output(_)) => {
                let message = "is for outputs; mark the buffer with `output: true`";
                return wrong(&field.key("expected"), message);
            }
            path => path.as_ref().map(|path| context.directory.join(path)),
        };
        self.buffers.push(Buffer { name, element, count, extents, init, role, expected });
        Ok(Argument::Buffer(self.buffers.len() - 1))
    }

    /// The argument for one kind of scratch memory of a kernel of Triton's.
    fn add_scratch(
        &mut self,
        kind: &str,
        scratch: Scratch,
        (grid, workgroup): (Dim3, Dim3),
        field: &Field,
    ) -> Result<Argument, Wrong> {
        let workgroups = (0..3).map(|axis| u64::from(grid[axis].div_ceil(workgroup[axis])));
        let bytes = scratch.bytes_of(workgroups.product());
        if bytes == Some(0) {
            return Ok(Argument::Null);
        }
        let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_BUFFER_BYTES) else {
            let message =
                format!("the {kind} of all workgroups is more than {MAX_BUFFER_BYTES} bytes");
            return wrong(field, message);
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
        ("expected", argument.expected.is_some()),
    ];
    for (key, present) in keys {
        if present && !allowed.contains(&key) {
            return wrong(&field.key(key), format!("{kind} takes no `{key}`"));
        }
    }
    Ok(())
}

fn check_code(launch: &schema::Launch, context: Context<'_>, field: &Field) -> Result<Code, Wrong> {
    let directory = context.directory;
    match (&launch.source, &launch.code_object) {
        (Some(_), None) if launch.metadata.is_some() => {
            wrong(&field.key("metadata"), "is of a code object that Triton has made: `code_object`")
        }
        (Some(source), None) => {
            let options = launch.options.clone();
            let options = options.unwrap_or_else(|| OPTIONS.map(str::to_owned).to_vec());
            if !context.allow.contains(&Suspicion::CompilerPlugins)
                && let Some((place, option)) = compiler_options::first_unsafe(&options)
            {
                let message = format!(
                    "`{option}` may have the compiler write other files or load code; if it is \
                     meant, say so with `allow: [compiler_plugins]`"
                );
                return wrong(&field.key("options").index(place), message);
            }
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

/// Work-items of a grid and of its workgroups, which may be those of a kernel of Triton's.
fn check_grid(
    grid: Grid,
    workgroup: Option<schema::Extent>,
    of_triton: Option<u32>,
    field: &Field,
) -> Result<(Dim3, Dim3), Wrong> {
    let (extent, at, is_in_workgroups) = match &grid {
        Grid::WorkItems(extent) => (extent, field.key("grid"), false),
        Grid::Workgroups(extent) => (extent, field.key("grid").key("workgroups"), true),
    };
    let mut all = check_extent(extent, &at)?;
    let dimensions = extent.0.len();
    let workgroup = match (workgroup, of_triton) {
        (Some(own), _) if own.0.len() != dimensions => {
            let own = own.0.len();
            return wrong(
                &field.key("workgroup"),
                format!(
                    "has {own} dimensions where the grid has {dimensions}; give both the same number"
                ),
            );
        }
        (Some(own), _) => check_extent(&own, &field.key("workgroup"))?,
        (None, Some(work_items)) => [work_items, 1, 1],
        (None, None) => return wrong(field, "needs the work-items of its `workgroup`"),
    };
    if is_in_workgroups {
        for (own, of_workgroup) in all.iter_mut().zip(workgroup) {
            let Some(work_items) = own.checked_mul(of_workgroup) else {
                let message = format!(
                    "{own} workgroups of {of_workgroup} work-items; at most {} work-items are possible \
                     in a dimension",
                    u32::MAX
                );
                return wrong(&at, message);
            };
            *own = work_items;
        }
    }
    Ok((all, workgroup))
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
