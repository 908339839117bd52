//! A capture being read.

use crate::step::{CodeObjectId, RecordedCode, RecordedDispatch, Step, decode_runs};
use crate::{CaptureError, FORMAT};
use flate2::read::ZlibDecoder;
use flipwave_device::{Address, Change, KernelPacket, Patch, QueuedPacket};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of one piece of data.
const LARGEST: u64 = 16 << 30;

/// A capture.
pub struct Capture {
    file: PathBuf,
    database: Connection,
}

impl Capture {
    /// Opens a file.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(file: &Path) -> Result<Capture, CaptureError> {
        let failed = CaptureError::database(file);
        let database =
            Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(&failed)?;
        let capture = Capture { file: file.to_owned(), database };
        let found: i64 = capture.about("format")?;
        if found != FORMAT {
            let file = file.to_owned();
            return Err(CaptureError::Format { file, found, expected: FORMAT });
        }
        Ok(capture)
    }

    fn about<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<T, CaptureError> {
        let value = self.about_if_said(name)?;
        value.ok_or_else(|| self.damaged(format!("it does not say its {name}")))
    }

    fn about_if_said<T: rusqlite::types::FromSql>(
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

    /// The GPU, `gfx90a`.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn gpu(&self) -> Result<String, CaptureError> {
        self.about("gpu")
    }

    /// The application and its arguments.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn command(&self) -> Result<String, CaptureError> {
        self.about("command")
    }

    /// The MPI rank of the process, if it was one of several.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn rank(&self) -> Result<Option<u32>, CaptureError> {
        self.about_if_said("rank")
    }

    /// Whether the run ended as it should. If not, what was recorded until then is there.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn is_complete(&self) -> Result<bool, CaptureError> {
        self.about("is_complete")
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
        let (size, compressed) = found.ok_or_else(|| self.damaged("data are missing".into()))?;
        let size = size as u64;
        let mut bytes = Vec::new();
        let read =
            ZlibDecoder::new(&*compressed).take(size.min(LARGEST) + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 != size {
            return Err(self.damaged("data cannot be decompressed".into()));
        }
        Ok(bytes)
    }

    /// The code objects, in the order in which kernels of them were first dispatched.
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
        let failed = CaptureError::database(&self.file);
        let query = "SELECT number, stream, kernel, code_object, packet, packet_address, \
                     queue_address, queue_number, instructions, written, range \
                     FROM dispatch ORDER BY step";
        let mut query = self.database.prepare(query).map_err(&failed)?;
        let rows = query.query_map((), |row| self.dispatch(row)).map_err(&failed)?;
        let mut all = Vec::new();
        for row in rows {
            let row = row.map_err(&failed)?;
            all.push(row.ok_or_else(|| self.damaged("a dispatch cannot be read".into()))?);
        }
        Ok(all)
    }

    fn dispatch(&self, row: &Row<'_>) -> rusqlite::Result<Option<RecordedDispatch>> {
        let number = |index: usize| row.get::<_, i64>(index).map(|value| value as u64);
        let packet: Vec<u8> = row.get(4)?;
        let written: Vec<u8> = row.get(9)?;
        let packet = <&[u8; KernelPacket::SIZE]>::try_from(&*packet).ok();
        let (Some(packet), Some(written)) = (packet, decode_runs(&written)) else {
            return Ok(None);
        };
        Ok(Some(RecordedDispatch {
            number: row.get(0)?,
            stream: number(1)?,
            kernel: row.get(2)?,
            range: row.get(10)?,
            code_object: CodeObjectId(row.get(3)?),
            packet: KernelPacket::from_bytes(packet),
            queued: QueuedPacket {
                packet: Address(number(5)?),
                queue: Address(number(6)?),
                number: number(7)?,
            },
            instructions: number(8)?,
            written,
        }))
    }

    /// All steps, in order.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn steps(&self) -> Result<Vec<Step>, CaptureError> {
        let failed = CaptureError::database(&self.file);
        let mut dispatches = self.dispatches()?.into_iter();
        let query = "SELECT kind, address, other, bytes, runs, digest FROM step ORDER BY id";
        let mut query = self.database.prepare(query).map_err(&failed)?;
        let rows = query.query_map((), |row| {
            let number = |index: usize| {
                row.get::<_, Option<i64>>(index).map(|value| value.unwrap_or(0) as u64)
            };
            let blob = |index: usize| row.get::<_, Option<Vec<u8>>>(index);
            let numbers = [number(1)?, number(2)?, number(3)?];
            Ok((row.get::<_, String>(0)?, numbers, blob(4)?, blob(5)?))
        });
        let mut steps = Vec::new();
        for row in rows.map_err(&failed)? {
            let (kind, [address, other, bytes], runs, digest) = row.map_err(&failed)?;
            let at = Address(address);
            steps.push(match kind.as_str() {
                "map" => Step::Change(Change::Map { address: at, bytes }),
                "unmap" => Step::Change(Change::Unmap { address: at }),
                "copy" => Step::Change(Change::Copy { from: at, to: Address(other), bytes }),
                "read" => {
                    Step::Read { address: at, bytes: self.data(&digest.unwrap_or_default())? }
                }
                "write" => {
                    let runs = decode_runs(&runs.unwrap_or_default());
                    let runs = runs.ok_or_else(|| self.damaged("a write cannot be read".into()))?;
                    let bytes = self.data(&digest.unwrap_or_default())?;
                    let other = || self.damaged("a write has other bytes than it says".into());
                    Step::Change(Change::Write(Patch::of(runs, bytes).ok_or_else(other)?))
                }
                "dispatch" => {
                    let next = dispatches.next();
                    let missing = || self.damaged("a dispatch is missing".into());
                    Step::Dispatch(Box::new(next.ok_or_else(missing)?))
                }
                other => return Err(self.damaged(format!("a step `{other}` is not known"))),
            });
        }
        Ok(steps)
    }
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
    fn a_capture_is_read_as_it_was_written_and_data_are_stored_once() {
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
        assert_eq!(stored, 3);
    }

    #[test]
    fn files_that_are_no_captures_and_damaged_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, b"something else, and long enough to be looked at").unwrap();
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
}
