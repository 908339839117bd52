//! Reading of captures.

use crate::step::{
    COOPERATIVE_DISPATCH, CodeObjectId, DISPATCH, RecordedCode, RecordedDispatch, Step,
    decode_ranges,
};
use crate::{CaptureError, FORMAT, memory, schema};
use flate2::read::ZlibDecoder;
use flipwave_device::{Address, Change, KernelPacket, Patch, QueuedPacket};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Largest length of a text in bytes: a kernel's name, a command line.
const MAX_TEXT: usize = 1 << 20;

/// End of the addresses of a process, which have at most 57 bits.
const ADDRESSES_END: u64 = 1 << 57;

/// A capture that is being read. Nothing in the file is trusted.
pub struct Capture {
    file: PathBuf,
    database: Connection,
    /// Bytes of memory that data may use.
    available: u64,
    /// Bytes of [`Capture::available`] that are not used yet.
    left: Cell<u64>,
}

impl Capture {
    /// Opens a capture.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(file: &Path) -> Result<Capture, CaptureError> {
        let open = |reason| CaptureError::Open { file: file.to_owned(), reason };
        let failed = |reason: rusqlite::Error| match reason.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                let what = "not a capture".to_owned();
                CaptureError::NotACapture { file: file.to_owned(), what }
            }
            _ => CaptureError::database(file)(reason),
        };
        // Refuses a FIFO, for whose writer SQLite would wait.
        drop(flipwave_host::input::open(file).map_err(open)?);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(uri(file), flags).map_err(failed)?;
        schema::harden(&database).map_err(failed)?;
        if let Some(object) = schema::difference(&database).map_err(failed)? {
            let what = format!("not a capture: its schema differs in {object}");
            return Err(CaptureError::NotACapture { file: file.to_owned(), what });
        }
        let available = memory::available();
        let left = Cell::new(available);
        let capture = Capture { file: file.to_owned(), database, available, left };
        let found: i64 = capture.about("format")?;
        if found != FORMAT {
            let file = file.to_owned();
            return Err(CaptureError::Format { file, found, expected: FORMAT });
        }
        Ok(capture)
    }

    fn about<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<T, CaptureError> {
        let value = self.about_if_present(name)?;
        value.ok_or_else(|| self.damaged(format!("missing {name}")))
    }

    fn about_if_present<T: rusqlite::types::FromSql>(
        &self,
        name: &str,
    ) -> Result<Option<T>, CaptureError> {
        let query = "SELECT value FROM about WHERE name = ?1";
        let value = self.database.query_row(query, [name], |row| row.get(0)).optional();
        value.map_err(CaptureError::database(&self.file))
    }

    fn damaged(&self, what: String) -> CaptureError {
        CaptureError::Damaged { file: self.file.clone(), what }
    }

    /// Target of the GPU, such as `gfx90a`.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn gpu(&self) -> Result<String, CaptureError> {
        self.checked_text("gpu", self.about("gpu")?)
    }

    /// Command line of the application.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn command(&self) -> Result<String, CaptureError> {
        self.checked_text("command", self.about("command")?)
    }

    /// MPI rank of the process, if it had one.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn rank(&self) -> Result<Option<u32>, CaptureError> {
        self.about_if_present("rank")
    }

    /// Returns `true` if the run was recorded up to its end, `false` if only its beginning was.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn is_complete(&self) -> Result<bool, CaptureError> {
        self.about("is_complete")
    }

    fn checked_text(&self, name: &str, text: String) -> Result<String, CaptureError> {
        if text.len() > MAX_TEXT || text.contains('\0') {
            return Err(self
                .damaged(format!("invalid {name}: expected a text of at most {MAX_TEXT} bytes")));
        }
        Ok(text)
    }

    fn data(&self, digest: &[u8]) -> Result<Vec<u8>, CaptureError> {
        let query = "SELECT bytes, compressed FROM data WHERE digest = ?1";
        let found: Option<(i64, Vec<u8>)> = self
            .database
            .prepare_cached(query)
            .and_then(|mut query| {
                query.query_row([digest], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(CaptureError::database(&self.file))?;
        let (size, compressed) = found.ok_or_else(|| self.damaged("missing data".into()))?;
        let size = u64::try_from(size);
        let size = size.map_err(|_| self.damaged("cannot decompress data".into()))?;
        let bytes = self.decompressed(&compressed, size)?;
        if Sha256::digest(&bytes).as_slice() != digest {
            return Err(self.damaged("wrong digest of data".into()));
        }
        Ok(bytes)
    }

    /// Decompresses data to `size` bytes. Counts them against the available memory: a few
    /// compressed bytes can have a huge size, and the same data can be used any number of times.
    fn decompressed(&self, compressed: &[u8], size: u64) -> Result<Vec<u8>, CaptureError> {
        let too_large = || {
            let (file, available) = (self.file.clone(), self.available);
            CaptureError::TooLarge { file, available }
        };
        self.left.set(self.left.get().checked_sub(size).ok_or_else(too_large)?);
        let mut bytes = Vec::new();
        let capacity = usize::try_from(size).map_err(|_| too_large())?;
        bytes.try_reserve_exact(capacity).map_err(|_| too_large())?;
        let read = ZlibDecoder::new(compressed).take(size + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 != size {
            return Err(self.damaged("cannot decompress data".into()));
        }
        Ok(bytes)
    }

    /// Checks that `bytes` bytes from an address are within the address space.
    fn check_range(&self, address: u64, bytes: u64) -> Result<(), CaptureError> {
        if address.checked_add(bytes).is_some_and(|end| end <= ADDRESSES_END) {
            return Ok(());
        }
        Err(self.damaged(format!("invalid memory range: {bytes} bytes at 0x{address:x}")))
    }

    /// The code objects, ordered by the first dispatch of one of their kernels.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn code_objects(&self) -> Result<Vec<(CodeObjectId, RecordedCode)>, CaptureError> {
        let failed = CaptureError::database(&self.file);
        let query = "SELECT id, bias, digest FROM code_object ORDER BY id";
        let mut query = self.database.prepare(query).map_err(&failed)?;
        let rows = query
            .query_map((), |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
            })
            .map_err(&failed)?;
        let mut all = Vec::new();
        for row in rows {
            let (id, bias, digest) = row.map_err(&failed)?;
            let code = RecordedCode { bias: bias as u64, elf: self.data(&digest)? };
            all.push((CodeObjectId(id), code));
        }
        Ok(all)
    }

    /// The dispatches, in order.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn dispatches(&self) -> Result<Vec<RecordedDispatch>, CaptureError> {
        Ok(self.dispatches_by_step()?.into_iter().map(|(_, dispatch)| dispatch).collect())
    }

    fn code_object_ids(&self) -> Result<BTreeSet<CodeObjectId>, CaptureError> {
        let failed = CaptureError::database(&self.file);
        let mut query = self.database.prepare("SELECT id FROM code_object").map_err(&failed)?;
        let rows = query.query_map((), |row| row.get(0).map(CodeObjectId)).map_err(&failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }

    /// The dispatches, each with the id of its step.
    fn dispatches_by_step(&self) -> Result<Vec<(i64, RecordedDispatch)>, CaptureError> {
        let failed = CaptureError::database(&self.file);
        let query = "SELECT number, stream, kernel, code_object, packet, packet_address, \
                     queue_address, queue_number, instructions, written, range, dispatch.step, kind \
                     FROM dispatch LEFT JOIN step ON step.id = dispatch.step ORDER BY dispatch.step";
        let mut query = self.database.prepare(query).map_err(&failed)?;
        let rows = query.query_map((), |row| Ok((row.get(11)?, dispatch(row)?)));
        let rows = rows.map_err(&failed)?;
        let known = self.code_object_ids()?;
        let mut all = Vec::new();
        for row in rows {
            let (step, row) = row.map_err(&failed)?;
            let row = row.ok_or_else(|| self.damaged("invalid dispatch".into()))?;
            self.checked_text("kernel", row.kernel.clone())?;
            self.checked_text("range", row.range.clone().unwrap_or_default())?;
            if !known.contains(&row.code_object) {
                let id = row.code_object.0;
                return Err(self.damaged(format!("missing code object {id} of a dispatch")));
            }
            let mut end = 0;
            for (address, bytes) in &row.written {
                self.check_range(address.0, *bytes)?;
                if address.0 < end {
                    return Err(
                        self.damaged("invalid dispatch: written ranges are not sorted".into())
                    );
                }
                end = address.0 + bytes;
            }
            all.push((step, row));
        }
        Ok(all)
    }

    /// All steps, in order.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn steps(&self) -> Result<Vec<Step>, CaptureError> {
        let failed = CaptureError::database(&self.file);
        let mut dispatches = self.dispatches_by_step()?.into_iter();
        let query = "SELECT id, kind, address, other, bytes, runs, digest FROM step ORDER BY id";
        let mut query = self.database.prepare(query).map_err(&failed)?;
        let rows = query.query_map((), |row| {
            // Addresses may have any bit set.
            let number = |index: usize| {
                row.get::<_, Option<i64>>(index).map(|value| value.unwrap_or(0) as u64)
            };
            let blob =
                |index: usize| row.get::<_, Option<Vec<u8>>>(index).map(Option::unwrap_or_default);
            Ok(StepRow {
                id: row.get(0)?,
                kind: row.get(1)?,
                address: number(2)?,
                other: number(3)?,
                bytes: number(4)?,
                runs: blob(5)?,
                digest: blob(6)?,
            })
        });
        let mut steps = Vec::new();
        for row in rows.map_err(&failed)? {
            let row = row.map_err(&failed)?;
            steps.push(self.step(row, &mut dispatches)?);
        }
        match dispatches.next() {
            Some(_) => Err(self.damaged("missing step of a dispatch".into())),
            None => Ok(steps),
        }
    }

    fn step(
        &self,
        row: StepRow,
        dispatches: &mut impl Iterator<Item = (i64, RecordedDispatch)>,
    ) -> Result<Step, CaptureError> {
        let StepRow { id, kind, address, other, bytes, runs, digest } = row;
        let at = Address(address);
        Ok(match kind.as_str() {
            "map" => {
                self.check_range(address, bytes)?;
                Step::Change(Change::Map { address: at, bytes })
            }
            "unmap" => Step::Change(Change::Unmap { address: at }),
            "copy" => {
                self.check_range(address, bytes)?;
                self.check_range(other, bytes)?;
                Step::Change(Change::Copy { from: at, to: Address(other), bytes })
            }
            "read" => {
                self.check_range(address, bytes)?;
                let read = self.data(&digest)?;
                if read.len() as u64 != bytes {
                    return Err(self.damaged("invalid read: wrong number of bytes".into()));
                }
                Step::Read { address: at, bytes: read }
            }
            "write" => {
                let ranges = decode_ranges(&runs);
                let ranges = ranges.ok_or_else(|| self.damaged("invalid write".into()))?;
                for (address, bytes) in &ranges {
                    self.check_range(address.0, *bytes)?;
                }
                let bytes = self.data(&digest)?;
                let patch = Patch::from_ranges(ranges, bytes);
                let wrong = || self.damaged("invalid write: wrong number of bytes".into());
                Step::Change(Change::Write(patch.ok_or_else(wrong)?))
            }
            DISPATCH | COOPERATIVE_DISPATCH => {
                let (_, dispatch) = dispatches
                    .next()
                    .filter(|(step, _)| *step == id)
                    .ok_or_else(|| self.damaged(format!("missing dispatch of step {id}")))?;
                let has_arguments = !digest.is_empty();
                let arguments = if has_arguments { self.data(&digest)? } else { Vec::new() };
                Step::Dispatch(Box::new(RecordedDispatch { arguments, ..dispatch }))
            }
            _ => return Err(self.damaged(format!("unknown kind of step {id}"))),
        })
    }
}

