// SPDX-License-Identifier: GPL-2.0-only
//! A terminal, which is tmux, with a shell, and what its screen says.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// Far more than anything here takes; a failed wait shows the screen.
const PATIENCE: Duration = Duration::from_secs(30);
pub const PROMPT: &str = "ready$";
pub const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/small.artis");
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_artis");

/// A terminal with a shell.
pub struct Terminal {
    dir: tempfile::TempDir,
}

impl Terminal {
    pub fn new(width: u16, height: u16) -> Self {
        let terminal = Self { dir: tempfile::tempdir().expect("a directory") };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("env -u NO_COLOR PS1='{PROMPT} ' bash --norc --noprofile -i");
        terminal.tmux(&["new-session", "-d", "-x", &width, "-y", &height, &shell]);
        terminal.wait(|screen| screen.starts_with(PROMPT));
        terminal
    }

    pub fn tmux(&self, args: &[&str]) -> String {
        let socket: PathBuf = self.dir.path().join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(socket).args(args).env_remove("TMUX");
        let output = tmux.output().expect("tmux is there (scripts/setup installs it)");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// Waits until the screen is as wanted, and returns it.
    #[track_caller]
    pub fn wait(&self, mut wanted: impl FnMut(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < PATIENCE, "the screen stays like this:\n{screen}");
            sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.wait(|screen| screen.contains(text))
    }

    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Has the shell do something, on a screen with nothing else.
    pub fn run(&self, command: &str) {
        self.press("C-u");
        self.types(&format!("clear; {command}"));
        self.press("Enter");
    }

    /// Starts the view and waits until the whole recording is played.
    pub fn view(&self) -> String {
        self.run(&format!("{PROGRAM} top --replay {RECORDING} --speed 256"));
        self.shows("end of the recording");
        // all of the last frame, and not its begin
        let mut before = String::new();
        self.wait(|screen| screen == std::mem::replace(&mut before, screen.to_owned()))
    }

    /// What tmux knows of its terminal.
    pub fn flag(&self, name: &str) -> String {
        self.tmux(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
    }

    /// The process that the shell started.
    pub fn child(&self) -> Pid {
        let shell = self.flag("pane_pid");
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        let children = children.expect("the shell");
        let child = children.split_whitespace().next().expect("a child");
        Pid::from_raw(child.parse().expect("an id"))
    }

    /// Waits for the shell, and sees that the terminal is as it was.
    #[track_caller]
    pub fn is_back(&self) {
        self.wait(|screen| screen.lines().last().is_some_and(|line| line.trim_end() == PROMPT));
        for (flag, wanted) in [("alternate_on", "0"), ("mouse_any_flag", "0"), ("cursor_flag", "1")]
        {
            assert_eq!(self.flag(flag), wanted, "{flag}");
        }
        // the shell sets its own modes at its prompt, and puts back for others what was there
        self.run("stty -a; echo looked");
        let modes = self.wait(|screen| screen.lines().any(|line| line == "looked"));
        for mode in ["icanon", "echo", "isig", "icrnl", "opost"] {
            let set = modes.split([' ', ';', '\n']).any(|word| word == mode);
            assert!(set, "{mode} is not set:\n{modes}");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// tmux's name of a key.
pub fn tmux_name(code: KeyCode, modifiers: KeyModifiers) -> String {
    let name = match code {
        KeyCode::Char(' ') => "Space".into(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::Enter => "Enter".into(),
        KeyCode::Esc => "Escape".into(),
        KeyCode::Backspace => "BSpace".into(),
        KeyCode::PageUp => "PPage".into(),
        KeyCode::PageDown => "NPage".into(),
        KeyCode::F(number) => format!("F{number}"),
        other => other.to_string(), // Up, Down, Left, Right, Home, End
    };
    if modifiers.contains(KeyModifiers::CONTROL) { format!("C-{name}") } else { name }
}

/// The ids of the tasks on the screen, from the top.
pub fn pids(screen: &str) -> Vec<u64> {
    let rows = screen.lines().skip_while(|line| !line.trim_start().starts_with("pid name"));
    rows.skip(1).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// The id on the page of the task that is selected.
pub fn selected(terminal: &Terminal) -> u64 {
    terminal.press("Enter");
    let screen = terminal.shows("of process");
    let line = screen.lines().find(|line| line.contains("of process")).expect("a headline");
    let head = line.split(" of process").next().expect("a name");
    head.rsplit('/').next().expect("an id").parse().expect("a number")
}
