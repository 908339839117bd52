//! Schema of a capture's database.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// Statements that create the tables.
pub const TABLES: &str = "
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE data (digest BLOB PRIMARY KEY, bytes INTEGER NOT NULL, compressed BLOB NOT NULL);
CREATE TABLE code_object (
  id INTEGER PRIMARY KEY, bias INTEGER NOT NULL, digest BLOB NOT NULL REFERENCES data);
CREATE TABLE step (
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, address INTEGER, other INTEGER, bytes INTEGER,
  runs BLOB, digest BLOB REFERENCES data);
CREATE TABLE dispatch (
  step INTEGER PRIMARY KEY REFERENCES step, number INTEGER NOT NULL, stream INTEGER NOT NULL,
  kernel TEXT NOT NULL, range TEXT, code_object INTEGER NOT NULL REFERENCES code_object,
  packet BLOB NOT NULL, packet_address INTEGER NOT NULL, queue_address INTEGER NOT NULL,
  queue_number INTEGER NOT NULL, instructions INTEGER NOT NULL, written BLOB NOT NULL);
";

/// Makes a connection safe for an untrusted file: nothing in its schema is executed, and pages are
/// checked before they are used (SQLite's page "Defense Against The Dark Arts").
///
/// # Errors
/// Errors of SQLite.
pub fn harden(database: &Connection) -> rusqlite::Result<()> {
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    database.execute_batch("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;")
}

/// An object of a schema: type, name, table, and the statement that created it.
type Object = (String, String, String, Option<String>);

/// The first object in which a database's schema differs from a capture's; `None` if they are
/// equal.
///
/// # Errors
/// If the schema cannot be read.
pub fn difference(database: &Connection) -> rusqlite::Result<Option<String>> {
    let expected = Connection::open_in_memory()?;
    expected.execute_batch(TABLES)?;
    let (expected, found) = (objects(&expected)?, objects(database)?);
    let unexpected = found.iter().find(|object| !expected.contains(object));
    let missing = expected.iter().find(|object| !found.contains(object));
    Ok(unexpected.or(missing).map(|(kind, name, ..)| format!("{kind} `{name}`")))
}

fn objects(database: &Connection) -> rusqlite::Result<Vec<Object>> {
    let mut query = database.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let rows =
        query.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    rows.collect()
}
