//! A set of trajectory indices in the format of a Redis bitmap: bit 0 is the highest bit of the first byte.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IndexBitmap {
    bytes: Vec<u8>,
    count: usize,
}

impl IndexBitmap {
    pub(super) fn contains(&self, index: usize) -> bool {
        self.bytes.get(index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// Adds an index. Returns `false` when it was already in the set.
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

    /// Adds the indices of a Redis bitmap that are below `total`. Returns those that are new.
    pub(super) fn merge(&mut self, bytes: &[u8], total: usize) -> Vec<usize> {
        let indices = bytes.iter().enumerate().flat_map(|(position, byte)| {
            (0..8).filter(move |bit| byte & (0x80 >> bit) != 0).map(move |bit| position * 8 + bit)
        });
        indices.filter(|index| *index < total).filter(|index| self.insert(*index)).collect()
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_reads_redis_bit_order_up_to_total() {
        let mut bitmap = IndexBitmap::default();
        assert!(bitmap.insert(9) && !bitmap.insert(9));
        // SETBIT 0, 9 and 15 produce these bytes.
        assert_eq!(bitmap.merge(&[0x80, 0x41], 15), [0]);
        assert_eq!((bitmap.count(), bitmap.contains(0), bitmap.contains(15)), (2, true, false));
    }
}
