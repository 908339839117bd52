//! The table and the messages of a tool in one process.

use crate::in_process::{output_file, report_event};
use crate::report::Event;
use crate::tool::ToolSession;
use flipwave_device::demangled_kernel;
use flipwave_tools::{
    DispatchColumns, Row, TableRows, Tool, csv_header, csv_lines, uncounted_dispatch,
};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The file of the table. Rows are written immediately, so that none is lost if the application ends
/// abnormally.
struct TableFile {
    path: PathBuf,
    file: File,
    /// The length of the file in bytes.
    length: u64,
}

impl TableFile {
    /// Appends lines, either all or none.
    fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        if let Err(reason) = self.file.write_all(lines) {
            // Removes partially written lines; fails for devices, which have no length.
            let _ = self.file.set_len(self.length);
            return Err(format!("cannot write to {}: {reason}", self.path.display()));
        }
        self.length += lines.len() as u64;
        Ok(())
    }
}

/// The table of a tool, and its messages.
pub struct Output {
    /// `None` once the output is finished.
    open: Mutex<Option<OpenOutput>>,
}

struct OpenOutput {
    table: TableFile,
    has_header: bool,
    /// `true` until a row cannot be written. No rows are written after a missing one.
    is_complete: bool,
    remarks: BTreeSet<String>,
    /// The kernels that have been dispatched.
    kernels: BTreeSet<String>,
    /// The process ID of the writer. A forked process has a copy, but must not write.
    pid: u32,
}

impl Output {
    /// Creates the file with an empty table.
    ///
    /// # Errors
    /// A message, if the file cannot be created.
    pub fn new(session: &ToolSession) -> Result<Output, String> {
        let path = output_file(&session.out)?;
        let file = flipwave_host::output::stream(&path)
            .map_err(|reason| format!("cannot write the table to {}: {reason}", path.display()))?;
        let table = TableFile { path, file, length: 0 };
        let open = OpenOutput {
            table,
            has_header: false,
            is_complete: true,
            remarks: BTreeSet::new(),
            kernels: BTreeSet::new(),
            pid: std::process::id(),
        };
        Ok(Output { open: Mutex::new(Some(open)) })
    }

    fn open(&self) -> MutexGuard<'_, Option<OpenOutput>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the rows of a dispatch, then the rows for what could not be counted. The header with the names of
    /// `columns` precedes the first row.
    pub fn rows(
        &self,
        dispatch: DispatchColumns<'_>,
        columns: &[String],
        rows: &[Row],
        not_counted: &[Row],
    ) {
        if rows.is_empty() && not_counted.is_empty() {
            return;
        }
        let mut open = self.open();
        let Some(open) = open.as_mut().filter(|open| open.is_complete) else { return };
        let lines = || {
            let mut lines = if open.has_header { Vec::new() } else { csv_header(columns)? };
            lines.extend(csv_lines(dispatch, rows)?);
            lines.extend(csv_lines(dispatch, not_counted)?);
            Ok(lines)
        };
        let lines = lines().map_err(|reason: csv::Error| reason.to_string());
        open.has_header |= lines.is_ok();
        if let Err(reason) = lines.and_then(|lines| open.table.append(&lines)) {
            open.is_complete = false;
            open.remarks.insert(format!(
                "the table is incomplete, it ends before dispatch {}: {reason}",
                dispatch.dispatch
            ));
        }
    }

    /// Writes the rows of a tool for a dispatch, or that it could not be counted.
    pub fn table(
        &self,
        tool: &Tool,
        dispatch: DispatchColumns<'_>,
        found: Result<TableRows, impl Display>,
    ) {
        let (number, kernel) = (dispatch.dispatch, dispatch.kernel);
        match found {
            Ok(TableRows { rows, not_counted, lost }) => {
                self.lost(number as u32, kernel, lost);
                self.rows(dispatch, &tool.columns(), &rows, &not_counted);
            }
            Err(reason) => {
                self.rows(dispatch, &tool.columns(), &[], &[uncounted_dispatch(tool)]);
                let remark = format!("not counted: dispatch {number}: {reason}");
                self.not_counted(format!("kernel {kernel}"), [remark]);
            }
        }
    }

    /// Reports that `what`, a number of sites or a kernel, could not be counted; adds `remarks` with the
    /// reasons.
    pub fn not_counted(&self, what: String, remarks: impl IntoIterator<Item = String>) {
        remarks.into_iter().for_each(|text| self.remark(text));
        report_event(&Event::NotCounted { what });
    }

    /// Adds a remark if records of a dispatch were lost.
    pub fn lost(&self, number: u32, kernel: &str, records: u64) {
        if records > 0 {
            self.remark(format!(
                "dispatch {number} (kernel `{}`): {records} records lost because the buffer was full; \
                 increase --records",
                demangled_kernel(kernel)
            ));
        }
    }

    /// Reports the first dispatch of a kernel.
    pub fn dispatched(&self, kernel: &str) {
        let mut open = self.open();
        let Some(open) = open.as_mut() else { return };
        if !open.kernels.contains(kernel) {
            open.kernels.insert(kernel.to_owned());
            report_event(&Event::Kernel { name: kernel.to_owned() });
        }
    }

    /// Adds a remark, which is reported once when the output is finished.
    pub fn remark(&self, text: String) {
        if let Some(open) = self.open().as_mut() {
            open.remarks.insert(text);
        }
    }

    /// Finishes the output and reports the remarks.
    pub fn finish(&self) {
        let open = self.open().take().filter(|open| open.pid == std::process::id());
        for text in open.into_iter().flat_map(|open| open.remarks) {
            report_event(&Event::Remark { text });
        }
    }

    /// Finishes the output of this process when it exits.
    ///
    /// # Errors
    /// A message, if no function can be registered.
    pub fn finish_at_exit(self: &Arc<Self>) -> Result<(), String> {
        // SAFETY: registers a function of this library, which stays loaded.
        if OUTPUT.set(Arc::clone(self)).is_ok() && unsafe { libc::atexit(at_exit) } != 0 {
            return Err("cannot register an exit handler to finish the table".to_owned());
        }
        Ok(())
    }
}

/// The output that [`at_exit`] finishes.
static OUTPUT: OnceLock<Arc<Output>> = OnceLock::new();

extern "C" fn at_exit() {
    if let Some(output) = OUTPUT.get() {
        output.finish();
    }
}
