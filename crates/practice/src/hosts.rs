//! Host names of the sites: `shop.localhost` serves the same pages as `/shop/` on any other host.
//! Links inside a site always have the site's prefix, so they work with both.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, Uri, header, uri::PathAndQuery},
    response::{IntoResponse, Redirect, Response},
};

/// Sites with their own host name; the name is also the path prefix.
pub(crate) const SITES: &[&str] = &["shop", "wiki", "jobs", "course", "vault"];

/// Paths that every host serves.
const SHARED_PATHS: &[&str] = &["/static/", "/echo/", "/healthz", "/favicon.ico", "/favicon.svg"];

#[derive(Debug, PartialEq, Eq)]
enum Target {
    Unchanged,
    Redirect(String),
    Rewrite(String),
}

/// Where a request for a path on a host goes.
fn target(host: &str, path: &str) -> Target {
    let Some(site) = site_of(host) else { return Target::Unchanged };
    let rest = path.strip_prefix('/').and_then(|rest| rest.strip_prefix(site));
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || SHARED_PATHS.iter().any(|shared| path.starts_with(shared))
    {
        Target::Unchanged
    } else if path == "/" {
        Target::Redirect(format!("/{site}/"))
    } else {
        Target::Rewrite(format!("/{site}{path}"))
    }
}

fn site_of(host: &str) -> Option<&'static str> {
    let name = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let site = name.strip_suffix(".localhost")?;
    SITES.iter().copied().find(|name| *name == site)
}

/// Returns the request with the path that the router expects, or a redirect as the response.
pub(crate) fn resolve(mut request: Request<Body>) -> Result<Request<Body>, Box<Response>> {
    match target(host(request.headers()), request.uri().path()) {
        Target::Unchanged => {}
        Target::Redirect(to) => return Err(Box::new(Redirect::temporary(&to).into_response())),
        Target::Rewrite(path) => {
            let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
            if let Ok(rewritten) = PathAndQuery::try_from(path + &query) {
                *request.uri_mut() = Uri::from(rewritten);
            }
        }
    }
    Ok(request)
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_name_maps_to_path_prefix() {
        for (host, path, expected) in [
            ("127.0.0.1:4000", "/shop/", Target::Unchanged),
            ("localhost", "/anything", Target::Unchanged),
            ("shop.localhost:4000", "/", Target::Redirect("/shop/".into())),
            ("shop.localhost", "/shop/cart", Target::Unchanged),
            ("shop.localhost", "/shop", Target::Unchanged),
            ("shop.localhost", "/shopping", Target::Rewrite("/shop/shopping".into())),
            ("SHOP.localhost:1", "/cart", Target::Rewrite("/shop/cart".into())),
            ("wiki.localhost", "/shop/", Target::Rewrite("/wiki/shop/".into())),
            ("vault.localhost", "/static/base.css", Target::Unchanged),
            ("unknown.localhost", "/", Target::Unchanged),
        ] {
            assert_eq!(target(host, path), expected, "{host} {path}");
        }
    }
}
