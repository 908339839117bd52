//! YAML parsing of campaign files: limits on the input, helpers for deserialization, and error messages in
//! terms of campaign files.

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Maximum number of open brackets. The parser rejects more than 128 levels of nesting, but its running
/// time grows with the square of the number of brackets.
const MAX_OPEN: usize = 256;

/// Error returned when a text is not a valid campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// Line and column, both from 1.
    pub position: Option<(usize, usize)>,
    /// The problem.
    pub message: String,
}

/// Removes the byte order mark that some editors put in front of UTF-8.
pub(crate) fn strip_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Parses a text without a byte order mark.
///
/// # Errors
/// Returns the first error.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    check_nesting(text)?;
    serde_yaml::from_str(text).map_err(|error| {
        let position = error.location().map(|location| (location.line(), location.column()));
        let mut message = error.to_string();
        if let Some((line, column)) = position {
            let after = format!(" at line {line} column {column}");
            message = message.replacen(&after, "", 1);
        }
        YamlError { position, message: translate(&message) }
    })
}

fn check_nesting(text: &str) -> Result<(), YamlError> {
    let mut open = 0usize;
    for (line, content) in (1..).zip(text.lines()) {
        for (column, character) in (1..).zip(content.chars()) {
            match character {
                '[' | '{' => open += 1,
                ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > MAX_OPEN {
                let message = TOO_DEEP.to_owned();
                return Err(YamlError { position: Some((line, column)), message });
            }
        }
    }
    Ok(())
}

const TOO_DEEP: &str = "nested too deep; expected at most 128 levels";

/// Renamed keys: the mapping, the key of earlier versions, and the present key.
const RENAMED_KEYS: [(&str, &str, &str); 2] =
    [("until", "of", "outcomes"), ("allocation.optimal", "of", "outcomes")];

/// Translates a message of the parser to the terms of campaign files.
fn translate(message: &str) -> String {
    for (mapping, old, new) in RENAMED_KEYS {
        if message.contains(&format!("{mapping}: unknown field `{old}`")) {
            return format!("{mapping}: the key `{old}` was renamed; use `{new}`");
        }
    }
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        // The found value can contain any text, unlike the expected one.
        if let Some((path, rest)) = message.split_once(kind)
            && let Some((found, expected)) = rest.rsplit_once(", expected ")
        {
            let (found, expected) = match kind {
                "invalid length " => (format!("a list of {found}"), translate_expected(expected)),
                _ => (translate_found(found), translate_expected(expected)),
            };
            return format!("{path}expected {expected}, found {found}");
        }
    }
    let words = [
        ("missing field ", "missing: "),
        ("unknown field ", "unknown key "),
        ("unknown variant ", "unknown value "),
        ("duplicate field ", "duplicate key "),
        ("recursion limit exceeded", TOO_DEEP),
        (
            "repetition limit exceeded",
            "too many repeated aliases (`*name`); write out their values",
        ),
        (
            "deserializing from YAML containing more than one document is not supported",
            "several documents, separated by `---`; expected one",
        ),
    ];
    let known = words.into_iter().find(|(original, _)| message.contains(original));
    known.map_or_else(
        || message.to_owned(),
        |(original, translated)| message.replacen(original, translated, 1),
    )
}

/// Translates the description of a found value.
fn translate_found(found: &str) -> String {
    let words = [
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
        ("string ", "the text "),
        ("character ", "the text "),
    ];
    match found {
        "map" => "a mapping".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "Option value" | "null" => "nothing".to_owned(),
        "unit variant" => "the name alone".to_owned(),
        "enum" => "a value with a tag (`!name`)".to_owned(),
        _ => match words
            .into_iter()
            .find_map(|(original, translated)| Some((translated, found.strip_prefix(original)?)))
        {
            Some((translated, rest)) => format!("{translated}{rest}"),
            None => found.to_owned(),
        },
    }
}

/// Translates the description of an expected value.
fn translate_expected(expected: &str) -> String {
    let whole = |min: i128, max: i128| format!("a whole number from {min} to {max}");
    match expected {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "u64" | "usize" => whole(0, u64::MAX.into()),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" | "path string" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        "a YAML tag starting with '!'" => "a name".to_owned(),
        "map with a single key" => "a mapping with one key".to_owned(),
        "unit" | "unit variant" => "the name alone".to_owned(),
        "newtype variant" | "tuple variant" => "a mapping from the name to its value".to_owned(),
        // Not in an `expecting` attribute, which would also apply to the lists inside.
        "enum Init" => {
            "`zeros`, or a mapping with one of `value`, `range`, `uniform`, `file`, `pointers` and \
             `struct`"
                .to_owned()
        }
        _ => {
            let mut words = expected.split(' ');
            let count = words.find_map(|word| word.parse::<usize>().ok());
            let is_list = ["sequence of ", "an array of ", "tuple "];
            match count {
                Some(count) if is_list.iter().any(|list| expected.starts_with(list)) => {
                    format!("a list of {count}")
                }
                _ => expected.to_owned(),
            }
        }
    }
}

/// Deserializes an enum written as a name, or as a mapping from the name to its value.
pub(crate) fn singleton<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    serde_yaml::with::singleton_map::deserialize(deserializer)
}

pub(crate) fn some_singleton<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    singleton(deserializer).map(Some)
}

