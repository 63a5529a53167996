//! The set of marks against what a person sees: everything clickable in sight is marked, nothing hidden is, and
//! the number on a mark leads to the element under it.

use browser::ObserveRequest;
use practice::course::{ObstacleResponse, obstacles};
use proto::{InteractionMode, page::ScreenshotInfo};
use serde::Deserialize;
use serde_json::json;

use crate::common::{
    stage::with_instance,
    table::{Holds, Says, at, on, table},
    tester::{Found, Tester, rects, region, same_place},
};

const PEOPLE: &str = include_str!("../common/people.js");

table! {
    options_of_a_focused_drop_down_are_listed_and_chosen: "/course/select" => [on("click_id", "#animal"), on("click_id", "=Perch"), Says("animal change perch"),
        Holds("animal.value === 'perch'")];
    an_element_over_nine_tenths_is_clickable: "/course/huge-target" => [at("click_coords", "#huge"), Says("clicked huge")];
}

#[derive(Deserialize)]
struct Seen {
    found: Vec<Person>,
    hidden: Vec<Person>,
}

/// An element as a person sees it.
#[derive(Deserialize)]
struct Person {
    label: String,
    #[serde(flatten)]
    at: Found,
}

/// Pages that hold still while they are looked at.
fn still_pages() -> Vec<&'static str> {
    const RESTLESS: &[&str] = &[
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
    let mut pages: Vec<&str> = course.filter(|path| !RESTLESS.contains(path)).collect();
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

async fn see(tester: &Tester) -> Seen {
    serde_json::from_value(tester.js(PEOPLE).await).expect("what a person sees")
}

fn marked<'a>(info: &'a ScreenshotInfo, place: &Found) -> Option<&'a String> {
    info.visible_rects.iter().find(|shown| {
        let region = region(info, shown);
        let tag = region["tag_name"].as_str().unwrap_or_default();
        tag.split(',').next() == Some(&place.tag) && same_place(&rects(region), &place.boxes)
    })
}

async fn check_marks(tester: &mut Tester, page: &str) {
    let info = tester.look().await;
    let seen = see(tester).await;
    for person in &seen.found {
        assert!(
            marked(&info, &person.at).is_some(),
            "{page}: no mark on {}\n{}",
            person.label,
            info.ac_tree()
        );
    }
    for person in &seen.hidden {
        assert!(marked(&info, &person.at).is_none(), "{page}: a mark on {}", person.label);
    }
    let shown: Vec<String> = (1..=info.visible_rects.len()).map(|number| number.to_string()).collect();
    assert_eq!(info.visible_rects, shown, "{page}: shown ids count from 1");
    let again = tester.look().await;
    assert_eq!(again.id_mapping, info.id_mapping, "{page}: an element keeps its id");
}

/// Two screens of every page. In two tests, so that they can run side by side.
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
fn whatever_a_person_sees_and_can_click_is_marked() {
    let pages = still_pages();
    check_pages(&pages[..pages.len() / 2]);
}

#[test]
fn whatever_a_person_sees_and_can_click_is_marked_on_the_other_pages_too() {
    let pages = still_pages();
    check_pages(&pages[pages.len() / 2..]);
}

/// Clicks every mark of a page and looks where the click arrives.
fn check_clicks(page: &str) {
    with_instance(async |tester| {
        tester.visit(page).await;
        let info = tester.look().await;
        see(tester).await;
        for shown in &info.visible_rects {
            let region = region(&info, shown);
            if region["tag_name"] == "option" {
                continue;
            }
            tester.js("window.__arrived = null").await;
            tester.run(json!({"click_id": {"id": shown}})).await;
            let arrived: Option<Vec<Person>> =
                serde_json::from_value(tester.js("window.__arrived").await).expect("a path");
            let tag = region["tag_name"].as_str().unwrap_or_default();
            let right = |person: &Person| {
                tag.split(',').next() == Some(&person.at.tag) && same_place(&rects(region), &person.at.boxes)
            };
            let path = arrived.unwrap_or_default();
            assert!(
                path.iter().any(right),
                "{page}: the click on mark {shown}, {region}, arrived at {:?}",
                path.first().map(|first| &first.label)
            );
        }
    });
}

#[test]
fn every_mark_of_64_small_buttons_is_hit() {
    check_clicks("/course/buttons");
}

#[test]
fn every_mark_is_hit_in_shadow_roots_and_frames() {
    for page in ["/course/shadow", "/course/iframes", "/course/iframes-nested"] {
        check_clicks(page);
    }
}

