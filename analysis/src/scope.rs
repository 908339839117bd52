//! Scopes: named subsets of a campaign's injections.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A subset of a campaign's injections. Its text form is `all` or `KIND:NAME`, such as `kernel:matmul`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scope {
    /// All injections.
    All,
    /// Injections into instructions of a primary instruction group.
    Group(String),
    /// Injections into a kernel.
    Kernel(String),
    /// Injections into dispatches with a label.
    Label(String),
    /// Injections into instructions with an opcode.
    Opcode(String),
    /// Injections drawn from a stratum of the fault space.
    Stratum(String),
}

impl Scope {
    /// Parses the text form; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Scope> {
        if text == "all" {
            return Some(Scope::All);
        }
        let (kind, name) = text.split_once(':')?;
        let name = name.to_owned();
        Some(match kind {
            "group" => Scope::Group(name),
            "kernel" => Scope::Kernel(name),
            "label" => Scope::Label(name),
            "opcode" => Scope::Opcode(name),
            "stratum" => Scope::Stratum(name),
            _ => return None,
        })
    }

    /// Kind of the scope in its text form.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Scope::All => "all",
            Scope::Group(_) => "group",
            Scope::Kernel(_) => "kernel",
            Scope::Label(_) => "label",
            Scope::Opcode(_) => "opcode",
            Scope::Stratum(_) => "stratum",
        }
    }

    /// Name of the group, kernel, label, opcode or stratum; `None` for all injections.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Scope::All => None,
            Scope::Group(name)
            | Scope::Kernel(name)
            | Scope::Label(name)
            | Scope::Opcode(name)
            | Scope::Stratum(name) => Some(name),
        }
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

impl TryFrom<String> for Scope {
    type Error = String;

    fn try_from(text: String) -> Result<Scope, String> {
        Scope::parse(&text).ok_or_else(|| {
            format!("invalid scope `{text}`; expected `all` or KIND:NAME, such as kernel:NAME")
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{}:{name}", self.kind()),
            None => f.write_str(self.kind()),
        }
    }
}
