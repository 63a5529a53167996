//! Runs every browser command through the API and checks its effect by the text of the page.

use std::collections::BTreeSet;

use proto::Command;
use serde_json::{Value, json};
use testkit::{Farm, Lease};

use crate::{Context, checks};

checks![
    click_and_hover_reach_elements,
    fill_and_select_change_fields,
    scroll_commands_scroll,
    keypress_and_history_work,
    mouse_and_keyboard_are_complete,
    tabs_are_listed_and_switched,
    reading_commands_return_page_content,
    ids_refer_to_last_screenshot,
    every_command_is_covered,
];

/// Returns the mark on the screenshot of the element with this name.
pub(crate) fn mark_of(info: &Value, name: &str) -> Option<String> {
    let found = info["id_mapping"].as_object()?.iter().find(|(_, element)| {
        let region = &info["interactive_regions"][element.as_str().unwrap_or_default()];
        region["aria_name"] == name
    });
    found.map(|(mark, _)| mark.clone())
}

/// Returns the centre of the element with this name.
pub(crate) fn centre_of(info: &Value, name: &str) -> (f64, f64) {
    let mark = mark_of(info, name).unwrap_or_else(|| panic!("no {name} in {info}"));
    let element = info["id_mapping"][&mark].as_str().expect("an element id");
    let rect = &info["interactive_regions"][element]["rects"][0];
    let side = |name: &str| rect[name].as_f64().expect("a number");
    (side("x") + side("width") / 2.0, side("y") + side("height") / 2.0)
}

/// A leased browser on a page.
struct Page<'a> {
    farm: &'a Farm,
    lease: Lease,
}

impl<'a> Page<'a> {
    async fn open(context: &'a Context, path: &str) -> Self {
        let lease = context.farm.get().await;
        let page = Self { farm: &context.farm, lease };
        page.run(json!({"visit_page": {"url": context.page(path)}})).await;
        page
    }

    async fn run(&self, command: Value) -> Value {
        let name = command.as_object().and_then(|command| command.keys().next().cloned()).expect("a command");
        let answer = self.farm.execute(&self.lease, command).await.ok();
        let reads = name.starts_with("get_") || name == "screenshot";
        assert!(reads || answer == json!({"status": "success"}), "{name}: {answer}");
        answer
    }

    async fn info(&self) -> Value {
        let taken = self.run(json!({"screenshot": {}})).await;
        assert_eq!(taken, json!({"status": "screenshot_taken"}));
        self.run(json!({"get_screenshot_info": {}})).await
    }

    async fn id(&self, name: &str) -> String {
        let info = self.info().await;
        mark_of(&info, name).unwrap_or_else(|| panic!("no {name} in {info}"))
    }

    async fn assert_text(&self, expected: &str) {
        let text = self.farm.text(&self.lease).await;
        assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    }

    async fn close(self) {
        self.farm.reset(&self.lease).await.ok();
    }
}

async fn click_and_hover_reach_elements(context: Context) {
    let page = Page::open(&context, "/course/buttons").await;
    let info = page.info().await;
    let id = mark_of(&info, "Count up").expect("the button");
    page.run(json!({"click_id": {"id": id}})).await;
    page.run(json!({"click_id": {"id": id.parse::<u32>().expect("a number")}})).await;
    page.assert_text("count 2").await;
    let (x, y) = centre_of(&info, "C3");
    page.run(json!({"click_coords": {"x": x.to_string(), "y": y}})).await;
    page.assert_text("clicked C3").await;
    page.close().await;
    let page = Page::open(&context, "/course/hover").await;
    let info = page.info().await;
    page.run(json!({"hover_id": {"id": mark_of(&info, "Tools").expect("the menu")}})).await;
    page.assert_text("hovered menu-tools").await;
    let (x, y) = centre_of(&info, "Fruit");
    page.run(json!({"hover_coords": {"x": x, "y": y}})).await;
    page.assert_text("hovered menu-fruit").await;
    page.close().await;
}

async fn fill_and_select_change_fields(context: Context) {
    let page = Page::open(&context, "/course/inputs").await;
    let info = page.info().await;
    let id = mark_of(&info, "Text").expect("the field");
    page.run(json!({"fill_id": {"id": id, "value": "fresh", "delete_existing": true, "press_enter": false}}))
        .await;
    let (x, y) = centre_of(&info, "Search");
    page.run(json!({"fill_coords": {"x": x, "y": y, "value": "duck"}})).await;
    page.assert_text("search=duck").await;
    page.assert_text("text=fresh").await;
    page.close().await;
    let page = Page::open(&context, "/course/select").await;
    let id = page.id("Colour").await;
    page.run(json!({"click_id": {"id": id}})).await;
    let id = page.id("Green").await;
    page.run(json!({"select_option": {"id": id}})).await;
    page.assert_text("colour change green").await;
    page.close().await;
}