#[test]
fn every_mark_is_hit_on_turned_and_zoomed_pages() {
    for page in ["/course/transform", "/course/zoom", "/course/sticky", "/course/scroll", "/course/wide"] {
        check_clicks(page);
    }
}

#[test]
fn every_mark_is_hit_whatever_makes_it_clickable() {
    for page in
        ["/course/clickable", "/course/hidden", "/course/listbox", "/course/modal", "/course/languages"]
    {
        check_clicks(page);
    }
}

#[test]
fn every_mark_of_a_form_is_hit() {
    for page in ["/course/inputs", "/course/select", "/course/editable", "/shop/checkout"] {
        check_clicks(page);
    }
}

#[test]
fn every_mark_of_a_shop_is_hit() {
    for page in ["/shop/", "/jobs/"] {
        check_clicks(page);
    }
}

#[test]
fn an_element_over_nine_tenths_is_not_marked() {
    with_instance(async |tester| {
        tester.visit("/course/huge-target").await;
        let info = tester.look().await;
        for shown in &info.visible_rects {
            for rect in rects(region(&info, shown)) {
                assert!(rect.width * rect.height <= 0.9 * 1280.0 * 768.0, "{}", region(&info, shown));
            }
        }
    });
}

#[test]
fn above_and_below_are_told_apart() {
    with_instance(async |tester| {
        tester.visit("/course/long").await;
        let top = tester.look().await;
        assert_eq!(top.rects_above, Vec::<String>::new());
        assert_eq!(top.rects_below.len(), 9);
        tester.run(json!({"page_down": {"amount": 3000}})).await;
        let middle = tester.look().await;
        assert_eq!(middle.rects_above.len() + middle.visible_rects.len() + middle.rects_below.len(), 11);
        assert!(!middle.rects_above.is_empty() && !middle.rects_below.is_empty());
        let name =
            |info: &ScreenshotInfo, element: &str| info.interactive_regions[element]["aria_name"].clone();
        assert_eq!(name(&middle, middle.rects_above.last().unwrap()), "Button of section 4");
        assert_eq!(name(&middle, &middle.rects_below[0]), "Button of section 6");
        for element in top.rects_below {
            assert_eq!(
                name(&middle, &element),
                name(&tester.look().await, &element),
                "ids stay with their elements"
            );
        }
    });
}

#[test]
fn a_drop_down_lists_its_options_only_while_it_has_the_focus() {
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
            names(&tester.look().await),
            boxes,
            "list boxes show theirs always, without the disabled ones"
        );
        tester.take(&on("click_id", "#colour")).await;
        let open = names(&tester.look().await);
        assert_eq!(open[..4], ["Choose…", "Red", "Green", "Blue"], "what is sold out is not offered");
        tester.take(&on("click_id", "=Red")).await;
        assert_eq!(names(&tester.look().await), boxes, "a choice closes the list");
        tester.take(&on("click_id", "#animal")).await;
        assert_eq!(names(&tester.look().await)[..4], ["Heron", "Wren", "Perch", "Trout"]);
        tester.take(&on("click_id", "#size")).await;
        assert_eq!(names(&tester.look().await), boxes);
    });
}

#[test]
fn an_open_drop_down_is_in_every_picture() {
    with_instance(async |tester| {
        tester.visit("/course/select").await;
        let plain = ObserveRequest::screenshot(InteractionMode::Coordinates);
        let shut = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        let (x, y) = tester.find("#colour").await.centre();
        tester.run(json!({"click_coords": {"x": x, "y": y}})).await;
        let open = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        tester.run(json!({"keypress": {"keys": ["esc"]}})).await;
        tester.run(json!({"click_coords": {"x": 5, "y": 700}})).await;
        let again = tester.instance.observe(&plain).await.unwrap().screenshot.unwrap().bytes;
        assert!(again == shut, "closed, it looks as before");
        // Chromium's own window would be there too, or not, by kind; ours is drawn by us, so always.
        assert!(open != shut, "the rows are drawn");
    });
}

/// Frames that are scaled or zoomed: their elements are where they look to be.
#[test]
fn every_mark_is_hit_in_scaled_frames() {
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
        tester.until("[...document.querySelectorAll('iframe')].every((one) => one.contentDocument?.querySelector('button'))").await;
        for name in ["half", "zoomed", "plain"] {
            tester.take_named(name).await;
            assert_eq!(tester.js("window.clicked").await, name);
        }
    });
}

#[test]
fn a_long_drop_down_shows_what_fits_and_lists_the_rest() {
    with_instance(async |tester| {
        tester.visit("/course/select").await;
        tester.take(&on("click_id", "#year")).await;
        let info = tester.look().await;
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
