//! A crawl of all sites: every link works, none leaves the sites, and two servers serve identical pages.

#![allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{client, sites};
use practice::{
    Sites,
    course::{ObstacleResponse, obstacles},
};

/// Returns the URLs in a page: links, forms, images, scripts, styles and frames.
fn references(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in [" href=\"", " src=\"", " action=\""] {
        found.extend(
            page.split(attribute)
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .map(|r| r.replace("&amp;", "&")),
        );
    }
    found
}

/// Returns the path inside these sites; `None` for other schemes and bare anchors.
fn path(reference: &str) -> Option<&str> {
    let path = reference.split('#').next().unwrap_or_default();
    path.starts_with('/').then_some(path)
}

/// Obstacles that do not respond with a page, and URLs that only accept POST.
fn is_special(path: &str) -> bool {
    obstacles().any(|o| o.path == path && o.response != ObstacleResponse::Page)
        || ["/course/never", "/course/redirect", "/course/no-content/answer"]
            .iter()
            .any(|p| path.starts_with(p))
        || ["/shop/cart/add", "/shop/cart/update", "/shop/checkout"].contains(&path)
}

/// Returns whether this is one of the ten thousand links to the same page, except number 7, which is followed.
fn is_duplicate(path: &str) -> bool {
    path.starts_with("/course/arrived?link=") && path != "/course/arrived?link=7"
}

async fn crawl(sites: &Sites) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut queue = BTreeSet::from(["/".to_owned(), "/vault/".to_owned()]);
    let client = client();
    while let Some(next) = queue.pop_first() {
        let response =
            client.get(sites.url(&next)).send().await.unwrap_or_else(|error| panic!("{next}: {error}"));
        let expected = if next.starts_with("/vault/") { 403 } else { 200 };
        assert_eq!(response.status().as_u16(), expected, "{next}");
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        let body = response.bytes().await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        if kind.starts_with("text/html") {
            for reference in references(&text).iter().filter_map(|reference| path(reference)) {
                if !pages.contains_key(reference) && !is_special(reference) && !is_duplicate(reference) {
                    queue.insert(reference.to_owned());
                }
            }
        }
        pages.insert(next, text);
    }
    pages
}

#[tokio::test]
async fn links_work_and_pages_are_reproducible() {
    let (first, second) = (sites(), sites());
    let (pages, pages_of_second) = tokio::join!(crawl(&first), crawl(&second));
    for expected in [
        "/shop/p/brass-desk-lamp",
        "/wiki/a/arnholm",
        "/jobs/1001/apply",
        "/course/buttons",
        "/static/base.css",
    ] {
        assert!(pages.contains_key(expected), "{expected} was not reached");
    }
    assert!(pages.len() > 350, "only {} pages", pages.len());
    for (path, page) in &pages {
        assert_eq!(Some(page), pages_of_second.get(path), "{path} differs between two servers");
        assert!(!page.contains(&first.addr().to_string()), "{path} contains the server's address");
    }
}

#[tokio::test]
async fn pages_reference_no_other_host() {
    let sites = sites();
    // Namespaces, which a browser never loads.
    let namespaces = ["http://www.w3.org/2000/svg", "https://schema.org"];
    for (path, page) in crawl(&sites).await {
        for scheme in ["http://", "https://", "ws://", "wss://", "url("] {
            for (start, _) in page.match_indices(scheme) {
                let rest = &page[start..];
                assert!(
                    namespaces.iter().any(|name| rest.starts_with(name)),
                    "{path}: {}",
                    &rest[..rest.len().min(60)]
                );
            }
        }
        for reference in references(&page) {
            assert!(!reference.starts_with("//"), "{path}: {reference}");
        }
    }
}

#[tokio::test]
async fn pages_have_unique_titles_and_one_heading() {
    let sites = sites();
    let mut titles = BTreeMap::new();
    for (path, page) in crawl(&sites).await {
        let is_site_page = ["/shop/", "/wiki/", "/jobs/"].iter().any(|site| path.starts_with(site));
        if !is_site_page || path.contains('?') {
            continue;
        }
        assert!(
            page.starts_with("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"),
            "{path}"
        );
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
        let title = common::between(&page, "<title>", "</title>").to_owned();
        assert!(title.contains(" · "), "{path}: {title}");
        titles.entry(title).or_insert_with(Vec::new).push(path);
    }
    let shared: Vec<_> =
        titles.iter().filter(|(title, paths)| paths.len() > 1 && !title.starts_with("Apply")).collect();
    assert!(shared.is_empty(), "pages with the same title: {shared:?}");
}

#[tokio::test]
async fn sites_are_served_on_their_host_names() {
    let sites = sites();
    let client = client();
    let request = |host: &str, path: &str| {
        let host = format!("{host}.localhost:{}", sites.addr().port());
        client.get(sites.url(path)).header("host", host).send()
    };
    for site in ["shop", "wiki", "jobs", "course", "vault"] {
        let front = request(site, "/").await.unwrap();
        assert_eq!(
            (front.status().as_u16(), front.headers()["location"].to_str().unwrap()),
            (307, &*format!("/{site}/"))
        );
        let by_host = request(site, &format!("/{site}/")).await.unwrap().text().await.unwrap();
        let by_path = client.get(sites.url(&format!("/{site}/"))).send().await.unwrap().text().await.unwrap();
        assert_eq!(by_host, by_path, "{site}");
    }
    let short = request("shop", "/p/brass-desk-lamp").await.unwrap().text().await.unwrap();
    assert!(short.contains("<h1>Brass desk lamp</h1>"));
    assert_eq!(
        request("shop", "/wiki/a/arnholm").await.unwrap().status(),
        404,
        "a host serves only its own site"
    );
    let blocked = request("vault", "/any/where").await.unwrap();
    assert_eq!(blocked.status(), 403);
    assert!(blocked.text().await.unwrap().contains("I am not a robot"));
}

#[tokio::test]
async fn echo_returns_request_headers() {
    let sites = sites();
    let response = client()
        .get(sites.url("/echo/headers"))
        .header("x-test", "a")
        .header("x-test", "b")
        .send()
        .await
        .unwrap();
    let headers: BTreeMap<String, String> = response.json().await.unwrap();
    assert_eq!(headers["x-test"], "a, b");
    assert_eq!(headers["host"], sites.addr().to_string());
    assert_eq!(client().get(sites.url("/no/such/page")).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn dropped_sites_free_their_port() {
    let sites = sites();
    let (url, addr) = (sites.url("/healthz"), sites.addr());
    assert_eq!(client().get(&url).send().await.unwrap().status(), 200);
    drop(sites);
    // The port is free once the runtime has dropped the listener.
    let freed = tokio::time::timeout(std::time::Duration::from_secs(5), async {
        while Sites::start(addr).is_err() {
            tokio::task::yield_now().await;
        }
    });
    freed.await.expect("the port is still in use");
}

#[test]
fn start_outside_a_runtime_is_an_error() {
    assert!(Sites::start(([127, 0, 0, 1], 0).into()).is_err());
}
