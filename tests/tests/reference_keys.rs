//! The reference of campaign files, `docs/reference-keys.md`, generated from the JSON schema that
//! `flipwave schema` prints.

use flipwave_tests::flipwave;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Mark in the page after which the generated part begins.
const BEGIN: &str = "<!-- keys, written by a test -->\n\n";

/// Path of the section for keys at the top level of a campaign file.
const TOP_LEVEL: &str = "Top-level keys";

/// Longest list of values that is shown as a link, in bytes.
const LONGEST_LINK: usize = 80;

/// Sections of the reference, in the order of the page.
struct Reference<'a> {
    root: &'a Value,
    /// Path and schema of each section.
    sections: Vec<(String, &'a Value)>,
    /// Section path of each named definition that has one.
    paths: BTreeMap<&'a str, String>,
}

impl<'a> Reference<'a> {
    /// The sections of all definitions that a schema uses.
    fn new(root: &'a Value) -> Reference<'a> {
        let sections = vec![(TOP_LEVEL.to_owned(), root)];
        let mut reference = Reference { root, sections, paths: BTreeMap::new() };
        reference.visit_properties(root, "");
        reference
    }

    /// Name and schema of the definition that a schema refers to.
    fn definition(&self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        Some((name, &self.root["$defs"][name]))
    }

    fn visit_properties(&mut self, schema: &'a Value, path: &str) {
        // Mappings before lists of the same mappings, so that their path is the shorter one.
        let mut properties = properties(schema);
        properties.sort_by_key(|(_, property)| property.get("items").is_some());
        for (key, property) in properties {
            let is_top_level = path.is_empty();
            let path = if is_top_level { key.to_owned() } else { format!("{path}.{key}") };
            self.visit(property, &path);
        }
    }

    /// Adds the sections of a schema and of everything inside it.
    fn visit(&mut self, schema: &'a Value, path: &str) {
        if let Some((name, definition)) = self.definition(schema) {
            if self.paths.contains_key(name) {
                return;
            }
            if has_section(definition) {
                self.paths.insert(name, path.to_owned());
                self.sections.push((path.to_owned(), definition));
            }
            return self.visit(definition, path);
        }
        self.visit_properties(schema, path);
        for alternative in ["oneOf", "anyOf"].iter().flat_map(|keyword| list(schema, keyword)) {
            self.visit(alternative, path);
        }
        if let Some(items) = schema.get("items") {
            self.visit(items, &format!("{path}[]"));
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object())
        {
            self.visit(values, &format!("{path}.NAME"));
        }
    }

    /// Description of the values that a schema accepts.
    fn value_type(&self, schema: &'a Value) -> String {
        if let Some((name, definition)) = self.definition(schema) {
            let Some(path) = self.paths.get(name) else { return self.value_type(definition) };
            let link = format!("#{}", anchor(path));
            if definition.get("properties").is_some() {
                return format!("[mapping]({link})");
            }
            let values = list(definition, "oneOf").iter().map(|value| self.value(value));
            let values = alternatives(values.collect());
            let text = if values.len() <= LONGEST_LINK { &values } else { "value" };
            return format!("[{text}]({link})");
        }
        if let Some(constant) = schema.get("const") {
            return literal(constant);
        }
        if let Some(values) = schema.get("enum") {
            let values = values.as_array().expect("a list").iter().filter(|value| !value.is_null());
            return values.map(literal).collect::<Vec<_>>().join(", ");
        }
        let any: Vec<String> = list(schema, "anyOf")
            .iter()
            .filter(|alternative| alternative["type"] != "null")
            .map(|alternative| self.value_type(alternative))
            .collect();
        if !any.is_empty() {
            return alternatives(any);
        }
        let types = match &schema["type"] {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec!["any value"],
        };
        let types = types.into_iter().filter(|name| *name != "null").map(|name| match name {
            "array" => self.list_type(schema),
            "object" => self.mapping_type(schema),
            name => name.to_owned(),
        });
        alternatives(types.collect())
    }

    fn list_type(&self, schema: &'a Value) -> String {
        let item = list(schema, "prefixItems").first().or(schema.get("items"));
        let item = item.map_or("any values".to_owned(), |item| plural(&self.value_type(item)));
        match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
            (Some(least), Some(most)) if least == most => format!("list of {most} {item}"),
            (Some(least), Some(most)) => format!("list of {least} to {most} {item}"),
            _ => format!("list of {item}"),
        }
    }

    fn mapping_type(&self, schema: &'a Value) -> String {
        let singleton = object(schema, "properties").into_iter().flatten().next();
        if let Some((key, value)) = singleton {
            return format!("`{key}:` {}", self.value_type(value));
        }
        match schema.get("additionalProperties") {
            Some(values) if values.is_object() => {
                format!("mapping from names to {}", plural(&self.value_type(values)))
            }
            _ => "mapping".to_owned(),
        }
    }

    /// A value of an enumeration: a word, or a mapping with one key.
    fn value(&self, schema: &'a Value) -> String {
        let key = object(schema, "properties").into_iter().flatten().next();
        match key {
            Some((key, value)) => match self.value_type(value) {
                // A link inside the text of another link is not possible.
                kind if kind.contains("](") => format!("`{{{key}: ...}}`"),
                kind => format!("`{{{key}: {kind}}}`"),
            },
            None => self.value_type(schema),
        }
    }

    /// The generated part of the page.
    fn render(&self) -> String {
        let mut text = String::new();
        for (path, schema) in &self.sections {
            let heading = if path == TOP_LEVEL { path.clone() } else { format!("`{path}`") };
            let _ = write!(text, "## {heading}\n\n{}", paragraph(schema));
            text += &if schema.get("properties").is_some() {
                self.table_of_keys(schema)
            } else {
                self.table_of_values(schema)
            };
        }
        text.trim_end().to_owned() + "\n"
    }

