//! Reads a tree into a type with serde. The deserializer sees the field names of every struct, so that all unknown keys are
//! reported at once, each with its origin and the nearest valid key.

use std::cell::RefCell;

use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};

use crate::{
    error::Problem,
    nearest::nearest,
    node::{Node, Value},
};

/// Reads `T` from a tree. Unknown keys do not stop the reading; all problems are returned together.
pub(crate) fn read<T: de::DeserializeOwned>(root: &Node, valid: &[String]) -> Result<T, Vec<Problem>> {
    let context = Context { unknown: RefCell::new(Vec::new()), valid };
    let result = T::deserialize(Typed { node: root, path: String::new(), context: &context });
    let mut problems = context.unknown.into_inner();
    match result {
        Ok(value) if problems.is_empty() => Ok(value),
        Ok(_) => Err(problems),
        Err(failure) => {
            problems.push(failure.into_problem(root));
            Err(problems)
        }
    }
}

struct Context<'a> {
    unknown: RefCell<Vec<Problem>>,
    valid: &'a [String],
}

struct Typed<'a> {
    node: &'a Node,
    path: String,
    context: &'a Context<'a>,
}

/// An error that gets its key and origin on the way up.
#[derive(Debug)]
struct Failure {
    reason: String,
    located: Option<Problem>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { reason: message.to_string(), located: None }
    }

    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let given = if given == Unexpected::Unit { "nothing".to_owned() } else { given.to_string() };
        Self::custom(format_args!(
            "{given} was given; {} is expected",
            type_description(&expected.to_string())
        ))
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(given, expected)
    }
}

/// Describes a Rust type to users.
fn type_description(name: &str) -> &str {
    match name {
        "usize" | "u64" | "u32" => "a whole number, 0 or more,",
        "u16" => "a whole number from 0 to 65535",
        "u8" => "a whole number from 0 to 255",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        other => other,
    }
}

impl Failure {
    fn locate(mut self, path: &str, node: &Node) -> Self {
        if self.located.is_none() {
            let reason = self.reason.clone();
            self.located = Some(Problem { key: path.to_owned(), origin: node.origin.clone(), reason });
        }
        self
    }

    fn into_problem(self, root: &Node) -> Problem {
        let reason = self.reason;
        self.located.unwrap_or(Problem { key: String::new(), origin: root.origin.clone(), reason })
    }
}

impl<'a> Typed<'a> {
    fn child(&self, key: &str, node: &'a Node) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { node, path, context: self.context }
    }

    fn is_empty(&self) -> bool {
        self.node.value == Value::Null || self.node.is_missing()
    }

    fn record_unknown(&self, key: &str, node: &Node) {
        let child = self.child(key, node);
        let reason = match nearest(&child.path, self.context.valid.iter().map(String::as_str)) {
            Some(suggestion) => format!("unknown key; did you mean {suggestion}?"),
            None => "unknown key".to_owned(),
        };
        let problem = Problem { key: child.path, origin: node.origin.clone(), reason };
        self.context.unknown.borrow_mut().push(problem);
    }

    /// Parses the text of an environment variable where a number or a flag is expected.
    fn as_number(&self) -> Option<Value> {
        match &self.node.value {
            Value::Text(text) if self.node.from_environment.is_some() => {
                crate::grammar::parse_word(text.trim().to_owned())
                    .ok()
                    .filter(|value| !matches!(value, Value::Text(_)))
            }
            _ => None,
        }
    }

    fn any<'de, V: Visitor<'de>>(&self, value: &Value, visitor: V) -> Result<V::Value, Failure> {
        let result = match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) if self.node.is_missing() => {
                Err(de::Error::custom(format!("a value must be given ({text})")))
            }
            Value::Text(text) => visitor.visit_str(text),
            Value::List(_) | Value::Map(_) => return self.collection(visitor),
        };
        result.map_err(|failure: Failure| failure.locate(&self.path, self.node))
    }

    fn collection<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Failure> {
        match &self.node.value {
            Value::List(list) => visitor.visit_seq(Items { parent: self, items: list.iter().enumerate() }),
            Value::Map(map) => {
                let entries: Vec<_> = map.iter().map(|(key, node)| (key.as_str(), node)).collect();
                visitor.visit_map(Entries { parent: self, pending: entries.into_iter(), value: None })
            }
            _ => visitor.visit_map(Entries { parent: self, pending: Vec::new().into_iter(), value: None }),
        }
        .map_err(|failure: Failure| failure.locate(&self.path, self.node))
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            let value = self.as_number().unwrap_or_else(|| self.node.value.clone());
            self.any(&value, visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Typed<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.any(&self.node.value, visitor)
    }

    numbers! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.is_empty() { self.collection(visitor) } else { self.any(&self.node.value, visitor) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let Value::Map(map) = &self.node.value else {
            let reason = format!("a mapping with the keys {} is expected", fields.join(", "));
            return Err(Failure { reason, located: None }.locate(&self.path, self.node));
        };
        let (known, unknown): (Vec<_>, Vec<_>) =
            map.iter().map(|(key, node)| (key.as_str(), node)).partition(|(key, _)| fields.contains(key));
        for (key, node) in unknown {
            self.record_unknown(key, node);
        }
        visitor
            .visit_map(Entries { parent: &self, pending: known.into_iter(), value: None })
            .map_err(|failure: Failure| failure.locate(&self.path, self.node))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let error = || Failure { reason: format!("must be one of {}", variants.join(", ")), located: None };
        match &self.node.value {
            Value::Text(text) if variants.contains(&text.as_str()) => {
                visitor.visit_enum(text.as_str().into_deserializer())
            }
            Value::Text(text) => match nearest(text, variants.iter().copied()) {
                Some(suggestion) => {
                    Err(Failure { reason: format!("{}; did you mean {suggestion}?", error()), located: None })
                }
                None => Err(error()),
            },
            _ => Err(error()),
        }
        .map_err(|failure: Failure| failure.locate(&self.path, self.node))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

struct Items<'a> {
    parent: &'a Typed<'a>,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let child = self.parent.child(&index.to_string(), node);
        let path = child.path.clone();
        seed.deserialize(child).map(Some).map_err(|failure| failure.locate(&path, node))
    }
}

struct Entries<'a> {
    parent: &'a Typed<'a>,
    pending: std::vec::IntoIter<(&'a str, &'a Node)>,
    value: Option<(&'a str, &'a Node)>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        self.value = self.pending.next();
        match self.value {
            None => Ok(None),
            Some((key, _)) => seed.deserialize(key.into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let (key, node) =
            self.value.ok_or_else(|| Failure { reason: "a value without a key".into(), located: None })?;
        let child = self.parent.child(key, node);
        let path = child.path.clone();
        seed.deserialize(child).map_err(|failure| failure.locate(&path, node))
    }
}
