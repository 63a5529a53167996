//! Scrolling the page and the boxes in it.

use crate::common::table::{Eventually, IsTrue, Logged, Run, by_id, by_id_with, by_point_with, table};

table! {
    page_down_and_up_scroll_by_amount: "/course/long" => [Run(r#"{"page_down":{}}"#), IsTrue("scrollY === 200"), Run(r#"{"page_down":{"amount":"350"}}"#),
        IsTrue("scrollY === 550"), Run(r#"{"page_up":{}}"#), IsTrue("scrollY === 350"), Run(r#"{"page_up":{"amount":100}}"#), IsTrue("scrollY === 250")];
    full_page_scroll_leaves_fifty_pixels: "/course/long" => [Run(r#"{"page_down":{"full_page":true}}"#), IsTrue("scrollY === 718"),
        Run(r#"{"page_down":{"full_page":true}}"#), IsTrue("scrollY === 1436"), Run(r#"{"page_up":{"full_page":"true"}}"#), IsTrue("scrollY === 718")];
    page_up_at_the_top_does_nothing: "/course/long" => [Run(r#"{"page_up":{"full_page":true}}"#), IsTrue("scrollY === 0")];
    page_down_at_the_end_does_nothing: "/course/long" => [Run(r#"{"page_down":{"amount":100000}}"#), Run(r#"{"page_down":{}}"#),
        IsTrue("Math.abs(scrollY + innerHeight - document.documentElement.scrollHeight) < 2")];
    click_after_scrolling_works: "/course/long" => [Run(r#"{"page_down":{"amount":2600}}"#), by_id("click_id", "#button-4"), Logged("clicked section 4")];
    scrolling_loads_more_of_endless_list: "/course/infinite" => [Run(r#"{"page_down":{"amount":5000}}"#), Logged("loaded 40"),
        Run(r#"{"page_down":{"amount":5000}}"#), Logged("loaded 60")];
    scroll_id_scrolls_by_element_height: "/course/scroll" => [by_id_with("scroll_id", "#outer", r#"{"direction":"down"}"#),
        IsTrue("outer.scrollTop === outer.clientHeight && scrollY === 0"), by_id_with("scroll_id", "#outer", r#"{"direction":"up"}"#), IsTrue("outer.scrollTop === 0")];
    scroll_id_scrolls_inner_box_only: "/course/scroll" => [by_id_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        IsTrue("inner.scrollTop === inner.clientHeight && outer.scrollTop === 0")];
    scroll_id_scrolls_sideways: "/course/scroll" => [by_id_with("scroll_id", "#sideways", r#"{"direction":"right"}"#),
        IsTrue("sideways.scrollLeft === sideways.clientWidth"), by_id_with("scroll_id", "#sideways", r#"{"direction":"left"}"#), IsTrue("sideways.scrollLeft === 0")];
    scroll_id_of_item_scrolls_its_list: "/course/scroll" => [by_id_with("scroll_id", "#item-2", r#"{"direction":"down"}"#),
        IsTrue("list.scrollTop === list.clientHeight && scrollY === 0")];
    scroll_id_works_in_frame: "/course/iframes" => [by_id_with("scroll_id", "#same >> #frame-button", r#"{"direction":"down"}"#), Logged("same: scrolled"),
        IsTrue("scrollY === 0")];
    scroll_id_works_in_cross_origin_frame: "/course/iframes-cross" => [
        by_id_with("scroll_id", "=Button in the frame", r#"{"direction":"down"}"#), Logged("foreign: scrolled"),
        by_id_with("scroll_id", "#outside", r#"{"direction":"up"}"#), IsTrue("scrollY === 0")];
    scroll_coords_scrolls_box: "/course/scroll" => [by_point_with("scroll_coords", "#list", r#"{"direction":"down"}"#), IsTrue("list.scrollTop > 100 && scrollY === 0"),
        by_point_with("scroll_coords", "#list", r#"{"direction":"up"}"#), IsTrue("list.scrollTop === 0")];
    scroll_coords_scrolls_sideways: "/course/scroll" => [by_point_with("scroll_coords", "#sideways", r#"{"direction":"right"}"#), IsTrue("sideways.scrollLeft > 100")];
    scroll_coords_scrolls_page: "/course/long" => [by_point_with("scroll_coords", "#section-1", r#"{"direction":"down"}"#), IsTrue("scrollY === 718")];
    scroll_coords_scrolls_frame: "/course/iframes" => [by_point_with("scroll_coords", "#same", r#"{"direction":"down"}"#), Logged("same: scrolled")];
    hover_and_scroll_scrolls_nearest_box: "/course/scroll" => [by_point_with("hover_and_scroll_coords", "#inner", "{}"),
        IsTrue("Math.abs(inner.scrollTop - 0.8 * inner.clientHeight) < 1 && outer.scrollTop === 0 && scrollY === 0"),
        by_point_with("hover_and_scroll_coords", "#inner", r#"{"direction":"up"}"#), IsTrue("inner.scrollTop === 0")];
    hover_and_scroll_scrolls_sideways: "/course/scroll" => [by_point_with("hover_and_scroll_coords", "#sideways", r#"{"direction":"right"}"#),
        IsTrue("sideways.scrollLeft > 0 && sideways.scrollTop === 0")];
    hover_and_scroll_outside_boxes_scrolls_page: "/course/long" => [Run(r#"{"hover_and_scroll_coords":{"x":600,"y":400}}"#), IsTrue("scrollY === 100"),
        Run(r#"{"hover_and_scroll_coords":{"x":600,"y":400,"direction":"up"}}"#), IsTrue("scrollY === 0")];
    hover_and_scroll_hovers: "/course/hover" => [by_point_with("hover_and_scroll_coords", "#menu-tools", r#"{"direction":"down"}"#), Logged("hovered menu-tools")];
    wide_page_scrolls_sideways: "/course/wide" => [Run(r#"{"scroll_coords":{"x":600,"y":500,"direction":"right"}}"#), IsTrue("scrollX === 1230"),
        by_id("click_id", "#at-1200"), Logged("clicked at 1200")];
    element_in_nested_boxes_is_clickable: "/course/scroll" => [by_id_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        by_id_with("scroll_id", "#inner", r#"{"direction":"down"}"#), by_id_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        by_id_with("scroll_id", "#inner", r#"{"direction":"down"}"#), by_id("click_id", "#inner-end"), Logged("clicked inner end")];
    page_continues_during_sleep: "/course/meta-refresh" => [Run(r#"{"sleep":{"duration":1.2}}"#), Eventually("location.search === '?by=meta-refresh'")];
}
