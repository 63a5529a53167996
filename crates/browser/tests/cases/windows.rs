//! Whatever opens a window ends in the one page the agent sees; whatever asks a question is answered.

use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    stage::with_instance,
    table::{Fails, Holds, IsAt, Later, NeverSays, OneWindow, Run, Says, Shows, Visit, on, on_with, table},
};

const BACK: crate::common::table::Step = Run(r#"{"back":{}}"#);

table! {
    target_blank: "/course/popups" => [on("click_id", "#blank"), IsAt("/course/opened?by=blank"), OneWindow, on("click_id", "#here"),
        Shows("#here", "Clicked"), BACK, IsAt("/course/popups")];
    target_blank_noopener: "/course/popups" => [on("click_id", "#noopener"), IsAt("/course/opened?by=noopener"), OneWindow, BACK, IsAt("/course/popups")];
    target_with_a_name: "/course/popups" => [on("click_id", "#named"), IsAt("/course/opened?by=named"), OneWindow, BACK, IsAt("/course/popups")];
    get_form_into_a_window: "/course/popups" => [on_with("fill_id", "#get-word", r#"{"value":"tea","delete_existing":true}"#),
        IsAt("/course/opened?by=get-form&word=tea"), OneWindow, BACK, IsAt("/course/popups")];
    post_form_into_a_window: "/course/popups" => [on("click_id", "#post-form"), IsAt("/course/opened"), Shows("#method", "POST"),
        Shows("#field-word", "hello"), OneWindow, on("click_id", "#here"), Shows("#here", "Clicked"), BACK, IsAt("/course/popups"), OneWindow,
        on("click_id", "#blank"), IsAt("/course/opened?by=blank"), BACK, IsAt("/course/popups")];
    window_open: "/course/popups" => [on("click_id", "#open"), IsAt("/course/opened?by=open"), OneWindow, BACK, IsAt("/course/popups")];
    window_open_with_a_size: "/course/popups" => [on("click_id", "#open-features"), IsAt("/course/opened?by=open-features"), OneWindow,
        Holds("innerWidth === 1280 && innerHeight === 768"), BACK, IsAt("/course/popups")];
    window_open_then_location: "/course/popups" => [on("click_id", "#open-then-set"), IsAt("/course/opened?by=open-then-set"), OneWindow, BACK,
        IsAt("/course/popups")];
    window_open_then_location_later: "/course/popups" => [on("click_id", "#open-then-later"), IsAt("/course/opened?by=open-then-later"), OneWindow, BACK,
        IsAt("/course/popups")];
    window_open_then_write: "/course/popups" => [on("click_id", "#open-then-write"), Shows("#written", "Written into a new window"), OneWindow,
        Holds("innerWidth === 1280 && innerHeight === 768"), BACK, IsAt("/course/popups")];
    window_open_from_a_timer: "/course/popups" => [on("click_id", "#open-timer"), Later("location.search === '?by=open-timer'"), OneWindow];
    window_open_after_a_fetch: "/course/popups" => [on("click_id", "#open-fetch"), IsAt("/course/opened?by=open-fetch"), OneWindow, BACK,
        IsAt("/course/popups")];
    twenty_windows_at_once: "/course/popups" => [on("click_id", "#flood"), Holds("location.search.startsWith('?by=flood')"), OneWindow, on("click_id", "#here"),
        Shows("#here", "Clicked"), BACK, IsAt("/course/popups"), OneWindow];
    a_window_nobody_asked_for: "/course/popup-timer" => [Later("document.getElementById('log').textContent.includes('window')"), OneWindow,
        on("click_id", "#here"), Says("clicked here"), IsAt("/course/popup-timer"), OneWindow];

    alert_is_closed: "/course/dialogs" => [on("click_id", "#alert"), Says("alert closed")];
    confirm_is_confirmed: "/course/dialogs" => [on("click_id", "#confirm"), Says("confirm true")];
    prompt_gets_its_default: "/course/dialogs" => [on("click_id", "#prompt"), Says("prompt nobody")];
    two_dialogs: "/course/dialogs" => [on("click_id", "#two"), Says("both closed"), on("click_id", "#after"), Says("clicked after")];
    a_late_dialog: "/course/dialogs" => [on("click_id", "#later"), Later("document.getElementById('log').textContent.includes('late alert closed')"),
        on("click_id", "#after"), Says("clicked after")];
    printing_returns: "/course/dialogs" => [on("click_id", "#print"), Says("print returned"), on("click_id", "#after"), Says("clicked after"), OneWindow];
    a_dialog_on_load: "/course/dialog-onload" => [Says("alert closed"), on("click_id", "#after"), Says("clicked after")];
    fifty_dialogs: "/course/dialog-loop" => [on("click_id", "#loop"), Says("fifty closed"), on("click_id", "#after"), Says("clicked after")];
    beforeunload_by_link: "/course/beforeunload" => [on_with("fill_id", "#touch", r#"{"value":"x"}"#), on("click_id", "#leave"),
        IsAt("/course/arrived?by=beforeunload")];
    beforeunload_by_script: "/course/beforeunload" => [on_with("fill_id", "#touch", r#"{"value":"x"}"#), on("click_id", "#assign"),
        IsAt("/course/arrived?by=assign")];
    beforeunload_by_reload: "/course/beforeunload" => [on_with("fill_id", "#touch", r#"{"value":"x"}"#), on("click_id", "#reload"),
        Holds("document.getElementById('log').textContent === ''")];
    beforeunload_by_visit: "/course/beforeunload" => [on_with("fill_id", "#touch", r#"{"value":"x"}"#), Visit("/course/arrived"), Shows("#result", "done")];
    beforeunload_by_back: "/course/arrived" => [Visit("/course/beforeunload"), on_with("fill_id", "#touch", r#"{"value":"x"}"#), BACK,
        IsAt("/course/arrived")];

    permissions_are_denied: "/course/permissions" => [on("click_id", "#notifications"), Says("notifications: denied"), on("click_id", "#geolocation"),
        Holds("document.getElementById('log').textContent.includes('geolocation: refused')"), on("click_id", "#camera"),
        Later("document.getElementById('log').textContent.includes('camera: refused')"), on("click_id", "#microphone"),
        Later("document.getElementById('log').textContent.includes('microphone: refused')"), on("click_id", "#clipboard-read"),
        Later("document.getElementById('log').textContent.includes('clipboard-read: refused')"), on("click_id", "#midi"),
        Later("document.getElementById('log').textContent.includes('midi: refused')")];
    screen_fullscreen_and_pointer_lock_never_block: "/course/permissions" => [on("click_id", "#screen"),
        Later("/screen: (refused|granted)/.test(document.getElementById('log').textContent)"), on("click_id", "#persistent-storage"),
        Later("/persistent-storage: (true|false)/.test(document.getElementById('log').textContent)"), on("click_id", "#pointer-lock"),
        Later("/pointer-lock: (refused|granted)/.test(document.getElementById('log').textContent)"), on("click_id", "#fullscreen"),
        Later("/fullscreen: (refused|granted)/.test(document.getElementById('log').textContent)"),
        Holds("innerWidth === 1280 && innerHeight === 768")];
    a_locked_pointer_still_clicks: "/course/permissions" => [on("click_id", "#pointer-lock"),
        Later("/pointer-lock: granted/.test(document.getElementById('log').textContent)"), on("click_id", "#persistent-storage"),
        Later("/persistent-storage: (true|false)/.test(document.getElementById('log').textContent)"), on("click_id", "#pointer-lock"),
        Later("document.getElementById('log').textContent.split('pointer-lock: granted').length === 3"),
        crate::common::table::at("click_coords", "#screen"), Later("/screen: asked/.test(document.getElementById('log').textContent)")];
    permissions_asked_for_on_load: "/course/permissions-onload" => [on("click_id", "#here"), Says("clicked here"), OneWindow];

    downloads_leave_the_page: "/course/downloads" => [on("click_id", "#attachment"), Says("clicked attachment"), on("click_id", "#download"),
        Says("clicked download"), on("click_id", "#binary"), Says("clicked binary"), on("click_id", "#blob"), Says("clicked blob"),
        on("click_id", "#location"), Says("clicked location"), on("click_id", "#after"), Says("clicked after"), IsAt("/course/downloads")];
    a_download_in_a_window: "/course/downloads" => [on("click_id", "#blank"), Says("clicked blank"), OneWindow, on("click_id", "#after"), Says("clicked after"),
        IsAt("/course/downloads")];
    a_download_on_load: "/course/download-onload" => [on("click_id", "#here"), IsAt("/course/download-onload"), OneWindow];
    visiting_a_download_is_an_error: "/course/downloads" => [Fails(&Visit("/course/download/report.csv"), ErrorCode::NavigationFailed, "download"),
        on("click_id", "#after"), Says("clicked after"), IsAt("/course/downloads")];

    other_schemes_lead_nowhere: "/course/schemes" => [on("click_id", "#mailto"), on("click_id", "#tel"), on("click_id", "#javascript"), Says("ran javascript"),
        on("click_id", "#javascript-void"), Says("clicked void"), on("click_id", "#file"), Says("clicked file"), on("click_id", "#data"),
        Says("clicked data"), on("click_id", "#unknown"), Says("clicked unknown"), on("click_id", "#after"), Says("clicked after"),
        IsAt("/course/schemes"), OneWindow];
    about_blank_by_a_link: "/course/schemes" => [on("click_id", "#about"), IsAt("about:blank"), BACK, IsAt("/course/schemes")];
    chrome_addresses_lead_nowhere: "/course/crash" => [on("click_id", "#chrome-crash"), on("click_id", "#after"), Says("clicked after"),
        NeverSays("clicked die"), IsAt("/course/crash")];
}

/// Windows the course does not have: what they try must not get the agent anywhere it may not go.
#[test]
fn odd_windows_do_no_harm() {
    for (opens, then) in [
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
                "document.body.insertAdjacentHTML('afterbegin', '<button id=go>Go</button>'); go.onclick = () => {{ {opens} }}; 0"
            );
            tester.js(&button).await;
            tester.take(&on("click_id", "#go")).await;
            tester.until(then).await;
            tester.until_one_window().await;
            tester.visit("/course/buttons").await;
            tester.take(&on("click_id", "#up")).await;
            tester.take(&Shows("#count", "1")).await;
        });
    }
}

#[test]
fn a_page_that_closes_itself_does_not_take_the_instance_along() {
    with_instance(async |tester| {
        tester.visit("/course/popups").await;
        tester.take(&on("click_id", "#post-form")).await;
        tester.take(&Shows("#method", "POST")).await;
        tester.js("setTimeout(() => window.close(), 0); 0").await;
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tester
            .try_run(&json!({"get_page_metadata": {}}))
            .await
            .is_ok_and(|seen| seen["title"] != "Popups · Obstacle course")
        {
            assert!(std::time::Instant::now() < end, "the closed page is still there");
        }
        tester.take(&on("click_id", "#blank")).await;
        tester.take(&IsAt("/course/opened?by=blank")).await;
        tester.take(&OneWindow).await;
    });
}
