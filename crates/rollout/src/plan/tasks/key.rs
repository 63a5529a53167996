//! What makes two tasks the same task: subdomain, website, difficulty and name, as one 128-bit digest.

use proto::trajectory::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(u128);

impl TaskKey {
    pub fn of(task: &Task) -> Self {
        Self::new(&task.subdomain, &task.website, task.difficulty, &task.task_name)
    }

    pub fn new(subdomain: &str, website: &str, difficulty: i64, name: &str) -> Self {
        Self(digest(&[subdomain.as_bytes(), website.as_bytes(), &difficulty.to_le_bytes(), name.as_bytes()]))
    }
}

impl TaskKey {
    pub(super) fn bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// FNV-1a over 128 bits; each part is followed by its length, so that parts cannot flow into each other.
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
    fn parts_do_not_flow_into_each_other() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_ne!(digest(&[b"ab"]), digest(&[b"ab", b""]));
    }
}
