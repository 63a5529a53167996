//! Logs go to standard error; standard output is for programs. Somebody at a terminal gets plain sentences, a file gets
//! times and levels.

use std::{fmt, io::IsTerminal};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// How much is said, and to whom.
pub(crate) struct Telling {
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    /// In sentences even where no terminal is.
    pub(crate) plain: bool,
}

/// `WEBGYM_LOG` overrides what the flags say.
pub(crate) fn start(telling: &Telling) {
    let level = match (telling.quiet, telling.verbose) {
        (true, _) => "warn",
        (false, 0) => "info",
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    let ours = ["webgym", "browser", "cdp", "farm", "rollout", "store", "web"]
        .map(|room| format!("{room}={level}"))
        .join(",");
    let filter = std::env::var("WEBGYM_LOG").unwrap_or_else(|_| format!("warn,{ours}"));
    let terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(terminal);
    if telling.verbose == 0 && (terminal || telling.plain) {
        lines.event_format(Sentences).init();
    } else {
        lines.with_target(telling.verbose > 0).init();
    }
}

/// Just what is said, with a word in front of it when something is wrong.
struct Sentences;

impl<S, N> FormatEvent<S, N> for Sentences
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match *event.metadata().level() {
            Level::ERROR => to.write_str("error: ")?,
            Level::WARN => to.write_str("warning: ")?,
            _ => {}
        }
        context.field_format().format_fields(to.by_ref(), event)?;
        writeln!(to)
    }
}
