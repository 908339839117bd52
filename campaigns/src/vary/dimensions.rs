//! The content of `vary`: dimensions, and the settings of each of their values.

use super::name::{label, labels};
use super::tree::Node;
use crate::file::location::{Field, FieldError, reject};
use flipwave_analysis::Row;

/// Maximum number of variants of a file. Each has its own folder, and every shard performs its golden run.
const MAX_VARIANTS: usize = 1000;

/// Columns of the combined tables other than the dimensions.
const COLUMNS: [&str; 10] =
    ["variant", "scope", "outcome", "cause", "count", "total", "rate", "low", "high", "confidence"];

/// A dimension of a parameter sweep.
#[derive(Debug)]
pub(super) struct Dimension {
    /// Name, and column in tables.
    pub name: String,
    /// Short name in names of variants.
    pub label: String,
    /// Values, in the order of the file.
    pub choices: Vec<Choice>,
}

impl Dimension {
    /// Returns `true` if values of the dimension set a field.
    pub fn sets(&self, field: &Field) -> bool {
        let mut settings = self.choices.iter().flat_map(|choice| &choice.settings);
        settings.any(|setting| setting.field == *field)
    }
}

/// A value of a dimension.
#[derive(Debug)]
pub(super) struct Choice {
    /// Text in tables.
    pub value: String,
    /// Text in names of variants.
    pub label: String,
    /// Fields of the file that it sets.
    pub settings: Vec<Setting>,
}

/// A field of the file and its new value.
#[derive(Debug)]
pub(super) struct Setting {
    /// New value.
    pub value: Node,
    /// Field that is set.
    pub field: Field,
    /// Location of the value in `vary`.
    pub source: Field,
}

/// Reads the dimensions in `vary`.
///
/// # Errors
/// Returns the first invalid field.
pub(super) fn dimensions(vary: Node) -> Result<Vec<Dimension>, FieldError> {
    let root = Field::root().key("vary");
    let kind = vary.kind();
    let Node::Mapping(entries) = vary else {
        return reject(
            &root,
            format!("expected a mapping from dimensions to values, found {kind}"),
        );
    };
    if entries.is_empty() {
        return reject(&root, "is empty; expected dimensions, for example `seed: [1, 2]`");
    }
    check_count(&entries, &root)?;
    let mut all: Vec<Dimension> = Vec::new();
    for (name, values) in entries {
        let field = root.key(&name);
        if all.iter().any(|dimension| dimension.name == name) {
            return reject(&field, "duplicate dimension");
        }
        if COLUMNS.contains(&name.as_str()) || Row::COLUMNS.contains(&name.as_str()) {
            return reject(&field, "is the name of a column of the results; choose another name");
        }
        let choices = match values {
            Node::List(values) => read_list(&name, values, &field)?,
            Node::Mapping(values) => read_named(values, &field)?,
            invalid => {
                let found = invalid.kind();
                let expected = "a list of values, or a mapping from names to settings";
                return reject(&field, format!("expected {expected}, found {found}"));
            }
        };
        if choices.is_empty() {
            return reject(&field, "is empty; expected at least one value");
        }
        check_overlap(&all, &choices)?;
        all.push(Dimension { label: String::new(), name, choices });
    }
    let names: Vec<(String, String)> = all
        .iter()
        .map(|Dimension { name, .. }| {
            (name.rsplit('.').next().unwrap_or_default().to_owned(), name.clone())
        })
        .collect();
    for (dimension, label) in all.iter_mut().zip(labels(&names)) {
        dimension.label = label;
    }
    Ok(all)
}

/// Checks the number of combinations before any is created.
fn check_count(entries: &[(String, Node)], root: &Field) -> Result<(), FieldError> {
    let lengths = entries.iter().map(|(_, values)| match values {
        Node::List(values) => values.len(),
        Node::Mapping(values) => values.len(),
        // Invalid and empty values are reported later.
        Node::Plain(_) | Node::Text(_) => 1,
    });
    let lengths: Vec<usize> = lengths.map(|length| length.max(1)).collect();
    let count = lengths.iter().try_fold(1usize, |count, length| count.checked_mul(*length));
    if count.is_some_and(|count| count <= MAX_VARIANTS) {
        return Ok(());
    }
    let factors: Vec<String> = lengths.iter().map(usize::to_string).collect();
    let product = match (count, factors.as_slice()) {
        (Some(count), [_, _, ..]) => format!(" = {count}"),
        _ => String::new(),
    };
    let message = format!(
        "{}{product} variants; at most {MAX_VARIANTS} are possible in a file",
        factors.join(" * ")
    );
    reject(root, message)
}

