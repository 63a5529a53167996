//! Which node to ask first: a pure decision over what is known of them.

use std::{cmp::Reverse, sync::Arc};

use super::{Entry, Glance};

/// How many nodes that seemed full are asked all the same: they may have been released by another master.
const LONG_SHOTS: usize = 2;

/// The nodes worth asking, freest first.
pub(crate) fn order(entries: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let known: Vec<Glance> = entries.iter().map(|entry| entry.glance()).collect();
    choose(&known).into_iter().filter_map(|index| entries.get(index).cloned()).collect()
}

/// Indices: those with room by room, then a few that claim to have none, the likeliest first.
fn choose(known: &[Glance]) -> Vec<usize> {
    let open = known.iter().enumerate().filter(|(_, node)| node.open);
    let (mut free, mut full): (Vec<_>, Vec<_>) = open.partition(|(_, node)| node.free > 0);
    free.sort_by_key(|(_, node)| Reverse(node.free));
    full.sort_by_key(|(_, node)| Reverse(node.coming));
    let long_shots = full.into_iter().take(LONG_SHOTS);
    free.into_iter().chain(long_shots).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(known: &[(bool, usize, usize)]) -> Vec<usize> {
        let node = |(open, free, coming): &(bool, usize, usize)| Glance {
            open: *open,
            free: *free,
            coming: *coming,
            held_back: false,
        };
        choose(&known.iter().map(node).collect::<Vec<_>>())
    }

    #[test]
    fn the_freest_healthy_node_is_asked_first() {
        assert_eq!(chosen(&[(true, 1, 0), (true, 5, 0), (false, 9, 0), (true, 3, 0)]), [1, 3, 0]);
    }

    #[test]
    fn full_nodes_are_a_last_resort_and_sick_ones_none() {
        let known = [(true, 0, 0), (true, 0, 0), (true, 0, 0), (false, 2, 0), (true, 1, 0)];
        assert_eq!(chosen(&known), [4, 0, 1]);
        assert_eq!(chosen(&[(false, 2, 2)]), Vec::<usize>::new());
    }

    #[test]
    fn of_the_full_ones_those_that_make_some_ready_are_likelier() {
        assert_eq!(chosen(&[(true, 0, 0), (true, 0, 0), (true, 0, 3)]), [2, 0]);
    }
}
