//! A tool: its file, its host side, and its table.

use super::code::{Finding, ToolCode};
use super::facts;
use super::host::{
    Callbacks, HostProcess, IncludeFolders, Malformed, Program, Reader, Request, Writer, compile,
    parameter_macros,
};
use super::inst_facts::OperationNumbers;
use super::output::{MemberType, Output, OutputKind};
use super::request::Requests;
use super::stream::TakenRecords;
use super::{CodeScope, HookVariables, Options, Row, ToolError, ToolFile, ToolScope};
use flipwave_codeobj::LineTable;
use flipwave_device::Dim3;
use flipwave_hooks::hook::{Declarations, HookCompiler, Source};
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::Target;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The largest number of rows of a table in device memory.
const MAX_ROWS: u32 = 1 << 24;

/// A tool that runs. Its table is that of the first `FLIPWAVE_ROWS`, or of the first output.
#[derive(Debug)]
pub struct Tool {
    file: ToolFile,
    outputs: Vec<Output>,
    /// Index of the output that is the table.
    table: usize,
    callbacks: Callbacks,
    folders: IncludeFolders,
    host: Mutex<HostState>,
}

#[derive(Debug)]
struct HostState {
    process: HostProcess,
    numbers: OperationNumbers,
    /// Number of dispatches of each kernel.
    launches: BTreeMap<String, u32>,
}

/// A dispatch, as tools see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchFacts {
    /// Number of the dispatch, from 0.
    pub number: u32,
    /// The kernel.
    pub kernel: String,
    /// Work items of the grid.
    pub grid: Dim3,
    /// Work items of a workgroup.
    pub workgroup: Dim3,
    /// Number of earlier dispatches of the kernel, see [`Tool::count_launch`].
    pub launch: u32,
}

/// Data that the hooks of a dispatch recorded.
#[derive(Debug)]
pub struct Recorded<'a> {
    /// The instrumented code.
    pub code: &'a ToolCode,
    /// The code that the dispatched kernel reaches.
    pub scope: &'a dyn CodeScope,
    /// The variables of the hooks after the dispatch.
    pub variables: &'a dyn HookVariables,
    /// The records that were taken while the dispatch ran.
    pub taken: TakenRecords,
}

/// The rows of a dispatch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRows {
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// Rows for what could not be counted.
    pub not_counted: Vec<Row>,
    /// Records that are missing because a buffer was full.
    pub lost: u64,
}

impl Tool {
    /// Compiles a tool and starts its host side. Errors of the file are found with the given target.
    ///
    /// # Errors
    /// [`ToolError`] if the file does not compile or does not declare a table.
    pub fn start(
        file: &ToolFile,
        compiler: &HookCompiler,
        target: &Target,
        wave_size: u8,
    ) -> Result<Tool, ToolError> {
        let folders = IncludeFolders::prepare()?;
        let source = compiler.read(&device_source(file, &folders, &[]), target, wave_size)?;
        Tool::start_host(file, folders, source.declarations())
    }

    /// Starts the host side of a tool with these declarations.
    ///
    /// # Errors
    /// See [`Tool::start`].
    pub(super) fn start_host(
        file: &ToolFile,
        folders: IncludeFolders,
        source: &Declarations,
    ) -> Result<Tool, ToolError> {
        if !source.defines("flipwave_instrument") {
            return Err(file.error("no function `void flipwave_instrument(const flipwave_inst *inst)`, which inserts hooks"));
        }
        let callbacks = Callbacks {
            on_dispatch: source.defines("flipwave_on_dispatch"),
            finish: source.defines("flipwave_finish"),
        };
        let program = compile(file, &folders, Program::Tool(callbacks))?;
        let mut process = HostProcess::start(file, program)?;
        let outputs = describe(file, source, &mut process)?;
        let rows = outputs.iter().position(|output| output.kind == OutputKind::Rows);
        if outputs.is_empty() {
            return Err(file.error("no table; declare one with FLIPWAVE_TABLE, FLIPWAVE_HISTOGRAM, FLIPWAVE_MAP, FLIPWAVE_STREAM, FLIPWAVE_ROWS or FLIPWAVE_DETECTOR"));
        }
        if rows.is_some() && !callbacks.finish {
            return Err(file
                .error("FLIPWAVE_ROWS needs a function `flipwave_finish`, which emits the rows"));
        }
        let state =
            HostState { process, numbers: OperationNumbers::default(), launches: BTreeMap::new() };
        Ok(Tool {
            file: file.clone(),
            outputs,
            table: rows.unwrap_or(0),
            callbacks,
            folders,
            host: Mutex::new(state),
        })
    }

    /// The names of the columns, after those of [`DispatchColumns`](super::DispatchColumns).
    pub fn columns(&self) -> Vec<String> {
        self.outputs[self.table].columns()
    }

    /// The names of the detectors, which are those of their variables.
    pub fn detectors(&self) -> impl Iterator<Item = &str> {
        let detectors = self.outputs.iter().filter(|output| output.kind == OutputKind::Detector);
        detectors.map(|output| output.name.as_str())
    }

