//! Signatures of a source's functions, from clang's syntax tree.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A C type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CType {
    /// The type as written in the source.
    pub text: String,
    /// The type with typedefs resolved.
    pub resolved: String,
}

/// Kind of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// An integer of this number of bytes.
    Integer(u8),
    /// A pointer: eight bytes.
    Pointer,
    /// Any other type, whose size only the compiler knows.
    Other,
}

impl CType {
    /// The kind of the type.
    pub fn kind(&self) -> TypeKind {
        let words: Vec<&str> = self
            .resolved
            .split_whitespace()
            .filter(|word| !matches!(*word, "const" | "volatile" | "restrict" | "signed"))
            .collect();
        match words.join(" ").as_str() {
            "_Bool" | "bool" | "char" | "unsigned char" => TypeKind::Integer(1),
            "short" | "unsigned short" => TypeKind::Integer(2),
            "int" | "unsigned int" => TypeKind::Integer(4),
            "long" | "unsigned long" | "long long" | "unsigned long long" => TypeKind::Integer(8),
            // Pointers to LDS and scratch are shorter and have an address space.
            text if text.ends_with('*') && !text.contains("address_space") => TypeKind::Pointer,
            _ => TypeKind::Other,
        }
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its type.
    pub ctype: CType,
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.ctype.text, self.name)
    }
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// Its return type, as written in the source.
    pub result: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parameters: Vec<String> = self.parameters.iter().map(Parameter::to_string).collect();
        write!(f, "{} {}({})", self.result, self.name, parameters.join(", "))
    }
}

/// Declarations of a source, for any target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    /// Functions with a body, in the source's order.
    pub functions: Vec<Signature>,
    /// Variables in LDS.
    pub lds: Vec<String>,
    /// Structures with a tag, and their members.
    pub structures: BTreeMap<String, Vec<Parameter>>,
}

/// The relevant part of clang's syntax tree; deeper nodes are skipped.
#[derive(Deserialize)]
struct Unit {
    inner: Vec<Declaration>,
}

#[derive(Deserialize)]
struct Declaration {
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    node_type: Option<NodeType>,
    /// `struct` or `union`, for records.
    #[serde(default, rename = "tagUsed")]
    tag: String,
    /// The members of a record follow.
    #[serde(default, rename = "completeDefinition")]
    is_complete: bool,
    #[serde(default)]
    inner: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    /// Empty for some nodes, such as unused initializers.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    node_type: Option<NodeType>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeType {
    qual_type: String,
    desugared_qual_type: Option<String>,
}

impl Declarations {
    /// Parses the output of `clang -Xclang -ast-dump=json`.
    ///
    /// # Errors
    /// Returns an error for malformed output.
    pub fn parse(json: &[u8]) -> Result<Declarations, serde_json::Error> {
        let unit: Unit = serde_json::from_slice(json)?;
        let mut declarations = Declarations::default();
        for node in unit.inner {
            if node.kind == "RecordDecl" && node.tag == "struct" && node.is_complete {
                let members = members(node.inner, "FieldDecl");
                declarations.structures.insert(node.name, members);
                continue;
            }
            let Some(node_type) = &node.node_type else { continue };
            let defined = node.inner.iter().any(|inner| inner.kind == "CompoundStmt");
            if node.kind == "FunctionDecl" && defined {
                declarations.functions.push(signature(node));
            } else if node.kind == "VarDecl"
                && node_type.qual_type.contains("address_space(3)")
                && !node_type.qual_type.contains('*')
            {
                declarations.lds.push(node.name);
            }
        }
        Ok(declarations)
    }

    /// Functions that the source defines, without those of headers, whose names begin with `flipwave_`.
    pub fn hooks(&self) -> impl Iterator<Item = &Signature> {
        self.functions.iter().filter(|function| !function.name.starts_with("flipwave_"))
    }

    /// Returns `true` if the source defines a function, including those with names of headers.
    pub fn defines(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function.name == name)
    }
}

fn signature(function: Declaration) -> Signature {
    let text = function.node_type.map(|node_type| node_type.qual_type).unwrap_or_default();
    let result = text.split_once('(').map_or(text.as_str(), |(result, _)| result);
    let result = result.trim().to_owned();
    Signature { name: function.name, result, parameters: members(function.inner, "ParmVarDecl") }
}

/// The parameters of a function or the members of a structure: children of a kind.
fn members(children: Vec<Child>, kind: &str) -> Vec<Parameter> {
    let children = children.into_iter().filter(|node| node.kind == kind);
    let member = |child: Child| {
        let NodeType { qual_type: text, desugared_qual_type } = child.node_type?;
        let resolved = desugared_qual_type.unwrap_or_else(|| text.clone());
        Some(Parameter { name: child.name, ctype: CType { text, resolved } })
    };
    children.filter_map(member).collect()
}
