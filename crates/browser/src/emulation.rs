//! What a session's options change in a page: the protocol calls that make the browser look as the options say.

use cdp::{Method, protocol as p};
use proto::SessionOptions;
use serde_json::{Value, json};
use url::Url;

use crate::options::Options;

/// One protocol call of the setup of a page, and the session option that it is for.
#[derive(Clone, Debug)]
pub(crate) struct EmulationCall {
    pub(crate) option: &'static str,
    pub(crate) method: Method,
    pub(crate) params: Value,
}

impl EmulationCall {
    pub(crate) fn concerns_network(&self) -> bool {
        self.method.name().starts_with("Network.")
    }
}

/// Returns the calls for a page. `browser_user_agent` is the user agent without options.
pub(crate) fn calls(options: &Options, browser_user_agent: &str) -> Vec<EmulationCall> {
    let session = &options.session;
    let call = |option, method, params| EmulationCall { option, method, params };
    let (width, height) = options.viewport;
    let scale = session.device_scale_factor.unwrap_or(1.0);
    let mut metrics = json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false});
    if session.viewport.is_some() {
        (metrics["screenWidth"], metrics["screenHeight"]) = (width.into(), height.into());
    }
    let mut calls = vec![call("viewport", p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, metrics)];
    if let Some(params) = user_agent_override(session, browser_user_agent) {
        calls.push(call("user_agent", p::EMULATION_SET_USER_AGENT_OVERRIDE, params));
    }
    let fixed = options.determinism.is_some();
    if let Some(locale) = session.locale.as_deref().or(fixed.then_some("en-US")) {
        calls.push(call("locale", p::EMULATION_SET_LOCALE_OVERRIDE, json!({ "locale": locale })));
    }
    if let Some(zone) = session.timezone_id.as_deref().or(fixed.then_some("UTC")) {
        calls.push(call("timezone_id", p::EMULATION_SET_TIMEZONE_OVERRIDE, json!({ "timezoneId": zone })));
    }
    let scheme = session.color_scheme.map(proto::session_options::ColorScheme::as_str);
    if let Some(scheme) = scheme.or(fixed.then_some("light")) {
        let mut features = vec![json!({"name": "prefers-color-scheme", "value": scheme})];
        if fixed {
            features.push(json!({"name": "prefers-reduced-motion", "value": "reduce"}));
        }
        calls.push(call("color_scheme", p::EMULATION_SET_EMULATED_MEDIA, json!({ "features": features })));
    }
    if let Some(place) = session.geolocation {
        let params =
            json!({"latitude": place.latitude, "longitude": place.longitude, "accuracy": place.accuracy});
        calls.push(call("geolocation", p::EMULATION_SET_GEOLOCATION_OVERRIDE, params));
    }
    if !session.extra_http_headers.is_empty() {
        let params = json!({ "headers": session.extra_http_headers });
        calls.push(call("extra_http_headers", p::NETWORK_SET_EXTRA_HTTP_HEADERS, params));
    }
    if !session.blocked_hosts.is_empty() {
        let urls: Vec<String> = session.blocked_hosts.iter().flat_map(|host| blocked_urls(host)).collect();
        calls.push(call("blocked_hosts", p::NETWORK_SET_BLOCKED_URLS, json!({ "urls": urls })));
    }
    calls
}

/// Returns the pattern that pauses document requests at a stage: `Request` or `Response`.
pub(crate) fn document_pattern(stage: &str) -> Value {
    json!({"urlPattern": "*", "resourceType": "Document", "requestStage": stage})
}

/// Returns the patterns of the requests that are paused, because they are or may be refused.
pub(crate) fn blocked_patterns(session: &SessionOptions) -> Vec<Value> {
    let pattern = |kind: &proto::session_options::ResourceType| json!({"urlPattern": "*", "resourceType": kind.protocol_name(), "requestStage": "Request"});
    let mut patterns: Vec<Value> = session.blocked_resource_types.iter().map(pattern).collect();
    if !session.blocked_hosts.is_empty() {
        patterns.push(document_pattern("Request"));
    }
    patterns
}

/// Whether the options block the host of a document. The browser's own list (`blocked_urls`) holds only for what documents
/// request.
pub(crate) fn is_blocked_document(session: &SessionOptions, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    session.blocked_hosts.iter().any(|blocked| match blocked.strip_prefix("*.") {
        Some(name) => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
        None => host == blocked,
    })
}