/// Reads a list of values of the field that the dimension is named after.
fn read_list(name: &str, values: Vec<Node>, field: &Field) -> Result<Vec<Choice>, FieldError> {
    let path = path(name, field)?;
    let texts: Vec<(String, String)> =
        values.iter().map(|value| (name_text(value), value.line().0)).collect();
    let labels = labels(&texts);
    let mut choices: Vec<Choice> = Vec::new();
    for (index, (value, label)) in values.into_iter().zip(labels).enumerate() {
        let source = field.index(index);
        let is_duplicate = choices
            .iter()
            .flat_map(|choice| &choice.settings)
            .any(|setting| setting.value == value);
        if is_duplicate {
            return reject(&source, format!("duplicate value `{value}`"));
        }
        let settings = vec![Setting { value: value.clone(), field: path.clone(), source }];
        choices.push(Choice { value: value.to_string(), label, settings });
    }
    Ok(choices)
}

/// Formats a value for use in a variant's name. List elements are joined with `_`.
fn name_text(value: &Node) -> String {
    match value {
        Node::List(values) => values.iter().map(name_text).collect::<Vec<_>>().join("_"),
        scalar => scalar.to_string(),
    }
}

/// Reads named values, each of which sets several fields.
fn read_named(values: Vec<(String, Node)>, field: &Field) -> Result<Vec<Choice>, FieldError> {
    let mut choices: Vec<Choice> = Vec::new();
    for (name, settings) in values {
        let field = field.key(&name);
        if label(&name).is_none() {
            let allowed = "expected at most 32 letters, digits, `-`, `_`, `+` and `.`";
            return reject(&field, format!("`{name}` cannot be part of a folder name; {allowed}"));
        }
        if choices.iter().any(|choice| choice.value == name) {
            return reject(&field, "duplicate name");
        }
        let found = settings.kind();
        let Node::Mapping(entries) = settings else {
            let expected = "a mapping from fields to values, like `{seed: 1, faults.count: 100}`";
            return reject(&field, format!("expected {expected}, found {found}"));
        };
        let mut settings: Vec<Setting> = Vec::new();
        for (key, value) in entries {
            let source = field.key(&key);
            let target = path(&key, &source)?;
            if let Some(earlier) = settings.iter().find(|setting| overlap(&setting.field, &target))
            {
                return reject(&source, format!("overlaps `{}`", earlier.field));
            }
            settings.push(Setting { value, field: target, source });
        }
        choices.push(Choice { value: name.clone(), label: name, settings });
    }
    Ok(choices)
}

/// Parses the name of the field that a setting changes.
fn path(text: &str, source: &Field) -> Result<Field, FieldError> {
    let field = Field::parse(text).or_else(|message| reject(source, message))?;
    let root = Field::root();
    match ["vary", "name"].iter().find(|key| field.replace_prefix(&root.key(key), &root).is_some())
    {
        Some(key) => reject(source, format!("`{key}` cannot vary, because all variants share it")),
        None => Ok(field),
    }
}

/// Returns `true` if one of two fields contains the other.
fn overlap(a: &Field, b: &Field) -> bool {
    let root = Field::root();
    a.replace_prefix(b, &root).is_some() || b.replace_prefix(a, &root).is_some()
}

/// Checks that `choices` set no field that an earlier dimension sets, because the result would depend on
/// the order.
fn check_overlap(before: &[Dimension], choices: &[Choice]) -> Result<(), FieldError> {
    // All choices of a dimension usually set the same fields.
    let mut seen: Vec<&Field> = Vec::new();
    for setting in choices.iter().flat_map(|choice| &choice.settings) {
        if seen.contains(&&setting.field) {
            continue;
        }
        seen.push(&setting.field);
        for dimension in before {
            let mut earlier = dimension.choices.iter().flat_map(|choice| &choice.settings);
            if let Some(earlier) = earlier.find(|earlier| overlap(&earlier.field, &setting.field)) {
                let (name, field) = (&dimension.name, &earlier.field);
                let message = format!("the dimension `{name}` also sets `{field}`");
                return reject(&setting.source, message);
            }
        }
    }
    Ok(())
}
