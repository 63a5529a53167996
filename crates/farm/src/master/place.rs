//! `/get` of the master: finds a node with room, and sees to it that no lease is left over when a client, or a
//! node's answer, gets lost on the way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proto::InstanceId;
use tokio::sync::oneshot;

use super::{Entry, Glance, Master, keys::Given, schedule, shared_keys::Standing};
use crate::{
    error::FarmError,
    node::{GetRequest, Node},
    pool::{Granted, natural_wait},
};

/// A lease and the node it is on.
pub(crate) struct Placed {
    pub(crate) node: String,
    pub(crate) granted: Granted,
}

/// How long a lease under a key is kept for a client that hung up before it was there.
const UNCLAIMED: Duration = Duration::from_secs(60);
/// How often one who waits in line asks whether its key was served by another master.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(1);
/// How long to look out for a node that may have leased something to nobody.
const LOOK_OUT: Duration = Duration::from_secs(600);
/// After a node is back, everything sent to it earlier has been dealt with by then.
const SETTLED: Duration = Duration::from_secs(2);

impl Master {
    /// A lease on the freest node: now, or within the wait asked for, first come first served.
    pub(crate) async fn get(&self, request: &GetRequest) -> Result<Placed, FarmError> {
        let key = request.key.as_deref();
        if let Some(known) = self.given_before(key).await {
            return Ok(known);
        }
        let patience = request.wait.unwrap_or_else(|| self.natural_wait());
        let placed = if patience.is_zero() && self.waiting() == 0 {
            self.get_now(request).await?
        } else {
            self.wait_for(request, patience).await?
        };
        let Some(key) = key else { return Ok(placed) };
        let held = self.0.keys.remember(key, Given::new(&placed.node, *placed.granted.id(), true));
        if held.id == *placed.granted.id() {
            // Should the answer be lost even now, nobody has heard of it.
            let (master, key) = (self.clone(), key.to_owned());
            let granted = placed.granted.or(move |granted| master.0.keys.unclaim(&key, granted.id()));
            return Ok(Placed { granted, ..placed });
        }
        // The same client asked twice at once: one lease is enough, ours goes back by being dropped.
        if let Some(shared) = &self.0.shared {
            shared.give(key, &held.node, &held.id).await;
        }
        Ok(Placed { node: held.node, granted: Granted::again(held.id) })
    }

    async fn wait_for(&self, request: &GetRequest, patience: Duration) -> Result<Placed, FarmError> {
        let attempt = || async {
            match self.get_now(request).await {
                Err(error @ FarmError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(placed) => Ok(Ok(placed)),
            }
        };
        let too_late = || FarmError::NoCapacity(None);
        tokio::select! {
            biased;
            placed = self.0.queue.take(Instant::now() + patience, attempt, too_late) => placed,
            placed = self.given_elsewhere(request) => Ok(placed),
        }
    }

    /// What another master gives under the key while we stand in line here: whoever holds it waits for nothing, and the
    /// first in line may be waiting for just that slot.
    async fn given_elsewhere(&self, request: &GetRequest) -> Placed {
        let Some((shared, key)) = self.0.shared.as_ref().zip(request.key.as_deref()) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(LOOK_ELSEWHERE).await;
            if !shared.is_given(key).await {
                continue;
            }
            if let Standing::Given { node, id } = shared.claim(key, None).await
                && let Some(placed) = self.again(key, &node, id).await
            {
                return placed;
            }
        }
    }

    fn natural_wait(&self) -> Duration {
        let known: Vec<_> = self.table().distinct().iter().map(|entry| entry.glance()).collect();
        let any = |is: fn(&Glance) -> bool| known.iter().filter(|node| node.open).any(is);
        natural_wait(any(|node| node.held_back), any(|node| node.coming > 0))
    }

    /// One attempt. Under a key only one master makes it at a time, and none where the client holds something already.
    async fn get_now(&self, request: &GetRequest) -> Result<Placed, FarmError> {
        let Some((shared, key)) = self.0.shared.as_ref().zip(request.key.as_deref()) else {
            return self.place(request).await;
        };
        let mut standing = shared.claim(key, None).await;
        if let Standing::Given { node, id } = &standing {
            if let Some(placed) = self.again(key, node, *id).await {
                return Ok(placed);
            }
            standing = shared.claim(key, Some((node, id))).await;
        }
        if standing != Standing::Ours {
            return Err(FarmError::NoCapacity(Some("another master is serving this key".into())));
        }
        let placed = self.place(request).await;
        match &placed {
            Ok(placed) => shared.give(key, &placed.node, placed.granted.id()).await,
            Err(_) => shared.give_up(key).await,
        }
        placed
    }

    async fn is_held(&self, node: &str, id: &InstanceId) -> bool {
        match self.table().route(node) {
            Some(entry) => entry.node().info().await.is_ok_and(|info| info.holds(id)),
            None => false,
        }
    }