    fn table_of_keys(&self, schema: &'a Value) -> String {
        let mut table = "| key | type | default | meaning |\n|---|---|---|---|\n".to_owned();
        for (key, property) in properties(schema) {
            let default = match property.get("default") {
                _ if is_required(schema, key) => "required".to_owned(),
                Some(Value::Null) | None => String::new(),
                Some(default) => literal(default),
            };
            let (kind, meaning) = (self.value_type(property), description(property));
            let _ = writeln!(table, "| `{key}` | {kind} | {default} | {meaning} |");
        }
        table + "\n"
    }

    fn table_of_values(&self, schema: &'a Value) -> String {
        let mut table = "| value | meaning |\n|---|---|\n".to_owned();
        for value in list(schema, "oneOf") {
            let key = object(value, "properties").into_iter().flatten().next();
            // The type of the key's value is a link to its section.
            let shown = match key.map(|(key, inner)| (key, self.value_type(inner))) {
                Some((key, kind)) if kind.contains("](") => format!("`{key}:` {kind}"),
                _ => self.value(value),
            };
            let _ = writeln!(table, "| {shown} | {} |", description(value));
        }
        table + "\n"
    }
}

/// Returns `true` for a definition with keys, or with values that have descriptions.
fn has_section(definition: &Value) -> bool {
    let values = list(definition, "oneOf");
    definition.get("properties").is_some()
        || values.iter().any(|value| value.get("description").is_some())
}

/// Description of a section, and which of its keys exclude or require each other.
fn paragraph(schema: &Value) -> String {
    let mut text = description(schema);
    let keys_of = |keyword: &str| -> Vec<String> {
        // The alternatives of an enumeration are values.
        if schema.get("properties").is_none() {
            return Vec::new();
        }
        let required = list(schema, keyword).iter().map(|rule| &rule["required"]);
        let keys = required.map(|keys| words(keys).map(|key| format!("`{key}`")).collect());
        keys.map(|keys: Vec<String>| keys.join(" with ")).filter(|keys| !keys.is_empty()).collect()
    };
    let (one, any) = (keys_of("oneOf"), keys_of("anyOf"));
    if !one.is_empty() {
        let _ = write!(text, " Exactly one of {} is required.", alternatives(one));
    }
    if !any.is_empty() {
        let _ = write!(text, " At least one of {} is required.", alternatives(any));
    }
    for (key, needed) in object(schema, "dependentRequired").into_iter().flatten() {
        let needed: Vec<String> = words(needed).map(|key| format!("`{key}`")).collect();
        let _ = write!(text, " `{key}` requires {}.", needed.join(" and "));
    }
    if schema["minProperties"] == 1 && schema["maxProperties"] == 1 {
        text += " Exactly one of the keys is required.";
    }
    match text.trim() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    }
}

fn object<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Map<String, Value>> {
    schema.get(keyword).and_then(Value::as_object)
}

fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The keys of a mapping, required ones first.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let properties = object(schema, "properties").into_iter().flatten();
    let mut properties: Vec<(&str, &Value)> =
        properties.map(|(key, property)| (key.as_str(), property)).collect();
    properties.sort_by_key(|(key, _)| !is_required(schema, key));
    properties
}

fn is_required(schema: &Value, key: &str) -> bool {
    words(&schema["required"]).any(|required| required == key)
}

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The description of a key or a value, as one cell of a table.
fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

/// A value as it is written in a campaign file.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => format!("`{text}`"),
        value => format!("`{value}`"),
    }
}

fn alternatives(mut values: Vec<String>) -> String {
    let Some(last) = values.pop() else { return String::new() };
    if values.is_empty() { last } else { format!("{} or {last}", values.join(", ")) }
}

/// The plural of a type's description: `strings or lists of integers`.
fn plural(kind: &str) -> String {
    let plural_of_word = |word: &str| {
        let names = ["string", "integer", "number", "boolean", "mapping", "list", "value"];
        let is_name = names.iter().any(|name| word == *name || word == format!("{name},"));
        match word.strip_suffix(',') {
            _ if !is_name => word.to_owned(),
            Some(name) => format!("{name}s,"),
            None => format!("{word}s"),
        }
    };
    let words: Vec<String> = kind.split(' ').map(plural_of_word).collect();
    words.join(" ").replace("[mapping]", "[mappings]").replace("[value]", "[values]")
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// Run with `FLIPWAVE_BLESS=1` to write the page again.
#[test]
fn the_reference_of_keys_matches_the_json_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = flipwave(folder.path(), &["schema"], &[]).expect_success().stdout;
    let schema: Value = serde_json::from_str(&printed).expect("JSON");
    let reference = Reference::new(&schema);
    let anchors: BTreeSet<String> =
        reference.sections.iter().map(|(path, _)| anchor(path)).collect();
    assert_eq!(anchors.len(), reference.sections.len(), "two sections have the same anchor");
    assert!(anchors.len() > 30, "{anchors:?}");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference-keys.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, _) = page.split_once(BEGIN).expect("the mark of the generated part");
    let expected = format!("{before}{BEGIN}{}", reference.render());
    if std::env::var_os("FLIPWAVE_BLESS").is_some() {
        std::fs::write(&path, expected).expect("the page written");
        return;
    }
    assert!(
        page == expected,
        "docs/reference-keys.md differs from the JSON schema; write it again with FLIPWAVE_BLESS=1 \
         cargo test -p flipwave-tests --test end_to_end the_reference_of_keys"
    );
}
