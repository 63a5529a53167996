//! The state of a session that can be saved and restored: cookies, localStorage and IndexedDB, in Playwright's format.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::cut;

/// Cookies and storage, as Playwright's `storageState` writes them. A login made once can start every episode.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageState {
    #[serde(default)]
    pub cookies: Vec<Cookie>,
    #[serde(default)]
    pub origins: Vec<OriginState>,
}

/// A cookie. Fields that are not listed are ignored.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub name: String,
    pub value: String,
    pub domain: String,
    #[serde(default = "root_path")]
    pub path: String,
    /// Seconds since 1970; -1 for a session cookie.
    #[serde(default = "session_cookie")]
    pub expires: f64,
    #[serde(default)]
    pub http_only: bool,
    #[serde(default)]
    pub secure: bool,
    #[serde(default)]
    pub same_site: SameSite,
    /// The top-level site of a partitioned cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SameSite {
    Strict,
    #[default]
    Lax,
    None,
}

/// The storage of one origin.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OriginState {
    pub origin: String,
    #[serde(default)]
    pub local_storage: Vec<StorageItem>,
    /// The databases of the origin; their records may hold any value that JavaScript can clone.
    #[serde(default, rename = "indexedDB", skip_serializing_if = "Vec::is_empty")]
    pub indexed_db: Vec<Value>,
    /// The files of the origin's private file system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opfs: Vec<Value>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageItem {
    pub name: String,
    pub value: String,
}

fn root_path() -> String {
    "/".to_owned()
}

const fn session_cookie() -> f64 {
    -1.0
}

/// Shows only sizes: the content logs people in.
impl fmt::Debug for StorageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageState({} cookies, {} origins)", self.cookies.len(), self.origins.len())
    }
}

impl StorageState {
    /// Returns the place of the first cookie or origin that cannot be read.
    pub fn invalid_entry(state: &Value) -> Option<String> {
        let cookies = state["cookies"].as_array().into_iter().flatten();
        let mut cookies = cookies.map(|cookie| Cookie::deserialize(cookie).is_err());
        if let Some(number) = cookies.position(|is_invalid| is_invalid) {
            return Some(format!("cookies[{number}]"));
        }
        let origins = state["origins"].as_array().into_iter().flatten();
        let mut origins = origins.map(|origin| OriginState::deserialize(origin).is_err());
        Some(format!("origins[{}]", origins.position(|is_invalid| is_invalid)?))
    }

    pub const MAX_COOKIES: usize = 3000;
    pub const MAX_ORIGINS: usize = 100;

    /// Checks sizes, domains and origins. Everything else is checked by the browser.
    pub fn check(&self) -> Result<(), String> {
        if self.cookies.len() > Self::MAX_COOKIES {
            return Err(format!(
                "it has {} cookies; at most {} are accepted",
                self.cookies.len(),
                Self::MAX_COOKIES
            ));
        }
        if self.origins.len() > Self::MAX_ORIGINS {
            return Err(format!(
                "it has {} origins; at most {} are accepted",
                self.origins.len(),
                Self::MAX_ORIGINS
            ));
        }
        for (index, cookie) in self.cookies.iter().enumerate() {
            if !is_cookie_domain(&cookie.domain) {
                return Err(format!(
                    "the domain {:?} of cookie {index} is not one such as example.com or .example.com",
                    cut(&cookie.domain)
                ));
            }
        }
        match self.origins.iter().find(|state| !is_web_origin(&state.origin)) {
            Some(state) => {
                Err(format!("the origin {:?} is not one such as https://example.com", cut(&state.origin)))
            }
            None => Ok(()),
        }
    }
}

fn is_cookie_domain(domain: &str) -> bool {
    let host = domain.strip_prefix('.').unwrap_or(domain);
    !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte) || !byte.is_ascii())
}

fn is_web_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    host.is_some_and(|host| {
        !host.is_empty() && !host.contains(['/', '?', '#', '@', '\\']) && !host.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn state_of_playwright_round_trips() {
        let state = json!({
            "cookies": [{"name": "sid", "value": "s3cret", "domain": "a.test", "path": "/", "expires": -1.0,
                         "httpOnly": true, "secure": false, "sameSite": "Lax"}],
            "origins": [{"origin": "https://a.test", "localStorage": [{"name": "token", "value": "t0ken"}],
                         "indexedDB": [{"name": "db", "version": 1, "stores": []}]}],
        });
        let parsed: StorageState = serde_json::from_value(state.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), state);
        assert_eq!(parsed.check(), Ok(()));
        assert_eq!(format!("{parsed:?}"), "StorageState(1 cookies, 1 origins)");
    }

    #[test]
    fn origin_that_is_a_url_is_refused() {
        for origin in
            ["https://a.test/", "file:///etc", "a.test", "http://", "https://u@a.test", "https://a b"]
        {
            let state = json!({"origins": [{"origin": origin}]});
            let parsed: StorageState = serde_json::from_value(state).unwrap();
            assert!(parsed.check().unwrap_err().contains(origin), "{origin}");
        }
    }
}
