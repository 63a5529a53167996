//! Resolves OmegaConf interpolations: `${a.b}`, relative `${.c}`, nested ones, and the resolvers `oc.env`,
//! `oc.decode`, `oc.select` and Hydra's `now`. Reads the environment only through the function it is given.

use std::sync::Arc;

use crate::{
    Environment,
    error::ConfigError,
    grammar,
    node::{Drawn, Node, NodeMap, Value, python_float},
    pieces::{Piece, pieces, split_arguments, split_resolver},
};

/// The tree with every interpolation replaced by what it stands for.
pub(crate) fn resolve(root: &Node, environment: Environment<'_>) -> Result<Node, ConfigError> {
    let mut resolver = Resolver { root, environment, open: Vec::new(), draws: Draws::default() };
    resolver.node(root, &[])
}

struct Resolver<'a> {
    root: &'a Node,
    environment: Environment<'a>,
    /// Keys being resolved right now, to see circles.
    open: Vec<String>,
    draws: Draws,
}

/// What the value under resolution has taken from the environment so far.
#[derive(Clone, Copy, Default)]
struct Draws {
    any: bool,
    secret: bool,
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
            return Err(fail(format!("{} → {key} goes in a circle", self.open.join(" → "))));
        }
        self.open.push(key.clone());
        let outer = std::mem::take(&mut self.draws);
        let value = self.text(text, path);
        let draws = std::mem::replace(&mut self.draws, outer);
        self.draws.any |= draws.any;
        self.draws.secret |= draws.secret;
        self.open.pop();
        let value = value.map_err(|problem| problem.at(&fail))?;
        let drawn = draws.any.then(|| Arc::new(Drawn { written: text.to_owned(), secret: draws.secret }));
        Ok(Node { value, origin: node.origin.clone(), drawn })
    }

    /// A text with interpolations in it. A single one keeps its type; several become text.
    fn text(&mut self, text: &str, path: &Path) -> Result<Value, Failure> {
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

    fn expression(&mut self, expression: &str, path: &Path) -> Result<Value, Failure> {
        if let Some((name, arguments)) = split_resolver(expression) {
            return self.resolver(name, arguments, path);
        }
        let key = self.flat(expression, path)?;
        self.select(key.trim(), path)?.ok_or_else(|| Failure::new(format!("there is no key {key:?}")))
    }

    /// The expression with inner interpolations put in.
    fn flat(&mut self, expression: &str, path: &Path) -> Result<String, Failure> {
        if expression.contains("${") {
            as_text(&self.text(expression, path)?)
        } else {
            Ok(expression.to_owned())
        }
    }

    fn select(&mut self, key: &str, from: &Path) -> Result<Option<Value>, Failure> {
        let target = absolute(key, from)?;
        let root = self.root;
        let Some(node) = root.at(target.iter().map(String::as_str)) else { return self.through(&target) };
        if node.is_missing() {
            return Err(Failure::new(format!("{key} has no value yet (???)")));
        }
        let resolved = self.node(node, &target).map_err(Failure::Located)?;
        Ok(Some(resolved.value))
    }

    /// The path may lead through a key that is itself an interpolation.
    fn through(&mut self, target: &Path) -> Result<Option<Value>, Failure> {
        let root = self.root;
        for length in (1..target.len()).rev() {
            let (head, rest) = target.split_at(length);
            let Some(node) = root.at(head.iter().map(String::as_str)) else { continue };
            let Value::Text(text) = &node.value else { return Ok(None) };
            if !text.contains("${") {
                return Ok(None);
            }
            let resolved = self.node(node, head).map_err(Failure::Located)?;
            return Ok(resolved.at(rest.iter().map(String::as_str)).map(|node| node.value.clone()));
        }
        Ok(None)
    }

    fn resolver(&mut self, name: &str, arguments: &str, path: &Path) -> Result<Value, Failure> {
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
                let node = grammar::value(&text, &crate::node::Origin::Default).map_err(Failure::new)?;
                Ok(node.value)
            }
            ("oc.select", [key]) => Ok(self.select(&as_text(key)?, path)?.unwrap_or(Value::Null)),
            ("oc.select", [key, default]) => {
                Ok(self.select(&as_text(key)?, path)?.unwrap_or_else(|| default.clone()))
            }
            ("now", [format]) => {
                let text = jiff::fmt::strtime::format(as_text(format)?, &jiff::Zoned::now());
                text.map(Value::Text).map_err(|problem| Failure::new(problem.to_string()))
            }
            ("oc.env" | "oc.decode" | "oc.select" | "now", _) => {
                Err(Failure::new(format!("{name} does not take {} arguments", values.len())))
            }
            _ => Err(Failure::new(format!(
                "unknown resolver {name:?}; known are oc.env, oc.decode, oc.select and now"
            ))),
        }
    }

    fn argument(&mut self, text: &str, path: &Path) -> Result<Value, Failure> {
        let value = if text.starts_with(['\'', '"', '[', '{']) {
            grammar::value(text, &crate::node::Origin::Default).map_err(Failure::new)?.value
        } else if text.contains("${") {
            return self.text(text, path);
        } else {
            grammar::typed(text.to_owned()).map_err(Failure::new)?
        };
        match &value {
            Value::Text(inner) if inner.contains("${") => self.text(inner, path),
            _ => Ok(value),
        }
    }

    fn environment(&mut self, variable: &str, default: Option<&Value>) -> Result<Value, Failure> {
        self.draws.any = true;
        self.draws.secret |= names_a_secret(variable);
        match ((self.environment)(variable), default) {
            (Some(text), _) => Ok(Value::Text(text)),
            (None, Some(Value::Null)) => Ok(Value::Null),
            (None, Some(default)) => Ok(Value::Text(as_text(default)?)),
            (None, None) => Err(Failure::new(format!("the environment variable {variable} is not set"))),
        }
    }
}

/// A variable called like this holds something that must not be written down.
pub(crate) fn names_a_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"]
        .iter()
        .any(|word| name.contains(word))
}

pub(crate) enum Failure {
    Here(String),
    /// Raised while resolving another key, which it names already.
    Located(ConfigError),
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self::Here(reason.into())
    }

    fn at(self, locate: &dyn Fn(String) -> ConfigError) -> ConfigError {
        match self {
            Self::Here(reason) => locate(reason),
            Self::Located(error) => error,
        }
    }
}

/// `a.b[0].c` from anywhere; a leading dot means "beside me", each further one a level up.
fn absolute(key: &str, from: &Path) -> Result<Vec<String>, Failure> {
    let dots = key.len() - key.trim_start_matches('.').len();
    let mut target = Vec::new();
    if dots > 0 {
        let kept = from
            .len()
            .checked_sub(dots)
            .ok_or_else(|| Failure::new(format!("{key} leads above the root")))?;
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

/// A value inside a longer text, as Python prints it.
fn as_text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::Null => Ok("None".into()),
        Value::Bool(true) => Ok("True".into()),
        Value::Bool(false) => Ok("False".into()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(python_float(*number)),
        Value::Text(text) => Ok(text.clone()),
        Value::List(_) | Value::Map(_) => Err(Failure::new("a list or a mapping cannot stand inside a text")),
    }
}
