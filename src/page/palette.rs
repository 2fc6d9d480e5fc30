// SPDX-License-Identifier: GPL-2.0-only
//! The colours of charts. Drawn in their light form; a style sheet made here replaces each
//! by its dark form where the reader's screen is dark, by selectors on the written colour.
//! A chart taken out of the page thus keeps its light colours.
//!
//! All marks have a contrast of 3 or more to their background (WCAG 1.4.11). The series are
//! at least 12 apart in CIE Lab for normal vision and simulated protan-, deuteran- and
//! tritanopia (matrices of Machado, Oliveira and Fernandes, 2009).

use plotters::style::RGBColor;

/// A colour in both forms.
#[derive(Clone, Copy)]
pub struct Colour {
    light: u32,
    dark: u32,
}

/// Text and outlines.
pub const INK: Colour = Colour { light: 0x1B1F24, dark: 0xE6EAF0 };
/// Lines of the grid, which nobody needs to see to read a chart.
pub const GRID: Colour = Colour { light: 0xD4D9DF, dark: 0x39414B };
/// The page behind.
pub const PAGE: Colour = Colour { light: 0xFFFFFF, dark: 0x14171C };
/// What is told apart by colour.
pub const SERIES: [Colour; 5] = [
    Colour { light: 0x0072B2, dark: 0x56B4E9 },
    Colour { light: 0xD55E00, dark: 0xFF8C42 },
    Colour { light: 0x00A070, dark: 0x4FE0A0 },
    Colour { light: 0x50134D, dark: 0x8F5FF5 },
    Colour { light: 0xB455E8, dark: 0xF5E642 },
];
/// All others.
pub const REST: Colour = Colour { light: 0x808080, dark: 0x9A9A9A };

impl Colour {
    /// As plotters takes it.
    pub fn drawn(self) -> RGBColor {
        let [_, r, g, b] = self.light.to_be_bytes();
        RGBColor(r, g, b)
    }

    /// As plotters writes it.
    pub fn written(self) -> String {
        format!("#{:06X}", self.light)
    }
}

/// The n-th series; beyond their number, all others'.
pub fn series(n: usize) -> Colour {
    SERIES.get(n).copied().unwrap_or(REST)
}

/// Rules that turn every colour into its dark form.
pub fn dark_rules() -> String {
    SERIES
        .iter()
        .chain([&INK, &GRID, &PAGE, &REST])
        .map(|c| {
            let (light, dark) = (c.written(), format!("#{:06X}", c.dark));
            format!(
                "svg [fill=\"{light}\"] {{ fill: {dark}; }}\nsvg [stroke=\"{light}\"] {{ stroke: {dark}; }}\n"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2's relative luminance and contrast.
    fn contrast(a: u32, b: u32) -> f64 {
        let luminance = |colour: u32| {
            let [_, r, g, b] = colour.to_be_bytes().map(|c| {
                let c = f64::from(c) / 255.0;
                if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            });
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (a, b) = (luminance(a), luminance(b));
        a.max(b) / a.min(b)
    }

    #[test]
    fn every_mark_is_seen_on_its_page() {
        for colour in SERIES.iter().chain([&REST, &INK]) {
            assert!(contrast(colour.light, PAGE.light) >= 3.0, "{:06X}", colour.light);
            assert!(contrast(colour.dark, PAGE.dark) >= 3.0, "{:06X}", colour.dark);
        }
    }

    #[test]
    fn a_light_form_is_of_one_colour_only() {
        let mut all: Vec<u32> =
            SERIES.iter().chain([&REST, &INK, &GRID, &PAGE]).map(|c| c.light).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), SERIES.len() + 4, "the dark rules go by the light form");
    }
}