    /// Asks node after node, freest first. Full is not an error while there is another to ask.
    async fn place(&self, request: &GetRequest) -> Result<Placed, FarmError> {
        if self.is_stopping() {
            return Err(FarmError::ShuttingDown);
        }
        let mut full = FarmError::NoCapacity(None);
        for entry in schedule::order(&self.table().distinct()) {
            match self.ask(&entry, request).await {
                Ok(granted) => return Ok(Placed { node: entry.hash().to_owned(), granted }),
                Err(error @ FarmError::NoCapacity(_)) => full = error,
                Err(FarmError::ShuttingDown | FarmError::Draining | FarmError::NodeUnreachable { .. }) => {}
                // A request no node would take: asking the others cannot help.
                Err(error) => return Err(error),
            }
        }
        Err(full)
    }

    /// Asks one node. The asking goes on if our client hangs up meanwhile: only so do we learn what to give back.
    async fn ask(&self, entry: &Arc<Entry>, request: &GetRequest) -> Result<Granted, FarmError> {
        // Waiting is the master's business, and with a key of our own a lost answer can be asked for again.
        let key = request.key.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let here = GetRequest { wait: Some(Duration::ZERO), key: Some(key.clone()), ..request.clone() };
        let (tell, told) = oneshot::channel();
        let (master, entry, keyed) = (self.clone(), Arc::clone(entry), request.key.is_some());
        self.0.tasks.spawn("ask", async move {
            let claim = entry.claim();
            let answer = entry.node().get(&here).await;
            drop(claim);
            match &answer {
                Ok(granted) => entry.has_leased(granted.id()),
                Err(FarmError::NoCapacity(_) | FarmError::ShuttingDown | FarmError::Draining) => {
                    entry.is_full()
                }
                Err(error @ FarmError::NodeUnreachable { .. }) => {
                    tracing::warn!(node = entry.hash(), %error, "a node did not answer");
                    entry.is_unreachable();
                    master.look_out(Arc::clone(&entry), here);
                }
                Err(_) => {}
            }
            // Whoever asks again under the key may hold it by the time its first asker turns out to be gone.
            let answer = answer.map(|granted| match keyed {
                true => granted.or(move |granted| master.keep_for_a_while(&key, &entry, granted)),
                false => granted,
            });
            let _ = tell.send(answer);
        });
        told.await.unwrap_or(Err(FarmError::ShuttingDown))
    }

    /// What was given out under this key, if it is still leased.
    async fn given_before(&self, key: Option<&str>) -> Option<Placed> {
        let (key, given) = key.and_then(|key| Some((key, self.0.keys.find(key)?)))?;
        let placed = self.again(key, &given.node, given.id).await;
        if placed.is_none() {
            self.0.keys.drop_if(key, |held| held.id == given.id);
        }
        placed
    }

    /// The lease that was given under the key, once more, unless it is over.
    async fn again(&self, key: &str, node: &str, id: InstanceId) -> Option<Placed> {
        if !self.is_held(node, &id).await {
            return None;
        }
        self.0.keys.remember(key, Given::new(node, id, true));
        Some(Placed { node: node.to_owned(), granted: Granted::again(id) })
    }

    /// The client has hung up, but may ask again under its key.
    fn keep_for_a_while(&self, key: &str, entry: &Arc<Entry>, granted: Granted) {
        let id = *granted.id();
        if self.0.keys.remember(key, Given::new(entry.hash(), id, false)).id != id {
            return;
        }
        let (master, entry, key) = (self.clone(), Arc::clone(entry), key.to_owned());
        self.0.tasks.spawn_until_stopped("unclaimed", async move {
            if let Some(shared) = &master.0.shared {
                shared.leave_unclaimed(&key, entry.hash(), &id).await;
            }
            tokio::time::sleep(UNCLAIMED).await;
            let elsewhere = match &master.0.shared {
                Some(shared) => !shared.still_unclaimed(&key, entry.hash(), &id).await,
                None => false,
            };
            if !elsewhere && master.0.keys.drop_if(&key, |given| given.id == id && !given.claimed()) {
                entry.has_released(granted.id());
                drop(granted);
            } else {
                granted.keep();
            }
        });
    }

    /// A node did not answer `/get`: it may have leased something all the same. Once it is back, ask for that again
    /// and give it back.
    fn look_out(&self, entry: Arc<Entry>, asked: GetRequest) {
        let master = self.clone();
        self.0.tasks.spawn_until_stopped("look out", async move {
            let until = Instant::now() + LOOK_OUT;
            while !entry.healthy() {
                if Instant::now() > until {
                    return;
                }
                tokio::time::sleep(SETTLED / 4).await;
            }
            tokio::time::sleep(SETTLED).await;
            let key = asked.key.as_deref().unwrap_or_default();
            if master.0.keys.find(key).is_some_and(|given| given.node == entry.hash()) {
                return;
            }
            if let Some(shared) = &master.0.shared
                && shared.given_at(key, entry.hash()).await
            {
                return;
            }
            // Under that key it is either the lost lease or a new one; neither has anybody.
            drop(entry.node().get(&asked).await);
        });
    }
}
