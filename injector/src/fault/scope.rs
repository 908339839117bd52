//! How much one fault strikes.

use std::fmt;
use std::str::FromStr;

/// How much one fault strikes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One lane's value; of what the lanes of a wave share, that.
    Lane,
    /// The value of every lane that the instruction runs on.
    ActiveLanes,
    /// The value of every lane of the wave, whether it runs or not.
    Wave,
    /// The values of the active lanes of all waves of a workgroup, each when it comes to the
    /// instruction for the same time.
    Workgroup,
}

impl Scope {
    /// Every scope, in the order documentation lists them.
    pub const ALL: [Scope; 4] = [Scope::Lane, Scope::ActiveLanes, Scope::Wave, Scope::Workgroup];

    /// The scope's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Lane => "lane",
            Scope::ActiveLanes => "active_lanes",
            Scope::Wave => "wave",
            Scope::Workgroup => "workgroup",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Scope, UnknownScope> {
        let found = Scope::ALL.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| UnknownScope(name.to_owned()))
    }
}

/// A name that no scope has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a scope; expected one of: {names}",
    name = .0,
    names = Scope::ALL.map(Scope::name).join(", ")
)]
pub struct UnknownScope(pub String);
