//! Loads a configuration: composes files, applies overrides, fills in defaults, resolves interpolations and reads the type.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    ConfigError, Origin, Problem, SearchPath, compose as files, interpolate, nearest,
    node::{Node, NodeMap, Value},
    overrides::{Override, Refusal},
    typed,
};

/// Looks up an environment variable for `${oc.env:…}`.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A configuration that was composed, resolved and read into `T`.
#[derive(Debug)]
pub struct Resolved<T> {
    pub config: T,
    /// Remarks for the user that are not errors.
    pub notes: Vec<String>,
    pub(crate) tree: Node,
}

impl<T> Resolved<T> {
    /// Returns where the value at a dotted key, or else the nearest section above it, was written.
    pub fn origin(&self, key: &str) -> Origin {
        let parts: Vec<&str> = key.split('.').collect();
        (0..=parts.len())
            .rev()
            .find_map(|length| self.tree.get(parts[..length].iter().copied()))
            .map_or(Origin::Default, |node| node.origin.clone())
    }
}

/// Composes the configuration `name`, applies the overrides, fills in the defaults of `T`, resolves interpolations and reads
/// the result into `T`. All unknown keys are reported at once.
pub fn load<T: Default + Serialize + DeserializeOwned>(
    name: &str,
    search: &SearchPath,
    overrides: &[String],
    environment: Environment<'_>,
) -> Result<Resolved<T>, ConfigError> {
    let defaults = default_tree::<T>()?;
    let valid = keys(&defaults);
    let (mut tree, notes) = compose_tree(name, search, overrides, &valid)?;
    fill(&mut tree, &defaults);
    let tree = interpolate::resolve(&tree, environment)?;
    let config = typed::read(&tree, &valid).map_err(ConfigError::Invalid)?;
    Ok(Resolved { config, notes, tree })
}

/// Composes the configuration `name` without a schema or defaults, as Hydra's own `compose` does.
pub fn compose(
    name: &str,
    search: &SearchPath,
    overrides: &[String],
    environment: Environment<'_>,
) -> Result<serde_json::Value, ConfigError> {
    let (tree, _) = compose_tree(name, search, overrides, &[])?;
    Ok(interpolate::resolve(&tree, environment)?.to_json())
}

/// Composes the files and applies the overrides. `valid` are keys that may be set although no file contains them.
fn compose_tree(
    name: &str,
    search: &SearchPath,
    arguments: &[String],
    valid: &[String],
) -> Result<(Node, Vec<String>), ConfigError> {
    let mut tree = files::compose(name, search)?;
    let mut notes = Vec::new();
    for argument in arguments {
        let parsed = Override::parse(argument)?;
        if parsed.is_about_hydra() {
            notes.push(format!("{argument:?} is about Hydra itself and is ignored"));
            continue;
        }
        let key = parsed.key();
        let text = parsed.text().to_owned();
        let known = |path: &str| valid.iter().any(|known| known == path);
        parsed
            .apply(&mut tree, &known)
            .map_err(|refusal| Override::failed(&text, advice(refusal, &key, &text, valid)))?;
    }
    Ok((tree, notes))
}

/// Words the error of an override, with a suggestion.
fn advice(refusal: Refusal, key: &str, text: &str, valid: &[String]) -> String {
    match refusal {
        Refusal::Other(reason) => reason,
        Refusal::Missing => format!("there is no value at {key} to remove"),
        Refusal::Unknown(missing) => {
            let suggestion = nearest(&missing, valid.iter().map(String::as_str));
            let hint = suggestion
                .map_or_else(|| format!("to add it, write +{text}"), |key| format!("did you mean {key}?"));
            format!("there is no key {missing}; {hint}")
        }
    }
}

fn default_tree<T: Default + Serialize>() -> Result<Node, ConfigError> {
    let json = serde_json::to_value(T::default()).map_err(|error| {
        let reason = error.to_string();
        ConfigError::Invalid(vec![Problem { key: String::new(), origin: Origin::Default, reason }])
    })?;
    Ok(Node::from_json(&json, &Origin::Default))
}

/// Returns every key of a tree, sections included, as dotted paths.
fn keys(node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &Node)> = vec![(String::new(), node)];
    while let Some((path, node)) = open.pop() {
        for (key, child) in node.map().into_iter().flatten() {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            found.push(full.clone());
            open.push((full, child));
        }
    }
    found
}

/// Inserts the default of every key that was not written. A section that is null or an empty list counts as not written.
fn fill(tree: &mut Node, defaults: &Node) {
    let Value::Map(defaults) = &defaults.value else { return };
    if defaults.is_empty() {
        return;
    }
    let is_empty = match &tree.value {
        Value::Null => true,
        Value::List(list) => list.is_empty(),
        _ => false,
    };
    if is_empty {
        tree.value = Value::Map(NodeMap::new());
    }
    let Value::Map(map) = &mut tree.value else { return };
    for (key, default) in defaults {
        match map.get_mut(key) {
            Some(node) => fill(node, default),
            None => {
                map.insert(key.clone(), default.clone());
            }
        }
    }
}
