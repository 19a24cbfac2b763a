//! Sums of double precision numbers without rounding: whatever order values are added and taken
//! back in, the sum is the exact one, rounded once when it is read.
//!
//! A sum is an integer times a power of two. While that integer has at most 127 bits, which is so
//! for values of usual magnitudes, it is kept as one `i128`; else as a fixed-point number of 2176
//! bits, in units of 2⁻¹⁰⁷⁴, that holds any sum of 2⁶⁴ doubles (Kulisch's long accumulator).
//! Infinities and NaNs are counted apart.
//!
//! In a state table (all numbers little-endian):
//!
//! | bytes | |
//! |---|---|
//! | 1 | which of the following parts are there: 1 small, 2 wide, 4 specials |
//! | 2 + 16 | small: exponent, mantissa |
//! | 1 + 1 + 8 n | wide: first limb, n, limbs; the limbs above repeat the sign, those below are 0 |
//! | 24 | specials: numbers of NaN, +∞, −∞ |

use dataflow::{DataflowError, Result};

/// The exponent of the least bit of a double.
const LEAST_EXPONENT: i32 = -1074;
const LIMBS: usize = 34;
/// Room left below the first value for smaller ones.
const ROOM_BELOW: i32 = 32;
const SMALL: u8 = 1;
const WIDE: u8 = 2;
const SPECIALS: u8 = 4;

/// An exact sum.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactFloat {
    /// Times 2^`exponent`; 0 while `rare` has a wide sum.
    mantissa: i128,
    exponent: i16,
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Clone, Default)]
struct Rare {
    wide: Option<Wide>,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
}

impl ExactFloat {
    /// Adds `value`, `times` times.
    #[inline]
    pub(crate) fn add(&mut self, value: f64, times: i64) {
        if value == 0.0 {
            return;
        }
        let bits = value.to_bits();
        let field = ((bits >> 52) & 0x7FF) as i32;
        if field == 0x7FF {
            return self.add_special(value, times);
        }
        let fraction = (bits & ((1 << 52) - 1)) as i128;
        let (magnitude, exponent) =
            if field == 0 { (fraction, LEAST_EXPONENT) } else { (fraction | (1 << 52), field - 1075) };
        // At most 53 + 63 bits.
        let term = if value < 0.0 { -magnitude } else { magnitude } * i128::from(times);
        if self.rare.as_ref().is_some_and(|rare| rare.wide.is_some()) || !self.add_small(term, exponent) {
            self.add_wide(term, exponent);
        }
    }

    /// Adds to the small sum; false, and nothing done, if it does not fit.
    #[inline]
    fn add_small(&mut self, term: i128, exponent: i32) -> bool {
        if self.mantissa == 0 {
            self.exponent = (exponent - ROOM_BELOW).max(LEAST_EXPONENT) as i16;
        }
        let shift = exponent - i32::from(self.exponent);
        // Two bits fewer than there are: the sum of two such numbers does not overflow.
        let bits = 128 - term.unsigned_abs().leading_zeros() as i32;
        if shift < 0 || bits + shift > 125 {
            return false;
        }
        match self.mantissa.checked_add(term << shift) {
            Some(sum) => {
                self.mantissa = sum;
                true
            }
            None => false,
        }
    }

    fn add_wide(&mut self, term: i128, exponent: i32) {
        let small = (self.mantissa, i32::from(self.exponent));
        self.mantissa = 0;
        let wide = self.rare.get_or_insert_default().wide.get_or_insert_with(|| {
            let mut wide = Wide::default();
            wide.add(small.0, small.1);
            wide
        });
        wide.add(term, exponent);
    }

    fn add_special(&mut self, value: f64, times: i64) {
        let rare = self.rare.get_or_insert_default();
        let count = if value.is_nan() {
            &mut rare.nans
        } else if value > 0.0 {
            &mut rare.infinities
        } else {
            &mut rare.negative_infinities
        };
        *count += times;
    }

    /// The sum if it is no finite number: because of what was added, not because it is too great.
    pub(crate) fn special(&self) -> Option<f64> {
        let rare = self.rare.as_ref()?;
        if rare.nans > 0 || (rare.infinities > 0 && rare.negative_infinities > 0) {
            Some(f64::NAN)
        } else if rare.infinities > 0 {
            Some(f64::INFINITY)
        } else if rare.negative_infinities > 0 {
            Some(f64::NEG_INFINITY)
        } else {
            None
        }
    }

    /// The sum of the finite values, rounded to the nearest double; infinite if that is too great.
    pub(crate) fn finite(&self) -> f64 {
        let exponent = i32::from(self.exponent);
        // An integer is rounded to nearest when it is converted; the scaling is exact as long as
        // the result is neither subnormal nor too great.
        if self.rare.as_ref().is_none_or(|rare| rare.wide.is_none()) && (-1022..=800).contains(&exponent) {
            return self.mantissa as f64 * f64::from_bits(((exponent + 1023) as u64) << 52);
        }
        self.to_big().to_f64()
    }

