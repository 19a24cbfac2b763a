//! Random numbers from a seed that a failing run prints.

/// `SplitMix64`: small, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent stream for one part of a run.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end`, which is not included.
    pub fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.next() % end.unsigned_abs()).unwrap_or(0)
    }

    /// True in one of `times` cases.
    pub fn one_in(&mut self, times: i64) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let at = self.next() % choices.len() as u64;
        &choices[usize::try_from(at).unwrap_or(0)]
    }
}
