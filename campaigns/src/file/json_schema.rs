//! The JSON schema of campaign files.

use crate::file::schema::File;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON schema (draft 2020-12) of campaign files, for editors and for programs that write
/// campaign files. It contains the meaning, values and default of each key. [`Campaign::read`] rejects
/// everything that the schema rejects, and also checks combinations of keys.
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

    /// All filters of faults, and other keys.
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

    /// Sampling with a stopping rule.
    const DRAWN: &str = "\
name: drawn
format: parquet
workload: {kernel: {source: a.cl, name: a, options: [-O1], grid: 64, workgroup: [64],
  args: [{buffer: a, type: u32, count: 1, output: true, detector: true}]}}
severity: {python: 'judge.py:severity', timeout: 90 s}
detector: {c: check.c, set: {limit: 3, name: '*'}}
faults: {model: flip_one_bit, scope: {lanes_every: {period: 16, offset: drawn}},
  duration: {permanent: {units: 2}}, until: {margin: 0.1, confidence: 0.9, outcomes: [sdc], per: [opcode]},
  intervals: clopper_pearson, stratify: group, allocation: {optimal: {pilot: 100, outcomes: [due]}},
  draw: bits, replacement: true, known_masked: sampled}
";

    /// Structs and pointers.
    const STRUCTS: &str = "\
name: structs
workload:
  heap: 4194304
  buffers: [{buffer: a, type: f32, count: 4},
    {buffer: records, init: {struct: [{pointer: a}, {scalar: 1, type: u8}]}},
    {buffer: addresses, init: {pointers: [a, a + 8, null]}}]
  kernel: {code_object: a.co, name: a, grid: 64, workgroup: [64], args: [{pointer: a + 4},
    {struct: [{bytes: 00ff}, {values: [1, 2], type: f32, offset: 4}, null], size: 32}]}
