//! Severity of silent data corruption, as classified by judges.

use flipwave_analysis::Severity;
use flipwave_tests::{Compiler, Finished, application, flipwave, rows};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Two kernels that compute scores of 64 classes, launched with different labels.
const SCORES: &str = "
kernel void scores(global float *scores, global const float *weights) {
    float sum = 0.0f;
    for (int i = 0; i < 16; i++) {
        sum += weights[get_global_id(0) * 16 + i];
    }
    scores[get_global_id(0)] = sum;
}
kernel void shift(global float *logits, global const float *scores) {
    logits[get_global_id(0)] = scores[get_global_id(0)] * 0.5f - 1.0f;
}
";

fn campaign(severity: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "name: judged
workload:
  dispatches:
    - source: scores.cl
      name: scores
      grid: 64
      workgroup: 64
      label: body
      args:
        - {{buffer: scores, type: f32, count: 64}}
        - {{buffer: weights, type: f32, count: 1024, init: {{uniform: [-1.0, 1.0]}}}}
    - source: scores.cl
      name: shift
      grid: 64
      workgroup: 64
      label: head
      args: [{{buffer: logits, type: f32, count: 64, output: true, shape: [64]}}, {{buffer: scores}}]
faults: {{model: flip_one_bit, count: 200}}
severity: {severity}
"
    );
    fs::write(folder.path().join("scores.cl"), SCORES).expect("a source");
    fs::write(folder.path().join("judged.yaml"), text).expect("a campaign file");
    folder
}

fn run(folder: &Path, out: &str, workers: &str) -> Finished {
    flipwave(folder, &["run", "judged.yaml", "--out", out, "--workers", workers], &[])
}

/// Index of the largest score; the first one on ties.
fn largest(scores: &[f32]) -> usize {
    let better = |best, class| if scores[class] > scores[best] { class } else { best };
    (1..scores.len()).fold(0, better)
}

/// Outputs that a judge received: the index of the injection, and `true` if the largest score differs.
type Shown = Arc<Mutex<Vec<(u64, bool)>>>;

/// Starts a judge that serves any number of connections until the test ends.
fn serve(path: PathBuf) -> Shown {
    let shown = Shown::default();
    let listener = UnixListener::bind(path).expect("a socket");
    let recorded = Arc::clone(&shown);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let shown = Arc::clone(&recorded);
            std::thread::spawn(move || judge(stream.expect("a connection"), &shown));
        }
    });
    shown
}

fn judge(stream: UnixStream, shown: &Shown) {
    let mut answers = stream.try_clone().expect("a stream");
    let mut questions = BufReader::new(stream);
    let line = |questions: &mut BufReader<UnixStream>| {
        let mut line = String::new();
        questions.read_line(&mut line).expect("a line");
        (!line.is_empty()).then(|| serde_json::from_str::<Value>(&line).expect("JSON"))
    };
    let scores = |questions: &mut BufReader<UnixStream>| {
        let mut bytes = [0; 256];
        questions.read_exact(&mut bytes).expect("an output");
        largest(&flipwave_tests::to_values::<f32>(&bytes))
    };
    let greeting = line(&mut questions).expect("a greeting");
    assert_eq!(greeting["campaign"], "judged");
    let output = json!({"name": "logits", "type": "f32", "count": 64, "shape": [64], "bytes": 256});
    assert_eq!(greeting["outputs"], json!([output]));
    let golden = scores(&mut questions);
    writeln!(answers, "{}", json!({"ready": true})).expect("written");
    while let Some(question) = line(&mut questions) {
        let critical = scores(&mut questions) != golden;
        shown
            .lock()
            .expect("no panic")
            .push((question["index"].as_u64().expect("a number"), critical));
        let severity = if critical { "critical" } else { "tolerable" };
        let answer = json!({"severity": severity, "measures": {"changed": critical, "worth": 0.5}});
        writeln!(answers, "{answer}").expect("written");
    }
}