    /// The sum of the finite values as a big number.
    pub(crate) fn to_big(&self) -> Big {
        match self.rare.as_ref().and_then(|rare| rare.wide.as_ref()) {
            Some(wide) => wide.to_big(),
            None => Big::new(self.mantissa, i32::from(self.exponent)),
        }
    }

    /// Appends the bytes of the state table.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let flags_at = to.len();
        to.push(0);
        if self.mantissa != 0 {
            to[flags_at] |= SMALL;
            to.extend_from_slice(&self.exponent.to_le_bytes());
            to.extend_from_slice(&self.mantissa.to_le_bytes());
        }
        let Some(rare) = &self.rare else { return };
        if let Some(wide) = &rare.wide {
            to[flags_at] |= WIDE;
            wide.write(to);
        }
        let specials = [rare.nans, rare.infinities, rare.negative_infinities];
        if specials != [0; 3] {
            to[flags_at] |= SPECIALS;
            specials.iter().for_each(|count| to.extend_from_slice(&count.to_le_bytes()));
        }
    }

    /// The inverse of [`Self::write`].
    pub(crate) fn read(mut from: &[u8]) -> Result<Self> {
        let rest = &mut from;
        let [flags] = take(rest)?;
        let mut sum = Self::default();
        if flags & SMALL != 0 {
            sum.exponent = i16::from_le_bytes(take(rest)?);
            sum.mantissa = i128::from_le_bytes(take(rest)?);
        }
        if flags & WIDE != 0 {
            sum.rare.get_or_insert_default().wide = Some(Wide::read(rest)?);
        }
        if flags & SPECIALS != 0 {
            let rare = sum.rare.get_or_insert_default();
            rare.nans = i64::from_le_bytes(take(rest)?);
            rare.infinities = i64::from_le_bytes(take(rest)?);
            rare.negative_infinities = i64::from_le_bytes(take(rest)?);
        }
        if rest.is_empty() { Ok(sum) } else { Err(damaged()) }
    }
}

fn damaged() -> DataflowError {
    DataflowError::Internal("the state of a float sum is damaged".to_owned())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk::<N>().ok_or_else(damaged)?;
    *rest = behind;
    Ok(*bytes)
}

/// A fixed-point number in two's complement; bit 0 of the first limb is worth 2⁻¹⁰⁷⁴.
#[derive(Debug, Clone)]
struct Wide {
    limbs: [u64; LIMBS],
}

impl Default for Wide {
    fn default() -> Self {
        Self { limbs: [0; LIMBS] }
    }
}

impl Wide {
    fn add(&mut self, term: i128, exponent: i32) {
        let place = (exponent - LEAST_EXPONENT) as usize;
        let (first, shift) = (place / 64, place % 64);
        let low = (term as u128) << shift;
        let high = if shift == 0 { (term >> 127) as u64 } else { (term >> (128 - shift)) as u64 };
        let sign = if term < 0 { u64::MAX } else { 0 };
        let mut carry = false;
        for (number, limb) in self.limbs[first..].iter_mut().enumerate() {
            let part = match number {
                0 => low as u64,
                1 => (low >> 64) as u64,
                2 => high,
                _ => sign,
            };
            let (sum, over) = limb.overflowing_add(part);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over || over_again;
            // From here on nothing changes: +0, or −1 with the carry that undoes it.
            if number >= 2 && carry == (sign != 0) {
                break;
            }
        }
    }

    fn is_negative(&self) -> bool {
        self.limbs[LIMBS - 1] >> 63 != 0
    }

    fn to_big(&self) -> Big {
        let is_negative = self.is_negative();
        let mut limbs = self.limbs.to_vec();
        if is_negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
            }
        }
        Big { is_negative, limbs, exponent: LEAST_EXPONENT }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let first = self.limbs.iter().position(|limb| *limb != 0).unwrap_or(0);
        let sign = if self.is_negative() { u64::MAX } else { 0 };
        let mut end = LIMBS;
        // The last limb written must still show the sign.
        while end > first + 1
            && self.limbs[end - 1] == sign
            && (self.limbs[end - 2] >> 63 != 0) == (sign != 0)
        {
            end -= 1;
        }
        to.push(first as u8);
        to.push((end - first) as u8);
        self.limbs[first..end].iter().for_each(|limb| to.extend_from_slice(&limb.to_le_bytes()));
    }

    fn read(rest: &mut &[u8]) -> Result<Self> {
        let [first, count] = take(rest)?;
        let (first, end) = (usize::from(first), usize::from(first) + usize::from(count));
        if count == 0 || end > LIMBS {
            return Err(damaged());
        }
        let mut wide = Self::default();
        for limb in &mut wide.limbs[first..end] {
            *limb = u64::from_le_bytes(take(rest)?);
        }
        if wide.limbs[end - 1] >> 63 != 0 {
            wide.limbs[end..].fill(u64::MAX);
        }
        Ok(wide)
    }
}

