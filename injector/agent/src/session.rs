//! What the library is to do in the application, as the program that starts it says.

use crate::hooked::HookedSession;
use crate::tool::{ToolPath, ToolSession};
use flipwave_isa::Target;
use flipwave_jit::ServiceAddress;
use flipwave_process_tree::Place;
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
    pub fn is(&self, process: &Place, command: &str) -> bool {
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
