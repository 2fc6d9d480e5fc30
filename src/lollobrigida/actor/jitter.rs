// SPDX-License-Identifier: GPL-2.0-only
//! Bursts and sleeps that vary, by the task's seed alone.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A task's own stream of choices.
pub(super) struct Jitter {
    random: ChaCha8Rng,
    pct: u32,
}

impl Jitter {
    /// Each way by up to `pct` percent, 0 to 100.
    pub fn new(seed: u64, pct: u32) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), pct: pct.min(100) }
    }

    /// A value evenly between `value` less and plus the percentage. Without jitter no
    /// choice is made.
    pub fn around(&mut self, value: u64) -> u64 {
        if self.pct == 0 {
            return value;
        }
        let reach = (u128::from(value) * u128::from(self.pct) / 100).min(1 << 62);
        let choices = 2 * reach + 1;
        let choice = (u128::from(self.random.next_u64()) * choices) >> 64;
        u64::try_from(u128::from(value) - reach + choice).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_bounds_and_reaches_them() {
        let mut jitter = Jitter::new(1, 20);
        let drawn: Vec<u64> = (0..2000).map(|_| jitter.around(100)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&80), Some(&120)));
        let mean = drawn.iter().sum::<u64>() / 2000;
        assert!((98..=102).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| Jitter::new(2, 100).around(7) <= 14));
        assert!(Jitter::new(3, 100).around(u64::MAX) > 0);
    }

    #[test]
    fn follows_the_seed_alone() {
        let draw = |seed| {
            let mut jitter = Jitter::new(seed, 50);
            [(); 4].map(|()| jitter.around(1_000_000))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
