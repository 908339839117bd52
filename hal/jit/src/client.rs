//! Compiling in the background: a thread that sends IR to the service and does with the answers what it
//! was asked to.

use crate::object_code::key;
use crate::service::ServiceAddress;
use crate::signals::spawn;
use crate::store::Store;
use crate::{CompileError, Compiler, Extensions, message};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What is done in the background.
type Job = Box<dyn FnOnce(&mut dyn Compiler) + Send>;

/// How long a process executes from the first thing that it wants compiled before the service starts for
/// it: about what starting it and its first answers cost, so that what ends sooner is not slower for it.
const RELUCTANCE: Duration = Duration::from_millis(150);

/// The service of this process.
static SERVICE: OnceLock<ServiceAddress> = OnceLock::new();

/// Has this process use a service from now on; the first one stays.
pub fn use_service(address: ServiceAddress) {
    let _ = SERVICE.set(address);
}

/// The service of this process, if it has one.
pub fn service() -> Option<&'static ServiceAddress> {
    SERVICE.get()
}

/// Whether the service was asked for ahead.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// Has the service of this process start, if it has one, which it otherwise does when it is first asked
/// for something: for programs that will ask for sure, and have other things to do before.
pub fn wake_service() {
    AWAKE.store(true, Ordering::Relaxed);
    // It starts when somebody connects, and takes a connection that is closed for a client that is done.
    let _ = SERVICE.get().map(ServiceAddress::connect);
}

/// Does something in the background, one thing after the other, where a compiler is at hand. Without a
/// service nothing is done.
pub fn in_background(job: impl FnOnce(&mut dyn Compiler) + Send + 'static) {
    static JOBS: OnceLock<Option<Jobs>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| Jobs::begin(SERVICE.get()?.clone()));
    // A thread is not there any more in a process that was forked from the one that has begun it.
    if let Some(jobs) = jobs
        && jobs.process == std::process::id()
    {
        let _ = jobs.sender.send(Box::new(job));
    }
}

/// The thread's.
struct Jobs {
    sender: Sender<Job>,
    process: u32,
}

impl Jobs {
    fn begin(service: ServiceAddress) -> Option<Jobs> {
        let (sender, receiver) = channel::<Job>();
        spawn("jit", move || work(&receiver, service)).ok()?;
        Some(Jobs { sender, process: std::process::id() })
    }
}

fn work(jobs: &Receiver<Job>, service: ServiceAddress) {
    let begun = Instant::now();
    let mut connection =
        Connection { store: service.store(), service, begun, stream: None, lost: 0 };
    for job in jobs {
        job(&mut connection);
    }
}

/// Connections that may break before no other one is made.
const LOSSES: u32 = 16;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A connection to the service, made when it is needed.
struct Connection {
    service: ServiceAddress,
    /// What it has made.
    store: Store,
    /// When the first thing was to be compiled.
    begun: Instant,
    stream: Option<UnixStream>,
    /// Those that broke.
    lost: u32,
}

impl Connection {
    fn ask(&mut self, ir: &str, extensions: Extensions) -> io::Result<Result<Vec<u8>, String>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                if !AWAKE.load(Ordering::Relaxed) {
                    sleep(RELUCTANCE.saturating_sub(self.begun.elapsed()));
                }
                let stream = self.service.connect()?;
                stream.set_read_timeout(Some(PATIENCE))?;
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
        if self.lost > LOSSES {
            return Err(CompileError("the service was lost too often".into()));
        }
        match self.ask(ir, extensions) {
            Ok(answer) => answer.map_err(CompileError),
            Err(error) => {
                // What has made it crash is not asked for again; the next IR may do.
                self.stream = None;
                self.lost += 1;
                Err(CompileError(format!("no answer from the service: {error}")))
            }
        }
    }
}
