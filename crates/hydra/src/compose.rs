//! Composes files as Hydra does: `defaults:` lists files of the same folder, `_self_` marks the position of the file itself, and
//! later files override earlier ones. Files come from a folder, or else from inside the binary.

use std::path::{Path, PathBuf};

use crate::{
    error::ConfigError,
    nearest::nearest,
    node::{Node, NodeMap, Origin, Value},
    yaml,
};

/// A configuration file inside the binary: its name without `.yaml`, and its text.
pub type EmbeddedFile = (&'static str, &'static str);

/// Where configuration files are looked for.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    folder: Option<PathBuf>,
    embedded: &'static [EmbeddedFile],
}

impl SearchPath {
    /// A folder first, then the files inside the binary.
    pub fn new(folder: Option<PathBuf>, embedded: &'static [EmbeddedFile]) -> Self {
        Self { folder, embedded }
    }

    /// Only a folder, as Hydra itself would look.
    pub fn folder(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), embedded: &[] }
    }

    fn load(&self, name: &str, included_by: &str) -> Result<Node, ConfigError> {
        let stem = name.strip_suffix(".yaml").unwrap_or(name);
        if let Some(folder) = &self.folder {
            let path = folder.join(format!("{stem}.yaml"));
            match std::fs::read_to_string(&path) {
                Ok(text) => return file(&text, &path.display().to_string()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(ConfigError::Read { file: path.display().to_string(), source }),
            }
        }
        match self.embedded.iter().find(|(known, _)| *known == stem) {
            Some((_, text)) => file(text, &format!("{stem}.yaml (built in)")),
            None => Err(self.missing(stem, included_by)),
        }
    }

    fn missing(&self, name: &str, included_by: &str) -> ConfigError {
        let mut searched: Vec<String> = self.folder.iter().map(|f| f.display().to_string()).collect();
        let mut names: Vec<String> = Vec::new();
        for entry in self.folder.iter().filter_map(|f| std::fs::read_dir(f).ok()).flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            names.extend(file.strip_suffix(".yaml").map(str::to_owned));
        }
        if !self.embedded.is_empty() {
            searched.push("the built-in files".into());
            names.extend(self.embedded.iter().map(|(name, _)| (*name).to_owned()));
        }
        let hint = nearest(name, names.iter().map(String::as_str)).map_or_else(
            || format!("; available: {}", names.join(", ")),
            |suggestion| format!("; did you mean {suggestion:?}?"),
        );
        ConfigError::NoSuchConfig {
            name: name.to_owned(),
            included_by: if included_by.is_empty() {
                String::new()
            } else {
                format!(", included by {included_by}")
            },
            searched: searched.join(" and "),
            hint,
        }
    }
}

fn file(text: &str, name: &str) -> Result<Node, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_package(text, name)?;
    let mut root = yaml::parse(text, name)?;
    match root.value {
        Value::Map(_) => Ok(root),
        Value::Null => {
            root.value = Value::Map(NodeMap::new());
            Ok(root)
        }
        _ => Err(ConfigError::Yaml {
            file: name.to_owned(),
            line: 1,
            reason: "a configuration file must contain keys and values".into(),
        }),
    }
}

/// Refuses `# @package …` comments at the top of a file unless they have no effect.
fn check_package(text: &str, name: &str) -> Result<(), ConfigError> {
    let comments =
        text.lines().enumerate().take_while(|(_, line)| line.trim().is_empty() || line.starts_with('#'));
    for (index, line) in comments {
        let Some(package) = line.trim_start_matches(['#', ' ']).strip_prefix("@package") else { continue };
        if !matches!(package.trim(), "_global_" | "_group_" | "") {
            return Err(ConfigError::Yaml {
                file: name.to_owned(),
                line: index + 1,
                reason: format!("`@package {}` is not supported; write the keys in full", package.trim()),
            });
        }
    }
    Ok(())
}

