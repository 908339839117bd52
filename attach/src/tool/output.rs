//! The table of a tool.

use crate::tool::ToolSession;
use flipwave_tools::DispatchColumns;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where rows go.
enum Sink {
    /// As they come, so that nothing is lost where the application does not end in order.
    File {
        path: PathBuf,
        file: File,
        /// Its bytes.
        length: u64,
    },
    /// Standard error, which is the application's until its end.
    Kept(Vec<u8>),
}

impl Sink {
    /// Appends whole lines, or nothing.
    fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        match self {
            Sink::File { path, file, length } => {
                if let Err(reason) = file.write_all(lines) {
                    // What there was room for; devices cannot be made shorter.
                    let _ = file.set_len(*length);
                    return Err(format!("cannot write to {}: {reason}", path.display()));
                }
                *length += lines.len() as u64;
            }
            Sink::Kept(kept) => kept.extend_from_slice(lines),
        }
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
    /// The only kernel that is looked at, and whether it has been dispatched.
    kernel: Option<(String, bool)>,
    /// Kernels that have been dispatched.
    kernels: BTreeSet<String>,
}

impl Output {
    /// An empty table.
    ///
    /// # Errors
    /// In words, if its file cannot be made.
    pub fn new(session: &ToolSession) -> Result<Output, String> {
        let sink = match &session.out {
            Some(path) => {
                let file = flipwave_output::stream(path).map_err(|reason| {
                    format!("cannot write the table to {}: {reason}", path.display())
                })?;
                Sink::File { path: path.clone(), file, length: 0 }
            }
            None => Sink::Kept(Vec::new()),
        };
        let open = Open {
            sink,
            has_header: false,
            is_complete: true,
            remarks: BTreeSet::new(),
            kernel: session.options.kernel.clone().map(|kernel| (kernel, false)),
            kernels: BTreeSet::new(),
        };
        Ok(Output { open: Mutex::new(Some(open)) })
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the rows of a dispatch.
    pub fn rows<R: Serialize>(&self, number: u32, kernel: &str, rows: &[R]) {
        let mut open = self.open();
        let Some(own) = open.as_mut().filter(|own| own.is_complete) else { return };
        let of = DispatchColumns { dispatch: number as usize, kernel };
        let written = lines(of, rows, !own.has_header).and_then(|lines| own.sink.append(&lines));
        own.has_header |= !rows.is_empty();
        if let Err(reason) = written {
            own.is_complete = false;
            own.remarks.insert(format!(
                "the table is not complete, it ends before dispatch {number}: {reason}"
            ));
        }
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
        }
        if let Some((wanted, seen)) = &mut own.kernel {
            *seen |= wanted == kernel;
        }
    }

    /// Has something said at the end, once.
    pub fn remark(&self, text: String) {
        if let Some(own) = self.open().as_mut() {
            own.remarks.insert(text);
        }
    }

    /// Writes what is to be written at the end of the application.
    pub fn finish(&self) {
        let Some(own) = self.open().take() else { return };
        let mut errors = io::stderr().lock();
        // Nobody is left to hear of failures.
        if let Sink::Kept(table) = own.sink {
            _ = errors.write_all(&table);
        }
        for remark in &own.remarks {
            _ = writeln!(errors, "flipwave: {remark}");
        }
        if let Some((wanted, false)) = &own.kernel {
            let kernels: Vec<&str> = own.kernels.iter().map(String::as_str).collect();
            let dispatched = kernels.join(", ");
            _ = writeln!(
                errors,
                "flipwave: kernel `{wanted}` is not dispatched; dispatched are: {dispatched}"
            );
        }
    }
}

/// The rows of a dispatch as lines of CSV.
fn lines<R: Serialize>(
    of: DispatchColumns<'_>,
    rows: &[R],
    with_header: bool,
) -> Result<Vec<u8>, String> {
    let mut csv = csv::WriterBuilder::new().has_headers(with_header).from_writer(Vec::new());
    let written = rows.iter().try_for_each(|row| csv.serialize((of, row)));
    written.map_err(|reason| reason.to_string())?;
    csv.into_inner().map_err(|reason| reason.to_string())
}
