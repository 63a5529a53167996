//! Scrolling the page and the boxes in it.

use crate::common::table::{Holds, Later, Run, Says, at_with, on, on_with, table};

table! {
    page_down_and_up_by_default: "/course/long" => [Run(r#"{"page_down":{}}"#), Holds("scrollY === 200"), Run(r#"{"page_down":{"amount":"350"}}"#),
        Holds("scrollY === 550"), Run(r#"{"page_up":{}}"#), Holds("scrollY === 350"), Run(r#"{"page_up":{"amount":100}}"#), Holds("scrollY === 250")];
    full_pages_leave_fifty_pixels: "/course/long" => [Run(r#"{"page_down":{"full_page":true}}"#), Holds("scrollY === 718"),
        Run(r#"{"page_down":{"full_page":true}}"#), Holds("scrollY === 1436"), Run(r#"{"page_up":{"full_page":"true"}}"#), Holds("scrollY === 718")];
    page_up_at_the_top_is_fine: "/course/long" => [Run(r#"{"page_up":{"full_page":true}}"#), Holds("scrollY === 0")];
    page_down_at_the_end_is_fine: "/course/long" => [Run(r#"{"page_down":{"amount":100000}}"#), Run(r#"{"page_down":{}}"#),
        Holds("Math.abs(scrollY + innerHeight - document.documentElement.scrollHeight) < 2")];
    what_is_scrolled_to_can_be_clicked: "/course/long" => [Run(r#"{"page_down":{"amount":2600}}"#), on("click_id", "#button-4"), Says("clicked section 4")];
    the_end_of_an_endless_list_loads_more: "/course/infinite" => [Run(r#"{"page_down":{"amount":5000}}"#), Says("loaded 40"),
        Run(r#"{"page_down":{"amount":5000}}"#), Says("loaded 60")];
    scroll_id_moves_a_box_by_its_own_height: "/course/scroll" => [on_with("scroll_id", "#outer", r#"{"direction":"down"}"#),
        Holds("outer.scrollTop === outer.clientHeight && scrollY === 0"), on_with("scroll_id", "#outer", r#"{"direction":"up"}"#), Holds("outer.scrollTop === 0")];
    scroll_id_of_an_inner_box: "/course/scroll" => [on_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        Holds("inner.scrollTop === inner.clientHeight && outer.scrollTop === 0")];
    scroll_id_sideways: "/course/scroll" => [on_with("scroll_id", "#sideways", r#"{"direction":"right"}"#),
        Holds("sideways.scrollLeft === sideways.clientWidth"), on_with("scroll_id", "#sideways", r#"{"direction":"left"}"#), Holds("sideways.scrollLeft === 0")];
    scroll_id_of_an_item_moves_its_list: "/course/scroll" => [on_with("scroll_id", "#item-2", r#"{"direction":"down"}"#),
        Holds("list.scrollTop === list.clientHeight && scrollY === 0")];
    scroll_id_inside_a_frame: "/course/iframes" => [on_with("scroll_id", "#same >> #frame-button", r#"{"direction":"down"}"#), Says("same: scrolled"),
        Holds("scrollY === 0")];
    scroll_id_inside_a_frame_of_another_origin: "/course/iframes-cross" => [
        on_with("scroll_id", "=Button in the frame", r#"{"direction":"down"}"#), Says("foreign: scrolled"),
        on_with("scroll_id", "#outside", r#"{"direction":"up"}"#), Holds("scrollY === 0")];
    scroll_coords_over_a_box: "/course/scroll" => [at_with("scroll_coords", "#list", r#"{"direction":"down"}"#), Holds("list.scrollTop > 100 && scrollY === 0"),
        at_with("scroll_coords", "#list", r#"{"direction":"up"}"#), Holds("list.scrollTop === 0")];
    scroll_coords_sideways: "/course/scroll" => [at_with("scroll_coords", "#sideways", r#"{"direction":"right"}"#), Holds("sideways.scrollLeft > 100")];
    scroll_coords_over_the_page: "/course/long" => [at_with("scroll_coords", "#section-1", r#"{"direction":"down"}"#), Holds("scrollY === 718")];
    scroll_coords_over_a_frame: "/course/iframes" => [at_with("scroll_coords", "#same", r#"{"direction":"down"}"#), Says("same: scrolled")];
    hover_and_scroll_coords_takes_the_nearest_box: "/course/scroll" => [at_with("hover_and_scroll_coords", "#inner", "{}"),
        Holds("Math.abs(inner.scrollTop - 0.8 * inner.clientHeight) < 1 && outer.scrollTop === 0 && scrollY === 0"),
        at_with("hover_and_scroll_coords", "#inner", r#"{"direction":"up"}"#), Holds("inner.scrollTop === 0")];
    hover_and_scroll_coords_sideways: "/course/scroll" => [at_with("hover_and_scroll_coords", "#sideways", r#"{"direction":"right"}"#),
        Holds("sideways.scrollLeft > 0 && sideways.scrollTop === 0")];
    hover_and_scroll_coords_elsewhere_turns_the_wheel: "/course/long" => [Run(r#"{"hover_and_scroll_coords":{"x":600,"y":400}}"#), Holds("scrollY === 100"),
        Run(r#"{"hover_and_scroll_coords":{"x":600,"y":400,"direction":"up"}}"#), Holds("scrollY === 0")];
    hover_and_scroll_coords_hovers: "/course/hover" => [at_with("hover_and_scroll_coords", "#menu-tools", r#"{"direction":"down"}"#), Says("hovered menu-tools")];
    wide_pages_scroll_sideways: "/course/wide" => [Run(r#"{"scroll_coords":{"x":600,"y":500,"direction":"right"}}"#), Holds("scrollX === 1230"),
        on("click_id", "#at-1200"), Says("clicked at 1200")];
    elements_in_nested_boxes_are_brought_into_view: "/course/scroll" => [on_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        on_with("scroll_id", "#inner", r#"{"direction":"down"}"#), on_with("scroll_id", "#inner", r#"{"direction":"down"}"#),
        on_with("scroll_id", "#inner", r#"{"direction":"down"}"#), on("click_id", "#inner-end"), Says("clicked inner end")];
    sleep_waits_and_the_page_goes_on: "/course/meta-refresh" => [Run(r#"{"sleep":{"duration":1.2}}"#), Later("location.search === '?by=meta-refresh'")];
}
