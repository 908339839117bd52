//! The service: a process that compiles for others.
//!
//! It is the program itself, started once more, and ends with whoever has started it. For each client
//! it has a child, so that what makes LLVM crash, hang or grow ends one connection.

use crate::object_code::{key, prepare};
use crate::signals::{spawn, unblock};
use crate::store::Store;
use crate::{Compiler, Extensions, Here, message};
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

/// The environment variable that makes a program the service: the folder where it keeps what it makes.
const VARIABLE: &str = "FLIPWAVE_JIT_SERVICE";
/// Most bytes of a connection's process.
const MEMORY: u64 = 3 << 30;
/// Most seconds for one module.
const SECONDS: u32 = 60;
/// What the service is nicer by than its clients: they execute meanwhile.
const NICE: i32 = 5;

/// Where clients find a service, and what it has made. Passed between processes of one build during one
/// run, so it has no version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAddress {
    /// The name of its socket in Linux's abstract namespace.
    socket: String,
    /// The folder where it keeps object code.
    folder: PathBuf,
}

/// A service that this process has started. It ends when this is dropped.
pub struct Service {
    address: ServiceAddress,
    /// The service ends when nobody has this end any more.
    _alive: OwnedFd,
}

impl Service {
    /// Makes ready a service, which is `program` once more: its `main` must begin with
    /// [`serve_if_asked`]. It is started when the first client comes, and keeps object code below
    /// `folder`.
    ///
    /// # Errors
    /// If the system has no socket for it.
    pub fn start(program: PathBuf, folder: PathBuf) -> io::Result<Service> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let socket = format!("flipwave-jit-{process}-{number}");
        let address = ServiceAddress { socket, folder };
        let listener = UnixListener::bind_addr(&address.of_socket()?)?;
        let folder = address.folder.clone().into_os_string();
        let (ours, its) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        spawn("jit service", move || {
            // Whoever does not compile anything does not start it.
            if wait_for(&[(&listener, PollFlags::IN)]).is_ok() {
                let _ = launch(&program, folder, listener, its);
            }
        })?;
        Ok(Service { address, _alive: ours })
    }

    /// Where clients find it.
    pub fn address(&self) -> &ServiceAddress {
        &self.address
    }
}

impl ServiceAddress {
    fn of_socket(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(self.socket.as_bytes())
    }

    /// What it has made.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.folder.clone())
    }

    /// Connects to it, if it is this user's.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect_addr(&self.of_socket()?)?;
        match is_own(&stream) {
            true => Ok(stream),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// Whether the other end is a process of the same user.
fn is_own(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|other| other.uid == getuid())
}

/// Starts the process, and waits for its end.
fn launch(
    program: &Path,
    folder: OsString,
    listener: UnixListener,
    alive: OwnedFd,
) -> io::Result<()> {
    let mut command = Command::new(program);
    command.env(VARIABLE, folder).stdin(OwnedFd::from(listener)).stdout(alive);
    // What ends this process in a terminal must not end it first.
    command.stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    drop(command);
    child.wait()?;
    Ok(())
}

/// Is the service, and does not return, if the process was started as one.
pub fn serve_if_asked() {
    if let Some(folder) = std::env::var_os(VARIABLE) {
        let store = Store::new(folder.into());
        let code = i32::from(serve(&store).is_err());
        std::process::exit(code);
    }
}

/// Serves clients until whoever has started the process is gone.
fn serve(store: &Store) -> io::Result<()> {
    // The alarm must end what takes too long.
    unblock();
    // SAFETY: standard input is the listener, see `launch`; nobody else has it.
    let listener = UnixListener::from(unsafe { OwnedFd::from_raw_fd(0) });
    let alive = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // SAFETY: children that end leave nothing behind, and nobody waits for them.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // Being no nicer does no harm.
    let _ = nice(NICE);
    prepare();
    loop {
        // A pipe without a reader is in error.
        wait_for(&[(&listener, PollFlags::IN), (&alive, PollFlags::empty())])?;
        if is_closed(&alive)? {
            store.trim();
            return Ok(());
        }
        let (stream, _) = listener.accept()?;
        if !is_own(&stream) {
            continue;
        }
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                let done = limit().and_then(|()| answer(stream, store));
                // SAFETY: nothing of the parent's is finished by its child.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
    }
}

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

fn is_closed(alive: &File) -> io::Result<bool> {
    let mut files = [PollFd::new(alive, PollFlags::empty())];
    poll(&mut files, Some(&rustix::event::Timespec::default()))?;
    Ok(files[0].revents().contains(PollFlags::ERR))
}

/// Bounds what a connection's process may take.
fn limit() -> io::Result<()> {
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Answers a client until it is gone.
fn answer(mut stream: UnixStream, store: &Store) -> io::Result<()> {
    let mut from = io::BufReader::new(stream.try_clone()?);
    while let Some((ir, extensions)) = message::receive_request(&mut from)? {
        // SAFETY: the signal ends the process, which is what it is for.
        unsafe { libc::alarm(SECONDS) };
        let made = object(&ir, extensions, store);
        // SAFETY: as above.
        unsafe { libc::alarm(0) };
        message::send_answer(&mut stream, made.as_deref().map_err(String::as_str))?;
    }
    Ok(())
}

/// Object code, kept or made.
fn object(ir: &str, extensions: Extensions, store: &Store) -> Result<Vec<u8>, String> {
    let key = key(ir, extensions);
    if let Some(object) = store.get(key) {
        return Ok(object);
    }
    let object = Here.compile(ir, extensions).map_err(|error| error.to_string())?;
    // What cannot be kept is made again.
    let _ = store.put(key, &object);
    Ok(object)
}
