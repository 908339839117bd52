//! The client of the service: a background thread that runs jobs with access to a compiler.

use crate::object_code::key;
use crate::service::ServiceAddress;
use crate::signals::spawn_with_signals_blocked;
use crate::store::Store;
use crate::{CompileError, Compiler, Extensions, message};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A job of the background thread.
type Job = Box<dyn FnOnce(&mut dyn Compiler) + Send>;

/// Time from the first compilation request until the client connects to the service, which starts it.
/// About the cost of starting the service and of its first answers, so that shorter processes are not
/// slowed down.
const START_DELAY: Duration = Duration::from_millis(150);

/// The service of this process.
static SERVICE: OnceLock<ServiceAddress> = OnceLock::new();

/// Sets the service of this process. Later calls have no effect.
pub fn use_service(address: ServiceAddress) {
    let _ = SERVICE.set(address);
}

/// The service of this process, if it has one.
pub fn service() -> Option<&'static ServiceAddress> {
    SERVICE.get()
}

/// `start_service` was called.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts the service of this process, if it has one. By default the service starts at the first
/// request; call this early in programs that will certainly compile.
pub fn start_service() {
    STARTED.store(true, Ordering::Relaxed);
    // The first connection starts the service, which treats a closed connection as a finished client.
    let _ = SERVICE.get().map(ServiceAddress::connect);
}

/// Runs a job on the background thread with access to a compiler. Jobs run one after the other. Without
/// a service the job is dropped.
pub fn in_background(job: impl FnOnce(&mut dyn Compiler) + Send + 'static) {
    static JOBS: OnceLock<Option<Jobs>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| Jobs::start(SERVICE.get()?.clone()));
    // A forked process does not have the background thread of its parent.
    if let Some(jobs) = jobs
        && jobs.process == std::process::id()
    {
        let _ = jobs.sender.send(Box::new(job));
    }
}

/// The background thread.
struct Jobs {
    sender: Sender<Job>,
    /// Process that started the thread.
    process: u32,
}

impl Jobs {
    fn start(service: ServiceAddress) -> Option<Jobs> {
        let (sender, receiver) = channel::<Job>();
        spawn_with_signals_blocked("jit", move || work(&receiver, service)).ok()?;
        Some(Jobs { sender, process: std::process::id() })
    }
}

fn work(jobs: &Receiver<Job>, service: ServiceAddress) {
    let start = Instant::now();
    let mut connection =
        Connection { store: service.store(), service, start, stream: None, failures: 0 };
    for job in jobs {
        job(&mut connection);
    }
}

/// Number of failed connections after which the client gives up.
const MAX_FAILURES: u32 = 16;
/// Timeout of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// A connection to the service, opened on the first request.
struct Connection {
    service: ServiceAddress,
    /// The service's cache.
    store: Store,
    /// Time of the first job.
    start: Instant,
    stream: Option<UnixStream>,
    /// Number of failed connections.
    failures: u32,
}

impl Connection {
    fn request(&mut self, ir: &str, extensions: Extensions) -> io::Result<Result<Vec<u8>, String>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                if !STARTED.load(Ordering::Relaxed) {
                    sleep(START_DELAY.saturating_sub(self.start.elapsed()));
                }
                let stream = self.service.connect()?;
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                self.stream.insert(stream)
            }
        };
        message::send_request(stream, ir, extensions)?;
        message::receive_answer(stream)
    }
}

impl Compiler for Connection {
    fn compile(&mut self, ir: &str, extensions: Extensions) -> Result<Vec<u8>, CompileError> {
        if let Some(object) = self.store.get(key(ir, extensions)) {
            return Ok(object);
        }
        if self.failures > MAX_FAILURES {
            return Err(CompileError("too many failed connections to the service".into()));
        }
        match self.request(ir, extensions) {
            Ok(answer) => answer.map_err(CompileError),
            Err(error) => {
                // Do not retry IR that may have crashed the service; the next IR may succeed.
                self.stream = None;
                self.failures += 1;
                Err(CompileError(format!("no answer from the service: {error}")))
            }
        }
    }
}
