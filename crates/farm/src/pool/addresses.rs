//! Looks at the address of a visit before the browser does, so that a forbidden one is refused in clear words. The
//! proxy is what holds the rule; this only speaks better.

use browser::BrowserError;
use proto::Command;
use url::Url;

use super::{Operation, Pool};
use crate::guard::{refusal, resolve};

impl Pool {
    /// Refuses a forbidden address with a clear word; the proxy would stop it anyway, less politely.
    pub(super) async fn check_addresses(&self, operation: Operation) -> Result<Operation, BrowserError> {
        match operation {
            Operation::Execute(Command::VisitPage { ref url }) => {
                self.check_address(url).await?;
                Ok(operation)
            }
            Operation::Step { command: Command::VisitPage { ref url }, observe } => {
                let refused = self.check_address(url).await.err();
                Ok(refused.map_or(operation, |why| Operation::Refused { why, observe }))
            }
            other => Ok(other),
        }
    }

    async fn check_address(&self, url: &str) -> Result<(), BrowserError> {
        let rules = &self.0.options.network;
        let Some(parsed) = Url::parse(url.trim()).ok().filter(|_| !rules.open()) else { return Ok(()) };
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Ok(());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = resolve(host, port).await.unwrap_or_default();
        let refused =
            addresses.iter().filter_map(|address| refusal(rules, host, port, *address)).collect::<Vec<_>>();
        match refused.first() {
            Some(why) if refused.len() == addresses.len() => {
                Err(BrowserError::UrlRefused { url: url.to_owned(), why: why.clone() })
            }
            _ => Ok(()),
        }
    }
}
