//! Every browser command of REFERENCE §2, carried out through the API, judged by what the page then says.

use std::collections::BTreeSet;

use proto::Command;
use serde_json::{Value, json};
use testkit::{Farm, Lease};

use crate::{World, checks};

checks![
    clicking_and_hovering,
    filling_and_choosing,
    scrolling,
    keys_and_history,
    reading_the_page,
    ids_mean_what_the_last_screenshot_showed,
    every_command_is_checked_here,
];

/// The number on the picture of the element with this name.
pub(crate) fn shown(info: &Value, name: &str) -> Option<String> {
    let shown = info["id_mapping"].as_object()?.iter().find(|(_, element)| {
        let region = &info["interactive_regions"][element.as_str().unwrap_or_default()];
        region["aria_name"] == name
    });
    shown.map(|(shown, _)| shown.clone())
}

/// The middle of the element with this name.
fn centre(info: &Value, name: &str) -> (f64, f64) {
    let shown = shown(info, name).unwrap_or_else(|| panic!("{name} is not among {info}"));
    let element = info["id_mapping"][&shown].as_str().expect("an element id");
    let rect = &info["interactive_regions"][element]["rects"][0];
    let side = |name: &str| rect[name].as_f64().expect("a number");
    (side("x") + side("width") / 2.0, side("y") + side("height") / 2.0)
}

/// A lease on a page, and what can be done there.
struct Page<'a> {
    farm: &'a Farm,
    lease: Lease,
}

impl<'a> Page<'a> {
    async fn open(world: &'a World, path: &str) -> Self {
        let lease = world.farm.get().await;
        let page = Self { farm: &world.farm, lease };
        page.run(json!({"visit_page": {"url": world.page(path)}})).await;
        page
    }

    async fn run(&self, command: Value) -> Value {
        let name = command.as_object().and_then(|command| command.keys().next().cloned()).expect("a command");
        let answer = self.farm.execute(&self.lease, command).await.ok();
        let looks = name.starts_with("get_") || name == "screenshot";
        assert!(looks || answer == json!({"status": "success"}), "{name}: {answer}");
        answer
    }

    async fn info(&self) -> Value {
        let taken = self.run(json!({"screenshot": {}})).await;
        assert_eq!(taken, json!({"status": "screenshot_taken"}));
        self.run(json!({"get_screenshot_info": {}})).await
    }

    async fn id(&self, name: &str) -> String {
        let info = self.info().await;
        shown(&info, name).unwrap_or_else(|| panic!("{name} is not among {info}"))
    }

    async fn says(&self, words: &str) {
        let text = self.farm.text(&self.lease).await;
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }

    async fn leave(self) {
        self.farm.reset(&self.lease).await.ok();
    }
}

async fn clicking_and_hovering(world: World) {
    let page = Page::open(&world, "/course/buttons").await;
    let info = page.info().await;
    let id = shown(&info, "Count up").expect("the button");
    page.run(json!({"click_id": {"id": id}})).await;
    page.run(json!({"click_id": {"id": id.parse::<u32>().expect("a number")}})).await;
    page.says("count 2").await;
    let (x, y) = centre(&info, "C3");
    page.run(json!({"click_coords": {"x": x.to_string(), "y": y}})).await;
    page.says("clicked C3").await;
    page.leave().await;
    let page = Page::open(&world, "/course/hover").await;
    let info = page.info().await;
    page.run(json!({"hover_id": {"id": shown(&info, "Tools").expect("the menu")}})).await;
    page.says("hovered menu-tools").await;
    let (x, y) = centre(&info, "Fruit");
    page.run(json!({"hover_coords": {"x": x, "y": y}})).await;
    page.says("hovered menu-fruit").await;
    page.leave().await;
}

async fn filling_and_choosing(world: World) {
    let page = Page::open(&world, "/course/inputs").await;
    let info = page.info().await;
    let id = shown(&info, "Text").expect("the field");
    page.run(json!({"fill_id": {"id": id, "value": "fresh", "delete_existing": true, "press_enter": false}}))
        .await;
    let (x, y) = centre(&info, "Search");
    page.run(json!({"fill_coords": {"x": x, "y": y, "value": "duck"}})).await;
    page.says("search=duck").await;
    page.says("text=fresh").await;
    page.leave().await;
    let page = Page::open(&world, "/course/select").await;
    let id = page.id("Colour").await;
    page.run(json!({"click_id": {"id": id}})).await;
    let id = page.id("Green").await;
    page.run(json!({"select_option": {"id": id}})).await;
    page.says("colour change green").await;
    page.leave().await;
}

