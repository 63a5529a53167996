//! Clicking and hovering, by mark id and by point.

use crate::common::table::{
    Eventually, HasText, IsTrue, Logged, NotLogged, Run, UrlEndsWith, by_id, by_point, table,
};

table! {
    click_id_clicks_button: "/course/buttons" => [by_id("click_id", "#up"), HasText("#count", "1"), Logged("count 1")];
    click_id_hits_small_buttons: "/course/buttons" => [by_id("click_id", "#cell-A1"), Logged("clicked A1"),
        by_id("click_id", "#cell-H3"), Logged("clicked H3"), by_id("click_id", "#cell-P4"), Logged("clicked P4")];
    click_coords_hits_small_buttons: "/course/buttons" => [by_point("click_coords", "#cell-B2"), Logged("clicked B2"),
        by_point("click_coords", "#cell-O4"), Logged("clicked O4")];
    click_coords_on_disabled_button_does_nothing: "/course/buttons" => [by_point("click_coords", "#disabled"),
        NotLogged("clicked disabled")];
    repeated_clicks_all_count: "/course/buttons" => [by_id("click_id", "#up"), by_id("click_id", "#up"),
        HasText("#count", "2"), by_id("click_id", "#down"), HasText("#count", "1")];
    click_id_on_button_like_link_works: "/course/buttons" => [by_id("click_id", "#link"), Logged("clicked link"),
        UrlEndsWith("#linked")];

    hover_id_opens_menu_with_clickable_entry: "/course/hover" => [by_id("hover_id", "#menu-fruit"),
        Logged("hovered menu-fruit"), by_id("click_id", "#pear"), Logged("clicked pear")];
    hover_id_opens_submenu: "/course/hover" => [by_id("hover_id", "#menu-fruit"), by_id("hover_id", "#menu-berries"),
        Logged("hovered menu-berries"), by_id("click_id", "#raspberry"), Logged("clicked raspberry")];
    hover_coords_opens_menu: "/course/hover" => [by_point("hover_coords", "#menu-tools"), Logged("hovered menu-tools"),
        by_id("click_id", "#saw"), Logged("clicked saw")];
    hover_coords_shows_card_buttons: "/course/hover" => [by_point("hover_coords", "#card"),
        by_id("click_id", "#edit"), Logged("clicked edit")];
    hover_id_shows_tooltip: "/course/hover" => [by_id("hover_id", "#tip"),
        IsTrue("getComputedStyle(bubble).display === 'block'")];
    click_on_menu_entry_navigates: "/course/hover" => [by_point("hover_coords", "#menu-fruit"), by_id("click_id", "#apple"),
        UrlEndsWith("/course/arrived?by=apple"), HasText("#result", "done")];

    click_in_shadow_dom_works: "/course/shadow" => [by_id("click_id", "#single >> #press"), Logged("pressed single"),
        by_id("click_id", "#double >> #press"), Logged("pressed outer")];
    click_in_nested_shadow_dom_works: "/course/shadow" => [by_id("click_id", "#double >> #inside >> #press"), Logged("pressed inner"),
        by_point("click_coords", "#double >> #inside >> #press"), IsTrue("document.getElementById('log').dataset.count === '2'")];

    click_in_frame_works: "/course/iframes" => [by_id("click_id", "#same >> #frame-button"), Logged("same: button")];
    click_in_srcdoc_frame_works: "/course/iframes" => [by_id("click_id", "#srcdoc >> #srcdoc-button"), Logged("srcdoc: button"),
        by_id("click_id", "#outside"), Logged("clicked outside")];
    link_in_frame_navigates_only_the_frame: "/course/iframes" => [by_id("click_id", "#same >> #frame-link"),
        UrlEndsWith("/course/iframes"), Eventually("document.getElementById('log').textContent.includes('followed its link')")];
    click_in_nested_frame_works: "/course/iframes-nested" => [by_id("click_id", "#middle >> #middle-button"), Logged("middle: button"),
        by_id("click_id", "#middle >> #innermost >> #frame-button"), Logged("innermost: button")];
    click_in_cross_origin_frame_works: "/course/iframes-cross" => [by_id("click_id", "=Button in the frame"), Logged("foreign: button"),
        by_id("click_id", "#outside"), Logged("clicked outside"), by_id("hover_id", "=Link in the frame"), by_id("click_id", "=Link in the frame"),
        Eventually("document.getElementById('log').textContent.includes('followed its link')"), by_id("click_id", "=Button in the frame")];
    click_coords_in_cross_origin_frame_works: "/course/iframes-cross" => [Run(r#"{"click_coords":{"x":190,"y":400}}"#),
        IsTrue("document.activeElement.id === 'foreign'"), by_point("click_coords", "#outside"), Logged("clicked outside")];

    sticky_header_does_not_intercept_click: "/course/sticky" => [Run(r#"{"page_down":{"amount":"300"}}"#),
        by_id("click_id", "#row-9"), Logged("clicked row 9"), by_id("click_id", "#in-header"), Logged("clicked in-header")];
    click_id_on_transformed_elements_works: "/course/transform" => [by_id("click_id", "#scaled"), Logged("clicked scaled"),
        by_id("click_id", "#shrunk"), Logged("clicked shrunk"), by_id("click_id", "#rotated"), Logged("clicked rotated"),
        by_id("click_id", "#upside-down"), Logged("clicked upside down"), by_id("click_id", "#skewed"), Logged("clicked skewed"),
        by_id("click_id", "#moved"), Logged("clicked moved"), by_id("click_id", "#inside"), Logged("clicked inside")];
    click_coords_on_transformed_elements_works: "/course/transform" => [by_point("click_coords", "#rotated"), Logged("clicked rotated"),
        by_point("click_coords", "#scaled"), Logged("clicked scaled")];
    click_on_zoomed_page_works: "/course/zoom" => [by_id("click_id", "#second"), Logged("clicked second"), by_id("click_id", "#shrunk"),
        Logged("clicked shrunk"), by_id("click_id", "#grown"), Logged("clicked grown"),
        by_point("click_coords", "#third"), Logged("clicked third")];
    click_on_scrolled_zoomed_page_works: "/course/zoom" => [Run(r#"{"page_down":{"amount":3000}}"#), by_id("click_id", "#last"),
        Logged("clicked last")];
    click_on_wide_page_works: "/course/wide" => [by_id("click_id", "#at-0"), Logged("clicked at 0"), by_id("click_id", "#to-right"),
        Logged("scrolled right"), by_id("click_id", "#at-4700"), Logged("clicked at 4700")];
    click_on_non_button_elements_works: "/course/clickable" => [by_id("click_id", "#pointer"), Logged("clicked pointer"),
        by_id("click_id", "#onclick"), Logged("clicked onclick"), by_id("click_id", "#tabindex"), Logged("clicked tabindex"),
        by_id("click_id", "#role-button"), Logged("clicked role-button"), by_id("click_id", "#role-checkbox"),
        Logged("role-checkbox true"), by_id("click_id", "#role-switch"), Logged("role-switch true"),
        by_id("click_id", "#outer"), Logged("clicked outer"), by_id("click_id", "#labelled"), Logged("labelled true")];
    click_on_summary_opens_details: "/course/clickable" => [by_id("click_id", "#summary"), Logged("details true"),
        by_id("click_id", "#detailed"), Logged("clicked detailed")];
    modal_blocks_clicks_until_closed: "/course/modal" => [by_point("click_coords", "#behind"), NotLogged("clicked behind"),
        by_id("click_id", "#accept"), Logged("consent accept"), by_id("click_id", "#open-dialog"), Logged("dialog open"),
        by_id("click_id", "#dialog-ok"), Logged("dialog closed ok"), by_id("click_id", "#open-popover"), Logged("popover open"),
        by_id("click_id", "#popover-button"), Logged("clicked popover button"), by_id("click_id", "#behind"), Logged("clicked behind")];
    click_on_international_text_works: "/course/languages" => [by_id("click_id", "#emoji"), Logged("clicked 🌍"),
        by_id("click_id", "#hebrew"), Logged("clicked שלום"), by_id("click_id", "=你好,世界"), Logged("clicked 你好"),
        by_id("click_id", "#rtl-link"), UrlEndsWith("#rtl")];
}
