//! Parses and checks the options of a lease.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Geolocation, Permission, Proxy, ResourceType, Secret, SessionOptions, Viewport};
use crate::{network::NetworkOptions, storage_state::StorageState, text::cut};

/// An option that cannot be used. The message names the option and says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionOptionsError {
    #[error("unknown session option {name:?}; accepted: {accepted}")]
    Unknown { name: String, accepted: String },
    #[error("the session option {name}: {reason}")]
    Invalid { name: &'static str, reason: String },
}

const MAX_HEADERS: usize = 50;
const MAX_HEADER_BYTES: usize = 8 << 10;
const MAX_BLOCKED_HOSTS: usize = 1000;
const MAX_TEXT: usize = 500;
/// The browser sets these headers itself, or they would change how the request is sent.
const RESERVED_HEADERS: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "cookie",
];

type Setter = fn(&mut SessionOptions, Value) -> Result<(), String>;

/// The name of each option and how it is set: the single source for parsing and error messages.
const OPTIONS: &[(&str, Setter)] = &[
    ("viewport", |options, value| {
        let viewport: Viewport = parse_object(value, "{\"width\": 1280, \"height\": 768}")?;
        check_range("width", f64::from(viewport.width), 200.0..=3840.0)?;
        check_range("height", f64::from(viewport.height), 200.0..=2160.0)?;
        options.viewport = Some(viewport);
        Ok(())
    }),
    ("device_scale_factor", |options, value| {
        let factor = parse(value, "a number")?;
        check_range("it", factor, 0.5..=4.0)?;
        options.device_scale_factor = Some(factor);
        Ok(())
    }),
    ("locale", |options, value| {
        let locale: String = parse(value, "a language tag such as \"de-DE\"")?;
        let is_tag = |part: &str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if locale.len() > 35 || !locale.split('-').all(is_tag) {
            return Err(format!("{:?} is not a language tag such as \"de-DE\"", cut(&locale)));
        }
        options.locale = Some(locale);
        Ok(())
    }),
    ("timezone_id", |options, value| {
        let zone: String = parse(value, "a time zone such as \"Europe/Berlin\"")?;
        if zone.is_empty()
            || zone.len() > 60
            || !zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte))
        {
            return Err(format!("{:?} is not a time zone such as \"Europe/Berlin\"", cut(&zone)));
        }
        options.timezone_id = Some(zone);
        Ok(())
    }),
    ("color_scheme", |options, value| {
        options.color_scheme = Some(parse(value, "\"light\", \"dark\" or \"no-preference\"")?);
        Ok(())
    }),
    ("geolocation", |options, value| {
        let place: Geolocation =
            parse_object(value, "{\"latitude\": 52.5, \"longitude\": 13.4, \"accuracy\": 10}")?;
        check_range("latitude", place.latitude, -90.0..=90.0)?;
        check_range("longitude", place.longitude, -180.0..=180.0)?;
        check_range("accuracy", place.accuracy, 0.0..=1e6)?;
        options.geolocation = Some(place);
        Ok(())
    }),
    ("user_agent", |options, value| {
        let agent: String = parse(value, "a string")?;
        options.user_agent = Some(check_text(agent)?);
        Ok(())
    }),
    ("extra_http_headers", |options, value| {
        let headers: BTreeMap<String, Secret> = parse(value, "an object of header names and values")?;
        if headers.len() > MAX_HEADERS {
            return Err(format!("it has {} headers; at most {MAX_HEADERS} are accepted", headers.len()));
        }
        for (name, Secret(content)) in &headers {
            check_header(name, content)?;
        }
        options.extra_http_headers = headers;
        Ok(())
    }),
    ("permissions", |options, value| {
        options.permissions = parse(value, &list_of(Permission::NAMES))?;
        Ok(())
    }),
    ("blocked_hosts", |options, value| {
        let hosts: Vec<String> =
            parse(value, "a list of host names such as \"ads.example\" or \"*.ads.example\"")?;
        if hosts.len() > MAX_BLOCKED_HOSTS {
            return Err(format!("it has {} hosts; at most {MAX_BLOCKED_HOSTS} are accepted", hosts.len()));
        }
        if let Some(host) = hosts.iter().find(|host| !is_host_pattern(host)) {
            return Err(format!(
                "{:?} is not a host name such as \"ads.example\" or \"*.ads.example\"",
                cut(host)
            ));
        }
        options.blocked_hosts = hosts;
        Ok(())
    }),
    ("blocked_resource_types", |options, value| {
        options.blocked_resource_types = parse(value, &list_of(ResourceType::NAMES))?;
        Ok(())
    }),
    ("proxy", |options, value| {
        let proxy: Proxy = parse_object(
            value,
            "{\"server\": \"http://proxy.example:3128\", \"username\": …, \"password\": …}",
        )?;
        proxy.address()?;
        options.proxy = Some(proxy);
        Ok(())
    }),
    ("storage_state", |options, value| {
        let accepted = "a storage state of Playwright: {\"cookies\": […], \"origins\": […]}";
        let state: StorageState =
            parse(value.clone(), accepted).map_err(|reason| match StorageState::invalid_entry(&value) {
                Some(place) => format!("{place}: {reason}"),
                None => reason,
            })?;
        state.check()?;
        options.storage_state = Some(state);
        Ok(())
    }),
    ("tabs", |options, value| {
        options.tabs = Some(parse(value, "\"single\" or \"many\"")?);
        Ok(())
    }),
    ("downloads", |options, value| {
        options.downloads = Some(parse(value, "\"refuse\" or \"keep\"")?);
        Ok(())
    }),
    ("record", |options, value| {
        options.record = Some(parse(value, "true or false")?);
        Ok(())
    }),
    ("network", |options, value| {
        let accepted = "{\"record\": \"shop\"} or {\"replay\": \"shop\", \"on_miss\": \"fail\"}";
        let fields = value.as_object().ok_or_else(|| format!("it must be {accepted}"))?;
        options.network = Some(NetworkOptions::from_json(fields)?);
        Ok(())
    }),
];

