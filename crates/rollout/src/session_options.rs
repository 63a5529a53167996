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
use proto::{SessionOptions, StorageState, trajectory::Task};
use serde_json::{Map, Value, json};

use crate::config::Config;

/// The field of a task, and the key of the configuration, that holds session options.
pub const FIELD: &str = "session";
/// The prefix of a value that is read from an environment variable.
const VARIABLE_PREFIX: &str = "env:";
/// Headers whose values are secrets.
const SECRET_HEADERS: &[&str] = &["authorization", "token", "key", "secret", "cookie", "password"];

/// Where the options of all episodes come from.
#[derive(Debug, Default)]
pub struct SessionSource {
    /// The options of the configuration.
    base: Map<String, Value>,
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
        source.resolve(source.base.clone()).map_err(SessionError::Config)?;
        for task in tasks {
            let task_name = || task.task_name.clone();
            source.options(task).map_err(|reason| SessionError::Task { task: task_name(), reason })?;
        }
        Ok(source)
    }

    fn new(base: &IndexMap<String, Value>, folder: &Path) -> Self {
        let base = base.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { base, folder: folder.to_owned(), states: Mutex::default() }
    }

    /// Returns the options of a task's episodes, with files and variables read.
    pub fn options(&self, task: &Task) -> Result<SessionOptions, String> {
        let mut given = self.base.clone();
        if let Some(Value::Object(own)) = task.extra.get(FIELD) {
            given.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
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
    check_secrets(&given)?;
    let resolved = replace_variables(&given, &|_| Ok("value".to_owned()))?;
    SessionOptions::from_json(&resolved).map(drop).map_err(|error| error.to_string())
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
