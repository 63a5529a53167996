//! The encyclopedia over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use common::{between, client, get, sites};

#[tokio::test]
async fn article_has_facts_contents_and_tables() {
    let sites = sites();
    let page = get(&sites, "/wiki/a/varrow").await;
    assert!(page.contains("<tr><th>Length</th><td>412 km</td></tr>"));
    let contents = between(&page, "aria-label=\"Contents\"", "</nav>");
    for anchor in contents.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(page.contains(&format!("<section id=\"{anchor}\">")), "{anchor}");
    }
    assert!(contents.matches("<li>").count() >= 4 && page.contains("<table class=\"data sortable\">"));
}

#[tokio::test]
async fn search_shows_best_match_first_and_count() {
    let sites = sites();
    let page = get(&sites, "/wiki/search?q=tide+clock").await;
    let first = between(&page, "<ol class=\"results\"><li>", "</li>");
    assert!(first.contains("href=\"/wiki/a/tide-clock\""), "{first}");
    assert!(get(&sites, "/wiki/search?q=zeppelin").await.contains("0 results for “zeppelin”"));
}

#[tokio::test]
async fn category_lists_its_articles() {
    let sites = sites();
    let page = get(&sites, "/wiki/category/rivers").await;
    assert!(page.contains("8 articles in this category.") && page.contains("href=\"/wiki/a/lune\""));
}

#[tokio::test]
async fn unknown_article_or_category_is_not_found() {
    let sites = sites();
    for path in ["/wiki/a/zeppelin", "/wiki/category/zeppelins"] {
        assert_eq!(client().get(sites.url(path)).send().await.unwrap().status(), 404, "{path}");
    }
}
