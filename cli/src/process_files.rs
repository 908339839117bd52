//! Collects the files that the processes of an application have written.

use flipwave_agent::{ProcessRecord, Processes};
use flipwave_host::output::{finish, unfinished};
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// Replaces the file `table` by the tables of all processes. With several processes, a column `process`
/// holds the index of the process.
///
/// # Errors
/// If a file cannot be read or written.
pub fn merge_tables(processes: &Processes, table: &Path) -> io::Result<()> {
    if !processes.are_several() {
        return keep_one(processes, table);
    }
    if processes.dispatching().all(|(_, record)| record.output.is_none()) {
        return Ok(());
    }
    let table = fs::canonicalize(table).or_else(|_| std::path::absolute(table))?;
    let merged = unfinished(table.parent().unwrap_or(Path::new(".")))?;
    let mut writer = csv::Writer::from_writer(merged.reopen()?);
    let mut has_header = false;
    for (index, (_, record)) in processes.dispatching().enumerate() {
        let Some(file) = &record.output else { continue };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(BufReader::new(flipwave_host::input::open(file)?));
        for (number, row) in reader.records().enumerate() {
            let (row, is_header) = (row?, number == 0);
            if is_header && std::mem::replace(&mut has_header, true) {
                continue;
            }
            let process = if is_header { "process".to_owned() } else { index.to_string() };
            writer.write_record(std::iter::once(process.as_str()).chain(&row))?;
        }
    }
    writer.flush()?;
    finish(merged, &table)?;
    remove_others(processes, &table)
}

/// Renames the capture of a single process to `output`, and those of several processes to names with
/// the index of the process. Returns the new names in the order of the processes.
///
/// # Errors
/// If a file cannot be renamed.
pub fn place_captures(processes: &Processes, output: &Path) -> io::Result<Vec<PathBuf>> {
    if !processes.are_several() {
        keep_one(processes, output)?;
        return Ok(Vec::from_iter(output.exists().then(|| output.to_owned())));
    }
    let mut placed = Vec::new();
    for (index, (_, record)) in processes.dispatching().enumerate() {
        if let Some(file) = &record.output {
            let numbered = numbered(output, index);
            flipwave_host::output::check(&numbered)?;
            fs::rename(file, &numbered)?;
            placed.push(numbered);
        }
    }
    remove_others(processes, Path::new(""))?;
    Ok(placed)
}

/// Finds the numbered captures of an earlier run in the folder of `output`.
///
/// # Errors
/// If the folder cannot be read.
pub fn numbered_files(output: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = output.parent().filter(|folder| *folder != Path::new(""));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let name = entry?.file_name();
        let numbers = name.to_str().into_iter().flat_map(|name| name.split('.'));
        let index = numbers.filter_map(|part| part.parse::<usize>().ok());
        let file = index.map(|index| numbered(output, index));
        found.extend(file.filter(|file| file.file_name() == Some(&name)));
    }
    found.sort();
    Ok(found)
}

/// The file of a process, such as `run.1.capture` for `run.capture`.
fn numbered(output: &Path, index: usize) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{index}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Renames the file of the only process that has dispatched kernels to `output`.
fn keep_one(processes: &Processes, output: &Path) -> io::Result<()> {
    // The processes report absolute paths.
    let output = &std::path::absolute(output)?;
    let kept = processes.dispatching().next().and_then(|(_, record)| record.output.as_ref());
    if let Some(kept) = kept.filter(|kept| *kept != output) {
        flipwave_host::output::check(output)?;
        // Replaces the target of a symbolic link, not the link.
        fs::rename(kept, fs::canonicalize(output).unwrap_or_else(|_| output.to_owned()))?;
    }
    remove_others(processes, output)
}

/// Removes the files of all processes except the file `kept`.
fn remove_others(processes: &Processes, kept: &Path) -> io::Result<()> {
    let outputs = processes.all().filter_map(|(_, ProcessRecord { output, .. })| output.as_ref());
    for file in outputs.filter(|file| *file != kept && file.exists()) {
        flipwave_host::output::remove(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_index_is_inserted_before_the_extension() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        assert_eq!(numbered(&file("a.b.capture"), 12), file("a.b.12.capture"));
        assert_eq!(numbered(&file("run"), 0), file("run.0"));
        for name in
            ["run.0.capture", "run.10.capture", "run.1.x.capture", "run.capture", "o.1.capture"]
        {
            fs::write(file(name), "").expect("a file");
        }
        let found = numbered_files(&file("run.capture")).expect("read");
        assert_eq!(found, [file("run.0.capture"), file("run.10.capture")]);
    }
}
