//! Choosing from lists: native drop-downs, list boxes, and lists made of plain elements.

use proto::ErrorCode;

use crate::common::table::{Fails, Holds, NeverSays, Run, Says, at, on, on_with, table};

table! {
    select_option_of_a_drop_down: "/course/select" => [on("click_id", "#colour"), on("select_option", "=Green"), Says("colour input green"),
        Says("colour change green"), Holds("colour.value === 'green'"), Holds("document.getElementById('log').dataset.count === '2'")];
    click_id_chooses_an_option_too: "/course/select" => [on("click_id", "#colour"), on("click_id", "=Blue"), Says("colour change blue")];
    the_same_option_again_fires_nothing: "/course/select" => [on("click_id", "#colour"), on("select_option", "=Red"), on("click_id", "#colour"),
        on("select_option", "=Red"), Holds("document.getElementById('log').dataset.count === '2'")];
    an_option_of_a_group: "/course/select" => [on("click_id", "#animal"), on("select_option", "=Trout"), Says("animal change trout")];
    a_year_far_down_a_long_list: "/course/select" => [on("click_id", "#year"), on("select_option", "=2003"), Says("year change 2003")];
    after_a_drop_down_the_next_click_counts: "/course/select" => [on("click_id", "#animal"), on("click_id", "#colour"),
        on("click_id", "=Blue"), Says("colour change blue"), on("click_id", "#colour"), on("click_id", "#home"),
        Holds("location.pathname === '/course/'")];
    after_a_drop_down_by_point_the_next_click_counts: "/course/select" => [at("click_coords", "#colour"), at("click_coords", "#home"),
        Holds("location.pathname === '/course/'")];
    keys_move_through_a_drop_down: "/course/select" => [on("click_id", "#colour"), Run(r#"{"keypress":{"keys":["arrowdown"]}}"#),
        Run(r#"{"keypress":{"keys":["enter"]}}"#), Says("colour change red")];
    a_row_of_an_open_list_by_point: "/course/select" => [at("click_coords", "#colour"), Run(r#"{"click_coords":{"x":400,"y":364}}"#),
        Says("colour change green"), at("click_coords", "#animal"), Holds("document.activeElement.id === 'animal'")];
    a_list_closes_when_something_else_is_clicked: "/course/select" => [at("click_coords", "#colour"), at("click_coords", "h1"),
        Run(r#"{"click_coords":{"x":400,"y":364}}"#), NeverSays("colour change green")];
    escape_closes_a_list: "/course/select" => [at("click_coords", "#colour"), Run(r#"{"keypress":{"keys":["esc"]}}"#),
        Run(r#"{"click_coords":{"x":400,"y":370}}"#), NeverSays("colour change green")];
    a_long_list_is_scrolled_by_number: "/course/select" => [on("click_id", "#year"), on_with("scroll_id", "#year", r#"{"direction":"down"}"#),
        on_with("scroll_id", "#year", r#"{"direction":"down"}"#), on("click_id", "=2025"), Says("year change 2025")];
    a_long_list_is_scrolled_by_point: "/course/select" => [at("click_coords", "#year"), Run(r#"{"scroll_coords":{"x":400,"y":600,"direction":"down"}}"#),
        Run(r#"{"hover_and_scroll_coords":{"x":400,"y":600}}"#), on("click_id", "=2025"), Says("year change 2025"), Holds("scrollY === 0")];
    a_list_by_a_key_is_listed_too: "/course/select" => [on("click_id", "#home"), Run(r#"{"back":{}}"#), Run(r#"{"keypress":{"keys":["tab"]}}"#),
        Run(r#"{"keypress":{"keys":["tab"]}}"#), Run(r#"{"keypress":{"keys":["space"]}}"#), on("select_option", "=Blue"), Says("colour change blue")];
    fill_id_chooses_by_text: "/course/select" => [on_with("fill_id", "#colour", r#"{"value":"blue"}"#), Says("colour change blue"),
        on_with("fill_id", "#animal", r#"{"value":"Per"}"#), Says("animal change perch")];
    fill_id_with_a_text_no_option_has: "/course/select" => [
        Fails(&on_with("fill_id", "#colour", r#"{"value":"violet"}"#), ErrorCode::BadRequest, "violet"), NeverSays("colour change violet")];
    multiple: "/course/select" => [on("select_option", "=Onions"), Says("toppings change onions"), on("select_option", "=Capers"),
        Says("toppings change onions+capers"), on("select_option", "=Onions"), Says("toppings change capers")];
    multiple_by_click: "/course/select" => [on("click_id", "=Peppers"), Says("toppings change peppers")];
    a_list_box_of_one: "/course/select" => [on("select_option", "=Medium"), Says("size change medium"), on("click_id", "=Large"),
        Says("size change large"), Holds("size.value === 'large'")];
    a_select_in_a_frame_of_another_origin: "/course/iframes-cross" => [on("click_id", "=Choice in the frame"), on("select_option", "=Blue"),
        Says("foreign: chose blue"), on_with("fill_id", "=Choice in the frame", r#"{"value":"green"}"#), Says("foreign: chose green")];
    a_select_in_a_frame: "/course/iframes" => [on("click_id", "#same >> #frame-select"), on("select_option", "=Blue"), Says("same: chose blue")];

    aria_listbox_behind_a_button: "/course/listbox" => [on("click_id", "#city"), on("select_option", "#city-bel"), Says("cities chose Belmar"),
        Holds("city.textContent === 'Belmar'")];
    aria_option_by_click: "/course/listbox" => [on("click_id", "#city"), on("click_id", "#city-arn"), Says("cities chose Arnholm")];
    aria_options_always_open: "/course/listbox" => [on("select_option", "#mood-cross"), Says("moods chose Cross")];
    a_filtered_combobox: "/course/listbox" => [on("click_id", "#fruit"), on("select_option", "#fruit-fig"), Says("fruits chose Fig"),
        Holds("fruit.value === 'Fig'")];
}
