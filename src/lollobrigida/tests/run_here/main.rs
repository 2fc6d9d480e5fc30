// SPDX-License-Identifier: GPL-2.0-only
//! Real runs of small scenes on this machine, under whichever scheduler is in charge.

mod ends;
mod figures;
mod help;
mod rights;
