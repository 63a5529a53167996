//! Checks set-of-marks against an independent search for clickable elements: all visible ones are marked, no hidden one is,
//! and a click on a mark hits its element.

use browser::ObserveRequest;
use practice::course::{ObstacleResponse, obstacles};
use proto::{InteractionMode, page::ScreenshotInfo};
use serde::Deserialize;
use serde_json::json;

use crate::common::{
    fixture::with_instance,
    table::{IsTrue, Logged, by_id, by_point, table},
    tester::{Found, Tester, rects, region, same_position},
};

const VISIBLE_ELEMENTS: &str = include_str!("../common/visible_elements.js");

table! {
    options_of_focused_dropdown_are_selectable: "/course/select" => [by_id("click_id", "#animal"), by_id("click_id", "=Perch"), Logged("animal change perch"),
        IsTrue("animal.value === 'perch'")];
    huge_element_is_clickable: "/course/huge-target" => [by_point("click_coords", "#huge"), Logged("clicked huge")];
}

#[derive(Deserialize)]
struct FoundElements {
    found: Vec<FoundElement>,
    hidden: Vec<FoundElement>,
}

/// An element that the independent search found.
#[derive(Deserialize)]
struct FoundElement {
    label: String,
    #[serde(flatten)]
    position: Found,
}

/// Returns the pages that do not change by themselves.
fn static_pages() -> Vec<&'static str> {
    const CHANGING: &[&str] = &[
        "/course/blank",
        "/course/meta-refresh",
        "/course/js-redirect",
        "/course/never-image",
        "/course/popup-timer",
        "/course/infinite",
        "/course/storm",
        "/course/settle/raf",
        "/course/settle/css-animation",
        "/course/settle/polling",
        "/course/settle/events",
        "/course/settle/websocket",
        "/course/settle/never-fetch",
        "/course/links",
        "/course/permissions-onload",
        "/course/big-title",
    ];
    let course = obstacles()
        .filter(|obstacle| obstacle.response == ObstacleResponse::Page)
        .map(|obstacle| obstacle.path);
    let mut pages: Vec<&str> = course.filter(|path| !CHANGING.contains(path)).collect();
    pages.extend([
        "/",
        "/course/",
        "/course/missing",
        "/course/opened?by=x",
        "/shop/",
        "/shop/search?q=lamp",
        "/shop/cart",
        "/shop/checkout",
        "/wiki/",
        "/wiki/all",
        "/jobs/",
        "/jobs/search",
        "/jobs/companies",
        "/vault/",
    ]);
    pages
}

async fn find_elements(tester: &Tester) -> FoundElements {
    serde_json::from_value(tester.js(VISIBLE_ELEMENTS).await).expect("a list of elements")
}

fn find_mark<'a>(info: &'a ScreenshotInfo, element: &Found) -> Option<&'a String> {
    info.visible_rects.iter().find(|shown| {
        let region = region(info, shown);
        let tag = region["tag_name"].as_str().unwrap_or_default();
        tag.split(',').next() == Some(&element.tag) && same_position(&rects(region), &element.boxes)
    })
}

async fn check_marks(tester: &mut Tester, page: &str) {
    let info = tester.observe_elements().await;
    let elements = find_elements(tester).await;
    for element in &elements.found {
        assert!(
            find_mark(&info, &element.position).is_some(),
            "{page}: no mark on {}\n{}",
            element.label,
            info.ac_tree()
        );
    }
    for element in &elements.hidden {
        assert!(find_mark(&info, &element.position).is_none(), "{page}: a mark on {}", element.label);
    }
    let shown: Vec<String> = (1..=info.visible_rects.len()).map(|number| number.to_string()).collect();
    assert_eq!(info.visible_rects, shown, "{page}: mark ids do not count from 1");
    let again = tester.observe_elements().await;
    assert_eq!(again.id_mapping, info.id_mapping, "{page}: an element id changed");
}