/// A number of any size: ± limbs × 2^exponent. Only as much arithmetic as variances need.
#[derive(Debug, Clone)]
pub(crate) struct Big {
    is_negative: bool,
    limbs: Vec<u64>,
    exponent: i32,
}

impl Big {
    pub(crate) fn new(value: i128, exponent: i32) -> Self {
        let magnitude = value.unsigned_abs();
        Self { is_negative: value < 0, limbs: vec![magnitude as u64, (magnitude >> 64) as u64], exponent }
            .trimmed()
    }

    /// Without zero limbs at either end.
    fn trimmed(mut self) -> Self {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
        let zeros = self.limbs.iter().take_while(|limb| **limb == 0).count();
        self.limbs.drain(..zeros);
        self.exponent += 64 * zeros as i32;
        self
    }

    /// The product.
    pub(crate) fn times(&self, other: &Self) -> Self {
        let (left, right) = (self.clone().trimmed(), other.clone().trimmed());
        let mut limbs = vec![0; left.limbs.len() + right.limbs.len()];
        for (place, &limb) in left.limbs.iter().enumerate() {
            let mut carry = 0;
            for (offset, &factor) in right.limbs.iter().enumerate() {
                let sum = u128::from(limbs[place + offset]) + u128::from(limb) * u128::from(factor) + carry;
                limbs[place + offset] = sum as u64;
                carry = sum >> 64;
            }
            limbs[place + right.limbs.len()] = carry as u64;
        }
        let is_negative = left.is_negative != right.is_negative;
        Self { is_negative, limbs, exponent: left.exponent + right.exponent }.trimmed()
    }

    /// The difference of two numbers that are not negative, or 0 if it would be negative.
    pub(crate) fn minus_or_zero(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let mut left = self.limbs_at(exponent);
        let mut right = other.limbs_at(exponent);
        let len = left.len().max(right.len());
        left.resize(len, 0);
        right.resize(len, 0);
        let mut borrow = false;
        for (left, right) in left.iter_mut().zip(right) {
            let (difference, under) = left.overflowing_sub(right);
            let (difference, under_again) = difference.overflowing_sub(u64::from(borrow));
            *left = difference;
            borrow = under || under_again;
        }
        if borrow {
            left.clear();
        }
        Self { is_negative: false, limbs: left, exponent }.trimmed()
    }

    /// The limbs of the magnitude in units of 2^`exponent`, which is not above the number's own.
    fn limbs_at(&self, exponent: i32) -> Vec<u64> {
        let shift = (self.exponent - exponent) as usize;
        let (zeros, shift) = (shift / 64, shift % 64);
        let mut limbs = vec![0; zeros];
        let mut carry = 0;
        for &limb in &self.limbs {
            limbs.push(limb << shift | carry);
            carry = if shift == 0 { 0 } else { limb >> (64 - shift) };
        }
        limbs.push(carry);
        limbs
    }

    fn bit(&self, place: usize) -> bool {
        self.limbs[place / 64] >> (place % 64) & 1 != 0
    }

