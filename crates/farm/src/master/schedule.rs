//! Decides in which order nodes are asked for a lease: those with the most free slots first. The order is kept up to date with
//! every change of a node, so that a lease does not look at every node.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::NodeSnapshot;

/// How many nodes that seem full are asked all the same: another master may have released a lease there.
const MAX_FULL_NODES: usize = 2;

/// The remote nodes of a master in the order in which they are asked. A process that is known under several addresses has one
/// place, that of its preferred address.
#[derive(Default)]
pub(crate) struct NodeOrder(Mutex<State>);

#[derive(Default)]
struct State {
    /// Accepting nodes with free slots, the most first.
    free: BTreeSet<(Reverse<usize>, Arc<str>)>,
    /// Accepting nodes without, those with the most starting slots first.
    full: BTreeSet<(Reverse<usize>, Arc<str>)>,
    places: HashMap<Arc<str>, Place>,
    /// The addresses of each process, the preferred one first.
    processes: HashMap<u128, BTreeSet<(Preference, Arc<str>)>>,
    /// The process of this master, which is asked directly.
    own_process: Option<u128>,
    held_back: usize,
    starting: usize,
}

/// Less is preferred: healthy addresses, then configured ones.
pub(crate) type Preference = (bool, bool);

/// What the order knows about an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) snapshot: NodeSnapshot,
    pub(crate) process: Option<u128>,
    pub(crate) preference: Preference,
}

impl NodeOrder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the process of this master. Other addresses of it are never asked.
    pub(crate) fn set_own_process(&self, process: Option<u128>) {
        self.state().own_process = process;
    }

    /// Records what is now known about an address; `None` if it has left the table.
    pub(crate) fn update(&self, address: &Arc<str>, place: Option<Place>) {
        let mut state = self.state();
        let old = match place {
            Some(place) => state.places.insert(Arc::clone(address), place),
            None => state.places.remove(address),
        };
        state.leave_order(address, old);
        if let Some(Place { process: Some(process), preference, .. }) = old {
            state.leave_process(process, preference, address);
            state.choose_address(process);
        }
        match place {
            Some(Place { process: Some(process), preference, .. }) => {
                let addresses = state.processes.entry(process).or_default();
                addresses.insert((preference, Arc::clone(address)));
                state.choose_address(process);
            }
            _ => state.enter_order(address),
        }
    }

    /// Returns the next address to ask and its slots, without those that were asked before.
    fn next(&self, asked: &HashSet<Arc<str>>, is_full: bool) -> Option<(usize, Arc<str>)> {
        let state = self.state();
        let order = if is_full { &state.full } else { &state.free };
        let next = order.iter().find(|(_, address)| !asked.contains(address));
        next.map(|(Reverse(slots), address)| (*slots, Arc::clone(address)))
    }

    /// Returns whether any accepting node holds leases back, and whether any has starting slots.
    pub(crate) fn hints(&self) -> (bool, bool) {
        let state = self.state();
        (state.held_back > 0, state.starting > 0)
    }
}

impl State {
    fn leave_process(&mut self, process: u128, preference: Preference, address: &Arc<str>) {
        let Some(addresses) = self.processes.get_mut(&process) else { return };
        addresses.remove(&(preference, Arc::clone(address)));
        if addresses.is_empty() {
            self.processes.remove(&process);
        }
    }

    /// Gives the place of a process to its preferred address.
    fn choose_address(&mut self, process: u128) {
        let Some(addresses) = self.processes.get(&process) else { return };
        let addresses: Vec<Arc<str>> = addresses.iter().map(|(_, address)| Arc::clone(address)).collect();
        for address in &addresses {
            self.leave_order(address, self.places.get(address).copied());
        }
        if let Some(preferred) = addresses.first().filter(|_| self.own_process != Some(process)) {
            self.enter_order(preferred);
        }
    }

    fn enter_order(&mut self, address: &Arc<str>) {
        let Some(snapshot) = self.accepting(address) else { return };
        let is_new = match snapshot.free {
            0 => self.full.insert((Reverse(snapshot.starting), Arc::clone(address))),
            free => self.free.insert((Reverse(free), Arc::clone(address))),
        };
        if is_new {
            self.held_back += usize::from(snapshot.held_back);
            self.starting += usize::from(snapshot.starting > 0);
        }
    }

    fn accepting(&self, address: &Arc<str>) -> Option<NodeSnapshot> {
        let place = self.places.get(address)?;
        place.snapshot.accepting.then_some(place.snapshot)
    }

    fn leave_order(&mut self, address: &Arc<str>, place: Option<Place>) {
        let Some(Place { snapshot, .. }) = place else { return };
        let was_there = self.full.remove(&(Reverse(snapshot.starting), Arc::clone(address)))
            || self.free.remove(&(Reverse(snapshot.free), Arc::clone(address)));
        if was_there {
            self.held_back -= usize::from(snapshot.held_back);
            self.starting -= usize::from(snapshot.starting > 0);
        }
    }
}

/// The nodes that one request has asked already.
#[derive(Default)]
pub(crate) struct Asked {
    addresses: HashSet<Arc<str>>,
    full: usize,
    own: bool,
}

/// Which node to ask next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextNode {
    /// The node in this process.
    Own,
    Remote(Arc<str>),
}

