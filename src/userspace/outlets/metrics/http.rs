// SPDX-License-Identifier: GPL-2.0-only
//! Serves the last snapshot over HTTP. One thread does it all, for a bounded
//! number of clients, each for a bounded time: anybody on this machine may
//! connect, and the daemon has a scheduler to look after.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use procfs::process::{MountInfo, Process};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio::{net, runtime};

use super::{Latest, text};
use crate::config::Address;
use crate::feed::has_seat;
use crate::socket;

/// Clients at a time; more wait until the kernel's queue of them is full.
const CLIENTS_MAX: usize = 16;
/// How long a client may take to say what it wants.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// How long a client may take in all.
const CLIENT_TIME: Duration = Duration::from_secs(20);
/// Between two tries to accept a client, when that fails.
const PAUSE: Duration = Duration::from_secs(1);

/// Of the text format of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The UNIX socket, if it is one.
    path: Option<PathBuf>,
    port: Option<SocketAddr>,
}

impl Server {
    /// Serves at `address`; a UNIX socket is for root and the group `gid`, whose members share the
    /// places that users other than `own`, the daemon's, have at the feed, too.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn launch(address: &Address, own: u32, gid: u32, answers: Answers) -> Result<Self> {
        let at = || format!("serving metrics at {address}");
        // its threads are made by the listening one, with what that has
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.with_context(at)?;
        let listener = {
            let _inside = runtime.enter();
            Listener::bind(address, gid).with_context(at)?
        };
        let port = match &listener {
            Listener::Tcp(listener) => Some(listener.local_addr().with_context(at)?),
            Listener::Unix(_) => None,
        };
        let mounts = Process::myself().and_then(|this| this.mountinfo());
        match mounts.map(|mounts| doubt(address, &mounts.0)) {
            Ok(doubt) => doubt.iter().for_each(|doubt| log::warn!("{doubt}")),
            Err(error) => log::debug!("whether /proc hides tasks is not known: {error}"),
        }
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            // the daemon's own nice value is for what must be done in time
            let _ = rustix::process::setpriority_process(None, 0);
            runtime.spawn(listen(listener, own, Arc::new(answers)));
            // an error: nobody will say it any more, which says it, too
            let _ = runtime.block_on(stopped);
        };
        let thread = thread::Builder::new().name("metrics-http".to_owned()).spawn(serve);
        let path = match address {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        };
        Ok(Self { stop: Some(stop), thread: Some(thread.with_context(at)?), path, port })
    }

    /// The port that it listens at, unless it does so at a UNIX socket.
    pub fn port(&self) -> Option<SocketAddr> {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

enum Listener {
    Tcp(net::TcpListener),
    Unix(net::UnixListener),
}

impl Listener {
    /// Inside a runtime.
    fn bind(address: &Address, gid: u32) -> Result<Self> {
        match address {
            Address::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(net::TcpListener::from_std(listener)?))
            }
            Address::Unix(path) => {
                make_room(path)?;
                let listener = socket::listen(path, Some(gid))?;
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(net::UnixListener::from_std(listener)?))
            }
        }
    }
}

/// What is unwise about serving there, on a machine with these mounts: other users read the names
/// of tasks that /proc hides from them.
fn doubt(address: &Address, mounts: &[MountInfo]) -> Option<String> {
    let hides = |mount: &MountInfo| {
        mount.mount_point == Path::new("/proc") && mount.super_options.contains_key("hidepid")
    };
    (matches!(address, Address::Tcp(_)) && mounts.iter().any(hides)).then(|| {
        format!(
            "--metrics {address}: any user of this machine reads the names of all tasks there, \
             which /proc hides (hidepid): unix:PATH is for root and --feed-group only"
        )
    })
}

/// Removes what a dead daemon left at `path`, and nothing else.
fn make_room(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(there) if !there.file_type().is_socket() => {
            bail!("that is there already, and is no socket: name another path")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            bail!("another program listens there: name another path")
        }
        Ok(_) => Ok(fs::remove_file(path)?),
    }
}

/// The place of a client of a UNIX socket among those of all users.
struct Seat {
    uid: u32,
    taken: Arc<Mutex<Vec<u32>>>,
}

impl Seat {
    /// `None`: the user `uid` has as many as it may have.
    fn take(uid: u32, own: u32, taken: &Arc<Mutex<Vec<u32>>>) -> Option<Self> {
        let mut users = taken.lock().unwrap_or_else(PoisonError::into_inner);
        has_seat(uid, own, users.iter().copied()).then(|| {
            users.push(uid);
            Self { uid, taken: Arc::clone(taken) }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut users = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nr) = users.iter().position(|uid| *uid == self.uid) {
            users.swap_remove(nr);
        }
    }
}

async fn listen(listener: Listener, own: u32, answers: Arc<Answers>) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let taken = Arc::default();
    loop {
        // never closed, so never an error
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                tokio::spawn(serve(stream, Arc::clone(&answers), place));
            }),
            Listener::Unix(listener) => listener.accept().await.and_then(|(stream, _)| {
                let uid = stream.peer_cred()?.uid();
                match Seat::take(uid, own, &taken) {
                    Some(seat) => {
                        tokio::spawn(serve(stream, Arc::clone(&answers), (place, seat)));
                    }
                    None => {
                        log::debug!("user {uid} reads the metrics as often as it may at a time")
                    }
                }
                Ok(())
            }),
        };
        if let Err(error) = accepted {
            // out of descriptors, say: do not spin
            log::warn!("the metrics' socket does not accept a client: {error}");
            sleep(PAUSE).await;
        }
    }
}

/// One client, which has one question.
async fn serve<S>(stream: S, answers: Arc<Answers>, _place: impl Send)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| {
        let answer = answers.answer(&request);
        async { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CLIENT_TIME, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::debug!("a reader of the metrics went away: {error}"),
        Err(_) => log::debug!("a reader of the metrics was too slow"),
    }
}

/// What is answered to whom.
#[derive(Debug)]
pub struct Answers {
    /// What it is about.
    pub latest: Arc<Latest>,
    /// Tasks besides the hard real-time ones.
    pub tasks: usize,
}

impl Answers {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let plain = |status, text: &str| respond(status, PLAIN, text.to_owned());
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "metrics can only be read\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match (request.uri().path(), self.latest.get()) {
            ("/metrics", Some(snapshot)) => match text::encode(snapshot, self.tasks) {
                Ok(text) => respond(StatusCode::OK, OPENMETRICS, text),
                Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
            },
            ("/metrics", None) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "scx_artis has no figures yet: they come once a second\n",
            ),
            ("/", _) => plain(StatusCode::OK, "scx_artis: the metrics are at /metrics\n"),
            _ => plain(StatusCode::NOT_FOUND, "not here: the metrics are at /metrics\n"),
        }
    }
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use procfs::FromBufRead;
    use procfs::process::MountInfos;

    use super::*;

    #[test]
    fn what_proc_hides_is_not_shown_to_all_in_silence() {
        let mounts = |options: &str| {
            let text = format!("22 1 0:21 / /proc rw,nosuid - proc proc rw{options}\n");
            MountInfos::from_buf_read(text.as_bytes()).expect("as the kernel has it").0
        };
        let doubts = |address: &str, options: &str| {
            doubt(&address.parse().expect("an address"), &mounts(options)).is_some()
        };
        assert!(doubts("127.0.0.1:9464", ",hidepid=invisible"));
        assert!(!doubts("127.0.0.1:9464", ""));
        assert!(!doubts("unix:/run/metrics.sock", ",hidepid=invisible"));
    }
}