impl SessionOptions {
    /// The names of all options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, _)| *name)
    }

    /// Parses the options. A null counts as missing.
    pub fn from_json(given: &Map<String, Value>) -> Result<Self, SessionOptionsError> {
        let mut options = Self::default();
        for (name, value) in given {
            let Some((name, set)) = OPTIONS.iter().find(|(known, _)| known == name) else {
                let accepted = Self::names().collect::<Vec<_>>().join(", ");
                return Err(SessionOptionsError::Unknown { name: cut(name), accepted });
            };
            if !value.is_null() {
                set(&mut options, value.clone())
                    .map_err(|reason| SessionOptionsError::Invalid { name, reason })?;
            }
        }
        Ok(options)
    }
}

/// Parses a value. The error says what is accepted. It names an unknown field or variant, but repeats no other value, which
/// may be a secret.
fn parse<T: DeserializeOwned>(value: Value, accepted: &str) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| {
        let error = error.to_string();
        let detail = error.split(", expected").next().unwrap_or_default();
        let is_name = detail.starts_with("unknown ") || detail.starts_with("missing ");
        if is_name {
            format!("{}; it must be {accepted}", cut(detail))
        } else {
            format!("it must be {accepted}")
        }
    })
}

/// Parses a value that must be an object; a list of its values would be read, too.
fn parse_object<T: DeserializeOwned>(value: Value, accepted: &str) -> Result<T, String> {
    if !value.is_object() {
        return Err(format!("it must be {accepted}"));
    }
    parse(value, accepted)
}

fn list_of(names: &[&str]) -> String {
    format!("a list of: {}", names.join(", "))
}

fn check_range(name: &str, number: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(format!("{name} is {number}; it must be from {} to {}", range.start(), range.end()))
}

fn check_text(text: String) -> Result<String, String> {
    if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(format!("it must be 1 to {MAX_TEXT} characters without line breaks"));
    }
    Ok(text)
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > 100 || !name.bytes().all(is_token) {
        return Err(format!("{:?} is not a header name", cut(name)));
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") || lower.starts_with("sec-")
    {
        return Err(format!("the header {name} is set by the browser; leave it out"));
    }
    if value.len() > MAX_HEADER_BYTES || !value.bytes().all(|byte| byte == b'\t' || (32..127).contains(&byte))
    {
        return Err(format!(
            "the value of the header {name} must be at most {MAX_HEADER_BYTES} printable ASCII characters"
        ));
    }
    Ok(())
}

