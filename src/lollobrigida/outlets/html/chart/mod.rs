// SPDX-License-Identifier: GPL-2.0-only
//! The charts of the page.

pub mod fairness;
pub mod lanes;
pub mod locality;
pub mod rows;
pub mod shares;
pub mod timeline;
pub mod times;
pub mod wakeups;

use anyhow::Result;
pub use page::chart::{
    Area, Chart, Grid, NOTHING, WIDTHS, block, failed, fitting, font, label, letters,
};
use plotters::style::text_anchor::HPos;

use crate::result::Cpu;

/// Room for the CPUs of a machine one below the other, px.
#[derive(Clone, Copy)]
struct CpuRows {
    /// For their names.
    left: u32,
    /// Of each.
    height: u32,
    /// Each of so many has its name; all would touch each other.
    every: usize,
}

impl CpuRows {
    fn of(cpus: &[Cpu]) -> Self {
        let height = match cpus.len() {
            0..=16 => 26,
            17..=64 => 14,
            _ => 7,
        };
        let greatest = cpus.iter().map(|c| c.cpu).max().unwrap_or(0);
        let digits = greatest.max(1).ilog10() + 1;
        Self { left: 44 + 9 * digits, height, every: (14 / height).max(1) as usize }
    }

    /// The name of a row's CPU, if it has one, at a height.
    fn name(self, area: &Area, row: usize, cpu: u32, y: i32) -> Result<()> {
        if !row.is_multiple_of(self.every) {
            return Ok(());
        }
        label(area, &format!("CPU {cpu}"), (self.left as i32 - 6, y), HPos::Right)
    }
}
