//! Sessions with many tabs: windows become tabs, and tabs can be listed, opened, switched and closed.

use browser::ObserveRequest;
use proto::{ErrorCode, InteractionMode, page::TabInfo};
use serde_json::json;

use crate::common::{
    fixture::{with_instance, with_session},
    raw_site::{self, RawResponse},
    tester::Tester,
};

/// A page that opens windows in every way.
const PAGE: &str = "<title>Start</title><a href='/there' target=_blank>link</a>
    <button onclick=\"window.open('/there')\">open</button> <button onclick=\"window.open('').document.write('<title>Written</title>by script')\">write</button>
    <form action=/there method=post target=_blank><button>post</button></form>
    <button onclick=\"for (let n = 0; n < 50; n += 1) window.open('/there?' + n)\">flood</button>";

impl Tester {
    async fn tabs(&mut self) -> Vec<TabInfo> {
        let reply = self.run(json!({"list_tabs": {}})).await;
        serde_json::from_value(reply["tabs"].clone()).expect("a list of tabs")
    }

    /// Number and title of each tab; the current one has a star.
    async fn tab_titles(&mut self) -> Vec<String> {
        let tabs = self.tabs().await;
        let star = |tab: &TabInfo| if tab.current { "*" } else { "" };
        tabs.iter().map(|tab| format!("{}{} {}", tab.id, star(tab), tab.title)).collect()
    }
}

/// Opens the page in a session with many tabs.
fn with_tabs(test: impl AsyncFnOnce(&mut Tester)) {
    with_session(&json!({"tabs": "many"}), async |tester| {
        let site = raw_site::start(|request| match request.path.as_str() {
            "/" => RawResponse::page(PAGE),
            _ => RawResponse::page(
                "<title>There</title>arrived <button onclick='window.close()'>close me</button>",
            ),
        })
        .await;
        tester.run(json!({"visit_page": {"url": format!("http://{site}/")}})).await;
        test(tester).await;
    });
}

#[test]
fn windows_become_tabs() {
    with_tabs(async |tester| {
        for (opener, title) in [("link", "There"), ("open", "There"), ("write", "Written"), ("post", "There")]
        {
            tester.click_named(opener).await;
            let titles = tester.tab_titles().await;
            assert_eq!(titles[0], "1 Start", "{opener}");
            assert!(titles[1].ends_with(&format!("* {title}")), "{opener}: {titles:?}");
            assert_eq!(tester.js("document.title").await, title, "commands apply to the new tab");
            tester.run(json!({"close_tab": {}})).await;
            assert_eq!(tester.tab_titles().await, ["1* Start"], "{opener}");
        }
    });
}

#[test]
fn tabs_are_switched_opened_and_closed() {
    with_tabs(async |tester| {
        tester.click_named("link").await;
        tester.run(json!({"switch_tab": {"id": "1"}})).await;
        assert_eq!(tester.tab_titles().await, ["1* Start", "2 There"]);
        assert_eq!(
            tester.js("[document.title, document.visibilityState]").await,
            json!(["Start", "visible"])
        );
        let url = tester.js("location.origin + '/third'").await;
        tester.run(json!({"open_tab": {"url": url}})).await;
        assert_eq!(tester.tab_titles().await, ["1 Start", "2 There", "3* There"]);
        let error = tester.expect_error(json!({"open_tab": {"url": "file:///etc/passwd"}})).await;
        assert_eq!(error.code(), ErrorCode::UrlRefused, "{error}");
        assert_eq!(
            tester.tab_titles().await,
            ["1 Start", "2 There", "3* There"],
            "a failed visit leaves no tab"
        );
        tester.run(json!({"close_tab": {"id": 2}})).await;
        assert_eq!(tester.tab_titles().await, ["1 Start", "3* There"]);
        tester.run(json!({"back": {}})).await;
        tester.run(json!({"close_tab": {}})).await;
        tester.run(json!({"close_tab": {"id": "1"}})).await;
        let tabs = tester.tabs().await;
        assert_eq!(
            (tabs.len(), tabs[0].url.as_str()),
            (1, "about:blank"),
            "the last tab is replaced by an empty one"
        );
        let error = tester.expect_error(json!({"switch_tab": {"id": "1"}})).await;
        assert!(error.to_string().contains("there is no tab \"1\"; the tabs are 5"), "{error}");
    });
}

#[test]
fn observation_shows_the_current_tab() {
    with_tabs(async |tester| {
        tester.click_named("open").await;
        let request = ObserveRequest {
            metadata: true,
            elements: true,
            ..ObserveRequest::screenshot(InteractionMode::SetOfMarks)
        };
        let observation = tester.instance.observe(&request).await.unwrap();
        assert_eq!(observation.metadata.unwrap().title, "There");
        let tabs = observation.tabs.unwrap();
        assert_eq!(tabs.iter().map(|tab| tab.current).collect::<Vec<_>>(), [false, true]);
        // Marks of one tab are not valid in another.
        tester.run(json!({"switch_tab": {"id": "1"}})).await;
        let error = tester.expect_error(json!({"click_id": {"id": "1"}})).await;
        assert_eq!(error.code(), ErrorCode::ElementNotFound);
    });
}

#[test]
fn tab_that_closes_itself_leads_to_the_previous_one() {
    with_tabs(async |tester| {
        tester.click_named("open").await;
        tester.click_named("close me").await;
        assert_eq!(tester.tab_titles().await, ["1* Start"]);
        assert_eq!(tester.js("document.title").await, "Start");
    });
}

#[test]
fn number_of_tabs_is_bounded() {
    with_tabs(async |tester| {
        tester.click_named("flood").await;
        let count = tester.tabs().await.len();
        assert!(count <= 20, "{count} tabs");
        while tester.tabs().await.len() < 20 {
            tester.run(json!({"open_tab": {}})).await;
        }
        let error = tester.expect_error(json!({"open_tab": {}})).await;
        assert!(error.to_string().contains("20 tabs"), "{error}");
    });
}

#[test]
fn single_tab_cannot_be_switched() {
    with_instance(async |tester| {
        tester.visit("/course/arrived").await;
        for command in [json!({"open_tab": {}}), json!({"switch_tab": {"id": 1}}), json!({"close_tab": {}})] {
            let error = tester.expect_error(command).await;
            assert!(error.to_string().contains("{\"tabs\": \"many\"}"), "{error}");
        }
        assert_eq!(tester.tabs().await.len(), 1);
    });
}