#[test]
fn judge_classifies_each_sdc_once_and_nothing_else() {
    let folder = campaign("{socket: judge.socket}");
    let shown = serve(folder.path().join("judge.socket"));
    run(folder.path(), "one", "1").expect_success();
    let mut shown = std::mem::take(&mut *shown.lock().expect("no panic"));
    shown.sort_unstable();
    let rows = rows(&folder.path().join("one"));
    assert_eq!(rows.len(), 200);
    let judged: Vec<(u64, bool)> = rows
        .iter()
        .filter_map(|row| {
            row.severity.map(|severity| (row.injection, severity == Severity::Critical))
        })
        .collect();
    assert_eq!(judged, shown);
    for (row, count) in rows.iter().zip(0..) {
        assert_eq!(row.injection, count);
        assert_eq!(row.severity.is_some(), row.outcome.to_string() == "sdc", "{row:?}");
        let measures = row.severity.map(|severity| {
            format!("changed={} worth=0.5", if severity == Severity::Critical { 1 } else { 0 })
        });
        assert_eq!(row.measures, measures, "{row:?}");
        let label = if row.kernel.as_deref() == Some("shift") { "head" } else { "body" };
        assert_eq!(row.label.as_deref(), Some(label));
    }
    let critical = judged.iter().filter(|(_, critical)| *critical).count();
    assert!(0 < critical && critical < judged.len(), "{critical} of {}", judged.len());

    // The table of rates contains the number of critical SDC, in total and by label.
    let rates = flipwave(folder.path(), &["rates", "one", "--by", "label"], &[]).expect_success();
    assert!(rates.stdout.contains("critical sdc"), "{}", rates.stdout);
    let summary = fs::read_to_string(folder.path().join("one/summary.csv")).expect("a summary");
    let count_of = |scope: &str| {
        let wanted = format!("{scope},sdc,critical,");
        let line = summary.lines().find_map(|line| line.strip_prefix(&wanted));
        let count = line.and_then(|line| line.split(',').next()).expect(&wanted);
        count.parse::<usize>().expect("a number")
    };
    assert_eq!(count_of("all"), critical);
    assert_eq!(count_of("label:body") + count_of("label:head"), critical);
}

#[test]
fn severity_does_not_depend_on_workers_or_shards() {
    let folder = campaign("{socket: judge.socket}");
    let _shown = serve(folder.path().join("judge.socket"));
    run(folder.path(), "one", "1").expect_success();
    run(folder.path(), "three", "3").expect_success();
    for part in ["1/2", "2/2"] {
        let arguments = ["run", "judged.yaml", "--out", "parts", "--shard", part];
        flipwave(folder.path(), &arguments, &[]).expect_success();
    }
    flipwave(folder.path(), &["merge", "parts"], &[]).expect_success();
    let read = |out: &str, name: &str| {
        fs::read_to_string(folder.path().join(out).join(name)).expect("a table")
    };
    for name in ["results.csv", "summary.csv"] {
        assert_eq!(read("one", name), read("three", name), "{name}");
        assert_eq!(read("one", name), read("parts", name), "{name}");
    }

    // A replay asks the judge again.
    let rows = rows(&folder.path().join("one"));
    let row = rows.iter().find(|row| row.severity == Some(Severity::Critical)).expect("a row");
    let arguments =
        ["replay", "judged.yaml", "--row", &row.injection.to_string(), "--results", "one"];
    let replayed = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
    assert!(
        replayed.contains("critical") && replayed.contains("changed=1 worth=0.5"),
        "{replayed}"
    );

    // The report contains the rate of critical SDC.
    let page = ["report", "one", "--out", "page.html"];
    flipwave(folder.path(), &page, &[]).expect_success();
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("Critical SDC") && page.contains("head"));
    flipwave(folder.path(), &["compare", "one", "three", "--csv", "pairs"], &[]).expect_success();
    let compared = fs::read_to_string(folder.path().join("pairs/compare.csv")).expect("a table");
    assert!(compared.contains("sdc_critical"), "{compared}");
}

