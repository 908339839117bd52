//! Fault models in C: the same rows inside the embedded GPU and with hooks, with any number of workers and
//! in shards, and errors of their functions.

use flipwave_tests::{example, examples_folder, flipwave, rows, timeless_rows};
use std::ffi::OsStr;
use std::path::Path;

/// Faults of a model of the examples.
fn faults(model: &str, more: &str) -> String {
    let file = examples_folder().canonicalize().expect("a folder").join("../fault_models");
    format!("{{model: {{c: {}}}, {more}}}", file.join(model).display())
}

fn run(file: &Path, out: &Path, more: &[&str]) {
    let mut arguments = vec!["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
    arguments.extend(more.iter().map(OsStr::new));
    flipwave(file.parent().expect("a folder"), &arguments, &[]).expect_success();
}

/// A campaign with the text of a model in `model.c`.
fn campaign(folder: &Path, model: &str) -> std::path::PathBuf {
    std::fs::write(folder.join("model.c"), model).expect("written");
    example("quickstart", "{model: {c: model.c}, groups: [valu], count: 40}", folder)
}

#[test]
fn rows_do_not_depend_on_path_workers_or_shards() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (model, more) in [
        ("burst.c", "count: 1000"),
        ("relative.c", "count: 300, scope: active_lanes"),
        ("burst.c", "count: 100, duration: {intermittent: {window: 20, rate: 0.5}}"),
    ] {
        let file = example("quickstart", &faults(model, more), folder);
        let out = |name: &str| {
            let out = folder.join(name);
            let _ = std::fs::remove_dir_all(&out);
            out
        };
        let one = out("one");
        run(&file, &one, &["--workers", "1"]);
        let table = std::fs::read(one.join("results.csv")).expect("a table");
        let two = out("two");
        run(&file, &two, &["--workers", "2"]);
        assert!(std::fs::read(two.join("results.csv")).expect("a table") == table, "{model}");
        let hooked = out("hooked");
        run(&file, &hooked, &["--by", "hook"]);
        assert_eq!(timeless_rows(&hooked), timeless_rows(&one), "{model} {more}");
        let plain = out("plain");
        run(&file, &plain, &["--without", "dead-values", "--without", "saved-states"]);
        assert!(std::fs::read(plain.join("results.csv")).expect("a table") == table, "{model}");

        let shards = out("shards");
        for shard in ["1/3", "2/3", "3/3"] {
            run(&file, &shards, &["--shard", shard]);
        }
        let merge = ["merge".as_ref(), shards.as_os_str()];
        flipwave(folder, &merge, &[]).expect_success();
        assert!(std::fs::read(shards.join("results.csv")).expect("a table") == table, "{model}");
    }
}

/// The reference computes the values of `burst.c` again, in Rust.
#[test]
fn values_are_those_of_the_function() {
    let mix = |word: u32| {
        let word = (word ^ word >> 16).wrapping_mul(0x7feb_352d);
        let word = (word ^ word >> 15).wrapping_mul(0x846c_a68b);
        word ^ word >> 16
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("quickstart", &faults("burst.c", "count: 200"), folder.path());
    let out = folder.path().join("out");
    run(&file, &out, &[]);
    let mut widths = [0; 33];
    for row in rows(&out) {
        let random = row.site.split("random=0x").nth(1).expect("a random number");
        let random = u64::from_str_radix(random, 16).expect("digits");
        let is_scc = row.location == "scc";
        let bits = if is_scc { 1 } else { 32 };
        let drawn = mix((random as u32).wrapping_add(row.lane.unwrap_or(0).into()));
        let count = 1 + (random >> 32).trailing_ones().min(7);
        let flipped = ((1u32 << count) - 1) << (drawn % bits);
        let flipped = if is_scc { flipped & 1 } else { flipped };
        assert_eq!(row.before ^ row.after, u64::from(flipped), "{}", row.site);
        widths[flipped.count_ones() as usize] += 1;
    }
    assert!(widths[1] > 60 && widths[2] > 25 && widths[3] > 10, "{widths:?}");
}

#[test]
fn sites_are_replayed_only_with_their_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = "uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault)\n\
                 {\n    return value + (uint32_t)fault.random;\n}\n";
    let file = campaign(folder.path(), model);
    let out = folder.path().join("out");
    run(&file, &out, &["--count", "1"]);
    let [row] = &rows(&out)[..] else { panic!("expected one row") };
    let replay = ["replay".as_ref(), file.as_os_str(), "--site".as_ref(), OsStr::new(&row.site)];
    let replayed = flipwave(folder.path(), &replay, &[]).expect_success();
    let after = format!("{:#010x}", row.after);
    assert!(replayed.stdout.contains(&after), "{after}: {}", replayed.stdout);
    campaign(folder.path(), &model.replace('+', "-"));
    flipwave(folder.path(), &replay, &[])
        .expect_refused(&["unknown function `model@", "name changes with its text"]);
}

#[test]
fn invalid_models_are_rejected_with_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let word = "uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault)\n";
    let cases: [(String, &[&str]); 9] = [
        (format!("{word}{{\n    return valeu;\n}}\n"), &["model.c:3", "valeu"]),
        (
            "int other(int a) { return a; }\n".to_owned(),
            &["no fault function", "flipwave_fault_word"],
        ),
        (
            "float flipwave_fault_word(float value, flipwave_fault fault) { return value; }\n"
                .to_owned(),
            &["model.c:1", "conflicting types"],
        ),
        (
            format!(
                "{word}{{ return value; }}\n\
                 double flipwave_fault_number(double value, flipwave_fault fault) {{ return value; }}\n"
            ),
            &["defines both"],
        ),
        (format!("#include <math.h>\n{word}{{ return value; }}\n"), &["model.c:1", "math.h"]),
        (format!("#include \"missing.h\"\n{word}{{ return value; }}\n"), &["missing.h"]),
        (
            format!("{word}{{\n    return *(volatile uint32_t *)0;\n}}\n"),
            &["model.c:3", "flipwave_fault", "SIGSEGV"],
        ),
        (
            format!("{word}{{\n    volatile uint32_t zero = 0;\n    return value / zero;\n}}\n"),
            &["the fault was not injected", "model.c:4", "SIGFPE"],
        ),
        (
            format!("{word}{{\n    for (volatile int i = 0;; i++) {{\n    }}\n}}\n"),
            &["model.c:3", "took more than 2 seconds"],
        ),
    ];
    for (text, words) in &cases {
        let file = campaign(folder.path(), text);
        let arguments = ["run".as_ref(), file.as_os_str()];
        flipwave(folder.path(), &arguments, &[("FLIPWAVE_TOOL_SECONDS", "2")])
            .expect_refused(words);
    }
    let file = example("quickstart", "{model: {c: none.c}, count: 1}", folder.path());
    flipwave(folder.path(), &["run".as_ref(), file.as_os_str()], &[])
        .expect_refused(&["quickstart.yaml:", "none.c"]);
}

/// A function that fails on the GPU is an error as well.
#[test]
fn functions_that_fail_in_hooks_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let word = "uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault)\n";
    for (body, words) in [
        ("return *(volatile uint32_t *)8;", &["model.c: its function failed on the GPU"][..]),
        (
            "volatile static uint32_t i; while (1) i = i + 1;",
            &["model.c: its function failed on the GPU"][..],
        ),
    ] {
        let file = campaign(folder.path(), &format!("{word}{{\n    {body}\n}}\n"));
        let arguments = ["run".as_ref(), file.as_os_str(), "--by".as_ref(), "hook".as_ref()];
        flipwave(folder.path(), &arguments, &[]).expect_refused(words);
    }
}
