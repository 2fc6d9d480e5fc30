// SPDX-License-Identifier: GPL-2.0-only
//! The terminal: taken for the view, and given back however that ends.

use std::env;
use std::io::{self, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::Theme;
use super::stderr::Kept;

/// Is the terminal taken? There is one, and a panic may come from any thread.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Stderr, while it is taken.
static STDERR: Mutex<Option<Kept>> = Mutex::new(None);

/// Is stdout a terminal on which the view can be drawn? A dumb one cannot move its cursor, and a
/// job in the background that takes the terminal is stopped: a daemon must not be.
pub fn is_fit() -> bool {
    let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let ours = tcgetpgrp(io::stdout()).is_ok_and(|foreground| foreground == getpgrp());
    !dumb && ours
}

/// How to draw on it: no colour if `NO_COLOR` is set and not empty.
pub fn theme() -> Theme {
    Theme::new(env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
}

/// The terminal, taken.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal of stdout.
    ///
    /// # Errors
    /// When it does not let itself be taken; then it is as before.
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back(); // first, or the message is lost with the screen
                before(info);
            }));
        });
        let mut screen = Self { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? };
        screen.take_again()?;
        Ok(screen)
    }

    /// Takes it after it was given back, or after somebody else had it.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn take_again(&mut self) -> io::Result<()> {
        if !TAKEN.swap(true, Ordering::SeqCst) {
            *stderr() = Kept::start()?;
        }
        let taken = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture))
            .and_then(|()| self.terminal.clear());
        if taken.is_err() {
            give_back();
        }
        taken
    }

    /// Draws a frame; nothing while the terminal is given back.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if TAKEN.load(Ordering::SeqCst) {
            self.terminal.draw(draw)?;
        }
        Ok(())
    }

    /// Forgets what is on the screen, so that the next frame is drawn whole.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, if it is taken.
pub fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // there is nobody to tell if that fails: the terminal is gone
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let kept = stderr().take();
        if let Some(kept) = kept {
            kept.release();
        }
    }
}

/// Gives up a terminal that takes no output. It gets its settings back, not its screen. What is
/// written to stderr from now on is lost: it would wait, too.
pub fn abandon() {
    let _ = disable_raw_mode(); // nobody to tell
}

fn stderr() -> MutexGuard<'static, Option<Kept>> {
    STDERR.lock().unwrap_or_else(PoisonError::into_inner)
}
