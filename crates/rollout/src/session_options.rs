//! The session options of an episode: those of the configuration (`env_config.session`), and over them those of the task
//! (`session` in the task file). Both are recorded with the run, so secrets are referred to: a storage state by its file,
//! and other values by the environment variable that holds them (`env:NAME`).

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use indexmap::IndexMap;
use proto::{
    SessionOptions, StorageState,
    network::NetworkOptions,
    trajectory::{Task, TaskId},
};
use serde_json::{Map, Value, json};

use crate::{config::Config, plan::tasks::digest};

/// The field of a task, and the key of the configuration, that holds session options.
pub const FIELD: &str = "session";
/// The prefix of a value that is read from an environment variable.
const VARIABLE_PREFIX: &str = "env:";
/// Headers whose values are secrets.
const SECRET_HEADERS: &[&str] = &["authorization", "token", "key", "secret", "cookie", "password"];

/// The longest id of a task that is used as the name of its sessions.
const MAX_SESSION_NAME: usize = 400;
/// The option that the keys for recording and replaying network traffic set.
const NETWORK: &str = "network";

/// Where the options of all episodes come from.
#[derive(Debug, Default)]
pub struct SessionSource {
    /// The options of the configuration.
    base: Map<String, Value>,
    /// The number of each attempt among those at the same task, by trajectory index.
    attempts: HashMap<i64, u32>,
    /// Relative file names are resolved against this folder.
    folder: PathBuf,
    /// The storage states that were read, by file.
    states: Mutex<HashMap<PathBuf, Arc<StorageState>>>,
}

/// Session options that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("env_config.session: {0}")]
    Config(String),
    #[error("the session options of the task {task:?}: {reason}")]
    Task { task: String, reason: String },
}

impl SessionSource {
    /// Reads the files and variables that the options of these tasks refer to, so that a missing one is reported before a
    /// run starts.
    pub fn for_tasks(config: &Config, tasks: &[Task]) -> Result<Self, SessionError> {
        let folder = config.data_path.clone().unwrap_or_default();
        let mut source = Self::new(&config.env_config.session, &folder);
        if config.env_config.record {
            source.base.insert("record".to_owned(), Value::Bool(true));
        }
        let network = serde_json::to_value(config.network_options()).unwrap_or_default();
        let explicit = source.base.shift_remove(NETWORK);
        merge_network(&mut source.base, Some(network));
        merge_network(&mut source.base, explicit);
        source.resolve(source.base.clone()).map_err(SessionError::Config)?;
        for task in tasks {
            let task_name = || task.task_name.clone();
            source.options(task).map_err(|reason| SessionError::Task { task: task_name(), reason })?;
        }
        Ok(source)
    }

    fn new(base: &IndexMap<String, Value>, folder: &Path) -> Self {
        let base = base.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { base, folder: folder.to_owned(), ..Self::default() }
    }

    /// Sets the number of each attempt among those at the same task, by trajectory index. Without it, every attempt is the first.
    #[must_use]
    pub fn with_attempts(self, attempts: HashMap<i64, u32>) -> Self {
        Self { attempts, ..self }
    }

    /// Returns the options of a task's episodes, with files and variables read.
    pub fn options(&self, task: &Task) -> Result<SessionOptions, String> {
        self.options_as(task, task.trajectory_index)
    }

    /// Returns the same with the name and the seed of another attempt at the task, given by its trajectory index.
    pub(crate) fn options_as(&self, task: &Task, index: i64) -> Result<SessionOptions, String> {
        let mut given = self.base.clone();
        if let Some(Value::Object(own)) = task.extra.get(FIELD) {
            let mut own = own.clone();
            let network = own.shift_remove(NETWORK);
            given.extend(own);
            merge_network(&mut given, network);
        }
        if let Some(Value::Object(network)) = given.get_mut(NETWORK) {
            let attempt = self.attempts.get(&index).copied().unwrap_or(0);
            let (session, seed) = replay_identity(task, attempt);
            network.entry("session").or_insert_with(|| session.into());
            network.entry("seed").or_insert_with(|| seed.into());
        }
        self.resolve(given)
    }

    /// Reads the files and variables that options refer to.
    fn resolve(&self, mut given: Map<String, Value>) -> Result<SessionOptions, String> {
        if given.is_empty() {
            return Ok(SessionOptions::default());
        }
        let state = self.storage_state(given.shift_remove("storage_state"))?;
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
        };
        let resolved = replace_variables(&given, &variable)?;
        let options = SessionOptions::from_json(&resolved).map_err(|error| error.to_string())?;
        Ok(SessionOptions { storage_state: state.map(|state| (*state).clone()), ..options })
    }

    fn storage_state(&self, file: Option<Value>) -> Result<Option<Arc<StorageState>>, String> {
        let Some(Value::String(file)) = file else { return Ok(None) };
        let path = self.folder.join(&file);
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.get(&path) {
            return Ok(Some(Arc::clone(state)));
        }
        let invalid = |reason: String| format!("storage_state {}: {reason}", path.display());
        let text = fs::read(&path).map_err(|error| invalid(error.to_string()))?;
        let state: StorageState = serde_json::from_slice(&text).map_err(|error| {
            invalid(format!("it is not a storage state of Playwright: line {}", error.line()))
        })?;
        state.check().map_err(invalid)?;
        let state = Arc::new(state);
        states.insert(path, Arc::clone(&state));
        Ok(Some(state))
    }
}

