//! When is a page done? The very next look after a command shows its effect, and nobody waits longer than that.

use std::time::{Duration, Instant};

use browser::{ObserveRequest, Options, SettleOptions, Settled};
use proto::{Command, InteractionMode};
use serde_json::json;

use crate::common::{
    stage::{with_instance, with_options},
    table::{Holds, IsAt, Shows, on, table},
};

table! {
    a_fetch_of_300_ms_is_waited_for: "/course/settle/fetch" => [on("click_id", "#go"), Shows("#result", "done")];
    three_fetches_in_a_row: "/course/settle/chain" => [on("click_id", "#go"), Shows("#result", "done")];
    a_slow_navigation_by_link: "/course/settle/navigate" => [on("click_id", "#go"), IsAt("/course/slow?ms=500"), Shows("#result", "done")];
    a_slow_navigation_by_form: "/course/settle/navigate" => [on("click_id", "#form"), IsAt("/course/slow?ms=500"), Shows("#result", "done")];
    location_is_assigned: "/course/settle/location" => [on("click_id", "#go"), IsAt("/course/arrived?by=location"), Shows("#result", "done")];
    location_is_assigned_slowly: "/course/settle/location" => [on("click_id", "#slow"), Shows("#result", "done")];
    a_navigation_from_a_timer_of_zero: "/course/settle/timeout" => [on("click_id", "#go"), IsAt("/course/arrived?by=timeout")];
    a_slow_navigation_from_a_timer_of_zero: "/course/settle/timeout" => [on("click_id", "#slow"), Shows("#result", "done")];
    a_form_submitted_by_script: "/course/settle/submit" => [on("click_id", "#go"), Shows("#method", "POST"), Shows("#field-word", "hello")];
    two_redirects: "/course/settle/redirect" => [on("click_id", "#go"), IsAt("/course/arrived?by=redirect"), Shows("#result", "done")];
    two_slow_redirects: "/course/settle/redirect" => [on("click_id", "#slow"), IsAt("/course/arrived?by=redirect"), Shows("#result", "done")];
    a_rewritten_document: "/course/settle/write" => [on("click_id", "#go"), Shows("#result", "done"), Holds("document.title === 'Rewritten'")];
    a_transition_runs_to_its_end: "/course/settle/transition" => [on("click_id", "#go"), Shows("#result", "done"),
        Holds("new DOMMatrix(getComputedStyle(ball).transform).e === 700")];
    polling: "/course/settle/polling" => [on("click_id", "#go"), Shows("#result", "done")];
    a_socket_that_echoes: "/course/settle/websocket" => [on("click_id", "#go"), Shows("#result", "done")];
    a_stream_of_events: "/course/settle/events" => [on("click_id", "#go"), Shows("#result", "done")];
    an_endless_css_animation: "/course/settle/css-animation" => [on("click_id", "#go"), Shows("#result", "done")];
    a_change_in_the_frame_after_next: "/course/settle/second-frame" => [on("click_id", "#go"), Shows("#result", "done")];
    an_endless_script_animation: "/course/settle/raf" => [on("click_id", "#go"), Shows("#result", "done")];
    a_fetch_that_never_answers: "/course/settle/never-fetch" => [on("click_id", "#go"), Shows("#result", "asked")];
}

/// What other helpers on this machine may add to any wait.
const MARGIN: Duration = Duration::from_secs(4);

async fn click(tester: &mut crate::common::tester::Tester, selector: &str) -> Settled {
    let (x, y) = tester.find(selector).await.centre();
    tester.settled(json!({"click_coords": {"x": x, "y": y}})).await
}

#[test]
fn pages_that_never_stop_stay_within_the_budget() {
    for page in ["polling", "websocket", "events", "css-animation", "raf", "never-fetch"] {
        with_instance(async |tester| {
            tester.visit(&format!("/course/settle/{page}")).await;
            let begun = Instant::now();
            let settled = click(tester, "#go").await;
            let budget = SettleOptions::default().budget;
            assert!(begun.elapsed() < budget + MARGIN, "{page}: {settled:?}");
        });
    }
}

#[test]
fn a_page_known_never_to_rest_is_not_waited_for_again() {
    with_instance(async |tester| {
        tester.visit("/course/settle/raf").await;
        let mut times = Vec::new();
        for _ in 0..4 {
            times.push(click(tester, "#go").await.elapsed);
        }
        let budget = SettleOptions::default().budget;
        assert!(times[1..].iter().min().unwrap() < &budget, "{times:?}");
    });
}

/// A picture that follows at once has the page draw a frame of its own: what happens in it is on the picture.
#[test]
fn a_picture_taken_at_once_shows_the_frame_after_next() {
    with_instance(async |tester| {
        for round in 0..5 {
            tester.visit("/course/settle/second-frame").await;
            let (x, y) = tester.find("#sign").await.centre();
            let (go_x, go_y) = tester.find("#go").await.centre();
            let body = json!({"click_coords": {"x": go_x, "y": go_y}});
            let command = Command::from_json(body.as_object().unwrap(), &[]).unwrap();
            let request = ObserveRequest::screenshot(InteractionMode::Coordinates);
            let stepped = tester.instance.step(&command, &request).await.unwrap();
            let picture = stepped.observation.screenshot.unwrap();
            assert_eq!(colour_at(&picture.bytes, x, y), [255, 0, 0], "round {round}: {:?}", stepped.settled);
        }
    });
}

fn colour_at(png: &[u8], x: f64, y: f64) -> [u8; 3] {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let at = y as usize * info.line_size + x as usize * info.color_type.samples();
    [pixels[at], pixels[at + 1], pixels[at + 2]]
}

#[test]
fn budgets_are_options() {
    let settle = SettleOptions { budget: Duration::from_millis(300), ..SettleOptions::default() };
    with_options(&Options { settle, ..Options::default() }, async |tester| {
        tester.visit("/course/settle/never-fetch").await;
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(click(tester, "#go").await.elapsed);
        }
        assert!(times.iter().min().unwrap() < &Duration::from_millis(1500), "{times:?}");
        assert!(times.iter().min().unwrap() >= &Duration::from_millis(290), "{times:?}");
    });
}

/// The best of several tries: the machine may be busy with other things, the browser may not.
#[test]
fn doing_nothing_takes_well_under_150_ms() {
    with_instance(async |tester| {
        tester.visit("/course/settle/nothing").await;
        let mut times = Vec::new();
        for _ in 0..12 {
            let begun = Instant::now();
            let settled = click(tester, "#words").await;
            assert!(settled.quiet, "{settled:?}");
            times.push(begun.elapsed());
        }
        assert!(times.iter().min().unwrap() < &Duration::from_millis(120), "{times:?}");
    });
}

#[test]
fn a_failed_visit_is_told_quickly() {
    with_instance(async |tester| {
        tester.visit("/course/settle/nothing").await;
        let mut times = Vec::new();
        for _ in 0..4 {
            let begun = Instant::now();
            tester.fails(json!({"visit_page": {"url": "http://127.0.0.1:1/"}})).await;
            times.push(begun.elapsed());
        }
        assert!(times.iter().min().unwrap() < &Duration::from_millis(800), "{times:?}");
    });
}

#[test]
fn a_lazy_link_far_away_is_no_navigation() {
    with_instance(async |tester| {
        tester.visit("/course/schemes").await;
        let mut times = Vec::new();
        for _ in 0..4 {
            times.push(click(tester, "#javascript-void").await.elapsed);
        }
        assert!(times.iter().min().unwrap() < &Duration::from_millis(900), "{times:?}");
    });
}
