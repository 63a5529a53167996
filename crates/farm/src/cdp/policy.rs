//! Which methods a CDP client may call. The table `methods.tsv` names every method of the protocol that was reviewed; a method
//! that it does not name, such as one of a newer browser, is refused.

use std::{collections::HashMap, sync::LazyLock};

/// What happens to a call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Passed to the client's own session with a page or worker.
    Forward,
    /// The same, if its `url` has a scheme that pages may use.
    ForwardUrl,
    /// Names files of the session, which are replaced by their paths.
    Files,
    /// Acts on a browser context: the client's own, or the tenant's if none is named.
    Context,
    /// Answered by the virtual browser, which contains only this tenant.
    Root,
    /// Answered with success and without effect, because unmodified clients need the answer.
    Accept,
    Refuse(&'static str),
}

const UNKNOWN: &str = "it is not among the methods that webgym has reviewed";
static TABLE: LazyLock<HashMap<&'static str, Decision>> = LazyLock::new(|| lines().collect());

fn lines() -> impl Iterator<Item = (&'static str, Decision)> {
    let lines = include_str!("methods.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.split('\t');
        Some((fields.next()?, parse(fields.next()?, fields.next())))
    })
}

fn parse(word: &str, reason: Option<&'static str>) -> Decision {
    match word {
        "forward" => Decision::Forward,
        "url" => Decision::ForwardUrl,
        "files" => Decision::Files,
        "context" => Decision::Context,
        "root" => Decision::Root,
        "accept" => Decision::Accept,
        _ => Decision::Refuse(reason.unwrap_or(UNKNOWN)),
    }
}

/// Returns what happens to a call of this method.
pub(crate) fn decide(method: &str) -> Decision {
    TABLE.get(method).copied().unwrap_or(Decision::Refuse(UNKNOWN))
}

/// Whether a client gets this event of its own session. Events of `Target` are rewritten elsewhere.
pub(crate) fn allows_event(event: &str) -> bool {
    static DOMAINS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let forwarded = lines().filter(|(_, decision)| *decision == Decision::Forward);
        let mut domains: Vec<_> =
            forwarded.filter_map(|(method, _)| Some(method.split_once('.')?.0)).collect();
        domains.dedup();
        domains
    });
    event.split_once('.').is_some_and(|(domain, _)| DOMAINS.binary_search(&domain).is_ok())
}

/// Whether the table names the method.
#[doc(hidden)]
pub fn is_reviewed(method: &str) -> bool {
    TABLE.contains_key(method)
}

/// The methods of the table.
#[doc(hidden)]
pub fn reviewed_methods() -> Vec<&'static str> {
    lines().map(|(method, _)| method).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_complete() {
        let methods = reviewed_methods();
        assert!(methods.len() > 600 && methods.is_sorted(), "{}", methods.len());
        let words = include_str!("methods.tsv").lines().skip(1).map(|line| line.split('\t').nth(1).unwrap());
        for word in words {
            assert!(
                ["forward", "url", "files", "context", "root", "accept", "refuse"].contains(&word),
                "{word}"
            );
        }
        for (method, decision) in lines() {
            assert_ne!(decision, Decision::Refuse(UNKNOWN), "{method} has no reason");
        }
    }

    #[test]
    fn unknown_methods_and_events_are_refused() {
        assert_eq!(decide("Page.doNewThing"), Decision::Refuse(UNKNOWN));
        assert!(matches!(decide("Browser.crash"), Decision::Refuse(_)));
        assert_eq!(decide("Runtime.evaluate"), Decision::Forward);
        assert!(allows_event("Runtime.consoleAPICalled") && allows_event("Page.frameNavigated"));
        for event in ["Tracing.dataCollected", "Target.targetCreated", "Browser.downloadProgress", "x", ""] {
            assert!(!allows_event(event), "{event}");
        }
    }
}
