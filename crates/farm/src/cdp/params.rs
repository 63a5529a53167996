//! Checks of the parameters of a call that is passed on: they name nothing of another tenant, and no address that pages may
//! not open. Parameters are parsed, not searched: a key can be written in many ways.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{message::ProtocolError, policy::Decision};

/// Knows what belongs to a client.
pub(crate) trait Owner {
    fn owns_context(&self, id: &str) -> bool;
    fn owns_target(&self, id: &str) -> bool;
}

/// Checks the parameters of a call that is passed to a session of the client.
pub(crate) fn check(
    method: &str,
    decision: Decision,
    params: Option<&RawValue>,
    owner: &impl Owner,
) -> Result<(), ProtocolError> {
    let params = CheckedParams::parse(method, params)?;
    if decision == Decision::ForwardUrl {
        params.check_url(method)?;
    }
    params.check_owner(owner)
}

/// The parameters that can name something outside the client's own session. A repeated one is an error, because the
/// browser could read the other value.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckedParams<'a> {
    #[serde(borrow, default)]
    browser_context_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    target_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    url: Option<&'a RawValue>,
}

impl<'a> CheckedParams<'a> {
    fn parse(method: &str, params: Option<&'a RawValue>) -> Result<Self, ProtocolError> {
        let Some(params) = params else { return Ok(Self::default()) };
        serde_json::from_str(params.get())
            .map_err(|error| ProtocolError::invalid(format!("{method}: the parameters are invalid: {error}")))
    }

    /// Fails if the parameters name a context or target of another tenant.
    fn check_owner(&self, owner: &impl Owner) -> Result<(), ProtocolError> {
        if let Some(id) = &self.browser_context_id
            && !owner.owns_context(id)
        {
            return Err(ProtocolError::failed(format!("Failed to find browser context with id {id}")));
        }
        match &self.target_id {
            Some(id) if !owner.owns_target(id) => Err(ProtocolError::failed("No target with given id found")),
            _ => Ok(()),
        }
    }

    /// Fails if `url` is one that pages may not open.
    fn check_url(&self, method: &str) -> Result<(), ProtocolError> {
        let Some(url) = self.url else { return Ok(()) };
        let url: Cow<'_, str> = serde_json::from_str(url.get())
            .map_err(|_| ProtocolError::invalid(format!("{method}: url must be a string")))?;
        check_url(method, &url)
    }
}

/// The schemes that a client may open. Everything else reaches the node's files or the browser itself.
const SCHEMES: &[&str] = &["http", "https", "about", "data", "blob", "javascript"];

/// Fails if a client may not open the URL.
pub(crate) fn check_url(method: &str, url: &str) -> Result<(), ProtocolError> {
    // As the browser does: leading blanks and control characters, and line breaks anywhere, do not count.
    let url: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let url = url.trim_matches(|c: char| c <= ' ');
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    if url.is_empty() || SCHEMES.contains(&scheme.as_str()) {
        return Ok(());
    }
    let shown: String = url.chars().take(100).collect();
    Err(ProtocolError::refused(
        method,
        &format!("{shown:?} cannot be opened; the schemes are {}", SCHEMES.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_schemes_can_be_opened() {
        for allowed in
            ["http://a", "HTTPS://a", " about:blank", "data:text/html,x", "blob:x", "javascript:1", ""]
        {
            assert_eq!(check_url("M", allowed), Ok(()), "{allowed}");
        }
        for refused in [
            "file:///etc/passwd",
            "FILE:/etc",
            " file:///x",
            "fi\nle:///x",
            "\u{1}file:///x",
            "chrome://version",
            "view-source:file:///x",
            "devtools://devtools",
            "/etc/passwd",
            "filesystem:http://a/x",
        ] {
            assert!(check_url("M", refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn escaped_keys_are_found() {
        let raw: Box<RawValue> = serde_json::from_str(r#"{"\u0075rl":"file:///x"}"#).unwrap();
        let params = CheckedParams::parse("M", Some(&raw)).unwrap();
        assert!(params.check_url("M").is_err());
        let raw: Box<RawValue> = serde_json::from_str(r#"{"url":"http://a","url":"file:///x"}"#).unwrap();
        assert!(CheckedParams::parse("M", Some(&raw)).is_err());
    }
}
