//! The table of a tool.

use crate::inside::{output_file, report_event};
use crate::report::Event;
use crate::tool::ToolSession;
use flipwave_tools::{Cells, DispatchColumns, Header, Tool, csv_lines, uncounted_dispatch};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where rows go as they come, so that nothing is lost where the application does not end in order.
struct Sink {
    path: PathBuf,
    file: File,
    /// Its bytes.
    length: u64,
}

impl Sink {
    /// Appends whole lines, or nothing.
    fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        if let Err(reason) = self.file.write_all(lines) {
            // What there was room for; devices cannot be made shorter.
            let _ = self.file.set_len(self.length);
            return Err(format!("cannot write to {}: {reason}", self.path.display()));
        }
        self.length += lines.len() as u64;
        Ok(())
    }
}

/// The table, and what is to be said beside it.
pub struct Output {
    /// Nothing when the end has been written.
    open: Mutex<Option<Open>>,
}

struct Open {
    sink: Sink,
    has_header: bool,
    /// Whether all rows have been written so far. None is after one that is missing.
    is_complete: bool,
    remarks: BTreeSet<String>,
    /// Kernels that have been dispatched.
    kernels: BTreeSet<String>,
    /// The process whose table it is: one that was forked from it has a copy, and nothing to write.
    pid: u32,
}

impl Output {
    /// An empty table.
    ///
    /// # Errors
    /// In words, if its file cannot be made.
    pub fn new(session: &ToolSession) -> Result<Output, String> {
        let path = output_file(&session.out)?;
        let file = flipwave_host::output::stream(&path)
            .map_err(|reason| format!("cannot write the table to {}: {reason}", path.display()))?;
        let sink = Sink { path, file, length: 0 };
        let open = Open {
            sink,
            has_header: false,
            is_complete: true,
            remarks: BTreeSet::new(),
            kernels: BTreeSet::new(),
            pid: std::process::id(),
        };
        Ok(Output { open: Mutex::new(Some(open)) })
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the rows of a dispatch, then those for what could not be counted.
    pub fn rows<T: Tool>(&self, number: u32, kernel: &str, rows: &[T::Row], not_counted: &[Cells]) {
        let mut open = self.open();
        let Some(own) = open.as_mut().filter(|own| own.is_complete) else { return };
        let of = DispatchColumns { dispatch: number as usize, kernel };
        let header = if own.has_header { Header::Omitted } else { Header::Written };
        let lines = csv_lines::<T>(of, rows, not_counted, header);
        let written = lines.map_err(|reason| reason.to_string());
        own.has_header |= written.as_ref().is_ok_and(|lines| !lines.is_empty());
        let written = written.and_then(|lines| own.sink.append(&lines));
        if let Err(reason) = written {
            own.is_complete = false;
            own.remarks.insert(format!(
                "the table is not complete, it ends before dispatch {number}: {reason}"
            ));
        }
    }

    /// Marks a dispatch of which nothing was counted.
    pub fn marked<T: Tool>(&self, number: u32, kernel: &str) {
        self.rows::<T>(number, kernel, &[], &[uncounted_dispatch::<T>()]);
    }

    /// Has it said at the end, and to the program that has started the application, that something
    /// was not counted: how many sites, or which kernel.
    pub fn not_counted(&self, what: String, remarks: impl IntoIterator<Item = String>) {
        remarks.into_iter().for_each(|text| self.remark(text));
        report_event(&Event::NotCounted { what });
    }

    /// Has it said at the end if records of a dispatch found no place.
    pub fn lost(&self, number: u32, kernel: &str, records: u64) {
        if records > 0 {
            self.remark(format!(
                "dispatch {number} (kernel `{kernel}`): {records} records found no place; \
                 --records makes more room"
            ));
        }
    }

    /// Notes that a kernel has been dispatched.
    pub fn dispatched(&self, kernel: &str) {
        let mut open = self.open();
        let Some(own) = open.as_mut() else { return };
        if !own.kernels.contains(kernel) {
            own.kernels.insert(kernel.to_owned());
            report_event(&Event::Kernel { name: kernel.to_owned() });
        }
    }

    /// Has something said at the end, once.
    pub fn remark(&self, text: String) {
        if let Some(own) = self.open().as_mut() {
            own.remarks.insert(text);
        }
    }

    /// Reports what is to be said at the end of the application.
    pub fn finish(&self) {
        let open = self.open().take().filter(|own| own.pid == std::process::id());
        for text in open.into_iter().flat_map(|own| own.remarks) {
            report_event(&Event::Remark { text });
        }
    }
}
