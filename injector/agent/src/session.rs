//! What the library is to do in the application, as the program that starts it says.
//!
//! Sessions, plans of hooks and reports pass between the program and the library of one build, during one
//! run. None of them is kept, so they have no version.

use crate::hooked::HookedSession;
use crate::tool::{ToolPath, ToolSession};
use flipwave_isa::Target;
use flipwave_jit::ServiceAddress;
use flipwave_process_tree::ProcessPath;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The environment variable that holds a session, as JSON.
pub const VARIABLE: &str = "FLIPWAVE_SESSION";

/// What the library is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The GPUs, `gfx90a`, in the order in which the application finds them.
    pub gpus: Vec<String>,
    /// What is done with dispatches.
    pub task: Task,
    /// Where the library reports what happened, see [`crate::Event`]; nowhere if not said.
    pub report: Option<PathBuf>,
    /// The table of the application's processes, see [`flipwave_process_tree::Table`].
    pub processes: Option<PathBuf>,
    /// Whether each dispatch is reported.
    pub counts: bool,
    /// The service that compiles code of the embedded GPU, if there is one, see [`flipwave_jit::Service`].
    pub compiler: Option<ServiceAddress>,
}

/// What is done with dispatches besides executing them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Nothing.
    Run,
    /// Nothing, and workgroups of a dispatch are divided among threads.
    Parallel {
        /// How many at most.
        threads: NonZeroUsize,
        /// Also those whose order leaves something that can be seen.
        any_order: bool,
    },
    /// What breaks the rules of the hardware is reported.
    Strict {
        /// Data races, too.
        races: bool,
    },
    /// How exact the operations executed are is reported, and what the others decide.
    Fidelity,
    /// The run is recorded.
    Capture {
        /// The file, which must not be there yet. Processes after the first write to files beside it.
        file: PathBuf,
        /// The application and its arguments, as they are written into the file.
        command: String,
    },
    /// A fault is injected.
    Inject {
        /// The process that is struck.
        process: StruckProcess,
        /// Its site, as text.
        site: String,
        /// A file with the watchdogs of dispatches, by number: a JSON list of wave instructions.
        /// Dispatches beyond have the longest.
        limits: PathBuf,
    },
    /// A fault is injected by hooks.
    InjectByHooks(HookedSession),
    /// A tool looks at the kernels.
    Tool(ToolSession),
}

/// The process of an application that is struck: the first to dispatch a kernel of its own, of those
/// that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StruckProcess {
    /// All are.
    #[default]
    Any,
    /// Those of this MPI rank.
    Rank(u32),
    /// Those whose program and arguments contain this.
    Command(String),
    /// The one at this place in the tree, as text.
    Place(String),
}

impl StruckProcess {
    /// Whether a process is meant.
    pub fn is(&self, process: &ProcessPath, command: &str) -> bool {
        match self {
            StruckProcess::Any => true,
            StruckProcess::Rank(rank) => process.rank == Some(*rank),
            StruckProcess::Command(part) => command.contains(part),
            StruckProcess::Place(place) => *place == process.to_string(),
        }
    }
}

impl Task {
    /// How the library gets to see code objects and dispatches through the runtime, if it has to.
    pub(crate) fn tool_path(&self) -> Option<ToolPath> {
        match self {
            Task::Tool(tool) => Some(tool.by),
            Task::InjectByHooks(hooked) => Some(hooked.by),
            Task::Run
            | Task::Parallel { .. }
            | Task::Strict { .. }
            | Task::Fidelity
            | Task::Capture { .. }
            | Task::Inject { .. } => None,
        }
    }
}

impl Session {
    /// A session that runs an application and does nothing else. The application has this process's
    /// compiler.
    pub fn new(gpus: Vec<String>) -> Session {
        let compiler = flipwave_jit::service().cloned();
        Session { gpus, task: Task::Run, report: None, processes: None, counts: false, compiler }
    }

    /// The session of this process.
    ///
    /// # Errors
    /// In words, if there is none or it cannot be read.
    pub(crate) fn of_process() -> Result<Session, String> {
        let text = std::env::var(VARIABLE).map_err(|_| {
            format!("{VARIABLE} is not set: start the application with flipwave exec")
        })?;
        serde_json::from_str(&text).map_err(|error| {
            format!(
                "{VARIABLE} cannot be read: {error}; this library and the program flipwave have to be \
                 of one build: install both again"
            )
        })
    }