/// Deserializes a mapping and rejects duplicate keys, of which the parser would keep the last.
pub(crate) fn unique_keys<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct UniqueKeys<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for UniqueKeys<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            unique_entries(map)
        }
    }

    deserializer.deserialize_map(UniqueKeys(PhantomData))
}

pub(crate) fn unique_entries<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    mut map: A,
) -> Result<BTreeMap<String, T>, A::Error> {
    let mut entries = BTreeMap::new();
    while let Some((key, value)) = map.next_entry::<String, T>()? {
        if entries.contains_key(&key) {
            return Err(de::Error::custom(format!("duplicate key `{key}`")));
        }
        entries.insert(key, value);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::schema::File;

    fn error(text: &str) -> YamlError {
        parse::<File>(text).expect_err("no campaign")
    }

    /// Error messages about all kinds of invalid values contain no terms of the programming language.
    #[test]
    fn messages_use_terms_of_campaign_files() {
        let launch = |keys: &str| format!("name: x\nworkload: {{kernel: {{{keys}}}}}");
        let argument = |keys: &str| {
            launch(&format!("name: k, grid: 1, workgroup: 1, args: [{{buffer: b, {keys}}}]"))
        };
        let faults = |keys: &str| format!("name: x\nworkload: {{}}\nfaults: {{{keys}}}");
        let cases = [
            ("", "missing: `name`"),
            (
                "[1, 2]",
                "expected a campaign: a mapping with `name`, `workload` and others, found a list",
            ),
            ("text", "found the text"),
            ("name: [x]", "name: expected text, found a list"),
            ("device: {gpu: gfx90a}", "device: expected a name, found a mapping"),
            (
                "seed: -1",
                "seed: expected a whole number from 0 to 18446744073709551615, found the number `-1`",
            ),
            ("seed: soon", "seed: expected a whole number from 0"),
            ("name: x", "missing: `workload`"),
            ("name: x\nname: y", "duplicate key `name`"),
            ("sede: 1", "unknown key `sede`, expected one of `name`, `seed`"),
            (
                "device: hip",
                "device: unknown value `hip`, expected one of `embedded`, `rocr`, `cuda`",
            ),
            ("name: x\nworkload: {}\n---\nname: y", "several documents"),
            ("name: x\nworkload: 3", "workload: expected a mapping with"),
            ("allow: everything", "allow: expected a list, found the text"),
            (&launch("grid: 1.5"), "workload.kernel.grid: expected a number of work-items"),
            (&launch("source: 3.5, local_memory: lots"), "local_memory"),
            (&argument("init: {uniform: [1]}"), "expected a list of 2, found a list of 1"),
            (&argument("init: {uniform: [1, 2, 3]}"), "a list of 2"),
            (&argument("init: [1]"), "init: expected `zeros`, or a mapping with"),
            (
                &argument("init: {range: 3}"),
                "expected a mapping with `start` and `step`, found the number",
            ),
            (&argument("init: {}"), "a mapping"),
            (&argument("output: 1"), "expected `true` or `false`, found the number `1`"),
            (&argument("type: [f32]"), "type"),
            (&faults("model: 3"), "model: expected the name of a fault model"),
            (&faults("model: {flip_one_bit: 3}"), "expected the name alone, found a mapping"),
            (
                &faults("model: flip_mask"),
                "model: expected a mapping from the name to its value, found the name alone",
            ),
            (&faults("model: zero_value, waves: [1]"), "expected a list of 2, found a list of 1"),
            (
                &faults("model: zero_value, margin: wide"),
                "margin: expected a number, found the text",
            ),
            (
                &faults("model: zero_value, duration: 3"),
                "duration: expected `transient`, or a mapping",
            ),
            (&faults("model: zero_value, groups: valu"), "groups: expected a list, found the text"),
        ];
        let foreign = "struct enum variant tuple field u64 u32 f64 sequence map integer string \
                       boolean unit deserializ invalid";
        let mut failed = Vec::new();
        for (text, words) in cases {
            let YamlError { message, .. } = error(text);
            // `struct` is also a key.
            let mut plain = message.replace("mapping", "").replace("instructions", "");
            plain = plain.replace("`struct`", "");
            let is_plain = !foreign.split_whitespace().any(|word| plain.contains(word));
            if !message.contains(words) || !is_plain {
                failed.push(format!("{text:?}: {message}; expected {words:?}"));
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    #[test]
    fn deep_nesting_is_rejected_early_with_its_position() {
        // The parser would take hours.
        let deep = format!("name: x\nworkload: {}", "[".repeat(4_000_000));
        let rejected = error(&deep);
        assert_eq!(rejected.position, Some((2, 11 + MAX_OPEN)));
        assert_eq!(rejected.message, TOO_DEEP);
        let mixed = "{a: [".repeat(1_000_000);
        assert_eq!(error(&mixed).message, TOO_DEEP);
        // Texts that the parser rejects and accepts itself.
        let closed = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(
            parse::<serde_yaml::Value>(&closed(200)).map(|_| ()).expect_err("deep").message,
            TOO_DEEP
        );
        assert!(parse::<serde_yaml::Value>(&closed(100)).is_ok());
        let wide = "- [[1, 2], {a: 3}]\n".repeat(1000);
        assert!(parse::<serde_yaml::Value>(&wide).is_ok());
    }

    #[test]
    fn byte_order_mark_is_removed() {
        assert_eq!(strip_byte_order_mark("\u{feff}name: x"), "name: x");
        assert_eq!(strip_byte_order_mark("name: \u{feff}x"), "name: \u{feff}x");
    }
}
