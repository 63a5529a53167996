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

/// Makes rendering depend on the page alone: no scrollbars, no smooth scrolling, one colour space, no traces of earlier frames.
const DETERMINISTIC_RENDERING: &[&str] = &[
    "--hide-scrollbars",
    "--disable-smooth-scrolling",
    "--force-color-profile=srgb",
    "--disable-gpu",
    "--disable-lcd-text",
    // Without it a screenshot may show the page before its large images are decoded.
    "--disable-checker-imaging",
    // Without it Chromium draws a changed part of a tile only, and curves at its border may get another shade than in a
    // whole tile: the same page then has different screenshots.
    "--disable-partial-raster",
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

/// Saves processes: cross-site frames run in the renderer of their page (tenants never share a renderer).
const FEWER_PROCESSES: &[&str] = &["--disable-site-isolation-trials"];

/// Features that are disabled: site isolation (see [`FEWER_PROCESSES`]), left pages that are kept alive for fast back
/// navigation, what needs a network or a user, and holding back the tasks of a page after input until it has drawn a frame,
/// because the virtual clock of a deterministic session would run on without them.
const DISABLED_FEATURES: &str = "IsolateOrigins,site-per-process,BackForwardCache,Translate,MediaRouter,OptimizationHints,\
     DialMediaRouteProvider,HttpsUpgrades,HttpsFirstBalancedMode,PaintHolding,GlobalMediaControls,\
     DestroyProfileOnBrowserClose,LensOverlay,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,\
     AutofillServerCommunication,SpareRendererForSitePerProcess,WebUIOmniboxPopup,WebUIOmniboxAimPopup,\
     DeferRendererTasksAfterInput";

/// Features that cost CPU only (docs/benchmarks.md). `RenderDocument` builds a new frame host, widget and compositor for
/// every document, even of the same site; while they change places, the browser rejects screenshots.
const COSTLY_FEATURES: &str = "RenderDocument";

/// Draws a page in few large tiles: without a GPU each tile is drawn, sent and copied by itself.
const LARGE_TILES: &[&str] = &["--default-tile-width=1280", "--default-tile-height=384"];

/// With less shared memory pages crash, so the browser must use files instead.
const MIN_SHARED_MEMORY: u64 = 512 << 20;

/// Returns the flags of a launch. `tuned` adds those that only make pages cheaper.
pub(crate) fn flags(
    kind: BrowserKind,
    profile: &Path,
    sandbox: bool,
    size: (u32, u32),
    tuned: bool,
) -> Vec<String> {
    let tuning = if tuned { LARGE_TILES } else { &[] };
    let mut flags: Vec<String> =
        [NO_BACKGROUND_ACTIVITY, DETERMINISTIC_RENDERING, NO_THROTTLING, FEWER_PROCESSES, tuning]
            .into_iter()
            .flatten()
            .map(|flag| (*flag).to_owned())
            .collect();
    let mut disabled = format!("--disable-features={DISABLED_FEATURES}");
    if tuned {
        disabled = format!("{disabled},{COSTLY_FEATURES}");
    }
    flags.push(disabled);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuning_adds_flags_and_keeps_the_others() {
        let of = |tuned| flags(BrowserKind::HeadlessShell, Path::new("/profile"), true, (1280, 768), tuned);
        let (plain, tuned) = (of(false), of(true));
        let is_kept = |flag: &String| tuned.iter().any(|other| other.starts_with(flag.as_str()));
        assert!(plain.iter().all(is_kept), "{plain:?} {tuned:?}");
        let disables = |flags: &[String]| flags.iter().any(|flag| flag.ends_with(",RenderDocument"));
        assert!(disables(&tuned) && !disables(&plain));
        // Chromium uses only the last list of features.
        assert_eq!(tuned.iter().filter(|flag| flag.starts_with("--disable-features=")).count(), 1);
    }
}
