// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's end of the control socket: a thread that lets root in, and
//! passes one request at a time on to the run loop.
//!
//! Who may ask is decided twice: by the socket's mode (0600), and by the
//! credentials that the kernel keeps of each peer (SO_PEERCRED). The second
//! also holds for a process that reached the socket by a descriptor of its
//! directory or a bind mount.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::net::{Shutdown, shutdown, sockopt::socket_peercred};

use super::{REPLY_TIME, REQUEST_MAX, REQUEST_TIME, Reply, Request, START_TIME};
use crate::socket;

/// A request, and where to answer it.
#[derive(Debug)]
pub struct Asked {
    /// What is wanted.
    pub request: Request,
    reply: Sender<Reply>,
}

impl Asked {
    /// Answers it. A client that is gone by now has changed its mind.
    pub fn answer(self, reply: Reply) {
        let _ = self.reply.send(reply);
    }
}

/// Listens until it is dropped, which removes the socket, too.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
    asked: Receiver<Asked>,
}

impl Server {
    /// Listens at `path` for requests of the user `uid`. A socket of a dead daemon is
    /// replaced: the caller holds the lock that shows it dead.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn launch(path: &Path, uid: u32) -> Result<Self> {
        let at = || format!("making the control socket {}", path.display());
        socket::remove_old(path).with_context(at)?;
        let listener = Arc::new(socket::listen(path, None).with_context(at)?);
        let (tell, asked) = bounded(0);
        let ear = Arc::clone(&listener);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&ear, uid, &tell))
            .with_context(at)?;
        Ok(Self { path: path.to_owned(), listener, thread: Some(thread), asked })
    }

    /// Where requests come from.
    pub fn asked(&self) -> Receiver<Asked> {
        self.asked.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // wakes the thread from accept(2); nobody receives any more, so it does not stay
        self.asked = crossbeam_channel::never();
        if shutdown(&*self.listener, Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &UnixListener, uid: u32, tell: &Sender<Asked>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = serve(&stream, uid, tell) {
                    log::debug!("a client of the control socket went away: {error:#}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return, // shut down
            Err(error) => {
                // out of descriptors, say: do not spin
                log::warn!("the control socket does not accept a client: {error}");
                thread::sleep(REQUEST_TIME);
            }
        }
    }
}

/// One client: a line in, a line out.
fn serve(stream: &UnixStream, uid: u32, tell: &Sender<Asked>) -> Result<()> {
    let peer = socket_peercred(stream).context("reading the client's credentials")?.uid.as_raw();
    let reply = if peer == uid {
        let not_understood =
            |error: &dyn Display| failed(1, &format!("the request is not understood: {error}"));
        match socket::read_line(stream, REQUEST_MAX, Instant::now() + REQUEST_TIME) {
            Ok(line) => serde_json::from_str(&line)
                .map_or_else(|error| not_understood(&error), |request| pass_on(request, tell)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => not_understood(&error),
            Err(error) => return Err(error.into()),
        }
    } else {
        failed(3, &format!("user {peer} may not control scx_artis: only root may"))
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    Ok(socket::write_all(stream, text.as_bytes(), Instant::now() + REQUEST_TIME)?)
}

fn pass_on(request: Request, tell: &Sender<Asked>) -> Reply {
    let (reply, replied) = bounded(1);
    if tell.send_timeout(Asked { request, reply }, START_TIME).is_err() {
        return failed(3, "the daemon is starting, stopping or busy: ask again");
    }
    replied
        .recv_timeout(REPLY_TIME)
        .unwrap_or_else(|_| failed(1, "the daemon did not answer: is it stopping?"))
}

fn failed(code: u8, text: &str) -> Reply {
    Reply::Failed { code, text: text.to_owned() }
}