/// Checks options without reading files and variables. Returns what is wrong.
pub fn check(given: &Map<String, Value>) -> Result<(), String> {
    let mut given = given.clone();
    match given.shift_remove("storage_state") {
        None | Some(Value::Null) => {}
        Some(Value::String(file)) if !file.is_empty() => {}
        Some(_) => return Err("storage_state must be the name of a file, as Playwright saves it".into()),
    }
    // What it lacks may come from other keys: it is checked as a whole when the run is planned.
    if let Some(network) = given.shift_remove(NETWORK).filter(|network| !network.is_null()) {
        let parsed: Result<NetworkOptions, _> = serde_json::from_value(network);
        parsed.map_err(|error| format!("network: {error}"))?;
    }
    check_secrets(&given)?;
    let resolved = replace_variables(&given, &|_| Ok("value".to_owned()))?;
    SessionOptions::from_json(&resolved).map(drop).map_err(|error| error.to_string())
}

/// Adds fields to the option `network`; they replace those that it has.
fn merge_network(given: &mut Map<String, Value>, more: Option<Value>) {
    let Some(Value::Object(more)) = more else { return };
    if more.is_empty() {
        return;
    }
    match given.get_mut(NETWORK) {
        Some(Value::Object(network)) => network.extend(more),
        _ => drop(given.insert(NETWORK.to_owned(), Value::Object(more))),
    }
}

/// Returns the name of the session and the seed of an attempt, which are equal in the run that records and in those that
/// replay.
fn replay_identity(task: &Task, attempt: u32) -> (String, u32) {
    let name = match &task.task_id {
        Some(TaskId::Number(id)) => id.to_string(),
        Some(TaskId::Text(id)) => id.clone(),
        None => format!("{}\n{}", task.website, task.task_name),
    };
    let digest = digest(&[name.as_bytes()]);
    // A name that the farm would refuse is replaced.
    let is_usable = (1..=MAX_SESSION_NAME).contains(&name.len()) && !name.contains(char::is_control);
    let name = if is_usable { name } else { format!("{digest:032x}") };
    (format!("{name}#{attempt}"), (digest as u32).wrapping_add(attempt))
}

/// Refuses secrets in the text of the configuration or of a task, because both are stored with the results.
fn check_secrets(given: &Map<String, Value>) -> Result<(), String> {
    let is_reference = |value: &Value| {
        value.as_str().is_none_or(|text| text.is_empty() || text.starts_with(VARIABLE_PREFIX))
    };
    if let Some(password) = given.get("proxy").and_then(|proxy| proxy.get("password"))
        && !is_reference(password)
    {
        return Err("proxy.password must be env:NAME, the environment variable that holds it, never the secret itself".into());
    }
    let headers = given.get("extra_http_headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        let lower = name.to_ascii_lowercase();
        if SECRET_HEADERS.iter().any(|word| lower.contains(word)) && !is_reference(value) {
            return Err(format!(
                "the header {name} must be env:NAME, the environment variable that holds it, never the secret itself"
            ));
        }
    }
    Ok(())
}

/// Replaces the strings `env:NAME` in headers and in the proxy's credentials.
fn replace_variables(
    given: &Map<String, Value>,
    variable: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Map<String, Value>, String> {
    let mut resolved = given.clone();
    for name in ["extra_http_headers", "proxy"] {
        let Some(Value::Object(fields)) = resolved.get_mut(name) else { continue };
        for value in fields.values_mut() {
            if let Some(name) = value.as_str().and_then(|text| text.strip_prefix(VARIABLE_PREFIX)) {
                *value = json!(variable(name)?);
            }
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(given: &Value) -> Result<(), String> {
        check(given.as_object().unwrap())
    }

    #[test]
    fn secrets_must_be_referred_to() {
        for given in [
            json!({"proxy": {"server": "http://p.test:3128", "username": "u", "password": "hunter2"}}),
            json!({"extra_http_headers": {"Authorization": "Bearer hunter2"}}),
            json!({"extra_http_headers": {"X-Api-Key": "hunter2"}}),
            json!({"storage_state": {"cookies": []}}),
        ] {
            let error = checked(&given).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        for given in [
            json!({"proxy": {"server": "http://p.test:3128", "username": "u", "password": "env:PROXY_PASSWORD"}}),
            json!({"extra_http_headers": {"Authorization": "env:TOKEN", "x-team": "blue"}}),
            json!({"storage_state": "login.json", "locale": "de-DE"}),
        ] {
            assert_eq!(checked(&given), Ok(()));
        }
        assert!(checked(&json!({"locle": "de-DE"})).unwrap_err().contains("unknown session option"));
    }

    #[test]
    fn task_overrides_the_configuration() {
        let folder = std::env::temp_dir().join(format!("webgym-session-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("login.json"),
            r#"{"cookies": [{"name": "a", "value": "b", "domain": "a.test"}]}"#,
        )
        .unwrap();
        let base = IndexMap::from_iter([
            ("locale".to_owned(), json!("de-DE")),
            ("color_scheme".to_owned(), json!("dark")),
        ]);
        let source = SessionSource::new(&base, &folder);
        let mut task = Task::default();
        assert_eq!(source.options(&task).unwrap().locale.as_deref(), Some("de-DE"));
        task.extra.insert(FIELD.into(), json!({"locale": "fr-FR", "storage_state": "login.json"}));
        let options = source.options(&task).unwrap();
        assert_eq!(options.locale.as_deref(), Some("fr-FR"));
        assert!(options.color_scheme.is_some());
        assert_eq!(options.storage_state.unwrap().cookies.len(), 1);
        task.extra.insert(FIELD.into(), json!({"storage_state": "missing.json"}));
        assert!(source.options(&task).unwrap_err().contains("missing.json"));
        fs::remove_dir_all(folder).unwrap();
    }
}
