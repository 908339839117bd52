//! A campaign file as a tree that preserves the spelling of scalars: `0x10` stays `0x10`, because a program
//! may receive it as text. After changes, the tree is converted back to an equivalent text.

use crate::file::location::{Field, Step};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt::{self, Write};

/// A value of a campaign file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A number, a boolean or null, as written.
    Plain(String),
    /// A string, without quotes.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// Parses a text.
    ///
    /// # Errors
    /// Those of the parser, including values with tags and keys that are not strings.
    pub fn parse(text: &str) -> Result<Node, serde_yaml::Error> {
        let shape: Shape = from_text(text)?;
        shape.deserialize(serde_yaml::Deserializer::from_str(text))
    }

    /// Sets `field` to `value`. Creates missing mappings.
    ///
    /// # Errors
    /// Returns the part of the path that is not a mapping or list.
    pub fn set(&mut self, field: &Field, value: Node) -> Result<(), String> {
        let (mut node, mut at) = (self, Field::root());
        for step in field.steps() {
            node = match (step, node) {
                (Step::Key(key), Node::Mapping(entries)) => {
                    at = at.key(key);
                    let position = entries.iter().position(|(entry, _)| entry == key);
                    let position = position.unwrap_or_else(|| {
                        entries.push((key.clone(), Node::Mapping(Vec::new())));
                        entries.len() - 1
                    });
                    &mut entries[position].1
                }
                (Step::Index(index), Node::List(values)) => {
                    let count = values.len();
                    let Some(value) = values.get_mut(*index) else {
                        return Err(format!("`{at}` has {count} elements, and no [{index}]"));
                    };
                    at = at.index(*index);
                    value
                }
                (Step::Key(key), node) => {
                    let found = node.kind();
                    return Err(format!("`{at}` is {found}, and has no key `{key}`"));
                }
                (Step::Index(index), node) => {
                    let found = node.kind();
                    return Err(format!("`{at}` is {found}, and has no [{index}]"));
                }
            };
        }
        *node = value;
        Ok(())
    }

    /// Removes a key from a mapping, and returns its value.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let Node::Mapping(entries) = self else { return None };
        let position = entries.iter().position(|(entry, _)| entry == key)?;
        Some(entries.remove(position).1)
    }

    /// Returns the kind of the value, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::Plain(text) if ["", "~", "null"].contains(&text.as_str()) => "nothing",
            Node::Plain(_) => "a number or boolean",
            Node::Text(_) => "a text",
            Node::List(_) => "a list",
            Node::Mapping(_) => "a mapping",
        }
    }

    /// Returns the value as a text of one line, and the columns of all values in it, from 1 in ascending
    /// order.
    pub fn line(&self) -> (String, Vec<(usize, Field)>) {
        let (mut text, mut columns) = (String::new(), Vec::new());
        self.write(&Field::root(), &mut text, &mut columns);
        (text, columns)
    }

    fn write(&self, at: &Field, text: &mut String, columns: &mut Vec<(usize, Field)>) {
        // The text is ASCII.
        columns.push((text.len() + 1, at.clone()));
        match self {
            Node::Plain(scalar) if scalar.is_empty() => text.push_str("null"),
            Node::Plain(scalar) => text.push_str(scalar),
            Node::Text(string) => quote(string, text),
            Node::List(values) => {
                text.push('[');
                for (index, value) in values.iter().enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    value.write(&at.index(index), text, columns);
                }
                text.push(']');
            }
            Node::Mapping(entries) => {
                text.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    let at = at.key(key);
                    columns.push((text.len() + 1, at.clone()));
                    quote(key, text);
                    text.push_str(": ");
                    value.write(&at, text, columns);
                }
                text.push('}');
            }
        }
    }
}

/// Formats the value in one line for users, with strings unquoted.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Plain(text) | Node::Text(text) => f.write_str(text),
            Node::List(values) => {
                f.write_char('[')?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Node::Mapping(entries) => {
                f.write_char('{')?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_char('}')
            }
        }
    }
}

/// Appends a string in double quotes, in ASCII.
fn quote(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            ' '..='~' => text.push(character),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\U{:08X}", u32::from(character))),
        }
    }
    text.push('"');
}

fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, serde_yaml::Error> {
    serde_yaml::from_str(text)
}

