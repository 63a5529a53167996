//! All buttons of the mouse, modifiers, the wheel and drags, and keys that stay pressed.

use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    fixture::with_instance,
    table::{
        Fails, IsTrue, Logged, NotLogged, Run, UrlEndsWith, Visit, by_id, by_point, by_point_with, table,
    },
};

table! {
    right_click_opens_the_context_menu: "/course/mouse" => [by_point_with("mouse_click", "#pad", r#"{"button":"right"}"#),
        Logged("mousedown button=2 buttons=2 detail=1 mods=-"), Logged("contextmenu button=2 buttons=2 detail=0 mods=-")];
    middle_click_is_an_auxclick: "/course/mouse" => [by_point_with("mouse_click", "#pad", r#"{"button":"MIDDLE"}"#),
        Logged("auxclick button=1 buttons=0 detail=1 mods=-"), NotLogged("click button=0 buttons=0 detail=1 mods=-")];
    left_click_is_the_default: "/course/mouse" => [by_point("mouse_click", "#pad"), Logged("click button=0 buttons=0 detail=1 mods=-")];
    double_click_fires_dblclick: "/course/mouse" => [by_point_with("mouse_click", "#pad", r#"{"clicks":2}"#), Logged("click button=0 buttons=0 detail=2 mods=-"),
        Logged("dblclick button=0 buttons=0 detail=2 mods=-")];
    double_click_selects_a_word: "/course/mouse" => [by_point_with("mouse_click", "#words", r#"{"clicks":"2"}"#), IsTrue("/^(alpha|beta|gamma) ?$/.test(getSelection().toString())")];
    triple_click_selects_the_paragraph: "/course/mouse" => [by_point_with("mouse_click", "#words", r#"{"clicks":3}"#), IsTrue("getSelection().toString().trim() === 'alpha beta gamma'")];
    click_holds_modifier_keys: "/course/mouse" => [by_point_with("mouse_click", "#pad", r#"{"keys":["ctrl","shift"]}"#), Logged("click button=0 buttons=0 detail=1 mods=ctrl+shift"),
        by_point("mouse_click", "#pad"), Logged("click button=0 buttons=0 detail=1 mods=-")];
    only_modifiers_are_held: "/course/mouse" => [Fails(&by_point_with("mouse_click", "#pad", r#"{"keys":"a"}"#), ErrorCode::BadRequest, "\"a\" is not a modifier")];
    button_stays_pressed_between_commands: "/course/mouse" => [by_point("mouse_down", "#pad"), Logged("mousedown button=0 buttons=1 detail=1 mods=-"),
        by_point("mouse_move", "#pad"), Logged("move buttons=1"), by_point("mouse_up", "#pad"), Logged("click button=0 buttons=0 detail=1 mods=-")];
    wheel_turns_by_dx_and_dy: "/course/mouse" => [by_point_with("mouse_wheel", "#pad", r#"{"dx":30,"dy":-20}"#), Logged("wheel 30 -20 mods=-"),
        by_point_with("mouse_wheel", "#box", r#"{"dx":110,"dy":55}"#), IsTrue("box.scrollLeft === 110 && box.scrollTop === 55")];
    point_outside_the_viewport_is_refused: "/course/mouse" => [Fails(&Run(r#"{"mouse_click":{"x":5000,"y":1}}"#), ErrorCode::BadRequest, "outside the viewport"),
        Fails(&Run(r#"{"drag":{"path":[[1,1],[1,5000]]}}"#), ErrorCode::BadRequest, "outside the viewport")];
    type_text_goes_to_the_focus: "/course/keys" => [by_id("click_id", "#target"), Run(r#"{"type_text":{"text":"Hi é\n"}}"#), IsTrue("target.value === 'Hi é'"),
        Logged("keydown key=H code=KeyH mods=-"), Logged("keydown key=Enter code=Enter mods=-")];
    key_stays_pressed_until_key_up: "/course/keys" => [by_id("click_id", "#target"), Run(r#"{"key_down":{"key":"shift"}}"#), Run(r#"{"keypress":{"keys":"a"}}"#),
        Logged("keydown key=A code=KeyA mods=shift"), Run(r#"{"type_text":{"text":"b1"}}"#), Run(r#"{"key_up":{"key":"Shift"}}"#), Run(r#"{"keypress":{"keys":"c"}}"#), IsTrue("target.value === 'AB!c'")];
    chord_is_a_string: "/course/keys" => [Run(r#"{"keypress":{"keys":"ctrl+k"}}"#), Logged("shortcut"), by_id("click_id", "#area"), Run(r#"{"type_text":{"text":"old words"}}"#),
        Run(r#"{"keypress":{"keys":"Control+Shift+ArrowLeft"}}"#), Run(r#"{"keypress":{"keys":"Delete"}}"#), IsTrue("area.value === 'old '")];
    unknown_key_is_refused: "/course/keys" => [Fails(&Run(r#"{"key_down":{"key":"anykey"}}"#), ErrorCode::BadRequest, "\"anykey\" is not a key")];
    forward_undoes_back: "/course/arrived" => [Visit("/course/mouse"), Run(r#"{"back":{}}"#), UrlEndsWith("/course/arrived"), Run(r#"{"forward":{}}"#), UrlEndsWith("/course/mouse"),
        Run(r#"{"forward":{}}"#), UrlEndsWith("/course/mouse")];
}

#[test]
fn drag_works_by_mouse_events_and_by_the_browser() {
    with_instance(async |tester| {
        tester.visit("/course/mouse").await;
        let (from, to) = (tester.find("#source").await.centre(), tester.find("#target").await.centre());
        tester.run(json!({"drag": {"path": [from, to]}})).await;
        tester.run_step(&Logged("dropped parcel")).await;
        tester.run_step(&Logged("dragend")).await;
        let (x, y) = tester.find("#handle").await.centre();
        tester.run(json!({"drag": {"path": [[x, y], [x + 40.0, y], [x + 90.0, y + 5.0]]}})).await;
        tester.run_step(&Logged("handle at 90px")).await;
        let (x, y) = tester.find("#canvas").await.centre();
        tester.run(json!({"drag": {"path": [[x - 50.0, y], [x, y + 20.0], [x + 50.0, y]]}})).await;
        assert!(
            tester.log().await.iter().any(|line| line.starts_with("line of 1")),
            "ten moves and the release"
        );
        // The mouse works as before after a drop.
        tester.run_step(&by_point("mouse_click", "#pad")).await;
        tester.run_step(&Logged("click button=0 buttons=0 detail=1 mods=-")).await;
    });
}

#[test]
fn drag_and_drop_works_step_by_step() {
    with_instance(async |tester| {
        tester.visit("/course/mouse").await;
        let (from, to) = (tester.find("#source").await.centre(), tester.find("#target").await.centre());
        tester.run(json!({"mouse_down": {"x": from.0, "y": from.1}})).await;
        for share in [0.2, 0.6, 1.0] {
            let (x, y) = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            tester.run(json!({"mouse_move": {"x": x, "y": y}})).await;
        }
        tester.run(json!({"mouse_up": {"x": to.0, "y": to.1}})).await;
        tester.run_step(&Logged("dropped parcel")).await;
    });
}