async fn scroll_commands_scroll(context: Context) {
    let page = Page::open(&context, "/course/long").await;
    let top_of = async |name: &str| {
        let rects = page.run(json!({"get_interactive_rects": {}})).await;
        let region = rects.as_object().expect("a map").values().find(|region| region["aria_name"] == name);
        region.unwrap_or_else(|| panic!("no {name} in {rects}"))["rects"][0]["top"]
            .as_f64()
            .expect("a number")
    };
    let name = "Button of section 2";
    let start = top_of(name).await;
    page.run(json!({"page_down": {}})).await;
    assert!((top_of(name).await - (start - 200.0)).abs() < 1.0);
    page.run(json!({"page_down": {"full_page": true}})).await;
    assert!((top_of(name).await - (start - 200.0 - 718.0)).abs() < 1.0);
    page.run(json!({"page_up": {"amount": "918"}})).await;
    assert!((top_of(name).await - start).abs() < 1.0);
    page.run(json!({"scroll_coords": {"x": 640, "y": 400, "direction": "down"}})).await;
    assert!(top_of(name).await < start - 50.0);
    page.close().await;
    let page = Page::open(&context, "/course/scroll").await;
    let info = page.info().await;
    let (x, y) = centre_of(&info, "Item 3");
    page.run(json!({"hover_and_scroll_coords": {"x": x, "y": y}})).await;
    assert!(mark_of(&page.info().await, "Item 1").is_none(), "the list has scrolled");
    let id = mark_of(&page.info().await, "sideways").expect("the box");
    page.run(json!({"scroll_id": {"id": id, "direction": "right"}})).await;
    assert!(mark_of(&page.info().await, "Left end").is_none(), "the box has scrolled");
    page.close().await;
}

async fn keypress_and_history_work(context: Context) {
    let page = Page::open(&context, "/course/keys").await;
    let id = page.id("Type here").await;
    page.run(json!({"click_id": {"id": id}})).await;
    page.run(json!({"keypress": {"keys": ["ctrl", "k"]}})).await;
    page.assert_text("shortcut").await;
    page.run(json!({"keypress": {"keys": ["ESC"]}})).await;
    page.assert_text("escape").await;
    page.close().await;
    let page = Page::open(&context, "/course/buttons").await;
    page.run(json!({"visit_page": {"url": context.page("/course/hash")}})).await;
    page.run(json!({"back": {}})).await;
    let metadata = page.run(json!({"get_page_metadata": {}})).await;
    assert_eq!(metadata["url"], context.page("/course/buttons"));
    for _ in 0..3 {
        page.run(json!({"back": {}})).await;
    }
    page.run(json!({"visit_page": {"url": context.page("/course/buttons")}})).await;
    let started = std::time::Instant::now();
    page.run(json!({"sleep": {"duration": "0.3"}})).await;
    assert!(started.elapsed() >= std::time::Duration::from_millis(300));
    page.run(json!({"tab_and_enter": {}})).await;
    page.close().await;
}

async fn mouse_and_keyboard_are_complete(context: Context) {
    let page = Page::open(&context, "/course/mouse").await;
    let (x, y) = centre_of(&page.info().await, "Pad");
    page.run(json!({"mouse_click": {"x": x, "y": y, "button": "right", "keys": ["shift"]}})).await;
    page.assert_text("mousedown button=2 buttons=2 detail=1 mods=shift").await;
    page.run(json!({"mouse_down": {"x": x, "y": y}})).await;
    page.run(json!({"mouse_move": {"x": x + 1.0, "y": y}})).await;
    page.assert_text("move buttons=1").await;
    page.run(json!({"mouse_up": {"x": x, "y": y}})).await;
    page.run(json!({"mouse_wheel": {"x": x, "y": y, "dx": 3, "dy": -4}})).await;
    page.assert_text("wheel 3 -4 mods=-").await;
    page.run(json!({"drag": {"path": [[x, y], [x + 20.0, y + 5.0]], "keys": "alt"}})).await;
    page.assert_text("mousedown button=0 buttons=1 detail=1 mods=alt").await;
    page.run(json!({"visit_page": {"url": context.page("/course/keys")}})).await;
    let id = page.id("Type here").await;
    page.run(json!({"click_id": {"id": id}})).await;
    page.run(json!({"key_down": {"key": "shift"}})).await;
    page.run(json!({"type_text": {"text": "a"}})).await;
    page.run(json!({"key_up": {"key": "shift"}})).await;
    page.assert_text("keydown key=A code=KeyA mods=shift").await;
    page.run(json!({"back": {}})).await;
    page.run(json!({"forward": {}})).await;
    assert_eq!(page.run(json!({"get_page_metadata": {}})).await["url"], context.page("/course/keys"));
    page.close().await;
}

