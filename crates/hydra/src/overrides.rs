//! Command line overrides: parses `key=value`, `+key=value`, `++key=value`, `~key` and `~key=value`, and applies them to the
//! composed tree by Hydra's rules.

use crate::{
    error::ConfigError,
    grammar,
    node::{Node, NodeMap, Origin, Value},
    show::without_password,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Set,
    Add,
    ForceAdd,
    Delete,
}

#[derive(Debug)]
pub(crate) struct Override {
    kind: Kind,
    path: Vec<String>,
    value: Option<Node>,
    text: String,
}

/// Returns whether a dotted key may be created.
pub(crate) type MayCreate<'a> = &'a dyn Fn(&str) -> bool;

impl Override {
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let fail = |reason: String| Self::failed(text, reason);
        let (kind, rest) = if let Some(rest) = text.strip_prefix("++") {
            (Kind::ForceAdd, rest)
        } else if let Some(rest) = text.strip_prefix('+') {
            (Kind::Add, rest)
        } else if let Some(rest) = text.strip_prefix('~') {
            (Kind::Delete, rest)
        } else {
            (Kind::Set, text)
        };
        let (key, value) = match rest.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None if kind == Kind::Delete => (rest, None),
            None => return Err(fail("an override has the form key=value".into())),
        };
        let path = parse_path(key).map_err(fail)?;
        let origin = Origin::Argument(text.into());
        let value = value.map(|value| grammar::parse_value(value, &origin)).transpose().map_err(fail)?;
        Ok(Self { kind, path, value, text: text.to_owned() })
    }

    /// Returns whether the override is for Hydra's own settings (`hydra.run.dir=…`), which have no effect here.
    pub(crate) fn is_about_hydra(&self) -> bool {
        self.path.first().is_some_and(|head| head == "hydra")
    }

    pub(crate) fn key(&self) -> String {
        self.path.join(".")
    }

    pub(crate) fn apply(self, root: &mut Node, may_create: MayCreate<'_>) -> Result<(), Refusal> {
        let key = self.key();
        let present = root.get(self.path.iter().map(String::as_str));
        let has_value = present.is_some_and(|node| node.value != Value::Null && !node.is_missing());
        let value = self.value.unwrap_or_else(|| Node::new(Value::Null, Origin::Default));
        match self.kind {
            Kind::Delete => {
                if !has_value {
                    return Err(Refusal::Missing);
                }
                let given = (value.value != Value::Null).then(|| value.to_json());
                let actual = present.map(Node::to_json).unwrap_or_default();
                if let Some(given) = given.filter(|given| *given != actual) {
                    return Err(Refusal::Other(format!("the value is {actual} and not {given}")));
                }
                remove(root, &self.path)
            }
            Kind::Add if has_value && !matches!(value.value, Value::List(_) | Value::Map(_)) => {
                Err(Refusal::Other(format!(
                    "{key} already has a value; remove the `+` to change it, or use `++` to add or change it"
                )))
            }
            Kind::Add | Kind::ForceAdd => set(root, &self.path, value, &|_| true),
            Kind::Set => set(root, &self.path, value, may_create),
        }
    }

    pub(crate) fn failed(text: &str, reason: String) -> ConfigError {
        ConfigError::Argument { argument: without_password(text), reason }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Why an override cannot be applied. The caller knows the valid keys and adds advice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The key to set does not exist.
    Unknown(String),
    /// The value to remove does not exist.
    Missing,
    Other(String),
}

fn parse_path(key: &str) -> Result<Vec<String>, String> {
    if key.is_empty() {
        return Err("the key is missing".into());
    }
    if key.contains('@') || key.contains('/') {
        return Err("config groups (group/name, group@package) are not supported; \
                    write a dotted key such as section.key=value"
            .into());
    }
    let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'))
    };
    let is_index = |part: &str| {
        part == "0"
            || (!part.starts_with('0') && !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let invalid = parts.iter().find(|part| !(is_word(part) || (parts.len() > 1 && is_index(part))));
    match invalid {
        None => Ok(parts),
        Some(invalid) => Err(format!("{invalid:?} cannot be part of a key; keys have the form section.key")),
    }
}

fn remove(root: &mut Node, path: &[String]) -> Result<(), Refusal> {
    let Some((last, parents)) = path.split_last() else { return Err(Refusal::Missing) };
    let parent = parents.iter().try_fold(root, |node, key| child(node, key)).ok_or(Refusal::Missing)?;
    match &mut parent.value {
        Value::Map(map) => {
            map.shift_remove(last);
        }
        Value::List(list) => match last.parse::<usize>() {
            Ok(index) if index < list.len() => {
                list.remove(index);
            }
            _ => return Err(Refusal::Missing),
        },
        _ => return Err(Refusal::Missing),
    }
    Ok(())
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        Value::Map(map) => map.get_mut(key),
        Value::List(list) => list.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Sets the value at a path. A missing key is created only if `may_create` allows it.
fn set(root: &mut Node, path: &[String], value: Node, may_create: MayCreate<'_>) -> Result<(), Refusal> {
    let Some((last, parents)) = path.split_last() else { return Err(Refusal::Missing) };
    let full = path.join(".");
    let mut node = root;
    for key in parents {
        let origin = value.origin.clone();
        let next = get_or_create(node, key, &full, may_create, &origin)?;
        if !matches!(next.value, Value::Map(_) | Value::List(_)) {
            // A scalar on the way is replaced only if the whole key may be created.
            if !may_create(&full) {
                return Err(Refusal::Unknown(full));
            }
            *next = Node::new(Value::Map(NodeMap::new()), origin);
        }
        node = next;
    }
    let origin = value.origin.clone();
    let slot = get_or_create(node, last, &full, may_create, &origin)?;
    if let (Value::Map(existing), Value::Map(_)) = (&mut slot.value, &value.value) {
        let Value::Map(given) = value.value else { return Ok(()) };
        return merge_into(existing, given, &full, may_create);
    }
    *slot = value;
    Ok(())
}

/// Returns the node under `key`, creating it if it is missing and may be created.
fn get_or_create<'a>(
    parent: &'a mut Node,
    key: &str,
    full: &str,
    may_create: MayCreate<'_>,
    origin: &Origin,
) -> Result<&'a mut Node, Refusal> {
    match &mut parent.value {
        Value::Map(map) => {
            if !map.contains_key(key) && !may_create(full) {
                return Err(Refusal::Unknown(full.to_owned()));
            }
            Ok(map.entry(key.to_owned()).or_insert_with(|| Node::new(Value::Null, origin.clone())))
        }
        Value::List(list) => {
            let length = list.len();
            key.parse::<usize>()
                .ok()
                .and_then(|index| list.get_mut(index))
                .ok_or_else(|| Refusal::Other(format!("the list at {full} has {length} elements")))
        }
        _ => Err(Refusal::Unknown(full.to_owned())),
    }
}

fn merge_into(
    existing: &mut NodeMap,
    given: NodeMap,
    prefix: &str,
    may_create: MayCreate<'_>,
) -> Result<(), Refusal> {
    for (key, node) in given {
        let full = format!("{prefix}.{key}");
        match existing.get_mut(&key) {
            None if !may_create(&full) => return Err(Refusal::Unknown(full)),
            Some(Node { value: Value::Map(inner), .. }) if matches!(node.value, Value::Map(_)) => {
                if let Value::Map(given) = node.value {
                    merge_into(inner, given, &full, may_create)?;
                }
            }
            _ => {
                existing.insert(key, node);
            }
        }
    }
    Ok(())
}