/// A row of the table `step`.
struct StepRow {
    id: i64,
    kind: String,
    address: u64,
    other: u64,
    bytes: u64,
    runs: Vec<u8>,
    digest: Vec<u8>,
}

/// Converts a row of the table `dispatch`; `None` for an invalid packet or invalid written ranges.
fn dispatch(row: &Row<'_>) -> rusqlite::Result<Option<RecordedDispatch>> {
    // Addresses may have any bit set.
    let address = |index: usize| row.get::<_, i64>(index).map(|value| Address(value as u64));
    let count = |index: usize| {
        let value: i64 = row.get(index)?;
        let out_of_range = |_| rusqlite::Error::IntegralValueOutOfRange(index, value);
        u64::try_from(value).map_err(out_of_range)
    };
    let kind: Option<String> = row.get(12)?;
    let packet: Vec<u8> = row.get(4)?;
    let written: Vec<u8> = row.get(9)?;
    let packet = <&[u8; KernelPacket::SIZE]>::try_from(&*packet).ok();
    let (Some(packet), Some(written)) = (packet, decode_ranges(&written)) else {
        return Ok(None);
    };
    Ok(Some(RecordedDispatch {
        number: row.get(0)?,
        stream: count(1)?,
        kernel: row.get(2)?,
        range: row.get(10)?,
        code_object: CodeObjectId(row.get(3)?),
        packet: KernelPacket::from_bytes(packet),
        queued: QueuedPacket { packet: address(5)?, queue: address(6)?, number: count(7)? },
        arguments: Vec::new(),
        is_cooperative: kind.as_deref() == Some(COOPERATIVE_DISPATCH),
        instructions: count(8)?,
        written,
    }))
}

