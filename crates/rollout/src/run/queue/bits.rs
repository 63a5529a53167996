//! A set of trajectory indices in the shape Redis keeps it: bit 0 is the highest of the first byte.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    pub(super) fn contains(&self, index: usize) -> bool {
        self.bytes.get(index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// Adds one; `false` when it was there.
    pub(super) fn insert(&mut self, index: usize) -> bool {
        if self.contains(index) {
            return false;
        }
        if self.bytes.len() <= index / 8 {
            self.bytes.resize(index / 8 + 1, 0);
        }
        self.bytes[index / 8] |= 0x80 >> (index % 8);
        self.count += 1;
        true
    }

    /// Adds those that Redis has, below `total`, and answers which were new.
    pub(super) fn merge(&mut self, bytes: &[u8], total: usize) -> Vec<usize> {
        let set = bytes.iter().enumerate().flat_map(|(place, byte)| {
            (0..8).filter(move |bit| byte & (0x80 >> bit) != 0).map(move |bit| place * 8 + bit)
        });
        set.filter(|index| *index < total).filter(|index| self.insert(*index)).collect()
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_redis_and_nothing_beyond_the_run_counts() {
        let mut bits = Bits::default();
        assert!(bits.insert(9) && !bits.insert(9));
        // SETBIT 0, 9 and 15 make these bytes.
        assert_eq!(bits.merge(&[0x80, 0x41], 15), [0]);
        assert_eq!((bits.count(), bits.contains(0), bits.contains(15)), (2, true, false));
    }
}
