//! Writing of captures.

use crate::step::{
    COOPERATIVE_DISPATCH, CodeObjectId, DISPATCH, RecordedDispatch, Step, encode_ranges,
};
use crate::{CaptureError, FORMAT, schema};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use flipwave_device::Change;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Settings that make writing fast. A capture need not survive a power failure while it is written.
const FAST: &str = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;";

/// A capture that is being written. Steps are in the file once [`Writer::save`] was called. After
/// an error, the file contains the steps up to the last call.
pub struct Writer {
    file: PathBuf,
    database: Connection,
}

impl Writer {
    /// Creates a file, for a run of `command` on a GPU.
    ///
    /// # Errors
    /// [`CaptureError::Database`], also if the file exists.
    pub fn create(file: &Path, gpu: &str, command: &str) -> Result<Writer, CaptureError> {
        let failed = CaptureError::database(file);
        let database = Connection::open(file).map_err(&failed)?;
        database.execute_batch(FAST).map_err(&failed)?;
        database.execute_batch(schema::TABLES).map_err(&failed)?;
        let writer = Writer { file: file.to_owned(), database };
        writer.set("format", FORMAT)?;
        writer.set("gpu", gpu)?;
        writer.set("command", command)?;
        writer.set("is_complete", 0)?;
        writer.execute("BEGIN", ())?;
        Ok(writer)
    }

    /// Records the MPI rank of the process.
    ///
    /// # Errors
    /// [`CaptureError::Database`].
    pub fn set_rank(&self, rank: u32) -> Result<(), CaptureError> {
        self.set("rank", rank)
    }

    fn execute(&self, statement: &str, values: impl rusqlite::Params) -> Result<(), CaptureError> {
        let run = || self.database.prepare_cached(statement)?.execute(values);
        run().map(|_| ()).map_err(|reason| {
            // If the disk is full, for example, the file may contain a part of the unsaved steps.
            let _ = self.database.execute_batch("ROLLBACK");
            CaptureError::database(&self.file)(reason)
        })
    }

    fn set(&self, name: &str, value: impl rusqlite::ToSql) -> Result<(), CaptureError> {
        self.execute("INSERT OR REPLACE INTO about VALUES (?1, ?2)", params![name, value])
    }

    /// Stores data, unless they are already stored, and returns their digest.
    fn store(&self, bytes: &[u8]) -> Result<Vec<u8>, CaptureError> {
        let digest = Sha256::digest(bytes).to_vec();
        let known = self
            .database
            .prepare_cached("SELECT 1 FROM data WHERE digest = ?1")
            .and_then(|mut statement| statement.exists([&digest]))
            .map_err(CaptureError::database(&self.file))?;
        if !known {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            // Writing to memory cannot fail.
            let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
            let compressed = compressed.unwrap_or_default();
            let values = params![digest, bytes.len() as i64, compressed];
            self.execute("INSERT INTO data VALUES (?1, ?2, ?3)", values)?;
        }
        Ok(digest)
    }

    /// Adds a code object.
    ///
    /// # Errors
    /// [`CaptureError::Database`].
    pub fn add_code_object(&self, elf: &[u8], bias: u64) -> Result<CodeObjectId, CaptureError> {
        let digest = self.store(elf)?;
        let values = params![bias as i64, digest];
        self.execute("INSERT INTO code_object (bias, digest) VALUES (?1, ?2)", values)?;
        Ok(CodeObjectId(self.database.last_insert_rowid() as u32))
    }

    /// Appends a step.
    ///
    /// # Errors
    /// [`CaptureError::Database`].
    pub fn add(&self, step: &Step) -> Result<(), CaptureError> {
        // `other` is the destination of a copy.
        let insert = |kind: &str, [address, other, bytes]: [u64; 3]| {
            let values = params![kind, address as i64, other as i64, bytes as i64];
            let statement =
                "INSERT INTO step (kind, address, other, bytes) VALUES (?1, ?2, ?3, ?4)";
            self.execute(statement, values)
        };
        match step {
            Step::Change(Change::Map { address, bytes }) => insert("map", [address.0, 0, *bytes]),
            Step::Change(Change::Unmap { address }) => insert("unmap", [address.0, 0, 0]),
            Step::Change(Change::Copy { from, to, bytes }) => {
                insert("copy", [from.0, to.0, *bytes])
            }
            Step::Read { address, bytes } => {
                let digest = self.store(bytes)?;
                let values = params![address.0 as i64, bytes.len() as i64, digest];
                let statement =
                    "INSERT INTO step (kind, address, bytes, digest) VALUES ('read', ?1, ?2, ?3)";
                self.execute(statement, values)
            }
            Step::Change(Change::Write(patch)) => {
                let digest = self.store(patch.bytes())?;
                let values =
                    params![patch.bytes().len() as i64, encode_ranges(patch.ranges()), digest];
                let statement =
                    "INSERT INTO step (kind, bytes, runs, digest) VALUES ('write', ?1, ?2, ?3)";
                self.execute(statement, values)
            }
            Step::Dispatch(dispatch) => {
                let kind = if dispatch.is_cooperative { COOPERATIVE_DISPATCH } else { DISPATCH };
                if dispatch.arguments.is_empty() {
                    insert(kind, [dispatch.packet.kernel.0, 0, 0])?;
                } else {
                    let digest = self.store(&dispatch.arguments)?;
                    let statement = "INSERT INTO step (kind, digest) VALUES (?1, ?2)";
                    self.execute(statement, params![kind, digest])?;
                }
                self.add_dispatch(self.database.last_insert_rowid(), dispatch)
            }
        }
    }

    fn add_dispatch(&self, step: i64, dispatch: &RecordedDispatch) -> Result<(), CaptureError> {
        let queued = dispatch.queued;
        let values = params![
            step,
            dispatch.number,
            dispatch.stream as i64,
            dispatch.kernel,
            dispatch.range,
            dispatch.code_object.0,
            dispatch.packet.to_bytes(),
            queued.packet.0 as i64,
            queued.queue.0 as i64,
            queued.number as i64,
            dispatch.instructions as i64,
            encode_ranges(&dispatch.written),
        ];
        let statement =
            "INSERT INTO dispatch VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.execute(statement, values)
    }

    /// Saves all steps added so far: they are in the file even if the process is killed.
    ///
    /// # Errors
    /// [`CaptureError::Database`], if the disk is full for example.
    pub fn save(&self) -> Result<(), CaptureError> {
        self.execute("COMMIT", ())?;
        self.execute("BEGIN", ())
    }

    /// Saves the capture and marks it as complete: the run has ended.
    ///
    /// # Errors
    /// As [`Writer::save`].
    pub fn finish(self) -> Result<(), CaptureError> {
        self.set("is_complete", 1)?;
        self.execute("COMMIT", ())
    }
}
