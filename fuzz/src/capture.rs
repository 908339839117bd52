//! Fuzzes the reader of captures.

use crate::choices::Choices;
use flipwave_capture::{Capture, CaptureError, CodeObjectId, RecordedDispatch, Step, Writer};
use flipwave_device::{Address, Change, KernelPacket, Patch, QueuedPacket};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;

/// Reads bytes as a capture, or a valid capture with changes selected by the bytes. Reads every part.
pub fn capture(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fuzz.capture");
    let Some((mode, rest)) = bytes.split_first() else { return };
    if mode.is_multiple_of(4) {
        std::fs::write(&file, rest).expect("written");
    } else {
        std::fs::write(&file, seed()).expect("written");
        damage(&file, &mut Choices::new(rest));
    }
    if let Err(error) = read(&file) {
        let text = error.to_string();
        assert!(text.starts_with(file.to_str().expect("a name")), "{text}");
    }
}

fn read(file: &Path) -> Result<(), CaptureError> {
    let capture = Capture::open(file)?;
    capture.gpu()?;
    capture.command()?;
    capture.is_complete()?;
    let dispatches = capture.dispatches().map(|all| all.len());
    let code = capture.code_objects();
    let steps = capture.steps()?;
    let run = steps.iter().filter(|step| matches!(step, Step::Dispatch(_))).count();
    assert!(run <= dispatches?);
    code.map(|_| ())
}

/// The columns of a capture.
const COLUMNS: [(&str, &str); 27] = [
    ("about", "name"),
    ("about", "value"),
    ("data", "digest"),
    ("data", "bytes"),
    ("data", "compressed"),
    ("code_object", "id"),
    ("code_object", "bias"),
    ("code_object", "digest"),
    ("step", "id"),
    ("step", "kind"),
    ("step", "address"),
    ("step", "other"),
    ("step", "bytes"),
    ("step", "runs"),
    ("step", "digest"),
    ("dispatch", "step"),
    ("dispatch", "range"),
    ("dispatch", "queue_number"),
    ("dispatch", "number"),
    ("dispatch", "stream"),
    ("dispatch", "kernel"),
    ("dispatch", "code_object"),
    ("dispatch", "packet"),
    ("dispatch", "packet_address"),
    ("dispatch", "queue_address"),
    ("dispatch", "instructions"),
    ("dispatch", "written"),
];

/// Statements that change the schema of a capture.
const OTHER_SCHEMA: [&str; 7] = [
    "CREATE VIEW more AS SELECT 1",
    "CREATE TRIGGER more AFTER INSERT ON about BEGIN DELETE FROM data; END",
    "CREATE TABLE more (x)",
    "CREATE INDEX more ON step (kind)",
    "DROP TABLE code_object",
    "ALTER TABLE data ADD COLUMN more",
    "ALTER TABLE step RENAME TO hidden; CREATE VIEW step AS SELECT * FROM hidden",
];

/// Changes some values, and sometimes the schema.
fn damage(file: &Path, choices: &mut Choices<'_>) {
    let database = Connection::open(file).expect("a capture");
    if choices.below(8) == 0 {
        database.execute_batch(choices.pick(&OTHER_SCHEMA)).expect("another schema");
        assert!(matches!(Capture::open(file), Err(CaptureError::NotACapture { .. })));
    }
    // Durability is not needed.
    let quickly = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN";
    database.execute_batch(quickly).expect("settings");
    for _ in 0..1 + choices.below(4) {
        let (table, column) = choices.pick(&COLUMNS);
        let blob = |choices: &mut Choices<'_>, unit: usize| {
            let count = unit * choices.below(9);
            Value::Blob((0..count).map(|_| choices.below(256) as u8).collect())
        };
        let value = match choices.below(8) {
            0 => Value::Null,
            1 => Value::Integer(choices.wide() as i64),
            2 => Value::Integer(choices.below(64) as i64),
            3 => Value::Text(choices.pick(&["map", "unmap", "write", "read", "", "gfx90a"]).into()),
            4 => Value::Real(f64::from_bits(choices.wide())),
            5 => blob(choices, 1),
            _ => blob(choices, 16),
        };
        let row = choices.below(8);
        let statement = format!(
            "UPDATE OR IGNORE {table} SET {column} = ?1 WHERE rowid = \
             (SELECT rowid FROM {table} LIMIT 1 OFFSET {row})"
        );
        // `about` and `data` have no row IDs, and constraints forbid some values.
        let by_name = format!("UPDATE OR IGNORE {table} SET {column} = ?1");
        let statement = if table == "about" || table == "data" { by_name } else { statement };
        let _ = database.execute(&statement, [value]);
    }
    database.execute_batch("COMMIT").expect("written");
}

/// A capture with every kind of content.
pub fn seed() -> Vec<u8> {
    static SEED: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    SEED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("seed.capture");
        let writer = Writer::create(&file, "gfx90a", "./a 1").expect("a new capture");
        let added = writer.add_code_object(b"\x7fELF", 0x2000).expect("a code object");
        steps(added).iter().for_each(|step| writer.add(step).expect("a step"));
        writer.save().expect("saved");
        writer.finish().expect("finished");
        std::fs::read(file).expect("a capture")
    })
    .clone()
}

fn steps(code_object: CodeObjectId) -> Vec<Step> {
    let mut patch = Patch::default();
    patch.add(Address(0x1000), &[1, 2, 3]);
    patch.add(Address(0x7fff_0000_0000), &[9; 500]);
    let dispatch = RecordedDispatch {
        number: 0,
        stream: 1,
        kernel: "scale(float*, float)".into(),
        range: Some("layer 0".into()),
        code_object,
        packet: KernelPacket { grid: [64, 1, 1], workgroup: [64, 1, 1], ..Default::default() },
        queued: QueuedPacket { packet: Address(64), queue: Address(4096), number: 3 },
        arguments: Vec::new(),
        is_cooperative: false,
        instructions: 12,
        written: vec![(Address(0x1000), 4)],
    };
    vec![
        Step::Change(Change::Map { address: Address(0x1000), bytes: 4096 }),
        Step::Change(Change::Write(patch)),
        Step::Dispatch(Box::new(dispatch)),
        Step::Change(Change::Copy { from: Address(0x1000), to: Address(0x1800), bytes: 16 }),
        Step::Read { address: Address(0x1800), bytes: vec![5; 16] },
        Step::Change(Change::Unmap { address: Address(0x1000) }),
    ]
}
