//! Windows, dialogs, permissions and downloads: every window ends in the single page, and nothing blocks it.

use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    fixture::with_instance,
    table::{
        Eventually, Fails, HasText, IsTrue, Logged, NotLogged, Run, SingleWindow, UrlEndsWith, Visit, by_id,
        by_id_with, table,
    },
};

const BACK: crate::common::table::Step = Run(r#"{"back":{}}"#);

table! {
    target_blank_loads_in_page: "/course/popups" => [by_id("click_id", "#blank"), UrlEndsWith("/course/opened?by=blank"), SingleWindow, by_id("click_id", "#here"),
        HasText("#here", "Clicked"), BACK, UrlEndsWith("/course/popups")];
    target_blank_noopener_loads_in_page: "/course/popups" => [by_id("click_id", "#noopener"), UrlEndsWith("/course/opened?by=noopener"), SingleWindow, BACK, UrlEndsWith("/course/popups")];
    named_target_loads_in_page: "/course/popups" => [by_id("click_id", "#named"), UrlEndsWith("/course/opened?by=named"), SingleWindow, BACK, UrlEndsWith("/course/popups")];
    get_form_target_loads_in_page: "/course/popups" => [by_id_with("fill_id", "#get-word", r#"{"value":"tea","delete_existing":true}"#),
        UrlEndsWith("/course/opened?by=get-form&word=tea"), SingleWindow, BACK, UrlEndsWith("/course/popups")];
    post_form_target_replaces_page: "/course/popups" => [by_id("click_id", "#post-form"), UrlEndsWith("/course/opened"), HasText("#method", "POST"),
        HasText("#field-word", "hello"), SingleWindow, by_id("click_id", "#here"), HasText("#here", "Clicked"), BACK, UrlEndsWith("/course/popups"), SingleWindow,
        by_id("click_id", "#blank"), UrlEndsWith("/course/opened?by=blank"), BACK, UrlEndsWith("/course/popups")];
    window_open_loads_in_page: "/course/popups" => [by_id("click_id", "#open"), UrlEndsWith("/course/opened?by=open"), SingleWindow, BACK, UrlEndsWith("/course/popups")];
    window_open_with_size_loads_in_page: "/course/popups" => [by_id("click_id", "#open-features"), UrlEndsWith("/course/opened?by=open-features"), SingleWindow,
        IsTrue("innerWidth === 1280 && innerHeight === 768"), BACK, UrlEndsWith("/course/popups")];
    window_open_then_location_loads_in_page: "/course/popups" => [by_id("click_id", "#open-then-set"), UrlEndsWith("/course/opened?by=open-then-set"), SingleWindow, BACK,
        UrlEndsWith("/course/popups")];
    window_open_then_later_location_loads_in_page: "/course/popups" => [by_id("click_id", "#open-then-later"), UrlEndsWith("/course/opened?by=open-then-later"), SingleWindow, BACK,
        UrlEndsWith("/course/popups")];
    written_window_replaces_page: "/course/popups" => [by_id("click_id", "#open-then-write"), HasText("#written", "Written into a new window"), SingleWindow,
        IsTrue("innerWidth === 1280 && innerHeight === 768"), BACK, UrlEndsWith("/course/popups")];
    window_opened_by_timer_loads_in_page: "/course/popups" => [by_id("click_id", "#open-timer"), Eventually("location.search === '?by=open-timer'"), SingleWindow];
    window_opened_after_fetch_loads_in_page: "/course/popups" => [by_id("click_id", "#open-fetch"), UrlEndsWith("/course/opened?by=open-fetch"), SingleWindow, BACK,
        UrlEndsWith("/course/popups")];
    only_one_of_twenty_windows_loads: "/course/popups" => [by_id("click_id", "#flood"), IsTrue("location.search.startsWith('?by=flood')"), SingleWindow, by_id("click_id", "#here"),
        HasText("#here", "Clicked"), BACK, UrlEndsWith("/course/popups"), SingleWindow];
    window_without_gesture_is_closed: "/course/popup-timer" => [Eventually("document.getElementById('log').textContent.includes('window')"), SingleWindow,
        by_id("click_id", "#here"), Logged("clicked here"), UrlEndsWith("/course/popup-timer"), SingleWindow];

    alert_is_accepted: "/course/dialogs" => [by_id("click_id", "#alert"), Logged("alert closed")];
    confirm_is_accepted: "/course/dialogs" => [by_id("click_id", "#confirm"), Logged("confirm true")];
    prompt_returns_its_default: "/course/dialogs" => [by_id("click_id", "#prompt"), Logged("prompt nobody")];
    two_dialogs_are_accepted: "/course/dialogs" => [by_id("click_id", "#two"), Logged("both closed"), by_id("click_id", "#after"), Logged("clicked after")];
    late_dialog_is_accepted: "/course/dialogs" => [by_id("click_id", "#later"), Eventually("document.getElementById('log').textContent.includes('late alert closed')"),
        by_id("click_id", "#after"), Logged("clicked after")];
    print_does_not_block: "/course/dialogs" => [by_id("click_id", "#print"), Logged("print returned"), by_id("click_id", "#after"), Logged("clicked after"), SingleWindow];
    dialog_on_load_is_accepted: "/course/dialog-onload" => [Logged("alert closed"), by_id("click_id", "#after"), Logged("clicked after")];
    fifty_dialogs_are_accepted: "/course/dialog-loop" => [by_id("click_id", "#loop"), Logged("fifty closed"), by_id("click_id", "#after"), Logged("clicked after")];
    link_leaves_beforeunload_page: "/course/beforeunload" => [by_id_with("fill_id", "#touch", r#"{"value":"x"}"#), by_id("click_id", "#leave"),
        UrlEndsWith("/course/arrived?by=beforeunload")];
    script_leaves_beforeunload_page: "/course/beforeunload" => [by_id_with("fill_id", "#touch", r#"{"value":"x"}"#), by_id("click_id", "#assign"),
        UrlEndsWith("/course/arrived?by=assign")];
    reload_leaves_beforeunload_page: "/course/beforeunload" => [by_id_with("fill_id", "#touch", r#"{"value":"x"}"#), by_id("click_id", "#reload"),
        IsTrue("document.getElementById('log').textContent === ''")];
    visit_leaves_beforeunload_page: "/course/beforeunload" => [by_id_with("fill_id", "#touch", r#"{"value":"x"}"#), Visit("/course/arrived"), HasText("#result", "done")];
    back_leaves_beforeunload_page: "/course/arrived" => [Visit("/course/beforeunload"), by_id_with("fill_id", "#touch", r#"{"value":"x"}"#), BACK,
        UrlEndsWith("/course/arrived")];

    permissions_are_denied: "/course/permissions" => [by_id("click_id", "#notifications"), Logged("notifications: denied"), by_id("click_id", "#geolocation"),
        IsTrue("document.getElementById('log').textContent.includes('geolocation: refused')"), by_id("click_id", "#camera"),
        Eventually("document.getElementById('log').textContent.includes('camera: refused')"), by_id("click_id", "#microphone"),
        Eventually("document.getElementById('log').textContent.includes('microphone: refused')"), by_id("click_id", "#clipboard-read"),
        Eventually("document.getElementById('log').textContent.includes('clipboard-read: read 0 characters')"), by_id("click_id", "#midi"),
        Eventually("document.getElementById('log').textContent.includes('midi: refused')")];
    fullscreen_and_pointer_lock_do_not_block: "/course/permissions" => [by_id("click_id", "#screen"),
        Eventually("/screen: (refused|granted)/.test(document.getElementById('log').textContent)"), by_id("click_id", "#persistent-storage"),
        Eventually("/persistent-storage: (true|false)/.test(document.getElementById('log').textContent)"), by_id("click_id", "#pointer-lock"),
        Eventually("/pointer-lock: (refused|granted)/.test(document.getElementById('log').textContent)"), by_id("click_id", "#fullscreen"),
        Eventually("/fullscreen: (refused|granted)/.test(document.getElementById('log').textContent)"),
        IsTrue("innerWidth === 1280 && innerHeight === 768")];
    click_works_with_locked_pointer: "/course/permissions" => [by_id("click_id", "#pointer-lock"),
        Eventually("/pointer-lock: granted/.test(document.getElementById('log').textContent)"), by_id("click_id", "#persistent-storage"),
        Eventually("/persistent-storage: (true|false)/.test(document.getElementById('log').textContent)"), by_id("click_id", "#pointer-lock"),
        Eventually("document.getElementById('log').textContent.split('pointer-lock: granted').length === 3"),
        crate::common::table::by_point("click_coords", "#screen"), Eventually("/screen: asked/.test(document.getElementById('log').textContent)")];
    permission_request_on_load_does_not_block: "/course/permissions-onload" => [by_id("click_id", "#here"), Logged("clicked here"), SingleWindow];

    denied_downloads_keep_page: "/course/downloads" => [by_id("click_id", "#attachment"), Logged("clicked attachment"), by_id("click_id", "#download"),
        Logged("clicked download"), by_id("click_id", "#binary"), Logged("clicked binary"), by_id("click_id", "#blob"), Logged("clicked blob"),
        by_id("click_id", "#location"), Logged("clicked location"), by_id("click_id", "#after"), Logged("clicked after"), UrlEndsWith("/course/downloads")];
    download_in_window_keeps_page: "/course/downloads" => [by_id("click_id", "#blank"), Logged("clicked blank"), SingleWindow, by_id("click_id", "#after"), Logged("clicked after"),
        UrlEndsWith("/course/downloads")];
    download_on_load_keeps_page: "/course/download-onload" => [by_id("click_id", "#here"), UrlEndsWith("/course/download-onload"), SingleWindow];
    visit_to_download_fails: "/course/downloads" => [Fails(&Visit("/course/download/report.csv"), ErrorCode::NavigationFailed, "download"),
        by_id("click_id", "#after"), Logged("clicked after"), UrlEndsWith("/course/downloads")];

    links_to_other_schemes_keep_page: "/course/schemes" => [by_id("click_id", "#mailto"), by_id("click_id", "#tel"), by_id("click_id", "#javascript"), Logged("ran javascript"),
        by_id("click_id", "#javascript-void"), Logged("clicked void"), by_id("click_id", "#file"), Logged("clicked file"), by_id("click_id", "#data"),
        Logged("clicked data"), by_id("click_id", "#unknown"), Logged("clicked unknown"), by_id("click_id", "#after"), Logged("clicked after"),
        UrlEndsWith("/course/schemes"), SingleWindow];
    link_to_about_blank_works: "/course/schemes" => [by_id("click_id", "#about"), UrlEndsWith("about:blank"), BACK, UrlEndsWith("/course/schemes")];
    links_to_chrome_urls_keep_page: "/course/crash" => [by_id("click_id", "#chrome-crash"), by_id("click_id", "#after"), Logged("clicked after"),
        NotLogged("clicked die"), UrlEndsWith("/course/crash")];
}

/// Opens windows with URLs that the agent must not reach, and windows without a URL.
#[test]
fn unusual_windows_keep_page_usable() {
    for (open_script, expected) in [
        ("window.open('file:///etc/hostname')", "location.protocol === 'http:'"),
        ("window.open('chrome://version')", "location.protocol === 'http:'"),
        ("window.open('javascript:alert(1)')", "location.protocol === 'http:'"),
        ("window.open()", "location.protocol === 'http:'"),
        ("window.open('about:blank').close()", "location.protocol === 'http:'"),
        (
            "window.open(URL.createObjectURL(new Blob(['<h1 id=made>Made</h1>'], {type: 'text/html'})))",
            "document.getElementById('made')?.textContent === 'Made'",
        ),
    ] {
        with_instance(async |tester| {
            tester.visit("/course/arrived").await;
            let button = format!(
                "document.body.insertAdjacentHTML('afterbegin', '<button id=go>Go</button>'); go.onclick = () => {{ {open_script} }}; 0"
            );
            tester.js(&button).await;
            tester.run_step(&by_id("click_id", "#go")).await;
            tester.wait_until(expected).await;
            tester.wait_until_single_window().await;
            tester.visit("/course/buttons").await;
            tester.run_step(&by_id("click_id", "#up")).await;
            tester.run_step(&HasText("#count", "1")).await;
        });
    }
}

#[test]
fn page_that_closes_itself_is_replaced() {
    with_instance(async |tester| {
        tester.visit("/course/popups").await;
        tester.run_step(&by_id("click_id", "#post-form")).await;
        tester.run_step(&HasText("#method", "POST")).await;
        tester.js("setTimeout(() => window.close(), 0); 0").await;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tester
            .try_run(&json!({"get_page_metadata": {}}))
            .await
            .is_ok_and(|metadata| metadata["title"] != "Popups · Obstacle course")
        {
            assert!(std::time::Instant::now() < deadline, "the closed page is still there");
        }
        tester.run_step(&by_id("click_id", "#blank")).await;
        tester.run_step(&UrlEndsWith("/course/opened?by=blank")).await;
        tester.run_step(&SingleWindow).await;
    });
}
