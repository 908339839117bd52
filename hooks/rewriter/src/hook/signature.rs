//! The functions of a source, as clang understands them.

use serde::Deserialize;

/// A type of C, as far as passing values needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CType {
    /// As the source writes it.
    pub text: String,
    /// With typedefs resolved.
    pub resolved: String,
}

/// What values of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// An integer of this number of bytes.
    Integer(u8),
    /// A pointer: eight bytes.
    Pointer,
    /// Something else, whose size the compiler knows.
    Other,
}

impl CType {
    /// Integer, pointer or else.
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
            // Pointers into LDS and scratch are shorter and say their address space.
            text if text.ends_with('*') && !text.contains("address_space") => TypeKind::Pointer,
            _ => TypeKind::Other,
        }
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// Its type.
    pub of: CType,
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.of.text, self.name)
    }
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// What it returns, as the source writes it.
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

/// What a source declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declarations {
    /// Functions with a body, in the source's order.
    pub functions: Vec<Signature>,
    /// Variables that lie in LDS.
    pub lds: Vec<String>,
}

/// The part of clang's syntax tree that matters here: what lies deeper is skipped, however deep.
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
    of: Option<NodeType>,
    #[serde(default)]
    inner: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    /// Arguments that a list has in vain, and the like, are nodes without anything.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    of: Option<NodeType>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeType {
    qual_type: String,
    desugared_qual_type: Option<String>,
}

impl Declarations {
    /// Reads what `clang -Xclang -ast-dump=json` writes.
    ///
    /// # Errors
    /// Where the text is not that.
    pub(crate) fn parse(json: &[u8]) -> Result<Declarations, serde_json::Error> {
        let unit: Unit = serde_json::from_slice(json)?;
        let mut declarations = Declarations::default();
        for node in unit.inner {
            let Some(of) = &node.of else { continue };
            let defined = node.inner.iter().any(|inner| inner.kind == "CompoundStmt");
            if node.kind == "FunctionDecl" && defined {
                declarations.functions.push(signature(node));
            } else if node.kind == "VarDecl"
                && of.qual_type.contains("address_space(3)")
                && !of.qual_type.contains('*')
            {
                declarations.lds.push(node.name);
            }
        }
        Ok(declarations)
    }
}

fn signature(function: Declaration) -> Signature {
    let of = function.of.map(|of| of.qual_type).unwrap_or_default();
    let result = of.split_once('(').map_or(of.as_str(), |(result, _)| result).trim().to_owned();
    let parameters = function.inner.into_iter().filter(|node| node.kind == "ParmVarDecl");
    let parameters = parameters.filter_map(|parameter| {
        let of = parameter.of?;
        let resolved = of.desugared_qual_type.unwrap_or_else(|| of.qual_type.clone());
        Some(Parameter { name: parameter.name, of: CType { text: of.qual_type, resolved } })
    });
    Signature { name: function.name, result, parameters: parameters.collect() }
}