async fn tabs_are_listed_and_switched(context: Context) {
    let lease = context.farm.get_with(&json!({"tabs": "many"})).await;
    let page = Page { farm: &context.farm, lease };
    page.run(json!({"visit_page": {"url": context.page("/course/buttons")}})).await;
    page.run(json!({"open_tab": {"url": context.page("/course/keys")}})).await;
    let include = json!({"include": ["metadata", "ac_tree"]});
    let seen = page.farm.observe(&page.lease, include.clone()).await.ok();
    assert_eq!(seen["metadata"]["url"], context.page("/course/keys"));
    assert_eq!(seen["tabs"][1]["current"], true, "{seen}");
    let tree = seen["ac_tree"].as_str().unwrap_or_default();
    assert!(tree.starts_with("tab 1: Buttons") && tree.contains("\ntab 2 (current): Key events"), "{tree}");
    page.run(json!({"switch_tab": {"id": 1}})).await;
    page.run(json!({"close_tab": {"id": "2"}})).await;
    let tabs = page.farm.execute(&page.lease, json!({"list_tabs": {}})).await.ok();
    assert_eq!(tabs["tabs"].as_array().map(Vec::len), Some(1), "{tabs}");
    assert_eq!(tabs["tabs"][0]["url"], context.page("/course/buttons"));
    page.close().await;
    let single = Page::open(&context, "/course/buttons").await;
    let seen = single.farm.observe(&single.lease, include).await.ok();
    assert!(seen.get("tabs").is_none(), "{seen}");
    single.farm.execute(&single.lease, json!({"open_tab": {}})).await.assert_error(
        400,
        "bad_request",
        "tabs",
    );
    single.close().await;
}

async fn reading_commands_return_page_content(context: Context) {
    let page = Page::open(&context, "/course/text").await;
    let text = page.run(json!({"get_webpage_text": {"n_lines": 10}})).await;
    let lines: Vec<&str> = text["text"].as_str().expect("text").lines().collect();
    assert!(
        lines.len() <= 10 && lines[0].starts_with("Line 1 of") && lines.iter().all(|line| !line.is_empty()),
        "{text}"
    );
    page.run(json!({"visit_page": {"url": context.page("/course/metadata")}})).await;
    let meta = page.run(json!({"get_page_metadata": {}})).await;
    for field in ["title", "url", "meta_tags", "jsonld", "microdata"] {
        assert!(!meta[field].is_null(), "no {field} in {meta}");
    }
    page.close().await;
    let blank = context.farm.get().await;
    let meta = context.farm.execute(&blank, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(meta, json!({"title": "Unknown Page", "url": "about:blank"}));
    context.farm.reset(&blank).await.ok();
}

async fn ids_refer_to_last_screenshot(context: Context) {
    let page = Page::open(&context, "/course/buttons").await;
    let none = page.run(json!({"get_screenshot_info": {}})).await;
    assert_eq!(none, json!({"error": "No screenshot info available"}));
    page.run(json!({"screenshot": {"interaction_mode": "coordinates"}})).await;
    let none = page.run(json!({"get_screenshot_info": {}})).await;
    assert_eq!(none, json!({"error": "No screenshot info available"}), "a plain screenshot has no marks");
    page.farm.screenshot(&page.lease, &[]).await;
    let info = page.run(json!({"get_screenshot_info": {}})).await;
    for field in ["visible_rects", "rects_above", "rects_below"] {
        assert!(info[field].is_array(), "no {field} in {info}");
    }
    let count = info["visible_rects"].as_array().map_or(0, Vec::len);
    let numbers: Vec<Value> = (1..=count).map(|number| json!(number.to_string())).collect();
    assert_eq!(info["visible_rects"], json!(numbers), "the marks are 1..n");
    page.close().await;
}

/// Fails if a command is not used in this file, so that new commands get a check.
async fn every_command_is_covered(_: Context) {
    let source = include_str!("commands.rs");
    let source = format!("{source}{}", include_str!("sessions.rs"));
    let named = |name: &&str| source.contains(&format!("{{\"{name}\": {{"));
    let missing: BTreeSet<&str> = Command::names().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "commands without a check: {missing:?}");
}
