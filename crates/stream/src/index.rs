//! Where the items of the stream are in the journal. An item is a trajectory, or a group of attempts whose last one has
//! finished. Built from positions in file order, so that a resumed run numbers its items as before. A few dozen bytes for each
//! trajectory; the trajectories themselves stay in the file.

use std::collections::{HashMap, hash_map::Entry};

use store::journal::FinishedPosition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) trajectory_index: i64,
    pub(crate) offset: u64,
}

#[derive(Debug)]
pub(crate) struct Index {
    group_size: usize,
    /// The members of all complete items; each item has `group_size` of them, by trajectory index.
    members: Vec<Member>,
    /// The position in `members` of each complete item, by group.
    complete: HashMap<i64, usize>,
    incomplete: HashMap<i64, Vec<Member>>,
}

impl Index {
    pub(crate) fn new(group_size: usize) -> Self {
        let group_size = group_size.max(1);
        Self { group_size, members: Vec::new(), complete: HashMap::new(), incomplete: HashMap::new() }
    }

    /// Returns the number of complete items.
    pub(crate) fn len(&self) -> usize {
        self.members.len() / self.group_size
    }

    /// Returns the members of the item with this number, from 1.
    pub(crate) fn item(&self, number: u64) -> Option<&[Member]> {
        let position = usize::try_from(number).ok()?.checked_sub(1)?;
        self.members.get(position * self.group_size..(position + 1) * self.group_size)
    }

    /// Adds a finished trajectory. A later record of the same trajectory replaces the earlier one in its place.
    pub(crate) fn add(&mut self, finished: &FinishedPosition) {
        let FinishedPosition { trajectory_index, offset, .. } = *finished;
        let member = Member { trajectory_index, offset };
        let group = trajectory_index / self.group_size.cast_signed() as i64;
        if let Some(start) = self.complete.get(&group) {
            return replace(&mut self.members[*start..*start + self.group_size], member).unwrap_or_default();
        }
        let mut entry = match self.incomplete.entry(group) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Vec::new()),
        };
        if replace(entry.get_mut(), member).is_none() {
            entry.get_mut().push(member);
        }
        if entry.get().len() == self.group_size {
            let mut group_members = entry.remove();
            group_members.sort_by_key(|member| member.trajectory_index);
            self.complete.insert(group, self.members.len());
            self.members.append(&mut group_members);
        }
    }
}

/// Replaces the record of a trajectory; `None` if it has none.
fn replace(members: &mut [Member], new: Member) -> Option<()> {
    *members.iter_mut().find(|member| member.trajectory_index == new.trajectory_index)? = new;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(group_size: usize, finished: &[i64]) -> Index {
        let mut index = Index::new(group_size);
        for (number, trajectory_index) in finished.iter().enumerate() {
            let (trajectory_index, offset) = (*trajectory_index, number as u64 * 100);
            index.add(&FinishedPosition { trajectory_index, offset, length: 100 });
        }
        index
    }

    fn items(index: &Index) -> Vec<Vec<(i64, u64)>> {
        let item = |number| index.item(number).unwrap().iter();
        (1..=index.len() as u64)
            .map(|number| item(number).map(|member| (member.trajectory_index, member.offset)).collect())
            .collect()
    }

    #[test]
    fn trajectories_are_numbered_in_file_order() {
        let index = index(1, &[5, 0, 3]);
        assert_eq!(items(&index), [[(5, 0)], [(0, 100)], [(3, 200)]]);
        assert!(index.item(0).is_none() && index.item(4).is_none());
    }

    #[test]
    fn group_is_an_item_when_its_last_attempt_finished() {
        let index = index(2, &[3, 0, 2, 4, 1]);
        assert_eq!(items(&index), [[(2, 200), (3, 0)], [(0, 100), (1, 400)]]);
    }

    #[test]
    fn second_record_replaces_first_without_new_item() {
        assert_eq!(items(&index(1, &[5, 0, 5])), [[(5, 200)], [(0, 100)]]);
        assert_eq!(items(&index(2, &[0, 0, 1, 1])), [[(0, 100), (1, 300)]]);
    }
}
