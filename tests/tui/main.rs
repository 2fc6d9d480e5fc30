// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis top` on a real terminal, which is tmux: each key is pressed and its effect is seen
//! on the screen; the terminal is given back however the view ends. What is shown is the
//! recording tests/fixtures/small.artis.

mod terminal;

use std::fs;
use std::io::Read;
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use scx_artis::feed::{Frame, Hub, To};
use scx_artis::outlets::top::inside::Inside;
use scx_artis::outlets::top::keys::{Action, KEYS, When};
use scx_artis::outlets::top::terminal::Screen;

use terminal::{PROGRAM, PROMPT, RECORDING, Terminal, pids, selected, tmux_name};

#[test]
fn every_key_does_what_the_help_says() {
    let terminal = Terminal::new(80, 24);
    for binding in KEYS {
        for (code, modifiers) in binding.keys {
            let first = terminal.view();
            if binding.when == When::Typing {
                terminal.press("/");
                terminal.types("awk");
                terminal.shows("filter: awk_");
            }
            let key = tmux_name(*code, *modifiers);
            does_it(&terminal, binding.action, &key, &first);
            if terminal.flag("alternate_on") == "1" {
                terminal.press("C-c");
            }
            terminal.wait(|screen| screen.lines().last().is_some_and(|l| l.trim_end() == PROMPT));
        }
    }
}

