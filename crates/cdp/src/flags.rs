//! The command line we give Chromium. Each group says what it is for; what was measured to do nothing is absent.

use std::path::Path;

use crate::find::BrowserKind;

/// Keeps the browser from talking to anyone on its own account, and from asking anyone anything.
const QUIET: &[&str] = &[
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
    // Otherwise the full browser asks which screen to share, in a window that takes all clicks.
    "--use-fake-ui-for-media-stream=deny",
    // Which fonts this machine has is nobody's business; no permission stands before that question in the headless shell.
    "--disable-blink-features=FontAccess",
    "--disable-print-preview",
    "--disable-quic",
    "--metrics-recording-only",
    "--password-store=basic",
    "--mute-audio",
];

/// Makes what a page shows a function of the page alone: no scrollbars, no smooth scrolling, one colour space.
const STEADY: &[&str] = &[
    "--hide-scrollbars",
    "--disable-smooth-scrolling",
    "--force-color-profile=srgb",
    "--disable-gpu",
    "--disable-lcd-text",
    // Otherwise a picture may show the page before its large images are decoded.
    "--disable-checker-imaging",
    "--allow-pre-commit-input",
];

/// Every instance is somebody's foreground page, though no window of ours ever is.
const AWAKE: &[&str] = &[
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
];

/// Frames of other sites stay in their page's renderer (fewer processes a tenant; tenants never share one),
/// and pages that were left are not kept alive for a fast way back.
const LEAN: &[&str] = &[
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,BackForwardCache,Translate,MediaRouter,OptimizationHints,\
     DialMediaRouteProvider,HttpsUpgrades,HttpsFirstBalancedMode,PaintHolding,GlobalMediaControls,\
     DestroyProfileOnBrowserClose,LensOverlay,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,\
     AutofillServerCommunication,SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
];

/// Shared memory below this and pages crash, so the browser is told to use files instead.
const ENOUGH_SHM: u64 = 512 << 20;

pub(crate) fn flags(kind: BrowserKind, profile: &Path, sandbox: bool, size: (u32, u32)) -> Vec<String> {
    let mut flags: Vec<String> =
        [QUIET, STEADY, AWAKE, LEAN].into_iter().flatten().map(|flag| (*flag).to_owned()).collect();
    flags.push("--headless".to_owned());
    flags.push("--remote-debugging-pipe".to_owned());
    flags.push(format!("--user-data-dir={}", profile.display()));
    flags.push(format!("--window-size={},{}", size.0, size.1));
    if !sandbox {
        flags.push("--no-sandbox".to_owned());
    }
    if kind == BrowserKind::Full {
        // Otherwise the full browser opens a first window that nobody uses.
        flags.push("--no-startup-window".to_owned());
    }
    if small_shm() {
        flags.push("--disable-dev-shm-usage".to_owned());
    }
    flags
}

fn small_shm() -> bool {
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => stat.f_blocks.saturating_mul(stat.f_frsize) < ENOUGH_SHM,
        Err(_) => true,
    }
}
