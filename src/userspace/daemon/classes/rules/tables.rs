// SPDX-License-Identifier: GPL-2.0-only
//! Which rule has which of BPF's few tables of system calls.

use super::Entry;
use crate::abi::NR_CALL_TABLES;

/// What each table says otherwise than the policy's: number and class of calls. The first is the
/// policy's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables([Vec<(usize, u8)>; NR_CALL_TABLES]);

impl Tables {
    /// The tables of these rules, and which one each rule has. One that was there `before` keeps
    /// its number, and new ones take numbers that were free then if they can: tasks go by the
    /// tables of before until they are looked at.
    ///
    /// # Errors
    /// When there are more than BPF has, or a call is not known.
    pub fn of(entries: &[Entry], before: &Self) -> Result<(Self, Vec<u32>), String> {
        let mut wanted = Vec::new();
        for entry in entries {
            let slots =
                entry.rule.call_slots().map_err(|what| format!("{}: {what}", entry.from))?;
            wanted.push(slots);
        }
        let mut tables = Self::default();
        for (table, old) in tables.0.iter_mut().zip(&before.0) {
            if wanted.contains(old) {
                table.clone_from(old);
            }
        }
        for (entry, slots) in entries.iter().zip(&wanted) {
            if tables.row(slots).is_some() {
                continue;
            }
            let free = |row: &usize| tables.0[*row].is_empty();
            let rows = || (1..NR_CALL_TABLES).filter(free);
            let unused = rows().find(|row| before.0[*row].is_empty());
            let row = unused.or_else(|| rows().next()).ok_or_else(|| {
                format!(
                    "{}: rules may have {} different tables of calls, and those before have as \
                     many; give some the same calls",
                    entry.from,
                    NR_CALL_TABLES - 1
                )
            })?;
            tables.0[row].clone_from(slots);
        }
        let rows = wanted.iter().map(|slots| tables.row(slots).unwrap_or_default()).collect();
        Ok((tables, rows))
    }

    /// The table that says just this; 0 is the one that says nothing.
    fn row(&self, slots: &[(usize, u8)]) -> Option<u32> {
        if slots.is_empty() {
            return Some(0);
        }
        self.0.iter().position(|table| table == slots).and_then(|row| u32::try_from(row).ok())
    }

    /// Those that say something.
    pub fn rows(&self) -> impl Iterator<Item = (u32, &[(usize, u8)])> {
        let said = (0..).zip(&self.0).filter(|(_, table)| !table.is_empty());
        said.map(|(row, table)| (row, table.as_slice()))
    }
}
