//! Looking at the page after an action, and telling the agent what its action did.

use std::time::{Duration, Instant};

use proto::trajectory::{Action, Observation};
use serde_json::Value;

use super::{BrowserSession, Ending, Episode, View, session::Seen};
use crate::{
    episode::screenshots::Fingerprint,
    policy::{ActionError, ActionKey, ResolvedAction, describe_outcome},
    run::event::{Event, Stage},
};

/// How long a blank page gets to show something.
const BLANK_LIMIT: Duration = Duration::from_secs(8);
const BLANK_PAUSE: Duration = Duration::from_millis(150);

impl Episode {
    /// The first view. A start page that did not open leaves a blank one, and that is no failure of the episode.
    pub(super) async fn first_look(
        &mut self,
        session: &BrowserSession,
        opened: bool,
    ) -> Result<View, Ending> {
        self.at(Stage::Screenshot);
        let since = Instant::now();
        let mut seen = session.look(self.steps.len()).await?;
        let mut fingerprint = Fingerprint::of(&seen.picture);
        if opened {
            (seen, fingerprint) = self.until_not_blank(session, seen, fingerprint).await?;
            if fingerprint.is_blank() {
                return Err(Ending::Blank);
            }
        }
        self.took(Stage::Screenshot, since);
        self.keep(seen, fingerprint).await
    }

    /// Does what the action means, looks again, and writes down what became of it.
    pub(super) async fn act(
        &mut self,
        session: &BrowserSession,
        todo: Result<ResolvedAction, ActionError>,
        action: &Action,
        before: View,
    ) -> Result<View, Ending> {
        self.at(Stage::Execute);
        let since = Instant::now();
        let (failed, seen) = match todo {
            Ok(ResolvedAction::Command(command)) => session.act(self.steps.len(), &command).await?,
            Ok(ResolvedAction::Wait { seconds }) => {
                tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
                (None, session.look(self.steps.len()).await?)
            }
            // An answer never comes here; an action that means nothing changes nothing.
            Ok(ResolvedAction::Answer(_)) | Err(_) => (None, session.look(self.steps.len()).await?),
        };
        if let Some(why) = &failed {
            self.trouble(Stage::Execute, why);
        }
        let took = self.took(Stage::Execute, since);
        if let Some(step) = self.steps.last_mut() {
            step.extras.timings_ms.insert("execute".to_owned(), Value::from(took));
        }
        let navigated = ActionKey::from_key(&action.key) == Some(ActionKey::Navigate);
        let target = action.arguments.get("url").and_then(Value::as_str).unwrap_or("that address").to_owned();
        let mut failed_navigation = (navigated && failed.is_some()).then(|| target.clone());
        let mut fingerprint = Fingerprint::of(&seen.picture);
        let mut seen = seen;
        // A page that never opened stays white until the agent goes elsewhere.
        if fingerprint.is_blank() && failed.is_none() && (navigated || !before.fingerprint.is_blank()) {
            self.at(Stage::Screenshot);
            (seen, fingerprint) = self.until_not_blank(session, seen, fingerprint).await?;
            if fingerprint.is_blank() {
                if !navigated {
                    return Err(Ending::Blank);
                }
                failed_navigation = Some(target);
                return self.still_there(before, failed_navigation.as_deref()).await;
            }
        }
        let changed = fingerprint != before.fingerprint;
        self.tell_last_step(changed, &seen.url, failed_navigation.as_deref());
        self.keep(seen, fingerprint).await
    }

    /// The agent keeps seeing where it was, and is told that it is still there.
    async fn still_there(&mut self, before: View, failed_navigation: Option<&str>) -> Result<View, Ending> {
        self.tell_last_step(false, &before.observation.url, failed_navigation);
        let picture = tokio::fs::read(&before.observation.image_path).await;
        let picture = picture.map_err(|error| Ending::Disk(error.to_string()))?;
        let Observation { ac_tree, title, url, .. } = before.observation;
        let seen = Seen { picture: picture.into(), title, url, ac_tree, text: before.text };
        self.keep(seen, before.fingerprint).await
    }

    async fn until_not_blank(
        &self,
        session: &BrowserSession,
        mut seen: Seen,
        mut fingerprint: Fingerprint,
    ) -> Result<(Seen, Fingerprint), Ending> {
        let until = Instant::now() + BLANK_LIMIT.min(self.context.settings.operation_timeout);
        while fingerprint.is_blank() && Instant::now() < until {
            tokio::time::sleep(BLANK_PAUSE).await;
            seen = session.look(self.steps.len()).await?;
            fingerprint = Fingerprint::of(&seen.picture);
        }
        Ok((seen, fingerprint))
    }

    fn tell_last_step(&mut self, changed: bool, url: &str, failed_navigation: Option<&str>) {
        let Some(step) = self.steps.last_mut() else { return };
        let words = describe_outcome(Some(changed), url, failed_navigation);
        step.response.answering_tokens.insert("observation".to_owned(), words.into());
        step.same_as_next_screenshot = Some(!changed);
    }

    async fn keep(&mut self, seen: Seen, fingerprint: Fingerprint) -> Result<View, Ending> {
        let saved = self.screenshots.save(self.steps.len(), seen.picture).await;
        let path = saved.map_err(|error| Ending::Disk(error.to_string()))?;
        let event = Event::Observed { index: self.index(), url: seen.url.clone(), screenshot: path.clone() };
        self.context.announcer.announce(&event);
        let observation = Observation {
            image_path: path.display().to_string(),
            ac_tree: seen.ac_tree,
            title: seen.title,
            url: seen.url,
        };
        Ok(View { observation, text: seen.text, fingerprint })
    }
}
