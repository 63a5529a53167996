//! Decides in which order nodes are asked for a lease. Pure: it only looks at snapshots of the nodes.

use std::{cmp::Reverse, sync::Arc};

use super::{NodeEntry, NodeSnapshot};

/// How many nodes that seem full are asked all the same: another master may have released a lease there.
const MAX_FULL_NODES: usize = 2;

/// Returns the nodes worth asking, the one with the most free slots first.
pub(crate) fn order(entries: &[Arc<NodeEntry>]) -> Vec<Arc<NodeEntry>> {
    let snapshots: Vec<NodeSnapshot> = entries.iter().map(|entry| entry.snapshot()).collect();
    choose(&snapshots).into_iter().filter_map(|index| entries.get(index).cloned()).collect()
}

/// Returns indices: nodes with free slots, then a few full ones, those with the most starting slots first.
fn choose(nodes: &[NodeSnapshot]) -> Vec<usize> {
    let accepting = nodes.iter().enumerate().filter(|(_, node)| node.accepting);
    let (mut free, mut full): (Vec<_>, Vec<_>) = accepting.partition(|(_, node)| node.free > 0);
    free.sort_by_key(|(_, node)| Reverse(node.free));
    full.sort_by_key(|(_, node)| Reverse(node.starting));
    free.into_iter().chain(full.into_iter().take(MAX_FULL_NODES)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node is given as (accepting, free, starting).
    fn chosen(nodes: &[(bool, usize, usize)]) -> Vec<usize> {
        let node = |(accepting, free, starting): &(bool, usize, usize)| NodeSnapshot {
            accepting: *accepting,
            free: *free,
            starting: *starting,
            held_back: false,
        };
        choose(&nodes.iter().map(node).collect::<Vec<_>>())
    }

    #[test]
    fn node_with_most_free_slots_comes_first() {
        assert_eq!(chosen(&[(true, 1, 0), (true, 5, 0), (false, 9, 0), (true, 3, 0)]), [1, 3, 0]);
    }

    #[test]
    fn full_nodes_come_last_and_unhealthy_never() {
        let nodes = [(true, 0, 0), (true, 0, 0), (true, 0, 0), (false, 2, 0), (true, 1, 0)];
        assert_eq!(chosen(&nodes), [4, 0, 1]);
        assert_eq!(chosen(&[(false, 2, 2)]), Vec::<usize>::new());
    }

    #[test]
    fn full_nodes_with_starting_slots_are_preferred() {
        assert_eq!(chosen(&[(true, 0, 0), (true, 0, 0), (true, 0, 3)]), [2, 0]);
    }
}