/// Checks the first two screens of every page. Used by two tests, so that they run in parallel.
fn check_pages(pages: &[&str]) {
    with_instance(async |tester| {
        for page in pages {
            tester.visit(page).await;
            check_marks(tester, page).await;
            if tester.js("document.documentElement.scrollHeight > innerHeight").await == true {
                tester.run(json!({"page_down": {"full_page": true}})).await;
                check_marks(tester, page).await;
            }
        }
    });
}

#[test]
fn visible_clickable_elements_are_marked() {
    let pages = static_pages();
    check_pages(&pages[..pages.len() / 2]);
}

#[test]
fn visible_clickable_elements_are_marked_on_remaining_pages() {
    let pages = static_pages();
    check_pages(&pages[pages.len() / 2..]);
}

/// Clicks every mark of a page and checks where the click arrives.
fn check_clicks(page: &str) {
    with_instance(async |tester| {
        tester.visit(page).await;
        let info = tester.observe_elements().await;
        find_elements(tester).await;
        for shown in &info.visible_rects {
            let region = region(&info, shown);
            if region["tag_name"] == "option" {
                continue;
            }
            tester.js("window.__clickPath = null").await;
            tester.run(json!({"click_id": {"id": shown}})).await;
            let click_path: Option<Vec<FoundElement>> =
                serde_json::from_value(tester.js("window.__clickPath").await).expect("a path");
            let tag = region["tag_name"].as_str().unwrap_or_default();
            let is_target = |element: &FoundElement| {
                tag.split(',').next() == Some(&element.position.tag)
                    && same_position(&rects(region), &element.position.boxes)
            };
            let path = click_path.unwrap_or_default();
            assert!(
                path.iter().any(is_target),
                "{page}: the click on mark {shown}, {region}, arrived at {:?}",
                path.first().map(|first| &first.label)
            );
        }
    });
}

#[test]
fn click_hits_each_of_64_buttons() {
    check_clicks("/course/buttons");
}

#[test]
fn clicks_hit_marks_in_shadow_roots_and_frames() {
    for page in ["/course/shadow", "/course/iframes", "/course/iframes-nested"] {
        check_clicks(page);
    }
}

#[test]
fn clicks_hit_marks_on_transformed_pages() {
    for page in ["/course/transform", "/course/zoom", "/course/sticky", "/course/scroll", "/course/wide"] {
        check_clicks(page);
    }
}

#[test]
fn clicks_hit_marks_of_all_clickable_kinds() {
    for page in
        ["/course/clickable", "/course/hidden", "/course/listbox", "/course/modal", "/course/languages"]
    {
        check_clicks(page);
    }
}

#[test]
fn clicks_hit_marks_of_forms() {
    for page in ["/course/inputs", "/course/select", "/course/editable", "/shop/checkout"] {
        check_clicks(page);
    }
}

#[test]
fn clicks_reach_marked_elements_on_practice_sites() {
    for page in ["/shop/", "/jobs/"] {
        check_clicks(page);
    }
}

#[test]
fn huge_element_is_not_marked() {
    with_instance(async |tester| {
        tester.visit("/course/huge-target").await;
        let info = tester.observe_elements().await;
        for shown in &info.visible_rects {
            for rect in rects(region(&info, shown)) {
                assert!(rect.width * rect.height <= 0.9 * 1280.0 * 768.0, "{}", region(&info, shown));
            }
        }
    });
}

#[test]
fn elements_above_and_below_are_listed() {
    with_instance(async |tester| {
        tester.visit("/course/long").await;
        let top = tester.observe_elements().await;
        assert_eq!(top.rects_above, Vec::<String>::new());
        assert_eq!(top.rects_below.len(), 9);
        tester.run(json!({"page_down": {"amount": 3000}})).await;
        let middle = tester.observe_elements().await;
        assert_eq!(middle.rects_above.len() + middle.visible_rects.len() + middle.rects_below.len(), 11);
        assert!(!middle.rects_above.is_empty() && !middle.rects_below.is_empty());
        let name =
            |info: &ScreenshotInfo, element: &str| info.interactive_regions[element]["aria_name"].clone();
        assert_eq!(name(&middle, middle.rects_above.last().unwrap()), "Button of section 4");
        assert_eq!(name(&middle, &middle.rects_below[0]), "Button of section 6");
        for element in top.rects_below {
            assert_eq!(
                name(&middle, &element),
                name(&tester.observe_elements().await, &element),
                "an element id changed"
            );
        }
    });
}

