//! Composes Hydra-style configuration: YAML files with a `defaults:` list, overrides from the command line and OmegaConf
//! interpolations, read into any type that serde can read. Every value keeps the file and line, or the argument, it came from.

mod compose;
mod error;
mod grammar;
mod interpolate;
mod nearest;
mod node;
mod overrides;
mod pieces;
mod scalar;
mod show;
mod typed;
mod yaml;

use serde::{Serialize, de::DeserializeOwned};

pub use compose::{EmbeddedFile, SearchPath};
pub use error::{ConfigError, Problem};
pub use nearest::nearest;
pub use node::Origin;

use node::{Node, NodeMap, Value};
use overrides::{Override, Refusal};

/// Looks up an environment variable for `${oc.env:…}`.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A configuration that was composed, resolved and read into `T`.
#[derive(Debug)]
pub struct Resolved<T> {
    pub config: T,
    /// Remarks for the user that are not errors.
    pub notes: Vec<String>,
    tree: Node,
}

impl<T> Resolved<T> {
    /// Returns where the value at a dotted key, or else the nearest section above it, was written.
    pub fn origin(&self, key: &str) -> Origin {
        let parts: Vec<&str> = key.split('.').collect();
        (0..=parts.len())
            .rev()
            .find_map(|length| self.tree.at(parts[..length].iter().copied()))
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
    let built_in = default_tree::<T>()?;
    let valid = keys(&built_in);
    let (mut tree, notes) = composed(name, search, overrides, &valid)?;
    fill(&mut tree, &built_in);
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
    let (tree, _) = composed(name, search, overrides, &[])?;
    Ok(interpolate::resolve(&tree, environment)?.to_json())
}

/// Composes the files and applies the overrides. `valid` are keys that may be set although no file contains them.
fn composed(
    name: &str,
    search: &SearchPath,
    arguments: &[String],
    valid: &[String],
) -> Result<(Node, Vec<String>), ConfigError> {
    let mut tree = compose::compose(name, search)?;
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

fn advice(refusal: Refusal, key: &str, text: &str, valid: &[String]) -> String {
    match refusal {
        Refusal::Other(reason) => reason,
        Refusal::NotThere => format!("there is no value at {key} to remove"),
        Refusal::Unknown(missing) => {
            let near = nearest(&missing, valid.iter().map(String::as_str));
            let hint = near
                .map_or_else(|| format!("to add it, write +{text}"), |near| format!("did you mean {near}?"));
            format!("there is no key {missing}; {hint}")
        }
    }
}

fn default_tree<T: Default + Serialize>() -> Result<Node, ConfigError> {
    let json = serde_json::to_value(T::default()).map_err(|problem| {
        let reason = problem.to_string();
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
    let empty = match &tree.value {
        Value::Null => true,
        Value::List(list) => list.is_empty(),
        _ => false,
    };
    if empty {
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
