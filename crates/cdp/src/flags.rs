//! The command-line flags for Chromium, grouped by purpose. Flags without a measured effect are left out.

use std::path::Path;

use crate::find::BrowserKind;

/// Prevents background network traffic, and prompts that no user would answer.
const NO_BACKGROUND_ACTIVITY: &[&str] = &[
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-field-trial-config",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-search-engine-choice-screen",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--deny-permission-prompts",
    // Without it the full browser asks which screen to share, in a window that captures all clicks.
    "--use-fake-ui-for-media-stream=deny",
    // Keeps the list of installed fonts private: the headless shell grants it without a permission.
    "--disable-blink-features=FontAccess",
    "--disable-print-preview",
    "--disable-quic",
    "--metrics-recording-only",
    "--password-store=basic",
    "--mute-audio",
];

/// Makes rendering depend on the page alone: no scrollbars, no smooth scrolling, one colour space.
const DETERMINISTIC_RENDERING: &[&str] = &[
    "--hide-scrollbars",
    "--disable-smooth-scrolling",
    "--force-color-profile=srgb",
    "--disable-gpu",
    "--disable-lcd-text",
    // Without it a screenshot may show the page before its large images are decoded.
    "--disable-checker-imaging",
    "--allow-pre-commit-input",
    // With it a screenshot takes a quarter less time (docs/benchmarks.md). Playwright sets it, too.
    "--enable-features=CDPScreenshotNewSurface",
];

/// Treats every page as a foreground page, although no window is in the foreground.
const NO_THROTTLING: &[&str] = &[
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
];

/// Saves processes and memory: cross-site frames run in the renderer of their page (tenants never share a renderer), and
/// left pages are not kept alive for fast back navigation.
const FEWER_PROCESSES: &[&str] = &[
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,BackForwardCache,Translate,MediaRouter,OptimizationHints,\
     DialMediaRouteProvider,HttpsUpgrades,HttpsFirstBalancedMode,PaintHolding,GlobalMediaControls,\
     DestroyProfileOnBrowserClose,LensOverlay,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,\
     AutofillServerCommunication,SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
];

/// With less shared memory pages crash, so the browser must use files instead.
const MIN_SHARED_MEMORY: u64 = 512 << 20;

pub(crate) fn flags(kind: BrowserKind, profile: &Path, sandbox: bool, size: (u32, u32)) -> Vec<String> {
    let mut flags: Vec<String> =
        [NO_BACKGROUND_ACTIVITY, DETERMINISTIC_RENDERING, NO_THROTTLING, FEWER_PROCESSES]
            .into_iter()
            .flatten()
            .map(|flag| (*flag).to_owned())
            .collect();
    flags.push("--headless".to_owned());
    flags.push("--remote-debugging-pipe".to_owned());
    flags.push(format!("--user-data-dir={}", profile.display()));
    flags.push(format!("--window-size={},{}", size.0, size.1));
    if !sandbox {
        flags.push("--no-sandbox".to_owned());
    }
    if kind == BrowserKind::Full {
        // Without it the full browser opens an initial window that is never used.
        flags.push("--no-startup-window".to_owned());
    }
    if is_shared_memory_small() {
        flags.push("--disable-dev-shm-usage".to_owned());
    }
    flags
}

fn is_shared_memory_small() -> bool {
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => stat.f_blocks.saturating_mul(stat.f_frsize) < MIN_SHARED_MEMORY,
        Err(_) => true,
    }
}
