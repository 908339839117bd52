//! Untrusted files and names: commands do not hang on them, do not execute their content, and do not
//! print control characters from them.

use flipwave_codeobj::CodeObject;
use flipwave_tests::{Finished, examples_folder, gfx90a, program};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Time limit of a command in seconds; it takes one or two.
const SECONDS: &str = "60";

/// A folder with a campaign on a kernel in OpenCL C, and its results.
struct Bench(TempDir);

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let examples = examples_folder();
        let kernel = examples.join("kernels/vector_add.cl");
        fs::copy(kernel, folder.path().join("add.cl")).expect("the kernel");
        let text = fs::read_to_string(examples.join("vector_add.yaml")).expect("the example");
        let text = text.replace("kernels/vector_add.cl", "add.cl");
        fs::write(folder.path().join("add.yaml"), text.replace("count: 1000}", "count: 4}"))
            .expect("the campaign");
        Bench(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("add.yaml")).expect("the campaign")
    }

    fn write(&self, name: &str, from: &str, to: &str) {
        let text = self.text();
        assert_eq!(text.matches(from).count(), 1, "{from}");
        fs::write(self.path(name), text.replace(from, to)).expect("written");
    }

    /// Runs `flipwave` and asserts that it ends.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Finished {
        self.run_as(Command::new("timeout"), arguments)
    }

    #[track_caller]
    fn run_as(&self, mut timeout: Command, arguments: &[&str]) -> Finished {
        timeout.args(["-s", "KILL", SECONDS]).arg(program()).args(arguments);
        timeout.current_dir(self.0.path()).env("FLIPWAVE_CACHE", self.path("cache"));
        let output = timeout.output().expect("timeout(1)");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.signal() != Some(9) && output.status.code() != Some(137),
            "{arguments:?} hangs"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
        Finished { code: output.status.code(), signal: output.status.signal(), stdout, stderr }
    }
}

/// Replaces a file.
type Replace<'a> = Box<dyn Fn() + 'a>;

/// Unsuitable replacements of a file, each with its error message.
fn replacements(path: &Path) -> [(&'static str, Replace<'_>); 3] {
    let clear = move || drop(fs::remove_file(path));
    [
        (
            "it is a FIFO; expected a regular file",
            Box::new(move || {
                clear();
                let made = Command::new("mkfifo").arg(path).status().expect("mkfifo(1)");
                assert!(made.success());
            }),
        ),
        (
            "it is a character device; expected a regular file",
            Box::new(move || {
                clear();
                symlink("/dev/zero", path).expect("a link");
            }),
        ),
        (
            "it is larger than",
            Box::new(move || {
                clear();
                let file = fs::File::create(path).expect("made");
                file.set_len(1 << 42).expect("a sparse file");
            }),
        ),
    ]
}

/// Replaces each file that a command reads with a FIFO, an endless device, and a file of 4 TiB.
#[test]
fn commands_do_not_hang_on_endless_files() {
    let bench = Bench::new();
    let run = ["run", "add.yaml", "--out", "results"];
    bench.run(&run).expect_success();
    bench.write("object.yaml", "source: add.cl", "code_object: add.co");
    bench.write(
        "init.yaml",
        "{uniform: [-1.0, 1.0]}}\n      - {buffer: b",
        "{file: a.bin}}\n      - {buffer: b",
    );
    fs::write(bench.path("capture.yaml"), "name: c\nworkload: {capture: {file: a.capture}}\nfaults: {model: flip_one_bit, count: 1}\n").expect("written");
    fs::write(bench.path("app.yaml"), "name: app\nworkload: {app: {command: [cat], stdin: in.txt}}\ncompare: [{stdout: exact}]\nfaults: {model: flip_one_bit, count: 1}\n").expect("written");
    // Files without a size limit are read in parts, whose line does not end.
    let long_line = "a line is longer than";
    for (file, arguments, size_error) in [
        ("fifo.yaml", &["run", "fifo.yaml"][..], None),
        ("add.cl", &["run", "add.yaml", "--out", "other"], None),
        ("add.co", &["run", "object.yaml", "--out", "other"], None),
        ("a.bin", &["run", "init.yaml", "--out", "other"], Some("4398046511104 bytes")),
        ("in.txt", &["run", "app.yaml", "--out", "other"], Some("")),
        ("a.capture", &["run", "capture.yaml", "--out", "other"], Some("capture")),
        ("a.capture", &["capture", "--list", "a.capture"], Some("capture")),
        ("results/flipwave.lock", &["run", "add.yaml", "--out", "results", "--resume"], None),
        (
            "results/results.csv",
            &["run", "add.yaml", "--out", "results", "--resume"],
            Some(long_line),
        ),
        ("results/results.csv", &["rates", "results"], Some(long_line)),
        ("results/run.json", &["rates", "results"], None),
        ("results/run.json", &["report", "results", "--out", "page.html"], None),
        (
            "published.csv",
            &["compare-published", "results", "--published", "published.csv"],
            Some(long_line),
        ),
    ] {
        let path = bench.path(file);
        let kept = fs::read(&path).ok();
        for (words, replace) in replacements(&path) {
            let words =
                if words.starts_with("it is larger") { size_error.unwrap_or(words) } else { words };
            replace();
            let finished = bench.run(arguments);
            // A file that is copied without being read may be large.
            if words.is_empty() {
                continue;
            }
            println!("{file} {words}: {}", finished.stderr);
            finished.expect_refused(&[path.file_name().expect("a name").to_str().expect("text")]);
            let said = finished.stderr.contains(words)
                || finished
                    .stderr
                    .contains("is a character device; expected a regular file, or none")
                || finished.stderr.contains("is a FIFO; expected a regular file, or none");
            assert!(said, "{words}\n{}", finished.stderr);
        }
        let _ = fs::remove_file(&path);
        if let Some(kept) = kept {
            fs::write(&path, kept).expect("as it was");
        }
    }
    bench.run(&[&run[..], &["--resume"]].concat()).expect_success();
}

