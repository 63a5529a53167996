//! Browser options shared by every command that starts a browser.

use std::{path::PathBuf, time::Duration};

use browser::{BrowserKind, Launch, Options, Sandbox, find_browser, find_browsers};
use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BrowserChoice {
    /// The headless shell if it is installed, otherwise Chromium or Chrome.
    Auto,
    /// chromium-headless-shell only.
    Shell,
    /// Chromium or Chrome in new headless mode.
    Chromium,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SandboxChoice {
    /// Use it where it works.
    Auto,
    /// Fail if it does not work.
    Require,
    /// Do not use it.
    Off,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BrowserArgs {
    /// The Chromium executable to use. Also read from CHROME.
    #[arg(long, value_name = "PATH")]
    pub(crate) chromium: Option<PathBuf>,
    /// The kind of browser to search for if --chromium is not given.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) browser: BrowserChoice,
    /// Chromium's own sandbox.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) sandbox: SandboxChoice,
    /// The user agent to send instead of the browser's own.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Option<String>,
    /// Maximum time to wait after an action until the page settles. A page that is still building itself gets up to 10/3 of it.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub(crate) settle_budget: f64,
}

impl BrowserArgs {
    pub(crate) fn launch(&self) -> anyhow::Result<Launch> {
        let executable = match (&self.chromium, self.browser) {
            (Some(path), _) => find_browser(Some(path))?,
            (None, BrowserChoice::Auto) => find_browser(None)?,
            (None, BrowserChoice::Shell) => find_kind(BrowserKind::HeadlessShell, "chromium-headless-shell")?,
            (None, BrowserChoice::Chromium) => find_kind(BrowserKind::Full, "chromium")?,
        };
        let mut launch = Launch::new(executable);
        launch.sandbox = match self.sandbox {
            SandboxChoice::Auto => Sandbox::Auto,
            SandboxChoice::Require => Sandbox::Require,
            SandboxChoice::Off => Sandbox::Off,
        };
        launch.extra_flags.extend(self.user_agent.as_ref().map(|agent| format!("--user-agent={agent}")));
        Ok(launch)
    }

    pub(crate) fn options(&self) -> anyhow::Result<Options> {
        let mut options = Options::default();
        let budget = Duration::try_from_secs_f64(self.settle_budget);
        options.settle.budget = budget.map_err(|_| {
            anyhow::anyhow!(
                "--settle-budget is {}; it must be a number of seconds, 0 or more",
                self.settle_budget
            )
        })?;
        options.settle.busy_page_budget = options.settle.busy_page_budget.min(options.settle.budget);
        options.settle.build_budget = options.settle.budget.saturating_mul(10) / 3;
        Ok(options)
    }
}

fn find_kind(kind: BrowserKind, package: &str) -> anyhow::Result<browser::Executable> {
    let found = find_browsers().into_iter().find(|found| found.kind == kind);
    found.ok_or_else(|| anyhow::anyhow!("no {kind} found; install it (Debian/Ubuntu: apt-get install {package}) or give its path with --chromium PATH"))
}
