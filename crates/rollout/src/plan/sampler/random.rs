//! A random number generator that never changes, because the same seed must select the same tasks with every version of
//! this program: xoshiro256++, seeded by SplitMix64 as its authors recommend.

/// A xoshiro256++ generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let mut next = [a, b, c ^ a, d ^ b];
        next[1] ^= next[2];
        next[0] ^= next[3];
        next[2] ^= b << 17;
        next[3] = next[3].rotate_left(45);
        self.state = next;
        result
    }

    /// Returns a uniformly distributed number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // Products whose low half is below this bound are biased and rejected.
        let bound = limit.wrapping_neg() % limit;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(limit);
            if product as u64 >= bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Moves `count` random items to the front, in random order.
    pub fn partial_shuffle<T>(&mut self, items: &mut [T], count: usize) {
        for index in 0..count.min(items.len()) {
            let other = index + self.below((items.len() - index) as u64) as usize;
            items.swap(index, other);
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_match_reference_values() {
        let mut seed = 1_234_567;
        let mixed: Vec<u64> = (0..3).map(|_| split_mix(&mut seed)).collect();
        assert_eq!(mixed, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        let mut random = Random { state: [1, 2, 3, 4] };
        let drawn: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn numbers_below_a_limit_are_uniform() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