    /// The GPUs' targets.
    ///
    /// # Errors
    /// In words, if there is none of a name.
    pub fn targets(&self) -> Result<Vec<Target>, String> {
        let target = |gpu: &String| gpu.parse().map_err(|error| format!("{error}"));
        self.gpus.iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolName;
    use flipwave_hooks::layout::Placement;
    use flipwave_tools::{Options, Per};
    use serde_json::json;
    use std::time::Duration;

    fn tool(name: ToolName, by: ToolPath, per: Per, placement: Option<Placement>) -> Task {
        let options = Options { kernel: None, per, records: 5, placement };
        Task::Tool(ToolSession { name, options, by, out: "out.csv".into() })
    }

    /// Names that change make programs and libraries of two builds misunderstand each other.
    #[test]
    fn sessions_have_fixed_names() {
        let mut session = Session::new(vec!["gfx90a".to_owned()]);
        session.compiler = None;
        session.report = Some("report".into());
        let expected = json!({
            "gpus": ["gfx90a"], "task": "run", "report": "report", "processes": null,
            "counts": false, "compiler": null,
        });
        assert_eq!(serde_json::to_value(&session).expect("JSON"), expected);
        let hooked = HookedSession {
            process: StruckProcess::Rank(1),
            site: "site".to_owned(),
            plan: "plan".into(),
            buffers: None,
            time_limit: Duration::from_millis(1500),
            by: ToolPath::Hardware,
        };
        let inject = |process| Task::Inject { process, site: "site".into(), limits: "l".into() };
        let tasks = [
            (
                Task::Parallel { threads: NonZeroUsize::MIN, any_order: true },
                json!({"parallel": {"threads": 1, "any_order": true}}),
            ),
            (Task::Strict { races: true }, json!({"strict": {"races": true}})),
            (Task::Fidelity, json!("fidelity")),
            (
                Task::Capture { file: "f".into(), command: "c".into() },
                json!({"capture": {"file": "f", "command": "c"}}),
            ),
            (
                inject(StruckProcess::Any),
                json!({"inject": {"process": "any", "site": "site", "limits": "l"}}),
            ),
            (
                inject(StruckProcess::Command("a".into())),
                json!({"inject": {"process": {"command": "a"}, "site": "site", "limits": "l"}}),
            ),
            (
                inject(StruckProcess::Place("0.1".into())),
                json!({"inject": {"process": {"place": "0.1"}, "site": "site", "limits": "l"}}),
            ),
            (
                Task::InjectByHooks(hooked),
                json!({"inject_by_hooks": {
                    "process": {"rank": 1}, "site": "site", "plan": "plan", "buffers": null,
                    "time_limit": {"secs": 1, "nanos": 500_000_000}, "by": "hardware",
                }}),
            ),
        ];
        for (task, expected) in tasks {
            assert_eq!(serde_json::to_value(&task).expect("JSON"), expected);
        }
        let tools = [
            (ToolName::InstructionCount, "instruction_count"),
            (ToolName::OpcodeHistogram, "opcode_histogram"),
            (ToolName::MemoryTrace, "memory_trace"),
            (ToolName::AddressDivergence, "address_divergence"),
            (ToolName::BranchDivergence, "branch_divergence"),
            (ToolName::BankConflicts, "bank_conflicts"),
            (ToolName::KernelClock, "kernel_clock"),
        ];
        for (name, text) in tools {
            let task = tool(name, ToolPath::Hook, Per::Block, None);
            let expected = json!({"tool": {
                "name": text, "by": "hook", "out": "out.csv",
                "options": {"kernel": null, "per": "block", "records": 5, "placement": null},
            }});
            assert_eq!(serde_json::to_value(&task).expect("JSON"), expected);
        }
        for (placement, text) in
            [(Placement::Inline, "inline"), (Placement::Trampoline, "trampoline")]
        {
            let name = ToolName::MemoryTrace;
            let task = tool(name, ToolPath::Embedded, Per::Instruction, Some(placement));
            let task = serde_json::to_value(&task).expect("JSON");
            assert_eq!(task["tool"]["by"], "embedded");
            assert_eq!(task["tool"]["options"]["per"], "instruction");
            assert_eq!(task["tool"]["options"]["placement"], text);
        }
    }
}
