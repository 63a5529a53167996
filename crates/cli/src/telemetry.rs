//! Logs go to standard error; standard output is for programs. Somebody at a terminal gets plain sentences, a file gets
//! times and levels. What pages, models and clients wrote may be in any of it, so no control character of theirs gets out.

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
        .with_writer(move || Tame { to: io::stderr(), colours: terminal })
        .with_ansi(terminal);
    if telling.verbose == 0 && (terminal || telling.plain) {
        lines.event_format(Sentences).init();
    } else {
        lines.with_target(telling.verbose > 0).init();
    }
}

/// Writes one event a call, on one line, with nothing in it that a terminal would obey.
struct Tame<W> {
    to: W,
    /// Escapes are our own colours: those in what is told are written out before they come here.
    colours: bool,
}

impl<W: Write> Write for Tame<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut tame = String::with_capacity(text.len());
        for letter in line.chars() {
            match letter {
                '\u{1b}' if self.colours => tame.push(letter),
                '\t' => tame.push(' '),
                letter if net::escape::is_terminal_control(letter) => tame.extend(letter.escape_default()),
                letter => tame.push(letter),
            }
        }
        if line.len() < text.len() {
            tame.push('\n');
        }
        self.to.write_all(tame.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(colours: bool, event: &str) -> String {
        let mut to = Vec::new();
        let whole = Tame { to: &mut to, colours }.write(event.as_bytes()).expect("it is written");
        assert_eq!(whole, event.len());
        String::from_utf8(to).expect("text")
    }

    #[test]
    fn a_log_line_is_one_line_without_anything_to_obey() {
        let event =
            "INFO seen title=\u{1b}[31mred\u{1b}]0;x\u{7}\r\nWARN forged \u{202e}txt\u{9b}2J\u{85} é価🛒\n";
        let wanted = "INFO seen title=\\u{1b}[31mred\\u{1b}]0;x\\u{7}\\r\\nWARN forged \\u{202e}txt\\u{9b}2J\\u{85} é価🛒\n";
        assert_eq!(written(false, event), wanted);
        assert_eq!(written(true, "\u{1b}[2mx\u{1b}[0m\ty"), "\u{1b}[2mx\u{1b}[0m y");
    }
}
