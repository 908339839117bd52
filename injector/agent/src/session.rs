//! The session: the agent's instructions from the program that starts the application.
//!
//! Sessions, hook plans and reports pass between the program and the agent of the same build during one run.
//! They are not stored, so they have no version.

use crate::hook_injection::HookInjectionSession;
use crate::tool::{ToolPath, ToolSession};
use flipwave_isa::Target;
use flipwave_jit::ServiceAddress;
use flipwave_kfd::CountedKernels;
use flipwave_process_tree::ProcessPath;
use flipwave_ptx::Ptx;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The environment variable that holds a session, as JSON.
pub const VARIABLE: &str = "FLIPWAVE_SESSION";

/// The agent's task in an application, and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The GPUs that the application finds, such as `gfx90a` or `sm_90`, in order.
    pub gpus: Vec<String>,
    /// The index of the only GPU whose kernels are recorded and get faults; `None` for all GPUs.
    pub target_gpu: Option<usize>,
    /// Patterns of kernels that are executed like those of the runtime.
    pub ignored_kernels: Vec<String>,
    /// The task.
    pub task: Task,
    /// The report file, see [`crate::Event`]; `None` for no report.
    pub report: Option<PathBuf>,
    /// The table of the application's processes, see [`flipwave_process_tree::Table`].
    pub processes: Option<PathBuf>,
    /// Reports each dispatch with [`crate::Event::Executed`].
    pub counts: bool,
    /// The service that compiles code of the embedded GPU, if any; see [`flipwave_jit::Service`].
    pub compiler: Option<ServiceAddress>,
}

/// A task of the agent, in addition to executing dispatches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Only executes dispatches.
    Run,
    /// Executes the workgroups of a dispatch on several threads.
    Parallel {
        /// The maximum number of threads.
        threads: NonZeroUsize,
        /// Includes dispatches whose results depend on the order of workgroups.
        any_order: bool,
    },
    /// Reports violations of hardware rules.
    Strict {
        /// Includes data races.
        races: bool,
    },
    /// Reports the fidelity of the executed operations, and the decisions that depend on inexact results.
    Fidelity,
    /// Records the run.
    Capture {
        /// The capture file, which must not exist. Processes after the first append their path in the
        /// process tree to the name.
        file: PathBuf,
        /// The application and its arguments, to be stored in the capture.
        command: String,
    },
    /// Injects a fault inside the embedded GPU, or on GPUs for PTX with hooks.
    Inject {
        /// The target process.
        process: TargetProcess,
        /// The fault site, as text.
        site: String,
        /// A file with the watchdog limits of dispatches in wave instructions, by dispatch number, as a
        /// JSON list. Further dispatches get the largest limit.
        limits: PathBuf,
        /// The file with the function of the site, a [`FunctionSource`](flipwave_injector::FunctionSource)
        /// as JSON, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<PathBuf>,
        /// On GPUs for PTX, the file with the modules whose hooks inject the fault, a list of
        /// [`HookedCode`](flipwave_injector_ptx::HookedCode) as JSON; `None` to inject inside the GPU.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hooks: Option<PathBuf>,
    },
    /// Injects a fault with hooks in the code of AMD's GPUs.
    #[serde(rename = "inject_by_hooks")]
    InjectWithHooks(HookInjectionSession),
    /// Instruments or observes the kernels with a tool.
    Tool(ToolSession),
}

/// A filter that selects the target process of a fault: the first matching process that dispatches a kernel
/// other than a runtime kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetProcess {
    /// All processes.
    #[default]
    Any,
    /// Processes with this MPI rank.
    Rank(u32),
    /// Processes whose program and arguments contain this text.
    Command(String),
    /// The process with this path in the process tree, as text.
    #[serde(rename = "place")]
    Path(String),
}

impl TargetProcess {
    /// Returns `true` if the filter matches a process.
    pub fn matches(&self, process: &ProcessPath, command: &str) -> bool {
        match self {
            TargetProcess::Any => true,
            TargetProcess::Rank(rank) => process.rank == Some(*rank),
            TargetProcess::Command(part) => command.contains(part),
            TargetProcess::Path(path) => *path == process.to_string(),
        }
    }
}

