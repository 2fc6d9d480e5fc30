// SPDX-License-Identifier: GPL-2.0-only
//! Colours, and what stands for them where there are none. The sixteen colours of the
//! terminal only, so that its own scheme decides how they look.

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    color: bool,
}

impl Theme {
    /// With colour or without.
    pub fn new(color: bool) -> Self {
        Self { color }
    }

    fn paint(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Titles of columns.
    pub fn head(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The title of the column that the rows are sorted by.
    pub fn sorted(self) -> Style {
        self.head().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// The selected row.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// What must not be.
    pub fn alarm(self) -> Style {
        self.paint(Color::Red).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// What is worth a look.
    pub fn warn(self) -> Style {
        self.paint(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What stands out.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What may be overlooked.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Keys in the line at the bottom.
    pub fn key(self) -> Style {
        self.paint(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Real-time tasks.
    pub fn rt(self) -> Style {
        self.paint(Color::Magenta)
    }

    /// Ext tasks.
    pub fn ext(self) -> Style {
        self.paint(Color::Green)
    }

    /// Time that nobody used.
    pub fn idle(self) -> Style {
        self.dim()
    }

    /// A class of tasks, see `TaskMetrics::class`.
    pub fn class(self, class: &str) -> Style {
        match class {
            "RT0" => self.rt().add_modifier(Modifier::BOLD),
            "RT" | "RT1+" => self.rt(),
            "NRT" => self.ext(),
            "bound" => self.paint(Color::Yellow),
            "kernel" => self.dim(),
            "kernel RT" => self.paint(Color::Cyan),
            _ => Style::new(),
        }
    }
}