#[test]
fn failing_judge_ends_the_campaign_and_keeps_rows() {
    let says = |script: &str| {
        let folder = campaign(&format!("{{command: [sh, -c, {}]}}", json!(script)));
        let finished = run(folder.path(), "out", "1");
        (folder, finished)
    };
    // The campaign asks as soon as the judge is ready, so what the script prints 0.3 s later is taken as
    // the answer, although the script reads no question.
    let ready = r#"echo '{"ready": true}' >&0; sleep 0.3; "#;
    for (script, words) in [
        ("exit 3".to_owned(), &["severity", "ended without an answer", "3"][..]),
        (format!("{ready} exit 0"), &["severity", "ended without an answer"]),
        (
            format!(r#"{ready} echo '{{"error": "no model"}}' >&0; sleep 9"#),
            &["severity", "no model"],
        ),
        (format!("{ready} echo nonsense >&0; sleep 9"), &["severity", "expected"]),
        (
            // One write, so that the second line arrives before the next question.
            format!(
                r#"{ready} printf '{{"severity": "critical"}}\n{{"severity": "tolerable"}}\n' >&0; sleep 9"#
            ),
            &["severity", "unexpected line"],
        ),
        (
            format!(r#"{ready} echo '{{"severity": "critical", "index": 7}}' >&0; sleep 9"#),
            &["severity", "about injection 7"],
        ),
        (
            format!(r#"{ready} echo '{{"severity": "bad"}}' >&0; sleep 9"#),
            &["severity", "critical", "tolerable"],
        ),
    ] {
        let (folder, finished) = says(&script);
        finished.expect_refused(words);
        assert!(folder.path().join("out/results.csv").exists(), "{script}");
    }
    let folder = campaign("{socket: nobody.socket}");
    run(folder.path(), "out", "1").expect_refused(&[
        "severity",
        "nobody.socket",
        "cannot be reached",
    ]);
    let folder = campaign("{command: [no-such-program]}");
    run(folder.path(), "out", "1").expect_refused(&["severity", "no-such-program"]);
}

/// Data that the judge of an application received for each run: standard output, and a file.
type Printed = Arc<Mutex<Vec<[Vec<u8>; 2]>>>;

/// A judge for one campaign on an application that prints a line if its result is wrong.
fn judge_of_application(stream: UnixStream, printed: &Printed) {
    let mut answers = stream.try_clone().expect("a stream");
    let mut questions = BufReader::new(stream);
    let mut outputs = |lengths: Option<&Value>| {
        let mut line = String::new();
        questions.read_line(&mut line).expect("a line");
        let message = serde_json::from_str::<Value>(&line).ok()?;
        let described = message["outputs"].as_array().map(|all| {
            let parts = |output: &Value| (output["name"].clone(), output["bytes"].clone());
            assert!(all.iter().all(|output| output["type"] == "u8"), "{message}");
            all.iter().map(parts).unzip::<_, _, Vec<Value>, Vec<Value>>()
        });
        let lengths = match (&described, message.get("bytes").or(lengths)) {
            (Some((names, lengths)), _) => {
                assert_eq!(names, &["stdout", "result.txt"]);
                json!(lengths)
            }
            (None, lengths) => lengths.expect("lengths").clone(),
        };
        let contents = [0, 1].map(|place: usize| {
            let mut content = vec![0; lengths[place].as_u64().expect("a length") as usize];
            questions.read_exact(&mut content).expect("an output");
            content
        });
        Some((message, lengths, contents))
    };
    let (_, lengths, golden) = outputs(None).expect("a greeting");
    assert!(golden[0].is_empty() && !golden[1].is_empty());
    writeln!(answers, "{}", json!({"ready": true})).expect("written");
    while let Some((question, _, contents)) = outputs(Some(&lengths)) {
        let is_reported = !contents[0].is_empty();
        printed.lock().expect("no panic").push(contents);
        let severity = if is_reported { "critical" } else { "tolerable" };
        let answer = json!({"index": question["index"], "severity": severity});
        writeln!(answers, "{answer}").expect("written");
    }
}

#[test]
fn judge_receives_outputs_of_the_faulty_application() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = application("campaigns/reactions", Compiler::Hipcc, "gfx90a");
    let text = format!(
        "name: judged\nworkload: {{app: {{command: [\"{}\", file], golden_runs: 1}}}}\n\
         compare: [{{stdout: exact}}, {{file: result.txt}}]\n\
         severity: {{socket: judge.socket}}\n\
         faults: {{model: {{flip_mask: 0x40000000}}, opcodes: [v_fma_f32], count: 3}}\n",
        program.display()
    );
    fs::write(folder.path().join("judged.yaml"), text).expect("a campaign file");
    let listener = UnixListener::bind(folder.path().join("judge.socket")).expect("a socket");
    let printed = Printed::default();
    let recorded = Arc::clone(&printed);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            judge_of_application(stream.expect("a connection"), &recorded);
        }
    });
    run(folder.path(), "results", "1").expect_success();
    let rows = rows(&folder.path().join("results"));
    let critical = rows.iter().filter(|row| row.severity == Some(Severity::Critical)).count();
    assert_eq!((rows.len(), critical), (3, 3), "{rows:?}");
    // A replay executes the application again, and asks about the same outputs.
    let arguments = ["replay", "judged.yaml", "--row", "0", "--results", "results"];
    let replayed = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
    assert!(replayed.contains("severity:       critical"), "{replayed}");
    let printed = printed.lock().expect("no panic");
    assert_eq!(printed.len(), 4);
    assert_eq!(printed[3], printed[0]);
    assert!(printed.iter().all(|[stdout, _]| stdout.starts_with(b"wrong")), "{printed:?}");
}
