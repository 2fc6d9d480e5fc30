// SPDX-License-Identifier: GPL-2.0-only
//! A captured screen with its colours (`tmux capture-pane -e -p`) on stdin, as SVG on stdout.
//! scripts/pictures makes the pictures of docs/pictures with it.

use std::io::{self, Read, Write};

use anstyle_svg::{Term, WIN10_CONSOLE};

fn main() -> io::Result<()> {
    let mut screen = String::new();
    io::stdin().read_to_string(&mut screen)?;
    let svg = Term::new().palette(WIN10_CONSOLE).render_svg(screen.trim_end());
    io::stdout().write_all(svg.as_bytes())
}
