//! Typing into all kinds of fields, by mark id and by point, with the events of a user's typing.

use proto::ErrorCode;
use serde_json::json;

use crate::common::{
    fixture::with_instance,
    table::{
        Fails, HasText, IsTrue, Logged, NotLogged, Run, Step, by_id, by_id_with, by_point, by_point_with,
        table,
    },
};

/// Checks the events of typing one "a", in the log of `/course/keys`.
const TYPED_A_EVENTS: &str = "JSON.stringify(document.getElementById('log').textContent.trim().split('\\n').slice(-5)) === JSON.stringify([
    'keydown key=a code=KeyA mods=-', 'keypress key=a code=KeyA mods=-', 'beforeinput insertText \"a\"', 'input insertText \"a\"',
    'keyup key=a code=KeyA mods=-'])";

const fn fill(element: &'static str, arguments: &'static str) -> Step {
    by_id_with("fill_id", element, arguments)
}

table! {
    fill_id_appends_and_presses_enter: "/course/inputs" => [fill("#text", r#"{"value":" and new"}"#),
        IsTrue("text.value === 'old words and new' || text.value === ' and newold words'"), Logged("change text old words and new")];
    fill_id_replaces_existing_text: "/course/inputs" => [fill("#text", r#"{"value":"new","delete_existing":true,"press_enter":false}"#),
        IsTrue("text.value === 'new' && !document.getElementById('log').textContent.includes('submit')")];
    fill_id_presses_enter_by_default: "/course/inputs" => [fill("#search", r#"{"value":"tea"}"#),
        IsTrue("document.getElementById('log').textContent.includes('submit ') && document.getElementById('log').textContent.includes('search=tea')")];
    fill_coords_types_text: "/course/inputs" => [by_point_with("fill_coords", "#empty", r#"{"value":"Mira","press_enter":"false"}"#),
        IsTrue("empty.value === 'Mira'"), Logged("input empty Mira")];
    fill_coords_replaces_existing_text: "/course/inputs" => [by_point_with("fill_coords", "#text", r#"{"value":"Mira","delete_existing":true}"#),
        IsTrue("text.value === 'Mira'"), Logged("change text Mira")];
    fill_id_works_for_text_types: "/course/inputs" => [fill("#password", r#"{"value":"s3cret Pass!","press_enter":false}"#),
        fill("#email", r#"{"value":"a.b+c@example.org","press_enter":false}"#), fill("#number", r#"{"value":"42","press_enter":false}"#),
        fill("#tel", r#"{"value":"+49 30 1","press_enter":false}"#), fill("#url", r#"{"value":"https://a.test/?x=1&y=[2]","press_enter":false}"#),
        IsTrue("password.value === 's3cret Pass!' && email.value === 'a.b+c@example.org' && number.value === '42' && tel.value === '+49 30 1' && url.value === 'https://a.test/?x=1&y=[2]'")];
    fill_id_replaces_number: "/course/inputs" => [fill("#number", r#"{"value":"42","press_enter":false}"#),
        fill("#number", r#"{"value":"7","press_enter":false,"delete_existing":true}"#), IsTrue("number.value === '7'")];
    fill_id_respects_max_length: "/course/inputs" => [fill("#short", r#"{"value":"123456789","press_enter":false}"#),
        IsTrue("document.getElementById('short').value === '12345'")];
    fill_id_sets_picker_values: "/course/inputs" => [fill("#date", r#"{"value":"2026-02-28","press_enter":false}"#), Logged("change date 2026-02-28"),
        fill("#time", r#"{"value":"13:45","press_enter":false}"#), Logged("change time 13:45"), fill("#month", r#"{"value":"2026-02","press_enter":false}"#),
        Logged("change month 2026-02"), fill("#week", r#"{"value":"2026-W07","press_enter":false}"#), Logged("change week 2026-W07"),
        fill("#moment", r#"{"value":"2026-02-28T13:45","press_enter":false}"#), Logged("change moment 2026-02-28T13:45"),
        fill("#range", r#"{"value":"8","press_enter":false}"#), Logged("input range 8"), Logged("change range 8"),
        fill("#color", r##"{"value":"#ff8800","press_enter":false}"##), Logged("change color #ff8800")];
    pickers_accept_written_forms: "/course/inputs" => [fill("#date", r#"{"value":"09/10/2012","press_enter":false}"#), IsTrue("date.value === '2012-09-10'"),
        fill("#date", r#"{"value":"Oct 3rd, 2013","press_enter":false}"#), Logged("change date 2013-10-03"), fill("#date", r#"{"value":"24.12.2014","press_enter":false}"#),
        IsTrue("date.value === '2014-12-24'"), fill("#time", r#"{"value":"1:45 PM","press_enter":false}"#), Logged("change time 13:45"),
        fill("#time", r#"{"value":"12 a.m.","press_enter":false}"#), Logged("change time 00:00"), fill("#month", r#"{"value":"September 2012","press_enter":false}"#),
        Logged("change month 2012-09"), fill("#month", r#"{"value":"02/2013","press_enter":false}"#), Logged("change month 2013-02"),
        fill("#week", r#"{"value":"Week 37, 2012","press_enter":false}"#), Logged("change week 2012-W37"),
        fill("#moment", r#"{"value":"09/10/2012 1:45 PM","press_enter":false}"#), Logged("change moment 2012-09-10T13:45"),
        fill("#range", r#"{"value":"50%","press_enter":false}"#), IsTrue("range.value === '5'"), fill("#color", r#"{"value":"rgb(255, 0, 0)","press_enter":false}"#),
        Logged("change color #ff0000"), fill("#color", r#"{"value":"teal","press_enter":false}"#), IsTrue("color.value === '#008080'")];
    pickers_accept_keys: "/course/inputs" => [fill("#date", r#"{"value":"09102012","press_enter":false}"#), IsTrue("date.value === '2012-09-10'"), Logged("change date 2012-09-10"),
        fill("#time", r#"{"value":"0145PM","press_enter":false}"#), IsTrue("time.value === '13:45'"),
        by_point_with("fill_coords", "#date", r#"{"value":"11212013","press_enter":false}"#), IsTrue("date.value === '2013-11-21'"),
        fill("#week", r#"{"value":"372012","press_enter":false}"#), IsTrue("week.value === '2012-W37'")];
    incomplete_keys_are_refused: "/course/inputs" => [fill("#date", r#"{"value":"2026-02-28","press_enter":false}"#),
        Fails(&fill("#date", r#"{"value":"0910"}"#), ErrorCode::BadRequest, "use a value such as 2012-09-10"), IsTrue("date.value === '2026-02-28'"),
        Fails(&fill("#range", r#"{"value":"loud"}"#), ErrorCode::BadRequest, "use a value such as 8"), Fails(&fill("#color", r#"{"value":"no colour"}"#), ErrorCode::BadRequest, "#ff8800")];
    invalid_picker_value_is_refused: "/course/inputs" => [
        Fails(&fill("#date", r#"{"value":"next Tuesday"}"#), ErrorCode::BadRequest, "next Tuesday"), IsTrue("date.value === ''")];
    impossible_dates_are_refused: "/course/inputs" => [fill("#date", r#"{"value":"2026-02-28","press_enter":false}"#),
        Fails(&fill("#date", r#"{"value":"2012-02-31"}"#), ErrorCode::BadRequest, "2012-02-31"), Fails(&fill("#date", r#"{"value":"2012-13-01"}"#), ErrorCode::BadRequest, "2012-13-01"),
        Fails(&fill("#date", r#"{"value":"99/99/9999"}"#), ErrorCode::BadRequest, "99/99/9999"), Fails(&fill("#date", r#"{"value":"2012-09-10T10:00"}"#), ErrorCode::BadRequest, "T10:00"),
        Fails(&fill("#week", r#"{"value":"2012-W60"}"#), ErrorCode::BadRequest, "2012-W60"), IsTrue("date.value === '2026-02-28' && week.value === ''"),
        fill("#date", r#"{"value":"20120910","press_enter":false}"#), IsTrue("date.value === '2012-09-10'")];
    range_value_is_clamped: "/course/inputs" => [fill("#range", r#"{"value":"400","press_enter":false}"#), Logged("change range 10")];
    disabled_and_read_only_fields_keep_value: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), by_point_with("fill_coords", "#disabled", r#"{"value":"x"}"#),
        by_point_with("fill_coords", "#readonly", r#"{"value":"x","delete_existing":true}"#),
        IsTrue("document.getElementById('disabled').value === 'stays' && document.getElementById('readonly').value === 'stays'")];
    clicks_toggle_check_boxes: "/course/inputs" => [by_id("click_id", "#check"), Logged("change check true"), by_id("click_id", "#checked"),
        Logged("change checked false"), by_id("click_id", "#radio-three"), Logged("change radio-three true"),
        IsTrue("!document.getElementById('radio-two').checked")];
    click_on_input_buttons_works: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), by_id("click_id", "#button"), Logged("clicked button"), by_id("click_id", "#reset"), Logged("reset"),
        by_id("click_id", "#submit"), IsTrue("document.getElementById('log').dataset.last.startsWith('submit text=old+words')"),
        by_id("click_id", "#image"), IsTrue("document.getElementById('log').textContent.match(/submit/g).length === 2")];
    file_chooser_does_not_block: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), by_id("click_id", "#file"), by_id("click_id", "#button"), Logged("clicked button"),
        by_point("click_coords", "#file"), by_id("click_id", "#check"), Logged("change check true")];
    colour_chooser_does_not_block: "/course/inputs" => [Run(r#"{"page_down":{"amount":400}}"#), by_id("click_id", "#color"), by_id("click_id", "#button"), Logged("clicked button"),
        by_id("click_id", "#date"), by_id("click_id", "#check"), Logged("change check true")];

    fill_id_replaces_textarea: "/course/editable" => [fill("#area", r#"{"value":"one\ntwo","delete_existing":true,"press_enter":false}"#),
        IsTrue("area.value === 'one\\ntwo'")];
    enter_adds_line_to_textarea: "/course/editable" => [fill("#area", r#"{"value":"one","delete_existing":true}"#), IsTrue("area.value === 'one\\n'")];
    fill_id_replaces_contenteditable: "/course/editable" => [fill("#rich", r#"{"value":"New words 🌍","delete_existing":true,"press_enter":false}"#),
        IsTrue("rich.innerText.trim() === 'New words 🌍'")];
    fill_id_appends_to_contenteditable: "/course/editable" => [fill("#rich", r#"{"value":"X","press_enter":false}"#),
        IsTrue("rich.innerText.includes('X') && rich.innerText.replace('X', '').trim() === 'Old bold words.'")];
    fill_id_replaces_plaintext_only: "/course/editable" => [fill("#plain", r#"{"value":"a\nb","delete_existing":true,"press_enter":false}"#),
        IsTrue("plain.innerText.trim() === 'a\\nb'")];

    controlled_inputs_receive_every_key: "/course/controlled" => [fill("#name", r#"{"value":"Ada","press_enter":false}"#), HasText("#state-name", "Ada"),
        HasText("#changes", "3"), fill("#upper", r#"{"value":"loud","press_enter":false}"#), HasText("#state-upper", "LOUD"),
        IsTrue("upper.value === 'LOUD'"), fill("#digits", r#"{"value":"a1b2","press_enter":false}"#), HasText("#state-digits", "12"),
        fill("#notes", r#"{"value":"x\ny","press_enter":false}"#), HasText("#state-notes", "x\ny"), by_id("click_id", "#save"),
        Logged(r#"saved {"name":"Ada","upper":"LOUD","digits":"12","notes":"x\ny"}"#)];
    fill_id_replaces_controlled_input: "/course/controlled" => [fill("#name", r#"{"value":"Ada","press_enter":false}"#),
        fill("#name", r#"{"value":"Bea 🌍","delete_existing":true,"press_enter":false}"#), HasText("#state-name", "Bea 🌍"),
        NotLogged("name restored")];

    typing_fires_key_events: "/course/keys" => [fill("#target", r#"{"value":"a","press_enter":false}"#), IsTrue(TYPED_A_EVENTS)];
    press_enter_fires_key_events: "/course/keys" => [fill("#target", r#"{"value":"a"}"#), Logged("keydown key=Enter code=Enter mods=-"),
        Logged("keypress key=Enter code=Enter mods=-"), Logged("keyup key=Enter code=Enter mods=-")];
    character_without_key_is_inserted: "/course/keys" => [fill("#area", r#"{"value":"é漢字👩‍🚀!","press_enter":false}"#),
        IsTrue("area.value === 'é漢字👩‍🚀!'"), Logged(r#"input insertText "é漢字👩‍🚀""#), Logged("keydown key=! code=Digit1 mods=-")];
    typed_events_are_trusted: "/course/keys" => [fill("#area", r#"{"value":"aé\nb","delete_existing":true}"#),
        IsTrue("!document.getElementById('log').textContent.includes('fake') && area.value === 'aé\\nb\\n'")];
    ctrl_a_then_typing_replaces_text: "/course/keys" => [fill("#area", r#"{"value":"old words","press_enter":false}"#),
        Run(r#"{"keypress":{"keys":["ctrl","a"]}}"#), Logged("keydown key=a code=KeyA mods=ctrl"), Run(r#"{"keypress":{"keys":["x"]}}"#),
        IsTrue("area.value === 'x'")];
    keypress_shift_types_upper_case: "/course/keys" => [by_point("click_coords", "#target"), Run(r#"{"keypress":{"keys":["shift","a"]}}"#),
        Logged("keydown key=A code=KeyA mods=shift"), Run(r#"{"keypress":{"keys":["Shift","1"]}}"#), IsTrue("target.value === 'A!'")];
    keypress_shift_arrow_selects: "/course/keys" => [fill("#target", r#"{"value":"abc","press_enter":false}"#),
        Run(r#"{"keypress":{"keys":["shift","arrowleft"]}}"#), Run(r#"{"keypress":{"keys":["shift","ARROWLEFT"]}}"#),
        Run(r#"{"keypress":{"keys":["z"]}}"#), IsTrue("target.value === 'az'")];
    keypress_releases_in_reverse_order: "/course/keys" => [by_point("click_coords", "#target"), Run(r#"{"keypress":{"keys":["ctrl","shift","k"]}}"#),
        IsTrue("document.getElementById('log').textContent.trim().split('\\n').filter((line) => /^key(down|up)/.test(line)).map((line) => line.split(' ')[0] + line.split(' ')[1]).join() === 'keydownkey=Control,keydownkey=Shift,keydownkey=K,keyupkey=K,keyupkey=Shift,keyupkey=Control'")];
    keypress_triggers_page_shortcut: "/course/keys" => [Run(r#"{"keypress":{"keys":["ctrl","k"]}}"#), Logged("shortcut"),
        Run(r#"{"keypress":{"keys":["esc"]}}"#), Logged("escape")];
    keypress_accepts_key_names: "/course/keys" => [fill("#target", r#"{"value":"abc","press_enter":false}"#), Run(r#"{"keypress":{"keys":["home"]}}"#),
        Run(r#"{"keypress":{"keys":["delete"]}}"#), Run(r#"{"keypress":{"keys":["End"]}}"#), Run(r#"{"keypress":{"keys":["BackSpace"]}}"#),
        Run(r#"{"keypress":{"keys":["space"]}}"#), Run(r#"{"keypress":{"keys":["/"]}}"#), Run(r#"{"keypress":{"keys":["\\"]}}"#),
        IsTrue("target.value === 'b /\\\\'"), Run(r#"{"keypress":{"keys":["F2"]}}"#), Logged("keydown key=F2 code=F2 mods=-"),
        Run(r#"{"keypress":{"keys":["win"]}}"#), Logged("keydown key=Meta code=MetaLeft mods=meta")];
    keypress_with_unknown_key_fails: "/course/keys" => [
        Fails(&Run(r#"{"keypress":{"keys":["ctrl","nosuch"]}}"#), ErrorCode::BadRequest, "nosuch"), NotLogged("keydown key=Control code=ControlLeft mods=ctrl")];
    keypress_copies_and_pastes_text: "/course/keys" => [fill("#target", r#"{"value":"copy","press_enter":false}"#), Run(r#"{"keypress":{"keys":["ctrl","a"]}}"#),
        Run(r#"{"keypress":{"keys":["ctrl","c"]}}"#), by_point("click_coords", "#area"), Run(r#"{"keypress":{"keys":["ctrl","v"]}}"#),
        IsTrue("area.value === 'copy'")];
    tab_and_enter_presses_next_button: "/course/buttons" => [by_id("click_id", "#up"), Run(r#"{"tab_and_enter":{}}"#), HasText("#count", "0"),
        Logged("count 0")];

    fill_id_works_in_shadow_dom: "/course/shadow" => [fill("#single >> #word", r#"{"value":"one"}"#), Logged("single word: one"), Logged("single entered"),
        fill("#double >> #inside >> #word", r#"{"value":"deep"}"#), Logged("inner word: deep"), Logged("inner entered")];
    fill_id_works_in_frame: "/course/iframes" => [fill("#same >> #frame-input", r#"{"value":"hi"}"#), Logged("same: input hi")];
    fill_id_works_in_nested_frame: "/course/iframes-nested" => [fill("#middle >> #innermost >> #frame-input", r#"{"value":"hi"}"#),
        Logged("innermost: input hi")];
    fill_id_works_in_cross_origin_frame: "/course/iframes-cross" => [fill("=Text in the frame", r#"{"value":"hi"}"#), Logged("foreign: input hi")];
    fill_id_works_on_zoomed_page: "/course/zoom" => [fill("#text", r#"{"value":"zoomed"}"#), Logged("text zoomed"),
        fill("#shrunk-input", r#"{"value":"tiny"}"#), IsTrue("document.getElementById('shrunk-input').value === 'tiny'")];
    fill_id_types_international_text: "/course/languages" => [fill("#anything", r#"{"value":"שלום 你好 안녕 ž 🌍"}"#), Logged("anything שלום 你好 안녕 ž 🌍")];
    fill_id_works_in_modal: "/course/modal" => [by_id("click_id", "#reject"), by_id("click_id", "#open-dialog"), fill("#dialog-answer", r#"{"value":"yes"}"#),
        Logged("dialog closed ok")];
    typing_filters_combobox: "/course/listbox" => [fill("#fruit", r#"{"value":"berry","press_enter":false}"#),
        IsTrue("fruits.children.length === 3"), by_id("select_option", "=Elderberry"), Logged("fruits chose Elderberry")];
}

#[test]
fn long_text_is_typed_in_order() {
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
