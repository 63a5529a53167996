//! The states of an idempotency key and the transitions between them. Pure: every store applies this one function.

/// What is known about a key. `L` identifies a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyState<L> {
    /// No lease, and no master is looking for one.
    Free,
    /// A master is asking nodes for a lease.
    Claimed { by: String },
    /// There is a lease, but no client is known to have received it.
    Undelivered { lease: L },
    /// A client was answered with the lease.
    Granted { lease: L },
}

/// What happened to a request, or to a lease, under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event<L> {
    /// A request looks for an existing lease; it does not ask nodes for a new one.
    Lookup,
    /// A request looks for a lease; if there is none, master `by` asks nodes for one.
    Claim { by: String },
    /// Master `by` found no node with a free slot.
    PlacementFailed { by: String },
    /// A node leased a slot under the key.
    Leased { lease: L },
    /// The lease is being sent to a client that is still connected.
    Answered { lease: L },
    /// The client disconnected before it was answered, and the time for a retry is over.
    GraceExpired { lease: L },
    /// The lease was released, or its node no longer has it.
    Ended { lease: L },
}

/// What the caller must do after a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action<L> {
    Nothing,
    /// Ask nodes for a lease.
    Place,
    /// Another master is placing a lease under this key: try again later.
    Wait,
    /// Answer with this lease if its node still has it.
    Reuse(L),
    /// Answer with the new lease.
    Offer,
    /// The key has another lease: release the new one and look up the other.
    Discard,
    /// Release the lease.
    Release,
    /// Leave the lease alone: a client has it.
    Keep,
}

impl<L> KeyState<L> {
    pub(crate) fn lease(&self) -> Option<&L> {
        match self {
            Self::Undelivered { lease } | Self::Granted { lease } => Some(lease),
            Self::Free | Self::Claimed { .. } => None,
        }
    }
}

