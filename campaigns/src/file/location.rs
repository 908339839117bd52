//! Positions of fields in a YAML text, and errors with positions.

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::path::PathBuf;

/// One step from a YAML value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Path of a field in a YAML text: `workload.kernel.args[2].count`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field(Vec<Step>);

impl Field {
    /// Returns the path of the outermost value.
    pub(crate) fn root() -> Field {
        Field::default()
    }

    /// Returns the path of the value of `key` in this mapping.
    pub(crate) fn key(&self, key: &str) -> Field {
        self.step(Step::Key(key.to_owned()))
    }

    /// Returns the path of the element at `index` in this sequence.
    pub(crate) fn index(&self, index: usize) -> Field {
        self.step(Step::Index(index))
    }

    /// Parses the text form of a path, `workload.kernel.args[2].count`.
    ///
    /// # Errors
    /// Returns the reason why the text is not a path.
    pub(crate) fn parse(text: &str) -> Result<Field, String> {
        let invalid = |reason: &str| {
            Err(format!(
                "invalid field `{text}`: {reason}; expected a path like `faults.model` or `args[0]`"
            ))
        };
        let mut field = Field::root();
        for part in text.split('.') {
            let (key, mut indices) = part.split_at(part.find('[').unwrap_or(part.len()));
            if key.is_empty() {
                return invalid("a key is missing");
            }
            field = field.key(key);
            while !indices.is_empty() {
                let inner = indices.strip_prefix('[').and_then(|inner| inner.split_once(']'));
                let Some((Ok(index), rest)) = inner.map(|(index, rest)| (index.parse(), rest))
                else {
                    return invalid("brackets must contain a number, starting from 0");
                };
                (field, indices) = (field.index(index), rest);
            }
        }
        Ok(field)
    }

    /// Returns the steps from the outermost value to the field.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Replaces the prefix `from` of the path by `to`; returns `None` if the path does not start with
    /// `from`.
    pub(crate) fn replace_prefix(&self, from: &Field, to: &Field) -> Option<Field> {
        let rest = self.0.strip_prefix(from.0.as_slice())?;
        Some(Field(to.0.iter().chain(rest).cloned().collect()))
    }

    fn step(&self, step: Step) -> Field {
        let mut steps = self.0.clone();
        steps.push(step);
        Field(steps)
    }

    /// Returns line and column, both from 1, of this field in `text`. A missing field has the position of
    /// its parent.
    pub(crate) fn locate(&self, text: &str) -> Option<(usize, usize)> {
        let error = Locator(&self.0).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
        let location = error.location()?;
        Some((location.line(), location.column()))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A visitor that descends to a value and fails there, so that the parser's error contains the position.
struct Locator<'a>(&'a [Step]);

impl<'de> DeserializeSeed<'de> for Locator<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Locator<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the requested field")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Some((Step::Key(wanted), rest)) = self.0.split_first() {
            while let Some(key) = map.next_key::<String>()? {
                if key == *wanted {
                    return map.next_value_seed(Locator(rest));
                }
                map.next_value::<IgnoredAny>()?;
            }
        }
        Err(de::Error::custom("here"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        if let Some((Step::Index(wanted), rest)) = self.0.split_first() {
            for _ in 0..*wanted {
                sequence.next_element::<IgnoredAny>()?;
            }
            if sequence.next_element_seed(Locator(rest))?.is_some() {
                return Ok(());
            }
        }
        Err(de::Error::custom("here"))
    }
}

/// Error returned when a campaign file is invalid or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Line and column of the error, both from 1.
    pub position: Option<(usize, usize)>,
    /// The problem, the expected value, and what to do.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for FileError {}

/// Error about a field with an invalid value.
#[derive(Debug)]
pub(crate) struct FieldError {
    pub field: Field,
    /// The problem, the expected value, and what to do.
    pub message: String,
}

/// Returns an error with `message` about `field`.
pub(crate) fn reject<T>(field: &Field, message: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError { field: field.clone(), message: message.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: x\nouter:\n  list:\n    - {a: 1, b: [5, 6]}\n    - {a: 2}\n";

    #[test]
    fn locate_returns_position_of_field() {
        let list = Field::root().key("outer").key("list");
        assert_eq!(Field::root().key("name").locate(TEXT), Some((1, 7)));
        assert_eq!(list.index(0).key("b").index(1).locate(TEXT), Some((4, 21)));
        assert_eq!(list.index(1).key("a").locate(TEXT), Some((5, 11)));
    }

    #[test]
    fn locate_returns_position_of_parent_for_missing_field() {
        let second = Field::root().key("outer").key("list").index(1);
        assert_eq!(second.key("missing").locate(TEXT), second.locate(TEXT));
        assert_eq!(second.locate(TEXT), Some((5, 7)));
    }

    #[test]
    fn paths_round_trip_through_text() {
        let field = Field::root().key("args").index(2).key("count");
        assert_eq!(field.to_string(), "args[2].count");
        assert_eq!(Field::parse("args[2].count"), Ok(field));
        for invalid in ["", "a..b", ".a", "[0]", "a[", "a[x]", "a[0]b", "a[-1]"] {
            assert!(Field::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn replace_prefix_requires_the_prefix() {
        let field = |text| Field::parse(text).expect(text);
        let copied = field("a.b[1].c").replace_prefix(&field("a.b"), &field("vary.d[2]"));
        assert_eq!(copied, Some(field("vary.d[2][1].c")));
        assert_eq!(field("a.c").replace_prefix(&field("a.b"), &field("x")), None);
    }
}
