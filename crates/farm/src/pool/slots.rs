//! The slots of a pool: pure bookkeeping under one lock. Nothing here waits or talks to a browser.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use browser::Instance;
use proto::{InstanceId, LeaseId};
use serde::Serialize;

use super::tenancy::Tenancy;
use crate::{
    access::LeaseSecrets,
    error::ApiError,
    idempotency::{Event, KeyTable, Retention},
};

/// How many lost leases are remembered, so that their clients learn the reason.
const MAX_LOST: usize = 20_000;

pub(crate) enum SlotState {
    /// An instance is being created for it.
    Starting,
    /// Has a clean instance and no tenant.
    Idle(Box<Instance>),
    Leased(Arc<Tenancy>),
    /// Its browser cannot be started at the moment.
    Dead {
        reason: String,
    },
}

struct Slot {
    port: u16,
    group: usize,
    state: SlotState,
}

/// How many slots are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolCounts {
    pub capacity: usize,
    pub available: usize,
    pub in_use: usize,
    pub starting: usize,
    pub dead: usize,
}

pub(crate) struct PoolState {
    slots: Vec<Slot>,
    first_port: u16,
    /// Leases whose browser died, with the reason.
    lost: HashMap<InstanceId, String>,
    lost_order: VecDeque<InstanceId>,
    /// The idempotency keys of current leases.
    keys: KeyTable<InstanceId>,
    /// Why no new leases are granted at the moment.
    pub(crate) held_back: Option<String>,
    /// At least one instance has become ready.
    pub(crate) opened: bool,
    pub(crate) closing: bool,
    /// No new leases; existing ones continue.
    pub(crate) draining: bool,
    /// Draining is the first part of stopping and cannot be undone.
    pub(crate) leaving: bool,
}

impl PoolState {
    pub(crate) fn new(count: usize, first_port: u16, slots_per_group: usize) -> Self {
        let slots = (0..count)
            .map(|index| Slot {
                port: first_port + index as u16,
                group: index / slots_per_group,
                state: SlotState::Starting,
            })
            .collect();
        Self {
            slots,
            first_port,
            lost: HashMap::new(),
            lost_order: VecDeque::new(),
            keys: KeyTable::new(Retention::FOREVER),
            held_back: None,
            opened: false,
            closing: false,
            draining: false,
            leaving: false,
        }
    }

    fn slot(&mut self, port: u16) -> Option<&mut Slot> {
        let index = port.checked_sub(self.first_port)?;
        self.slots.get_mut(usize::from(index))
    }

    pub(crate) fn counts(&self) -> PoolCounts {
        let mut counts = PoolCounts { capacity: self.slots.len(), ..PoolCounts::default() };
        for slot in &self.slots {
            match slot.state {
                SlotState::Starting => counts.starting += 1,
                SlotState::Idle(_) => counts.available += 1,
                SlotState::Leased(_) => counts.in_use += 1,
                SlotState::Dead { .. } => counts.dead += 1,
            }
        }
        counts
    }

    pub(crate) fn in_use(&self) -> Vec<InstanceId> {
        self.tenancies().map(|tenancy| *tenancy.id()).collect()
    }

    pub(crate) fn tenancies(&self) -> impl Iterator<Item = &Arc<Tenancy>> {
        self.slots.iter().filter_map(|slot| match &slot.state {
            SlotState::Leased(tenancy) => Some(tenancy),
            _ => None,
        })
    }

    pub(crate) fn available_ports(&self) -> Vec<u16> {
        let idle = self.slots.iter().filter(|slot| matches!(slot.state, SlotState::Idle(_)));
        idle.map(|slot| slot.port).collect()
    }

    /// Marks idle slots whose page has died as starting, and returns them.
    pub(crate) fn take_broken_idle(&mut self) -> Vec<u16> {
        let mut broken = Vec::new();
        for slot in &mut self.slots {
            if matches!(&slot.state, SlotState::Idle(instance) if instance.lost_reason().is_some()) {
                slot.state = SlotState::Starting;
                broken.push(slot.port);
            }
        }
        broken
    }

    pub(crate) fn group_of(&mut self, port: u16) -> Option<usize> {
        self.slot(port).map(|slot| slot.group)
    }

    pub(crate) fn ports_of(&self, group: usize) -> Vec<u16> {
        self.slots.iter().filter(|slot| slot.group == group).map(|slot| slot.port).collect()
    }

