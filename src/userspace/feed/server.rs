// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's socket: a client writes what it wants as a line of JSON
//! ([`Wanted`]), and is sent the stream until one of them has enough.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown, sockopt::socket_peercred};

use super::Wanted;
use super::hub::{Hub, Viewer};
use super::queue::{OTHERS_ROOM, OWN_ROOM};
use crate::socket;

/// Connections at a time by users other than the daemon's. The rest of the hub's seats are for the
/// daemon's user.
const OTHERS_MAX: usize = 8;
/// Connections at a time by one such user.
const USER_MAX: usize = 4;
/// Longest line that says what is wanted, bytes.
const LINE_MAX: usize = 4096;
/// How long a client may take to say it.
const LINE_TIME: Duration = Duration::from_secs(2);
/// How often it is looked whether a client to whom nothing is sent has left.
const LOOK: Duration = Duration::from_millis(500);
/// How long a client may take for what is sent to it at a time, an interval mostly.
const TAKE_TIME: Duration = Duration::from_secs(30);
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
    uid: u32,
    socket: UnixStream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Listens at `path` for clients of the user `own`, which is the daemon's, and of the group
    /// `gid`, whose members share [`OTHERS_MAX`] seats. A socket of a dead daemon is replaced: the
    /// caller holds the lock that shows it dead.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn launch(path: &Path, own: u32, gid: u32, hub: &Arc<Hub>) -> Result<Self> {
        let at = || format!("making the socket {} for viewers", path.display());
        socket::remove_old(path).with_context(at)?;
        let listener = Arc::new(socket::listen(path, Some(gid)).with_context(at)?);
        let clients = Arc::default();
        let (ear, hub, served) = (Arc::clone(&listener), Arc::clone(hub), Arc::clone(&clients));
        let theirs = Arc::clone(&hub);
        let thread = thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || listen(&ear, own, &theirs, &served))
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

fn listen(listener: &UnixListener, own: u32, hub: &Arc<Hub>, clients: &Mutex<Vec<Client>>) {
    // the daemon's own nice value is for what must be done in time
    let _ = rustix::process::setpriority_process(None, 0);
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
                clients.retain(|client| !client.thread.is_finished());
                match begin(socket, own, hub, &clients) {
                    Ok(client) => clients.extend(client),
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

/// `None`: it has no seat, and the connection is closed.
fn begin(
    socket: UnixStream,
    own: u32,
    hub: &Arc<Hub>,
    clients: &[Client],
) -> Result<Option<Client>> {
    let uid = socket_peercred(&socket).context("reading the client's credentials")?.uid.as_raw();
    if !has_seat(uid, own, clients.iter().map(|client| client.uid)) {
        log::debug!("user {uid} has as many viewers as there are seats for");
        return Ok(None);
    }
    let room = if uid == own { OWN_ROOM } else { OTHERS_ROOM };
    let (theirs, hub) = (socket.try_clone()?, Arc::clone(hub));
    let thread = thread::Builder::new().name("viewer".to_owned()).spawn(move || {
        if let Err(error) = serve(&theirs, &hub, room) {
            log::debug!("a viewer went away: {error:#}");
        }
        // the client is to hear of it now, and not when the server forgets its own descriptor
        let _ = theirs.shutdown(std::net::Shutdown::Both);
    })?;
    Ok(Some(Client { uid, socket, thread }))
}

/// May the user `uid` have one more connection beside those of the users `there`? `own` is the
/// daemon's user.
pub(crate) fn has_seat(uid: u32, own: u32, there: impl Iterator<Item = u32>) -> bool {
    let (mut all, mut of_user) = (0, 0);
    for other in there.filter(|other| *other != own) {
        all += 1;
        of_user += usize::from(other == uid);
    }
    uid == own || all < OTHERS_MAX && of_user < USER_MAX
}

/// One client, for which so many bytes may wait.
fn serve(socket: &UnixStream, hub: &Arc<Hub>, room: usize) -> Result<()> {
    let line = socket::read_line(socket, LINE_MAX, Instant::now() + LINE_TIME)?;
    let wanted: Wanted = serde_json::from_str(&line).context("understanding what it wants")?;
    let viewer = hub.subscribe(wanted, room).ok_or_else(|| anyhow!("there are too many"))?;
    send(socket, &viewer)
}

fn send(socket: &UnixStream, viewer: &Viewer) -> Result<()> {
    loop {
        match viewer.queue().pop(Some(Instant::now() + LOOK)) {
            Ok(Some(bytes)) => socket::write_all(socket, &bytes, Instant::now() + TAKE_TIME)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_share_some_seats_and_the_daemons_user_keeps_the_rest() {
        let may = |uid, there: &[u32]| has_seat(uid, 0, there.iter().copied());
        assert!(may(7, &[7, 7, 7]) && !may(7, &[7, 7, 7, 7]), "one user");
        assert!(may(8, &[7, 7, 7, 7]), "one user keeps another out");
        let full = [1, 2, 3, 4, 5, 6, 7, 8];
        assert!(may(9, &full[1..]) && !may(9, &full), "all of them");
        assert!(may(0, &full), "the daemon's user");
        assert!(may(7, &[0; 16]), "seats of the daemon's user count for others");
    }
}