/// Returns the permissions that the context is granted.
pub(crate) fn permissions(session: &SessionOptions) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        session.permissions.iter().map(|permission| permission.protocol_name()).collect();
    if session.geolocation.is_some() {
        names.push("geolocation");
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the URL patterns of a blocked host, with and without a port. `*.name` includes `name` itself.
fn blocked_urls(host: &str) -> Vec<String> {
    let (name, with_subdomains) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    let mut urls = vec![format!("*://{name}/*"), format!("*://{name}:*/*")];
    if with_subdomains {
        urls.extend([format!("*://*.{name}/*"), format!("*://*.{name}:*/*")]);
    }
    urls
}

fn user_agent_override(session: &SessionOptions, browser_user_agent: &str) -> Option<Value> {
    if session.user_agent.is_none() && session.locale.is_none() {
        return None;
    }
    let agent = session.user_agent.as_deref().unwrap_or(browser_user_agent);
    let mut params = json!({ "userAgent": agent });
    if let Some(locale) = &session.locale {
        params["acceptLanguage"] = locale.as_str().into();
    }
    // Without an own user agent the client hints of the browser stay as they are only if they are repeated here.
    if let Some(metadata) = client_hints(agent) {
        params["userAgentMetadata"] = metadata;
    }
    params["platform"] = platform(agent).0.into();
    Some(params)
}

/// The `navigator.platform` and the client-hint platform of a user agent.
fn platform(agent: &str) -> (&'static str, &'static str) {
    const PLATFORMS: &[(&str, &str, &str)] = &[
        ("iPhone", "iPhone", "iOS"),
        ("iPad", "iPad", "iOS"),
        ("Android", "Linux armv81", "Android"),
        ("Windows", "Win32", "Windows"),
        ("Macintosh", "MacIntel", "macOS"),
        ("CrOS", "Linux x86_64", "Chrome OS"),
    ];
    let known = PLATFORMS.iter().find(|(word, ..)| agent.contains(word));
    known.map_or(("Linux x86_64", "Linux"), |(_, platform, hint)| (platform, hint))
}

/// Returns the client hints that a Chromium with this user agent sends. Other browsers send none.
fn client_hints(agent: &str) -> Option<Value> {
    let (_, rest) = agent.split_once("Chrome/")?;
    let full_version = rest.split([' ', ';', ')']).next().filter(|version| !version.is_empty())?;
    let major = full_version.split('.').next()?;
    let product = match agent {
        _ if agent.contains("Edg/") => "Microsoft Edge",
        _ if agent.contains("OPR/") => "Opera",
        _ if agent.contains("HeadlessChrome/") => "HeadlessChrome",
        _ => "Google Chrome",
    };
    let seed: usize = major.parse().ok()?;
    let brands = |version: &str, suffix: &str| brands(seed, product, version, suffix);
    let (_, hint_platform) = platform(agent);
    let mobile = agent.contains("Mobile");
    let platform_version = match hint_platform {
        "Windows" => "10.0.0",
        "macOS" => "15.0.0",
        "Android" => "14.0.0",
        _ => "",
    };
    Some(json!({
        "brands": brands(major, ""), "fullVersionList": brands(full_version, ".0.0.0"), "platform": hint_platform,
        "platformVersion": platform_version, "architecture": if mobile { "" } else { "x86" }, "bitness": if mobile { "" } else { "64" },
        "model": "", "mobile": mobile,
    }))
}

/// Returns the brands of a client hint. Chromium adds an invented brand, and orders the three, by its major version.
fn brands(major: usize, product: &str, version: &str, suffix: &str) -> Value {
    const SEPARATORS: [char; 11] = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_'];
    const VERSIONS: [&str; 3] = ["8", "99", "24"];
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let separator = |offset: usize| SEPARATORS[(major + offset) % SEPARATORS.len()];
    let invented = format!("Not{}A{}Brand", separator(0), separator(1));
    let brands = [
        (invented.as_str(), format!("{}{suffix}", VERSIONS[major % VERSIONS.len()])),
        ("Chromium", version.to_owned()),
        (product, version.to_owned()),
    ];
    let mut ordered = json!([null, null, null]);
    for ((brand, version), place) in brands.into_iter().zip(ORDERS[major % ORDERS.len()]) {
        ordered[place] = json!({"brand": brand, "version": version});
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.7339.80 Safari/537.36";
    const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

    #[test]
    fn client_hints_match_the_user_agent() {
        let hints = client_hints(WINDOWS).unwrap();
        assert_eq!(hints["platform"], "Windows");
        let brands = hints["brands"].as_array().unwrap();
        assert!(brands.contains(&json!({"brand": "Google Chrome", "version": "140"})), "{brands:?}");
        assert!(brands.contains(&json!({"brand": "Not=A?Brand", "version": "24"})), "{brands:?}");
        assert_eq!(hints["fullVersionList"][2]["version"], "140.0.7339.80");
        assert_eq!(platform(WINDOWS), ("Win32", "Windows"));
        assert_eq!(client_hints(FIREFOX), None, "Firefox sends no client hints");
    }

    #[test]
    fn without_options_only_the_viewport_is_set() {
        let calls = calls(&Options::default(), WINDOWS);
        assert_eq!(calls.iter().map(|call| call.option).collect::<Vec<_>>(), ["viewport"]);
    }

    #[test]
    fn blocked_host_includes_subdomains_only_with_a_star() {
        assert_eq!(blocked_urls("a.test"), ["*://a.test/*", "*://a.test:*/*"]);
        assert!(blocked_urls("*.a.test").contains(&"*://*.a.test/*".to_owned()));
    }
}