impl Asked {
    /// Chooses the next node: those with free slots, then a few full ones, those with the most starting slots first. `own` is
    /// the node in this process.
    pub(crate) fn next(&mut self, own: Option<NodeSnapshot>, order: &NodeOrder) -> Option<NextNode> {
        let own = own.filter(|own| own.accepting && !self.own);
        let free = own.filter(|own| own.free > 0).map(|own| own.free);
        let next = preferred(free, order.next(&self.addresses, false)).or_else(|| {
            let starting = own.filter(|own| own.free == 0).map(|own| own.starting);
            let next = preferred(starting, order.next(&self.addresses, true));
            self.full += usize::from(next.is_some());
            next.filter(|_| self.full <= MAX_FULL_NODES)
        })?;
        match &next {
            NextNode::Own => self.own = true,
            NextNode::Remote(address) => drop(self.addresses.insert(Arc::clone(address))),
        }
        Some(next)
    }
}

/// Returns the one with more slots.
fn preferred(own: Option<usize>, remote: Option<(usize, Arc<str>)>) -> Option<NextNode> {
    match (own, remote) {
        (Some(own), Some((slots, address))) if own < slots => Some(NextNode::Remote(address)),
        (Some(_), _) => Some(NextNode::Own),
        (None, Some((_, address))) => Some(NextNode::Remote(address)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshot(accepting: bool, free: usize, starting: usize) -> NodeSnapshot {
        NodeSnapshot { accepting, free, starting, held_back: false }
    }

    fn place(node: (bool, usize, usize), process: Option<u128>, preference: Preference) -> Place {
        Place { snapshot: snapshot(node.0, node.1, node.2), process, preference }
    }

    /// Returns the numbers of the nodes in the order in which they are asked; `own` stands for the node in this process.
    fn asked(own: Option<NodeSnapshot>, order: &NodeOrder) -> Vec<String> {
        let mut asked = Asked::default();
        let name = |next| match next {
            NextNode::Own => "own".to_owned(),
            NextNode::Remote(address) => address.to_string(),
        };
        std::iter::from_fn(|| asked.next(own, order).map(name)).collect()
    }

    /// Each node is given as (accepting, free, starting).
    fn order_of(nodes: &[(bool, usize, usize)]) -> NodeOrder {
        let order = NodeOrder::default();
        for (number, node) in nodes.iter().enumerate() {
            order.update(&number.to_string().into(), Some(place(*node, None, (false, false))));
        }
        order
    }

    #[test]
    fn node_with_most_free_slots_comes_first() {
        let order = order_of(&[(true, 1, 0), (true, 5, 0), (false, 9, 0), (true, 3, 0)]);
        assert_eq!(asked(None, &order), ["1", "3", "0"]);
        assert_eq!(asked(Some(snapshot(true, 4, 0)), &order), ["1", "own", "3", "0"]);
    }

    #[test]
    fn full_nodes_come_last_and_unhealthy_never() {
        let order = order_of(&[(true, 0, 0), (true, 0, 0), (true, 0, 0), (false, 2, 0), (true, 1, 0)]);
        assert_eq!(asked(None, &order), ["4", "0", "1"]);
        assert_eq!(asked(None, &order_of(&[(false, 2, 2)])), Vec::<String>::new());
    }

    #[test]
    fn full_nodes_with_starting_slots_are_preferred() {
        let order = order_of(&[(true, 0, 0), (true, 0, 0), (true, 0, 3)]);
        assert_eq!(asked(None, &order), ["2", "0"]);
        assert_eq!(asked(Some(snapshot(true, 0, 1)), &order), ["2", "own"]);
        assert_eq!(order.hints(), (false, true));
    }

    #[test]
    fn process_with_two_addresses_has_one_place() {
        let order = NodeOrder::default();
        order.set_own_process(Some(9));
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        order.update(&a, Some(place((true, 2, 0), Some(1), (false, true))));
        order.update(&b, Some(place((true, 2, 0), Some(1), (false, false))));
        order.update(&"me".into(), Some(place((true, 7, 0), Some(9), (false, false))));
        assert_eq!(asked(None, &order), ["b"], "the configured address");
        order.update(&b, Some(place((false, 2, 0), Some(1), (true, false))));
        assert_eq!(asked(None, &order), ["a"], "the healthy address");
        order.update(&b, Some(place((true, 3, 0), Some(2), (false, false))));
        assert_eq!(asked(None, &order), ["b", "a"], "now another process");
        order.update(&b, None);
        assert_eq!(asked(None, &order), ["a"]);
    }

    proptest! {
        /// After any changes the order is that of the nodes as they are now.
        #[test]
        fn order_follows_every_change(
            changes in prop::collection::vec(
                (0..5_u8, prop::option::of((any::<bool>(), 0..3_usize, 0..3_usize)), prop::option::of(0..3_u128), any::<Preference>()),
                1..60,
            )
        ) {
            let changed = NodeOrder::default();
            let mut now = std::collections::BTreeMap::new();
            for (number, node, process, preference) in changes {
                let address: Arc<str> = number.to_string().into();
                let place = node.map(|node| place(node, process, preference));
                changed.update(&address, place);
                match place {
                    Some(place) => drop(now.insert(address, place)),
                    None => drop(now.remove(&address)),
                }
            }
            let fresh = NodeOrder::default();
            for (address, place) in &now {
                fresh.update(address, Some(*place));
            }
            prop_assert_eq!(asked(None, &changed), asked(None, &fresh));
            prop_assert_eq!(changed.hints(), fresh.hints());
        }
    }
}
