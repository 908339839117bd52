//! Reads campaign files.

use crate::file::campaign::Campaign;
use crate::file::check::{Digests, check};
use crate::file::location::{FieldError, FileError};
use crate::file::schema;
use crate::file::yaml;
use crate::vary::CampaignFile;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

impl Campaign {
    /// Reads a campaign file without variants. Paths in it are relative to the file.
    ///
    /// # Errors
    /// [`FileError`] with the position of the invalid field.
    pub fn read(path: &Path) -> Result<Campaign, FileError> {
        CampaignFile::read(path, None)?.campaign(None)
    }

    /// Reads a campaign without variants from the text of the file `path`.
    ///
    /// # Errors
    /// [`FileError`] with the position of the invalid field.
    pub fn parse(text: &str, path: &Path) -> Result<Campaign, FileError> {
        CampaignFile::parse(text, path, None)?.campaign(None)
    }
}

/// Reads the text of a YAML file.
///
/// # Errors
/// [`FileError`] if the file cannot be read, or is too long.
pub(crate) fn text(path: &Path) -> Result<String, FileError> {
    let failed = |reason: String| FileError {
        path: path.to_owned(),
        position: None,
        message: format!("cannot read the file: {reason}"),
    };
    flipwave_host::input::read_text_or_pipe(path, flipwave_host::input::TEXT)
        .map_err(|error| failed(error.to_string()))
}

/// Returns the SHA-256 of a file's text.
pub(crate) fn digest(text: &str) -> String {
    crate::digest::hexadecimal(&Sha256::digest(text.as_bytes()))
}

/// Validates the campaign `file`, which was parsed from `text`. `digest` is the digest of the file at
/// `path`.
///
/// # Errors
/// Returns the first invalid field.
pub(crate) fn campaign(
    file: schema::File,
    text: &str,
    path: &Path,
    digest: String,
) -> Result<Campaign, FieldError> {
    let content = content(text, &file.target);
    check(file, path, Digests { text: digest, content })
}

