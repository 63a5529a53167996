//! The version of the policy that each step records: from the configuration, from the header of a reply, or from the server's
//! list of models, which is read again and again while a run lasts.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use client::chat::ModelClient;

const POLL_INTERVAL: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is known about the version of the policy. Clones share what the server listed.
#[derive(Clone, Debug, Default)]
pub struct PolicyVersion {
    configured: Option<String>,
    listed: Arc<Mutex<Option<String>>>,
}

impl PolicyVersion {
    pub fn new(configured: Option<String>) -> Self {
        Self { configured, listed: Arc::default() }
    }

    /// Returns the version of the policy that sent a reply, which may state it.
    pub fn of_reply(&self, stated: Option<String>) -> Option<String> {
        let listed = || self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.configured.clone().or(stated).or_else(listed)
    }

    /// Reads the list of models. A server that does not answer now keeps its version.
    pub(super) async fn refresh(&self, policy: &ModelClient, model: &str) {
        if self.configured.is_none()
            && let Some(version) = policy.listed_version(model, RESPONSE_TIMEOUT).await
        {
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if listed.as_ref().is_some_and(|earlier| *earlier != version) {
                tracing::info!("the policy server now serves version {version}");
            }
            *listed = Some(version);
        }
    }

    /// Reads the list of models until it is dropped.
    pub(super) async fn follow(&self, policy: &ModelClient, model: &str) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            self.refresh(policy, model).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_version_comes_first_and_the_list_last() {
        let listed = Arc::new(Mutex::new(Some("listed".to_owned())));
        let version = PolicyVersion { configured: None, listed: Arc::clone(&listed) };
        assert_eq!(version.of_reply(Some("stated".into())).as_deref(), Some("stated"));
        assert_eq!(version.of_reply(None).as_deref(), Some("listed"));
        let version = PolicyVersion { configured: Some("configured".into()), listed };
        assert_eq!(version.of_reply(Some("stated".into())).as_deref(), Some("configured"));
        assert_eq!(PolicyVersion::default().of_reply(None), None);
    }
}