    /// The nearest double, ties to even; infinite if the number is too great.
    pub(crate) fn to_f64(&self) -> f64 {
        let sign = if self.is_negative { -1.0 } else { 1.0 };
        let Some(last) = self.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let top = last as i32 * 64 + 63 - self.limbs[last].leading_zeros() as i32;
        // The least bit that a double of this magnitude has.
        let lowest = (self.exponent + top - 52).max(LEAST_EXPONENT) - self.exponent;
        let mut mantissa = 0_u64;
        for place in (lowest..=top).rev() {
            mantissa = mantissa << 1 | u64::from(place >= 0 && self.bit(place as usize));
        }
        let half = lowest > 0 && lowest <= top + 1 && self.bit(lowest as usize - 1);
        let is_above_half = || (0..lowest - 1).any(|place| place <= top && self.bit(place as usize));
        if half && (mantissa & 1 != 0 || is_above_half()) {
            mantissa += 1;
        }
        // Two exact steps, because a power of two below 2⁻¹⁰²² is subnormal.
        let exponent = self.exponent + lowest;
        if exponent > 971 {
            return sign * f64::INFINITY;
        }
        let part = (exponent / 2).max(-1000);
        sign * mantissa as f64 * power_of_two(part) * power_of_two(exponent - part)
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_of(values: &[f64]) -> ExactFloat {
        let mut sum = ExactFloat::default();
        values.iter().for_each(|&value| sum.add(value, 1));
        sum
    }

    fn through_bytes(sum: &ExactFloat) -> ExactFloat {
        let mut bytes = Vec::new();
        sum.write(&mut bytes);
        ExactFloat::read(&bytes).unwrap()
    }

    /// A generator good enough for tests.
    fn random(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn small_parts_are_not_lost_in_great_ones() {
        assert_eq!(sum_of(&[1e16, 1.0, -1e16]).finite(), 1.0);
        assert_eq!(sum_of(&[1e300, 1e-300, -1e300]).finite(), 1e-300);
        assert_eq!(sum_of(&[f64::MAX, f64::MAX, -f64::MAX]).finite(), f64::MAX);
        assert_eq!(sum_of(&[f64::MAX, f64::MAX]).finite(), f64::INFINITY);
        assert_eq!(sum_of(&[0.1; 10]).finite(), 1.0);
        assert_eq!(sum_of(&[5e-324, 5e-324]).finite(), 1e-323);
    }

    #[test]
    fn one_value_is_its_own_sum() {
        let mut seed = 7;
        for _ in 0..20_000 {
            let value = f64::from_bits(random(&mut seed));
            if value.is_finite() {
                assert_eq!(
                    sum_of(&[value]).finite().to_bits(),
                    if value == 0.0 { 0 } else { value.to_bits() }
                );
                assert_eq!(
                    sum_of(&[value]).to_big().to_f64().to_bits(),
                    if value == 0.0 { 0 } else { value.to_bits() }
                );
                let wide = sum_of(&[f64::MAX, 5e-324, value, -f64::MAX, -5e-324]);
                assert_eq!(through_bytes(&wide).finite(), value);
            }
        }
    }

    #[test]
    fn order_and_retraction_leave_no_trace() {
        let mut seed = 11;
        for _ in 0..500 {
            let spread = random(&mut seed) % 600;
            let values: Vec<f64> = (0..40)
                .map(|_| {
                    let exponent = 1023 - spread / 2 + random(&mut seed) % (spread + 1);
                    f64::from_bits(random(&mut seed) & !(0x7FF << 52) | exponent << 52)
                })
                .collect();
            let forward = sum_of(&values);
            let mut backward = ExactFloat::default();
            values.iter().rev().for_each(|&value| backward.add(value, 3));
            backward = through_bytes(&backward);
            values.iter().for_each(|&value| backward.add(value, -2));
            assert_eq!(forward.finite().to_bits(), backward.finite().to_bits());
            assert_eq!(forward.to_big().to_f64().to_bits(), forward.finite().to_bits());
            values.iter().for_each(|&value| backward.add(value, -1));
            assert_eq!(backward.finite(), 0.0);
        }
    }

    #[test]
    fn a_sum_is_rounded_once_and_ties_go_to_even() {
        let ulp = 2_f64.powi(-52);
        assert_eq!(sum_of(&[1.0, ulp / 2.0]).finite(), 1.0);
        assert_eq!(sum_of(&[1.0, ulp / 2.0, 2_f64.powi(-100)]).finite(), 1.0 + ulp);
        assert_eq!(sum_of(&[1.0 + ulp, ulp / 2.0]).finite(), 1.0 + 2.0 * ulp);
        assert_eq!(sum_of(&[1.0, ulp / 2.0, 5e-324]).finite(), 1.0 + ulp);
    }

    #[test]
    fn infinities_and_nans_go_when_they_are_taken_back() {
        let mut sum = sum_of(&[1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        assert!(sum.special().is_some_and(f64::is_nan));
        sum.add(f64::NAN, -1);
        assert!(sum.special().is_some_and(f64::is_nan));
        sum.add(f64::NEG_INFINITY, -1);
        assert_eq!(through_bytes(&sum).special(), Some(f64::INFINITY));
        sum.add(f64::INFINITY, -1);
        assert_eq!((sum.special(), sum.finite()), (None, 1.5));
    }

    #[test]
    fn products_and_differences_are_exact() {
        let big = |value: f64| sum_of(&[value]).to_big();
        let square = big(1e200).times(&big(1e200));
        assert_eq!(square.to_f64(), f64::INFINITY);
        assert_eq!(square.minus_or_zero(&square).to_f64(), 0.0);
        assert_eq!(big(3.0).times(&big(-5.0)).to_f64(), -15.0);
        assert_eq!(big(1e20).minus_or_zero(&big(1.0)).to_f64(), 1e20);
        assert_eq!(big(1.0).minus_or_zero(&big(1e20)).to_f64(), 0.0);
        assert_eq!(big(4e-200).times(&big(2e-200)).to_f64(), 0.0);
    }
}
