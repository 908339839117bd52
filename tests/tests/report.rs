//! `flipwave report`: the page of a campaign, its behaviour in a browser, and the errors for invalid input.

use flipwave_tests::{Browser, example, flipwave};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A folder with a matmul campaign, its kernel source and its results, created once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let made = || {
        let folder = tempfile::tempdir().expect("a folder");
        let file =
            flipwave_tests::example("matmul", "{model: flip_one_bit, count: 300}", folder.path());
        // `report` looks for sources relative to the campaign file.
        let kernels = flipwave_tests::examples_folder().canonicalize().expect("examples");
        let kernels = kernels.join("kernels");
        fs::create_dir(folder.path().join("kernels")).expect("a folder");
        let source = Path::new("kernels/matmul_tiled.cl");
        fs::copy(kernels.join("matmul_tiled.cl"), folder.path().join(source)).expect("copied");
        let text = fs::read_to_string(&file).expect("a campaign file");
        let text = text.replace(&format!("{}/", kernels.display()), "kernels/");
        fs::write(&file, text).expect("a campaign file written");
        let arguments = ["run", "matmul.yaml", "--out", "results"];
        flipwave(folder.path(), &arguments, &[]).expect_success();
        folder
    };
    FOLDER.get_or_init(made).path()
}

/// A copy of the results that a test may change.
fn copy() -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["results.csv", "run.json"] {
        fs::copy(folder().join("results").join(name), copy.path().join(name)).expect("copied");
    }
    copy
}

fn page(arguments: &[&str]) -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a temporary");
    let page = temporary.path().join("page.html");
    let out = page.to_str().expect("text");
    flipwave(folder(), &[&["report"], arguments, &["--out", out]].concat(), &[]).expect_success();
    (temporary, page)
}

