//! The key by which tasks are compared: a 128-bit digest of subdomain, website, difficulty and name.

use proto::trajectory::Task;

/// Identifies a task; equal for tasks with the same subdomain, website, difficulty and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(u128);

impl TaskKey {
    pub fn of(task: &Task) -> Self {
        Self::new(&task.subdomain, &task.website, task.difficulty, &task.task_name)
    }

    pub fn new(subdomain: &str, website: &str, difficulty: i64, name: &str) -> Self {
        Self(digest(&[subdomain.as_bytes(), website.as_bytes(), &difficulty.to_le_bytes(), name.as_bytes()]))
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// Computes a 128-bit FNV-1a hash. Each part is followed by its length, so that moving bytes from one part to the next
/// changes the hash.
pub(crate) fn digest(parts: &[&[u8]]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut state: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut feed = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for part in parts {
        feed(part);
        feed(&(part.len() as u64).to_le_bytes());
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_part_boundaries_give_different_digests() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_ne!(digest(&[b"ab"]), digest(&[b"ab", b""]));
    }
}
