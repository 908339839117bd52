//! What a file says under `vary`: dimensions, and what each of their values sets.

use super::name::{label, labels};
use super::tree::Node;
use crate::file::location::{Field, Wrong, wrong};
use flipwave_analysis::Row;

/// Variants of a file at most: each has a folder of its own, and is run without a fault by every shard.
const MOST_VARIANTS: usize = 1000;

/// The columns that the tables of all variants have besides those of dimensions.
const COLUMNS: [&str; 10] =
    ["variant", "scope", "outcome", "cause", "count", "total", "rate", "low", "high", "confidence"];

/// Something that varies.
#[derive(Debug)]
pub(super) struct Dimension {
    /// Its name, the column of tables.
    pub name: String,
    /// Its name in names of variants.
    pub label: String,
    /// What it takes, in the order of the file.
    pub choices: Vec<Choice>,
}

/// A value of a dimension.
#[derive(Debug)]
pub(super) struct Choice {
    /// It in tables.
    pub value: String,
    /// It in names of variants.
    pub label: String,
    /// What it sets in the file.
    pub settings: Vec<Setting>,
}

/// A value that is set in the file.
#[derive(Debug)]
pub(super) struct Setting {
    /// What it is set to.
    pub value: Node,
    /// The field that it is put in.
    pub field: Field,
    /// Where it stands, under `vary`.
    pub source: Field,
}

/// The dimensions that stand under `vary`.
///
/// # Errors
/// The first thing that cannot be.
pub(super) fn dimensions(vary: Node) -> Result<Vec<Dimension>, Wrong> {
    let root = Field::root().key("vary");
    let kind = vary.kind();
    let Node::Mapping(entries) = vary else {
        return wrong(&root, format!("expected a mapping from dimensions to values, found {kind}"));
    };
    if entries.is_empty() {
        return wrong(&root, "is empty; expected dimensions, for example `seed: [1, 2]`");
    }
    check_count(&entries, &root)?;
    let mut all: Vec<Dimension> = Vec::new();
    for (name, values) in entries {
        let field = root.key(&name);
        if all.iter().any(|own| own.name == name) {
            return wrong(&field, "is there twice");
        }
        if COLUMNS.contains(&name.as_str()) || Row::COLUMNS.contains(&name.as_str()) {
            return wrong(&field, "is the name of a column of the results; choose another");
        }
        let choices = match values {
            Node::List(values) => listed(&name, values, &field)?,
            Node::Mapping(values) => named(values, &field)?,
            other => {
                let found = other.kind();
                let expected = "a list of values, or a mapping from names to what they set";
                return wrong(&field, format!("expected {expected}, found {found}"));
            }
        };
        if choices.is_empty() {
            return wrong(&field, "is empty; expected at least one value");
        }
        check_overlap(&all, &choices)?;
        all.push(Dimension { label: String::new(), name, choices });
    }
    let names: Vec<(String, String)> = all
        .iter()
        .map(|own| (own.name.rsplit('.').next().unwrap_or_default().to_owned(), own.name.clone()))
        .collect();
    for (own, label) in all.iter_mut().zip(labels(&names)) {
        own.label = label;
    }
    Ok(all)
}

/// Checks that there are not too many combinations, before any is looked at.
fn check_count(entries: &[(String, Node)], root: &Field) -> Result<(), Wrong> {
    let lengths = entries.iter().map(|(_, values)| match values {
        Node::List(values) => values.len(),
        Node::Mapping(values) => values.len(),
        // Said of each when it is looked at, as is what is empty.
        Node::Plain(_) | Node::Text(_) => 1,
    });
    let lengths: Vec<usize> = lengths.map(|own| own.max(1)).collect();
    let count = lengths.iter().try_fold(1usize, |count, own| count.checked_mul(*own));
    if count.is_some_and(|count| count <= MOST_VARIANTS) {
        return Ok(());
    }
    let factors: Vec<String> = lengths.iter().map(usize::to_string).collect();
    let product = match (count, factors.as_slice()) {
        (Some(count), [_, _, ..]) => format!(" = {count}"),
        _ => String::new(),
    };
    let message = format!(
        "{}{product} variants; at most {MOST_VARIANTS} are possible in a file",
        factors.join(" * ")
    );
    wrong(root, message)
}

