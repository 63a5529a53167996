//! The contract of every [`IdempotencyStore`], checked against the in-memory store and against a real Redis server.

use std::{sync::Arc, time::Duration};

use proto::{InstanceId, LeaseId};
use tokio::{task::JoinSet, time::Instant};

use super::{redis::KEY_PREFIX, *};
use crate::registry::{REGISTRY_DATABASE, RedisConnection, RedisServer};

const LONG: Retention = Retention { claim: Duration::from_mins(10), lease: Duration::from_mins(10) };
const SHORT: Retention = Retention { claim: Duration::from_millis(500), lease: Duration::from_mins(10) };

fn lease(node: &str) -> NodeLease {
    NodeLease { node: node.to_owned(), id: InstanceId { lease: LeaseId::new(), slot: 9000 } }
}

fn claim(by: &str) -> Event<NodeLease> {
    Event::Claim { by: by.to_owned() }
}

/// Every kind of event, for two masters and two leases.
fn all_events() -> Vec<Event<NodeLease>> {
    let (first, second) = (lease("http://one"), lease("http://two"));
    vec![
        Event::Lookup,
        claim("a"),
        claim("b"),
        Event::PlacementFailed { by: "a".into() },
        Event::Leased { lease: first.clone() },
        Event::Leased { lease: second.clone() },
        Event::Answered { lease: first.clone() },
        Event::GraceExpired { lease: first.clone() },
        Event::Ended { lease: first },
        Event::Ended { lease: second },
    ]
}

/// Applies every sequence of three events, each to a key of its own, and compares with the transition table.
async fn follows_the_transition_table(store: &impl IdempotencyStore) {
    let events = all_events();
    let count = events.len();
    for sequence in 0..count.pow(3) {
        let key = format!("sequence {sequence}");
        let steps = [sequence / count.pow(2), sequence / count % count, sequence % count];
        let mut expected = KeyState::Free;
        for (nth, step) in steps.into_iter().enumerate() {
            let (after, action) = transition(&expected, &events[step]);
            expected = after;
            let applied = store.apply(&key, &events[step]).await.unwrap();
            assert_eq!(applied, action, "event {nth} of {steps:?}");
        }
        assert_eq!(store.state(&key).await.unwrap(), expected, "after {steps:?}");
    }
}

async fn concurrent_claims_yield_one_placement<S: IdempotencyStore + 'static>(store: &Arc<S>) {
    let mut masters = JoinSet::new();
    for master in 0..24 {
        let store = Arc::clone(store);
        masters.spawn(async move { store.apply("claims", &claim(&master.to_string())).await.unwrap() });
    }
    let actions = masters.join_all().await;
    let placing = actions.iter().filter(|action| **action == Action::Place).count();
    let waiting = actions.iter().filter(|action| **action == Action::Wait).count();
    assert_eq!((placing, waiting), (1, 23));
}

async fn concurrent_leases_yield_one_offer<S: IdempotencyStore + 'static>(store: &Arc<S>) {
    let mut masters = JoinSet::new();
    for _ in 0..24 {
        let store = Arc::clone(store);
        masters.spawn(async move {
            let lease = lease("http://node");
            let action = store.apply("leases", &Event::Leased { lease: lease.clone() }).await.unwrap();
            (action, lease)
        });
    }
    let outcomes = masters.join_all().await;
    let offered: Vec<_> = outcomes.iter().filter(|(action, _)| *action == Action::Offer).collect();
    let [(_, winner)] = offered.as_slice() else { panic!("{} offers", offered.len()) };
    assert_eq!(store.apply("leases", &Event::Lookup).await.unwrap(), Action::Reuse(winner.clone()));
    let discarded = outcomes.iter().filter(|(action, _)| *action == Action::Discard).count();
    assert_eq!(discarded, 23);
}

async fn claim_of_a_dead_master_expires(store: &impl IdempotencyStore) {
    assert_eq!(store.apply("expiry", &claim("dead")).await.unwrap(), Action::Place);
    let deadline = Instant::now() + Duration::from_secs(30);
    while store.apply("expiry", &claim("other")).await.unwrap() != Action::Place {
        assert!(Instant::now() < deadline, "the claim never expires");
        tokio::time::sleep(SHORT.claim / 10).await;
    }
}

/// `age` lets the entry of a key become older by the given time.
async fn repeated_claim_is_renewed(store: &impl IdempotencyStore, age: impl AsyncFn(&str, Duration)) {
    let most_of_it = LONG.claim.mul_f64(0.6);
    for (key, renewed) in [("renewed", true), ("not renewed", false)] {
        assert_eq!(store.apply(key, &claim("a")).await.unwrap(), Action::Place);
        age(key, most_of_it).await;
        if renewed {
            assert_eq!(store.apply(key, &claim("a")).await.unwrap(), Action::Place);
        }
        age(key, most_of_it).await;
        let expected = if renewed { Action::Wait } else { Action::Place };
        assert_eq!(store.apply(key, &claim("b")).await.unwrap(), expected, "{key}");
    }
}

async fn keeps_the_contract<S: IdempotencyStore + 'static>(
    store: impl Fn(Retention) -> S,
    age: impl AsyncFn(&str, Duration),
) {
    let long = Arc::new(store(LONG));
    follows_the_transition_table(&*long).await;
    concurrent_claims_yield_one_placement(&long).await;
    concurrent_leases_yield_one_offer(&long).await;
    repeated_claim_is_renewed(&*long, age).await;
    claim_of_a_dead_master_expires(&store(SHORT)).await;
}

fn redis_store(url: &str, retention: Retention) -> RedisStore {
    let connection = RedisConnection::to_database(RedisServer::new(url), REGISTRY_DATABASE).unwrap();
    RedisStore::new(connection, retention, "a".into())
}

#[tokio::test(start_paused = true)]
async fn memory_store_keeps_the_contract() {
    keeps_the_contract(MemoryStore::new, async |_, time| tokio::time::advance(time).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_store_keeps_the_contract() {
    let redis = testkit::Redis::start().await;
    let age = async |key: &str, time: Duration| {
        let key = format!("{KEY_PREFIX}{key}");
        let left = redis.number(REGISTRY_DATABASE, &["PTTL", &key]).await - time.as_millis() as i64;
        // A time that is not positive removes the key.
        redis.number(REGISTRY_DATABASE, &["PEXPIRE", &key, &left.to_string()]).await;
    };
    keeps_the_contract(|retention| redis_store(&redis.url(), retention), age).await;
}

#[tokio::test]
async fn unreachable_redis_is_unavailable() {
    let store = redis_store("redis://127.0.0.1:1", LONG);
    assert_eq!(store.apply("k", &Event::Lookup).await, Err(Unavailable));
    assert_eq!(store.state("k").await, Err(Unavailable));
}