    /// The file.
    pub fn file(&self) -> &ToolFile {
        &self.file
    }

    pub(super) fn folders(&self) -> &IncludeFolders {
        &self.folders
    }

    pub(super) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    pub(super) fn table(&self) -> &Output {
        &self.outputs[self.table]
    }

    fn host(&self) -> MutexGuard<'_, HostState> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error for an answer that cannot be read.
    pub(super) fn malformed(&self, _: Malformed) -> ToolError {
        self.file.error("its host side sent an invalid answer; it may have overwritten memory")
    }

    /// Requests the tool's hooks for the code of `scope`.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails, or a request does not match its hook.
    pub fn request_hooks(
        &self,
        instrumentation: &mut Instrumentation<'_>,
        compiler: &HookCompiler,
        options: &Options,
        scope: &ToolScope<'_>,
        lines: &LineTable,
    ) -> Result<ToolCode, ToolError> {
        let program = scope.program();
        let write = |writer: &mut Writer, numbers: &mut OperationNumbers| {
            facts::write(writer, scope, lines, numbers);
        };
        let requests = self.request(write).map_err(|error| error.at_inst(program))?;
        let records = options.records.max(1);
        let macros = self.capacity_macros(&requests, records)?;
        let source = device_source(&self.file, &self.folders, &macros);
        let source = compiler.read(&source, &program.target, program.wave_size)?;
        requests.insert(self, source, records, instrumentation)
    }

    /// Calls `flipwave_instrument` for the instructions whose facts `write` writes.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails.
    pub(super) fn request(
        &self,
        write: impl FnOnce(&mut Writer, &mut OperationNumbers),
    ) -> Result<Requests, ToolError> {
        let mut writer = Writer::default();
        let answer = {
            let host = &mut *self.host();
            write(&mut writer, &mut host.numbers);
            let content = writer.into_bytes();
            host.process.ask(Request::Instrument, &content)?
        };
        let requests = Requests::read(&mut Reader::new(&answer), self.outputs.len());
        requests.map_err(|malformed| self.malformed(malformed))
    }

    /// Macros with the sizes of the outputs in device memory.
    ///
    /// # Errors
    /// [`ToolError::Tool`] for tables that are too large.
    pub(super) fn capacity_macros(
        &self,
        requests: &Requests,
        records: u32,
    ) -> Result<Vec<(String, String)>, ToolError> {
        let mut macros = vec![("FLIPWAVE_RECORDS".to_owned(), records.to_string())];
        for (output, rows) in self.outputs.iter().zip(&requests.used) {
            if *rows > MAX_ROWS {
                let message = format!(
                    "`{}` has {rows} rows in memory; at most {MAX_ROWS} are possible",
                    output.name
                );
                return Err(self.file.error(&message));
            }
            // A power of two, so that compiled hooks can be reused for other code.
            let rows = rows.next_power_of_two();
            macros.push((format!("FLIPWAVE_ROWS_{}", output.name), format!("~,{rows}")));
        }
        Ok(macros)
    }

