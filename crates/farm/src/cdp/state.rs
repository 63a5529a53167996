//! What one client has: its browser sessions, its sessions with targets, and the targets and contexts that it can see. Pure
//! bookkeeping; nothing here talks to the browser.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use browser::{PageClaim, Session, StartGuard, TenantContext, WatchGuard};

use super::{filter::TargetFilter, params::Owner, targets::Target};

/// A browser session of the client: `None` is the connection itself.
pub(crate) type RootId = Option<Arc<str>>;

/// What a client has asked for in one browser session.
#[derive(Default)]
pub(crate) struct Root {
    /// The targets it is told about.
    pub(crate) discover: Option<TargetFilter>,
    pub(crate) auto_attach: Option<AutoAttach>,
    /// The targets that were attached because of `auto_attach`, or are being attached.
    pub(crate) auto_attached: HashSet<String>,
}

#[derive(Clone)]
pub(crate) struct AutoAttach {
    /// New targets run only when the client says so.
    pub(crate) wait: bool,
    pub(crate) filter: TargetFilter,
}

/// Who asked for a session with a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    Root(RootId),
    /// A session with another target, whose child the target is.
    Session(Arc<str>),
    /// The connection is a session with this target.
    Connection,
}

/// A session of the client with a target. Its id is ours; the browser's id is not shown.
pub(crate) struct TargetSession {
    pub(crate) id: Arc<str>,
    pub(crate) real: Session,
    pub(crate) target: String,
    pub(crate) parent: Parent,
    /// The client answers the dialogs of the page.
    pub(crate) claim: Option<PageClaim>,
    /// Since when a dialog is open.
    pub(crate) dialog_since: Option<Instant>,
}

/// A context that the client has created.
pub(crate) struct CreatedContext {
    pub(crate) context: TenantContext,
    pub(crate) _watch: WatchGuard,
}

pub(crate) struct ClientState {
    pub(crate) roots: HashMap<RootId, Root>,
    pub(crate) sessions: HashMap<Arc<str>, TargetSession>,
    by_real_id: HashMap<String, Arc<str>>,
    /// The session that the connection itself is, if it was opened for a single page.
    pub(crate) connection_session: Option<Arc<str>>,
    targets: HashMap<String, Target>,
    lease_context: TenantContext,
    pub(crate) created_contexts: HashMap<String, CreatedContext>,
    /// Contexts that are being created.
    pub(crate) pending_contexts: usize,
    /// For each target that is being attached, who asked for it, oldest first.
    attaching: HashMap<String, VecDeque<Parent>>,
    /// New pages that wait until the client has set them up, and since when.
    pub(crate) starts: HashMap<String, (Arc<StartGuard>, Instant)>,
    /// The numbers of windows that the client has been told.
    pub(crate) windows: HashSet<i64>,
}

impl Owner for ClientState {
    fn owns_context(&self, id: &str) -> bool {
        self.context(id).is_some()
    }

    fn owns_target(&self, id: &str) -> bool {
        self.targets.contains_key(id)
    }
}

impl ClientState {
    pub(crate) fn new(lease_context: TenantContext) -> Self {
        Self {
            roots: HashMap::from([(None, Root::default())]),
            sessions: HashMap::new(),
            by_real_id: HashMap::new(),
            connection_session: None,
            targets: HashMap::new(),
            lease_context,
            created_contexts: HashMap::new(),
            pending_contexts: 0,
            attaching: HashMap::new(),
            starts: HashMap::new(),
            windows: HashSet::new(),
        }
    }

    /// The context of the lease, or one that the client has created.
    pub(crate) fn context(&self, id: &str) -> Option<&TenantContext> {
        if self.lease_context.id() == id {
            return Some(&self.lease_context);
        }
        self.created_contexts.get(id).map(|created| &created.context)
    }

    pub(crate) fn target(&self, id: &str) -> Option<&Target> {
        self.targets.get(id)
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.targets.values()
    }

    /// Records a target. Returns whether it is new.
    pub(crate) fn set_target(&mut self, target: Target) -> bool {
        self.targets.insert(target.id().to_owned(), target).is_none()
    }

    pub(crate) fn remove_target(&mut self, id: &str) {
        self.targets.remove(id);
        self.starts.remove(id);
        for root in self.roots.values_mut() {
            root.auto_attached.remove(id);
        }
    }

    pub(crate) fn is_attached(&self, target: &str) -> bool {
        self.sessions.values().any(|session| session.target == target)
    }

    /// The browser sessions that are told about targets of this type.
    pub(crate) fn discovering(&self, kind: &str) -> Vec<RootId> {
        let wants = |root: &Root| root.discover.as_ref().is_some_and(|filter| filter.matches(kind));
        self.roots.iter().filter(|(_, root)| wants(root)).map(|(id, _)| id.clone()).collect()
    }

    /// Records that the target is being attached in every browser session that wants it and does not have it. Returns how
    /// many there are.
    pub(crate) fn begin_auto_attach(&mut self, target: &str, kind: &str) -> usize {
        let wants = |root: &Root| root.auto_attach.as_ref().is_some_and(|auto| auto.filter.matches(kind));
        let mut begun = Vec::new();
        for (id, root) in &mut self.roots {
            if wants(root) && root.auto_attached.insert(target.to_owned()) {
                begun.push(Parent::Root(id.clone()));
            }
        }
        let count = begun.len();
        if count > 0 {
            self.attaching.entry(target.to_owned()).or_default().extend(begun);
        }
        count
    }

    /// Removes the oldest request for a session with a target.
    pub(crate) fn take_attaching(&mut self, target: &str) -> Option<Parent> {
        self.attaching.get_mut(target)?.pop_front()
    }

    /// Whether sessions with the target are still to come.
    pub(crate) fn is_attaching(&self, target: &str) -> bool {
        self.attaching.contains_key(target)
    }

    /// Forgets a target that nothing waits for.
    pub(crate) fn end_attaching(&mut self, target: &str) {
        if self.attaching.get(target).is_some_and(VecDeque::is_empty) {
            self.attaching.remove(target);
        }
    }

    /// Whether new pages wait for this client.
    pub(crate) fn holds_new_pages(&self) -> bool {
        self.roots.values().filter_map(|root| root.auto_attach.as_ref()).any(|auto| auto.wait)
    }

    pub(crate) fn begin_attach(&mut self, target: &str, parent: Parent) {
        self.attaching.entry(target.to_owned()).or_default().push_back(parent);
    }

    pub(crate) fn add_session(&mut self, session: TargetSession) {
        if let Some(real) = session.real.id() {
            self.by_real_id.insert(real.to_owned(), Arc::clone(&session.id));
        }
        self.sessions.insert(Arc::clone(&session.id), session);
    }

    pub(crate) fn id_of(&self, real: &str) -> Option<Arc<str>> {
        self.by_real_id.get(real).cloned()
    }

    /// Removes a session and its children. Returns them, the session first.
    pub(crate) fn remove_session(&mut self, id: &str) -> Vec<TargetSession> {
        let Some(session) = self.sessions.remove(id) else { return Vec::new() };
        if let Some(real) = session.real.id() {
            self.by_real_id.remove(real);
        }
        let child_of = Parent::Session(Arc::clone(&session.id));
        let children: Vec<Arc<str>> = self
            .sessions
            .values()
            .filter(|child| child.parent == child_of)
            .map(|child| Arc::clone(&child.id))
            .collect();
        let mut removed = vec![session];
        for child in children {
            removed.extend(self.remove_session(&child));
        }
        removed
    }
}
