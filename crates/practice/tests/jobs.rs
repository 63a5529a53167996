//! The job board over HTTP: search, job pages, applications.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use common::{between, client, get, sites};
use reqwest::multipart::{Form, Part};

fn application() -> Form {
    let mut form = Form::new();
    for (name, value) in [
        ("first_name", "Mira"),
        ("last_name", "O’Hara <b>"),
        ("email", "mira@example.org"),
        ("phone", "+353 21 555 01"),
        ("start", "2025-09-01"),
        ("years", "4"),
        ("education", "Master"),
        ("permit", "yes"),
        ("skill", "Teamwork"),
        ("skill", "First aid"),
        ("letter", "Two lines\nof me."),
        ("consent", "yes"),
    ] {
        form = form.text(name, value);
    }
    form
}

#[tokio::test]
async fn search_applies_every_filter() {
    let sites = sites();
    let all = get(&sites, "/jobs/search").await;
    assert!(all.contains("56 jobs, page 1 of 6"));
    assert_eq!(all.matches("<li class=\"job card\">").count(), 10);
    let path =
        "/jobs/search?city=Arnholm&type=Full-time&field=Engineering&salary=75000&posted_after=2025-06-01";
    let filtered = get(&sites, path).await;
    assert!(filtered.contains(">1 job<") && filtered.contains("Embedded software developer"));
    assert!(filtered.contains("value=\"2025-06-01\""), "the form keeps the value");
    assert!(get(&sites, "/jobs/search?q=zeppelin").await.contains("Nothing matches"));
}

#[tokio::test]
async fn application_is_confirmed_with_all_values() {
    let sites = sites();
    let mut references = Vec::new();
    for _ in 0..2 {
        let file = Part::bytes(b"my life".to_vec()).file_name("cv.txt");
        let form = application().part("cv", file);
        let response = client().post(sites.url("/jobs/1006/apply")).multipart(form).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let page = response.text().await.unwrap();
        for expected in [
            "Naval architect",
            "Mira O’Hara &lt;b&gt;",
            "1 September 2025",
            "Teamwork, First aid",
            "cv.txt (7 bytes)",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        references.push(between(&page, "id=\"reference\">", "<").to_owned());
    }
    assert!(references[0].starts_with("APP-") && references[0] == references[1]);
    let other = client().post(sites.url("/jobs/1007/apply")).multipart(application()).send().await.unwrap();
    assert_ne!(between(&other.text().await.unwrap(), "id=\"reference\">", "<"), references[0]);
}

#[tokio::test]
async fn invalid_fields_are_reported_and_values_kept() {
    let sites = sites();
    let form = Form::new()
        .text("first_name", "Mira")
        .text("email", "mira")
        .text("years", "ninety")
        .text("permit", "perhaps");
    let response = client().post(sites.url("/jobs/1006/apply")).multipart(form).send().await.unwrap();
    assert_eq!(response.status(), 422);
    let page = response.text().await.unwrap();
    for field in ["last_name", "email", "phone", "start", "years", "education", "permit", "letter", "consent"]
    {
        assert!(page.contains(&format!("id=\"{field}-error\"")), "{field}");
    }
    assert!(!page.contains("id=\"first_name-error\"") && page.contains("value=\"Mira\""));
    assert!(page.contains("Please correct 9 fields."));
}

#[tokio::test]
async fn application_without_cv_is_accepted() {
    let sites = sites();
    // A browser sends an empty file with an empty name if none is chosen.
    let form = application().part("cv", Part::bytes(Vec::new()).file_name(""));
    let page = client().post(sites.url("/jobs/1006/apply")).multipart(form).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("<th>Curriculum vitae</th><td>–</td>"));
}

#[tokio::test]
async fn unknown_job_or_company_is_not_found() {
    let sites = sites();
    for path in ["/jobs/999", "/jobs/abc", "/jobs/999/apply", "/jobs/company/nobody"] {
        assert_eq!(client().get(sites.url(path)).send().await.unwrap().status(), 404, "{path}");
    }
}
