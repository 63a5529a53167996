//! Selecting from lists: native drop-downs, list boxes, and ARIA lists.

use proto::ErrorCode;

use crate::common::table::{Fails, IsTrue, Logged, NotLogged, Run, by_id, by_id_with, by_point, table};

table! {
    select_option_selects_in_dropdown: "/course/select" => [by_id("click_id", "#colour"), by_id("select_option", "=Green"), Logged("colour input green"),
        Logged("colour change green"), IsTrue("colour.value === 'green'"), IsTrue("document.getElementById('log').dataset.count === '2'")];
    click_id_selects_option: "/course/select" => [by_id("click_id", "#colour"), by_id("click_id", "=Blue"), Logged("colour change blue")];
    reselected_option_fires_no_event: "/course/select" => [by_id("click_id", "#colour"), by_id("select_option", "=Red"), by_id("click_id", "#colour"),
        by_id("select_option", "=Red"), IsTrue("document.getElementById('log').dataset.count === '2'")];
    option_in_optgroup_is_selected: "/course/select" => [by_id("click_id", "#animal"), by_id("select_option", "=Trout"), Logged("animal change trout")];
    option_far_down_a_list_is_selected: "/course/select" => [by_id("click_id", "#year"), by_id("select_option", "=2003"), Logged("year change 2003")];
    click_after_open_dropdown_works: "/course/select" => [by_id("click_id", "#animal"), by_id("click_id", "#colour"),
        by_id("click_id", "=Blue"), Logged("colour change blue"), by_id("click_id", "#colour"), by_id("click_id", "#home"),
        IsTrue("location.pathname === '/course/'")];
    click_by_point_after_open_dropdown_works: "/course/select" => [by_point("click_coords", "#colour"), by_point("click_coords", "#home"),
        IsTrue("location.pathname === '/course/'")];
    arrow_keys_change_the_selection: "/course/select" => [by_id("click_id", "#colour"), Run(r#"{"keypress":{"keys":["arrowdown"]}}"#),
        Run(r#"{"keypress":{"keys":["enter"]}}"#), Logged("colour change red")];
    click_coords_selects_dropdown_row: "/course/select" => [by_point("click_coords", "#colour"), Run(r#"{"click_coords":{"x":400,"y":364}}"#),
        Logged("colour change green"), by_point("click_coords", "#animal"), IsTrue("document.activeElement.id === 'animal'")];
    click_elsewhere_closes_dropdown: "/course/select" => [by_point("click_coords", "#colour"), by_point("click_coords", "h1"),
        Run(r#"{"click_coords":{"x":400,"y":364}}"#), NotLogged("colour change green")];
    escape_closes_dropdown: "/course/select" => [by_point("click_coords", "#colour"), Run(r#"{"keypress":{"keys":["esc"]}}"#),
        Run(r#"{"click_coords":{"x":400,"y":370}}"#), NotLogged("colour change green")];
    scroll_id_scrolls_dropdown: "/course/select" => [by_id("click_id", "#year"), by_id_with("scroll_id", "#year", r#"{"direction":"down"}"#),
        by_id_with("scroll_id", "#year", r#"{"direction":"down"}"#), by_id("click_id", "=2025"), Logged("year change 2025")];
    scroll_coords_scrolls_dropdown: "/course/select" => [by_point("click_coords", "#year"), Run(r#"{"scroll_coords":{"x":400,"y":600,"direction":"down"}}"#),
        Run(r#"{"hover_and_scroll_coords":{"x":400,"y":600}}"#), by_id("click_id", "=2025"), Logged("year change 2025"), IsTrue("scrollY === 0")];
    dropdown_opened_by_key_lists_options: "/course/select" => [by_id("click_id", "#home"), Run(r#"{"back":{}}"#), Run(r#"{"keypress":{"keys":["tab"]}}"#),
        Run(r#"{"keypress":{"keys":["tab"]}}"#), Run(r#"{"keypress":{"keys":["space"]}}"#), by_id("select_option", "=Blue"), Logged("colour change blue")];
    fill_id_selects_option_by_text: "/course/select" => [by_id_with("fill_id", "#colour", r#"{"value":"blue"}"#), Logged("colour change blue"),
        by_id_with("fill_id", "#animal", r#"{"value":"Per"}"#), Logged("animal change perch")];
    fill_id_with_unknown_option_fails: "/course/select" => [
        Fails(&by_id_with("fill_id", "#colour", r#"{"value":"violet"}"#), ErrorCode::BadRequest, "violet"), NotLogged("colour change violet")];
    select_option_toggles_in_multiple_select: "/course/select" => [by_id("select_option", "=Onions"), Logged("toppings change onions"), by_id("select_option", "=Capers"),
        Logged("toppings change onions+capers"), by_id("select_option", "=Onions"), Logged("toppings change capers")];
    click_id_toggles_in_multiple_select: "/course/select" => [by_id("click_id", "=Peppers"), Logged("toppings change peppers")];
    list_box_option_is_selected: "/course/select" => [by_id("select_option", "=Medium"), Logged("size change medium"), by_id("click_id", "=Large"),
        Logged("size change large"), IsTrue("size.value === 'large'")];
    select_in_cross_origin_frame_works: "/course/iframes-cross" => [by_id("click_id", "=Choice in the frame"), by_id("select_option", "=Blue"),
        Logged("foreign: chose blue"), by_id_with("fill_id", "=Choice in the frame", r#"{"value":"green"}"#), Logged("foreign: chose green")];
    select_in_frame_works: "/course/iframes" => [by_id("click_id", "#same >> #frame-select"), by_id("select_option", "=Blue"), Logged("same: chose blue")];

    aria_listbox_behind_button_works: "/course/listbox" => [by_id("click_id", "#city"), by_id("select_option", "#city-bel"), Logged("cities chose Belmar"),
        IsTrue("city.textContent === 'Belmar'")];
    aria_option_is_selected_by_click: "/course/listbox" => [by_id("click_id", "#city"), by_id("click_id", "#city-arn"), Logged("cities chose Arnholm")];
    always_open_aria_option_is_selected: "/course/listbox" => [by_id("select_option", "#mood-cross"), Logged("moods chose Cross")];
    combobox_option_is_selected: "/course/listbox" => [by_id("click_id", "#fruit"), by_id("select_option", "#fruit-fig"), Logged("fruits chose Fig"),
        IsTrue("fruit.value === 'Fig'")];
}
