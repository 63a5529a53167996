//! Each site also answers under a host name of its own: `shop.localhost` shows what `/shop/` shows elsewhere.
//! Links inside a site always carry the site's prefix, so they work in both forms.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, Uri, header, uri::PathAndQuery},
    response::{IntoResponse, Redirect, Response},
};

/// Sites that have a host name of their own; the prefix is the name.
pub(crate) const SITES: &[&str] = &["shop", "wiki", "jobs", "course", "vault"];

/// What every host serves alike.
const SHARED: &[&str] = &["/static/", "/echo/", "/healthz", "/favicon.ico", "/favicon.svg"];

#[derive(Debug, PartialEq, Eq)]
enum Place {
    AsAsked,
    Redirect(String),
    Rewrite(String),
}

fn place(host: &str, path: &str) -> Place {
    let Some(site) = site_of(host) else { return Place::AsAsked };
    let inside = path.strip_prefix('/').and_then(|rest| rest.strip_prefix(site));
    if inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || SHARED.iter().any(|shared| path.starts_with(shared))
    {
        Place::AsAsked
    } else if path == "/" {
        Place::Redirect(format!("/{site}/"))
    } else {
        Place::Rewrite(format!("/{site}{path}"))
    }
}

fn site_of(host: &str) -> Option<&'static str> {
    let name = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let site = name.strip_suffix(".localhost")?;
    SITES.iter().copied().find(|known| *known == site)
}

/// The request as the router should see it, or the redirect that answers it.
pub(crate) fn resolve(mut request: Request<Body>) -> Result<Request<Body>, Box<Response>> {
    match place(host(request.headers()), request.uri().path()) {
        Place::AsAsked => {}
        Place::Redirect(to) => return Err(Box::new(Redirect::temporary(&to).into_response())),
        Place::Rewrite(path) => {
            let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
            if let Ok(rewritten) = PathAndQuery::try_from(path + &query) {
                *request.uri_mut() = Uri::from(rewritten);
            }
        }
    }
    Ok(request)
}

pub(crate) fn host(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_stands_for_its_prefix() {
        for (host, path, expected) in [
            ("127.0.0.1:4000", "/shop/", Place::AsAsked),
            ("localhost", "/anything", Place::AsAsked),
            ("shop.localhost:4000", "/", Place::Redirect("/shop/".into())),
            ("shop.localhost", "/shop/cart", Place::AsAsked),
            ("shop.localhost", "/shop", Place::AsAsked),
            ("shop.localhost", "/shopping", Place::Rewrite("/shop/shopping".into())),
            ("SHOP.localhost:1", "/cart", Place::Rewrite("/shop/cart".into())),
            ("wiki.localhost", "/shop/", Place::Rewrite("/wiki/shop/".into())),
            ("vault.localhost", "/static/base.css", Place::AsAsked),
            ("unknown.localhost", "/", Place::AsAsked),
        ] {
            assert_eq!(place(host, path), expected, "{host} {path}");
        }
    }
}
