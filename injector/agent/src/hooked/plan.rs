//! What the library needs about the hooks, as whoever has planned the fault leaves it.

use crate::session::StruckProcess;
use crate::tool::ToolPath;
use flipwave_injector::SiteHooks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A fault by hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookedSession {
    /// The process that is struck.
    pub process: StruckProcess,
    /// The site, as text.
    pub site: String,
    /// The file with the [`HookPlan`], as JSON.
    pub plan: PathBuf,
    /// A file with the addresses of the program's data by their numbers, a JSON list, for faults in
    /// those. It is read when the fault's dispatch begins.
    pub buffers: Option<PathBuf>,
    /// After which time a dispatch counts as hung.
    pub time_limit: Duration,
    /// The embedded GPU, or this machine's own.
    pub by: ToolPath,
}

/// Code with hooks, for code objects that the application loads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookPlan(pub Vec<PlannedCode>);

/// Code with hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCode {
    /// A file with the code object as the application loads it.
    pub original: PathBuf,
    /// A file with what is loaded in its place, or beside it.
    pub replacement: PathBuf,
    /// The kernel that the file has, under its own name, where it is loaded beside.
    pub kernel: Option<String>,
    /// By kernel, the symbol of the descriptor of its version with hooks, where there are two.
    pub versions: BTreeMap<String, String>,
    /// The hooks.
    pub hooks: SiteHooks,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plans_have_fixed_names() {
        let plan = json!([{
            "original": "0.original", "replacement": "0.hooked", "kernel": "add",
            "versions": {"add": "add.kd"},
            "hooks": {
                "start": 4096, "bytes": [1], "size": 8, "variables": {"x": {"start": 0, "end": 8}},
            },
        }]);
        let read: HookPlan = serde_json::from_value(plan.clone()).expect("a plan");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), plan);
    }
}
