//! The configuration of a run: files composed as Hydra does, overridden from the command line, read into one typed
//! structure, every value with the place it came from. Reads files and the environment; writes `hyperparameters.yaml`.

mod compose;
mod defaults;
mod error;
mod grammar;
mod interpolate;
pub(crate) mod nearest;
mod node;
mod overrides;
mod pieces;
mod scalar;
mod schema;
mod show;
mod typed;
mod usage;
mod validate;
mod yaml;

pub use compose::SearchPath;
pub use error::{ConfigError, Problem};
pub use node::Origin;
pub use schema::{
    Config, ContextConfig, DifficultyClass, EnvConfig, HttpPools, ImageTransport, Judge, JudgeOverride,
    MaxSteps, ModelConfig, ModelType, OpenaiConfig, PolicyConfig, PromptVersion, RankWeights, RatioClass,
    SamplerKind, Split,
};
pub use usage::{JudgeEndpoint, Question};

use node::{Node, Value};
use overrides::{Override, Refusal};

/// The configuration that is used when none is named.
pub const DEFAULT_NAME: &str = "rollout";

/// A configuration ready for use.
#[derive(Debug)]
pub struct Resolved {
    pub config: Config,
    /// Things worth telling the user that are not errors.
    pub notes: Vec<String>,
    tree: Node,
}

/// Composes, overrides, resolves, reads and checks. The environment serves `${oc.env:…}`.
pub fn load(
    name: &str,
    search: &SearchPath,
    overrides: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Resolved, ConfigError> {
    let built_in = built_in()?;
    let valid = keys(&built_in);
    let (mut tree, notes) = composed(name, search, overrides, Some(&valid))?;
    fill(&mut tree, &built_in);
    let tree = interpolate::resolve(&tree, environment)?;
    let config: Config = typed::read(&tree, &valid).map_err(ConfigError::Invalid)?;
    let problems: Vec<Problem> = validate::problems(&config)
        .into_iter()
        .map(|(key, reason)| Problem { origin: discreet(origin(&tree, &key), &key), key, reason })
        .collect();
    if problems.is_empty() {
        Ok(Resolved { config, notes, tree })
    } else {
        Err(ConfigError::Invalid(problems))
    }
}

/// Only the composition, without our keys, types and defaults: what Hydra's `compose` gives.
pub fn compose_untyped(
    name: &str,
    search: &SearchPath,
    overrides: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<serde_json::Value, ConfigError> {
    let (tree, _) = composed(name, search, overrides, None)?;
    Ok(interpolate::resolve(&tree, environment)?.to_json())
}

fn composed(
    name: &str,
    search: &SearchPath,
    arguments: &[String],
    valid: Option<&[String]>,
) -> Result<(Node, Vec<String>), ConfigError> {
    let mut tree = compose::compose(name, search)?;
    let mut notes = Vec::new();
    let valid = valid.unwrap_or_default();
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
            let near = nearest::nearest(&missing, valid.iter().map(String::as_str));
            let hint = near
                .map_or_else(|| format!("to add it, write +{text}"), |near| format!("did you mean {near}?"));
            format!("there is no key {missing}; {hint}")
        }
    }
}

fn built_in() -> Result<Node, ConfigError> {
    let json = serde_json::to_value(Config::default()).map_err(|problem| {
        let reason = problem.to_string();
        ConfigError::Invalid(vec![Problem { key: String::new(), origin: Origin::Default, reason }])
    })?;
    Ok(Node::from_json(&json, &Origin::Default))
}

/// Every key of a tree, sections included, as dotted paths.
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

/// Puts the default wherever nothing was written. A section left null or as an empty list counts as not written.
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
        tree.value = Value::Map(node::NodeMap::new());
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

/// A secret given in the place of a variable's name must not be repeated by quoting the argument.
fn discreet(origin: Origin, key: &str) -> Origin {
    match origin {
        Origin::Argument(_) if key.ends_with("_env_var") => Origin::Argument(format!("{key}=…").into()),
        other => other,
    }
}

/// Where the value at a key, or the nearest section above it, was written.
fn origin(tree: &Node, key: &str) -> Origin {
    let parts: Vec<&str> = key.split('.').collect();
    (0..=parts.len())
        .rev()
        .find_map(|length| tree.at(parts[..length].iter().copied()))
        .map_or(Origin::Default, |node| node.origin.clone())
}
