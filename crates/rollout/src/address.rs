//! Web addresses as tasks and agents write them: completes a missing scheme and extracts the domain.

/// Adds `https://` to an address without a scheme.
pub fn with_scheme(text: &str) -> String {
    let text = text.trim();
    if has_scheme(text) {
        return text.to_owned();
    }
    match text.strip_prefix("//") {
        Some(rest) => format!("https://{rest}"),
        None => format!("https://{text}"),
    }
}

/// Returns whether an address has a scheme: the part before the colon is followed by `//`, or is a known scheme without a
/// host. `host:8000/x` has none.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let without_host = ["about", "data", "file", "javascript", "blob", "view-source", "mailto", "chrome"];
    is_well_formed
        && (rest.starts_with("//") || without_host.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Returns the host in lower case, without `www.`, port and credentials; empty if there is none.
pub fn domain(address: &str) -> String {
    let address = with_scheme(address);
    let after_scheme = address.split_once("://").map_or("", |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_lowercase();
    host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_scheme_is_added() {
        for (given, wanted) in [
            ("example.com", "https://example.com"),
            (" example.com/a ", "https://example.com/a"),
            ("http://example.com", "http://example.com"),
            ("HTTPS://example.com", "HTTPS://example.com"),
            ("//example.com/x", "https://example.com/x"),
            ("localhost:8000/x", "https://localhost:8000/x"),
            ("example.com/?u=http://other", "https://example.com/?u=http://other"),
            ("about:blank", "about:blank"),
            ("javascript:alert(1)", "javascript:alert(1)"),
        ] {
            assert_eq!(with_scheme(given), wanted);
        }
    }

    #[test]
    fn domain_is_lower_case_without_www() {
        for (given, wanted) in [
            ("https://www.Example.COM/a?b", "example.com"),
            ("example.com:8080", "example.com"),
            ("http://me:pw@shop.example.com.", "shop.example.com"),
            ("http://[::1]:9000/", "::1"),
            ("https://wwwx.com", "wwwx.com"),
            ("https://a.com\\@b.com", "a.com"),
            ("about:blank", ""),
            ("", ""),
        ] {
            assert_eq!(domain(given), wanted, "{given}");
        }
    }
}
