//! Replaying a row of `results.csv` reproduces the row.

use flipwave_analysis::{Outcome, Row};
use flipwave_tests::{example, flipwave, rows};
use serde_json::{Map, Value};

/// The value that `flipwave replay` prints under a name. Asserts that it is printed at most once.
fn fact<'a>(printed: &'a str, name: &str) -> Option<&'a str> {
    let mut found = printed.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = found.next().map(str::trim);
    assert_eq!(found.next(), None, "{name} is there twice:\n{printed}");
    value
}

/// A number of a row, formatted as printed.
fn printed_number(number: Option<f64>) -> Option<String> {
    number.map(|number| format!("{number:?}"))
}

fn assert_is_row(printed: &str, row: &Row) {
    let fact = |name| fact(printed, name).map(str::to_owned);
    assert_eq!(fact("site").as_ref(), Some(&row.site));
    assert_eq!(fact("flip_mask"), Some(format!("{:#010x}", row.flip_mask)), "{}", row.site);
    assert_eq!(fact("before"), Some(format!("{:#010x}", row.before)), "{}", row.site);
    assert_eq!(fact("after"), Some(format!("{:#010x}", row.after)), "{}", row.site);
    assert_eq!(fact("words"), Some(row.words.to_string()), "{}", row.site);
    assert_eq!(fact("outcome"), Some(row.outcome.to_string()), "{}", row.site);
    assert_eq!(fact("cause"), row.cause, "{}", row.site);
    let wrong = row.elements_wrong.map(|wrong| wrong.to_string());
    assert_eq!(fact("elements_wrong"), wrong, "{}", row.site);
    assert_eq!(fact("max_abs_error"), printed_number(row.max_abs_error), "{}", row.site);
    assert_eq!(fact("max_rel_error"), printed_number(row.max_rel_error), "{}", row.site);
    let instructions = row.instructions.map(|more| more.to_string());
    assert_eq!(fact("instructions"), instructions, "{}", row.site);
    let timing = row.timing_changed.map(|changed| changed.to_string());
    assert_eq!(fact("timing_changed"), timing, "{}", row.site);
}

/// Asserts that a JSON object has the same names and values as the text, in their types.
fn assert_json_has_the_facts(json: &str, text: &str) {
    let object: Map<String, Value> = serde_json::from_str(json).expect("an object");
    // The indented lines below a fault are an object of their own.
    let lines = text.lines().filter(|line| !line.starts_with(' '));
    let facts: Vec<(&str, &str)> =
        lines.filter_map(|line| line.split_once(':')).map(|(n, v)| (n, v.trim())).collect();
    let contexts = usize::from(object.contains_key("fault_context"));
    assert_eq!(contexts, usize::from(text.contains("\n    call chain:")), "{json}{text}");
    assert_eq!(object.len(), facts.len() + contexts, "{json}{text}");
    for (name, shown) in facts {
        let value = &object[name];
        let printed = match (name, value) {
            ("flip_mask" | "before" | "after", Value::Number(bits)) => {
                format!("{:#010x}", bits.as_u64().expect("bits"))
            }
            (_, Value::Number(number)) if number.is_f64() => {
                let (number, shown_number) =
                    (number.as_f64().expect("a number"), shown.parse::<f64>().expect("a number"));
                // The parser of JSON may round differently.
                let is_near = (number - shown_number).abs() <= 1e-15 * shown_number.abs();
                assert!(is_near, "{name}: {number} and {shown_number}");
                continue;
            }
            (_, Value::String(text)) => text.clone(),
            (_, value) => value.to_string(),
        };
        assert_eq!(printed, shown, "{name}");
        let is_text = ["site", "outcome", "cause", "error_pattern", "fault"].contains(&name);
        assert!(is_text == value.is_string() || shown == "inf", "{name}: {value}");
    }
}