#[test]
fn shards_do_not_hang_on_endless_files_in_a_shared_folder() {
    let bench = Bench::new();
    let shard = |part: &str| bench.run(&["run", "add.yaml", "--out", "out", "--shard", part]);
    shard("1/2").expect_success();
    let files = |folder: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(bench.path("out").join(folder)).expect("a folder");
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    };
    let (rows, plans, golden) = (files("shards"), files("plans"), files("golden"));
    assert!(!rows.is_empty() && !plans.is_empty() && !golden.is_empty());
    for path in rows.iter().chain(&plans) {
        let kept = fs::read(path).expect("a file");
        for (_, replace) in replacements(path) {
            replace();
            for arguments in [&["status", "out"][..], &["merge", "out"]] {
                let finished = bench.run(arguments);
                println!(
                    "{} {arguments:?}: {:?} {}",
                    path.display(),
                    finished.code,
                    finished.stderr
                );
                assert!(matches!(finished.code, Some(0 | 2)), "{finished:?}");
            }
        }
        fs::remove_file(path).expect("removed");
        fs::write(path, kept).expect("as it was");
    }
    for path in &golden {
        let kept = fs::read(path).expect("a file");
        let name = path.file_name().expect("a name").to_str().expect("text");
        for (_, replace) in replacements(path) {
            replace();
            let finished = shard("2/2");
            // The file may not be needed, or is replaced if damaged. Otherwise the error names it.
            if finished.code != Some(0) {
                finished.expect_refused(&[name]);
            }
            let device = fs::metadata("/dev/zero").expect("it is there").file_type();
            assert!(device.is_char_device(), "/dev/zero was replaced");
        }
        fs::remove_file(path).expect("removed");
        fs::write(path, kept).expect("as it was");
    }
    shard("2/2").expect_success();
    bench.run(&["merge", "out"]).expect_success();
}

/// A cached file that is damaged, writable by others, or not a regular file.
#[test]
fn untrusted_cache_files_are_replaced_with_a_warning() {
    let bench = Bench::new();
    let run = |out: &str| bench.run(&["run", "add.yaml", "--out", out]).expect_success();
    let table =
        |out: &str| fs::read_to_string(bench.path(out).join("results.csv")).expect("a table");
    run("first");
    let kept: Vec<PathBuf> = fs::read_dir(bench.path("cache"))
        .expect("the cache")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".co.kept"))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let good = fs::read(&kept[0]).expect("kept");
    let damaged = || {
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 0x10;
        fs::write(&kept[0], bad).expect("written");
    };
    let opened = || {
        fs::set_permissions(&kept[0], fs::Permissions::from_mode(0o666)).expect("a mode");
    };
    let [(_, fifo), (_, device), (_, endless)] = replacements(&kept[0]);
    let changes: [(&str, &dyn Fn(), &str); 5] = [
        ("damaged", &damaged, "wrong digest"),
        ("opened", &opened, "it is writable by others"),
        ("fifo", &*fifo, "it is a FIFO"),
        ("device", &*device, "it is a character device"),
        ("endless", &*endless, "it is larger than"),
    ];
    for (name, change, words) in changes {
        change();
        let said = run(name).stderr;
        assert!(said.contains("warning: ") && said.contains(words), "{name}: {said}");
        assert!(said.contains(kept[0].to_str().expect("text")), "{name}: {said}");
        assert_eq!(table(name), table("first"), "{name}");
        // The cache is valid again, so there is no further warning.
        let again = format!("{name}-again");
        assert!(!run(&again).stderr.contains("warning"));
    }
}

