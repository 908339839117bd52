//! The plan of an injection with hooks: instrumented code, prepared before the application runs.

use crate::session::TargetProcess;
use crate::tool::ToolPath;
use flipwave_injector_amdgpu::SiteHooks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of an injection with hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInjectionSession {
    /// The target process.
    pub process: TargetProcess,
    /// The fault site, as text.
    pub site: String,
    /// The file with the function of the site, a [`FunctionSource`](flipwave_injector::FunctionSource) as
    /// JSON, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<PathBuf>,
    /// The file with the [`HookPlan`], as JSON.
    pub plan: PathBuf,
    /// A file with the addresses of the program's buffers by number, as a JSON list, for faults in
    /// buffers. It is read when the dispatch of the fault starts.
    pub buffers: Option<PathBuf>,
    /// The run time after which a dispatch counts as hung.
    pub time_limit: Duration,
    /// The device: the embedded GPU, or this machine's GPU.
    pub by: ToolPath,
}

/// The instrumented code for code objects that the application loads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookPlan(pub Vec<PlannedCode>);

/// The instrumented code for one code object, or for one of its kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCode {
    /// The file with the original code object.
    pub original: PathBuf,
    /// The file with the instrumented code object, which is loaded in place of the original or in addition
    /// to it.
    pub replacement: PathBuf,
    /// The only kernel of the instrumented code, if it is loaded in addition to the original.
    pub kernel: Option<String>,
    /// For each kernel with an original and an instrumented version in the replacement, the symbol of the
    /// instrumented version's descriptor.
    pub versions: BTreeMap<String, String>,
    /// The hooks.
    pub hooks: SiteHooks,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn serialized_names_of_plans_are_fixed() {
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
