//! `flipwave compare`.

use crate::failure::Failure;
use crate::output;
use crate::results_arguments::CompareArguments;
use flipwave_analysis::{ComparedProgram, Comparison, ProgramsComparison, ResultsError};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// The name of the CSV table.
const TABLE: &str = "compare.csv";

/// The table of a campaign.
const RESULTS: &str = "results.csv";

pub fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let [a, b] = [&arguments.a, &arguments.b].map(|path| folder(path));
    let [programs_a, programs_b] = [programs(a)?, programs(b)?];
    if programs_a.is_empty() && programs_b.is_empty() {
        let comparison = compare_folders(a, b)?;
        return Compared {
            warnings: comparison.warnings(),
            table: comparison.table(),
            html: comparison.html(),
            csv: &|table| comparison.write_csv(table),
        }
        .write(arguments);
    }
    for (folder, only, other) in [(a, &programs_a, &programs_b), (b, &programs_b, &programs_a)] {
        let names: Vec<&str> = only.difference(other).map(String::as_str).collect();
        if !names.is_empty() {
            output::say(format_args!(
                "flipwave: ignoring campaigns of {} alone: {}",
                folder.display(),
                names.join(", ")
            ));
        }
    }
    let mut compared = Vec::new();
    for name in programs_a.intersection(&programs_b) {
        let comparison = compare_folders(&a.join(name), &b.join(name))?;
        compared.push(ComparedProgram { name: name.clone(), comparison });
    }
    if compared.is_empty() {
        return Err(Failure::NoCommonCampaigns { a: a.to_owned(), b: b.to_owned() });
    }
    let comparison = ProgramsComparison::new(compared);
    Compared {
        warnings: comparison.warnings(),
        table: comparison.table(),
        html: comparison.html(),
        csv: &|table| comparison.write_csv(table),
    }
    .write(arguments)
}

fn compare_folders(a: &Path, b: &Path) -> Result<Comparison, Failure> {
    let (a, table_a) = flipwave_campaigns::about(a)?;
    let (b, table_b) = flipwave_campaigns::about(b)?;
    Ok(Comparison::new(a, table_a, b, table_b)?)
}

/// A comparison that is ready to be written.
struct Compared<'a> {
    warnings: &'a [String],
    table: String,
    html: String,
    /// Writes the CSV table.
    csv: &'a dyn Fn(&mut Vec<u8>) -> Result<(), ResultsError>,
}

impl Compared<'_> {
    fn write(&self, arguments: &CompareArguments) -> Result<(), Failure> {
        for warning in self.warnings {
            output::say(format_args!("flipwave: warning: {warning}"));
        }
        let failed = |file: &Path| {
            let file = file.display().to_string();
            move |reason: std::io::Error| Failure::File { file, reason: reason.to_string() }
        };
        let mut output = output::stdout();
        writeln!(output, "{}", self.table)?;
        let page = &arguments.out;
        flipwave_host::output::replace(page, self.html.as_bytes()).map_err(failed(page))?;
        writeln!(output, "page: {}", page.display())?;
        if let Some(folder) = &arguments.csv {
            std::fs::create_dir_all(folder).map_err(failed(folder))?;
            let file = folder.join(TABLE);
            let mut table = Vec::new();
            (self.csv)(&mut table).map_err(|error| failed(&file)(std::io::Error::other(error)))?;
            flipwave_host::output::replace(&file, &table).map_err(failed(&file))?;
            writeln!(output, "table: {}", file.display())?;
        }
        Ok(())
    }
}

/// Names of the results folders in a folder that is none itself.
fn programs(folder: &Path) -> Result<BTreeSet<String>, Failure> {
    if folder.join(RESULTS).exists() || !folder.is_dir() {
        return Ok(BTreeSet::new());
    }
    let failed = |reason: std::io::Error| Failure::File {
        file: folder.display().to_string(),
        reason: reason.to_string(),
    };
    let mut names = BTreeSet::new();
    for entry in folder.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().join(RESULTS).exists() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Returns the results folder for a path to the folder or to its results.csv.
fn folder(path: &Path) -> &Path {
    if path.file_name().is_none_or(|name| name != RESULTS) {
        return path;
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