impl Task {
    /// The way in which the agent intercepts code objects and dispatches in the runtime; `None` for tasks
    /// that do not.
    pub(crate) fn tool_path(&self) -> Option<ToolPath> {
        match self {
            Task::Tool(tool) => Some(tool.by),
            Task::InjectWithHooks(injection) => Some(injection.by),
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
    /// A session that only runs an application, which shares this process's compile service.
    pub fn new(gpus: Vec<String>) -> Session {
        let compiler = flipwave_jit::service().cloned();
        Session {
            gpus,
            target_gpu: None,
            ignored_kernels: Vec::new(),
            task: Task::Run,
            report: None,
            processes: None,
            counts: false,
            compiler,
        }
    }

    /// Reads the session of this process from its environment.
    ///
    /// # Errors
    /// A message, if the variable is missing or invalid.
    pub(crate) fn of_process() -> Result<Session, String> {
        let text = std::env::var(VARIABLE).map_err(|_| {
            format!("{VARIABLE} is not set; start the application with flipwave exec")
        })?;
        serde_json::from_str(&text).map_err(|error| {
            format!(
                "invalid {VARIABLE}: {error}; the agent library and the program flipwave must come from \
                 the same build, install both again"
            )
        })
    }

    /// Returns `true` if the GPUs are NVIDIA's, which execute PTX.
    pub fn is_for_ptx(&self) -> bool {
        self.gpus.iter().any(|gpu| Ptx::new(gpu).is_some())
    }

    /// The index of the GPU that a recording or a fault concerns.
    ///
    /// # Errors
    /// A message, if the session has several GPUs and selects none.
    pub(crate) fn single_gpu(&self, action: &str) -> Result<usize, String> {
        match (self.target_gpu, self.gpus.len()) {
            (Some(index), count) if index < count => Ok(index),
            (Some(index), count) => Err(format!("no GPU {index}; there are {count}")),
            (None, 1) => Ok(0),
            (None, count) => Err(format!("cannot {action} with {count} GPUs; expected 1")),
        }
    }

    /// The kernels that are counted on the GPU with an index.
    pub(crate) fn counted_kernels(&self, gpu: usize) -> CountedKernels {
        match self.target_gpu {
            Some(target) if target != gpu => CountedKernels::None,
            _ if self.ignored_kernels.is_empty() => CountedKernels::All,
            _ => CountedKernels::Except(self.ignored_kernels.clone()),
        }
    }

    /// The targets of the GPUs that execute PTX.
    ///
    /// # Errors
    /// A message, if a GPU is another one.
    pub(crate) fn ptx_targets(&self) -> Result<Vec<Ptx>, String> {
        let target = |gpu: &String| {
            let other = || {
                format!(
                    "the application uses CUDA, but {gpu} is not a GPU for it; use `--gpu sm_90`"
                )
            };
            Ptx::new(gpu).ok_or_else(other)
        };
        self.gpus.iter().map(target).collect()
    }

    /// The targets of the GPUs.
    ///
    /// # Errors
    /// A message, if a name is unknown.
    pub fn targets(&self) -> Result<Vec<Target>, String> {
        let target = |gpu: &String| gpu.parse().map_err(|error| format!("{error}"));
        self.gpus.iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_hooks::layout::Placement;
    use flipwave_tools::Options;
    use serde_json::json;
    use std::time::Duration;

    fn tool(shipped: Option<&str>, by: ToolPath, placement: Option<Placement>) -> Task {
        let options = Options { kernel: None, records: 5, placement };
        let shipped = shipped.map(str::to_owned);
        let file = "tool.json".into();
        Task::Tool(ToolSession { file, shipped, options, by, out: "out.csv".into() })
    }

    /// The program and the agent of different builds must understand each other's names.
    #[test]
    fn serialized_names_of_sessions_are_fixed() {
        let mut session = Session::new(vec!["gfx90a".to_owned()]);
        session.compiler = None;
        session.report = Some("report".into());
        let expected = json!({
            "gpus": ["gfx90a"], "target_gpu": null, "ignored_kernels": [], "task": "run",
            "report": "report", "processes": null, "counts": false, "compiler": null,
        });
        assert_eq!(serde_json::to_value(&session).expect("JSON"), expected);
        session.gpus.push("gfx90a".to_owned());
        assert!(session.single_gpu("capture a run").is_err());
        session.target_gpu = Some(1);
        assert_eq!(session.single_gpu("capture a run"), Ok(1));
        let counted = [0, 1].map(|gpu| session.counted_kernels(gpu));
        assert_eq!(counted, [CountedKernels::None, CountedKernels::All]);
        session.target_gpu = Some(2);
        assert!(session.single_gpu("capture a run").is_err());
        let injection = HookInjectionSession {
            process: TargetProcess::Rank(1),
            site: "site".to_owned(),
            plan: "plan".into(),
            function: None,
            buffers: None,
            time_limit: Duration::from_millis(1500),
            by: ToolPath::Hardware,
        };
        let inject = |process| Task::Inject {
            process,
            site: "site".into(),
            limits: "l".into(),
            function: None,
            hooks: None,
        };
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
                inject(TargetProcess::Any),
                json!({"inject": {"process": "any", "site": "site", "limits": "l"}}),
            ),
            (
                inject(TargetProcess::Command("a".into())),
                json!({"inject": {"process": {"command": "a"}, "site": "site", "limits": "l"}}),
            ),
            (
                inject(TargetProcess::Path("0.1".into())),
                json!({"inject": {"process": {"place": "0.1"}, "site": "site", "limits": "l"}}),
            ),
            (
                Task::InjectWithHooks(injection),
                json!({"inject_by_hooks": {
                    "process": {"rank": 1}, "site": "site", "plan": "plan", "buffers": null,
                    "time_limit": {"secs": 1, "nanos": 500_000_000}, "by": "hardware",
                }}),
            ),
        ];
        for (task, expected) in tasks {
            assert_eq!(serde_json::to_value(&task).expect("JSON"), expected);
        }
        for shipped in [None, Some("opcode-histogram")] {
            let task = tool(shipped, ToolPath::Hook, None);
            let expected = json!({"tool": {
                "file": "tool.json", "shipped": shipped, "by": "hook", "out": "out.csv",
                "options": {"kernel": null, "records": 5, "placement": null},
            }});
            assert_eq!(serde_json::to_value(&task).expect("JSON"), expected);
        }
        for (placement, text) in
            [(Placement::Inline, "inline"), (Placement::Trampoline, "trampoline")]
        {
            let task = tool(None, ToolPath::Embedded, Some(placement));
            let task = serde_json::to_value(&task).expect("JSON");
            assert_eq!(task["tool"]["by"], "embedded");
            assert_eq!(task["tool"]["options"]["placement"], text);
        }
    }
}