/// Returns the state after an event and what the caller must do.
pub(crate) fn transition<L: Clone + PartialEq>(
    state: &KeyState<L>,
    event: &Event<L>,
) -> (KeyState<L>, Action<L>) {
    use KeyState::{Claimed, Free, Granted, Undelivered};
    let stay = |action| (state.clone(), action);
    match (event, state) {
        (Event::Lookup | Event::Claim { .. }, Undelivered { lease } | Granted { lease }) => {
            (Granted { lease: lease.clone() }, Action::Reuse(lease.clone()))
        }
        (Event::Claim { by }, Free) => (Claimed { by: by.clone() }, Action::Place),
        // Requests of one master may place at the same time; the first lease that is recorded wins.
        (Event::Claim { by }, Claimed { by: owner }) if by == owner => stay(Action::Place),
        (Event::Claim { .. }, Claimed { .. }) => stay(Action::Wait),
        (Event::PlacementFailed { by }, Claimed { by: owner }) if by == owner => (Free, Action::Nothing),
        (Event::Leased { lease }, Free | Claimed { .. }) => {
            (Undelivered { lease: lease.clone() }, Action::Offer)
        }
        (Event::Leased { lease }, Undelivered { lease: held } | Granted { lease: held }) => {
            stay(if lease == held { Action::Offer } else { Action::Discard })
        }
        (Event::Answered { lease }, Undelivered { lease: held }) if lease == held => {
            (Granted { lease: lease.clone() }, Action::Nothing)
        }
        (Event::GraceExpired { lease }, Undelivered { lease: held }) if lease == held => {
            (Free, Action::Release)
        }
        // The record expired or was lost. Releasing a lease twice has no effect; keeping it would block its slot.
        (Event::GraceExpired { .. }, Free) => (Free, Action::Release),
        (Event::GraceExpired { .. }, _) => stay(Action::Keep),
        (Event::Ended { lease }, Undelivered { lease: held } | Granted { lease: held }) if lease == held => {
            (Free, Action::Nothing)
        }
        (Event::Lookup | Event::PlacementFailed { .. } | Event::Answered { .. } | Event::Ended { .. }, _) => {
            stay(Action::Nothing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = KeyState<u8>;

    const FREE: State = State::Free;

    fn claimed(by: &str) -> State {
        State::Claimed { by: by.into() }
    }

    fn undelivered(lease: u8) -> State {
        State::Undelivered { lease }
    }

    fn granted(lease: u8) -> State {
        State::Granted { lease }
    }

    /// Checks one event against every kind of state. The event is from master `a` and about lease 1, if it has them.
    fn check(event: &Event<u8>, rows: [(State, State, Action<u8>); 7]) {
        for (before, after, action) in rows {
            assert_eq!(transition(&before, event), (after, action), "{event:?} in {before:?}");
        }
    }

    #[test]
    fn lookup_finds_a_lease_and_never_claims() {
        check(
            &Event::Lookup,
            [
                (FREE, FREE, Action::Nothing),
                (claimed("a"), claimed("a"), Action::Nothing),
                (claimed("b"), claimed("b"), Action::Nothing),
                (undelivered(1), granted(1), Action::Reuse(1)),
                (undelivered(2), granted(2), Action::Reuse(2)),
                (granted(1), granted(1), Action::Reuse(1)),
                (granted(2), granted(2), Action::Reuse(2)),
            ],
        );
    }

    #[test]
    fn only_one_claim_may_place_a_lease() {
        check(
            &Event::Claim { by: "a".into() },
            [
                (FREE, claimed("a"), Action::Place),
                (claimed("a"), claimed("a"), Action::Place),
                (claimed("b"), claimed("b"), Action::Wait),
                (undelivered(1), granted(1), Action::Reuse(1)),
                (undelivered(2), granted(2), Action::Reuse(2)),
                (granted(1), granted(1), Action::Reuse(1)),
                (granted(2), granted(2), Action::Reuse(2)),
            ],
        );
    }

    #[test]
    fn failed_placement_ends_only_its_own_claim() {
        check(
            &Event::PlacementFailed { by: "a".into() },
            [
                (FREE, FREE, Action::Nothing),
                (claimed("a"), FREE, Action::Nothing),
                (claimed("b"), claimed("b"), Action::Nothing),
                (undelivered(1), undelivered(1), Action::Nothing),
                (undelivered(2), undelivered(2), Action::Nothing),
                (granted(1), granted(1), Action::Nothing),
                (granted(2), granted(2), Action::Nothing),
            ],
        );
    }

    #[test]
    fn first_lease_under_a_key_wins() {
        check(
            &Event::Leased { lease: 1 },
            [
                (FREE, undelivered(1), Action::Offer),
                (claimed("a"), undelivered(1), Action::Offer),
                (claimed("b"), undelivered(1), Action::Offer),
                (undelivered(1), undelivered(1), Action::Offer),
                (undelivered(2), undelivered(2), Action::Discard),
                (granted(1), granted(1), Action::Offer),
                (granted(2), granted(2), Action::Discard),
            ],
        );
    }

    #[test]
    fn answer_grants_an_undelivered_lease() {
        check(
            &Event::Answered { lease: 1 },
            [
                (FREE, FREE, Action::Nothing),
                (claimed("a"), claimed("a"), Action::Nothing),
                (claimed("b"), claimed("b"), Action::Nothing),
                (undelivered(1), granted(1), Action::Nothing),
                (undelivered(2), undelivered(2), Action::Nothing),
                (granted(1), granted(1), Action::Nothing),
                (granted(2), granted(2), Action::Nothing),
            ],
        );
    }

    #[test]
    fn expired_grace_releases_only_undelivered_lease() {
        check(
            &Event::GraceExpired { lease: 1 },
            [
                (FREE, FREE, Action::Release),
                (claimed("a"), claimed("a"), Action::Keep),
                (claimed("b"), claimed("b"), Action::Keep),
                (undelivered(1), FREE, Action::Release),
                (undelivered(2), undelivered(2), Action::Keep),
                (granted(1), granted(1), Action::Keep),
                (granted(2), granted(2), Action::Keep),
            ],
        );
    }

    #[test]
    fn ended_lease_frees_only_its_own_key() {
        check(
            &Event::Ended { lease: 1 },
            [
                (FREE, FREE, Action::Nothing),
                (claimed("a"), claimed("a"), Action::Nothing),
                (claimed("b"), claimed("b"), Action::Nothing),
                (undelivered(1), FREE, Action::Nothing),
                (undelivered(2), undelivered(2), Action::Nothing),
                (granted(1), FREE, Action::Nothing),
                (granted(2), granted(2), Action::Nothing),
            ],
        );
    }
}
