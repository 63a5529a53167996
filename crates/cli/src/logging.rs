//! Sets up logging. Logs go to standard error because standard output is for programs: plain messages on a terminal, with
//! times and levels otherwise. Log lines may contain text of pages, models and clients, so control characters are escaped.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// How much is logged, and in which format.
pub(crate) struct LogOptions {
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    /// Log plain messages even if standard error is not a terminal.
    pub(crate) plain: bool,
}

/// Installs the global logger. `WEBGYM_LOG` overrides the flags.
pub(crate) fn init(options: &LogOptions) {
    let level = match (options.quiet, options.verbose) {
        (true, _) => "warn",
        (false, 0) => "info",
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    let own_crates = ["webgym", "browser", "cdp", "farm", "rollout", "store", "train", "web"]
        .map(|name| format!("{name}={level}"))
        .join(",");
    let filter = std::env::var("WEBGYM_LOG").unwrap_or_else(|_| format!("warn,{own_crates}"));
    let terminal = std::io::stderr().is_terminal();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || EscapingWriter { inner: io::stderr(), colours: terminal })
        .with_ansi(terminal);
    if options.verbose == 0 && (terminal || options.plain) {
        subscriber.event_format(PlainFormat).init();
    } else {
        subscriber.with_target(options.verbose > 0).init();
    }
}

/// Writes one event per call, on one line, with control characters escaped.
struct EscapingWriter<W> {
    inner: W,
    /// Keeps escape characters, which are our own colours: the formatter has already escaped those in log values.
    colours: bool,
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut escaped = String::with_capacity(text.len());
        for letter in line.chars() {
            match letter {
                '\u{1b}' if self.colours => escaped.push(letter),
                '\t' => escaped.push(' '),
                letter if net::escape::is_terminal_control(letter) => escaped.extend(letter.escape_default()),
                letter => escaped.push(letter),
            }
        }
        if line.len() < text.len() {
            escaped.push('\n');
        }
        self.inner.write_all(escaped.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Formats only the message, with a prefix for warnings and errors.
struct PlainFormat;

impl<S, N> FormatEvent<S, N> for PlainFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match *event.metadata().level() {
            Level::ERROR => writer.write_str("error: ")?,
            Level::WARN => writer.write_str("warning: ")?,
            _ => {}
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_event(colours: bool, event: &str) -> String {
        let mut bytes = Vec::new();
        let written =
            EscapingWriter { inner: &mut bytes, colours }.write(event.as_bytes()).expect("a written event");
        assert_eq!(written, event.len());
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn control_characters_in_events_are_escaped() {
        let event =
            "INFO seen title=\u{1b}[31mred\u{1b}]0;x\u{7}\r\nWARN forged \u{202e}txt\u{9b}2J\u{85} é価🛒\n";
        let wanted = "INFO seen title=\\u{1b}[31mred\\u{1b}]0;x\\u{7}\\r\\nWARN forged \\u{202e}txt\\u{9b}2J\\u{85} é価🛒\n";
        assert_eq!(write_event(false, event), wanted);
        assert_eq!(write_event(true, "\u{1b}[2mx\u{1b}[0m\ty"), "\u{1b}[2mx\u{1b}[0m y");
    }
}
