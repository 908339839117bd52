//! Tests with judges that answer and judges that fail.

use super::*;
use crate::severity::message::Greeting;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// A limit longer than any of these judges needs.
fn wait_limit() -> WaitLimit {
    WaitLimit { stopped: Arc::default(), timeout: Duration::from_secs(60) }
}

/// Returns a judge written in shell: it runs `script` after reading the greeting line and the eight bytes
/// of an output.
fn judge(script: &str) -> JudgeSource {
    let script = format!("read -r greeting; head -c 8 >/dev/null; {script}");
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let directory = PathBuf::from("/");
    JudgeSource::Command {
        command: CommandLine::new(words, &directory).expect("a shell"),
        directory,
    }
}

fn greeting() -> Greeting {
    let output = OutputDescription {
        name: "logits".to_owned(),
        element: "f32",
        count: 2,
        shape: Some(vec![1, 2]),
        bytes: 8,
    };
    Greeting::new("model", vec![output])
}

fn ask(source: &JudgeSource) -> Result<Judgement, String> {
    let output = [1_u8, 2, 3, 4, 5, 6, 7, 8];
    let outputs = || [output.as_slice()].into_iter();
    let mut connection = Connection::open(source, wait_limit(), &greeting(), outputs())?;
    connection.ask(&Question { index: 17, bytes: None }, outputs())
}

/// Answers are written to standard input, which is the socket.
const READY: &str = r#"echo '{"ready": true}' >&0;"#;

#[test]
fn judge_program_receives_questions_on_standard_input() {
    let answer = r#"read -r index; head -c 8 >/dev/null;
        case "$index" in *17*) word=tolerable;; *) word=critical;; esac;
        echo "{\"severity\": \"$word\", \"measures\": {\"cosine\": 0.5}}" >&0"#;
    let judgement = ask(&judge(&format!("{READY}{answer}")));
    let expected =
        Judgement { severity: Severity::Tolerable, measures: Some("cosine=0.5".to_owned()) };
    assert_eq!(judgement, Ok(expected));
}

#[test]
fn question_contains_lengths_if_they_differ_from_the_golden_run() {
    let greeting = greeting();
    assert_eq!(greeting.changed_lengths(&[&[0; 8]]), None);
    assert_eq!(greeting.changed_lengths(&[&[0; 3]]), Some(vec![3]));
    let answer = r#"read -r question; head -c 3 >/dev/null;
        case "$question" in *'"bytes":[3]'*) word=tolerable;; *) word=critical;; esac;
        echo "{\"severity\": \"$word\"}" >&0"#;
    let source = judge(&format!("{READY}{answer}"));
    let golden = [[0_u8; 8].as_slice()];
    let mut connection =
        Connection::open(&source, wait_limit(), &greeting, golden.into_iter()).expect("ready");
    let question = Question { index: 1, bytes: Some(vec![3]) };
    let judgement = connection.ask(&question, [[0_u8; 3].as_slice()].into_iter());
    assert_eq!(judgement, Ok(Judgement { severity: Severity::Tolerable, measures: None }));
}

#[test]
fn error_contains_the_reason_of_a_failed_judge() {
    let failed = |script: &str| ask(&judge(script)).expect_err(script);
    assert!(failed("exit 3").contains("exit status: 3"));
    assert!(failed(r#"echo '{"error": "no model.pt"}' >&0"#).contains("no model.pt"));
    assert!(failed("echo hello >&0").contains("`hello`"));
    assert!(failed(&format!("{READY} exit 0")).contains("ended without an answer"));
    let nowhere = JudgeSource::Socket("/nowhere/socket".into());
    assert!(ask(&nowhere).expect_err("no server").contains("cannot be reached"));
}

#[test]
fn cancellation_ends_waiting_for_a_judge() {
    let source = judge(&format!("{READY} exec sleep 600"));
    let stopped = Arc::new(AtomicBool::new(false));
    let wait_limit = WaitLimit { stopped: Arc::clone(&stopped), ..wait_limit() };
    let output = [0_u8; 8];
    let outputs = || [output.as_slice()].into_iter();
    let mut connection =
        Connection::open(&source, wait_limit, &greeting(), outputs()).expect("ready");
    stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    let start = Instant::now();
    assert!(connection.ask(&Question { index: 0, bytes: None }, outputs()).is_err());
    drop(connection);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

/// A judge that hangs, one that never ends its line, and a server that accepts no connection.
#[test]
fn exceeding_the_time_limit_is_an_error() {
    let wait_limit = || WaitLimit { stopped: Arc::default(), timeout: Duration::from_millis(300) };
    let output = [0_u8; 8];
    let outputs = || [output.as_slice()].into_iter();
    let words = ["gave no answer within 0.3 s", "`severity.timeout`"];
    let check = |error: String| words.map(|word| assert!(error.contains(word), "{error}"));
    let silent = judge(&format!("{READY} exec sleep 600"));
    let mut connection =
        Connection::open(&silent, wait_limit(), &greeting(), outputs()).expect("ready");
    let question = Question { index: 0, bytes: None };
    check(connection.ask(&question, outputs()).expect_err("silence"));
    let start = Instant::now();
    drop(connection);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let talking = judge("while :; do printf . >&0; sleep 0.02; done");
    let open = |source: &JudgeSource| {
        Connection::open(source, wait_limit(), &greeting(), outputs()).err().expect("no judge")
    };
    check(open(&talking));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    rustix::net::listen(&listener, 0).expect("a short queue");
    let _waiting = UnixStream::connect(&path).expect("the one that has room");
    check(open(&JudgeSource::Socket(path)));
}