/// Composes the tree of a configuration, before overrides.
pub(crate) fn compose(name: &str, search: &SearchPath) -> Result<Node, ConfigError> {
    let mut root = Node::new(Value::Map(NodeMap::new()), Origin::Default);
    include(&mut root, name, "", search, &mut Vec::new())?;
    if let Value::Map(map) = &mut root.value {
        map.shift_remove("hydra");
    }
    Ok(root)
}

fn include(
    root: &mut Node,
    name: &str,
    included_by: &str,
    search: &SearchPath,
    open: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let mut own = search.load(name, included_by)?;
    let defaults = match &mut own.value {
        Value::Map(map) => map.shift_remove("defaults"),
        _ => None,
    };
    open.push(name.to_owned());
    let mut own = Some(own);
    if let Some(defaults) = defaults {
        for entry in entries(&defaults)? {
            match entry {
                Entry::SelfFile(origin) => {
                    let own = own.take().ok_or_else(|| refuse(&origin, "_self_ occurs twice".into()))?;
                    merge(root, own);
                }
                Entry::File(name, origin) if open.contains(&name) => {
                    let chain = open.join(" → ");
                    return Err(refuse(&origin, format!("{chain} → {name} is circular")));
                }
                Entry::File(name, origin) => include(root, &name, &origin.to_string(), search, open)?,
            }
        }
    }
    // Without `_self_`, the file itself comes last.
    if let Some(own) = own {
        merge(root, own);
    }
    open.pop();
    Ok(())
}

/// An entry of a `defaults:` list.
enum Entry {
    SelfFile(Origin),
    File(String, Origin),
}

fn refuse(origin: &Origin, reason: String) -> ConfigError {
    ConfigError::Defaults { origin: origin.clone(), reason }
}

fn entries(defaults: &Node) -> Result<Vec<Entry>, ConfigError> {
    let Value::List(list) = &defaults.value else {
        return Err(refuse(&defaults.origin, "expected a list of file names".into()));
    };
    let mut entries = Vec::new();
    for node in list {
        match &node.value {
            Value::Text(name) if name == "_self_" => entries.push(Entry::SelfFile(node.origin.clone())),
            Value::Text(name) => {
                entries.push(Entry::File(file_name(name, &node.origin)?, node.origin.clone()));
            }
            // Entries such as `override hydra/job_logging: …` configure Hydra's runtime, which does not exist here.
            Value::Map(map) if map.keys().all(|key| key.contains("hydra/")) => {}
            other => {
                let problem = match other {
                    Value::Map(map) => {
                        format!("{:?} names a config group", map.keys().next().cloned().unwrap_or_default())
                    }
                    _ => "an entry is neither a name nor `_self_`".into(),
                };
                return Err(refuse(
                    &node.origin,
                    format!("{problem}; only names of files in the same folder and `_self_` are supported"),
                ));
            }
        }
    }
    Ok(entries)
}

fn file_name(name: &str, origin: &Origin) -> Result<String, ConfigError> {
    let plain = name.strip_prefix('/').unwrap_or(name);
    let plain = plain.strip_suffix(".yaml").unwrap_or(plain);
    if plain.is_empty() || plain.contains(['/', '\\', '@', ' ', '$']) || plain.starts_with('.') {
        return Err(refuse(origin, format!("{name:?} is not the name of a file in the same folder")));
    }
    Ok(plain.to_owned())
}

/// Merges `overlay` into `base`: maps key by key, other values are replaced. `???` does not replace a value.
fn merge(base: &mut Node, overlay: Node) {
    match (&mut base.value, overlay) {
        (Value::Map(map), Node { value: Value::Map(overlay), .. }) => {
            for (key, node) in overlay {
                match map.get_mut(&key) {
                    Some(existing) => {
                        if !node.is_missing() {
                            merge(existing, node);
                        }
                    }
                    None => {
                        map.insert(key, node);
                    }
                }
            }
        }
        (_, overlay) => *base = overlay,
    }
}