/// SQLite's URI of a file. It is opened as immutable: an untrusted journal or log next to it is
/// ignored.
fn uri(file: &Path) -> PathBuf {
    let mut text = String::from("file:");
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            byte => drop(write!(text, "%{byte:02X}")),
        }
    }
    text.push_str("?immutable=1");
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    fn steps() -> Vec<Step> {
        let mut patch = Patch::default();
        patch.add(Address(0x1000), &[1, 2, 3]);
        patch.add(Address(0x7fff_0000_0000), &[9; 5000]);
        let dispatch = RecordedDispatch {
            number: 0,
            stream: 1,
            kernel: "scale(float*, float)".into(),
            range: Some("layer 0".into()),
            code_object: CodeObjectId(1),
            packet: KernelPacket { grid: [64, 1, 1], workgroup: [64, 1, 1], ..Default::default() },
            queued: QueuedPacket { packet: Address(64), queue: Address(4096), number: 3 },
            arguments: vec![1, 2, 3],
            is_cooperative: true,
            instructions: 12,
            written: vec![(Address(0x1000), 4)],
        };
        vec![
            Step::Change(Change::Map { address: Address(0x1000), bytes: 4096 }),
            Step::Change(Change::Write(patch.clone())),
            Step::Dispatch(Box::new(dispatch)),
            Step::Change(Change::Write(patch)),
            Step::Change(Change::Copy { from: Address(0x1000), to: Address(0x1800), bytes: 16 }),
            Step::Read { address: Address(0x1800), bytes: vec![5; 16] },
            Step::Change(Change::Unmap { address: Address(0x1000) }),
        ]
    }

    fn written(folder: &Path) -> PathBuf {
        let file = folder.join("a.capture");
        let writer = Writer::create(&file, "gfx90a", "./a 1").unwrap();
        assert_eq!(writer.add_code_object(b"\x7fELF", 0x2000).unwrap(), CodeObjectId(1));
        steps().iter().for_each(|step| writer.add(step).unwrap());
        writer.save().unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn reading_inverts_writing_and_data_are_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let capture = Capture::open(&written(folder.path())).unwrap();
        assert_eq!(capture.rank().unwrap(), None);
        let ranked = Writer::create(&folder.path().join("ranked"), "gfx90a", "./a").unwrap();
        ranked.set_rank(3).unwrap();
        ranked.finish().unwrap();
        let ranked = Capture::open(&folder.path().join("ranked")).unwrap();
        assert_eq!(ranked.rank().unwrap(), Some(3));
        assert_eq!(capture.steps().unwrap(), steps());
        let code = RecordedCode { bias: 0x2000, elf: b"\x7fELF".to_vec() };
        assert_eq!(capture.code_objects().unwrap(), [(CodeObjectId(1), code)]);
        assert_eq!(
            (capture.gpu().unwrap(), capture.is_complete().unwrap()),
            ("gfx90a".into(), true)
        );
        let count = "SELECT count(*) FROM data";
        let stored: i64 = capture.database.query_row(count, (), |row| row.get(0)).unwrap();
        // The code, the patch, the arguments and the output.
        assert_eq!(stored, 4);
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, b"not a database, and longer than the header of one").unwrap();
        for file in [other, folder.path().join("missing")] {
            let error = Capture::open(&file).err().unwrap().to_string();
            assert!(error.contains(file.to_str().unwrap()), "{error}");
        }
        let file = written(folder.path());
        let database = Connection::open(&file).unwrap();
        database.execute("UPDATE data SET bytes = 4999", ()).unwrap();
        let error = Capture::open(&file).unwrap().steps().unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
        database.execute("UPDATE about SET value = 1 WHERE name = 'format'", ()).unwrap();
        let error = Capture::open(&file).err().unwrap().to_string();
        assert!(error.contains("format 1, expected 2"), "{error}");
    }

    /// The error of reading a capture that was changed by these statements.
    fn error_after(statements: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path());
        let database = Connection::open(&file).unwrap();
        let statements = &format!("PRAGMA foreign_keys = OFF; {statements}");
        database.execute_batch(statements).expect(statements);
        drop(database);
        let read = || -> Result<(), CaptureError> {
            let capture = Capture::open(&file)?;
            capture.gpu()?;
            capture.command()?;
            capture.is_complete()?;
            capture.code_objects()?;
            capture.dispatches()?;
            capture.steps().map(drop)
        };
        let error = read().expect_err(statements).to_string();
        assert!(error.starts_with(file.to_str().unwrap()), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }

    #[test]
    fn another_schema_is_refused() {
        for (statements, object) in [
            ("CREATE VIEW more AS SELECT 1", "view `more`"),
            ("CREATE TRIGGER more AFTER INSERT ON about BEGIN SELECT 1; END", "trigger `more`"),
            ("CREATE TABLE more (x)", "table `more`"),
            ("CREATE INDEX more ON step (kind)", "index `more`"),
            ("DROP TABLE dispatch", "table `dispatch`"),
            ("ALTER TABLE data ADD COLUMN more", "table `data`"),
            (
                "ALTER TABLE step RENAME TO hidden; CREATE VIEW step AS SELECT * FROM hidden",
                "`hidden`",
            ),
            ("DROP TABLE about; CREATE TABLE about (name TEXT, value)", "table `about`"),
        ] {
            let error = error_after(statements);
            for words in [object, "schema differs in", "expected a file of `flipwave capture`"] {
                assert!(error.contains(words), "{words}: {error}");
            }
        }
    }

    #[test]
    fn invalid_fields_are_refused() {
        for (statements, words) in [
            ("UPDATE data SET bytes = -1", "cannot decompress data"),
            ("UPDATE data SET bytes = bytes + 1", "cannot decompress data"),
            ("UPDATE data SET compressed = x'00'", "cannot decompress data"),
            ("UPDATE data SET bytes = 1 << 60", "of available memory"),
            (
                "UPDATE data SET compressed = (SELECT compressed FROM data WHERE bytes = 4),
                 bytes = 4 WHERE bytes = 16",
                "wrong digest",
            ),
            ("UPDATE step SET digest = zeroblob(32)", "missing data"),
            ("UPDATE step SET address = -4096 WHERE kind = 'map'", "invalid memory range"),
            ("UPDATE step SET bytes = -1 WHERE kind = 'copy'", "invalid memory range"),
            ("UPDATE step SET other = 1 << 60 WHERE kind = 'copy'", "invalid memory range"),
            ("UPDATE step SET bytes = 15 WHERE kind = 'read'", "wrong number of bytes"),
            ("UPDATE step SET runs = x'00' WHERE kind = 'write'", "invalid write"),
            ("UPDATE step SET kind = 'x' || char(27) WHERE kind = 'map'", "unknown kind"),
            ("UPDATE step SET kind = 'dispatch' WHERE kind = 'unmap'", "missing dispatch"),
            ("UPDATE step SET kind = 'unmap' WHERE kind LIKE '%dispatch'", "missing step"),
            ("UPDATE dispatch SET step = 99", "missing dispatch"),
            ("UPDATE dispatch SET code_object = 77", "code object 77"),
            ("UPDATE dispatch SET packet = zeroblob(63)", "invalid dispatch"),
            ("UPDATE dispatch SET written = zeroblob(8)", "invalid dispatch"),
            (
                "UPDATE dispatch SET written = x'00100000000000000400000000000000020000000000000004\
                 00000000000000'",
                "not sorted",
            ),
            ("UPDATE dispatch SET kernel = zeroblob(3)", "kernel"),
            (
                "UPDATE dispatch SET kernel = CAST(zeroblob(2000000) AS TEXT)",
                "invalid kernel: expected a text",
            ),
            ("UPDATE dispatch SET instructions = -1", "-1"),
            ("UPDATE dispatch SET number = 1 << 40", "1099511627776"),
            ("UPDATE about SET value = 2 WHERE name = 'command'", "value"),
            ("UPDATE about SET value = 'x' WHERE name = 'is_complete'", "value"),
            ("DELETE FROM about WHERE name = 'gpu'", "missing gpu"),
        ] {
            let error = error_after(statements);
            assert!(error.contains(words), "{statements}: {error}");
        }
    }

    #[test]
    fn data_use_no_more_than_the_available_memory() {
        let folder = tempfile::tempdir().unwrap();
        let capture = Capture::open(&written(folder.path())).unwrap();
        // The patch, twice, the arguments, and the output.
        capture.left.set(5003 + 5003 + 3 + 16);
        assert!(capture.steps().is_ok());
        capture.left.set(5003 + 5003 + 3 + 15);
        assert!(matches!(capture.steps(), Err(CaptureError::TooLarge { .. })));
    }

    #[test]
    fn special_files_are_refused_and_names_may_have_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let error = Capture::open(&fifo).err().unwrap().to_string();
        assert!(error.contains("it is a FIFO; expected a regular file"), "{error}");
        let named = folder.path().join("a ?#%41&mode=memory\u{e4}.capture");
        std::fs::rename(written(folder.path()), &named).unwrap();
        assert_eq!(Capture::open(&named).unwrap().steps().unwrap(), steps());
    }
}
