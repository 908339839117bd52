//! `flipwave compare`.

use crate::failure::Failure;
use crate::output;
use crate::results_arguments::CompareArguments;
use flipwave_analysis::Comparison;
use std::io::Write;
use std::path::Path;

/// The name of the CSV table.
const TABLE: &str = "compare.csv";

pub fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let read = |path: &Path| flipwave_campaigns::about(folder(path));
    let (a, table_a) = read(&arguments.a)?;
    let (b, table_b) = read(&arguments.b)?;
    let comparison = Comparison::new(a, table_a, b, table_b)?;
    for warning in comparison.warnings() {
        output::say(format_args!("flipwave: warning: {warning}"));
    }
    let failed = |file: &Path| {
        let file = file.display().to_string();
        move |reason: std::io::Error| Failure::File { file, reason: reason.to_string() }
    };
    let mut output = output::stdout();
    writeln!(output, "{}", comparison.table())?;
    let page = &arguments.out;
    flipwave_host::output::replace(page, comparison.html().as_bytes()).map_err(failed(page))?;
    writeln!(output, "page: {}", page.display())?;
    if let Some(folder) = &arguments.csv {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let file = folder.join(TABLE);
        let mut table = Vec::new();
        comparison
            .write_csv(&mut table)
            .map_err(|error| failed(&file)(std::io::Error::other(error)))?;
        flipwave_host::output::replace(&file, &table).map_err(failed(&file))?;
        writeln!(output, "table: {}", file.display())?;
    }
    Ok(())
}

/// Returns the results folder for a path to the folder or to its results.csv.
fn folder(path: &Path) -> &Path {
    if path.file_name().is_none_or(|name| name != "results.csv") {
        return path;
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
