//! Observes the page before the first step and after each action, and records for the agent what its action did.

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use proto::{
    Command,
    trajectory::{Action, Observation},
};
use serde_json::Value;

use super::{
    BrowserSession, Ending, Episode, attempt::View, fingerprint::Fingerprint, session::PageObservation,
};
use crate::{
    policy::{ActionError, ActionKey, ResolvedAction, describe_outcome},
    run::event::{Event, Stage},
};

/// How long a blank page has to show something.
const BLANK_TIMEOUT: Duration = Duration::from_secs(8);
const BLANK_POLL_INTERVAL: Duration = Duration::from_millis(150);

impl Episode {
    /// Observes the start page. If it did not open, the page is blank and the episode continues.
    pub(super) async fn observe_first(
        &mut self,
        session: &BrowserSession,
        is_open: bool,
    ) -> Result<View, Ending> {
        self.enter_stage(Stage::Screenshot);
        let since = Instant::now();
        let mut page = session.observe(self.steps.len()).await?;
        let mut fingerprint = Fingerprint::of(&page.screenshot);
        if is_open {
            (page, fingerprint) = self.wait_while_blank(session, page, fingerprint).await?;
            if fingerprint.is_blank() {
                return Err(Ending::Blank);
            }
        }
        self.announce_duration(Stage::Screenshot, since);
        self.save_view(page, fingerprint, None).await
    }

    /// Performs the action, observes the page and records the outcome in the last step.
    pub(super) async fn act(
        &mut self,
        session: &BrowserSession,
        resolved: Result<ResolvedAction, ActionError>,
        action: &Action,
        before: View,
    ) -> Result<View, Ending> {
        let (failure, mut page) = self.perform(session, resolved).await?;
        let navigates = ActionKey::from_key(&action.key) == Some(ActionKey::Navigate);
        let target = action.arguments.get("url").and_then(Value::as_str).unwrap_or("that address");
        let mut fingerprint = Fingerprint::of(&page.screenshot);
        // After a failed command, or on a page that was blank before, the page may stay blank.
        if fingerprint.is_blank() && failure.is_none() && (navigates || !before.fingerprint.is_blank()) {
            self.enter_stage(Stage::Screenshot);
            (page, fingerprint) = self.wait_while_blank(session, page, fingerprint).await?;
            if fingerprint.is_blank() {
                return if navigates { self.keep_view(before, target).await } else { Err(Ending::Blank) };
            }
        }
        let has_changed = fingerprint != before.fingerprint;
        let failed_navigation = (navigates && failure.is_some()).then_some(target);
        self.record_outcome(has_changed, &page.url, failed_navigation);
        let earlier = (!has_changed).then_some(before.observation.image_path);
        self.save_view(page, fingerprint, earlier).await
    }

    /// Performs the action and observes the page. Also returns why the command failed, if it did.
    async fn perform(
        &mut self,
        session: &BrowserSession,
        resolved: Result<ResolvedAction, ActionError>,
    ) -> Result<(Option<String>, PageObservation), Ending> {
        self.enter_stage(Stage::Execute);
        let since = Instant::now();
        let (failure, page) = match resolved {
            Ok(ResolvedAction::Command(command)) => session.act(self.steps.len(), &command).await?,
            Ok(ResolvedAction::Commands(commands)) => self.perform_all(session, &commands).await?,
            Ok(ResolvedAction::Wait { seconds }) => {
                tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
                (None, session.observe(self.steps.len()).await?)
            }
            // An answer ends the episode before this point; an invalid action changes nothing.
            Ok(ResolvedAction::Answer(_)) | Err(_) => (None, session.observe(self.steps.len()).await?),
        };
        if let Some(reason) = &failure {
            self.announce_failure(Stage::Execute, reason);
        }
        let millis = self.announce_duration(Stage::Execute, since);
        if let Some(step) = self.steps.last_mut() {
            step.extras.timings_ms.insert("execute".to_owned(), Value::from(millis));
        }
        Ok((failure, page))
    }

    /// Executes commands in order, up to the first that fails, and observes the page.
    async fn perform_all(
        &self,
        session: &BrowserSession,
        commands: &[Command],
    ) -> Result<(Option<String>, PageObservation), Ending> {
        let Some((last, earlier)) = commands.split_last() else {
            return Ok((None, session.observe(self.steps.len()).await?));
        };
        for command in earlier {
            if let Some(reason) = session.try_execute(command).await? {
                return Ok((Some(reason), session.observe(self.steps.len()).await?));
            }
        }
        session.act(self.steps.len(), last).await
    }

    /// Keeps showing the page before a navigation that led to a blank page, and records that the navigation failed.
    async fn keep_view(&mut self, before: View, target: &str) -> Result<View, Ending> {
        self.record_outcome(false, &before.observation.url, Some(target));
        let Observation { image_path, ac_tree, title, url } = before.observation;
        let page = PageObservation { screenshot: Bytes::new(), title, url, ac_tree, text: before.text };
        self.save_view(page, before.fingerprint, Some(image_path)).await
    }

    async fn wait_while_blank(
        &self,
        session: &BrowserSession,
        mut page: PageObservation,
        mut fingerprint: Fingerprint,
    ) -> Result<(PageObservation, Fingerprint), Ending> {
        let end = Instant::now() + BLANK_TIMEOUT.min(self.context.settings.operation_timeout);
        while fingerprint.is_blank() && Instant::now() < end {
            tokio::time::sleep(BLANK_POLL_INTERVAL).await;
            page = session.observe(self.steps.len()).await?;
            fingerprint = Fingerprint::of(&page.screenshot);
        }
        Ok((page, fingerprint))
    }

    fn record_outcome(&mut self, has_changed: bool, url: &str, failed_navigation: Option<&str>) {
        let Some(step) = self.steps.last_mut() else { return };
        let outcome = describe_outcome(Some(has_changed), url, failed_navigation);
        step.response.answering_tokens.insert("observation".to_owned(), outcome.into());
        step.same_as_next_screenshot = Some(!has_changed);
    }

    /// Saves the page that the agent sees next. `earlier` is the path of a screenshot that equals the page's.
    async fn save_view(
        &mut self,
        page: PageObservation,
        fingerprint: Fingerprint,
        earlier: Option<String>,
    ) -> Result<View, Ending> {
        let step = self.steps.len();
        let saved = match earlier {
            Some(earlier) => self.screenshots.save_again(step, Path::new(&earlier)).await,
            None => self.screenshots.save(step, page.screenshot).await,
        };
        let path = saved.map_err(|error| Ending::Disk(error.to_string()))?;
        self.screenshot_times.push(SystemTime::now());
        let event = Event::Observed { index: self.index(), url: page.url.clone(), screenshot: path.clone() };
        self.context.announcer.announce(&event);
        let observation = Observation {
            image_path: path.display().to_string(),
            ac_tree: page.ac_tree,
            title: page.title,
            url: page.url,
        };
        Ok(View { observation, text: page.text, fingerprint })
    }
}