    /// Counts a dispatch of a kernel, and returns the number of earlier ones.
    pub fn count_launch(&self, kernel: &str) -> u32 {
        let launches = &mut self.host().launches;
        let count = launches.entry(kernel.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// Returns `true` if a dispatch is to run code with hooks: `flipwave_on_dispatch`.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails.
    pub fn chooses(&self, dispatch: &DispatchFacts) -> Result<bool, ToolError> {
        if !self.callbacks.on_dispatch {
            return Ok(true);
        }
        let mut writer = Writer::default();
        write_dispatch(&mut writer, dispatch, false);
        let answer = self.host().process.ask(Request::Dispatch, &writer.into_bytes())?;
        let chosen = Reader::new(&answer).word();
        Ok(chosen.map_err(|malformed| self.malformed(malformed))? != 0)
    }

    /// The rows of a dispatch that has ended. `recorded` is what its hooks recorded; `None` if the original code
    /// ran.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails.
    pub fn rows(
        &self,
        dispatch: &DispatchFacts,
        mut recorded: Option<Recorded<'_>>,
    ) -> Result<TableRows, ToolError> {
        let findings: Vec<Finding> = match &mut recorded {
            Some(Recorded { code, scope, variables, taken }) => {
                code.findings(self, *scope, *variables, taken)?
            }
            None => self.outputs.iter().map(|_| Finding::default()).collect(),
        };
        let lost = findings.iter().map(|finding| finding.lost).sum();
        let mut table = TableRows { lost, ..TableRows::default() };
        if self.callbacks.finish {
            let emitted = self.finish(dispatch, recorded.is_some(), &findings)?;
            if self.table().kind == OutputKind::Rows {
                table.rows = emitted;
            }
        }
        if self.table().kind != OutputKind::Rows {
            let finding = &findings[self.table];
            table.rows = finding.rows(self.table());
        }
        if let Some(Recorded { code, scope, .. }) = recorded {
            table.not_counted = code.not_counted(self, self.table, scope, &findings[self.table]);
        }
        Ok(table)
    }

    /// Calls `flipwave_finish` and returns the rows that it emitted for the table.
    fn finish(
        &self,
        dispatch: &DispatchFacts,
        is_instrumented: bool,
        findings: &[Finding],
    ) -> Result<Vec<Row>, ToolError> {
        let mut writer = Writer::default();
        write_dispatch(&mut writer, dispatch, is_instrumented);
        for (output, finding) in self.outputs.iter().zip(findings) {
            finding.write(&mut writer, output);
        }
        let answer = self.host().process.ask(Request::Finish, &writer.into_bytes())?;
        self.read_emitted(&answer).map_err(|malformed| self.malformed(malformed))
    }

    fn read_emitted(&self, answer: &[u8]) -> Result<Vec<Row>, Malformed> {
        let mut reader = Reader::new(answer);
        let mut rows = Vec::new();
        while !reader.is_empty() {
            let index = reader.word()? as usize;
            let output = self.outputs.get(index).ok_or(Malformed)?;
            let bytes = reader.bytes(output.size)?;
            let mut row = Vec::with_capacity(output.members.len());
            for member in &output.members {
                row.push(match member.kind {
                    MemberType::Text => super::Cell::text(&reader.text()?),
                    _ => member.cell(bytes),
                });
            }
            if index == self.table {
                rows.push(row);
            }
        }
        Ok(rows)
    }
}

impl ToolFile {
    /// An error of the file as a whole.
    pub(crate) fn error(&self, message: &str) -> ToolError {
        ToolError::Tool { place: self.name.clone(), message: message.to_owned() }
    }
}

/// The hooks of a tool as a source for the GPU.
pub(super) fn device_source(
    file: &ToolFile,
    folders: &IncludeFolders,
    macros: &[(String, String)],
) -> Source {
    let mut defines = vec![("FLIPWAVE_TOOL".to_owned(), "1".to_owned())];
    defines.extend(parameter_macros(file));
    defines.extend(macros.iter().cloned());
    let mut include = file.include.clone();
    include.extend([folders.common.clone(), folders.device.clone()]);
    Source { name: file.name.clone(), text: file.text.clone(), include, defines }
}

/// Asks for the outputs and parameters of a tool and checks the parameters.
fn describe(
    file: &ToolFile,
    source: &Declarations,
    process: &mut HostProcess,
) -> Result<Vec<Output>, ToolError> {
    let answer = process.ask(Request::Describe, &[])?;
    let malformed = |_| file.error("its host side sent an invalid description");
    let mut reader = Reader::new(&answer);
    let count = reader.word().map_err(malformed)?;
    let outputs = (0..count).map(|_| Output::read(&mut reader)).collect::<Result<Vec<_>, _>>();
    let mut outputs = outputs.map_err(malformed)?;
    let count = reader.word().map_err(malformed)?;
    let present = (0..count).map(|_| reader.text()).collect::<Result<Vec<_>, _>>();
    let present = present.map_err(malformed)?;
    for (name, value) in &file.parameters {
        let kind = present.iter().find_map(|known| {
            let (kind, known) = known.split_once(' ')?;
            (known == name).then_some(kind)
        });
        let is_number = parameter_macros(&one_parameter(file, name, value)).len() > 1;
        match kind {
            None => {
                let names = present.iter().filter_map(|known| known.split_once(' '));
                let present = names.map(|(_, name)| name.to_owned()).collect();
                return Err(ToolError::Parameter { name: name.clone(), present });
            }
            Some("number") if !is_number => {
                return Err(file.error(&format!(
                    "parameter `{name}` takes a number or the name of a constant, not `{value}`"
                )));
            }
            Some(_) => {}
        }
    }
    let mut layout = Writer::default();
    for output in &mut outputs {
        output.set_members(file, |tag| source.structures.get(tag).map(Vec::as_slice))?;
        let texts = output.members.iter().filter(|member| member.kind == MemberType::Text);
        let texts: Vec<u32> = texts.map(|member| member.offset as u32).collect();
        layout.word(texts.len() as u32);
        texts.into_iter().for_each(|offset| layout.word(offset));
    }
    process.ask(Request::LayOut, &layout.into_bytes())?;
    Ok(outputs)
}

fn one_parameter(file: &ToolFile, name: &str, value: &str) -> ToolFile {
    ToolFile { parameters: vec![(name.to_owned(), value.to_owned())], ..file.clone() }
}

fn write_dispatch(writer: &mut Writer, dispatch: &DispatchFacts, is_instrumented: bool) {
    writer.word(dispatch.number);
    writer.text(&dispatch.kernel);
    for size in dispatch.grid.iter().chain(&dispatch.workgroup) {
        writer.word(*size);
    }
    writer.word(dispatch.launch);
    writer.word(is_instrumented.into());
}
