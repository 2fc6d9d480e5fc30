// SPDX-License-Identifier: GPL-2.0-only
//! UNIX sockets as the daemon makes and reads them: their mode is final when they appear, and a
//! client has one deadline for a whole request and one for a whole answer.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::lchown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, umask};

/// Bytes that are written at a time. The kernel queues them at once, so that it waits for room once
/// in each write(2): its time limit is for each of these waits.
const PIECE: usize = 32 * 1024;

/// Permissions of what is made within [`masked`]: its owner's, and its group's.
const OWNER: u32 = 0o177;
const OWNER_AND_GROUP: u32 = 0o117;

/// Listens at `path`, where nothing may be. Only the caller's user may connect, and the group `gid`
/// if one is given.
///
/// # Errors
/// When the socket cannot be made; then there is none.
pub fn listen(path: &Path, gid: Option<u32>) -> io::Result<UnixListener> {
    // bind(2) makes it with its final mode: until lchown(2) the group is the caller's. chmod(2)
    // would follow a link that somebody puts into its place in a directory that others may write to
    let mask = if gid.is_some() { OWNER_AND_GROUP } else { OWNER };
    let listener = masked(mask, || UnixListener::bind(path))?;
    if let Some(gid) = gid
        && let Err(error) = lchown(path, None, Some(gid))
    {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(listener)
}

/// What `make` makes lacks the permissions in `mask`. One thread does this at a time: the mask is
/// the whole process's.
pub fn masked<T>(mask: u32, make: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = umask(Mode::from_bits_truncate(mask));
    let made = make();
    umask(before);
    made
}

/// Removes the socket that a dead daemon left at `path`.
///
/// # Errors
/// When what is there cannot be removed.
pub fn remove_old(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The line that the client says until `deadline`, without its end; what it says after it is lost.
/// The end of the stream ends a line, too.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when it is not whole by then, [`ErrorKind::InvalidData`] when it is
/// longer than `max_bytes` or not UTF-8, and whatever read(2) says.
pub fn read_line(mut from: &UnixStream, max_bytes: usize, deadline: Instant) -> io::Result<String> {
    let mut said = vec![0; max_bytes];
    let mut len = 0;
    loop {
        if len == max_bytes {
            return Err(io::Error::new(ErrorKind::InvalidData, "the line is too long"));
        }
        from.set_read_timeout(Some(left_until(deadline)?))?;
        let Some(more) = done(from.read(&mut said[len..]))? else { continue };
        let end = said[len..len + more].iter().position(|byte| *byte == b'\n');
        if more == 0 || end.is_some() {
            said.truncate(len + end.unwrap_or(0));
            return String::from_utf8(said)
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
        }
        len += more;
    }
}

/// Writes all of `bytes` until `deadline`.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when the client did not take them by then, and whatever write(2) says.
pub fn write_all(mut to: &UnixStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        to.set_write_timeout(Some(left_until(deadline)?))?;
        match done(to.write(&bytes[..bytes.len().min(PIECE)]))? {
            Some(0) => return Err(ErrorKind::WriteZero.into()),
            Some(taken) => bytes = &bytes[taken..],
            None => {}
        }
    }
    Ok(())
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    // 0 would be no limit
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What read(2) and write(2) did; `None`: a signal came first.
fn done(bytes: io::Result<usize>) -> io::Result<Option<usize>> {
    bytes.map(Some).or_else(|error| match error.kind() {
        // a call with a time limit is not restarted after a signal
        ErrorKind::Interrupted => Ok(None),
        // the time limit
        ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::thread;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(60);

    fn in_time(time: Duration) -> Instant {
        Instant::now() + time
    }

    #[test]
    fn a_socket_has_its_mode_and_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let gid = nix::unistd::getegid().as_raw();
        for (name, group, mode) in [("own", None, 0o600), ("group", Some(gid), 0o660)] {
            let path = dir.path().join(name);
            let _listener = listen(&path, group).expect("listens");
            let made = fs::metadata(&path).expect("there");
            assert_eq!((made.mode() & 0o777, made.gid()), (mode, gid), "{name}");
        }
    }

    #[test]
    fn threads_do_not_mix_up_their_masks() {
        let dir = tempfile::tempdir().expect("a directory");
        let make = |nr: u32, mask: u32| {
            let path = dir.path().join(nr.to_string());
            masked(mask, || fs::write(&path, "")).expect("written");
            assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o666 & !mask);
        };
        thread::scope(|scope| {
            for (first, mask) in [(0, 0o077), (1000, 0o007), (2000, 0)] {
                let make = &make;
                scope.spawn(move || (first..first + 500).for_each(|nr| make(nr, mask)));
            }
        });
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        symlink(&target, &link).expect("a link");
        listen(&link, Some(nix::unistd::getegid().as_raw())).expect_err("something is there");
        assert!(!target.exists());
        remove_old(&link).expect("removed");
        remove_old(&link).expect("nothing there");
        listen(&link, None).expect("listens");
    }

    #[test]
    fn a_line_has_one_deadline() {
        let (client, server) = UnixStream::pair().expect("a pair");
        // a byte now and then, which is always in time for one read(2)
        let slow = thread::spawn(move || {
            while (&client).write_all(b"x").is_ok() {
                thread::sleep(SHORT / 10);
            }
        });
        let error = read_line(&server, 512, in_time(SHORT)).expect_err("no line");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(server);
        slow.join().expect("no panic");
    }

    #[test]
    fn lines_are_bounded_and_whole() {
        let line = |said: &[u8]| {
            let (mut client, server) = UnixStream::pair().expect("a pair");
            client.write_all(said).expect("said");
            drop(client);
            read_line(&server, 5, in_time(LONG)).map_err(|error| error.kind())
        };
        assert_eq!(line(b"four\nmore"), Ok("four".into()));
        assert_eq!(line(b"\nx"), Ok(String::new()));
        assert_eq!(line(b"end"), Ok("end".into()));
        assert_eq!(line(b""), Ok(String::new()));
        assert_eq!(line(b"fives\n"), Err(ErrorKind::InvalidData));
        assert_eq!(line(b"\xff\n"), Err(ErrorKind::InvalidData));
    }

    #[test]
    fn what_is_taken_by_bytes_has_one_deadline() {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        let slow = thread::spawn(move || {
            // makes room for one more write(2) each time
            while client.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                thread::sleep(SHORT / 10);
            }
        });
        let bytes = vec![0; 4 << 20];
        let error = write_all(&server, &bytes, in_time(SHORT)).expect_err("not taken");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(server);
        slow.join().expect("no panic");

        let (client, server) = UnixStream::pair().expect("a pair");
        write_all(&server, b"all", in_time(LONG)).expect("taken");
        drop(client);
        assert!(write_all(&server, b"all", in_time(LONG)).is_err(), "nobody is there");
    }
}
