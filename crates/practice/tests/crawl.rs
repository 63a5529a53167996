//! All sites at once: every link leads somewhere, nothing leads out, and two servers say the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail loudly")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{client, sites};
use practice::{
    Sites,
    course::{Answer, obstacles},
};

/// What a page refers to: links, forms, pictures, scripts, styles, frames.
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

/// The path inside these sites, or `None` for what is not ours to follow (another scheme, a mere anchor).
fn path(reference: &str) -> Option<&str> {
    let path = reference.split('#').next().unwrap_or_default();
    path.starts_with('/').then_some(path)
}

/// Obstacles whose answer is the point, and what they lead to by POST only.
fn is_special(path: &str) -> bool {
    obstacles().any(|o| o.path == path && o.answer != Answer::Page)
        || ["/course/never", "/course/redirect", "/course/no-content/answer"]
            .iter()
            .any(|p| path.starts_with(p))
        || ["/shop/cart/add", "/shop/cart/update", "/shop/checkout"].contains(&path)
}

/// Ten thousand links to one page need to be followed once.
fn is_one_of_many(path: &str) -> bool {
    path.starts_with("/course/arrived?link=") && path != "/course/arrived?link=7"
}

async fn crawl(sites: &Sites) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut waiting = BTreeSet::from(["/".to_owned(), "/vault/".to_owned()]);
    let client = client();
    while let Some(next) = waiting.pop_first() {
        let answer =
            client.get(sites.url(&next)).send().await.unwrap_or_else(|error| panic!("{next}: {error}"));
        let expected = if next.starts_with("/vault/") { 403 } else { 200 };
        assert_eq!(answer.status().as_u16(), expected, "{next}");
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        let body = answer.bytes().await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        if kind.starts_with("text/html") {
            for reference in references(&text).iter().filter_map(|reference| path(reference)) {
                if !pages.contains_key(reference) && !is_special(reference) && !is_one_of_many(reference) {
                    waiting.insert(reference.to_owned());
                }
            }
        }
        pages.insert(next, text);
    }
    pages
}

#[tokio::test]
async fn every_link_leads_to_a_page_and_two_servers_serve_the_same() {
    let (one, other) = (sites(), sites());
    let (pages, again) = tokio::join!(crawl(&one), crawl(&other));
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
        assert_eq!(Some(page), again.get(path), "{path} differs between two servers");
        assert!(!page.contains(&one.addr().to_string()), "{path} names its own address");
    }
}

#[tokio::test]
async fn nothing_refers_to_the_world_outside() {
    let sites = sites();
    // Names of vocabularies, which nothing ever loads.
    let names = ["http://www.w3.org/2000/svg", "https://schema.org"];
    for (path, page) in crawl(&sites).await {
        for scheme in ["http://", "https://", "ws://", "wss://", "url("] {
            for (at, _) in page.match_indices(scheme) {
                let rest = &page[at..];
                assert!(
                    names.iter().any(|name| rest.starts_with(name)),
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
async fn every_page_of_the_sites_has_a_title_and_a_heading() {
    let sites = sites();
    let mut titles = BTreeMap::new();
    for (path, page) in crawl(&sites).await {
        let ours = ["/shop/", "/wiki/", "/jobs/"].iter().any(|site| path.starts_with(site));
        if !ours || path.contains('?') {
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
async fn a_site_answers_under_its_own_host_name() {
    let sites = sites();
    let client = client();
    let ask = |host: &str, path: &str| {
        let host = format!("{host}.localhost:{}", sites.addr().port());
        client.get(sites.url(path)).header("host", host).send()
    };
    for site in ["shop", "wiki", "jobs", "course", "vault"] {
        let front = ask(site, "/").await.unwrap();
        assert_eq!(
            (front.status().as_u16(), front.headers()["location"].to_str().unwrap()),
            (307, &*format!("/{site}/"))
        );
        let named = ask(site, &format!("/{site}/")).await.unwrap().text().await.unwrap();
        let plain = client.get(sites.url(&format!("/{site}/"))).send().await.unwrap().text().await.unwrap();
        assert_eq!(named, plain, "{site}");
    }
    let short = ask("shop", "/p/brass-desk-lamp").await.unwrap().text().await.unwrap();
    assert!(short.contains("<h1>Brass desk lamp</h1>"));
    assert_eq!(ask("shop", "/wiki/a/arnholm").await.unwrap().status(), 404, "one site does not show another");
    let blocked = ask("vault", "/any/where").await.unwrap();
    assert_eq!(blocked.status(), 403);
    assert!(blocked.text().await.unwrap().contains("I am not a robot"));
}

#[tokio::test]
async fn echo_tells_about_the_request() {
    let sites = sites();
    let answer = client()
        .get(sites.url("/echo/headers"))
        .header("x-test", "a")
        .header("x-test", "b")
        .send()
        .await
        .unwrap();
    let headers: BTreeMap<String, String> = answer.json().await.unwrap();
    assert_eq!(headers["x-test"], "a, b");
    assert_eq!(headers["host"], sites.addr().to_string());
    assert_eq!(client().get(sites.url("/no/such/page")).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn dropping_the_sites_stops_them() {
    let sites = sites();
    let (url, addr) = (sites.url("/healthz"), sites.addr());
    assert_eq!(client().get(&url).send().await.unwrap().status(), 200);
    drop(sites);
    // The port is free again once the listener is gone; the runtime needs a moment to get there.
    let freed = tokio::time::timeout(std::time::Duration::from_secs(5), async {
        while Sites::start(addr).is_err() {
            tokio::task::yield_now().await;
        }
    });
    freed.await.expect("the port stays taken");
}

#[test]
fn starting_outside_a_runtime_is_an_error_and_no_panic() {
    assert!(Sites::start(([127, 0, 0, 1], 0).into()).is_err());
}