#[test]
fn dropdown_lists_options_only_while_focused() {
    with_instance(async |tester| {
        tester.visit("/course/select").await;
        let names = |info: &ScreenshotInfo| -> Vec<String> {
            let options = info
                .visible_rects
                .iter()
                .map(|shown| region(info, shown))
                .filter(|region| region["tag_name"] == "option");
            options.map(|region| region["aria_name"].as_str().unwrap().to_owned()).collect()
        };
        let boxes = ["Olives", "Onions", "Peppers", "Capers", "Small", "Medium", "Large"];
        assert_eq!(
            names(&tester.observe_elements().await),
            boxes,
            "list boxes always show their enabled options"
        );
        tester.run_step(&by_id("click_id", "#colour")).await;
        let open = names(&tester.observe_elements().await);
        assert_eq!(open[..4], ["Choose…", "Red", "Green", "Blue"], "disabled options are not listed");
        tester.run_step(&by_id("click_id", "=Red")).await;
        assert_eq!(names(&tester.observe_elements().await), boxes, "selecting closes the list");
        tester.run_step(&by_id("click_id", "#animal")).await;
        assert_eq!(names(&tester.observe_elements().await)[..4], ["Heron", "Wren", "Perch", "Trout"]);
        tester.run_step(&by_id("click_id", "#size")).await;
        assert_eq!(names(&tester.observe_elements().await), boxes);
    });
}

#[test]
fn open_dropdown_is_on_every_screenshot() {
    with_instance(async |tester| {
        tester.visit("/course/select").await;
        let plain = ObserveRequest::screenshot(InteractionMode::Coordinates);
        let closed = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        let (x, y) = tester.find("#colour").await.centre();
        tester.run(json!({"click_coords": {"x": x, "y": y}})).await;
        let open = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        tester.run(json!({"keypress": {"keys": ["esc"]}})).await;
        tester.run(json!({"click_coords": {"x": 5, "y": 700}})).await;
        let again = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        assert!(again == closed, "the closed list is still drawn");
        // Whether Chromium's own popup is on the screenshot depends on the browser kind; our rows always are.
        assert!(open != closed, "the rows are not drawn");
    });
}

/// The elements of scaled and zoomed frames are clicked at their visual position.
#[test]
fn clicks_hit_marks_in_scaled_frames() {
    with_instance(async |tester| {
        tester.visit("/course/arrived").await;
        let frame = |style: &str, name: &str| {
            format!(
                "<iframe style=\"width: 300px; height: 120px; border: 7px solid; padding: 5px; {style}\" srcdoc=\"<button style='margin: 30px' \
                     onclick='top.clicked = &quot;{name}&quot;'>{name}</button>\"></iframe>"
            )
        };
        let frames =
            frame("transform: scale(0.5)", "half") + &frame("zoom: 1.4", "zoomed") + &frame("", "plain");
        tester.js(&format!("document.body.innerHTML = {}; 0", json!(frames))).await;
        tester.wait_until("[...document.querySelectorAll('iframe')].every((frame) => frame.contentDocument?.querySelector('button'))").await;
        for name in ["half", "zoomed", "plain"] {
            tester.click_named(name).await;
            assert_eq!(tester.js("window.clicked").await, name);
        }
    });
}

