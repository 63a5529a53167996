//! Looking at the page after an action, and telling the agent what its action did.

use std::time::{Duration, Instant};

use proto::trajectory::{Action, Observation};
use serde_json::Value;

use super::{Ending, Episode, Hands, View, hands::Seen};
use crate::{
    event::Stage,
    gallery::is_blank,
    policy::{ActionError, ActionKey, Step, observed},
};

/// How long a blank page gets to show something.
const BLANK_LIMIT: Duration = Duration::from_secs(8);
const BLANK_PAUSE: Duration = Duration::from_millis(150);

impl Episode {
    /// The first view. A start page that did not open leaves a blank one, and that is no failure of the episode.
    pub(super) async fn first_look(&mut self, hands: &Hands, opened: bool) -> Result<View, Ending> {
        self.at(Stage::Screenshot);
        let since = Instant::now();
        let mut seen = hands.look().await?;
        if opened {
            seen = self.until_not_blank(hands, seen).await?;
            if is_blank(&seen.picture) {
                return Err(Ending::Blank);
            }
        }
        self.took(Stage::Screenshot, since);
        self.keep(seen).await
    }

    /// Does what the action means, looks again, and writes down what became of it.
    pub(super) async fn act(
        &mut self,
        hands: &Hands,
        todo: Result<Step, ActionError>,
        action: &Action,
        before: View,
    ) -> Result<View, Ending> {
        self.at(Stage::Execute);
        let since = Instant::now();
        let (failed, seen) = match todo {
            Ok(Step::Command(command)) => hands.act(&command).await?,
            Ok(Step::Wait { seconds }) => {
                tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
                (None, hands.look().await?)
            }
            // An answer never comes here; an action that means nothing changes nothing.
            Ok(Step::Answer(_)) | Err(_) => (None, hands.look().await?),
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
        let mut seen = seen;
        if is_blank(&seen.picture) && !is_blank(&before.picture) {
            self.at(Stage::Screenshot);
            seen = self.until_not_blank(hands, seen).await?;
            if is_blank(&seen.picture) {
                if !navigated {
                    return Err(Ending::Blank);
                }
                // The agent keeps seeing where it was, and is told that it is still there.
                failed_navigation = Some(target);
                seen.picture = before.picture.clone();
            }
        }
        let changed = seen.picture != before.picture;
        self.tell_last_step(changed, &seen.url, failed_navigation.as_deref());
        self.keep(seen).await
    }

    async fn until_not_blank(&self, hands: &Hands, mut seen: Seen) -> Result<Seen, Ending> {
        let until = Instant::now() + BLANK_LIMIT;
        while is_blank(&seen.picture) && Instant::now() < until {
            tokio::time::sleep(BLANK_PAUSE).await;
            seen = hands.look().await?;
        }
        Ok(seen)
    }

    fn tell_last_step(&mut self, changed: bool, url: &str, failed_navigation: Option<&str>) {
        let Some(step) = self.steps.last_mut() else { return };
        let words = observed(Some(changed), url, failed_navigation);
        step.response.answering_tokens.insert("observation".to_owned(), words.into());
        step.same_as_next_screenshot = Some(!changed);
    }

    async fn keep(&mut self, seen: Seen) -> Result<View, Ending> {
        let saved = self.gallery.save(self.steps.len(), seen.picture.clone()).await;
        let path = saved.map_err(|error| Ending::Disk(error.to_string()))?;
        let observation = Observation {
            image_path: path.display().to_string(),
            ac_tree: seen.ac_tree,
            title: seen.title,
            url: seen.url,
        };
        Ok(View { observation, picture: seen.picture })
    }
}
