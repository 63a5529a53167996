//! Visits and history: failing and slow pages, redirects, refused URLs; also mark ids that are no longer valid.

use std::time::{Duration, Instant};

use browser::Options;
use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    fixture::{with_instance, with_options},
    raw_site::{self, RawResponse},
    table::{
        Eventually, Fails, HasText, IsTrue, Logged, NotLogged, Run, SingleWindow, Step, UrlEndsWith, Visit,
        by_id, by_id_with, table,
    },
};

const BACK: Step = Run(r#"{"back":{}}"#);
const TYPED: Step =
    by_id_with("fill_id", "#get-word", r#"{"value":"kept","delete_existing":true,"press_enter":false}"#);
const STILL_TYPED: Step = IsTrue("document.getElementById('get-word').value === 'kept'");

const fn refused(visit: &'static Step) -> Step {
    Fails(visit, ErrorCode::UrlRefused, "cannot be visited")
}

table! {
    visit_to_404_shows_its_page: "/course/buttons" => [Visit("/course/missing"), IsTrue("document.title.startsWith('Not found')"), BACK, UrlEndsWith("/course/buttons")];
    visit_to_500_shows_its_page: "/course/buttons" => [Visit("/course/error"), IsTrue("document.title.startsWith('Something went wrong')")];
    blank_page_accepts_commands: "/course/blank" => [Run(r#"{"screenshot":{}}"#), Run(r#"{"click_coords":{"x":5,"y":5}}"#), Run(r#"{"page_down":{}}"#), UrlEndsWith("/course/blank")];
    visit_waits_for_slow_page: "/course/slow?ms=500" => [HasText("#result", "done")];
    visit_waits_for_slow_resources: "/course/slow-resources" => [HasText("#result", "done"),
        IsTrue("picture.complete && picture.naturalWidth === 160 && getComputedStyle(styled).backgroundColor === 'rgb(244, 201, 93)'")];
    single_redirect_is_followed: "/course/redirect?n=1" => [UrlEndsWith("/course/arrived?by=redirect")];
    redirect_chain_is_followed: "/course/redirect?n=2" => [UrlEndsWith("/course/arrived?by=redirect"), HasText("#result", "done")];
    script_redirect_is_followed: "/course/js-redirect" => [UrlEndsWith("/course/arrived?by=js-redirect")];
    meta_refresh_is_followed: "/course/meta-refresh" => [Eventually("location.search === '?by=meta-refresh' && document.querySelector('#result')?.textContent === 'done'")];
    click_before_meta_refresh_works: "/course/meta-refresh" => [by_id("click_id", "#now"), UrlEndsWith("/course/arrived?by=impatience")];
    link_to_no_content_keeps_page: "/course/no-content" => [by_id("click_id", "#go"), Logged("clicked go"), UrlEndsWith("/course/no-content"), by_id("click_id", "#after"),
        Logged("clicked after")];
    visit_to_no_content_fails: "/course/popups" => [TYPED, Fails(&Visit("/course/no-content/answer"), ErrorCode::NavigationFailed, "ERR_ABORTED"), STILL_TYPED];
    basic_auth_shows_the_401_page: "/course/basic-auth" => [IsTrue("document.title.startsWith('Password needed')"), SingleWindow];

    refused_connection_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("http://127.0.0.1:1/"), ErrorCode::NavigationFailed, "net::ERR_"), STILL_TYPED,
        by_id("click_id", "#blank"), UrlEndsWith("/course/opened?by=blank")];
    unresolved_host_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("http://no-such-host.invalid/"), ErrorCode::NavigationFailed, "net::ERR_NAME_NOT_RESOLVED"),
        STILL_TYPED];
    reset_connection_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("/course/reset"), ErrorCode::NavigationFailed, "net::ERR_CONNECTION_RESET"), STILL_TYPED];
    redirect_loop_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("/course/redirect-loop"), ErrorCode::NavigationFailed, "net::ERR_TOO_MANY_REDIRECTS"),
        STILL_TYPED];
    empty_response_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("/course/hang-up"), ErrorCode::NavigationFailed, "net::ERR_EMPTY_RESPONSE"), STILL_TYPED,
        by_id("click_id", "#blank"), UrlEndsWith("/course/opened?by=blank"), BACK, UrlEndsWith("/course/popups")];
    unsafe_port_keeps_page: "/course/popups" => [TYPED, Fails(&Visit("http://127.0.0.1:6000/"), ErrorCode::NavigationFailed, "net::ERR_UNSAFE_PORT"), STILL_TYPED];
    failed_visit_adds_no_history_entry: "/course/arrived" => [Visit("/course/popups"), Fails(&Visit("http://127.0.0.1:1/"), ErrorCode::NavigationFailed, "net::ERR_"),
        BACK, UrlEndsWith("/course/arrived")];
    visit_after_failed_visit_works: "/course/arrived" => [Fails(&Visit("/course/reset"), ErrorCode::NavigationFailed, "net::ERR_"), Visit("/course/buttons"),
        by_id("click_id", "#up"), HasText("#count", "1")];
    back_returns_from_error_page: "/course/popups" => [Run(r#"{"screenshot":{}}"#),
        IsTrue("(blank.href = 'http://127.0.0.1:1/', blank.target = '', true)"), by_id("click_id", "#blank"), IsTrue("location.href.startsWith('chrome-error:')"),
        BACK, UrlEndsWith("/course/popups"), by_id("click_id", "#noopener"), UrlEndsWith("/course/opened?by=noopener")];

    file_url_is_refused: "/course/popups" => [TYPED, refused(&Visit("file:///etc/passwd")), STILL_TYPED];
    browser_internal_urls_are_refused: "/course/popups" => [refused(&Visit("chrome://version")), refused(&Visit("about:crash")), refused(&Visit("devtools://devtools/bundled/x.html")),
        refused(&Visit("chrome-extension://abc/x.html")), refused(&Visit("view-source:http://127.0.0.1/")), UrlEndsWith("/course/popups")];
    other_schemes_and_invalid_urls_are_refused: "/course/popups" => [refused(&Visit("javascript:document.body.remove()")), refused(&Visit("blob:http://127.0.0.1/x")),
        refused(&Visit("ftp://127.0.0.1/")), refused(&Visit("no address at all")), refused(&Visit("")), UrlEndsWith("/course/popups")];

    back_at_history_start_does_nothing: "/course/buttons" => [by_id("click_id", "#up"), BACK, UrlEndsWith("/course/buttons"), HasText("#count", "1"), BACK, HasText("#count", "1")];
    back_returns_to_previous_page: "/course/buttons" => [Visit("/course/hash"), Visit("/course/long"), BACK, UrlEndsWith("/course/hash"), BACK, UrlEndsWith("/course/buttons"), BACK,
        UrlEndsWith("/course/buttons")];
    back_undoes_anchor_navigation: "/course/hash" => [by_id("click_id", "#to-two"), UrlEndsWith("#two"), Logged("hash #two"), BACK, UrlEndsWith("/course/hash")];
    back_undoes_push_state: "/course/push-state" => [by_id("click_id", "#next"), HasText("#step", "2"), by_id("click_id", "#next"), UrlEndsWith("?step=3"), BACK, UrlEndsWith("?step=2"),
        Logged("popped 2"), HasText("#step", "2"), by_id("click_id", "#back"), HasText("#step", "1"), BACK, HasText("#step", "1")];
    replace_state_changes_url: "/course/push-state" => [by_id("click_id", "#replace"), UrlEndsWith("?step=1&replaced=yes"), Logged("replaced")];
    back_skips_redirects: "/course/buttons" => [Visit("/course/redirect?n=2"), BACK, UrlEndsWith("/course/buttons")];
    document_write_replaces_document: "/course/document-write" => [by_id("click_id", "#go"), HasText("#result", "done"), by_id("click_id", "#new"), HasText("#new", "Clicked")];

    id_without_screenshot_is_not_found: "/course/buttons" => [Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    unknown_mark_id_is_not_found: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Fails(&Run(r#"{"click_id":{"id":"999"}}"#), ErrorCode::ElementNotFound, "element 999 "),
        Fails(&Run(r#"{"hover_id":{"id":"0"}}"#), ErrorCode::ElementNotFound, "element 0 "),
        Fails(&Run(r#"{"fill_id":{"id":"-1","value":"x"}}"#), ErrorCode::ElementNotFound, "element -1 "),
        Fails(&Run(r#"{"select_option":{"id":"one"}}"#), ErrorCode::ElementNotFound, "element one "),
        Fails(&Run(r#"{"scroll_id":{"id":"999","direction":"down"}}"#), ErrorCode::ElementNotFound, "element 999 ")];
    id_of_previous_page_is_not_found: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Visit("/course/hash"), Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound,
        "element 2 ")];
    id_survives_coordinates_screenshot: "/course/buttons" => [Run(r#"{"screenshot":{"interaction_mode":"set_of_marks"}}"#),
        Run(r#"{"screenshot":{"interaction_mode":"coordinates"}}"#), Run(r#"{"click_id":{"id":2}}"#), HasText("#count", "1")];
    removed_element_is_not_found: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), IsTrue("(up.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    hidden_element_is_not_found: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), IsTrue("(up.style.display = 'none', true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 "),
        Fails(&Run(r#"{"hover_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    element_of_removed_frame_is_not_found: "/course/iframes" => [Run(r#"{"screenshot":{}}"#), IsTrue("(same.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    element_of_removed_cross_origin_frame_is_not_found: "/course/iframes-cross" => [Run(r#"{"screenshot":{}}"#), IsTrue("(foreign.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    element_of_navigated_cross_origin_frame_is_not_found: "/course/iframes-cross" => [Run(r#"{"screenshot":{}}"#),
        IsTrue("new Promise((done) => { foreign.onload = () => done(true); foreign.src = foreign.src + '&again'; })"),
        Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    moved_element_is_clicked_at_new_position: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), IsTrue("(up.style.cssText = 'position: absolute; left: 900px; top: 600px', true)"),
        Run(r#"{"click_id":{"id":2}}"#), HasText("#count", "1")];
    element_out_of_view_is_scrolled_into_view: "/course/long" => [Run(r#"{"screenshot":{}}"#), Run(r#"{"page_down":{"amount":4000}}"#), Run(r#"{"click_id":{"id":2}}"#),
        Logged("clicked section 1")];
    point_outside_viewport_is_refused: "/course/buttons" => [Fails(&Run(r#"{"click_coords":{"x":1281,"y":5}}"#), ErrorCode::BadRequest, "1280 by 768"),
        Fails(&Run(r#"{"fill_coords":{"x":-1,"y":5,"value":"x"}}"#), ErrorCode::BadRequest, "1280 by 768"),
        Fails(&Run(r#"{"hover_coords":{"x":0,"y":9999}}"#), ErrorCode::BadRequest, "1280 by 768"), NotLogged("count 1")];
}

fn short_timeouts() -> Options {
    let seconds = Duration::from_secs;
    Options { navigation_timeout: seconds(2), load_timeout: seconds(2), ..Options::default() }
}

#[test]
fn visit_to_silent_server_times_out() {
    with_options(&short_timeouts(), async |tester| {
        tester.visit("/course/popups").await;
        tester.run_step(&TYPED).await;
        let started = Instant::now();
        let url = tester.url("/course/never");
        let error = tester.expect_error(json!({"visit_page": {"url": url}})).await;
        assert_eq!(error.code(), ErrorCode::NavigationFailed, "{error}");
        assert!(error.to_string().contains("net::ERR_TIMED_OUT"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        tester.run_step(&STILL_TYPED).await;
        tester.run_step(&by_id("click_id", "#blank")).await;
        tester.run_step(&UrlEndsWith("/course/opened?by=blank")).await;
    });
}

#[test]
fn endless_page_is_used_after_timeout() {
    with_options(&short_timeouts(), async |tester| {
        tester.visit("/course/never-body").await;
        assert_eq!(tester.text("#result").await, "begun");
        tester.run_step(&by_id("click_id", "#home")).await;
        tester.run_step(&UrlEndsWith("/course/")).await;
    });
}

#[test]
fn missing_image_does_not_block_page() {
    with_options(&short_timeouts(), async |tester| {
        tester.visit("/course/never-image").await;
        tester.run_step(&by_id("click_id", "#here")).await;
        tester.run_step(&Logged("clicked here")).await;
        tester.run_step(&NotLogged("loaded")).await;
    });
}

#[test]
fn page_with_an_unusual_status_is_shown() {
    with_instance(async |tester| {
        let site = raw_site::start(|request| match request.path.as_str() {
            "/" => RawResponse::page("<a id=link href=/unusual>Unusual</a><iframe src=/unusual></iframe>"),
            _ => RawResponse { status: "70000 Unusual", ..RawResponse::page("<p id=shown>shown</p>") },
        })
        .await;
        let url = format!("http://{site}/unusual");
        tester.run(json!({"visit_page": {"url": url}})).await;
        assert_eq!(tester.js("document.body.innerText").await, "shown");
        tester.run(json!({"visit_page": {"url": format!("http://{site}/")}})).await;
        let id = tester.mark("#link").await;
        tester.run(json!({"click_id": {"id": id}})).await;
        assert_eq!(tester.js("document.body.innerText").await, "shown", "a link");
    });
}

/// The browser's event about this request is longer than what we read.
#[test]
fn form_with_a_very_long_text_is_posted() {
    const FORM: &str =
        "<form method=post action=/posted><input type=hidden name=text><button id=send>Send</button></form>
        <script>document.forms[0].text.value = 'x'.repeat(40 << 20)</script>";
    with_instance(async |tester| {
        let site = raw_site::start(|request| match request.path.as_str() {
            "/posted" => RawResponse::page("<p id=shown>posted</p>"),
            _ => RawResponse::page(FORM),
        })
        .await;
        tester.run(json!({"visit_page": {"url": format!("http://{site}/")}})).await;
        let id = tester.mark("#send").await;
        tester.run(json!({"click_id": {"id": id}})).await;
        assert_eq!(tester.js("document.body.innerText").await, "posted");
    });
}

#[test]
fn busy_page_only_delays_commands() {
    with_instance(async |tester| {
        tester.visit("/course/spin?ms=700").await;
        tester.run_step(&Logged("spun 700 ms")).await;
        tester.run_step(&by_id("click_id", "#go")).await;
        tester.run_step(&HasText("#result", "done")).await;
        tester.run_step(&by_id("click_id", "#after")).await;
        tester.run_step(&Logged("clicked after")).await;
    });
}

/// The failed visit ends the loop, so that the page can be used again.
#[test]
fn failed_visit_on_a_hung_page_reports_its_own_error() {
    let options = Options { operation_timeout: Duration::from_secs(3), ..short_timeouts() };
    with_options(&options, async |tester| {
        tester.visit("/course/arrived").await;
        tester.js("setTimeout(() => { for (;;); }, 0); 0").await;
        let error = tester.expect_error(json!({"visit_page": {"url": "http://127.0.0.1:1/"}})).await;
        assert_eq!(error.code(), ErrorCode::NavigationFailed, "{error}");
        assert!(tester.js("location.href").await.as_str().unwrap().ends_with("/course/arrived"));
    });
}

/// The page runs an endless loop. Commands on it time out, and another page can be visited.
#[test]
fn hung_page_times_out_and_can_be_left() {
    let options = Options { operation_timeout: Duration::from_secs(3), ..short_timeouts() };
    with_options(&options, async |tester| {
        let bound = Duration::from_secs(30);
        tester.visit("/course/spin").await;
        tester.js("setTimeout(() => { for (;;); }, 0); 0").await;
        for command in [
            json!({"click_coords": {"x": 300, "y": 300}}),
            json!({"get_webpage_text": {}}),
            json!({"screenshot": {}}),
            json!({"get_interactive_rects": {}}),
        ] {
            let started = Instant::now();
            let error = tester.expect_error(command.clone()).await;
            assert_eq!(error.code(), ErrorCode::Timeout, "{command}: {error}");
            assert!(started.elapsed() < bound, "{command}: {:?}", started.elapsed());
        }
        assert_eq!(tester.run(json!({"get_page_metadata": {}})).await["url"], tester.url("/course/spin"));
        let started = Instant::now();
        tester.visit("/course/buttons").await;
        assert!(started.elapsed() < bound, "leaving: {:?}", started.elapsed());
        tester.run_step(&by_id("click_id", "#up")).await;
        tester.run_step(&HasText("#count", "1")).await;
    });
}

#[test]
fn unknown_ids_fail_within_a_second() {
    with_instance(async |tester| {
        tester.visit("/course/links").await;
        tester.observe_elements().await;
        tester.js("document.querySelector('.links').remove(); 0").await;
        for id in ["3", "99999", "x"] {
            let mut times = Vec::new();
            for _ in 0..3 {
                let started = Instant::now();
                let error = tester.expect_error(json!({"click_id": {"id": id}})).await;
                assert_eq!(error.code(), ErrorCode::ElementNotFound, "{error}");
                assert!(error.to_string().contains(&format!("element {id} ")), "{error}");
                times.push(started.elapsed());
            }
            assert!(times.iter().min().unwrap() < &Duration::from_secs(1), "{times:?}");
        }
    });
}

#[test]
fn redirect_to_another_scheme_is_refused() {
    with_instance(async |tester| {
        const REDIRECTS: [&str; 5] = [
            "location: about:blank\r\n",
            "location: file:///etc/passwd\r\n",
            "location: chrome://version\r\n",
            "location: data:text/html,x\r\n",
            "location: javascript:alert(1)\r\n",
        ];
        let site = raw_site::start(|request| {
            let number = request.path.trim_start_matches('/').parse::<usize>().unwrap_or(0);
            RawResponse { status: "302 Found", headers: REDIRECTS[number], ..RawResponse::page("") }
        })
        .await;
        tester.visit("/course/arrived").await;
        for (number, header) in REDIRECTS.iter().enumerate() {
            let target = header.trim_start_matches("location: ").trim_end();
            let url = format!("http://{site}/{number}");
            let error = tester.expect_error(json!({"visit_page": {"url": url}})).await;
            assert_eq!(error.code(), ErrorCode::UrlRefused, "{target}: {error}");
            assert!(error.to_string().contains(target) && error.to_string().contains(&url), "{error}");
            assert!(
                tester.js("location.href").await.as_str().unwrap().ends_with("/course/arrived"),
                "{target}"
            );
        }
    });
}
