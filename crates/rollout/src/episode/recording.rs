//! Saves the recording of a session beside the screenshots of its episode. The index gets the time of each step, so that the
//! viewer can show the recording next to the steps.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use client::{
    farm::{FarmClient, Lease},
    http::Deadline,
};
use serde_json::{Value, json};

/// The part that lists the frames. The others are saved as they are.
const INDEX: &str = "recording.json";
const OTHER_PARTS: [&str; 3] = ["recording.mjpeg", "console.jsonl", "network.har"];

/// Fetches the recording of a lease and writes it to the folder of an episode.
pub(super) async fn save(
    farm: &FarmClient,
    lease: &Lease,
    folder: &Path,
    screenshot_times: &[SystemTime],
    deadline: Deadline,
) -> Result<(), String> {
    // The index first: frames that come later are in the file without being listed.
    let index = farm.recording(lease, INDEX, deadline).await.map_err(|error| error.to_string())?;
    let fetched = SystemTime::now();
    let mut parts = Vec::new();
    for part in OTHER_PARTS {
        let content = farm.recording(lease, part, deadline).await.map_err(|error| error.to_string())?;
        parts.push((folder.join(part), content));
    }
    let (folder, saved) = (folder.to_owned(), screenshot_times.to_owned());
    let written = tokio::task::spawn_blocking(move || write(&folder, &index, &saved, fetched, parts));
    written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn write(
    folder: &Path,
    index: &Bytes,
    saved: &[SystemTime],
    fetched: SystemTime,
    parts: Vec<(PathBuf, Bytes)>,
) -> io::Result<()> {
    for (path, content) in parts {
        fs::write(path, content)?;
    }
    let mut index: Value = serde_json::from_slice(index)?;
    let duration = index["duration"].as_f64().unwrap_or_default();
    index["steps"] = json!(step_times(saved, duration, fetched));
    // Last: a recording without its index does not exist for the viewer.
    fs::write(folder.join(INDEX), index.to_string())
}

/// Returns when the screenshot of each step was saved, in seconds since the start of the recording. Clocks of two machines are
/// not compared: the duration of the recording is known for the moment in which the index was fetched.
fn step_times(saved: &[SystemTime], duration: f64, fetched: SystemTime) -> Vec<f64> {
    let time = |saved: &SystemTime| {
        let age = fetched.duration_since(*saved).unwrap_or(Duration::ZERO).as_secs_f64();
        ((duration - age).max(0.0) * 1000.0).round() / 1000.0
    };
    saved.iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_the_time_of_their_screenshots() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let saved = [60, 4, 1].map(|age| now - Duration::from_secs(age));
        assert_eq!(step_times(&saved, 10.0, now), [0.0, 6.0, 9.0]);
        let parts = vec![(folder.path().join("console.jsonl"), Bytes::from_static(b"{}\n"))];
        let index = Bytes::from_static(b"{\"duration\":10.0,\"frames\":[]}");
        write(folder.path(), &index, &saved, now, parts).unwrap();
        let index: Value = serde_json::from_slice(&fs::read(folder.path().join(INDEX)).unwrap()).unwrap();
        assert_eq!(index["steps"], json!([0.0, 6.0, 9.0]));
    }
}
