//! A lease on its way to a client: given back by itself unless it arrives.

use proto::InstanceId;

type Release = Box<dyn FnOnce(InstanceId) + Send>;

/// Dropping it before [`Granted::keep`] releases the instance: the client hung up.
#[must_use = "a lease that is not kept is given back"]
pub(crate) struct Granted {
    id: InstanceId,
    release: Option<Release>,
}

impl Granted {
    pub(crate) fn new(id: InstanceId, release: impl FnOnce(InstanceId) + Send + 'static) -> Self {
        Self { id, release: Some(Box::new(release)) }
    }

    /// A lease that its client held already.
    pub(crate) fn again(id: InstanceId) -> Self {
        Self { id, release: None }
    }

    pub(crate) fn id(&self) -> &InstanceId {
        &self.id
    }

    pub(crate) fn keep(mut self) -> InstanceId {
        self.release = None;
        self.id
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(self.id);
        }
    }
}