#[test]
fn replay_reproduces_the_row() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, faults) in [
        ("saxpy", "{model: flip_one_bit, count: 150}"),
        ("quickstart", "{model: flip_two_adjacent_bits, count: 150}"),
    ] {
        let file = example(name, faults, folder.path());
        let out = folder.path().join(format!("{name}.out"));
        flipwave(folder.path(), &["run".as_ref(), file.as_path(), "--out".as_ref(), &out], &[])
            .expect_success();
        let rows = rows(&out);
        assert_eq!(rows.len(), 150);
        for outcome in [Outcome::Masked, Outcome::Sdc, Outcome::Due] {
            let same: Vec<&Row> =
                rows.iter().filter(|row| row.outcome == outcome).take(5).collect();
            assert_eq!(same.len(), 5, "{name}: rows to replay that are {outcome}");
            for row in same {
                let arguments =
                    ["replay".as_ref(), file.as_os_str(), "--site".as_ref(), row.site.as_ref()];
                let replayed = flipwave(folder.path(), &arguments, &[]).expect_success();
                assert_is_row(&replayed.stdout, row);
                let with_json = [&arguments[..], &["--json".as_ref()]].concat();
                let json = flipwave(folder.path(), &with_json, &[]).expect_success().stdout;
                assert_json_has_the_facts(&json, &replayed.stdout);
            }
        }
    }
}

/// With another seed, buffers have other contents, so a replay needs the seed.
#[test]
fn a_row_of_another_seed_replays_with_that_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file =
        example("vector_add", "{model: flip_one_bit, groups: [load], count: 20}", folder.path());
    let out = folder.path().join("out");
    let run = [
        "run".as_ref(),
        file.as_os_str(),
        "--out".as_ref(),
        out.as_os_str(),
        "--seed".as_ref(),
        "7".as_ref(),
    ];
    flipwave(folder.path(), &run, &[]).expect_success();
    let loaded = rows(&out).into_iter().find(|row| row.opcode.starts_with("global_load"));
    let row = loaded.expect("a row with a loaded value");
    let replay = |seed: &str| {
        let site = row.site.as_str();
        let arguments = [
            "replay".as_ref(),
            file.as_os_str(),
            "--site".as_ref(),
            site.as_ref(),
            "--seed".as_ref(),
            seed.as_ref(),
        ];
        flipwave(folder.path(), &arguments, &[]).expect_success().stdout
    };
    assert_is_row(&replay("7"), &row);
    assert_ne!(fact(&replay("8"), "before"), Some(format!("{:#010x}", row.before).as_str()));
}

/// A replay by row number uses the seed of the results.
#[test]
fn a_row_is_replayed_by_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    example("saxpy", "{model: flip_one_bit, count: 20}", folder);
    let run = |arguments: &[&str]| flipwave(folder, arguments, &[]);
    run(&["run", "saxpy.yaml", "--seed", "7"]).expect_success();
    let rows = rows(&folder.join("saxpy.results"));
    for (index, row) in rows.iter().enumerate().step_by(6) {
        let number = index.to_string();
        let replayed = run(&["replay", "saxpy.yaml", "--row", &number]).expect_success();
        assert_is_row(&replayed.stdout, row);
    }
    let traced = run(&["trace", "saxpy.yaml", "--row", "3", "--results", "saxpy.results"]);
    assert!(traced.expect_success().stdout.contains(&rows[3].site));
    let refused = |arguments: &[&str], part: &str| run(arguments).expect_refused(&[part]);
    refused(
        &["replay", "saxpy.yaml", "--row", "20"],
        "no row 20; the table has 20 rows, starting at 0",
    );
    refused(&["replay", "saxpy.yaml", "--row", "1", "--results", "none"], "none/results.csv");
    refused(&["replay", "saxpy.yaml"], "--site");
    refused(&["replay", "saxpy.yaml", "--site", "dispatch=0"], "--site: ");
    refused(
        &["replay", "saxpy.yaml", "--row", "1", "--site", &rows[0].site],
        "cannot be used with",
    );
}

#[test]
fn completions_and_manual_pages_cover_all_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| flipwave(folder.path(), arguments, &[]).expect_success();
    for shell in ["bash", "zsh", "fish"] {
        let text = run(&["completions", shell]).stdout;
        assert!(text.contains("flipwave") && text.contains("replay"), "{shell}");
    }
    run(&["manual", "pages"]);
    let page = |name| std::fs::read_to_string(folder.path().join("pages").join(name)).expect(name);
    assert!(page("flipwave.1").contains("replay"));
    assert!(page("flipwave-run.1").contains("worker"));
}
