//! The tasks against their sites: start pages load, and pages show the reference answers.
#![allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]

mod common;

use common::{between, client, get, post, sites, visitor};
use practice::{PracticeTask, Sites, tasks};

fn task(sites: &Sites, id: &str) -> PracticeTask {
    tasks(&sites.url(""))
        .into_iter()
        .find(|task| task.task_id == id)
        .unwrap_or_else(|| panic!("no task {id}"))
}

fn answer(sites: &Sites, id: &str) -> String {
    task(sites, id).definite_answer.unwrap()
}

/// Returns the number of results that a search page shows.
async fn result_count(sites: &Sites, path: &str) -> String {
    let page = get(sites, path).await;
    between(&page, "id=\"result-count\">", "<").split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn start_pages_load_on_their_host_names() {
    let sites = sites();
    for task in tasks(&sites.url("")) {
        let (host, path) = task.website.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let name = host.split(':').next().unwrap();
        assert_eq!(host, format!("{name}:{}", sites.addr().port()));
        let visitor = common::builder().no_proxy().resolve(name, sites.addr()).build().unwrap();
        let page = visitor.get(&task.website).send().await.unwrap();
        let expected = if name == "vault.localhost" { 403 } else { 200 };
        assert_eq!(page.status(), expected, "{} at /{path}", task.task_id);
    }
}

#[tokio::test]
async fn lookup_answers_are_on_the_page() {
    let sites = sites();
    for (id, path) in [
        ("shop-price-on-page", "/shop/p/brass-desk-lamp"),
        ("shop-price", "/shop/search?q=camp+stove"),
        ("shop-brand", "/shop/search?q=kitchen+radio"),
        ("shop-battery-life", "/shop/p/harbor-wireless-headphones"),
        ("shop-article-number", "/shop/p/copper-watering-can"),
        ("wiki-length-of-the-varrow", "/wiki/a/varrow"),
        ("wiki-inventor-of-the-tide-clock", "/wiki/a/tide-clock"),
        ("wiki-founding-of-tessary", "/wiki/a/tessary"),
        ("wiki-elevation-of-stag-peak", "/wiki/a/stag-peak"),
        ("wiki-mayor-of-greywater", "/wiki/a/greywater"),
        ("wiki-census-of-marstow", "/wiki/a/marstow"),
        ("jobs-start-on-page", "/jobs/1006"),
        ("jobs-company-of-a-job", "/jobs/search?q=pastry"),
        ("course-fetched-answer", "/course/api/answer"),
    ] {
        let answer = answer(&sites, id);
        assert!(get(&sites, path).await.contains(&answer), "{id}: {answer:?} is not on {path}");
    }
}

#[tokio::test]
async fn count_answers_match_the_search() {
    let sites = sites();
    for (id, path) in [
        ("shop-affordable-audio", "/shop/search?category=audio&max=80"),
        ("jobs-remote-jobs", "/jobs/search?workplace=Remote"),
        ("jobs-jobs-in-belmar", "/jobs/search?city=Belmar&type=Full-time"),
        (
            "jobs-engineering-since-may",
            "/jobs/search?field=Engineering&type=Full-time&salary=75000&posted_after=2025-05-01",
        ),
    ] {
        assert_eq!(result_count(&sites, path).await, answer(&sites, id), "{id}");
    }
}

#[tokio::test]
async fn superlative_answers_match_the_sorted_list() {
    let sites = sites();
    let shop = get(&sites, "/shop/search?category=garden&in_stock=1&sort=price-asc").await;
    assert_eq!(between(&shop, "<span class=\"name\">", "<"), answer(&sites, "shop-cheapest-garden"));
    let brand = get(&sites, "/shop/search?brand=Thornfield&sort=rating").await;
    assert_eq!(between(&brand, "<span class=\"name\">", "<"), answer(&sites, "shop-best-of-brand"));
    let health = get(&sites, "/jobs/search?field=Healthcare&sort=salary").await;
    assert!(
        between(&health, "<li class=\"job card\">", "</h3>")
            .contains(&answer(&sites, "jobs-best-paid-healthcare"))
    );
    let interns = get(&sites, "/jobs/search?type=Internship").await;
    assert!(
        between(&interns, "<li class=\"job card\">", "</h3>")
            .contains(&answer(&sites, "jobs-newest-internship"))
    );
}

#[tokio::test]
async fn cart_answers_match_the_totals() {
    let sites = sites();
    let cases: [(&str, &[(&str, &str)]); 3] = [
        ("shop-bottles-and-stove", &[("steel-water-bottle", "2"), ("camp-stove", "1")]),
        ("shop-total-with-shipping", &[("pocket-speaker", "1"), ("pruning-shears", "1")]),
        (
            "shop-best-of-three-shelves",
            &[("cast-iron-skillet", "1"), ("trading-island-board-game", "1"), ("bread-without-hurry", "1")],
        ),
    ];
    for (id, lines) in cases {
        let visitor = visitor();
        for (slug, quantity) in lines {
            post(&visitor, &sites, "/shop/cart/add", &[("product", slug), ("quantity", quantity)]).await;
        }
        let page = visitor.get(sites.url("/shop/cart")).send().await.unwrap().text().await.unwrap();
        assert_eq!(between(&page, "id=\"total\"><strong>", "<"), answer(&sites, id), "{id}");
    }
}

#[tokio::test]
async fn order_task_answer_matches_the_order_number() {
    let sites = sites();
    let visitor = visitor();
    post(&visitor, &sites, "/shop/cart/add", &[("product", "fountain-pen")]).await;
    let form = [
        ("name", "Ada Fenwick"),
        ("email", "ada@example.org"),
        ("street", "Pier 4"),
        ("city", "Cork"),
        ("postcode", "T12"),
        ("country", "Ireland"),
        ("delivery", "express"),
        ("notes", ""),
        ("terms", "yes"),
    ];
    let page = post(&visitor, &sites, "/shop/checkout", &form).await.text().await.unwrap();
    assert_eq!(between(&page, "id=\"order-number\">", "<"), answer(&sites, "shop-order-of-a-pen"));
    let total = between(&page, "id=\"total\"><strong>", "<").to_owned();
    assert!(task(&sites, "shop-order-of-a-pen").task_name.contains(&total), "{total}");
}

#[tokio::test]
async fn application_task_answer_matches_the_reference() {
    let sites = sites();
    let found = get(&sites, "/jobs/search?q=train+driver").await;
    let job = between(&found, "<h3><a href=\"", "\"").to_owned();
    // As a browser sends the form: every text field, the checked boxes, and a file without a name.
    let mut form = reqwest::multipart::Form::new();
    for (name, value) in [
        ("first_name", "Mira"),
        ("last_name", "Halden"),
        ("email", "mira@example.org"),
        ("phone", "0215550123"),
        ("start", "2025-09-01"),
        ("years", "4"),
        ("education", "Master"),
        ("permit", "yes"),
        ("skill", "Teamwork"),
        ("letter", "I like trains."),
    ] {
        form = form.text(name, value);
    }
    let form =
        form.part("cv", reqwest::multipart::Part::bytes(Vec::new()).file_name("")).text("consent", "yes");
    let response = client().post(sites.url(&format!("{job}/apply"))).multipart(form).send().await.unwrap();
    let page = response.text().await.unwrap();
    assert_eq!(between(&page, "id=\"reference\">", "<"), answer(&sites, "jobs-application"));
}

#[tokio::test]
async fn multi_hop_answers_match_the_articles() {
    let sites = sites();
    let fact = |page: &str, name: &str| {
        let cell = between(page, &format!("<tr><th>{name}</th><td>"), "</td>").to_owned();
        if cell.contains('>') { between(&cell, ">", "<").to_owned() } else { cell }
    };
    let mut person = "ines-morrow".to_owned();
    loop {
        let page = get(&sites, &format!("/wiki/a/{person}")).await;
        let teacher = fact(&page, "Teacher");
        if teacher == "none known" {
            break;
        }
        person = teacher.to_lowercase().replace(' ', "-");
    }
    assert_eq!(person, answer(&sites, "wiki-chain-of-teachers").to_lowercase().replace(' ', "-"));
    let river = fact(&get(&sites, "/wiki/a/corvane").await, "River").to_lowercase();
    let source = fact(&get(&sites, &format!("/wiki/a/{river}")).await, "Source");
    assert_eq!(source, answer(&sites, "wiki-source-of-the-river"));
    let region = fact(&get(&sites, "/wiki/a/needle-rock").await, "Region").to_lowercase();
    assert_eq!(
        fact(&get(&sites, &format!("/wiki/a/{region}")).await, "Capital"),
        answer(&sites, "wiki-capital-by-mountain")
    );
}

#[tokio::test]
async fn block_page_shows_no_answers() {
    let sites = sites();
    let page = client().get(sites.url("/vault/")).send().await.unwrap().text().await.unwrap();
    let blocked: Vec<_> =
        tasks(&sites.url("")).into_iter().filter(|task| task.website.contains("vault.")).collect();
    assert!(blocked.len() >= 2);
    for task in blocked {
        assert!(!page.contains(&task.definite_answer.unwrap()), "{}", task.task_id);
    }
}
