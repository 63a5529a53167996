//! Checks the address of a `visit_page` or `open_tab` before the browser opens it, and where a failed visit was redirected to, so that
//! the error explains the refusal. The egress proxy enforces the rules; these checks only give a better message.

use browser::BrowserError;
use url::Url;

use super::{Operation, Pool};
use crate::egress::{refusal_reason, resolve};

impl Pool {
    /// Fails, or turns a step into a refused one, if the operation visits a forbidden address.
    pub(super) async fn check_addresses(&self, operation: Operation) -> Result<Operation, BrowserError> {
        match operation {
            Operation::Execute(ref command) => {
                if let Some(url) = command.visited_url() {
                    self.check_address(url).await?;
                }
                Ok(operation)
            }
            Operation::Step { ref command, observe } => {
                let Some(url) = command.visited_url() else { return Ok(operation) };
                let refused = self.check_address(url).await.err();
                Ok(refused.map_or(operation, |error| Operation::Refused { error, observe }))
            }
            Operation::Computer(mut call) => {
                for url in call.addresses() {
                    if let Err(refused) = self.check_address(&url).await {
                        call.refuse(url, refused);
                    }
                }
                Ok(Operation::Computer(call))
            }
            other => Ok(other),
        }
    }

    /// Replaces the error of a visit that was redirected to a forbidden address by one that names the address. The proxy
    /// has refused the connection; the browser does not know why.
    pub(super) async fn explain_redirect(&self, error: BrowserError) -> BrowserError {
        let BrowserError::NavigationFailed { redirected_to: Some(target), url, .. } = &error else {
            return error;
        };
        match self.check_address(target).await {
            Err(BrowserError::UrlRefused { url: target, reason }) => {
                BrowserError::UrlRefused { reason: format!("{reason} ({url} redirects there)"), url: target }
            }
            _ => error,
        }
    }

    async fn check_address(&self, url: &str) -> Result<(), BrowserError> {
        let rules = &self.0.options.network;
        let Some(parsed) = Url::parse(url.trim()).ok().filter(|_| !rules.is_unrestricted()) else {
            return Ok(());
        };
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Ok(());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = resolve(host, port).await.unwrap_or_default();
        let reasons: Vec<String> =
            addresses.iter().filter_map(|address| refusal_reason(rules, host, port, *address)).collect();
        match reasons.first() {
            Some(reason) if reasons.len() == addresses.len() => {
                Err(BrowserError::UrlRefused { url: url.to_owned(), reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }
}
