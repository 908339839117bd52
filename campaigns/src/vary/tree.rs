//! A campaign file as a tree whose scalars are as they were written: `0x10` stays `0x10`, as a program
//! may get it as text. What is changed in it is a text again that says the same but for that.

use crate::file::location::{Field, Step};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt::{self, Write};

/// A value of a campaign file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A number, a truth value or nothing, as it was written.
    Plain(String),
    /// A text, without its quotes.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// The tree of a text.
    ///
    /// # Errors
    /// Those of the parser: where a value has a tag, and keys that are no texts.
    pub fn parse(text: &str) -> Result<Node, serde_yaml::Error> {
        let shape: Shape = from_text(text)?;
        shape.deserialize(serde_yaml::Deserializer::from_str(text))
    }

    /// Puts `value` where `field` says, into mappings that are made where there are none.
    ///
    /// # Errors
    /// Names the part of the way where no mapping or list stands.
    pub fn set(&mut self, field: &Field, value: Node) -> Result<(), String> {
        let (mut node, mut at) = (self, Field::root());
        for step in field.steps() {
            node = match (step, node) {
                (Step::Key(key), Node::Mapping(entries)) => {
                    at = at.key(key);
                    let position = entries.iter().position(|(own, _)| own == key);
                    let position = position.unwrap_or_else(|| {
                        entries.push((key.clone(), Node::Mapping(Vec::new())));
                        entries.len() - 1
                    });
                    &mut entries[position].1
                }
                (Step::Index(index), Node::List(values)) => {
                    let count = values.len();
                    let Some(value) = values.get_mut(*index) else {
                        return Err(format!("`{at}` has {count} elements, from [0] on"));
                    };
                    at = at.index(*index);
                    value
                }
                (Step::Key(key), other) => {
                    let found = other.kind();
                    return Err(format!("`{at}` is {found}, and has no key `{key}`"));
                }
                (Step::Index(index), other) => {
                    let found = other.kind();
                    return Err(format!("`{at}` is {found}, and has no [{index}]"));
                }
            };
        }
        *node = value;
        Ok(())
    }

    /// Takes a key out of a mapping.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let Node::Mapping(entries) = self else { return None };
        let position = entries.iter().position(|(own, _)| own == key)?;
        Some(entries.remove(position).1)
    }

    /// What it is, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::Plain(text) if ["", "~", "null"].contains(&text.as_str()) => "nothing",
            Node::Plain(_) => "a number or a truth value",
            Node::Text(_) => "a text",
            Node::List(_) => "a list",
            Node::Mapping(_) => "a mapping",
        }
    }

    /// It as a text in one line, and where in that the values stand: their columns, from 1, in
    /// ascending order.
    pub fn line(&self) -> (String, Vec<(usize, Field)>) {
        let (mut text, mut places) = (String::new(), Vec::new());
        self.write(&Field::root(), &mut text, &mut places);
        (text, places)
    }

    fn write(&self, at: &Field, text: &mut String, places: &mut Vec<(usize, Field)>) {
        // All that is written is ASCII.
        places.push((text.len() + 1, at.clone()));
        match self {
            Node::Plain(own) if own.is_empty() => text.push_str("null"),
            Node::Plain(own) => text.push_str(own),
            Node::Text(own) => quote(own, text),
            Node::List(values) => {
                text.push('[');
                for (index, value) in values.iter().enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    value.write(&at.index(index), text, places);
                }
                text.push(']');
            }
            Node::Mapping(entries) => {
                text.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    let at = at.key(key);
                    places.push((text.len() + 1, at.clone()));
                    quote(key, text);
                    text.push_str(": ");
                    value.write(&at, text, places);
                }
                text.push('}');
            }
        }
    }
}

/// A value for people, in one line; what is no text as it would stand in a file.
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

/// A text in double quotes, in ASCII.
fn quote(own: &str, text: &mut String) {
    text.push('"');
    for character in own.chars() {
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

/// What kinds of values a text has where. The parser gives scalars as they were written only to who
/// asks for texts, and says which are none only to who does not.
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
        f.write_str("the value that was read before")
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
    fn a_text_says_the_same_again() {
        let text = "a: 0x10\nb: [1.50, .nan, ~, yes, 'it''s', \"\\x85\u{2028}ä\"]\n? c\n: {d: }\ne: &x {f: 1e-5}\n\
                    g: *x\n'007': 007\n";
        let (line, _) = Node::parse(text).expect("YAML").line();
        let value = |text: &str| serde_yaml::from_str::<serde_yaml::Value>(text).expect("YAML");
        assert_eq!(format!("{:?}", value(&line)), format!("{:?}", value(text)), "{line}");
        assert!(line.contains("0x10") && line.contains("1.50") && line.contains("1e-5"), "{line}");
        assert!(line.is_ascii());
    }

    #[test]
    fn values_are_replaced_and_added() {
        let mut tree = Node::parse("a: {b: [1, {c: 2}]}").expect("YAML");
        for (path, value) in [("a.b[1].c", "3"), ("a.b[0]", "4"), ("d.e.f", "5"), ("g", "6")] {
            let path = Field::parse(path).expect(path);
            tree.set(&path, Node::Plain(value.to_owned())).expect("set");
        }
        assert_eq!(tree.to_string(), "{a: {b: [4, {c: 3}]}, d: {e: {f: 5}}, g: 6}");
        for (path, words) in [
            ("a.b.c", "`a.b` is a list, and has no key `c`"),
            ("a.b[0].c", "`a.b[0]` is a number or a truth value"),
            ("a[0]", "`a` is a mapping, and has no [0]"),
            ("a.b[2]", "`a.b` has 2 elements"),
        ] {
            let path = Field::parse(path).expect(path);
            let wrong = tree.set(&path, Node::Text(String::new())).expect_err("no way");
            assert!(wrong.contains(words), "{wrong}");
        }
    }

    #[test]
    fn values_are_found_in_the_line() {
        let (line, places) = Node::parse("a: {b: [1, x]}").expect("YAML").line();
        for (column, field) in places {
            let (rest, name) = (&line[column - 1..], field.to_string());
            let begins = ["{", "\"a\"", "\"b\"", "[", "1", "\"x\""];
            assert!(begins.iter().any(|own| rest.starts_with(own)), "{name}: {rest}");
        }
    }
}
