//! An item as it is sent: the raw data of a trajectory, or of all attempts of a group. Trajectories without a reward are
//! marked, and none of their rewards is a number.

use base64::{Engine, engine::general_purpose::STANDARD};
use proto::trajectory::{Outcome, Step, Task, Trajectory, TrajectoryMetadata};
use serde::{Serialize, Serializer};
use serde_json::Value;
use store::{IterationId, SavePath, Summary, steps_without_rewards};

/// How items are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object per line.
    Ndjson,
    /// One MessagePack map after the other.
    Msgpack,
}

impl Format {
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Msgpack => "application/msgpack",
        }
    }

    pub(crate) fn encode(self, value: &impl Serialize) -> Result<Vec<u8>, String> {
        match self {
            Self::Ndjson => {
                let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
                line.push(b'\n');
                Ok(line)
            }
            Self::Msgpack => rmp_serde::to_vec_named(value).map_err(|error| error.to_string()),
        }
    }
}

/// One element of the stream.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message<'a> {
    Trajectory {
        cursor: String,
        trajectory: SentTrajectory<'a>,
    },
    Group {
        cursor: String,
        group_id: Option<&'a str>,
        trajectories: Vec<SentTrajectory<'a>>,
    },
    /// Nothing is new; the run goes on.
    Heartbeat,
    /// Nothing follows.
    End {
        reason: &'a str,
        detail: Option<&'a str>,
    },
    /// The stream cannot go on.
    Error {
        detail: String,
    },
}

/// A trajectory as it is sent.
#[derive(Serialize)]
pub(crate) struct SentTrajectory<'a> {
    split: &'static str,
    iteration: u64,
    trajectory_index: i64,
    group_id: Option<&'a str>,
    outcome: Outcome,
    is_masked: bool,
    /// Of the last step; null if the trajectory is masked.
    reward: Option<i64>,
    policy_versions: &'a [String],
    task: &'a Task,
    steps: SentSteps<'a>,
    metadata: &'a TrajectoryMetadata,
    /// The screenshot of each step, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<Option<ImageBytes>>>,
}

/// Steps as they are, or without rewards.
#[derive(Serialize)]
#[serde(untagged)]
enum SentSteps<'a> {
    Rewarded(&'a [Step]),
    Masked(Value),
}

/// The bytes of an image file; base64 in JSON.
struct ImageBytes(Vec<u8>);

impl Serialize for ImageBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&STANDARD.encode(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'a> SentTrajectory<'a> {
    pub(crate) fn new(trajectory: &'a Trajectory, id: IterationId, images_of: Option<&SavePath>) -> Self {
        let Trajectory { task, steps, metadata } = trajectory;
        let outcome = Summary::of(trajectory).outcome_or_inferred();
        let reward = steps.last().map_or(0, |step| step.reward.reward);
        Self {
            split: id.split.as_str(),
            iteration: id.iteration,
            trajectory_index: task.trajectory_index,
            group_id: metadata.group_id.as_deref(),
            outcome,
            is_masked: outcome.is_masked(),
            reward: (!outcome.is_masked()).then_some(reward),
            policy_versions: &metadata.policy_versions,
            task,
            steps: if outcome.is_masked() {
                SentSteps::Masked(steps_without_rewards(steps))
            } else {
                SentSteps::Rewarded(steps)
            },
            metadata,
            images: images_of.map(|save_path| images(save_path, steps)),
        }
    }
}

/// Reads the screenshots; `None` for a step without one.
fn images(save_path: &SavePath, steps: &[Step]) -> Vec<Option<ImageBytes>> {
    let read = |step: &Step| {
        let recorded = &step.observation.image_path;
        if recorded.is_empty() {
            return None;
        }
        let path = save_path.resolve_image(recorded);
        match std::fs::read(&path) {
            Ok(bytes) => Some(ImageBytes(bytes)),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "cannot read a screenshot for the stream");
                None
            }
        }
    };
    steps.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use proto::trajectory::{Observation, Reward};
    use serde_json::json;
    use store::Split;

    use super::*;

    fn trajectory(outcome: Outcome, image_path: &str) -> Trajectory {
        let observation = Observation { image_path: image_path.to_owned(), ..Observation::default() };
        let reward = Reward { reward: i64::from(outcome == Outcome::Success), ..Reward::default() };
        let metadata = TrajectoryMetadata {
            outcome: Some(outcome),
            group_id: Some("train-3-0".into()),
            policy_versions: vec!["7".into()],
            ..TrajectoryMetadata::default()
        };
        let steps = vec![Step { observation, reward, ..Step::default() }];
        Trajectory { task: Task { trajectory_index: 5, ..Task::default() }, steps, metadata }
    }

    const ID: IterationId = IterationId::new(Split::Train, 3);

    fn as_json(trajectory: &Trajectory) -> Value {
        serde_json::to_value(SentTrajectory::new(trajectory, ID, None)).unwrap()
    }

    #[test]
    fn masked_trajectory_has_no_reward() {
        for outcome in [Outcome::InfraLost, Outcome::JudgeError, Outcome::Cancelled, Outcome::ReplayMiss] {
            let sent = as_json(&trajectory(outcome, ""));
            assert_eq!((&sent["is_masked"], &sent["reward"]), (&json!(true), &Value::Null));
            assert_eq!(sent["steps"][0]["reward"]["reward"], Value::Null);
        }
        for (outcome, reward) in [(Outcome::Success, 1), (Outcome::Failure, 0), (Outcome::Blocked, 0)] {
            let sent = as_json(&trajectory(outcome, ""));
            assert_eq!((&sent["is_masked"], &sent["reward"]), (&json!(false), &json!(reward)));
            assert_eq!(sent["steps"][0]["reward"]["reward"], reward);
        }
    }

    #[test]
    fn formats_have_the_same_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        std::fs::write(&path, b"\x89PNG").unwrap();
        let trajectory = trajectory(Outcome::Success, path.to_str().unwrap());
        let save_path = SavePath::new(folder.path());
        let message = Message::Group {
            cursor: "c".into(),
            group_id: Some("train-3-0"),
            trajectories: vec![SentTrajectory::new(&trajectory, ID, Some(&save_path))],
        };
        let line = Format::Ndjson.encode(&message).unwrap();
        let mut json: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(json["trajectories"][0]["images"][0], STANDARD.encode(b"\x89PNG"));
        assert_eq!(
            (&json["type"], &json["trajectories"][0]["policy_versions"]),
            (&json!("group"), &json!(["7"]))
        );
        let packed = Format::Msgpack.encode(&message).unwrap();
        let image = json["trajectories"][0].as_object_mut().unwrap().remove("images");
        assert!(packed.windows(4).any(|bytes| bytes == b"\x89PNG") && image.is_some());
        let without = Message::Group {
            cursor: "c".into(),
            group_id: Some("train-3-0"),
            trajectories: vec![SentTrajectory::new(&trajectory, ID, None)],
        };
        let unpacked: Value = rmp_serde::from_slice(&Format::Msgpack.encode(&without).unwrap()).unwrap();
        assert_eq!(unpacked, json);
    }
}
