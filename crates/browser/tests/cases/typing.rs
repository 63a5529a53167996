//! Typing: into fields of every kind, by number and by point, with the events a person's typing fires.

use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    stage::with_instance,
    table::{Fails, Holds, NeverSays, Run, Says, Shows, Step, at, at_with, on, on_with, table},
};

/// The log of `/course/keys`, and only that.
const SPELLED_A: &str = "JSON.stringify(document.getElementById('log').textContent.trim().split('\\n').slice(-5)) === JSON.stringify([
    'keydown key=a code=KeyA mods=-', 'keypress key=a code=KeyA mods=-', 'beforeinput insertText \"a\"', 'input insertText \"a\"',
    'keyup key=a code=KeyA mods=-'])";

const fn fill(element: &'static str, arguments: &'static str) -> Step {
    on_with("fill_id", element, arguments)
}

table! {
    fill_id_appends_and_enters: "/course/inputs" => [fill("#text", r#"{"value":" and new"}"#),
        Holds("text.value === 'old words and new' || text.value === ' and newold words'"), Says("change text old words and new")];
    fill_id_replaces: "/course/inputs" => [fill("#text", r#"{"value":"new","delete_existing":true,"press_enter":false}"#),
        Holds("text.value === 'new' && !document.getElementById('log').textContent.includes('submit')")];
    fill_id_presses_enter_unless_told_not_to: "/course/inputs" => [fill("#search", r#"{"value":"tea"}"#),
        Holds("document.getElementById('log').textContent.includes('submit ') && document.getElementById('log').textContent.includes('search=tea')")];
    fill_coords: "/course/inputs" => [at_with("fill_coords", "#empty", r#"{"value":"Mira","press_enter":"false"}"#),
        Holds("empty.value === 'Mira'"), Says("input empty Mira")];
    fill_coords_replaces: "/course/inputs" => [at_with("fill_coords", "#text", r#"{"value":"Mira","delete_existing":true}"#),
        Holds("text.value === 'Mira'"), Says("change text Mira")];
    every_type_of_text: "/course/inputs" => [fill("#password", r#"{"value":"s3cret Pass!","press_enter":false}"#),
        fill("#email", r#"{"value":"a.b+c@example.org","press_enter":false}"#), fill("#number", r#"{"value":"42","press_enter":false}"#),
        fill("#tel", r#"{"value":"+49 30 1","press_enter":false}"#), fill("#url", r#"{"value":"https://a.test/?x=1&y=[2]","press_enter":false}"#),
        Holds("password.value === 's3cret Pass!' && email.value === 'a.b+c@example.org' && number.value === '42' && tel.value === '+49 30 1' && url.value === 'https://a.test/?x=1&y=[2]'")];
    a_number_is_replaced_too: "/course/inputs" => [fill("#number", r#"{"value":"42","press_enter":false}"#),
        fill("#number", r#"{"value":"7","press_enter":false,"delete_existing":true}"#), Holds("number.value === '7'")];
    a_maximum_length_holds: "/course/inputs" => [fill("#short", r#"{"value":"123456789","press_enter":false}"#),
        Holds("document.getElementById('short').value === '12345'")];
    pickers_take_their_value_whole: "/course/inputs" => [fill("#date", r#"{"value":"2026-02-28","press_enter":false}"#), Says("change date 2026-02-28"),
        fill("#time", r#"{"value":"13:45","press_enter":false}"#), Says("change time 13:45"), fill("#month", r#"{"value":"2026-02","press_enter":false}"#),
        Says("change month 2026-02"), fill("#week", r#"{"value":"2026-W07","press_enter":false}"#), Says("change week 2026-W07"),
        fill("#moment", r#"{"value":"2026-02-28T13:45","press_enter":false}"#), Says("change moment 2026-02-28T13:45"),
        fill("#range", r#"{"value":"8","press_enter":false}"#), Says("input range 8"), Says("change range 8"),
        fill("#color", r##"{"value":"#ff8800","press_enter":false}"##), Says("change color #ff8800")];
    a_value_a_picker_does_not_take_is_told: "/course/inputs" => [
        Fails(&fill("#date", r#"{"value":"next Tuesday"}"#), ErrorCode::BadRequest, "next Tuesday"), Holds("date.value === ''")];
    a_range_out_of_reach_is_clamped: "/course/inputs" => [fill("#range", r#"{"value":"400","press_enter":false}"#), Says("change range 10")];
    disabled_and_read_only_stay: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), at_with("fill_coords", "#disabled", r#"{"value":"x"}"#),
        at_with("fill_coords", "#readonly", r#"{"value":"x","delete_existing":true}"#),
        Holds("document.getElementById('disabled').value === 'stays' && document.getElementById('readonly').value === 'stays'")];
    boxes_are_ticked_by_clicks: "/course/inputs" => [on("click_id", "#check"), Says("change check true"), on("click_id", "#checked"),
        Says("change checked false"), on("click_id", "#radio-three"), Says("change radio-three true"),
        Holds("!document.getElementById('radio-two').checked")];
    buttons_that_are_inputs: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), on("click_id", "#button"), Says("clicked button"), on("click_id", "#reset"), Says("reset"),
        on("click_id", "#submit"), Holds("document.getElementById('log').dataset.last.startsWith('submit text=old+words')"),
        on("click_id", "#image"), Holds("document.getElementById('log').textContent.match(/submit/g).length === 2")];
    a_file_chooser_never_blocks: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), on("click_id", "#file"), on("click_id", "#button"), Says("clicked button"),
        at("click_coords", "#file"), on("click_id", "#check"), Says("change check true")];
    a_colour_chooser_never_blocks: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), on("click_id", "#color"), on("click_id", "#button"), Says("clicked button"),
        on("click_id", "#date"), on("click_id", "#check"), Says("change check true")];

    textarea_is_replaced: "/course/editable" => [fill("#area", r#"{"value":"one\ntwo","delete_existing":true,"press_enter":false}"#),
        Holds("area.value === 'one\\ntwo'")];
    textarea_gets_a_line_by_enter: "/course/editable" => [fill("#area", r#"{"value":"one","delete_existing":true}"#), Holds("area.value === 'one\\n'")];
    contenteditable_is_replaced: "/course/editable" => [fill("#rich", r#"{"value":"New words 🌍","delete_existing":true,"press_enter":false}"#),
        Holds("rich.innerText.trim() === 'New words 🌍'")];
    contenteditable_is_added_to: "/course/editable" => [fill("#rich", r#"{"value":"X","press_enter":false}"#),
        Holds("rich.innerText.includes('X') && rich.innerText.replace('X', '').trim() === 'Old bold words.'")];
    plaintext_only_is_replaced: "/course/editable" => [fill("#plain", r#"{"value":"a\nb","delete_existing":true,"press_enter":false}"#),
        Holds("plain.innerText.trim() === 'a\\nb'")];

    controlled_inputs_see_every_key: "/course/controlled" => [fill("#name", r#"{"value":"Ada","press_enter":false}"#), Shows("#state-name", "Ada"),
        Shows("#changes", "3"), fill("#upper", r#"{"value":"loud","press_enter":false}"#), Shows("#state-upper", "LOUD"),
        Holds("upper.value === 'LOUD'"), fill("#digits", r#"{"value":"a1b2","press_enter":false}"#), Shows("#state-digits", "12"),
        fill("#notes", r#"{"value":"x\ny","press_enter":false}"#), Shows("#state-notes", "x\ny"), on("click_id", "#save"),
        Says(r#"saved {"name":"Ada","upper":"LOUD","digits":"12","notes":"x\ny"}"#)];
    controlled_inputs_are_replaced: "/course/controlled" => [fill("#name", r#"{"value":"Ada","press_enter":false}"#),
        fill("#name", r#"{"value":"Bea 🌍","delete_existing":true,"press_enter":false}"#), Shows("#state-name", "Bea 🌍"),
        NeverSays("name restored")];

    keys_fire_the_events_of_keys: "/course/keys" => [fill("#target", r#"{"value":"a","press_enter":false}"#), Holds(SPELLED_A)];
    enter_is_a_key: "/course/keys" => [fill("#target", r#"{"value":"a"}"#), Says("keydown key=Enter code=Enter mods=-"),
        Says("keypress key=Enter code=Enter mods=-"), Says("keyup key=Enter code=Enter mods=-")];
    what_has_no_key_is_inserted: "/course/keys" => [fill("#area", r#"{"value":"é漢字👩‍🚀!","press_enter":false}"#),
        Holds("area.value === 'é漢字👩‍🚀!'"), Says(r#"input insertText "é漢字👩‍🚀""#), Says("keydown key=! code=Digit1 mods=-")];
    nothing_is_fake: "/course/keys" => [fill("#area", r#"{"value":"aé\nb","delete_existing":true}"#),
        Holds("!document.getElementById('log').textContent.includes('fake') && area.value === 'aé\\nb\\n'")];
    keypress_ctrl_a_then_typing_replaces: "/course/keys" => [fill("#area", r#"{"value":"old words","press_enter":false}"#),
        Run(r#"{"keypress":{"keys":["ctrl","a"]}}"#), Says("keydown key=a code=KeyA mods=ctrl"), Run(r#"{"keypress":{"keys":["x"]}}"#),
        Holds("area.value === 'x'")];
    keypress_shift: "/course/keys" => [at("click_coords", "#target"), Run(r#"{"keypress":{"keys":["shift","a"]}}"#),
        Says("keydown key=A code=KeyA mods=shift"), Run(r#"{"keypress":{"keys":["Shift","1"]}}"#), Holds("target.value === 'A!'")];
    keypress_shift_selects: "/course/keys" => [fill("#target", r#"{"value":"abc","press_enter":false}"#),
        Run(r#"{"keypress":{"keys":["shift","arrowleft"]}}"#), Run(r#"{"keypress":{"keys":["shift","ARROWLEFT"]}}"#),
        Run(r#"{"keypress":{"keys":["z"]}}"#), Holds("target.value === 'az'")];
    keypress_releases_in_reverse: "/course/keys" => [at("click_coords", "#target"), Run(r#"{"keypress":{"keys":["ctrl","shift","k"]}}"#),
        Holds("document.getElementById('log').textContent.trim().split('\\n').filter((line) => /^key(down|up)/.test(line)).map((line) => line.split(' ')[0] + line.split(' ')[1]).join() === 'keydownkey=Control,keydownkey=Shift,keydownkey=K,keyupkey=K,keyupkey=Shift,keyupkey=Control'")];
    keypress_shortcut_of_the_page: "/course/keys" => [Run(r#"{"keypress":{"keys":["ctrl","k"]}}"#), Says("shortcut"),
        Run(r#"{"keypress":{"keys":["esc"]}}"#), Says("escape")];
    keypress_names: "/course/keys" => [fill("#target", r#"{"value":"abc","press_enter":false}"#), Run(r#"{"keypress":{"keys":["home"]}}"#),
        Run(r#"{"keypress":{"keys":["delete"]}}"#), Run(r#"{"keypress":{"keys":["End"]}}"#), Run(r#"{"keypress":{"keys":["BackSpace"]}}"#),
        Run(r#"{"keypress":{"keys":["space"]}}"#), Run(r#"{"keypress":{"keys":["/"]}}"#), Run(r#"{"keypress":{"keys":["\\"]}}"#),
        Holds("target.value === 'b /\\\\'"), Run(r#"{"keypress":{"keys":["F2"]}}"#), Says("keydown key=F2 code=F2 mods=-"),
        Run(r#"{"keypress":{"keys":["win"]}}"#), Says("keydown key=Meta code=MetaLeft mods=meta")];
    keypress_unknown_name: "/course/keys" => [
        Fails(&Run(r#"{"keypress":{"keys":["ctrl","nosuch"]}}"#), ErrorCode::BadRequest, "nosuch"), NeverSays("keydown key=Control code=ControlLeft mods=ctrl")];
    keypress_copies_and_pastes: "/course/keys" => [fill("#target", r#"{"value":"copy","press_enter":false}"#), Run(r#"{"keypress":{"keys":["ctrl","a"]}}"#),
        Run(r#"{"keypress":{"keys":["ctrl","c"]}}"#), at("click_coords", "#area"), Run(r#"{"keypress":{"keys":["ctrl","v"]}}"#),
        Holds("area.value === 'copy'")];
    tab_and_enter_presses_the_next_button: "/course/buttons" => [on("click_id", "#up"), Run(r#"{"tab_and_enter":{}}"#), Shows("#count", "0"),
        Says("count 0")];

    typing_in_shadow_dom: "/course/shadow" => [fill("#single >> #word", r#"{"value":"one"}"#), Says("single word: one"), Says("single entered"),
        fill("#double >> #inside >> #word", r#"{"value":"deep"}"#), Says("inner word: deep"), Says("inner entered")];
    typing_in_a_frame: "/course/iframes" => [fill("#same >> #frame-input", r#"{"value":"hi"}"#), Says("same: input hi")];
    typing_in_a_frame_of_a_frame: "/course/iframes-nested" => [fill("#middle >> #innermost >> #frame-input", r#"{"value":"hi"}"#),
        Says("innermost: input hi")];
    typing_in_a_frame_of_another_origin: "/course/iframes-cross" => [fill("=Text in the frame", r#"{"value":"hi"}"#), Says("foreign: input hi")];
    typing_on_a_zoomed_page: "/course/zoom" => [fill("#text", r#"{"value":"zoomed"}"#), Says("text zoomed"),
        fill("#shrunk-input", r#"{"value":"tiny"}"#), Holds("document.getElementById('shrunk-input').value === 'tiny'")];
    typing_every_script: "/course/languages" => [fill("#anything", r#"{"value":"שלום 你好 안녕 ž 🌍"}"#), Says("anything שלום 你好 안녕 ž 🌍")];
    typing_in_a_modal: "/course/modal" => [on("click_id", "#reject"), on("click_id", "#open-dialog"), fill("#dialog-answer", r#"{"value":"yes"}"#),
        Says("dialog closed ok")];
    typing_filters_a_combobox: "/course/listbox" => [fill("#fruit", r#"{"value":"berry","press_enter":false}"#),
        Holds("fruits.children.length === 3"), on("select_option", "=Elderberry"), Says("fruits chose Elderberry")];
}

#[test]
fn a_thousand_characters_arrive_in_order() {
    with_instance(async |tester| {
        tester.visit("/course/editable").await;
        let numbers: Vec<String> = (0..200).map(|number: u32| number.to_string()).collect();
        let text = numbers.join(" ") + "😀 end";
        let id = tester.mark("#area").await;
        tester
            .run(json!({"fill_id": {"id": id, "value": text, "delete_existing": true, "press_enter": false}}))
            .await;
        assert_eq!(tester.js("area.value").await, text.as_str());
    });
}
