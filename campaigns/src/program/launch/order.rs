//! Orders for `flipwave launch` from the campaign that starts it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable that holds a [`LaunchOrder`], as JSON.
pub(crate) const VARIABLE: &str = "FLIPWAVE_LAUNCH";

/// A fault for `flipwave launch` to inject. Passed between processes of one build during one run, so it has no
/// version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    /// The file for events.
    pub report: PathBuf,
    /// The fault site, as text.
    pub site: String,
    /// The file with the function of the site, if it has one.
    pub function: Option<PathBuf>,
    /// The file with modules whose hooks inject the fault, a list of [`HookedCode`](flipwave_injector_ptx::HookedCode) as JSON.
    pub hooks: PathBuf,
    /// Time after which a dispatch counts as hung.
    pub time_limit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn orders_are_passed_as_json() {
        let order = LaunchOrder {
            report: "r".into(),
            site: "s".into(),
            function: None,
            hooks: "h".into(),
            time_limit: Duration::from_millis(1500),
        };
        let expected = json!({
            "report": "r", "site": "s", "function": null, "hooks": "h",
            "time_limit": {"secs": 1, "nanos": 500_000_000},
        });
        assert_eq!(serde_json::to_value(&order).expect("JSON"), expected);
        assert_eq!(serde_json::from_value::<LaunchOrder>(expected).expect("an order"), order);
    }
}
