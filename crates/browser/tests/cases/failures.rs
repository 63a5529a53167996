//! Pages that fail, dawdle or lead elsewhere; addresses that are refused; numbers that mean nothing.

use std::time::{Duration, Instant};

use browser::Options;
use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    stage::{with_instance, with_options},
    table::{
        Fails, Holds, IsAt, Later, NeverSays, OneWindow, Run, Says, Shows, Step, Visit, on, on_with, table,
    },
};

const BACK: Step = Run(r#"{"back":{}}"#);
const TYPED: Step =
    on_with("fill_id", "#get-word", r#"{"value":"kept","delete_existing":true,"press_enter":false}"#);
const STILL_TYPED: Step = Holds("document.getElementById('get-word').value === 'kept'");

const fn refused(address: &'static Step) -> Step {
    Fails(address, ErrorCode::UrlRefused, "cannot be visited")
}

table! {
    a_404_is_a_page: "/course/buttons" => [Visit("/course/missing"), Holds("document.title.startsWith('Not found')"), BACK, IsAt("/course/buttons")];
    a_500_is_a_page: "/course/buttons" => [Visit("/course/error"), Holds("document.title.startsWith('Something went wrong')")];
    a_blank_page: "/course/blank" => [Run(r#"{"screenshot":{}}"#), Run(r#"{"click_coords":{"x":5,"y":5}}"#), Run(r#"{"page_down":{}}"#), IsAt("/course/blank")];
    a_slow_page_is_waited_for: "/course/slow?ms=500" => [Shows("#result", "done")];
    slow_resources_are_waited_for: "/course/slow-resources" => [Shows("#result", "done"),
        Holds("picture.complete && picture.naturalWidth === 160 && getComputedStyle(styled).backgroundColor === 'rgb(244, 201, 93)'")];
    one_redirect: "/course/redirect?n=1" => [IsAt("/course/arrived?by=redirect")];
    two_redirects: "/course/redirect?n=2" => [IsAt("/course/arrived?by=redirect"), Shows("#result", "done")];
    a_script_redirects: "/course/js-redirect" => [IsAt("/course/arrived?by=js-redirect")];
    a_meta_refresh_is_followed_in_time: "/course/meta-refresh" => [Later("location.search === '?by=meta-refresh'"), Shows("#result", "done")];
    a_meta_refresh_can_be_overtaken: "/course/meta-refresh" => [on("click_id", "#now"), IsAt("/course/arrived?by=impatience")];
    no_content_leaves_the_page: "/course/no-content" => [on("click_id", "#go"), Says("clicked go"), IsAt("/course/no-content"), on("click_id", "#after"),
        Says("clicked after")];
    visiting_no_content_is_an_error: "/course/popups" => [TYPED, Fails(&Visit("/course/no-content/answer"), ErrorCode::NavigationFailed, "ERR_ABORTED"), STILL_TYPED];
    basic_auth_shows_the_page_of_the_refusal: "/course/basic-auth" => [Holds("document.title.startsWith('Password needed')"), OneWindow];

    a_refused_connection_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("http://127.0.0.1:1/"), ErrorCode::NavigationFailed, "net::ERR_"), STILL_TYPED,
        on("click_id", "#blank"), IsAt("/course/opened?by=blank")];
    an_unknown_name_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("http://no-such-host.invalid/"), ErrorCode::NavigationFailed, "net::ERR_NAME_NOT_RESOLVED"),
        STILL_TYPED];
    a_reset_connection_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("/course/reset"), ErrorCode::NavigationFailed, "net::ERR_CONNECTION_RESET"), STILL_TYPED];
    a_redirect_loop_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("/course/redirect-loop"), ErrorCode::NavigationFailed, "net::ERR_TOO_MANY_REDIRECTS"),
        STILL_TYPED];
    hanging_up_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("/course/hang-up"), ErrorCode::NavigationFailed, "net::ERR_EMPTY_RESPONSE"), STILL_TYPED,
        on("click_id", "#blank"), IsAt("/course/opened?by=blank"), BACK, IsAt("/course/popups")];
    a_bad_port_keeps_the_page: "/course/popups" => [TYPED, Fails(&Visit("http://127.0.0.1:6000/"), ErrorCode::NavigationFailed, "net::ERR_UNSAFE_PORT"), STILL_TYPED];
    a_failed_visit_leaves_no_history: "/course/arrived" => [Visit("/course/popups"), Fails(&Visit("http://127.0.0.1:1/"), ErrorCode::NavigationFailed, "net::ERR_"),
        BACK, IsAt("/course/arrived")];
    the_first_visit_may_fail: "/course/arrived" => [Fails(&Visit("/course/reset"), ErrorCode::NavigationFailed, "net::ERR_"), Visit("/course/buttons"),
        on("click_id", "#up"), Shows("#count", "1")];
    a_link_to_nowhere_shows_an_error_page_and_back_returns: "/course/popups" => [Run(r#"{"screenshot":{}}"#),
        Holds("(blank.href = 'http://127.0.0.1:1/', blank.target = '', true)"), on("click_id", "#blank"), Holds("location.href.startsWith('chrome-error:')"),
        BACK, IsAt("/course/popups"), on("click_id", "#noopener"), IsAt("/course/opened?by=noopener")];

    file_is_refused: "/course/popups" => [TYPED, refused(&Visit("file:///etc/passwd")), STILL_TYPED];
    chrome_is_refused: "/course/popups" => [refused(&Visit("chrome://version")), refused(&Visit("about:crash")), refused(&Visit("devtools://devtools/bundled/x.html")),
        refused(&Visit("chrome-extension://abc/x.html")), refused(&Visit("view-source:http://127.0.0.1/")), IsAt("/course/popups")];
    javascript_is_refused: "/course/popups" => [refused(&Visit("javascript:document.body.remove()")), refused(&Visit("blob:http://127.0.0.1/x")),
        refused(&Visit("ftp://127.0.0.1/")), refused(&Visit("no address at all")), refused(&Visit("")), IsAt("/course/popups")];

    back_at_the_start_does_nothing: "/course/buttons" => [on("click_id", "#up"), BACK, IsAt("/course/buttons"), Shows("#count", "1"), BACK, Shows("#count", "1")];
    back_goes_back: "/course/buttons" => [Visit("/course/hash"), Visit("/course/long"), BACK, IsAt("/course/hash"), BACK, IsAt("/course/buttons"), BACK,
        IsAt("/course/buttons")];
    back_over_anchors: "/course/hash" => [on("click_id", "#to-two"), IsAt("#two"), Says("hash #two"), BACK, IsAt("/course/hash")];
    back_over_pushed_states: "/course/push-state" => [on("click_id", "#next"), Shows("#step", "2"), on("click_id", "#next"), IsAt("?step=3"), BACK, IsAt("?step=2"),
        Says("popped 2"), Shows("#step", "2"), on("click_id", "#back"), Shows("#step", "1"), BACK, Shows("#step", "1")];
    a_replaced_state: "/course/push-state" => [on("click_id", "#replace"), IsAt("?step=1&replaced=yes"), Says("replaced")];
    back_after_redirects: "/course/buttons" => [Visit("/course/redirect?n=2"), BACK, IsAt("/course/buttons")];
    document_write_replaces_the_document: "/course/document-write" => [on("click_id", "#go"), Shows("#result", "done"), on("click_id", "#new"), Shows("#new", "Clicked")];

    an_id_before_any_screenshot: "/course/buttons" => [Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    an_id_that_was_not_shown: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Fails(&Run(r#"{"click_id":{"id":"999"}}"#), ErrorCode::ElementNotFound, "element 999 "),
        Fails(&Run(r#"{"hover_id":{"id":"0"}}"#), ErrorCode::ElementNotFound, "element 0 "),
        Fails(&Run(r#"{"fill_id":{"id":"-1","value":"x"}}"#), ErrorCode::ElementNotFound, "element -1 "),
        Fails(&Run(r#"{"select_option":{"id":"one"}}"#), ErrorCode::ElementNotFound, "element one "),
        Fails(&Run(r#"{"scroll_id":{"id":"999","direction":"down"}}"#), ErrorCode::ElementNotFound, "element 999 ")];
    an_id_of_the_page_before: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Visit("/course/hash"), Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound,
        "element 2 ")];
    an_id_after_a_coordinates_screenshot_still_counts: "/course/buttons" => [Run(r#"{"screenshot":{"interaction_mode":"set_of_marks"}}"#),
        Run(r#"{"screenshot":{"interaction_mode":"coordinates"}}"#), Run(r#"{"click_id":{"id":2}}"#), Shows("#count", "1")];
    an_element_that_was_removed: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Holds("(up.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    an_element_that_was_hidden: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Holds("(up.style.display = 'none', true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 "),
        Fails(&Run(r#"{"hover_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    an_element_of_a_frame_that_is_gone: "/course/iframes" => [Run(r#"{"screenshot":{}}"#), Holds("(same.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":2}}"#), ErrorCode::ElementNotFound, "element 2 ")];
    an_element_of_a_foreign_frame_that_is_gone: "/course/iframes-cross" => [Run(r#"{"screenshot":{}}"#), Holds("(foreign.remove(), true)"),
        Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    an_element_of_a_foreign_frame_that_went_elsewhere: "/course/iframes-cross" => [Run(r#"{"screenshot":{}}"#),
        Holds("new Promise((done) => { foreign.onload = () => done(true); foreign.src = foreign.src + '&again'; })"),
        Fails(&Run(r#"{"click_id":{"id":3}}"#), ErrorCode::ElementNotFound, "element 3 ")];
    an_element_that_moved_is_found_where_it_is: "/course/buttons" => [Run(r#"{"screenshot":{}}"#), Holds("(up.style.cssText = 'position: absolute; left: 900px; top: 600px', true)"),
        Run(r#"{"click_id":{"id":2}}"#), Shows("#count", "1")];
    an_element_that_scrolled_away_is_brought_back: "/course/long" => [Run(r#"{"screenshot":{}}"#), Run(r#"{"page_down":{"amount":4000}}"#), Run(r#"{"click_id":{"id":2}}"#),
        Says("clicked section 1")];
    a_point_outside_is_an_error: "/course/buttons" => [Fails(&Run(r#"{"click_coords":{"x":1281,"y":5}}"#), ErrorCode::BadRequest, "1280 by 768"),
        Fails(&Run(r#"{"fill_coords":{"x":-1,"y":5,"value":"x"}}"#), ErrorCode::BadRequest, "1280 by 768"),
        Fails(&Run(r#"{"hover_coords":{"x":0,"y":9999}}"#), ErrorCode::BadRequest, "1280 by 768"), NeverSays("count 1")];
}

fn hurried() -> Options {
    let seconds = Duration::from_secs;
    Options { navigation_timeout: seconds(2), load_timeout: seconds(2), ..Options::default() }
}

#[test]
fn a_server_that_never_answers_is_given_up_and_the_page_kept() {
    with_options(&hurried(), async |tester| {
        tester.visit("/course/popups").await;
        tester.take(&TYPED).await;
        let begun = Instant::now();
        let url = tester.address("/course/never");
        let error = tester.fails(json!({"visit_page": {"url": url}})).await;
        assert_eq!(error.code(), ErrorCode::NavigationFailed, "{error}");
        assert!(error.to_string().contains("net::ERR_TIMED_OUT"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        tester.take(&STILL_TYPED).await;
        tester.take(&on("click_id", "#blank")).await;
        tester.take(&IsAt("/course/opened?by=blank")).await;
    });
}

#[test]
fn a_page_that_never_ends_is_used_as_far_as_it_came() {
    with_options(&hurried(), async |tester| {
        tester.visit("/course/never-body").await;
        assert_eq!(tester.text("#result").await, "begun");
        tester.take(&on("click_id", "#home")).await;
        tester.take(&IsAt("/course/")).await;
    });
}

#[test]
fn a_picture_that_never_comes_does_not_hold_the_page() {
    with_options(&hurried(), async |tester| {
        tester.visit("/course/never-image").await;
        tester.take(&on("click_id", "#here")).await;
        tester.take(&Says("clicked here")).await;
        tester.take(&NeverSays("loaded")).await;
    });
}

#[test]
fn a_busy_page_delays_and_no_more() {
    with_instance(async |tester| {
        tester.visit("/course/spin?ms=700").await;
        tester.take(&Says("spun 700 ms")).await;
        tester.take(&on("click_id", "#go")).await;
        tester.take(&Shows("#result", "done")).await;
        tester.take(&on("click_id", "#after")).await;
        tester.take(&Says("clicked after")).await;
    });
}

/// A page that spins for good: everything asked of it fails in time and by name, and it can be left.
#[test]
fn a_page_that_hangs_gives_timeouts_and_can_be_left() {
    let options = Options { operation_timeout: Duration::from_secs(3), ..hurried() };
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
            let begun = Instant::now();
            let error = tester.fails(command.clone()).await;
            assert_eq!(error.code(), ErrorCode::Timeout, "{command}: {error}");
            assert!(begun.elapsed() < bound, "{command} elapsed {:?}", begun.elapsed());
        }
        assert_eq!(tester.run(json!({"get_page_metadata": {}})).await["url"], tester.address("/course/spin"));
        let begun = Instant::now();
        tester.visit("/course/buttons").await;
        assert!(begun.elapsed() < bound, "leaving elapsed {:?}", begun.elapsed());
        tester.take(&on("click_id", "#up")).await;
        tester.take(&Shows("#count", "1")).await;
    });
}

#[test]
fn bad_ids_are_told_within_about_a_second() {
    with_instance(async |tester| {
        tester.visit("/course/links").await;
        tester.look().await;
        tester.js("document.querySelector('.links').remove(); 0").await;
        for id in ["3", "99999", "x"] {
            let mut times = Vec::new();
            for _ in 0..3 {
                let begun = Instant::now();
                let error = tester.fails(json!({"click_id": {"id": id}})).await;
                assert_eq!(error.code(), ErrorCode::ElementNotFound, "{error}");
                assert!(error.to_string().contains(&format!("element {id} ")), "{error}");
                times.push(begun.elapsed());
            }
            assert!(times.iter().min().unwrap() < &Duration::from_secs(1), "{times:?}");
        }
    });
}
