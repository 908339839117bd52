//! The table of a tool.

use crate::tool::ToolSession;
use flipwave_hooks::tools::Of;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where rows go.
enum Sink {
    /// As they come, so that nothing is lost where the application does not end in order.
    File(File),
    /// Standard error, which is the application's until its end.
    Kept(Vec<u8>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Kept(kept) => kept.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Kept(_) => Ok(()),
        }
    }
}

/// The table, and what is to be said beside it.
pub struct Output {
    /// Nothing when the end has been written.
    open: Mutex<Option<Open>>,
}

struct Open {
    writer: csv::Writer<Sink>,
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
            Some(file) => Sink::File(File::create(file).map_err(|reason| {
                format!("cannot write the table to {}: {reason}", file.display())
            })?),
            None => Sink::Kept(Vec::new()),
        };
        let open = Open {
            writer: csv::Writer::from_writer(sink),
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
        let Some(own) = open.as_mut() else { return };
        let of = Of { dispatch: number as usize, kernel };
        let mut write = || -> Result<(), csv::Error> {
            for row in rows {
                own.writer.serialize((of, row))?;
            }
            Ok(own.writer.flush()?)
        };
        if let Err(reason) = write() {
            own.remarks.insert(format!("the table is not complete: {reason}"));
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
        if let Ok(Sink::Kept(table)) = own.writer.into_inner() {
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
