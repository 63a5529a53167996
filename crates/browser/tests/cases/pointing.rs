//! Clicking and hovering: by number and by point, wherever the element is.

use crate::common::table::{Holds, IsAt, Later, NeverSays, Run, Says, Shows, at, on, table};

table! {
    click_id_counts_up: "/course/buttons" => [on("click_id", "#up"), Shows("#count", "1"), Says("count 1")];
    click_id_reaches_one_of_64: "/course/buttons" => [on("click_id", "#cell-A1"), Says("clicked A1"),
        on("click_id", "#cell-H3"), Says("clicked H3"), on("click_id", "#cell-P4"), Says("clicked P4")];
    click_coords_reaches_one_of_64: "/course/buttons" => [at("click_coords", "#cell-B2"), Says("clicked B2"),
        at("click_coords", "#cell-O4"), Says("clicked O4")];
    click_coords_on_a_disabled_button_does_nothing: "/course/buttons" => [at("click_coords", "#disabled"),
        NeverSays("clicked disabled")];
    two_quick_clicks_are_two_clicks: "/course/buttons" => [on("click_id", "#up"), on("click_id", "#up"),
        Shows("#count", "2"), on("click_id", "#down"), Shows("#count", "1")];
    click_id_on_a_link_like_a_button: "/course/buttons" => [on("click_id", "#link"), Says("clicked link"),
        IsAt("#linked")];

    hover_id_opens_a_menu_whose_entry_can_be_clicked: "/course/hover" => [on("hover_id", "#menu-fruit"),
        Says("hovered menu-fruit"), on("click_id", "#pear"), Says("clicked pear")];
    hover_id_opens_a_submenu: "/course/hover" => [on("hover_id", "#menu-fruit"), on("hover_id", "#menu-berries"),
        Says("hovered menu-berries"), on("click_id", "#raspberry"), Says("clicked raspberry")];
    hover_coords_opens_a_menu: "/course/hover" => [at("hover_coords", "#menu-tools"), Says("hovered menu-tools"),
        on("click_id", "#saw"), Says("clicked saw")];
    hover_coords_shows_the_buttons_of_a_card: "/course/hover" => [at("hover_coords", "#card"),
        on("click_id", "#edit"), Says("clicked edit")];
    hover_id_shows_a_tip: "/course/hover" => [on("hover_id", "#tip"),
        Holds("getComputedStyle(bubble).display === 'block'")];
    a_menu_entry_that_navigates: "/course/hover" => [at("hover_coords", "#menu-fruit"), on("click_id", "#apple"),
        IsAt("/course/arrived?by=apple"), Shows("#result", "done")];

    shadow_dom: "/course/shadow" => [on("click_id", "#single >> #press"), Says("pressed single"),
        on("click_id", "#double >> #press"), Says("pressed outer")];
    nested_shadow_dom: "/course/shadow" => [on("click_id", "#double >> #inside >> #press"), Says("pressed inner"),
        at("click_coords", "#double >> #inside >> #press"), Holds("document.getElementById('log').dataset.count === '2'")];

    same_origin_frame: "/course/iframes" => [on("click_id", "#same >> #frame-button"), Says("same: button")];
    srcdoc_frame: "/course/iframes" => [on("click_id", "#srcdoc >> #srcdoc-button"), Says("srcdoc: button"),
        on("click_id", "#outside"), Says("clicked outside")];
    a_link_in_a_frame_moves_the_frame_only: "/course/iframes" => [on("click_id", "#same >> #frame-link"),
        IsAt("/course/iframes"), Later("document.getElementById('log').textContent.includes('followed its link')")];
    frame_in_a_frame: "/course/iframes-nested" => [on("click_id", "#middle >> #middle-button"), Says("middle: button"),
        on("click_id", "#middle >> #innermost >> #frame-button"), Says("innermost: button")];
    frame_of_another_origin: "/course/iframes-cross" => [on("click_id", "=Button in the frame"), Says("foreign: button"),
        on("click_id", "#outside"), Says("clicked outside"), on("hover_id", "=Link in the frame"), on("click_id", "=Link in the frame"),
        Later("document.getElementById('log').textContent.includes('followed its link')"), on("click_id", "=Button in the frame")];
    frame_of_another_origin_by_point: "/course/iframes-cross" => [Run(r#"{"click_coords":{"x":190,"y":400}}"#),
        Holds("document.activeElement.id === 'foreign'"), at("click_coords", "#outside"), Says("clicked outside")];

    sticky_header_does_not_take_the_click: "/course/sticky" => [Run(r#"{"page_down":{"amount":"300"}}"#),
        on("click_id", "#row-9"), Says("clicked row 9"), on("click_id", "#in-header"), Says("clicked in-header")];
    transformed_elements: "/course/transform" => [on("click_id", "#scaled"), Says("clicked scaled"),
        on("click_id", "#shrunk"), Says("clicked shrunk"), on("click_id", "#rotated"), Says("clicked rotated"),
        on("click_id", "#upside-down"), Says("clicked upside down"), on("click_id", "#skewed"), Says("clicked skewed"),
        on("click_id", "#moved"), Says("clicked moved"), on("click_id", "#inside"), Says("clicked inside")];
    transformed_elements_by_point: "/course/transform" => [at("click_coords", "#rotated"), Says("clicked rotated"),
        at("click_coords", "#scaled"), Says("clicked scaled")];
    zoomed_page: "/course/zoom" => [on("click_id", "#second"), Says("clicked second"), on("click_id", "#shrunk"),
        Says("clicked shrunk"), on("click_id", "#grown"), Says("clicked grown"),
        at("click_coords", "#third"), Says("clicked third")];
    zoomed_page_scrolled: "/course/zoom" => [Run(r#"{"page_down":{"amount":3000}}"#), on("click_id", "#last"),
        Says("clicked last")];
    wide_page: "/course/wide" => [on("click_id", "#at-0"), Says("clicked at 0"), on("click_id", "#to-right"),
        Says("scrolled right"), on("click_id", "#at-4700"), Says("clicked at 4700")];
    clickable_without_a_button: "/course/clickable" => [on("click_id", "#pointer"), Says("clicked pointer"),
        on("click_id", "#onclick"), Says("clicked onclick"), on("click_id", "#tabindex"), Says("clicked tabindex"),
        on("click_id", "#role-button"), Says("clicked role-button"), on("click_id", "#role-checkbox"),
        Says("role-checkbox true"), on("click_id", "#role-switch"), Says("role-switch true"),
        on("click_id", "#outer"), Says("clicked outer"), on("click_id", "#labelled"), Says("labelled true")];
    details_open_by_their_summary: "/course/clickable" => [on("click_id", "#summary"), Says("details true"),
        on("click_id", "#detailed"), Says("clicked detailed")];
    consent_modal_and_popover: "/course/modal" => [at("click_coords", "#behind"), NeverSays("clicked behind"),
        on("click_id", "#accept"), Says("consent accept"), on("click_id", "#open-dialog"), Says("dialog open"),
        on("click_id", "#dialog-ok"), Says("dialog closed ok"), on("click_id", "#open-popover"), Says("popover open"),
        on("click_id", "#popover-button"), Says("clicked popover button"), on("click_id", "#behind"), Says("clicked behind")];
    words_of_every_script: "/course/languages" => [on("click_id", "#emoji"), Says("clicked 🌍"),
        on("click_id", "#hebrew"), Says("clicked שלום"), on("click_id", "=你好,世界"), Says("clicked 你好"),
        on("click_id", "#rtl-link"), IsAt("#rtl")];
}