/// Values of one field, which is called as the dimension.
fn listed(name: &str, values: Vec<Node>, field: &Field) -> Result<Vec<Choice>, Wrong> {
    let path = path(name, field)?;
    let texts: Vec<(String, String)> =
        values.iter().map(|own| (words(own), own.line().0)).collect();
    let labels = labels(&texts);
    let mut choices: Vec<Choice> = Vec::new();
    for (index, (value, label)) in values.into_iter().zip(labels).enumerate() {
        let source = field.index(index);
        if choices.iter().any(|own| own.settings.iter().any(|own| own.value == value)) {
            return wrong(&source, format!("`{value}` is there twice"));
        }
        let settings = vec![Setting { value: value.clone(), field: path.clone(), source }];
        choices.push(Choice { value: value.to_string(), label, settings });
    }
    Ok(choices)
}

/// A value in a name: of a list what is in it.
fn words(value: &Node) -> String {
    match value {
        Node::List(values) => values.iter().map(words).collect::<Vec<_>>().join("_"),
        other => other.to_string(),
    }
}

/// Values that have names, and set several fields each.
fn named(values: Vec<(String, Node)>, field: &Field) -> Result<Vec<Choice>, Wrong> {
    let mut choices: Vec<Choice> = Vec::new();
    for (name, settings) in values {
        let field = field.key(&name);
        if label(&name).is_none() {
            let allowed = "expected at most 32 letters, digits, `-`, `_`, `+` and `.`";
            return wrong(&field, format!("`{name}` cannot be in the name of a folder; {allowed}"));
        }
        if choices.iter().any(|own| own.value == name) {
            return wrong(&field, "is there twice");
        }
        let found = settings.kind();
        let Node::Mapping(entries) = settings else {
            let expected = "a mapping from fields to values, like `{seed: 1, faults.count: 100}`";
            return wrong(&field, format!("expected {expected}, found {found}"));
        };
        let mut settings: Vec<Setting> = Vec::new();
        for (key, value) in entries {
            let source = field.key(&key);
            let own = path(&key, &source)?;
            if let Some(other) = settings.iter().find(|other| overlap(&other.field, &own)) {
                return wrong(&source, format!("sets what `{}` beside it sets", other.field));
            }
            settings.push(Setting { value, field: own, source });
        }
        choices.push(Choice { value: name.clone(), label: name, settings });
    }
    Ok(choices)
}

/// The field that a setting names.
fn path(text: &str, source: &Field) -> Result<Field, Wrong> {
    let field = Field::parse(text).or_else(|message| wrong(source, message))?;
    let root = Field::root();
    match ["vary", "name"].iter().find(|own| field.moved(&root.key(own), &root).is_some()) {
        Some(own) => wrong(source, format!("`{own}` cannot vary: it is that of all variants")),
        None => Ok(field),
    }
}

/// Whether one of two fields is in the other.
fn overlap(one: &Field, other: &Field) -> bool {
    let root = Field::root();
    one.moved(other, &root).is_some() || other.moved(one, &root).is_some()
}

/// Checks that `choices` set nothing that a dimension before them sets: no order would be right.
fn check_overlap(before: &[Dimension], choices: &[Choice]) -> Result<(), Wrong> {
    // Mostly all choices of a dimension set the same fields.
    let mut seen: Vec<&Field> = Vec::new();
    for own in choices.iter().flat_map(|own| &own.settings) {
        if seen.contains(&&own.field) {
            continue;
        }
        seen.push(&own.field);
        for dimension in before {
            let mut settings = dimension.choices.iter().flat_map(|own| &own.settings);
            if let Some(other) = settings.find(|other| overlap(&other.field, &own.field)) {
                let (name, field) = (&dimension.name, &other.field);
                let message = format!("the dimension `{name}` sets `{field}` as well");
                return wrong(&own.source, message);
            }
        }
    }
    Ok(())
}