    pub(crate) fn leases_of(&self, group: usize) -> Vec<InstanceId> {
        let leased = self.slots.iter().filter(|slot| slot.group == group);
        leased
            .filter_map(|slot| match &slot.state {
                SlotState::Leased(tenancy) => Some(*tenancy.id()),
                _ => None,
            })
            .collect()
    }

    /// Returns why slots are dead, if any are.
    pub(crate) fn dead_reason(&self) -> Option<String> {
        self.slots.iter().find_map(|slot| match &slot.state {
            SlotState::Dead { reason } => Some(reason.clone()),
            _ => None,
        })
    }

    /// Sets the state of a slot without a lease. A leased slot changes only through its lease.
    pub(crate) fn set(&mut self, port: u16, state: SlotState) {
        if let Some(slot) = self.slot(port).filter(|slot| !matches!(slot.state, SlotState::Leased(_))) {
            slot.state = state;
        }
    }

    /// Leases the idle slot whose browser has the fewest tenants: this spreads load, and limits what one crash ends.
    pub(crate) fn lease(
        &mut self,
        lease: LeaseId,
        lifetime: Duration,
        key: Option<&str>,
        secrets: LeaseSecrets,
    ) -> Option<InstanceId> {
        let mut tenants: HashMap<usize, usize> = HashMap::new();
        for slot in &self.slots {
            *tenants.entry(slot.group).or_default() +=
                usize::from(matches!(slot.state, SlotState::Leased(_)));
        }
        let is_usable = |slot: &&mut Slot| matches!(&slot.state, SlotState::Idle(instance) if instance.lost_reason().is_none());
        let idle = self.slots.iter_mut().filter(is_usable);
        let slot = idle.min_by_key(|slot| (tenants[&slot.group], slot.port))?;
        let SlotState::Idle(instance) = std::mem::replace(&mut slot.state, SlotState::Starting) else {
            return None;
        };
        let id = InstanceId { lease, slot: slot.port };
        slot.state = SlotState::Leased(Arc::new(Tenancy::new(id, slot.group, *instance, lifetime, secrets)));
        if let Some(key) = key {
            self.keys.apply(key, &Event::Leased { lease: id });
        }
        Some(id)
    }

    /// Returns the current lease under this key.
    pub(crate) fn leased_under(&self, key: &str) -> Option<InstanceId> {
        self.keys.state(key).lease().copied()
    }

    /// Returns the tenancy of exactly this lease.
    pub(crate) fn tenancy(&mut self, id: &InstanceId) -> Result<Arc<Tenancy>, ApiError> {
        if let Some(reason) = self.lost.get(id) {
            return Err(ApiError::InstanceLost(reason.clone()));
        }
        match self.slot(id.slot).map(|slot| &slot.state) {
            Some(SlotState::Leased(tenancy)) if tenancy.id() == id => Ok(Arc::clone(tenancy)),
            _ => Err(ApiError::InvalidInstance),
        }
    }

    /// Ends exactly this lease; its slot is then starting.
    pub(crate) fn end(&mut self, id: &InstanceId) -> Option<Arc<Tenancy>> {
        let tenancy = self.tenancy(id).ok()?;
        self.slot(id.slot)?.state = SlotState::Starting;
        self.keys.end(id);
        Some(tenancy)
    }

    pub(crate) fn remember_lost(&mut self, id: InstanceId, reason: &str) {
        if self.lost.insert(id, reason.to_owned()).is_none() {
            self.lost_order.push_back(id);
        }
        if self.lost_order.len() > MAX_LOST
            && let Some(oldest) = self.lost_order.pop_front()
        {
            self.lost.remove(&oldest);
        }
    }

    pub(crate) fn forget_lost(&mut self, id: &InstanceId) -> Option<String> {
        let reason = self.lost.remove(id)?;
        self.lost_order.retain(|held| held != id);
        Some(reason)
    }

    /// Ends the leases that have not been used for their lifetime.
    pub(crate) fn end_expired(&mut self, now: Instant) -> Vec<Arc<Tenancy>> {
        let expired: Vec<InstanceId> =
            self.tenancies().filter(|tenancy| tenancy.is_expired(now)).map(|tenancy| *tenancy.id()).collect();
        expired.iter().filter_map(|id| self.end(id)).collect()
    }
}
