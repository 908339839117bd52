//! The JSON schema of campaign files.

use crate::file::schema::File;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON schema (draft 2020-12) of campaign files, for editors and for programs that write such
/// files: each key, what it means, which values it takes, and what stands for it where it is left
/// out. What it refuses, [`Campaign::read`] refuses, which also checks what goes together.
///
/// [`Campaign::read`]: crate::Campaign::read
pub fn json_schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<File>().to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::yaml;
    use crate::vary::CampaignFile;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    /// What of a program is struck, and how often.
    const FAULTS: &str = "\
name: faults
workload: {kernel: {code_object: a.co, name: a, grid: 64, workgroup: [64], local_memory: 8,
  instruction_limit: 9, label: layer0, args: [{buffer: a, type: f8e4m3, count: 1, shape: [1, 1],
  output: true, expected: a.bin}, null]}}
severity: {socket: /nowhere}
faults: {model: {flip_random_bits: 3}, target: source_operand, scope: active_lanes,
  duration: {intermittent: {window: 10, rate: 0.5}}, kernels: [add], runtime_kernels: true,
  dispatches: [0, 2], workgroups: [[1, 0, 0]], waves: [0, 3], lanes: [0, 63], groups: [valu],
  opcodes: [v_add_f32], pcs: [6812], lines: ['add.cl:3-9'], registers: [v4, 's[0:3]', vcc],
  occurrences: [1, 5], window: [0, 99], profile: approximate, count: 5, confidence: 0.99,
  stratify: opcode, allocation: equal, timing_threshold: 0.01}
";

    /// How faults are drawn, until their rates are known.
    const DRAWN: &str = "\
name: drawn
format: parquet
workload: {kernel: {source: a.cl, name: a, options: [-O1], grid: 64, workgroup: [64],
  args: [{buffer: a, type: u32, count: 1, output: true, detector: true}]}}
severity: {python: 'judge.py:severity', timeout: 90 s}
faults: {model: flip_one_bit, scope: {lanes_every: {period: 16, offset: drawn}},
  duration: {permanent: {units: 2}}, until: {margin: 0.1, confidence: 0.9, of: [sdc], per: [opcode]},
  intervals: clopper_pearson, stratify: group, allocation: {optimal: {pilot: 100, of: [due]}},
  draw: bits, replacement: true, known_masked: sampled}
";

    /// Each place once.
    const EXHAUSTIVE: &str = "\
name: exhaustive
workload: {capture: {file: a.capture}}
faults: {model: zero_value, exhaustive: true, replacement: false}
";

    /// Both forms of dimensions.
    const VARIANTS: &str = "\
name: variants
workload: {kernel: {code_object: a.co, name: a, grid: 64, workgroup: [64],
  args: [{buffer: a, type: f32, count: 1, output: true}]}}
faults: {model: flip_one_bit, count: 5}
vary: {seed: [1, 2], size: {small: {}, large: {workload.kernel.grid: 128}}}
";

    /// Every key of applications.
    const APPLICATION: &str = "\
name: application
device: rocr
workload: {app: {command: [sh, -c, 'true', 1], directory: etc, environment: {THREADS: 1},
  input: [passwd], stdin: /etc/group, exit_code: 3, timeout: 60 s, memory: 2 GiB, output: 4 MiB,
  golden_runs: 5, nondeterminism: allow, process: {rank: 1}}}
compare:
  - stdout: {ignore: ['^time: '], tolerance: {relative: 1.0e-6}}
  - stderr: exact
  - {file: out.bin, type: f32, shape: [2, 3], tolerance: {ulp: 4}}
  - {file: out.txt, ignore: [a], tolerance: {absolute: 1}}
  - check: sh
allow: [unwritten_output]
";

    /// What Triton says of a kernel stands in the place of its name and workgroup.
    const TRITON: &str = "\
name: triton
workload: {kernel: {code_object: a.co, metadata: METADATA, grid: {workgroups: [2, 3]},
  args: [{buffer: a, type: f32, count: 1, output: true}]}}
