//! Resolves OmegaConf interpolations: `${a.b}`, relative `${.c}`, nested ones, and the resolvers `oc.env`, `oc.decode`,
//! `oc.select` and Hydra's `now`. Reads the environment only through the given function.

use std::sync::Arc;

use crate::{
    Environment,
    error::ConfigError,
    grammar,
    node::{EnvironmentValue, Node, NodeMap, Value, python_float},
    pieces::{Piece, pieces, split_arguments, split_resolver},
};

/// Returns the tree with every interpolation replaced by its value.
pub(crate) fn resolve(root: &Node, environment: Environment<'_>) -> Result<Node, ConfigError> {
    let mut resolver = Resolver { root, environment, open: Vec::new(), sources: Sources::default() };
    resolver.node(root, &[])
}

struct Resolver<'a> {
    root: &'a Node,
    environment: Environment<'a>,
    /// Keys being resolved, to detect circular references.
    open: Vec<String>,
    sources: Sources,
}

/// What the current value has taken from the environment so far.
#[derive(Clone, Copy, Default)]
struct Sources {
    has_environment: bool,
    has_secret: bool,
}

type Path = [String];

impl<'a> Resolver<'a> {
    fn node(&mut self, node: &'a Node, path: &Path) -> Result<Node, ConfigError> {
        let value = match &node.value {
            Value::Text(text) if text.contains("${") => return self.interpolated(node, text, path),
            Value::List(list) => {
                let items =
                    list.iter().enumerate().map(|(index, item)| self.child(item, path, index.to_string()));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Value::Map(map) => {
                let items =
                    map.iter().map(|(key, item)| Ok((key.clone(), self.child(item, path, key.clone())?)));
                Value::Map(items.collect::<Result<NodeMap, ConfigError>>()?)
            }
            plain => plain.clone(),
        };
        Ok(Node { value, ..node.clone() })
    }

    fn child(&mut self, node: &'a Node, path: &Path, key: String) -> Result<Node, ConfigError> {
        let path: Vec<String> = path.iter().cloned().chain([key]).collect();
        self.node(node, &path)
    }

    fn interpolated(&mut self, node: &'a Node, text: &str, path: &Path) -> Result<Node, ConfigError> {
        let key = path.join(".");
        let fail = |reason: String| ConfigError::Interpolation {
            key: key.clone(),
            origin: node.origin.clone(),
            reason,
        };
        if self.open.contains(&key) {
            return Err(fail(format!("{} → {key} is circular", self.open.join(" → "))));
        }
        self.open.push(key.clone());
        let outer = std::mem::take(&mut self.sources);
        let value = self.text(text, path);
        let sources = std::mem::replace(&mut self.sources, outer);
        self.sources.has_environment |= sources.has_environment;
        self.sources.has_secret |= sources.has_secret;
        self.open.pop();
        let value = value.map_err(|failure| failure.locate(&fail))?;
        let from_environment = sources.has_environment.then(|| {
            Arc::new(EnvironmentValue { expression: text.to_owned(), is_secret: sources.has_secret })
        });
        Ok(Node { value, origin: node.origin.clone(), from_environment })
    }

    /// Resolves a text with interpolations. A single interpolation keeps its type; otherwise the result is text.
    fn text(&mut self, text: &str, path: &Path) -> Result<Value, InterpolationError> {
        let pieces = pieces(text)?;
        if let [Piece::Expression(expression)] = pieces.as_slice() {
            return self.expression(expression, path);
        }
        let mut whole = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => whole.push_str(&literal),
                Piece::Expression(expression) => {
                    whole.push_str(&as_text(&self.expression(expression, path)?)?);
                }
            }
        }
        Ok(Value::Text(whole))
    }

    fn expression(&mut self, expression: &str, path: &Path) -> Result<Value, InterpolationError> {
        if let Some((name, arguments)) = split_resolver(expression) {
            return self.resolver(name, arguments, path);
        }
        let key = self.resolve_inner(expression, path)?;
        self.select(key.trim(), path)?
            .ok_or_else(|| InterpolationError::new(format!("there is no key {key:?}")))
    }

    /// Resolves the interpolations inside an expression.
    fn resolve_inner(&mut self, expression: &str, path: &Path) -> Result<String, InterpolationError> {
        if expression.contains("${") {
            as_text(&self.text(expression, path)?)
        } else {
            Ok(expression.to_owned())
        }
    }

    fn select(&mut self, key: &str, from: &Path) -> Result<Option<Value>, InterpolationError> {
        let target = absolute_path(key, from)?;
        let root = self.root;
        let Some(node) = root.get(target.iter().map(String::as_str)) else {
            return self.select_through(&target);
        };
        if node.is_missing() {
            return Err(InterpolationError::new(format!("{key} has no value (???)")));
        }
        let resolved = self.node(node, &target).map_err(InterpolationError::Located)?;
        Ok(Some(resolved.value))
    }

    /// Resolves `a.b.c` if `a` or `a.b` is itself an interpolation that yields a mapping.
    fn select_through(&mut self, target: &Path) -> Result<Option<Value>, InterpolationError> {
        let root = self.root;
        for length in (1..target.len()).rev() {
            let (head, rest) = target.split_at(length);
            let Some(node) = root.get(head.iter().map(String::as_str)) else { continue };
            let Value::Text(text) = &node.value else { return Ok(None) };
            if !text.contains("${") {
                return Ok(None);
            }
            let resolved = self.node(node, head).map_err(InterpolationError::Located)?;
            return Ok(resolved.get(rest.iter().map(String::as_str)).map(|node| node.value.clone()));
        }
        Ok(None)
    }

    fn resolver(&mut self, name: &str, arguments: &str, path: &Path) -> Result<Value, InterpolationError> {
        let arguments = split_arguments(arguments);
        let mut values = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            values.push(self.argument(argument, path)?);
        }
        match (name, values.as_slice()) {
            ("oc.env", [variable]) => self.environment(&as_text(variable)?, None),
            ("oc.env", [variable, default]) => self.environment(&as_text(variable)?, Some(default)),
            ("oc.decode", [Value::Null]) => Ok(Value::Null),
            ("oc.decode", [value]) => {
                let text = as_text(value)?;
                let node = grammar::parse_value(&text, &crate::node::Origin::Default)
                    .map_err(InterpolationError::new)?;
                Ok(node.value)
            }
            ("oc.select", [key]) => Ok(self.select(&as_text(key)?, path)?.unwrap_or(Value::Null)),
            ("oc.select", [key, default]) => {
                Ok(self.select(&as_text(key)?, path)?.unwrap_or_else(|| default.clone()))
            }
            ("now", [format]) => {
                let text = jiff::fmt::strtime::format(as_text(format)?, &jiff::Zoned::now());
                text.map(Value::Text).map_err(|error| InterpolationError::new(error.to_string()))
            }
            ("oc.env" | "oc.decode" | "oc.select" | "now", _) => {
                Err(InterpolationError::new(format!("{name} does not take {} arguments", values.len())))
            }
            _ => Err(InterpolationError::new(format!(
                "unknown resolver {name:?}; available are oc.env, oc.decode, oc.select and now"
            ))),
        }
    }

    fn argument(&mut self, text: &str, path: &Path) -> Result<Value, InterpolationError> {
        let value = if text.starts_with(['\'', '"', '[', '{']) {
            grammar::parse_value(text, &crate::node::Origin::Default).map_err(InterpolationError::new)?.value
        } else if text.contains("${") {
            return self.text(text, path);
        } else {
            grammar::parse_word(text.to_owned()).map_err(InterpolationError::new)?
        };
        match &value {
            Value::Text(inner) if inner.contains("${") => self.text(inner, path),
            _ => Ok(value),
        }
    }

    fn environment(&mut self, variable: &str, default: Option<&Value>) -> Result<Value, InterpolationError> {
        self.sources.has_environment = true;
        self.sources.has_secret |= is_secret_name(variable);
        match ((self.environment)(variable), default) {
            (Some(text), _) => Ok(Value::Text(text)),
            (None, Some(Value::Null)) => Ok(Value::Null),
            (None, Some(default)) => Ok(Value::Text(as_text(default)?)),
            (None, None) => {
                Err(InterpolationError::new(format!("the environment variable {variable} is not set")))
            }
        }
    }
}