#[test]
fn report_shows_comparison_and_worst_lines() {
    let (_folder, page) = page(&["results"]);
    let text = fs::read_to_string(page).expect("a page");
    for expected in [
        "<strong>relative 1e-5</strong>",
        "300 of 300 planned",
        "gfx90a",
        "operations executed are exact",
        "sum = fma(left_tile[y][k], right_tile[k][x], sum);",
        "flipwave replay matmul.yaml --site \"dispatch=0 ",
        "flipwave trace matmul.yaml --site \"dispatch=0 ",
        "95 %, Wilson",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    let worst = text.split("<ol class=\"worst\">").nth(1).expect("the worst lines");
    let first = worst.split("</li>").next().expect("a line");
    assert!(first.contains("matmul_tiled.cl:20"), "{first}");
    assert!(!text.contains("class=\"warning\""), "nothing to warn of");
}

#[test]
fn replay_command_of_the_report_works() {
    let (_folder, page) = page(&["results"]);
    let text = fs::read_to_string(page).expect("a page");
    let command = text.split("flipwave replay matmul.yaml --site \"").nth(1).expect("a command");
    let site = command.split('"').next().expect("a site");
    let replayed =
        flipwave(folder(), &["replay", "matmul.yaml", "--site", site, "--seed", "42"], &[]);
    let shown = text.split(site).next().and_then(|before| before.rsplit("<summary>").next());
    let outcome = shown.and_then(|shown| shown.split("</summary>").next()).expect("an outcome");
    assert_eq!(outcome, "sdc");
    assert!(replayed.expect_success().stdout.contains("sdc"));
}

/// Browser script: sorts the table of opcodes by name in both orders and by injections, and filters it.
const SORT_AND_FILTER: &str = "
    const table = document.getElementById('opcode-table');
    const names = () => Array.from(table.tBodies[0].rows)
        .filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
    const rates = () => Array.from(table.tBodies[0].rows).map((row) => Number(row.cells[1].dataset.v));
    const sorted = (list, by) => list.every((item, at) => at === 0 || by(list[at - 1], item));
    const [name, injections] = table.querySelectorAll('th button');
    // Natural order: 16 after 2.
    const order = (a, b) => a.localeCompare(b, 'en', { numeric: true });
    const checks = [];
    name.click();
    checks.push(sorted(names(), (a, b) => order(a, b) <= 0), table.querySelector('th').getAttribute('aria-sort'));
    name.click();
    checks.push(sorted(names(), (a, b) => order(a, b) >= 0), table.querySelector('th').getAttribute('aria-sort'));
    injections.click();
    checks.push(sorted(rates(), (a, b) => a >= b));
    const input = document.querySelector('[data-table=opcode-table]');
    const all = names().length;
    input.value = 'V_ADD';
    input.dispatchEvent(new Event('input'));
    checks.push(names().length > 0, names().length < all, names().every((name) => name.includes('v_add')));
    input.value = '';
    input.dispatchEvent(new Event('input'));
    checks.push(names().length === all);
    return checks.join(' ');
";
const DONE: &str = "true ascending true descending true true true true true";

#[test]
fn report_tables_sort_and_filter_in_a_browser() {
    let Some(browser) = Browser::find() else { return };
    let (folder, page) = page(&["results"]);
    assert_eq!(browser.try_in(&page, SORT_AND_FILTER), DONE);

    // Negative controls: a wrong sort order, a script error, and a request for an external resource.
    let text = fs::read_to_string(&page).expect("a page");
    let broken = folder.path().join("broken.html");
    fs::write(&broken, text.replace("sign * compare", "-sign * compare")).expect("written");
    assert_ne!(browser.try_in(&broken, SORT_AND_FILTER), DONE);
    fs::write(&broken, text.replace("\"use strict\";", "nothing.at.all();")).expect("written");
    assert!(browser.try_in(&broken, "return 1;").contains("nothing is not defined"));
    fs::write(&broken, text.replace("<main>", "<main><img src=\"http://localhost:9/x.png\">"))
        .expect("written");
    let refused = "return new Promise(() => {}) && document.images.length;";
    assert!(browser.try_in(&broken, refused).starts_with('1'));
}

#[test]
fn report_of_several_campaigns_fits_the_window() {
    let second = copy();
    let text = fs::read_to_string(second.path().join("run.json")).expect("a record");
    let text = text.replace("\"name\": \"matmul\"", "\"name\": \"the other\"");
    fs::write(second.path().join("run.json"), text).expect("written");
    let (_folder, page) = page(&["results", second.path().to_str().expect("text")]);
    let text = fs::read_to_string(&page).expect("a page");
    for expected in
        ["<h1>2 campaigns</h1>", "href=\"#c2\">the other", "id=\"c1-line\"", "id=\"c2-line\""]
    {
        assert!(text.contains(expected), "{expected}");
    }
    let Some(browser) = Browser::find() else { return };
    let script = "return document.querySelectorAll('#campaigns tbody tr').length + ' '
        + (document.documentElement.scrollWidth <= innerWidth) + ' '
        + new Set(Array.from(document.querySelectorAll('[id]'), (element) => element.id)).size / \
          document.querySelectorAll('[id]').length;";
    assert_eq!(browser.try_in(&page, script), "2 true 1", "lines, no wider, each name once");
}

#[test]
fn report_mentions_interruption_old_records_and_missing_sources() {
    let results = copy();
    let record = results.path().join("run.json");
    let text = fs::read_to_string(&record).expect("a record");
    fs::write(&record, text.replace("\"complete\"", "\"interrupted\"")).expect("written");
    let table = results.path().join("results.csv");
    let rows = fs::read_to_string(&table).expect("rows");
    let part: String = rows.split_inclusive('\n').take(100).collect();
    fs::write(&table, part + "99,disp").expect("written");
    let folder = results.path().to_str().expect("text");
    let page_text = |arguments: &[&str]| fs::read_to_string(page(arguments).1).expect("a page");
    let text = page_text(&[folder]);
    for expected in ["The campaign was interrupted", "was cut off", "99 of 300 planned"] {
        assert!(text.contains(expected), "{expected}");
    }

    // A record of an older version, without newer fields.
    let record_text = fs::read_to_string(&record).expect("a record");
    let mut old: serde_json::Value = serde_json::from_str(&record_text).expect("a record");
    let fields = old.as_object_mut().expect("fields");
    for name in
        ["compared", "file", "fidelity", "versions", "planned", "confidence", "design", "counted"]
    {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    fs::write(&record, old.to_string()).expect("written");
    let text = page_text(&[folder]);
    for expected in ["Not recorded", "with --source DIR", "CAMPAIGN.yaml"] {
        assert!(text.contains(expected), "{expected}");
    }
    let sources = self::folder().to_str().expect("text");
    assert!(page_text(&[folder, "--source", sources]).contains("kernel void matmul_tiled"));
}

#[test]
fn invalid_results_are_refused_with_a_reason() {
    let results = copy();
    let path = |name: &str| results.path().join(name);
    let report = |folder: &Path| flipwave(results.path(), &[Path::new("report"), folder], &[]);
    report(&path("nothing")).expect_refused(&["no such folder", "nothing"]);
    report(&path("run.json")).expect_refused(&["no such folder"]);
    let empty = tempfile::tempdir().expect("a folder");
    report(empty.path()).expect_refused(&["no results.csv", "flipwave merge"]);

    let rows = fs::read_to_string(path("results.csv")).expect("rows");
    let record = fs::read_to_string(path("run.json")).expect("a record");
    for (name, text, words) in [
        (
            "results.csv",
            "a,b\n1,2\n".to_owned(),
            &["results.csv", "not the results of a campaign"][..],
        ),
        ("results.csv", rows.replacen(",1.0,", ",NaN,", 1), &["results.csv", "line 2", "weight"]),
        ("results.csv", rows.replacen("\n0,", "\nzero,", 1), &["results.csv", "line: 2"]),
        ("run.json", "{".to_owned(), &["run.json", "line 1"]),
        ("run.json", "{}".to_owned(), &["run.json", "campaign"]),
        ("run.json", record.replace("0.95,", "95,"), &["run.json", "between 0 and 1"]),
    ] {
        fs::write(path("results.csv"), &rows).expect("written");
        fs::write(path("run.json"), &record).expect("written");
        fs::write(path(name), text).expect("written");
        report(results.path()).expect_refused(words);
        assert!(!path("report.html").exists(), "a page was written for invalid input");
    }
    fs::remove_file(path("run.json")).expect("removed");
    report(results.path()).expect_refused(&["no run.json"]);
}

#[test]
fn csv_report_has_the_rates_of_the_summary() {
    let tables = tempfile::tempdir().expect("a folder");
    let out = tables.path().to_str().expect("text");
    let (_page, _) = page(&["results", "--csv", out]);
    let rates = fs::read_to_string(tables.path().join("aggregates.csv")).expect("a table");
    let summary = fs::read_to_string(folder().join("results/summary.csv")).expect("a summary");
    let mut compared = 0;
    for line in summary.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (scope, value) = cells[0].split_once(':').unwrap_or((cells[0], ""));
        let expected = format!(",{scope},{value},{}", cells[1..8].join(","));
        assert!(rates.lines().any(|line| line.contains(&expected)), "{expected}");
        compared += 1;
    }
    assert!(compared > 8, "{compared}");
}

/// Tables on the terminal contain all injections, sorted by the contribution to SDC.
#[test]
fn rates_are_printed_by_each_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("quickstart", "{model: flip_one_bit, count: 300}", folder.path());
    let out = folder.path().join("out");
    let run = ["run".as_ref(), file.as_path(), "--out".as_ref(), &out];
    flipwave(folder.path(), &run, &[]).expect_success();
    let table = |by: &str| {
        let rates = ["rates".as_ref(), out.as_path(), "--by".as_ref(), by.as_ref()];
        flipwave(folder.path(), &rates, &[])
    };
    for (by, least) in [("kernel", 2), ("opcode", 10), ("bit", 20), ("register", 10), ("line", 0)] {
        let text = table(by).expect_success().stdout;
        let lines: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(|line| line.split_whitespace().collect())
            .collect();
        let (all, groups) = lines.split_last().expect("lines");
        assert_eq!((all[0], all[1], all.last()), ("all", "300", Some(&"100.0")), "{text}");
        assert!(groups.len() >= least, "{text}");
        let parts: Vec<f64> = groups
            .iter()
            .map(|line| line.last().and_then(|cell| cell.parse().ok()).expect(by))
            .collect();
        assert!(by == "bit" || parts.is_sorted_by(|a, b| a >= b), "{text}");
        let counts = groups.iter().map(|line| line[1].parse::<u64>().expect("a number"));
        assert!(least == 0 || counts.sum::<u64>() == 300, "{text}");
    }
    table("colour").expect_refused(&["colour", "opcode"]);
}
