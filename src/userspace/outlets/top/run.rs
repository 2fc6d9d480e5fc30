// SPDX-License-Identifier: GPL-2.0-only
//! Lets events, the store and the screen take turns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, Sender, bounded, never, select};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ratatui::crossterm::event::{self as terminal_event, KeyEventKind, MouseEventKind};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::draw::draw;
use super::event::Event;
use super::store::{Flow, Store, Wish};
use super::terminal::{self, Screen};

/// How long the thread that reads keys goes on after the view's end.
const POLL: Duration = Duration::from_millis(100);
/// Events that may wait; more than one screenful of typing is not to be lost.
const WAITING: usize = 64;

/// How fast a recording is to be played; shared by the view and who plays.
#[derive(Clone, Debug)]
pub struct Pace(Arc<AtomicU64>);

impl Pace {
    /// So many times faster than it was made.
    pub fn new(speed: f64) -> Self {
        Self(Arc::new(AtomicU64::new(speed.to_bits())))
    }

    /// So many times faster than it was made.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, speed: f64) {
        self.0.store(speed.to_bits(), Ordering::Relaxed);
    }
}

/// Who looks after SIGTERM, SIGINT and SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignals {
    /// The view: they end it.
    Ours,
    /// Somebody else, who sends [`Event::Leave`] in time.
    Others,
}

/// Shows what comes by `feed` until the user leaves or [`Event::Leave`] comes. Returns with the
/// terminal given back.
///
/// # Errors
/// When the terminal does not let itself be taken, or is gone.
pub fn run(
    wish: Wish,
    feed: &Receiver<Event>,
    pace: &Pace,
    end_signals: EndSignals,
) -> io::Result<()> {
    // signals first: none may find the terminal taken and the handler missing
    let signals = SignalThread::start(end_signals)?;
    let mut screen = Screen::take()?;
    let keys = KeyThread::start();
    let mut store = Store::new(wish);
    let mut feed = feed.clone();
    loop {
        let mut areas = None;
        screen.draw(|frame| areas = Some(draw(frame, &store)))?;
        if let Some(areas) = areas {
            store.drawn(areas);
        }
        let mut next = Some(select! {
            recv(feed) -> event => match event {
                Ok(event) => event,
                Err(RecvError) => {
                    feed = never(); // the end of a stream is not that of the view
                    continue;
                }
            },
            recv(signals.told) -> event => event.unwrap_or(Event::Leave),
            recv(keys.told) -> event => event.unwrap_or(Event::NoInput),
        });
        // whatever else is there already, before the next frame
        while let Some(event) = next {
            match store.handle(event) {
                Flow::Go => {}
                Flow::Redraw => screen.forget()?,
                Flow::Leave => return Ok(()),
                // a daemon is not stopped: see Inside
                Flow::StopJob | Flow::Stop if end_signals == EndSignals::Others => {}
                // the whole job, as the terminal itself would have done it
                Flow::StopJob => kill(Pid::from_raw(0), Signal::SIGTSTP)?,
                Flow::Stop => {
                    terminal::give_back();
                    emulate_default_handler(SIGTSTP)?; // returns when continued
                }
                Flow::Continue => screen.take_again()?,
            }
            next = signals.told.try_recv().or_else(|_| feed.try_recv()).ok();
        }
        if let Some(speed) = store.speed() {
            pace.set(speed);
        }
    }
}

/// Turns signals into events.
struct SignalThread {
    handle: signal_hook::iterator::Handle,
    told: Receiver<Event>,
}

impl SignalThread {
    fn start(end_signals: EndSignals) -> io::Result<Self> {
        let mut wanted = vec![SIGTSTP, SIGCONT];
        if end_signals == EndSignals::Ours {
            wanted.extend([SIGTERM, SIGINT, SIGHUP]);
        }
        let mut signals = Signals::new(wanted)?;
        let handle = signals.handle();
        let (tell, told) = bounded(WAITING);
        thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGTSTP => Event::Stop,
                    SIGCONT => Event::Continued,
                    _ => Event::Leave,
                };
                if tell.send(event).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { handle, told })
    }
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Turns keys and the mouse into events.
struct KeyThread {
    end: Arc<AtomicBool>,
    told: Receiver<Event>,
    thread: Option<thread::JoinHandle<()>>,
}

impl KeyThread {
    fn start() -> Self {
        let (tell, told) = bounded(WAITING);
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        // if it ends early, the view does, too: see Event::NoInput
        let thread = thread::spawn(move || while !ends.load(Ordering::Relaxed) && pass(&tell) {});
        Self { end, told, thread: Some(thread) }
    }
}

impl Drop for KeyThread {
    /// Waits for it: what is typed from now on is for the shell. But not for long: where the
    /// terminal is gone, crossterm reads its end again and again and does not come back.
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + 3 * POLL;
        while !thread.is_finished() && Instant::now() < deadline {
            while self.told.try_recv().is_ok() {} // it may wait for room
            thread::sleep(POLL / 20);
        }
    }
}

/// Waits a while for a key and passes it on. Returns whether to go on.
fn pass(tell: &Sender<Event>) -> bool {
    let read = match terminal_event::poll(POLL) {
        Ok(false) => return true,
        Ok(true) => terminal_event::read(),
        Err(error) => Err(error),
    };
    let event = match read {
        Ok(terminal_event::Event::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
        Ok(terminal_event::Event::Mouse(mouse)) if mouse.kind != MouseEventKind::Moved => {
            Event::Mouse(mouse)
        }
        Ok(terminal_event::Event::Resize(..)) => Event::Resize,
        Ok(_) => return true,
        Err(_) => return false,
    };
    tell.send(event).is_ok()
}
