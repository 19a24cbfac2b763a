//! Random numbers that are pure functions of a seed, a field and an index.
//!
//! Generators need no state that way: any record can be made on its own, on any thread, and is the
//! same after a restart.

/// The numbers of one field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomField {
    base: u64,
}

impl RandomField {
    pub(crate) const fn new(seed: u64, field: u64) -> Self {
        let base = seed.wrapping_mul(GOLDEN).wrapping_add(field.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self { base: mix(base.wrapping_add(0x632B_E59B_D9B4_E019)) }
    }

    /// 53 random bits.
    #[inline]
    pub(crate) const fn bits(self, idx: i64) -> u64 {
        mix(idx.cast_unsigned().wrapping_mul(GOLDEN).wrapping_add(self.base)) >> 11
    }

    /// A number in `0..limit`.
    #[inline]
    pub(crate) const fn below(self, idx: i64, limit: i64) -> i64 {
        (self.bits(idx) % limit.cast_unsigned()).cast_signed()
    }

    /// A number in `0.0..1.0`.
    #[inline]
    pub(crate) fn fraction(self, idx: i64) -> f64 {
        self.bits(idx) as f64 / (1u64 << 53) as f64
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of `SplitMix64`: every input bit changes half of the output bits.
#[inline]
const fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
