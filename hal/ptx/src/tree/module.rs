//! Modules and functions.

use super::{Block, Declaration, Linkage, Name, Parameter};
use crate::Position;

/// A PTX module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Directives, variables and functions, in order. The first is the version.
    pub items: Vec<Item>,
}

impl Module {
    /// The functions, including forward declarations.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(&**function),
            _ => None,
        })
    }

    /// The declarations of variables outside functions.
    pub fn variables(&self) -> impl Iterator<Item = &Declaration> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Variable(declaration) => Some(&**declaration),
            _ => None,
        })
    }

    /// The version of PTX, major and minor; `None` in a module that was not parsed.
    pub fn version(&self) -> Option<(u32, u32)> {
        self.items.iter().find_map(|item| match item.kind {
            ItemKind::Version { major, minor } => Some((major, minor)),
            _ => None,
        })
    }

    /// Target architecture and features: `sm_80`, `texmode_independent`.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .filter_map(|item| match &item.kind {
                ItemKind::Target(names) => Some(names),
                _ => None,
            })
            .flatten()
            .map(|name| &**name)
    }

    /// Size of addresses in bits: 64 unless the module says 32.
    pub fn address_bits(&self) -> u32 {
        let size = self.items.iter().find_map(|item| match item.kind {
            ItemKind::AddressSize(bits) => Some(bits),
            _ => None,
        });
        size.unwrap_or(64)
    }
}

/// A directive, variable or function at module scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Position of the first token.
    pub position: Position,
    /// The item.
    pub kind: ItemKind,
}

/// Kinds of items.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `.version`.
    #[allow(missing_docs)]
    Version { major: u32, minor: u32 },
    /// `.target`.
    Target(Vec<Name>),
    /// `.address_size`, in bits.
    AddressSize(u32),
    /// `.file`.
    File(File),
    /// `.section`, with debugging information.
    Section(Section),
    /// `.pragma`.
    Pragma(Vec<Name>),
    /// A variable.
    Variable(Box<Declaration>),
    /// A function.
    Function(Box<Function>),
    /// `.alias`.
    Alias(Alias),
}

/// `.file`: a source file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Number of the file in `.loc`.
    pub number: u64,
    /// Path of the file.
    pub path: Name,
    /// Time of modification and size.
    pub times: Option<Times>,
}

/// Time of modification and size of a source file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Time of modification in seconds.
    pub modified: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// `.alias`: another name of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The new name.
    pub name: Name,
    /// The function.
    pub function: Name,
}

/// `.section`.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The name, without the dot.
    pub name: Name,
    /// The content.
    pub entries: Vec<SectionEntry>,
}

/// A line of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum SectionEntry {
    /// A label.
    Label(Name),
    /// Values of a size.
    Values {
        /// Name of the type, without the dot: `b8`, `b16`, `b32` or `b64`.
        kind: Name,
        /// The values.
        values: Vec<SectionValue>,
    },
}

/// A value in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum SectionValue {
    /// An integer.
    Integer(i128),
    /// A label or a section, plus an offset.
    Symbol {
        /// The name; a section's name begins with a dot.
        name: Name,
        /// The offset in bytes.
        offset: i128,
    },
    /// The distance of two labels.
    Difference {
        /// The end.
        end: Name,
        /// The start.
        start: Name,
    },
}

/// A kernel or a device function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Position of the name.
    pub position: Position,
    /// Linkage of the name.
    pub linkage: Option<Linkage>,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Attributes before the name.
    pub attributes: Vec<super::Attribute>,
    /// Return parameters.
    pub results: Vec<Parameter>,
    /// The name.
    pub name: Name,
    /// Parameters; `None` without a list.
    pub parameters: Option<Vec<Parameter>>,
    /// Performance directives.
    pub directives: Vec<Performance>,
    /// The code; `None` for a forward declaration.
    pub body: Option<Block>,
}

/// Kinds of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a device function.
    Device,
}

/// A directive between the parameters and the code of a function, such as `.maxntid 256, 1, 1` or
/// `.noreturn`.
#[derive(Clone, Debug, PartialEq)]
pub enum Performance {
    /// A directive with numbers.
    Numbers {
        /// The name, without the dot.
        name: Name,
        /// The values.
        values: Vec<u64>,
    },
    /// `.pragma`.
    Pragma(Vec<Name>),
}