";

    /// Exhaustive injection.
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

    /// All keys of applications.
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

    const SEVERAL_GPUS: &str = "\
name: several
workload: {app: {command: [sh, -c, 'true'], gpus: 2, gpu: 1, ignored_kernels: ['nccl*']}}
";

    /// A Triton kernel, with metadata in place of name and workgroup.
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

    /// Returns the path of a Triton metadata file that exists while the tests run.
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

    /// Returns paths and contents of the example campaigns and of the files above.
    fn files() -> Vec<(PathBuf, Value)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = ["examples/campaigns", "examples/emulation"].map(|folder| root.join(folder));
        let entries =
            folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        let examples = yaml.map(|path| (std::fs::read_to_string(&path).expect("text"), path));
        let fixtures =
            [FAULTS, DRAWN, STRUCTS, EXHAUSTIVE, VARIANTS, APPLICATION, SEVERAL_GPUS, CAPTURE];
        let fixtures = fixtures.map(|text| (text.to_owned(), "/x.yaml".into()));
        let triton = (TRITON.replace("METADATA", &metadata().to_string_lossy()), "/x.yaml".into());
        let all = examples.chain(fixtures).chain([triton]);
        all.map(|(text, path)| {
            let value = serde_yaml::from_str(&text);
            (path, value.unwrap_or_else(|error| panic!("{text}: {error}")))
        })
        .collect()
    }

    /// Returns `true` if a schema accepts a value. Implements the part of the standard that campaigns
    /// need, because a complete validator requires dozens of crates. Panics on any other keyword.
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
            unknown => panic!("type {unknown}"),
        };
        let keyword = |(name, rule): (&String, &Value)| match (name.as_str(), value) {
            ("$schema" | "$defs" | "title" | "description" | "default" | "format", _) => true,
            ("$ref", _) => {
                let at = rule.as_str().and_then(|path| path.strip_prefix('#')).expect("a pointer");
                each(root.pointer(at).expect(at), value)
            }
            ("type", _) if rule.is_array() => all(rule).iter().any(is_type),
            ("type", _) => is_type(rule),
            ("const", _) => rule == value,
            ("enum", _) => all(rule).contains(value),
            ("anyOf", _) => all(rule).iter().any(|option| each(option, value)),
            ("oneOf", _) => all(rule).iter().filter(|option| each(option, value)).count() == 1,
            ("required", Value::Object(map)) => {
                all(rule).iter().all(|key| map.contains_key(key.as_str().expect("a key")))
            }
            ("properties", Value::Object(map)) => {
                map.iter().all(|(key, value)| rule.get(key).is_none_or(|rule| each(rule, value)))
            }
            ("additionalProperties", Value::Object(map)) => map.iter().all(|(key, value)| {
                schema.get("properties").is_some_and(|known| known.get(key).is_some())
                    || each(rule, value)
            }),
            ("dependentRequired", Value::Object(map)) => {
                let rule = rule.as_object().expect("keys");
                let given = rule.iter().filter(|(key, _)| map.contains_key(*key));
                given
                    .flat_map(|(_, required)| all(required))
                    .all(|key| map.contains_key(key.as_str().expect("a key")))
            }
            ("minProperties", Value::Object(map)) => rule.as_u64() <= Some(map.len() as u64),
            ("maxProperties", Value::Object(map)) => rule.as_u64() >= Some(map.len() as u64),
            ("items", Value::Array(values)) => values.iter().all(|value| each(rule, value)),
            ("prefixItems", Value::Array(values)) => {
                all(rule).iter().zip(values).all(|(rule, value)| each(rule, value))
            }
            ("minItems", Value::Array(values)) => rule.as_u64() <= Some(values.len() as u64),
            ("maxItems", Value::Array(values)) => rule.as_u64() >= Some(values.len() as u64),
            ("minimum", Value::Number(number)) => rule.as_f64() <= number.as_f64(),
            ("maximum", Value::Number(number)) => rule.as_f64() >= number.as_f64(),
            // Rules that do not apply to values of this type.
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
            (unknown, _) => panic!("keyword {unknown}"),
        };
        match schema {
            Value::Bool(all) => *all,
            Value::Object(rules) => rules.iter().all(keyword),
            invalid => panic!("{invalid} is not a schema"),
        }
    }

    /// Returns the JSON pointers of a value and of everything in it.
    fn pointers(value: &Value, at: &str) -> Vec<String> {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(values) => {
                values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        let inner =
            inner.into_iter().flat_map(|(key, value)| pointers(value, &format!("{at}/{key}")));
        [at.to_owned()].into_iter().chain(inner).collect()
    }

    /// Returns variations of a file: with an additional or missing key, or with another kind of value.
    fn mutants(file: &Value) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let mut add = |pointer: &str, what: &str, change: &dyn Fn(&mut Value)| {
            let mut mutant = file.clone();
            change(mutant.pointer_mut(pointer).expect(pointer));
            all.push((format!("{pointer}: {what}"), mutant));
        };
        for pointer in pointers(file, "") {
            let value = file.pointer(&pointer).expect("a value");
            if let Value::Object(map) = value {
                add(&pointer, "an additional key", &|value| value["no_such_key"] = json!(1));
                for key in map.keys() {
                    let remove =
                        |value: &mut Value| value.as_object_mut().map(|map| map.remove(key));
                    add(&pointer, &format!("without {key}"), &|value| drop(remove(value)));
                }
            }
            let is_scalar = !value.is_object() && !value.is_array();
            let scalars = [json!(null), json!(true), json!(1), json!(0.5), json!("some text")];
            for replacement in [json!([]), json!({}), json!([{}])].into_iter().chain(scalars) {
                // The parser also accepts other scalars as text.
                if !is_scalar || replacement.is_array() || replacement.is_object() {
                    add(&pointer, &replacement.to_string(), &|value| *value = replacement.clone());
                }
            }
        }
        all
    }

    #[test]
    fn schema_accepts_valid_files() {
        let schema = json_schema();
        for (path, value) in files() {
            assert!(accepts(&schema, &schema, &value), "{}: {value}", path.display());
        }
    }

    /// The schema rejects everything that the parser rejects, and everything that the schema rejects is
    /// not a valid campaign.
    #[test]
    fn schema_and_parser_agree_on_invalid_files() {
        let schema = json_schema();
        let (mut disagreements, mut rejected) = (Vec::new(), 0);
        for (path, file) in files() {
            for (what, mutant) in mutants(&file) {
                // JSON is YAML.
                let text = mutant.to_string();
                let is_valid = accepts(&schema, &schema, &mutant);
                let is_file = yaml::parse::<File>(&text).is_ok();
                rejected += u32::from(!is_valid);
                if is_valid && !is_file
                    || !is_valid && CampaignFile::parse(&text, &path, None).is_ok()
                {
                    disagreements.push(format!("{}{what}: valid is {is_valid}", path.display()));
                }
            }
        }
        let count = disagreements.len();
        assert!(disagreements.is_empty(), "{count} files:\n{}", disagreements.join("\n"));
        assert!(rejected > 1000, "{rejected} rejected files");
    }

    /// Returns the keys of each definition, and their schemas.
    fn keys(schema: &Value) -> Vec<(String, String, Value)> {
        let definitions = schema["$defs"].as_object().expect("definitions");
        let all = definitions
            .iter()
            .map(|(name, kind)| (name.as_str(), kind))
            .chain([("a file", schema)]);
        let mut keys = Vec::new();
        for (name, kind) in all {
            let properties =
                kind.get("properties").and_then(Value::as_object).into_iter().flatten();
            keys.extend(
                properties.map(|(key, property)| (name.to_owned(), key.clone(), property.clone())),
            );
        }
        keys
    }

    #[test]
    fn every_key_has_a_description() {
        for (name, key, property) in keys(&json_schema()) {
            assert!(property.get("description").is_some(), "{name}: {key}");
        }
    }

    #[test]
    fn test_files_contain_every_key() {
        let files = files();
        let all = files.iter().flat_map(|(_, file)| pointers(file, ""));
        let used: BTreeSet<String> =
            all.filter_map(|pointer| Some(pointer.rsplit_once('/')?.1.to_owned())).collect();
        let missing: Vec<_> =
            keys(&json_schema()).into_iter().filter(|(_, key, _)| !used.contains(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
