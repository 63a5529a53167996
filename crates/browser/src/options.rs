//! The limits an instance works under. All of them are options; none is a sleep.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Options {
    pub viewport: (u32, u32),
    pub settle: SettleOptions,
    /// How long `visit_page` waits for the first byte of a page.
    pub navigation_timeout: Duration,
    /// How long a page may take from its first byte until it counts as loaded anyway.
    pub load_timeout: Duration,
    /// How long any single question to the page may take.
    pub operation_timeout: Duration,
}

/// When a page counts as settled after an action.
#[derive(Clone, Debug)]
pub struct SettleOptions {
    /// After something changed, how long nothing further may change.
    pub quiet_period: Duration,
    /// At most this long for pages that never come to rest.
    pub budget: Duration,
    /// At most this long when a navigation is under way: that one is worth waiting for.
    pub navigation_budget: Duration,
    /// The budget once a page has shown that it never comes to rest.
    pub busy_page_budget: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            viewport: (1280, 768),
            settle: SettleOptions::default(),
            navigation_timeout: Duration::from_secs(30),
            load_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for SettleOptions {
    fn default() -> Self {
        Self {
            quiet_period: Duration::from_millis(60),
            budget: Duration::from_secs(3),
            navigation_budget: Duration::from_secs(10),
            busy_page_budget: Duration::from_millis(800),
        }
    }
}
