//! Parses one YAML document into nodes with their lines. Supports anchors, aliases and merge keys; refuses several documents,
//! custom tags and alias bombs.

use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::{
    error::ConfigError,
    node::{Node, NodeMap, Origin, Value},
    scalar,
};

/// Limits the number of values, because aliases can multiply a few lines into gigabytes.
const MAX_NODES: usize = 100_000;
const MAX_DEPTH: usize = 64;

pub(crate) fn parse(text: &str, name: &str) -> Result<Node, ConfigError> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        name: name.into(),
        anchors: Vec::new(),
        nodes: 0,
        depth: 0,
    };
    reader.document()
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    name: Arc<str>,
    /// Anchor id and its node.
    anchors: Vec<(usize, Node)>,
    nodes: usize,
    depth: usize,
}

type Item<'a> = (Event<'a>, Span);

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, ConfigError> {
        let empty = Node::new(Value::Null, self.origin(1));
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                event if root.is_none() => root = Some(self.node((event, span))?),
                _ => {
                    return Err(self.fail(
                        span.start.line(),
                        "a second document starts here; a file may contain only one",
                    ));
                }
            }
        }
        Ok(root.unwrap_or(empty))
    }

    fn next(&mut self) -> Result<Option<Item<'a>>, ConfigError> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok(item)) => Ok(Some(item)),
            Some(Err(error)) => Err(self.fail(error.marker().line(), &error.info())),
        }
    }

    fn expect(&mut self) -> Result<Item<'a>, ConfigError> {
        self.next()?.ok_or_else(|| self.fail(0, "the document ends unexpectedly"))
    }

    fn origin(&self, line: usize) -> Origin {
        Origin::File { name: Arc::clone(&self.name), line }
    }

    fn fail(&self, line: usize, reason: &str) -> ConfigError {
        ConfigError::Yaml { file: self.name.to_string(), line, reason: reason.to_owned() }
    }

    fn count(&mut self, nodes: usize, line: usize) -> Result<(), ConfigError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(self.fail(line, "too many values; are aliases multiplying each other?"));
        }
        Ok(())
    }

    fn node(&mut self, (event, span): Item<'a>) -> Result<Node, ConfigError> {
        let line = span.start.line();
        self.count(1, line)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail(line, "nested too deeply"));
        }
        let anchor = event.anchor_id();
        let value = match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref(), line)?,
            Event::SequenceStart(_, _, tag) => {
                self.refuse_tag(tag.as_deref(), line)?;
                Value::List(self.list()?)
            }
            Event::MappingStart(_, _, tag) => {
                self.refuse_tag(tag.as_deref(), line)?;
                Value::Map(self.mapping()?)
            }
            Event::Alias(id) => return self.alias(id, line),
            _ => return Err(self.fail(line, "a value is expected here")),
        };
        self.depth -= 1;
        let node = Node::new(value, self.origin(line));
        if let Some(id) = anchor {
            self.anchors.push((id, node.clone()));
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, line: usize) -> Result<Node, ConfigError> {
        self.depth -= 1;
        let Some((_, node)) = self.anchors.iter().find(|(known, _)| *known == id) else {
            return Err(self.fail(line, "this alias refers to the value that contains it"));
        };
        let node = node.clone();
        self.count(size(&node), line)?;
        Ok(node)
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<Value, ConfigError> {
        let is_tagged_text = tag.and_then(Tag::core_suffix) == Some("str");
        if !is_tagged_text {
            self.refuse_tag(tag, line)?;
        }
        if is_tagged_text || style != ScalarStyle::Plain {
            return Ok(Value::Text(text.to_owned()));
        }
        scalar::resolve(text).map_err(|reason| self.fail(line, &reason))
    }

    fn refuse_tag(&self, tag: Option<&Tag>, line: usize) -> Result<(), ConfigError> {
        match tag {
            None => Ok(()),
            Some(tag) => Err(self.fail(line, &format!("the tag {} is not supported", tag.original()))),
        }
    }

    fn list(&mut self) -> Result<Vec<Node>, ConfigError> {
        let mut list = Vec::new();
        loop {
            match self.expect()? {
                (Event::SequenceEnd, _) => return Ok(list),
                item => list.push(self.node(item)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<NodeMap, ConfigError> {
        let mut map = NodeMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.expect()?;
            let line = span.start.line();
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node((event, span))?;
            let item = self.expect()?;
            let value = self.node(item)?;
            if is_merge {
                merged.extend(self.merge_sources(value, line)?);
                continue;
            }
            let key = self.key(&key, line)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(self.fail(line, &format!("the key {key:?} occurs twice")));
            }
        }
        Ok(with_merged(map, merged))
    }

    fn merge_sources(&self, value: Node, line: usize) -> Result<Vec<NodeMap>, ConfigError> {
        let error = || self.fail(line, "`<<` takes a mapping or a list of mappings");
        match value.value {
            Value::Map(map) => Ok(vec![map]),
            Value::List(list) => list
                .into_iter()
                .map(|node| match node.value {
                    Value::Map(map) => Ok(map),
                    _ => Err(error()),
                })
                .collect(),
            _ => Err(error()),
        }
    }

    fn key(&self, key: &Node, line: usize) -> Result<String, ConfigError> {
        match &key.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Int(number) => Ok(number.to_string()),
            Value::Float(number) => Ok(crate::node::python_float(*number)),
            Value::Null | Value::List(_) | Value::Map(_) => {
                Err(self.fail(line, "a key must be text or a number"))
            }
        }
    }
}

/// Adds the merged keys before the own ones. Own keys have precedence, then earlier sources.
fn with_merged(own: NodeMap, sources: Vec<NodeMap>) -> NodeMap {
    if sources.is_empty() {
        return own;
    }
    let mut map = NodeMap::new();
    for source in sources {
        for (key, node) in source {
            map.entry(key).or_insert(node);
        }
    }
    map.extend(own);
    map
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::List(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Map(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_keep_line_numbers_and_quoted_values_are_text() {
        let root = parse("a: 1\nb:\n  c: '2'\n  d: [yes, \"no\"]\n", "x.yaml").unwrap();
        assert_eq!(root.to_json(), json!({"a": 1, "b": {"c": "2", "d": [true, "no"]}}));
        assert_eq!(root.get(["b", "c"]).unwrap().origin.to_string(), "x.yaml:3");
    }

    #[test]
    fn anchors_and_merge_keys_are_supported() {
        let root = parse("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nlist: [*b]\n", "x").unwrap();
        assert_eq!(root.to_json()["more"], json!({"x": 1, "y": 3}));
        assert_eq!(root.to_json()["list"], json!([{"x": 1, "y": 2}]));
    }

    #[test]
    fn alias_bomb_is_refused() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            bomb.extend([format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","))]);
        }
        assert!(parse(&bomb, "x").unwrap_err().to_string().contains("too many values"));
    }

    #[test]
    fn invalid_file_is_reported_with_line() {
        let cases = [
            ("a: 1\na: 2\n", "x.yaml:2: the key \"a\" occurs twice"),
            ("a: 1\n---\nb: 2\n", "x.yaml:3: a second document"),
            ("a: [1\n", "x.yaml:"),
            ("a: !!python/object:os.system x\n", "x.yaml:1: the tag"),
            ("a: *b\n", "x.yaml:1"),
            ("? [a]\n: 1\n", "a key must be text"),
        ];
        for (text, wanted) in cases {
            let got = parse(text, "x.yaml").unwrap_err().to_string();
            assert!(got.contains(wanted), "{text:?}: {got}");
        }
    }
}