async fn scrolling(world: World) {
    let page = Page::open(&world, "/course/long").await;
    let top_of = async |name: &str| {
        let rects = page.run(json!({"get_interactive_rects": {}})).await;
        let region = rects.as_object().expect("a map").values().find(|region| region["aria_name"] == name);
        region.unwrap_or_else(|| panic!("{name} is not in {rects}"))["rects"][0]["top"]
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
    page.leave().await;
    let page = Page::open(&world, "/course/scroll").await;
    let info = page.info().await;
    let (x, y) = centre(&info, "Item 3");
    page.run(json!({"hover_and_scroll_coords": {"x": x, "y": y}})).await;
    assert!(shown(&page.info().await, "Item 1").is_none(), "the list has scrolled");
    let id = shown(&page.info().await, "sideways").expect("the box");
    page.run(json!({"scroll_id": {"id": id, "direction": "right"}})).await;
    assert!(shown(&page.info().await, "Left end").is_none(), "the box has scrolled");
    page.leave().await;
}

async fn keys_and_history(world: World) {
    let page = Page::open(&world, "/course/keys").await;
    let id = page.id("Type here").await;
    page.run(json!({"click_id": {"id": id}})).await;
    page.run(json!({"keypress": {"keys": ["ctrl", "k"]}})).await;
    page.says("shortcut").await;
    page.run(json!({"keypress": {"keys": ["ESC"]}})).await;
    page.says("escape").await;
    page.leave().await;
    let page = Page::open(&world, "/course/buttons").await;
    page.run(json!({"visit_page": {"url": world.page("/course/hash")}})).await;
    page.run(json!({"back": {}})).await;
    let at = page.run(json!({"get_page_metadata": {}})).await;
    assert_eq!(at["url"], world.page("/course/buttons"));
    for _ in 0..3 {
        page.run(json!({"back": {}})).await;
    }
    page.run(json!({"visit_page": {"url": world.page("/course/buttons")}})).await;
    let started = std::time::Instant::now();
    page.run(json!({"sleep": {"duration": "0.3"}})).await;
    assert!(started.elapsed() >= std::time::Duration::from_millis(300));
    page.run(json!({"tab_and_enter": {}})).await;
    page.leave().await;
}

async fn reading_the_page(world: World) {
    let page = Page::open(&world, "/course/text").await;
    let text = page.run(json!({"get_webpage_text": {"n_lines": 10}})).await;
    let lines: Vec<&str> = text["text"].as_str().expect("text").lines().collect();
    assert!(
        lines.len() <= 10 && lines[0].starts_with("Line 1 of") && lines.iter().all(|line| !line.is_empty()),
        "{text}"
    );
    page.run(json!({"visit_page": {"url": world.page("/course/metadata")}})).await;
    let meta = page.run(json!({"get_page_metadata": {}})).await;
    for field in ["title", "url", "meta_tags", "jsonld", "microdata"] {
        assert!(!meta[field].is_null(), "{field} in {meta}");
    }
    page.leave().await;
    let blank = world.farm.get().await;
    let meta = world.farm.execute(&blank, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(meta, json!({"title": "Unknown Page", "url": "about:blank"}));
    world.farm.reset(&blank).await.ok();
}

async fn ids_mean_what_the_last_screenshot_showed(world: World) {
    let page = Page::open(&world, "/course/buttons").await;
    let none = page.run(json!({"get_screenshot_info": {}})).await;
    assert_eq!(none, json!({"error": "No screenshot info available"}));
    page.run(json!({"screenshot": {"interaction_mode": "coordinates"}})).await;
    let none = page.run(json!({"get_screenshot_info": {}})).await;
    assert_eq!(none, json!({"error": "No screenshot info available"}), "a plain picture shows no ids");
    page.farm.screenshot(&page.lease, &[]).await;
    let info = page.run(json!({"get_screenshot_info": {}})).await;
    for field in ["visible_rects", "rects_above", "rects_below"] {
        assert!(info[field].is_array(), "{field} in {info}");
    }
    let count = info["visible_rects"].as_array().map_or(0, Vec::len);
    let numbers: Vec<Value> = (1..=count).map(|number| json!(number.to_string())).collect();
    assert_eq!(info["visible_rects"], json!(numbers), "shown ids are 1..n");
    page.leave().await;
}

/// This file names every command there is; a new one must be added here.
async fn every_command_is_checked_here(_: World) {
    let source = include_str!("commands.rs");
    let named = |name: &&str| source.contains(&format!("{{\"{name}\": {{"));
    let missing: BTreeSet<&str> = Command::names().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "not checked: {missing:?}");
}