fn is_host_pattern(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(value: &Value) -> Result<SessionOptions, String> {
        SessionOptions::from_json(value.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_round_trips() {
        let all = json!({
            "viewport": {"width": 800, "height": 600}, "device_scale_factor": 2.0, "locale": "de-DE",
            "timezone_id": "Europe/Berlin", "color_scheme": "no-preference",
            "geolocation": {"latitude": 52.5, "longitude": 13.4, "accuracy": 10.0}, "user_agent": "Mine/1.0",
            "extra_http_headers": {"x-team": "blue"}, "permissions": ["geolocation", "background-sync"],
            "blocked_hosts": ["ads.example", "*.track.example"], "blocked_resource_types": ["image", "eventsource"],
            "proxy": {"server": "http://proxy.example:3128", "username": "u", "password": "p"},
            "storage_state": {"cookies": [], "origins": []}, "tabs": "many", "downloads": "keep", "record": true,
            "network": {"replay": "shop", "on_miss": "404", "session": "task 7", "seed": 3, "ignore_keys": ["sid"]},
        });
        let options = parsed(&all).unwrap();
        assert_eq!(options.to_json(), all);
        assert_eq!(all.as_object().unwrap().len(), OPTIONS.len());
        assert!(parsed(&json!({"locale": null})).unwrap().is_default());
    }

    #[test]
    fn invalid_options_are_named() {
        let cases = [
            (json!({"viewport": [800, 600]}), "viewport: it must be {\"width\""),
            (
                json!({"storage_state": {"cookies": [{"name": "a", "value": "b", "domain": "c"}, {"name": "a"}]}}),
                "storage_state: cookies[1]: missing field `value`",
            ),
            (json!({"viewprt": {}}), "unknown session option \"viewprt\"; accepted: viewport"),
            (
                json!({"viewport": {"width": 10, "height": 600}}),
                "viewport: width is 10; it must be from 200 to 3840",
            ),
            (json!({"viewport": {"width": 800}}), "viewport: missing field `height`"),
            (json!({"viewport": "800x600"}), "viewport: it must be {\"width\""),
            (json!({"device_scale_factor": 9}), "device_scale_factor: it is 9"),
            (json!({"locale": "de_DE"}), "locale: \"de_DE\" is not a language tag"),
            (json!({"timezone_id": "Berlin; rm"}), "timezone_id: \"Berlin; rm\""),
            (json!({"color_scheme": "pink"}), "color_scheme: unknown variant `pink`"),
            (json!({"geolocation": {"latitude": 91, "longitude": 0}}), "geolocation: latitude is 91"),
            (json!({"user_agent": "a\nb"}), "user_agent: it must be 1 to 500"),
            (json!({"extra_http_headers": {"a b": "x"}}), "extra_http_headers: \"a b\" is not a header name"),
            (json!({"extra_http_headers": {"Host": "x"}}), "the header Host is set by the browser"),
            (json!({"extra_http_headers": {"x": "a\r\nb"}}), "the value of the header x"),
            (json!({"permissions": ["root"]}), "permissions: unknown variant `root`"),
            (json!({"blocked_hosts": ["http://a/"]}), "blocked_hosts: \"http://a/\" is not a host name"),
            (
                json!({"blocked_resource_types": ["document"]}),
                "blocked_resource_types: unknown variant `document`",
            ),
            (
                json!({"proxy": {"server": "socks5://a:1"}}),
                "proxy: the server \"socks5://a:1\" is not an HTTP proxy",
            ),
            (json!({"tabs": "few"}), "tabs: unknown variant `few`"),
            (json!({"network": {"replay": "a", "record": "b"}}), "network: record and replay together"),
            (json!({"network": "live"}), "network: it must be {\"record\""),
            (json!({"proxy": {"server": "a"}}), "proxy: the server \"a\""),
            (
                json!({"storage_state": {"cookies": [{"name": "a"}]}}),
                "storage_state: cookies[0]: missing field `value`",
            ),
            (
                json!({"storage_state": "state.json"}),
                "storage_state: it must be a storage state of Playwright",
            ),
        ];
        for (options, expected) in cases {
            let error = parsed(&options).unwrap_err();
            assert!(error.contains(expected), "{options}: {error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let options = parsed(&json!({
            "proxy": {"server": "p:1", "username": "u", "password": "hunter2"},
            "extra_http_headers": {"authorization": "Bearer hunter2"},
            "storage_state": {"cookies": [{"name": "sid", "value": "hunter2", "domain": "a.test"}]},
        }))
        .unwrap();
        assert!(!format!("{options:?}").contains("hunter2"));
        let error = parsed(&json!({"proxy": {"server": "p:1", "password": ["hunter2"]}})).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