#[test]
fn long_dropdown_shows_rows_that_fit() {
    with_instance(async |tester| {
        tester.visit("/course/select").await;
        tester.run_step(&by_id("click_id", "#year")).await;
        let info = tester.observe_elements().await;
        let years = |list: &[String]| -> Vec<String> {
            let regions = list.iter().map(|element| &info.interactive_regions[element]);
            regions
                .filter(|region| region["tag_name"] == "option")
                .map(|region| region["aria_name"].as_str().unwrap().to_owned())
                .collect()
        };
        let shown: Vec<String> = info
            .visible_rects
            .iter()
            .map(|shown| info.id_mapping[shown].as_str().unwrap().to_owned())
            .collect();
        let (shown, below) = (years(&shown), years(&info.rects_below));
        assert!(
            shown.contains(&"1990".to_owned()) && below.contains(&"2025".to_owned()),
            "{shown:?} {below:?}"
        );
        for shown in &info.visible_rects {
            let rect = rects(region(&info, shown))[0];
            assert!(rect.bottom <= 768.5, "{}", region(&info, shown));
        }
    });
}

/// A page with wrapped controls.
const NESTED_CONTROLS: &str = r#"<!doctype html><style>* { margin: 0 } p { margin: 12px } .hand { cursor: pointer }</style>
<p><fancy-button class=hand title=Save></fancy-button></p>
<p><a href=/offer><button>Buy</button></a></p>
<p><button><span class=hand>Send</span></button></p>
<p><span class=hand><a href=/help><b tabindex=0>Help</b></a></span></p>
<p><span class=hand aria-label="Close"><i tabindex=0><svg width=20 height=20></svg></i></span></p>
<p><label class=hand><input type=checkbox> Agree</label></p>
<p><a href=/card style="display: inline-block; width: 300px; height: 80px">Card <button>Remove</button></a></p>
<script>
  customElements.define('fancy-button', class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: 'open' }).innerHTML = '<button>Save</button>'; }
  });
</script>"#;

#[test]
fn wrapper_of_a_control_is_not_marked_beside_it() {
    with_instance(async |tester| {
        tester.visit_html(NESTED_CONTROLS).await;
        let info = tester.observe_elements().await;
        let marks: Vec<(&str, &str)> = info
            .visible_rects
            .iter()
            .map(|shown| region(&info, shown))
            .map(|region| (region["tag_name"].as_str().unwrap(), region["aria_name"].as_str().unwrap()))
            .collect();
        let expected = [
            ("button", "Save"),
            ("button", "Buy"),
            ("button", "Send"),
            ("a", "Help"),
            ("span", "Close"),
            ("input, type=checkbox", "Agree"),
            ("a", "Card Remove"),
            ("button", "Remove"),
        ];
        assert_eq!(marks.iter().map(|(tag, name)| (*tag, *name)).collect::<Vec<_>>(), expected);
    });
}

/// A slider as many libraries build it: the input is clipped to one pixel, and its thumb is what users see.
const CLIPPED_SLIDER: &str = r#"<!doctype html>
<div style="margin: 50px; width: 200px; height: 24px; background: silver; position: relative">
  <div id=thumb style="width: 20px; height: 20px; background: teal; position: absolute; left: 90px; top: 2px">
    <div style="position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)">
      <input type=range min=0 max=30 value=14 aria-label=Days>
    </div>
    <div>14</div>
  </div>
</div>
<script>
  window.clicked = false;
  document.getElementById('thumb').onpointerdown = () => { window.clicked = true; };
</script>"#;

#[test]
fn control_of_invisible_size_is_marked_where_users_see_it() {
    with_instance(async |tester| {
        tester.visit_html(CLIPPED_SLIDER).await;
        let info = tester.observe_elements().await;
        let shown = tester.find_mark(&info, "=Days").await.expect("a mark on the slider");
        assert_eq!(region(&info, &shown)["role"], "slider");
        let thumb = tester.find("#thumb").await;
        assert!(same_position(&rects(region(&info, &shown)), &thumb.boxes), "{}", region(&info, &shown));
        tester.run(json!({"click_id": {"id": shown}})).await;
        assert_eq!(tester.js("window.clicked").await, true);
        tester.run(json!({"fill_id": {"id": shown, "value": "21", "press_enter": false}})).await;
        assert_eq!(tester.js("document.querySelector('input').value").await, "21");
    });
}