/// Returns whether the name of a variable suggests that its value is a secret.
pub(crate) fn is_secret_name(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"]
        .iter()
        .any(|word| name.contains(word))
}

pub(crate) enum InterpolationError {
    Here(String),
    /// An error while resolving another key; it contains that key.
    Located(ConfigError),
}

impl InterpolationError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self::Here(reason.into())
    }

    fn locate(self, locate: &dyn Fn(String) -> ConfigError) -> ConfigError {
        match self {
            Self::Here(reason) => locate(reason),
            Self::Located(error) => error,
        }
    }
}

/// Returns the absolute path of a key such as `a.b[0].c`. A leading dot means the same section, each further dot one level up.
fn absolute_path(key: &str, from: &Path) -> Result<Vec<String>, InterpolationError> {
    let dots = key.len() - key.trim_start_matches('.').len();
    let mut target = Vec::new();
    if dots > 0 {
        let kept = from
            .len()
            .checked_sub(dots)
            .ok_or_else(|| InterpolationError::new(format!("{key} refers to a level above the root")))?;
        target.extend_from_slice(&from[..kept]);
    }
    for part in key[dots..].split(['.', '[']) {
        let part = part.strip_suffix(']').unwrap_or(part);
        if !part.is_empty() {
            target.push(part.to_owned());
        }
    }
    Ok(target)
}

/// Formats a value inside a longer string as Python does.
fn as_text(value: &Value) -> Result<String, InterpolationError> {
    match value {
        Value::Null => Ok("None".into()),
        Value::Bool(true) => Ok("True".into()),
        Value::Bool(false) => Ok("False".into()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(python_float(*number)),
        Value::Text(text) => Ok(text.clone()),
        Value::List(_) | Value::Map(_) => {
            Err(InterpolationError::new("a list or a mapping cannot be part of a string"))
        }
    }
}
