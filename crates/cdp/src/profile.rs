//! What a profile directory holds before a browser first runs on it. The full Chromium has windows of its own
//! for some questions (passwords, which program opens a `tel:` link) that take all clicks and that no protocol
//! can answer; its preferences keep those questions from being asked. The headless shell never asks.

use std::{fs, io, path::Path};

use serde_json::json;

use crate::find::BrowserKind;

/// Addresses that stay inside the browser. Everything else would start another program on this machine.
const INSIDE: &[&str] =
    &["http://*", "https://*", "about:*", "blob:*", "data:*", "javascript:*", "chrome://*"];

pub(crate) fn prepare(kind: BrowserKind, profile: &Path) -> io::Result<()> {
    fs::create_dir(profile.join("tmp"))?;
    if kind == BrowserKind::HeadlessShell {
        return Ok(());
    }
    // Without a scheme that takes passwords, a page that wants one is shown as the server sends it.
    let browser = json!({"auth": {"schemes": "negotiate"}});
    let pages = json!({"policy": {"url_blocklist": ["*"], "url_allowlist": INSIDE}});
    fs::write(profile.join("Local State"), browser.to_string())?;
    fs::create_dir(profile.join("Default"))?;
    fs::write(profile.join("Default").join("Preferences"), pages.to_string())
}