/// Without a home folder, nothing is cached under a predictable name in a shared folder.
#[test]
fn cache_without_a_home_folder_is_private() {
    let bench = Bench::new();
    let shared = bench.path("tmp");
    fs::create_dir(&shared).expect("a folder");
    let trap = shared.join("flipwave-cache");
    fs::create_dir(&trap).expect("another user's folder");
    // A user that is not in the user database has no home folder.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61234", "--clear-groups", "env", "-u", "HOME", "-u", "XDG_CACHE_HOME"]);
    command.args(["-u", "FLIPWAVE_CACHE"]).env("TMPDIR", &shared);
    fs::set_permissions(bench.0.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("a mode");
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o777)).expect("a mode");
    command.arg("timeout");
    bench.run_as(command, &["run", "add.yaml", "--out", "results"]).expect_success();
    let left: Vec<PathBuf> = fs::read_dir(&shared)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(left, std::slice::from_ref(&trap), "files are left");
    assert_eq!(fs::read_dir(trap).expect("a folder").count(), 0, "the shared folder was used");
}

/// With limits of 2 to 1000 threads, a campaign succeeds or fails with one error message.
#[test]
fn thread_creation_failures_are_reported_without_a_panic() {
    let bench = Bench::new();
    let compiler = flipwave_campaigns::Compiler::find().unwrap_or_else(|error| panic!("{error}"));
    let target = "gfx90a".parse().expect("a target");
    let object = compiler.compile(&bench.path("add.cl"), &["-O3".into()], &target);
    fs::write(bench.path("add.co"), object.unwrap_or_else(|error| panic!("{error}")))
        .expect("written");
    bench.write("object.yaml", "source: add.cl", "code_object: add.co");
    fs::set_permissions(bench.0.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let run = |limit: u32, arguments: &[&str]| {
        // Root has no limit, so run as another user.
        let mut command = Command::new("setpriv");
        let limit = format!("--nproc={limit}");
        command.args(["--reuid=61235", "--clear-groups", "prlimit", &limit, "timeout"]);
        bench.run_as(command, arguments)
    };
    let (mut done, mut refused) = (0, 0);
    for limit in [2, 3, 4, 5, 6, 8, 1000] {
        for (number, arguments) in [
            &["run", "object.yaml", "--workers", "4"][..],
            &["profile", "object.yaml"],
            &["run", "add.yaml", "--workers", "4"],
        ]
        .into_iter()
        .enumerate()
        {
            let out = format!("out-{limit}-{number}");
            let with_out = [arguments, &["--out", &out]].concat();
            let finished = run(limit, if arguments[0] == "run" { &with_out } else { arguments });
            println!("{limit} {arguments:?}: {:?} {}", finished.code, finished.stderr);
            match finished.code {
                Some(0) => done += 1,
                Some(2) => {
                    refused += 1;
                    let said = finished.stderr.matches("flipwave: ").count();
                    assert_eq!(said, 1, "{}", finished.stderr);
                }
                code => panic!("{code:?} {finished:?}"),
            }
            assert!(limit < 1000 || finished.code == Some(0), "{finished:?}");
        }
    }
    assert!(done >= 8 && refused > 0, "{done} done, {refused} refused");
}

/// A kernel name with control characters, of the same length as the original name.
const NAME: &str = "=1+\x1b[2J\nxy";

/// Writes the campaign `named.yaml` on a kernel called [`NAME`].
fn named(bench: &Bench) {
    let compiler = flipwave_campaigns::Compiler::find().unwrap_or_else(|error| panic!("{error}"));
    let target = "gfx90a".parse().expect("a target");
    let object = compiler.compile(&bench.path("add.cl"), &["-O3".into()], &target);
    let mut object = object.unwrap_or_else(|error| panic!("{error}"));
    let old = b"vector_add";
    assert_eq!(old.len(), NAME.len());
    for at in 0..object.len() - old.len() {
        if object[at..].starts_with(old) {
            object[at..at + old.len()].copy_from_slice(NAME.as_bytes());
        }
    }
    let parsed = CodeObject::parse(&object).expect("a code object");
    assert_eq!((&*parsed.kernels()[0].name, parsed.target()), (NAME, &gfx90a()));
    fs::write(bench.path("add.co"), object).expect("written");
    let text = bench.text().replace("source: add.cl", "code_object: add.co");
    let text = text.replace("    name: vector_add", "    name: \"=1+\\e[2J\\nxy\"");
    let label = "    label: \"@SUM(A1)\"\n    grid:";
    fs::write(bench.path("named.yaml"), text.replace("    grid:", label)).expect("written");
}

#[test]
fn kernel_names_are_escaped_for_terminals_and_spreadsheets() {
    let bench = Bench::new();
    named(&bench);
    let unknown = bench.text().replace("source: add.cl", "code_object: add.co");
    fs::write(bench.path("unknown.yaml"), unknown).expect("written");
    let results = ["run", "named.yaml", "--out", "results"];
    for (code, arguments) in [
        (0, &results[..]),
        (0, &["rates", "results", "--by", "kernel"]),
        (0, &["rates", "results", "--by", "label"]),
        (0, &["profile", "named.yaml"]),
        (0, &["inspect", "add.co"]),
        (0, &["tool", "instruction-count", "named.yaml"]),
        (0, &["trace", "named.yaml", "--results", "results", "--row", "0"]),
        (0, &["report", "results", "--out", "page.html"]),
        (2, &["run", "unknown.yaml", "--out", "other"]),
    ] {
        let finished = bench.run(arguments);
        let said = finished.stdout.clone() + &finished.stderr;
        assert_eq!(finished.code, Some(code), "{arguments:?}: {said}");
        // A tool's table is for programs and is not escaped.
        if arguments[0] != "tool" {
            assert!(!said.contains('\x1b') && !said.contains('\x07'), "{arguments:?}: {said:?}");
            assert!(!said.lines().any(|line| line.starts_with("xy")), "{arguments:?}: {said:?}");
        }
        println!("{arguments:?}\n{said}");
    }
    let table = fs::read_to_string(bench.path("results/results.csv")).expect("a table");
    assert!(table.contains("\"'=1+") && table.contains("'@SUM(A1)"), "{table}");
    let cells = csv::Reader::from_reader(table.as_bytes()).into_records();
    for cell in
        cells.flat_map(|row| row.expect("a row").iter().map(str::to_owned).collect::<Vec<_>>())
    {
        let is_number = cell.parse::<f64>().is_ok();
        assert!(is_number || !cell.starts_with(['=', '+', '-', '@']), "{cell:?}");
    }
    // Reading the table restores the original names.
    let rows = flipwave_analysis::read_rows(table.as_bytes()).expect("rows");
    assert!(rows.iter().all(|row| row.kernel.as_deref() == Some(NAME)), "{rows:?}");
}

#[test]
fn paths_with_line_breaks_are_refused_in_batch_scripts() {
    let bench = Bench::new();
    for engine in ["slurm", "hyperqueue", "local"] {
        let out = "out\n#SBATCH --wrap=reboot";
        let arguments = ["submit", "add.yaml", "--shards", "2", "--dry-run", "--engine", engine];
        let finished = bench.run(&[&arguments[..], &["--out", out]].concat());
        finished.expect_refused(&["out\\n#SBATCH --wrap=reboot", "another folder"]);
        assert!(!finished.stderr.lines().any(|line| line.starts_with("#SBATCH")));
        bench.run(&[&arguments[..], &["--out", "a b"]].concat()).expect_success();
    }
}

#[test]
fn arguments_are_counted_before_buffers_are_filled() {
    let bench = Bench::new();
    // Files of buffers are not read if there are too many arguments.
    let more = "{scalar: 4000, type: u32}\n      - {buffer: c, type: f32, count: 4, init: {file: missing.bin}}";
    bench.write("more.yaml", "{scalar: 4000, type: u32}", more);
    let finished = bench.run(&["run", "more.yaml"]);
    finished.expect_refused(&["vector_add", "takes 4 arguments", "5 given"]);
}

#[test]
fn compiler_options_that_write_files_need_permission() {
    let bench = Bench::new();
    let traced = "source: add.cl\n    options: [-O3, -ftime-trace=trace.json]";
    bench.write("traced.yaml", "source: add.cl", traced);
    let finished = bench.run(&["run", "traced.yaml", "--out", "traced"]);
    finished.expect_refused(&["traced.yaml:", "options[1]", "-ftime-trace", "compiler_plugins"]);
    assert!(!bench.path("trace.json").exists());
    let text = fs::read_to_string(bench.path("traced.yaml")).expect("text");
    let meant = text.replace("workload:", "allow: [compiler_plugins]\nworkload:");
    fs::write(bench.path("traced.yaml"), meant).expect("written");
    bench.run(&["run", "traced.yaml", "--out", "traced"]).expect_success();
    assert!(bench.path("trace.json").exists());
}