/// Returns the digest of the parts of a campaign file for a target that determine its rows. It does not cover
/// comments, the name, the file format of rows, the number of faults, and the precision of rates. The
/// seed is compared separately.
fn content(text: &str, target: &str) -> String {
    let content = yaml::parse::<Value>(text).map(|mut content| {
        if let Some(keys) = content.as_object_mut() {
            let is_default = !keys.contains_key("target") && target == schema::default_target();
            if !is_default {
                keys.insert("target".to_owned(), Value::from(target));
            }
            keys.retain(|key, _| !["name", "seed", "format"].contains(&key.as_str()));
        }
        if let Some(faults) = content.get_mut("faults").and_then(Value::as_object_mut) {
            faults.retain(|key, _| {
                !["count", "margin", "confidence", "until", "intervals"].contains(&key.as_str())
            });
        }
        // The address and the time limit of a judge do not affect its judgements.
        if let Some(severity) = content.get_mut("severity").and_then(Value::as_object_mut) {
            severity.remove("timeout");
            severity.entry("socket").and_modify(|socket| *socket = Value::Null);
        }
        // Keys are sorted.
        content.to_string()
    });
    let content = content.unwrap_or_else(|_| text.to_owned());
    digest(&content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::kernels::{Argument, BufferRole, Code};
    use crate::outputs::compare::Tolerance;
    use crate::program::image::Image;
    use crate::sample::{Allocation, Per, SampleSize};
    use crate::severity::JudgeSource;
    use flipwave_analysis::{IntervalMethod, Outcome};
    use flipwave_injector::{
        Counting, Fault, FaultModel, FaultTarget, Group, KnownMasked, Scope, Stratification,
    };
    use std::path::PathBuf;
    use std::time::Duration;

    const GOOD: &str = "\
name: add
seed: 7
workload:
  kernel:
    source: kernels/add.cl
    name: add
    grid: 256
    workgroup: 64
    args:
      - {buffer: a, type: f32, count: 256, init: {uniform: [-1.0, 1.0]}}
      - {buffer: sum, type: f32, count: 256, output: true}
      - {scalar: 256, type: i32}
      - {local_memory: 64}
faults: {model: flip_one_bit, target: destination_register, groups: [valu, vmem], count: 100}
compare: {sum: {relative: 1.0e-5}}
";

    fn parse(text: &str) -> Result<Campaign, FileError> {
        Campaign::parse(text, Path::new("campaigns/add.yaml"))
    }

    /// Replaces `from` by `to` in the valid campaign, and checks that the error points to `at` in the new
    /// text and contains all `parts`.
    fn assert_error(from: &str, to: &str, at: &str, parts: &[&str]) {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = parse(&text).expect_err(to).to_string();
        let (line, column) = text
            .lines()
            .enumerate()
            .find_map(|(index, line)| Some((index + 1, line.find(at)? + 1)))
            .expect(at);
        assert!(error.starts_with(&format!("campaigns/add.yaml:{line}:{column}: ")), "{error}");
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }

    #[test]
    fn campaign_is_read() {
        let campaign = parse(GOOD).expect("good");
        assert_eq!((campaign.name.as_str(), campaign.seed), ("add", 7));
        assert_eq!(campaign.target.to_string(), "gfx90a");
        let kernels = campaign.kernels().expect("kernels");
        assert_eq!(kernels.buffers.len(), 2);
        assert_eq!(kernels.buffers[0].role, BufferRole::Data);
        let tolerance = Tolerance { relative: Some(1.0e-5), ..Tolerance::default() };
        assert_eq!(kernels.buffers[1].role, BufferRole::Output(tolerance));
        let launch = &kernels.launches[0];
        assert_eq!((launch.grid, launch.workgroup), ([256, 1, 1], [64, 1, 1]));
        let path = PathBuf::from("campaigns/kernels/add.cl");
        assert_eq!(launch.code, Code::Source { path, options: vec!["-O3".to_owned()] });
        assert_eq!(
            launch.arguments,
            [
                Argument::Buffer(0),
                Argument::Buffer(1),
                Argument::Value(Image::aligned(vec![0, 1, 0, 0], 4)),
                Argument::LocalMemory(64)
            ]
        );
        let faults = campaign.faults().expect("faults");
        assert_eq!(faults.fault, Fault::transient(FaultModel::FlipOneBit));
        assert_eq!(faults.selection.groups, [Group::Valu, Group::Vmem]);
        assert_eq!(faults.sample.size, SampleSize::Count(100));
    }

    #[test]
    fn launches_share_buffers_by_name() {
        let again = "  dispatches:
    - {source: add.cl, name: add, grid: [64, 2], workgroup: [64, 1], args: [
        {buffer: x, type: u32, count: 4, output: true}]}
    - {code_object: add.co, name: more, grid: 64, workgroup: 64, args: [{buffer: x}]}
";
        let start = GOOD.find("  kernel:").expect("kernel");
        let end = GOOD.find("faults:").expect("faults");
        let text = format!("{}{again}{}", &GOOD[..start], &GOOD[end..]).replace("sum:", "x:");
        let campaign = parse(&text).expect("good");
        let kernels = campaign.kernels().expect("kernels");
        assert_eq!(kernels.buffers.len(), 1);
        assert_eq!(kernels.launches.len(), 2);
        assert_eq!(kernels.launches[0].grid, [64, 2, 1]);
        assert_eq!(kernels.launches[1].arguments, [Argument::Buffer(0)]);
        assert_eq!(kernels.launches[1].code, Code::Object { path: "campaigns/add.co".into() });
    }

    #[test]
    fn unknown_keys_are_rejected_everywhere() {
        assert_error("seed: 7", "sede: 7", "sede", &["sede", "seed"]);
        assert_error("grid: 256", "gird: 256", "gird", &["workload.kernel", "gird", "grid"]);
        assert_error("output: true", "outptu: true", "outptu", &["args[1]", "outptu", "output"]);
        assert_error("count: 100", "cuont: 100", "cuont", &["faults", "cuont", "count"]);
        assert_error("relative:", "relativ:", "relativ:", &["compare", "relativ", "relative"]);
        assert_error("uniform:", "unifrom:", "unifrom", &["init", "unifrom", "uniform"]);
    }

    #[test]
    fn values_of_wrong_type_are_rejected() {
        assert_error("seed: 7", "seed: seven", "seven", &["seed", "seven"]);
        assert_error("type: f32", "type: float", "float", &["float", "f32"]);
        assert_error("grid: 256", "grid: wide", "wide", &["grid", "work-items"]);
        assert_error("count: 256", "count: -1", "-1", &["count", "-1"]);
        assert_error("name: add\nseed", "seed", "seed", &["name"]);
        assert_error("seed: 7", "seed: 7\nseed: 8", "name", &["duplicate", "seed"]);
        let twice = "{exact: true}, sum: {exact: true}";
        assert_error("{relative: 1.0e-5}", twice, "{sum", &["compare", "duplicate"]);
    }

    #[test]
    fn invalid_names_are_rejected_with_their_position() {
        assert_error("name: add\n", "name: ../add\n", "../add", &["name", "folder"]);
        assert_error("seed: 7", "target: gfx9", "gfx9", &["gfx9", "gfx90a"]);
        assert_error("flip_one_bit", "flip_bit", "flip_bit", &["flip_bit", "flip_one_bit"]);
        assert_error("[valu, vmem]", "[valu, vmme]", "vmme", &["groups[1]", "vmme", "vmem"]);
        assert_error("[valu, vmem]", "[]", "[]", &["groups", "empty"]);
        assert_error("compare: {sum", "compare: {a", "{relative", &["`a`", "outputs are: sum"]);
        assert_error(", output: true", "", "kernel:", &["output: true"]);
        assert_error("buffer: sum, type", "buffer: a, type", "f32, count: 256, output", &["`a`"]);
    }

    #[test]
    fn invalid_shapes_are_rejected_with_their_position() {
        assert_error("grid: 256", "grid: 0", "0", &["workload.kernel.grid", "at least 1"]);
        assert_error("grid: 256", "grid: [1, 1, 1, 1]", "[1, 1", &["4 dimensions"]);
        assert_error("workgroup: 64", "workgroup: 2048", "2048", &["1024"]);
        assert_error("workgroup: 64", "workgroup: [64, 1]", "[64, 1]", &["dimensions"]);
        assert_error("256, output", "0, output", "0, output", &["args[1].count", "expected 1"]);
        let shape = |shape: &str| format!("output: true, shape: {shape}");
        for (invalid, message) in [
            ("[16, 15]", "16 x 15 is 240 elements, but the output has 256"),
            ("[4, 4, 4, 4]", "4 dimensions; expected 1 to 3"),
            ("[]", "0 dimensions"),
            ("[256, 0]", "a dimension is 0"),
        ] {
            assert_error("output: true", &shape(invalid), invalid, &["args[1].shape", message]);
        }
        let data = "count: 256, shape: [256], init";
        assert_error("count: 256, init", data, "[256]", &["args[0].shape", "output: true"]);
        assert_error(
            "type: i32",
            "type: i32, shape: [1]",
            "[1]",
            &["a scalar does not support `shape`"],
        );
        assert_error("local_memory: 64", "local_memory: 0", "0}", &["expected 1"]);
    }

    #[test]
    fn triton_launch_takes_missing_keys_from_metadata() {
        let metadata = tempfile::NamedTempFile::new().expect("a file");
        let content = r#"{"name": "softmax", "num_warps": 4, "warp_size": 64, "shared": 2048,
            "global_scratch_size": 16, "profile_scratch_size": 0}"#;
        std::fs::write(metadata.path(), content).expect("written");
        let launch = |keys: &str| {
            let text = format!(
                "name: a\nworkload:\n  kernel: {{code_object: a.co, metadata: {}, {keys}\n    args: \
                 [{{buffer: a, type: bf16, count: 1, output: true}}]}}\n",
                metadata.path().display()
            );
            parse(&text).map(|campaign| campaign.kernels().expect("kernels").clone())
        };
        let kernels = launch("grid: {workgroups: [3, 2]},").expect("good");
        let found = &kernels.launches[0];
        assert_eq!((found.kernel.as_str(), found.local_memory), ("softmax", 2048));
        assert_eq!((found.grid, found.workgroup), ([768, 2, 1], [256, 1, 1]));
        assert_eq!(found.arguments, [Argument::Buffer(0), Argument::Buffer(1), Argument::Null]);
        assert_eq!((kernels.buffers[1].count, kernels.buffers[1].role), (96, BufferRole::Data));
        let kernels = launch("name: b, local_memory: 64, grid: 64, workgroup: 64,").expect("good");
        let found = &kernels.launches[0];
        assert_eq!((found.kernel.as_str(), found.local_memory, found.grid), ("b", 64, [64, 1, 1]));
        let error = launch("grid: {workgroups: 33554432},").expect_err("too many").to_string();
        assert!(error.contains("grid.workgroups") && error.contains("256 work-items"), "{error}");
        let source = "source: kernels/add.cl";
        let with_metadata = "source: kernels/add.cl\n    metadata: add.json";
        assert_error(source, with_metadata, "add.json", &["metadata", "code_object"]);
        let missing = "code_object: a.co\n    metadata: /nowhere.json";
        assert_error(source, missing, "/nowhere.json", &["metadata", "cannot read"]);
        assert_error("    name: add\n", "", "source", &["workload.kernel", "`name`"]);
        assert_error("    workgroup: 64\n", "", "source", &["workload.kernel", "`workgroup`"]);
    }

    #[test]
    fn labels_and_expected_files_are_read() {
        let text = GOOD.replacen("grid: 256", "grid: 256\n    label: layer0.add", 1).replacen(
            "output: true",
            "output: true, expected: sum.bin",
            1,
        );
        let campaign = parse(&text).expect("good");
        let kernels = campaign.kernels().expect("kernels");
        assert_eq!(kernels.launches[0].label.as_deref(), Some("layer0.add"));
        assert_eq!(kernels.buffers[1].expected.as_deref(), Some(Path::new("campaigns/sum.bin")));
        assert_error("grid: 256", "label: ''\n    grid: 256", "''", &["label", "one line"]);
        let data = "count: 256, expected: a.bin, init";
        assert_error("count: 256, init", data, "a.bin", &["args[0].expected", "output: true"]);
    }

    #[test]
    fn packed_elements_must_fill_whole_bytes() {
        let four = |count| format!("a, type: i4, count: {count}");
        assert!(
            parse(&GOOD.replacen(
                "a, type: f32, count: 256, init: {uniform: [-1.0, 1.0]}",
                &four(256),
                1
            ))
            .is_ok()
        );
        assert_error(
            "a, type: f32, count: 256, init: {uniform: [-1.0, 1.0]}",
            &four(255),
            "255",
            &["args[0].count", "even"],
        );
        assert_error("scalar: 256, type: i32", "scalar: 1, type: i4", "i4", &["whole bytes"]);
    }

    #[test]
    fn severity_is_checked_before_anything_runs() {
        let with = |severity: &str| format!("severity: {severity}\nfaults: ");
        let judge = |severity: &str| parse(&GOOD.replacen("faults: ", &with(severity), 1));
        let socket = judge("{socket: judge.socket}").expect("good");
        let settings = socket.severity.clone().expect("a judge");
        assert_eq!(settings.source, JudgeSource::Socket("campaigns/judge.socket".into()));
        assert_eq!(settings.timeout, Duration::from_secs(600));
        let limited = judge("{socket: judge.socket, timeout: 90 s}").expect("good");
        assert_eq!(limited.severity.map(|judge| judge.timeout), Some(Duration::from_secs(90)));
        assert_eq!(limited.content, socket.content);
        // The address of a server is not part of the content digest.
        let moved = judge("{socket: other.socket}").expect("good");
        assert_eq!(socket.content, moved.content);
        assert_ne!(socket.content, judge("{command: [sh]}").expect("good").content);
        for (severity, at, word) in [
            ("{}", "{}", "exactly one"),
            ("{command: []}", "[]", "no program"),
            ("{command: [no-such-program]}", "[no", "PATH"),
            ("{python: model.py}", "model.py", "FILE.py:FUNCTION"),
            ("{socket: s, timeout: soon}", "soon", "60 s"),
            ("{timeout: 60 s}", "{timeout", "exactly one"),
            ("{python: 'model.py:verdict'}", "'model.py", "cannot find"),
        ] {
            assert_error("faults: ", &with(severity), at, &["severity", word]);
        }
        let application =
            "name: a\nworkload: {app: {command: [sh], directory: /}}\nseverity: {command: [sh]}\n";
        assert!(parse(application).expect("good").severity.is_some());
    }

    #[test]
    fn invalid_arguments_are_rejected_with_their_position() {
        assert_error("scalar: 256, type: i32", "scalar: 256, type: u8", "256, type: u8", &["u8"]);
        assert_error("scalar: 256, type: i32", "scalar: 256", "{scalar", &["type"]);
        assert_error("[-1.0, 1.0]", "[1.0, -1.0]", "{uniform", &["init", "smaller first"]);
        assert_error("{local_memory: 64}", "{}", "{}", &["exactly one"]);
        let counted = "local_memory: 64, count: 1";
        assert_error("local_memory: 64", counted, "1}", &["does not support `count`"]);
        let untyped = "buffer: sum, output";
        assert_error(
            "buffer: sum, type: f32, count: 256, output",
            untyped,
            "{buffer: sum",
            &["`type` and `count`"],
        );
        let source = "source: kernels/add.cl";
        assert_error(source, "options: []", "options", &["source", "code_object"]);
        assert_error(source, "source: a\n    code_object: b", "source", &["either"]);
        assert_error(source, "code_object: b\n    options: []", "[]", &["already compiled"]);
    }

    /// All keys of `faults` together.
    #[test]
    fn faults_and_filters_are_read() {
        let old = "faults: {model: flip_one_bit, target: destination_register, groups: [valu, vmem], count: 100}";
        let new = "faults: {model: {flip_random_bits: 3}, target: source_operand, scope: active_lanes, \
                   duration: {intermittent: {window: 10, rate: 0.5}}, kernels: [add], \
                   dispatches: [0, 2], workgroups: [[1, 0, 0]], waves: [0, 3], lanes: [0, 63], \
                   groups: [valu], opcodes: [v_add_f32], pcs: [0x1a9c], \
                   lines: ['add.cl:3-9'], registers: [v4, 's[0:3]', vcc], occurrences: [1, 5], \
                   window: [0, 99], profile: approximate, count: 5, stratify: opcode, \
                   allocation: equal, timing_threshold: 0.01}";
        let campaign = parse(&GOOD.replacen(old, new, 1)).expect("good");
        let faults = campaign.faults().expect("faults");
        let fault = &faults.fault;
        assert_eq!(fault.model, FaultModel::FlipRandomBits(3));
        assert_eq!((fault.target, fault.scope), (FaultTarget::SourceOperand, Scope::ActiveLanes));
        assert_eq!(
            faults.selection.to_string(),
            "kernels: [add], groups: [valu], opcodes: [v_add_f32], pcs: [0x1a9c], \
             lines: [add.cl:3-9], registers: [v4, s[0:3], vcc], workgroups: [[1, 0, 0]], \
             dispatches: [0, 2], waves: [0, 3], occurrences: [1, 5], window: [0, 99], \
             lanes: 0x8000000000000001"
        );
        assert_eq!(faults.counting, Counting::Approximate);
        assert_eq!(faults.stratification, Stratification::Opcode);
        assert_eq!(faults.sample.allocation, Allocation::Equal);
        assert_eq!(faults.timing_threshold, 0.01);
    }

    #[test]
    fn invalid_faults_are_rejected_with_their_position() {
        let model = "flip_one_bit";
        assert_error(model, "{flip_adjacent_bits: 33}", "33", &["2 to 32"]);
        assert_error(model, "{flip_mask: 0}", "0}", &["at least one bit"]);
        assert_error(model, "{relative_error: .nan}", ".nan", &["not a relative error"]);
        assert_error(model, "{flip_drawn_mask: none.csv}", "none.csv", &["none.csv"]);
        assert_error(model, "{drawn_values: none.csv}", "none.csv", &["none.csv"]);
        let target = "target: destination_register";
        assert_error(target, "target: cache", "cache", &["`cache`", "store_address"]);
        assert_error(target, "scope: warp", "warp", &["`warp`", "active_lanes"]);
        let period = "scope: {lanes_every: {period: 64, offset: drawn}}";
        assert_error(target, period, "64, o", &["scope.lanes_every.period", "2 to 63"]);
        let offset = "scope: {lanes_every: {period: 16, offset: 3}}";
        assert_error(target, offset, "3}}", &["`drawn`"]);
        assert_error(target, "target: lds, scope: wave", "{model", &["not supported for lds"]);
        assert_error(target, "duration: {permanent: {units: 0}}", "0}}", &["expected 1 to"]);
        let rate = "duration: {intermittent: {window: 4, rate: 2.0}}";
        assert_error(target, rate, "2.0", &["up to 1"]);
        assert_error(target, "lines: [3]", "3]", &["FILE:LINE"]);
        assert_error(target, "registers: [w3]", "w3", &["`w3`", "s[0:3]"]);
        assert_error(target, "lanes: [64]", "64]", &["0 to 63"]);
        assert_error(target, "window: [5, 4]", "[5, 4]", &["ends before"]);
        assert_error(target, "allocation: equal", "equal", &["stratify"]);
        assert_error(target, "exhaustive: true", "{model", &["count", "exhaustive"]);
        assert_error(target, "timing_threshold: -2", "-2", &["0.01"]);
    }

    #[test]
    fn invalid_sampling_is_rejected_with_its_position() {
        let all = "count: 100";
        assert_error(all, "until: {margin: 7}", "7}}", &["faults.until.margin", "0.05"]);
        assert_error(all, "until: {margin: 0.1, confidence: 1}", "1}}", &["until.confidence"]);
        assert_error(
            all,
            "until: {margin: 0.1, outcomes: [sdx]}",
            "sdx",
            &["until.outcomes[0]", "masked"],
        );
        assert_error(all, "until: {margin: 0.1, outcomes: []}", "[]", &["until.outcomes", "empty"]);
        assert_error(all, "until: {margin: 0.1, per: [lane]}", "lane", &["`lane`", "opcode"]);
        assert_error(all, "until: {margin: 0.1}, confidence: 0.9", "0.9}", &["its own"]);
        assert_error(all, "until: {margn: 0.1}", "margn", &["margn", "margin"]);
        let renamed = "until: {margin: 0.1, of: [sdc]}";
        assert_error(all, renamed, "of: [sdc]", &["`of` was renamed", "`outcomes`"]);
        let exhaustive = "replacement: true, exhaustive: true";
        assert_error(all, exhaustive, "true, exhaustive", &["each fault site once"]);
        let approximate = "count: 9, replacement: false, profile: approximate";
        assert_error(all, approximate, "false", &["profile: exact"]);
        let counted = "count: 9, known_masked: counted, scope: wave";
        assert_error(all, counted, "counted", &["destination_register"]);
        assert_error(all, "count: 9, known_masked: left_out", "left_out", &["sampled"]);
        let drawn = "count: 9, draw: instructions, known_masked: counted";
        assert_error(all, drawn, "counted", &["requires `draw: bits`"]);
        let drawn = "exhaustive: true, draw: instructions";
        assert_error(all, drawn, "true, draw", &["faults.exhaustive", "requires `draw: bits`"]);
        let (register, lds) = ("target: destination_register", "target: lds, draw: instructions");
        assert_error(register, lds, "instructions", &["source_operand"]);
        assert_error(all, "count: 9, draw: words", "words", &["`bits` or `instructions`"]);
        assert_error(all, "count: 9, intervals: wald", "wald", &["clopper_pearson"]);
        let optimal = "count: 9, allocation: {optimal: {pilot: 5}}";
        assert_error(all, optimal, "{optimal", &["stratify"]);
        let optimal = "count: 9, stratify: opcode, allocation: {optimal: {pilot: 9}}";
        assert_error(all, optimal, "9}}", &["pilot", "fewer than all 9"]);
        let permanent = "until: {margin: 0.1, per: [opcode]}, duration: {permanent: {units: 4}}";
        assert_error(all, permanent, "[opcode]", &["expected [all]"]);
    }

    #[test]
    fn sampling_is_read() {
        let new = "count: 5000, until: {margin: 0.01, confidence: 0.99, outcomes: [due], \
                   per: [all, opcode]}, stratify: opcode, replacement: false, \
                   known_masked: counted, intervals: clopper_pearson, \
                   allocation: {optimal: {pilot: 500}}";
        let campaign = parse(&GOOD.replacen("count: 100", new, 1)).expect("good");
        let sample = &campaign.faults().expect("faults").sample;
        assert_eq!(
            sample.size,
            SampleSize::Until {
                margin: 0.01,
                outcomes: vec![Outcome::Due],
                per: vec![Per::All, Per::Opcode],
                max_count: Some(5000),
            }
        );
        assert_eq!(sample.confidence.probability(), 0.99);
        let (pilot, outcomes) = (500, vec![Outcome::Due]);
        assert_eq!(sample.allocation, Allocation::Optimal { pilot, outcomes });
        assert_eq!(sample.intervals, IntervalMethod::ClopperPearson);
        assert_eq!((sample.replacement, sample.known_masked), (false, KnownMasked::Counted));
    }

    #[test]
    fn content_digest_ignores_comments_name_seed_and_count() {
        let content = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            parse(&GOOD.replacen(from, to, 1)).expect(to).content
        };
        let unchanged = content("seed: 7", "seed: 7");
        for (from, to) in [
            ("seed: 7", "seed: 8"),
            ("name: add", "# of two vectors\nname: sum"),
            ("count: 100", "count: 200, confidence: 0.99"),
            ("name: add", "name: add\nformat: parquet"),
            ("1.0e-5", "0.00001"),
        ] {
            assert_eq!(content(from, to), unchanged, "{to}");
        }
        for (from, to) in [
            ("uniform: [-1.0, 1.0]", "uniform: [-1.0, 2.0]"),
            ("[valu, vmem]", "[valu]"),
            ("count: 100", "exhaustive: true"),
            ("relative: 1.0e-5", "relative: 1.0e-6"),
            ("seed: 7", "seed: 7\ntarget: gfx942"),
        ] {
            assert_ne!(content(from, to), unchanged, "{to}");
        }
    }

    #[test]
    fn buffer_is_data_output_or_detector() {
        let text = GOOD.replacen(
            "a, type: f32, count: 256",
            "a, type: f32, count: 256, detector: true",
            1,
        );
        let campaign = parse(&text).expect("good");
        let kernels = campaign.kernels().expect("kernels");
        assert_eq!(kernels.buffers[0].role, BufferRole::Detector);
        let both = "output: true, detector: true";
        assert_error("output: true", both, "true}", &["either an output or a detector"]);
    }

    #[test]
    fn invalid_sizes_are_rejected_with_their_position() {
        assert_error("count: 100", "count: 0", "0}", &["faults.count"]);
        assert_error(", count: 100", "", "{model", &["margin", "confidence"]);
        assert_error("count: 100", "margin: 0.05", "{model", &["margin", "confidence"]);
        assert_error("count: 100", "confidence: 0.99", "{model", &["count", "margin"]);
        assert_error("count: 100", "count: 100, confidence: 99", "99}", &["99"]);
        let all = "margin: 0.05, confidence: 0.95, stratify: opcode, allocation: proportional";
        assert_error("count: 100", all, "proportional", &["margin", "each stratum", "count"]);
        assert_error("count: 100", "margin: 5, confidence: 0.95", "5, confidence", &["0.05"]);
        assert_error("count: 100", "margin: 0.05, confidence: 95", "95}", &["95"]);
        assert_error("1.0e-5", ".nan", "{relative", &["compare.sum", "relative"]);
        assert_error("relative: 1.0e-5", "ulp: 1, exact: true", "{ulp", &["exact"]);
    }

    #[test]
    fn every_sample_size_accepts_a_confidence() {
        for (size, confidence) in [
            ("count: 18446744073709551615", 0.95),
            ("count: 100, confidence: 0.99", 0.99),
            ("exhaustive: true, confidence: 0.9", 0.9),
            ("margin: 0.05, confidence: 0.998, stratify: group, allocation: equal", 0.998),
        ] {
            let campaign = parse(&GOOD.replacen("count: 100", size, 1)).expect(size);
            let faults = campaign.faults().expect("faults");
            assert_eq!(faults.sample.confidence.probability(), confidence, "{size}");
        }
    }

    #[test]
    fn masks_wider_than_32_bits_are_rejected() {
        for mask in ["0x1ffffffff", "18446744073709551615"] {
            let model = format!("{{flip_mask: {mask}}}");
            assert_error("flip_one_bit", &model, mask, &["32 bits", "0xffffffff"]);
        }
    }

    #[test]
    fn documentation_example_is_valid() {
        let (_, after) =
            include_str!("../../../docs/campaigns.md").split_once("```yaml\n").expect("an example");
        let (example, _) = after.split_once("```").expect("an end");
        assert_eq!(parse(example).expect("good").name, "matmul");
    }

    #[test]
    fn error_names_missing_file() {
        let error = Campaign::read(Path::new("/nowhere/x.yaml")).expect_err("missing").to_string();
        assert!(error.starts_with("/nowhere/x.yaml: cannot read"), "{error}");
    }

    #[test]
    fn invalid_yaml_is_an_error_with_a_position() {
        let error = parse("name: add\nseed: }").expect_err("no YAML").to_string();
        assert!(error.starts_with("campaigns/add.yaml:2:7: "), "{error}");
        for text in ["", "[]", "3", "\u{0}"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
