//! The service: a process that compiles for its clients.
//!
//! The service is a second instance of the starting program, and ends when that program ends. It forks
//! a child for each client, so that IR which makes LLVM crash, hang or exhaust memory ends only one
//! connection.

use crate::object_code::{key, prepare};
use crate::signals::{spawn_with_signals_blocked, unblock};
use crate::store::Store;
use crate::{Compiler, Extensions, InProcess, message};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Resource, Rlimit, getuid, nice, setrlimit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Environment variable that makes a program run as the service. Its value is the cache folder.
const VARIABLE: &str = "FLIPWAVE_JIT_SERVICE";
/// Address space limit of a connection's process, in bytes.
const MEMORY: u64 = 3 << 30;
/// Time limit for one module, in seconds.
const SECONDS: u32 = 60;
/// Nice increment of the service: clients execute while it compiles.
const NICE: i32 = 5;

/// Socket and cache folder of a service. Passed between processes of one build during one run, so it has
/// no version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAddress {
    /// Name of the service's socket in Linux's abstract namespace.
    socket: String,
    /// Folder of the object code cache.
    folder: PathBuf,
}

/// A service started by this process. It ends when this value is dropped.
pub struct Service {
    address: ServiceAddress,
    /// Read end of a pipe. The service ends when no process has it open.
    _alive: OwnedFd,
}

impl Service {
    /// Prepares a service that is a second instance of `program`, whose `main` must begin with
    /// [`serve_if_requested`]. The service starts when the first client connects, and caches object
    /// code in `folder`.
    ///
    /// # Errors
    /// If the system cannot create the socket, the pipe or the thread.
    pub fn start(program: PathBuf, folder: PathBuf) -> io::Result<Service> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let socket = format!("flipwave-jit-{process}-{number}");
        let address = ServiceAddress { socket, folder };
        let listener = UnixListener::bind_addr(&address.socket_address()?)?;
        let folder = address.folder.clone().into_os_string();
        let (read_end, write_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        spawn_with_signals_blocked("jit service", move || {
            // Programs that never compile do not start the service.
            if wait_for(&[(&listener, PollFlags::IN)]).is_ok() {
                let _ = launch(&program, folder, listener, write_end);
            }
        })?;
        Ok(Service { address, _alive: read_end })
    }

    /// Address for clients.
    pub fn address(&self) -> &ServiceAddress {
        &self.address
    }
}

impl ServiceAddress {
    fn socket_address(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(self.socket.as_bytes())
    }

    /// The service's cache.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.folder.clone())
    }

    /// Connects to the service if it belongs to the same user.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect_addr(&self.socket_address()?)?;
        if is_same_user(&stream) { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// Returns `true` if the peer is a process of the same user.
fn is_same_user(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == getuid())
}

/// Starts the service process and waits for its end.
fn launch(
    program: &Path,
    folder: OsString,
    listener: UnixListener,
    alive: OwnedFd,
) -> io::Result<()> {
    let mut command = Command::new(program);
    command.env(VARIABLE, folder).stdin(OwnedFd::from(listener)).stdout(alive);
    // Signals from the terminal, such as Ctrl-C, must not reach the service.
    command.stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    drop(command);
    child.wait()?;
    Ok(())
}

/// Runs the service and does not return if the process was started as a service; otherwise returns.
pub fn serve_if_requested() {
    if let Some(folder) = std::env::var_os(VARIABLE) {
        let store = Store::new(folder.into());
        let code = i32::from(serve(&store).is_err());
        std::process::exit(code);
    }
}

/// Serves clients until the starting process ends.
fn serve(store: &Store) -> io::Result<()> {
    // SIGALRM must be delivered, to end compilations that take too long.
    unblock();
    // SAFETY: standard input is the listener, see `launch`; nothing else uses it.
    let listener = UnixListener::from(unsafe { OwnedFd::from_raw_fd(0) });
    let alive = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // SAFETY: ignoring SIGCHLD reaps children automatically; this process does not wait for them.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // A failure only leaves the priority unchanged.
    let _ = nice(NICE);
    prepare();
    loop {
        // The write end of a pipe without a reader reports an error.
        wait_for(&[(&listener, PollFlags::IN), (&alive, PollFlags::empty())])?;
        if is_closed(&alive)? {
            store.trim();
            return Ok(());
        }
        let (stream, _) = listener.accept()?;
        if !is_same_user(&stream) {
            continue;
        }
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                let done = set_limits().and_then(|()| answer(stream, store));
                // SAFETY: `_exit` skips destructors and exit handlers, which belong to the parent.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
    }
}

/// Waits until one of the files has an event.
fn wait_for(files: &[(&dyn AsFd, PollFlags)]) -> io::Result<()> {
    let mut files: Vec<PollFd<'_>> =
        files.iter().map(|(file, flags)| PollFd::from_borrowed_fd(file.as_fd(), *flags)).collect();
    loop {
        match poll(&mut files, None) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(|_| ()).map_err(io::Error::from),
        }
    }
}

/// Returns `true` if the pipe's read end is closed.
fn is_closed(alive: &File) -> io::Result<bool> {
    let mut files = [PollFd::new(alive, PollFlags::empty())];
    poll(&mut files, Some(&rustix::event::Timespec::default()))?;
    Ok(files[0].revents().contains(PollFlags::ERR))
}

/// Sets the resource limits of a connection's process.
fn set_limits() -> io::Result<()> {
    for (resource, limit) in [(Resource::As, MEMORY), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Answers a client's requests until it disconnects.
fn answer(mut stream: UnixStream, store: &Store) -> io::Result<()> {
    let mut from = io::BufReader::new(stream.try_clone()?);
    while let Some((ir, extensions)) = message::receive_request(&mut from)? {
        // SAFETY: SIGALRM has its default action, which ends the process as intended.
        unsafe { libc::alarm(SECONDS) };
        let object = cached_or_compiled(&ir, extensions, store);
        // SAFETY: as above.
        unsafe { libc::alarm(0) };
        message::send_answer(&mut stream, object.as_deref().map_err(String::as_str))?;
    }
    Ok(())
}

/// Returns object code from the cache, or compiles it and stores it in the cache.
fn cached_or_compiled(ir: &str, extensions: Extensions, store: &Store) -> Result<Vec<u8>, String> {
    let key = key(ir, extensions);
    if let Some(object) = store.get(key) {
        return Ok(object);
    }
    let object = InProcess.compile(ir, extensions).map_err(|error| error.to_string())?;
    // A failure only means that the module is compiled again later.
    let _ = store.put(key, &object);
    Ok(object)
}
