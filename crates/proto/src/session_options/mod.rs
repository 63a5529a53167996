//! The options of a lease: how the session's browser looks to websites, and what it starts with. The names are those of
//! Playwright's `newContext` where it has them.

mod parse;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::parse::SessionOptionsError;
use crate::{network::NetworkOptions, storage_state::StorageState, text::cut};

/// The options of a lease. Missing ones have the defaults of the farm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewport: Option<Viewport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_scale_factor: Option<f64>,
    /// A language tag, such as `de-DE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// A name of the IANA time zone database, such as `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color_scheme: Option<ColorScheme>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geolocation: Option<Geolocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_http_headers: BTreeMap<String, Secret>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// Host names (`name` or `*.name`) whose requests fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_resource_types: Vec<ResourceType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_state: Option<StorageState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tabs: Option<Tabs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downloads: Option<Downloads>,
    /// Records frames, console and network of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
    /// Records the network traffic into an archive, or replays one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkOptions>,
}

impl SessionOptions {
    /// Formats the options as JSON, with their secrets.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Downloads {
    #[default]
    Refuse,
    /// They are files of the session, which the client can fetch.
    Keep,
}

/// What becomes of the windows that pages open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tabs {
    /// There is one page; it shows what opens in a new window.
    #[default]
    Single,
    /// Each window is a tab.
    Many,
}

/// A value that logs and error messages must not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The size of the viewport in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColorScheme {
    Light,
    Dark,
    NoPreference,
}

impl ColorScheme {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::NoPreference => "no-preference",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geolocation {
    pub latitude: f64,
    pub longitude: f64,
    /// In metres.
    #[serde(default)]
    pub accuracy: f64,
}

/// Defines an enum of names, each with the name that Chromium's protocol has for it.
macro_rules! protocol_names {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $wire:literal => $protocol:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $(#[serde(rename = $wire)] $variant,)*
        }

        impl $name {
            pub const NAMES: &[&str] = &[$($wire),*];

            pub const fn protocol_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $protocol,)*
                }
            }
        }
    };
}

protocol_names! {
    /// What a website may use without asking.
    Permission {
        Geolocation: "geolocation" => "geolocation",
        Notifications: "notifications" => "notifications",
        Camera: "camera" => "videoCapture",
        Microphone: "microphone" => "audioCapture",
        Midi: "midi" => "midi",
        BackgroundSync: "background-sync" => "backgroundSync",
        Accelerometer: "accelerometer" => "sensors",
        Gyroscope: "gyroscope" => "sensors",
        Magnetometer: "magnetometer" => "sensors",
        StorageAccess: "storage-access" => "storageAccess",
        LocalFonts: "local-fonts" => "localFonts",
    }
}

protocol_names! {
    /// A kind of request.
    ResourceType {
        Stylesheet: "stylesheet" => "Stylesheet",
        Image: "image" => "Image",
        Media: "media" => "Media",
        Font: "font" => "Font",
        Script: "script" => "Script",
        Xhr: "xhr" => "XHR",
        Fetch: "fetch" => "Fetch",
        EventSource: "eventsource" => "EventSource",
        WebSocket: "websocket" => "WebSocket",
        Manifest: "manifest" => "Manifest",
        Other: "other" => "Other",
    }
}

/// The HTTP proxy of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// `http://host:port`, or `host:port`.
    pub server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

impl Proxy {
    /// The host and the port of the proxy.
    pub fn address(&self) -> Result<(&str, u16), String> {
        let invalid = || {
            format!(
                "the server {:?} is not an HTTP proxy such as http://proxy.example:3128",
                cut(&self.server)
            )
        };
        if self.server.contains('@') {
            return Err(
                "the server must not contain credentials; use the fields username and password".into()
            );
        }
        let authority = match self.server.split_once("://") {
            Some(("http", rest)) => rest.trim_end_matches('/'),
            Some(_) => return Err(invalid()),
            None => self.server.as_str(),
        };
        let (host, port) = authority.rsplit_once(':').ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port: u16 = port.parse().map_err(|_| invalid())?;
        let is_host =
            !host.is_empty() && !host.contains(['/', '@', '?', '#']) && !host.contains(char::is_whitespace);
        if is_host && port > 0 { Ok((host, port)) } else { Err(invalid()) }
    }
}
