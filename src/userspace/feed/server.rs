// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's socket: a client writes what it wants as a line of JSON
//! ([`Wanted`]), and is sent the stream until one of them has enough.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::stat::{Mode, umask};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use super::Wanted;
use super::hub::{Hub, Viewer};

/// Longest line that says what is wanted, bytes.
const LINE_MAX: u64 = 4096;
/// How long a client may take to say it.
const LINE_TIME: Duration = Duration::from_secs(2);
/// How often it is looked whether a client to whom nothing is sent has left.
const LOOK: Duration = Duration::from_millis(500);
/// How long clients may take for the rest of their stream at the end.
const END_TIME: Duration = Duration::from_millis(500);

/// Serves until it is dropped, which removes the socket, too, and ends all streams.
#[derive(Debug)]
pub struct Server {
    hub: Arc<Hub>,
    path: PathBuf,
    listener: Arc<UnixListener>,
    clients: Arc<Mutex<Vec<Client>>>,
    thread: Option<JoinHandle<()>>,
}

/// A thread that serves one client.
#[derive(Debug)]
struct Client {
    socket: UnixStream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Listens at `path`; whoever is in the group `gid` may watch, and root. A socket of a dead
    /// daemon is replaced: the caller holds the lock that shows it dead.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn launch(path: &Path, gid: u32, hub: &Arc<Hub>) -> Result<Self> {
        let at = || format!("making the socket {} for viewers", path.display());
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(at);
            }
            _ => {}
        }
        // nobody comes in between bind(2) and chmod(2)
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = Arc::new(listener.with_context(at)?);
        chown(path, None, Some(gid)).with_context(at)?;
        fs::set_permissions(path, Permissions::from_mode(0o660)).with_context(at)?;
        let clients = Arc::default();
        let (ear, hub, served) = (Arc::clone(&listener), Arc::clone(hub), Arc::clone(&clients));
        let theirs = Arc::clone(&hub);
        let thread = thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || listen(&ear, &theirs, &served))
            .with_context(at)?;
        Ok(Self { hub, path: path.to_owned(), listener, clients, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.hub.close();
        // wakes the thread from accept(2)
        if shutdown(&*self.listener, Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + END_TIME;
        while clients.iter().any(|client| !client.thread.is_finished()) && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(5));
        }
        for client in clients.drain(..) {
            // wakes its thread from write(2)
            let _ = client.socket.shutdown(std::net::Shutdown::Both);
            let _ = client.thread.join();
        }
    }
}

fn listen(listener: &UnixListener, hub: &Arc<Hub>, clients: &Mutex<Vec<Client>>) {
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
                clients.retain(|client| !client.thread.is_finished());
                match begin(socket, hub) {
                    Ok(client) => clients.push(client),
                    Err(error) => log::warn!("a viewer cannot be served: {error:#}"),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return, // shut down
            Err(error) => {
                // out of descriptors, say: do not spin
                log::warn!("the feed's socket does not accept a viewer: {error}");
                thread::sleep(LINE_TIME);
            }
        }
    }
}

fn begin(socket: UnixStream, hub: &Arc<Hub>) -> Result<Client> {
    let (theirs, hub) = (socket.try_clone()?, Arc::clone(hub));
    let thread = thread::Builder::new().name("viewer".to_owned()).spawn(move || {
        // the daemon's own nice value is for what must be done in time
        let _ = rustix::process::setpriority_process(None, 0);
        if let Err(error) = serve(&theirs, &hub) {
            log::debug!("a viewer went away: {error:#}");
        }
        // the client is to hear of it now, and not when the server forgets its own descriptor
        let _ = theirs.shutdown(std::net::Shutdown::Both);
    })?;
    Ok(Client { socket, thread })
}

/// One client.
fn serve(socket: &UnixStream, hub: &Arc<Hub>) -> Result<()> {
    socket.set_read_timeout(Some(LINE_TIME))?;
    let mut line = String::new();
    BufReader::new(socket.take(LINE_MAX)).read_line(&mut line)?;
    let wanted: Wanted = serde_json::from_str(&line).context("understanding what it wants")?;
    let viewer = hub.subscribe(wanted).ok_or_else(|| anyhow!("there are too many"))?;
    send(socket, &viewer)
}

fn send(mut socket: &UnixStream, viewer: &Viewer) -> Result<()> {
    loop {
        match viewer.queue().pop(Some(Instant::now() + LOOK)) {
            Ok(Some(bytes)) => socket.write_all(&bytes)?,
            Ok(None) => return Ok(()),
            Err(_) if has_left(socket) => return Ok(()),
            Err(_) => {}
        }
    }
}

/// Has the client closed its end? It has nothing more to say, so anything else is odd.
fn has_left(socket: &UnixStream) -> bool {
    let looked = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(looked, Err(rustix::io::Errno::AGAIN))
}