severity: {command: [sh, -c, 'true']}
";

    const CAPTURE: &str = "\
name: capture
workload: {capture: {file: a.capture, dispatches: [0, 1]}}
faults: {model: {relative_error: 0.5}, margin: 0.05, confidence: 0.9}
";

    /// A file as Triton writes it, for as long as the tests run.
    fn metadata() -> &'static Path {
        static FILE: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
        let make = || {
            let file = tempfile::NamedTempFile::new().expect("a file");
            let text = json!({"name": "a", "num_warps": 1, "warp_size": 64, "shared": 0});
            std::fs::write(file.path(), text.to_string()).expect("written");
            file
        };
        FILE.get_or_init(make).path()
    }

    /// The examples, and files with the keys that they lack: where they are, and what they say.
    fn files() -> Vec<(PathBuf, Value)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = ["examples/campaigns", "examples/emulation"].map(|own| root.join(own));
        let entries = folders.iter().flat_map(|own| std::fs::read_dir(own).expect("a folder"));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        let examples = yaml.map(|path| (std::fs::read_to_string(&path).expect("text"), path));
        let others = [FAULTS, DRAWN, EXHAUSTIVE, VARIANTS, APPLICATION, CAPTURE]
            .map(|own| (own.to_owned(), "/x.yaml".into()));
        let triton = (TRITON.replace("METADATA", &metadata().to_string_lossy()), "/x.yaml".into());
        let all = examples.chain(others).chain([triton]);
        all.map(|(text, path)| {
            let value = serde_yaml::from_str(&text);
            (path, value.unwrap_or_else(|error| panic!("{text}: {error}")))
        })
        .collect()
    }

    /// Whether a schema takes a value. This is the part of the standard that campaigns need, as a
    /// validator of all of it takes dozens of crates; any other keyword ends the test.
    fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
        let each = |rule: &Value, value| accepts(root, rule, value);
        let all = |rules: &Value| rules.as_array().expect("a list").clone();
        let is_type = |name: &Value| match name.as_str().expect("a type") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("type {other}"),
        };
        let keyword = |(name, rule): (&String, &Value)| match (name.as_str(), value) {
            ("$schema" | "$defs" | "title" | "description" | "default" | "format", _) => true,
            ("$ref", _) => {
                let at = rule.as_str().and_then(|own| own.strip_prefix('#')).expect("a place");
                each(root.pointer(at).expect(at), value)
            }
            ("type", _) if rule.is_array() => all(rule).iter().any(is_type),
            ("type", _) => is_type(rule),
            ("const", _) => rule == value,
            ("enum", _) => all(rule).contains(value),
            ("anyOf", _) => all(rule).iter().any(|own| each(own, value)),
            ("oneOf", _) => all(rule).iter().filter(|own| each(own, value)).count() == 1,
            ("required", Value::Object(map)) => {
                all(rule).iter().all(|key| map.contains_key(key.as_str().expect("a key")))
            }
            ("properties", Value::Object(map)) => {
                map.iter().all(|(key, own)| rule.get(key).is_none_or(|rule| each(rule, own)))
            }
            ("additionalProperties", Value::Object(map)) => map.iter().all(|(key, own)| {
                schema.get("properties").is_some_and(|known| known.get(key).is_some())
                    || each(rule, own)
            }),
            ("dependentRequired", Value::Object(map)) => {
                let rule = rule.as_object().expect("keys");
                let given = rule.iter().filter(|(key, _)| map.contains_key(*key));
                given
                    .flat_map(|(_, own)| all(own))
                    .all(|key| map.contains_key(key.as_str().expect("a key")))
            }
            ("minProperties", Value::Object(map)) => rule.as_u64() <= Some(map.len() as u64),
            ("maxProperties", Value::Object(map)) => rule.as_u64() >= Some(map.len() as u64),
            ("items", Value::Array(values)) => values.iter().all(|own| each(rule, own)),
            ("prefixItems", Value::Array(values)) => {
                all(rule).iter().zip(values).all(|(rule, own)| each(rule, own))
            }
            ("minItems", Value::Array(values)) => rule.as_u64() <= Some(values.len() as u64),
            ("maxItems", Value::Array(values)) => rule.as_u64() >= Some(values.len() as u64),
            ("minimum", Value::Number(number)) => rule.as_f64() <= number.as_f64(),
            ("maximum", Value::Number(number)) => rule.as_f64() >= number.as_f64(),
            // Rules for values of another type.
            (
                "required"
                | "properties"
                | "additionalProperties"
                | "dependentRequired"
                | "minProperties"
                | "maxProperties"
                | "items"
                | "prefixItems"
                | "minItems"
                | "maxItems"
                | "minimum"
                | "maximum",
                _,
            ) => true,
            (other, _) => panic!("keyword {other}"),
        };
        match schema {
            Value::Bool(all) => *all,
            Value::Object(rules) => rules.iter().all(keyword),
            other => panic!("{other} is no schema"),
        }
    }

    /// The places of a value and of all that is in it.
    fn places(value: &Value, at: &str) -> Vec<String> {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, own)| (key.clone(), own)).collect(),
            Value::Array(values) => {
                values.iter().enumerate().map(|(index, own)| (index.to_string(), own)).collect()
            }
            _ => Vec::new(),
        };
        let inner = inner.into_iter().flat_map(|(key, own)| places(own, &format!("{at}/{key}")));
        [at.to_owned()].into_iter().chain(inner).collect()
    }

    /// A file with a key more or less anywhere, or with another kind of value.
    fn mutants(file: &Value) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let mut add = |place: &str, what: &str, change: &dyn Fn(&mut Value)| {
            let mut mutant = file.clone();
            change(mutant.pointer_mut(place).expect(place));
            all.push((format!("{place}: {what}"), mutant));
        };
        for place in places(file, "") {
            let value = file.pointer(&place).expect("a place");
            if let Value::Object(map) = value {
                add(&place, "a key more", &|own| own["no_such_key"] = json!(1));
                for key in map.keys() {
                    let remove = |own: &mut Value| own.as_object_mut().map(|own| own.remove(key));
                    add(&place, &format!("without {key}"), &|own| drop(remove(own)));
                }
            }
            let is_scalar = !value.is_object() && !value.is_array();
            let scalars = [json!(null), json!(true), json!(1), json!(0.5), json!("some text")];
            for other in [json!([]), json!({}), json!([{}])].into_iter().chain(scalars) {
                // The parser takes numbers and the like for text, too.
                if !is_scalar || other.is_array() || other.is_object() {
                    add(&place, &other.to_string(), &|own| *own = other.clone());
                }
            }
        }
        all
    }

    #[test]
    fn files_that_can_be_read_are_valid() {
        let schema = json_schema();
        for (path, value) in files() {
            assert!(accepts(&schema, &schema, &value), "{}: {value}", path.display());
        }
    }

    /// Whatever the parser does not take the schema does not take either, and what the schema does
    /// not take is no campaign.
    #[test]
    fn the_schema_and_the_parser_agree_on_what_is_wrong() {
        let schema = json_schema();
        let (mut wrong, mut refused) = (Vec::new(), 0);
        for (path, file) in files() {
            for (what, mutant) in mutants(&file) {
                // JSON is YAML.
                let text = mutant.to_string();
                let is_valid = accepts(&schema, &schema, &mutant);
                let is_file = yaml::parse::<File>(&text).is_ok();
                refused += u32::from(!is_valid);
                if is_valid && !is_file || !is_valid && CampaignFile::parse(&text, &path).is_ok() {
                    wrong.push(format!("{}{what}: valid is {is_valid}", path.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
        assert!(refused > 1000, "{refused} wrong files");
    }

    /// The keys of each kind of value that has some, and what the schema says of them.
    fn keys(schema: &Value) -> Vec<(String, String, Value)> {
        let definitions = schema["$defs"].as_object().expect("definitions");
        let all =
            definitions.iter().map(|(name, own)| (name.as_str(), own)).chain([("a file", schema)]);
        let mut keys = Vec::new();
        for (name, own) in all {
            let own = own.get("properties").and_then(Value::as_object);
            let own = own.into_iter().flatten();
            keys.extend(own.map(|(key, own)| (name.to_owned(), key.clone(), own.clone())));
        }
        keys
    }

    #[test]
    fn every_key_says_what_it_means() {
        for (name, key, own) in keys(&json_schema()) {
            assert!(own.get("description").is_some(), "{name}: {key}");
        }
    }

    #[test]
    fn no_key_is_missing_from_the_files_that_schema_and_parser_are_compared_by() {
        let files = files();
        let all = files.iter().flat_map(|(_, file)| places(file, ""));
        let used: BTreeSet<String> =
            all.filter_map(|place| Some(place.rsplit_once('/')?.1.to_owned())).collect();
        let missing: Vec<_> =
            keys(&json_schema()).into_iter().filter(|(_, key, _)| !used.contains(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
