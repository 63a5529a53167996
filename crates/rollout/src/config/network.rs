//! Recording and replaying the network traffic of a run: `env_config.record_network`, `network`, `archive` and `on_miss`.

use std::path::{Component, Path, PathBuf};

use proto::network::{NetworkOptions, OnMiss};
use serde::{Deserialize, Deserializer, Serialize};

use super::schema::{Config, EnvConfig};

/// Where the requests of pages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkSource {
    #[default]
    Live,
    /// To the archive `env_config.archive`.
    Replay,
}

/// A rule that the keys break: the key below `env_config`, and the reason.
pub(super) type NetworkProblem = (&'static str, String);

impl Config {
    /// Returns the session option `network` that the keys set; the default if they set none.
    pub fn network_options(&self) -> NetworkOptions {
        let env = &self.env_config;
        let place = |name: &String| {
            if self.farm_url().is_some() { name.clone() } else { absolute(name).display().to_string() }
        };
        let is_replayed = env.network == NetworkSource::Replay;
        NetworkOptions {
            record: env.record_network.as_ref().map(place),
            replay: env.archive.as_ref().filter(|_| is_replayed).map(place),
            on_miss: is_replayed.then(|| env.on_miss.unwrap_or_default()),
            ..NetworkOptions::default()
        }
    }

    /// Returns the directory below which a farm inside the process may record and replay; `None` if the keys name no archive.
    pub fn archives_root(&self) -> Option<PathBuf> {
        let NetworkOptions { record, replay, .. } = self.network_options();
        let archive = record.or(replay).filter(|_| self.farm_url().is_none())?;
        Path::new(&archive).parent().map(Path::to_owned)
    }

    /// Checks the keys without looking at the disk.
    pub(super) fn network_problems(&self) -> Vec<NetworkProblem> {
        let mut problems = Vec::new();
        let mut check = |key, is_valid: bool, reason: &str| {
            if !is_valid {
                problems.push((key, reason.to_owned()));
            }
        };
        let EnvConfig { record_network, network, archive, on_miss, session, .. } = &self.env_config;
        let is_replayed = *network == NetworkSource::Replay;
        let is_filled = |name: &Option<String>| name.as_ref().is_none_or(|name| !name.is_empty());
        check("record_network", is_filled(record_network), "must be a directory, or null");
        check("archive", is_filled(archive), "must be a directory, or null");
        let explicit = |name: &str| session.get("network").and_then(|network| network.get(name)).is_some();
        check(
            "network",
            !is_replayed || archive.is_some() || explicit("replay"),
            "replay needs env_config.archive=DIR, the archive that answers the requests",
        );
        check("archive", archive.is_none() || is_replayed, "needs env_config.network=replay");
        check("on_miss", on_miss.is_none() || is_replayed, "needs env_config.network=replay");
        check(
            "record_network",
            record_network.is_none() || !is_replayed || *on_miss == Some(OnMiss::Live),
            "cannot be combined with env_config.network=replay, unless env_config.on_miss=live",
        );
        if self.farm_url().is_some() {
            return problems;
        }
        let NetworkOptions { record, replay, .. } = self.network_options();
        let parent =
            |name: &Option<String>| name.as_ref().map(|name| Path::new(name).parent().map(Path::to_owned));
        let (record, replay) = (parent(&record), parent(&replay));
        check("record_network", record != Some(None), "must be a directory below /");
        check("archive", replay != Some(None), "must be a directory below /");
        check(
            "record_network",
            record.is_none() || replay.is_none() || record == replay,
            "must be in the same directory as env_config.archive, because the farm inside this process has one for all archives",
        );
        check(
            "session.network",
            record.is_some() || replay.is_some() || !(explicit("record") || explicit("replay")),
            "names an archive, but the farm inside this process has no directory for archives; use \
             env_config.record_network=DIR, or env_config.network=replay with env_config.archive=DIR",
        );
        problems
    }

    /// Checks that the archive exists, if the farm is inside this process and therefore on the same disk.
    pub fn check_archive(&self) -> Result<(), String> {
        let Some(archive) = self.network_options().replay.filter(|_| self.farm_url().is_none()) else {
            return Ok(());
        };
        if Path::new(&archive).is_dir() {
            return Ok(());
        }
        Err(format!(
            "env_config.archive: {archive} is not a directory; record one with env_config.record_network=DIR"
        ))
    }
}

/// Returns the absolute form of a path, without `.` and `..`.
fn absolute(path: &str) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(resolved.pop()),
            other => resolved.push(other),
        }
    }
    resolved
}

/// Reads `env_config.on_miss`. Its value 404 looks like a number.
pub(super) fn on_miss<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OnMiss>, D::Error> {
    let given = Option::<serde_json::Value>::deserialize(from)?;
    let accepted = || serde::de::Error::custom("must be fail, 404 or live");
    given
        .filter(|given| !given.is_null())
        .map(|given| {
            let text = given.as_u64().map_or(given, |number| number.to_string().into());
            serde_json::from_value(text).map_err(|_| accepted())
        })
        .transpose()
}
