//! The initial content of a profile directory. The full Chromium shows some prompts (passwords, which program opens a
//! `tel:` link) in windows that capture all clicks and that the protocol cannot answer; preferences disable these
//! prompts. The headless shell never shows them.

use std::{fs, io, path::Path};

use serde_json::json;

use crate::find::BrowserKind;

/// URLs that the browser handles itself. Any other URL would start another program on this machine.
const ALLOWED_URLS: &[&str] =
    &["http://*", "https://*", "about:*", "blob:*", "data:*", "javascript:*", "chrome://*"];

pub(crate) fn prepare(kind: BrowserKind, profile: &Path) -> io::Result<()> {
    fs::create_dir(profile.join("tmp"))?;
    if kind == BrowserKind::HeadlessShell {
        return Ok(());
    }
    // With no authentication scheme that asks for passwords, the browser shows the server's 401 page.
    let browser = json!({"auth": {"schemes": "negotiate"}});
    // A PDF is a download, as in the headless shell: its viewer is a page that commands cannot reach.
    let pages = json!({"plugins": {"always_open_pdf_externally": true}, "policy": {"url_blocklist": ["*"], "url_allowlist": ALLOWED_URLS}});
    fs::write(profile.join("Local State"), browser.to_string())?;
    fs::create_dir(profile.join("Default"))?;
    fs::write(profile.join("Default").join("Preferences"), pages.to_string())
}