/// The kinds of all values in a text. The parser preserves the spelling of a scalar only if a string is
/// requested, and reveals the kind of a scalar only otherwise, so the text is parsed twice.
enum Shape {
    Plain,
    Text,
    List(Vec<Shape>),
    Mapping(Vec<Shape>),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        struct ShapeVisitor;

        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value without a tag")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_i128<E>(self, _: i128) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_u128<E>(self, _: u128) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_unit<E>(self) -> Result<Shape, E> {
                Ok(Shape::Plain)
            }

            fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
                Ok(Shape::Text)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Shape, A::Error> {
                let mut shapes = Vec::new();
                while let Some(shape) = values.next_element()? {
                    shapes.push(shape);
                }
                Ok(Shape::List(shapes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Shape, A::Error> {
                let mut shapes = Vec::new();
                while let Some((_, shape)) = entries.next_entry::<IgnoredAny, Shape>()? {
                    shapes.push(shape);
                }
                Ok(Shape::Mapping(shapes))
            }
        }

        deserializer.deserialize_any(ShapeVisitor)
    }
}

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let scalar = |plain| NodeVisitor { plain, inner: Vec::new() };
        match self {
            Shape::Plain => deserializer.deserialize_str(scalar(true)),
            Shape::Text => deserializer.deserialize_str(scalar(false)),
            Shape::List(inner) => deserializer.deserialize_seq(NodeVisitor { plain: false, inner }),
            Shape::Mapping(inner) => {
                deserializer.deserialize_map(NodeVisitor { plain: false, inner })
            }
        }
    }
}

struct NodeVisitor {
    plain: bool,
    inner: Vec<Shape>,
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of the first pass")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        let text = text.to_owned();
        Ok(if self.plain { Node::Plain(text) } else { Node::Text(text) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        for shape in self.inner {
            nodes.extend(values.next_element_seed(shape)?);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        for shape in self.inner {
            if let Some(key) = entries.next_key::<String>()? {
                nodes.push((key, entries.next_value_seed(shape)?));
            }
        }
        Ok(Node::Mapping(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_equivalent_to_the_text() {
        let text = "a: 0x10\nb: [1.50, .nan, ~, yes, 'it''s', \"\\x85\u{2028}ä\"]\n? c\n: {d: }\ne: &x {f: 1e-5}\n\
                    g: *x\n'007': 007\n";
        let (line, _) = Node::parse(text).expect("YAML").line();
        let value = |text: &str| serde_yaml::from_str::<serde_yaml::Value>(text).expect("YAML");
        assert_eq!(format!("{:?}", value(&line)), format!("{:?}", value(text)), "{line}");
        assert!(line.contains("0x10") && line.contains("1.50") && line.contains("1e-5"), "{line}");
        assert!(line.is_ascii());
    }

    #[test]
    fn set_replaces_and_adds_values() {
        let mut tree = Node::parse("a: {b: [1, {c: 2}]}").expect("YAML");
        for (path, value) in [("a.b[1].c", "3"), ("a.b[0]", "4"), ("d.e.f", "5"), ("g", "6")] {
            let path = Field::parse(path).expect(path);
            tree.set(&path, Node::Plain(value.to_owned())).expect("set");
        }
        assert_eq!(tree.to_string(), "{a: {b: [4, {c: 3}]}, d: {e: {f: 5}}, g: 6}");
        for (path, words) in [
            ("a.b.c", "`a.b` is a list, and has no key `c`"),
            ("a.b[0].c", "`a.b[0]` is a number or boolean"),
            ("a[0]", "`a` is a mapping, and has no [0]"),
            ("a.b[2]", "`a.b` has 2 elements"),
        ] {
            let path = Field::parse(path).expect(path);
            let error = tree.set(&path, Node::Text(String::new())).expect_err("an invalid path");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn columns_point_to_values() {
        let (line, columns) = Node::parse("a: {b: [1, x]}").expect("YAML").line();
        for (column, field) in columns {
            let (rest, name) = (&line[column - 1..], field.to_string());
            let begins = ["{", "\"a\"", "\"b\"", "[", "1", "\"x\""];
            assert!(begins.iter().any(|begin| rest.starts_with(begin)), "{name}: {rest}");
        }
    }
}
