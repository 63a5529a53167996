//! Which node to ask first: a pure decision over what is known of them.

use std::{cmp::Reverse, sync::Arc};

use super::Entry;

/// How many nodes that seemed full are asked all the same: they may have been released by another master.
const LONG_SHOTS: usize = 2;

/// The nodes worth asking, freest first.
pub(crate) fn order(entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    let known = entries.iter().map(|entry| (entry.healthy(), entry.available())).collect::<Vec<_>>();
    choose(&known).into_iter().filter_map(|index| entries.get(index).cloned()).collect()
}

/// Indices of (healthy, free) pairs: those with room by room, then a few that claim to have none.
fn choose(known: &[(bool, i64)]) -> Vec<usize> {
    let healthy = known.iter().enumerate().filter(|(_, (healthy, _))| *healthy);
    let (mut free, full): (Vec<_>, Vec<_>) = healthy.partition(|(_, (_, available))| *available > 0);
    free.sort_by_key(|(_, (_, available))| Reverse(*available));
    let long_shots = full.into_iter().take(LONG_SHOTS);
    free.into_iter().chain(long_shots).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freest_healthy_node_is_asked_first() {
        assert_eq!(choose(&[(true, 1), (true, 5), (false, 9), (true, 3)]), [1, 3, 0]);
    }

    #[test]
    fn full_nodes_are_a_last_resort_and_sick_ones_none() {
        assert_eq!(choose(&[(true, 0), (true, 0), (true, 0), (false, 2), (true, 1)]), [4, 0, 1]);
        assert_eq!(choose(&[(false, 2)]), Vec::<usize>::new());
    }
}