fn does_it(terminal: &Terminal, action: Action, key: &str, first: &str) {
    let rows = pids(first);
    let (top, bottom) = (rows[0], rows.len() - 1);
    // the last rows in sight, the last of all at the bottom
    let at_end = || {
        terminal.press("End");
        pids(&terminal.wait(|screen| pids(screen)[bottom] != rows[bottom]))
    };
    match action {
        Action::Leave => {
            terminal.press(key);
            terminal.is_back();
        }
        Action::Stop => {
            terminal.press(key);
            terminal.shows("Stopped");
            terminal.is_back();
            terminal.run("fg");
            terminal.shows("end of the recording");
            assert_eq!(terminal.flag("alternate_on"), "1");
        }
        Action::Redraw => {
            fs::write(terminal.flag("pane_tty"), "\x1b[5;5Hrubbish").expect("its terminal");
            terminal.shows("rubbish");
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Help => {
            terminal.press(key);
            terminal.shows("show or hide this help");
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Open => {
            terminal.press(key);
            terminal.shows(&format!("/{top} of process"));
        }
        Action::Back => {
            for (open, shown) in [
                ("?", "show or hide this help"),
                ("e", "remembered of"),
                ("c", "CPU set"),
                ("t", "since the scheduler began"),
                ("Enter", "of process"),
            ] {
                terminal.press(open);
                terminal.wait(|screen| screen != first && screen.contains(shown));
                terminal.press(key);
                terminal.wait(|screen| screen == first);
            }
        }
        Action::Pause => {
            terminal.press(key);
            terminal.shows("FROZEN");
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Filter => {
            terminal.press(key);
            terminal.shows("filter: _");
            terminal.types("stress");
            terminal.shows("name /stress ");
        }
        Action::SortNext | Action::SortPrevious | Action::Reverse => {
            terminal.press(key);
            terminal.wait(|screen| pids(screen) != rows);
        }
        Action::Log | Action::Cpus | Action::Totals => {
            terminal.press(key);
            terminal.wait(|screen| match action {
                Action::Log => screen.contains("remembered of"),
                Action::Cpus => screen.contains("CPU set") && !screen.contains("RT0 task"),
                _ => screen.contains("since the scheduler began"),
            });
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Down => {
            terminal.press(key);
            assert_eq!(selected(terminal), rows[1]);
        }
        Action::PageDown => {
            terminal.press(key);
            assert_eq!(selected(terminal), rows[bottom]);
        }
        Action::Last => {
            terminal.press(key);
            let last = pids(&terminal.wait(|screen| pids(screen)[bottom] != rows[bottom]));
            assert_eq!(selected(terminal), last[bottom]);
        }
        Action::Up | Action::PageUp => {
            let last = at_end();
            terminal.press(key);
            let wanted = if action == Action::Up { bottom - 1 } else { 0 };
            assert_eq!(selected(terminal), last[wanted]);
        }
        Action::First => {
            at_end();
            terminal.press(key);
            assert_eq!(selected(terminal), top);
        }
        Action::Right => {
            assert!(first.contains(" class "));
            terminal.press(key);
            terminal.wait(|screen| !screen.contains(" class "));
        }
        Action::Left => {
            terminal.press("Right");
            terminal.wait(|screen| !screen.contains(" class "));
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Faster | Action::Slower => {
            assert!(first.contains("replay x256"));
            terminal.press(key);
            let speed = if action == Action::Faster { 512 } else { 128 };
            terminal.shows(&format!("replay x{speed}"));
        }
        Action::Keep => {
            terminal.press(key);
            terminal.wait(|s| s.contains("name /awk (4)") && s.contains("q leave"));
        }
        Action::Drop => {
            terminal.press(key);
            terminal.wait(|screen| screen == first);
        }
        Action::Erase => {
            terminal.press(key);
            terminal.shows("filter: aw_");
        }
        Action::Clear => {
            terminal.press(key);
            terminal.shows("filter: _");
        }
    }
}

#[test]
fn signals_end_it_and_the_terminal_is_back() {
    let terminal = Terminal::new(80, 24);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        terminal.view();
        assert_eq!(terminal.flag("alternate_on"), "1");
        assert_eq!(terminal.flag("mouse_any_flag"), "1");
        kill(terminal.child(), signal).expect("sent");
        terminal.is_back();
        terminal.run("echo it said $?");
        terminal.shows("it said 0");
    }
}

#[test]
fn a_stop_from_elsewhere_gives_the_terminal_back_meanwhile() {
    let terminal = Terminal::new(80, 24);
    let first = terminal.view();
    kill(terminal.child(), Signal::SIGTSTP).expect("sent");
    terminal.shows("Stopped");
    terminal.is_back();
    terminal.run("fg");
    terminal.wait(|screen| screen == first);
    // and its keys work again
    terminal.press("?");
    terminal.shows("show or hide this help");
    terminal.press("q");
    terminal.is_back();
}

/// Run by the test below, on a terminal.
#[test]
#[ignore = "takes the terminal and panics"]
fn panics_with_the_terminal_taken() {
    let _screen = Screen::take().expect("a terminal");
    eprintln!("said before");
    let panicked = std::thread::spawn(|| panic!("by intention")).join();
    eprintln!("and once more");
    // without a look at what would be dropped: the panic alone is to give it back
    std::process::exit(i32::from(panicked.is_ok()));
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_seen() {
    let terminal = Terminal::new(80, 24);
    let test = std::env::current_exe().expect("this test");
    let test = test.display();
    let args = "--ignored --exact panics_with_the_terminal_taken --nocapture";
    terminal.run(&format!("RUST_BACKTRACE=0 {test} {args}"));
    let screen = terminal.wait(|screen| screen.contains("and once more"));
    assert!(screen.contains("said before") && screen.contains("by intention"), "{screen}");
    terminal.is_back();
}

/// Run by the test below, on a terminal: the daemon's view without a daemon. It ends as the
/// daemon does, by the user's leaving or a signal, with a farewell.
#[test]
#[ignore = "takes the terminal"]
fn shows_what_a_hub_brings() {
    let hub = Arc::new(Hub::default());
    let (tell, told) = crossbeam_channel::bounded(1);
    ctrlc::set_handler(move || tell.try_send(()).unwrap_or(())).expect("a handler");
    let view = Inside::start(&hub).expect("a view");
    let mut stream = Vec::new();
    let file = fs::File::open(RECORDING).expect("the recording");
    flate2::read::GzDecoder::new(file).read_to_end(&mut stream).expect("undamaged");
    let (begin, _) = Frame::split(&stream).expect("a frame").expect("a whole one");
    let (begin, rest) = stream.split_at(begin.bytes.len());
    hub.send(To::New, begin, false);
    hub.send(To::Begun, rest, true);
    let left = view.left();
    let why = crossbeam_channel::select! {
        recv(left) -> left => left.expect("no panic").map(|()| "left"),
        recv(told) -> _ => Ok("told"),
    };
    eprintln!("said meanwhile");
    drop(view);
    eprintln!("farewell: {}", why.expect("a terminal"));
}

#[test]
fn the_view_of_the_daemon_ends_in_order() {
    let terminal = Terminal::new(80, 24);
    let test = std::env::current_exe().expect("this test");
    let test = test.display();
    let args = "--ignored --exact shows_what_a_hub_brings --nocapture";
    for end in ["q", "C-c", "SIGTERM", "SIGHUP"] {
        terminal.run(&format!("{test} {args}"));
        terminal.shows("cyclictest");
        assert_eq!(terminal.flag("alternate_on"), "1");
        let why = match end {
            "SIGTERM" => kill(terminal.child(), Signal::SIGTERM).map(|()| "told"),
            "SIGHUP" => kill(terminal.child(), Signal::SIGHUP).map(|()| "told"),
            key => {
                terminal.press(key);
                Ok("left")
            }
        };
        let screen = terminal.shows(&format!("farewell: {}", why.expect("sent")));
        assert!(screen.contains("said meanwhile"), "{screen}");
        terminal.is_back();
    }
}

#[test]
fn in_the_background_it_prints_lines_and_is_not_stopped() {
    let terminal = Terminal::new(200, 24);
    terminal.run(&format!("{PROGRAM} top --replay {RECORDING} & wait; echo it said $?"));
    let screen = terminal.shows("it said 0");
    assert_eq!(screen.matches("evictions/s").count(), 10, "{screen}");
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let terminal = Terminal::new(80, 24);
    terminal.view();
    for (width, height) in [(200, 60), (100, 30), (80, 24)] {
        let size = [width, height].map(|size: u16| size.to_string());
        terminal.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
        terminal.wait(|screen| {
            let lines: Vec<_> = screen.lines().collect();
            let first = lines.first().map_or(0, |line| line.chars().count());
            lines.len() == usize::from(height)
                && lines.last().is_some_and(|line| line.starts_with("q leave"))
                && first == usize::from(width)
        });
    }
    terminal.tmux(&["resize-window", "-x", "30", "-y", "8"]);
    terminal.shows("screen too small");
}

#[test]
fn the_mouse_selects_and_opens() {
    let terminal = Terminal::new(80, 24);
    let rows = pids(&terminal.view());
    let screen = terminal.screen();
    let begin = format!("{:>7} ", rows[2]);
    let lines: Vec<_> = screen.lines().collect();
    let row = lines.iter().rposition(|line| line.starts_with(&begin)).expect("the row");
    // as xterm says it, with SGR coordinates: pressed, released
    let click = format!("\x1b[<0;5;{0}M\x1b[<0;5;{0}m", row + 1);
    terminal.types(&click);
    terminal.types(&click);
    terminal.shows(&format!("/{} of process", rows[2]));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let terminal = Terminal::new(80, 24);
    let colored = |terminal: &Terminal| {
        let screen = terminal.tmux(&["capture-pane", "-e", "-p"]);
        // 30 to 37, or 38;5;N; 39 is none
        (30..=38).any(|color| {
            let color = format!("{color}");
            screen.split(['m', '[', ';']).any(|number| number == color)
        })
    };
    terminal.view();
    assert!(colored(&terminal));
    terminal.press("q");
    terminal.is_back();
    terminal.run(&format!("NO_COLOR=1 {PROGRAM} top --replay {RECORDING} --speed 256"));
    terminal.shows("end of the recording");
    assert!(!colored(&terminal));
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let terminal = Terminal::new(200, 24);
    terminal.run(&format!("TERM=dumb {PROGRAM} top --replay {RECORDING}"));
    let screen = terminal.wait(|screen| screen.matches("evictions/s").count() == 10);
    assert!(screen.contains("bodies on RT 0"), "{screen}");
}
