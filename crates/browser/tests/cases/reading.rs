//! Reading a page: text, metadata, elements, the last screenshot; odd and huge content.

use proto::{ImageFormat, InteractionMode};
use serde_json::{Value, json};

use crate::common::{
    stage::with_instance,
    table::{Holds, Run, Says, Shows, on, table},
};

table! {
    a_storm_of_changes: "/course/storm" => [on("click_id", "#go"), Shows("#result", "done"), on("click_id", "#stop"), Says("stopped")];
    ten_thousand_links: "/course/links" => [on("click_id", "#link-30"), Shows("#field-link", "30")];
    ten_thousand_links_further_down: "/course/links" => [Run(r#"{"page_down":{"amount":9000}}"#), on("click_id", "=Link 4100"), Shows("#field-link", "4100")];
    lone_surrogates: "/course/surrogate" => [on("click_id", "#broken"), Holds("document.getElementById('log').dataset.last.startsWith('clicked broken')"),
        on("click_id", "#link"), Holds("location.hash === '#here'")];
}

async fn metadata(tester: &mut crate::common::tester::Tester) -> Value {
    tester.run(json!({"get_page_metadata": {}})).await
}

#[test]
fn metadata_of_a_rich_page() {
    with_instance(async |tester| {
        tester.visit("/course/metadata").await;
        let seen = metadata(tester).await;
        assert_eq!(seen["title"], "Walnut stool by Halden");
        assert_eq!(seen["url"], tester.address("/course/metadata"));
        assert_eq!(seen["meta_tags"]["description"], "A three-legged stool of oiled walnut.");
        assert_eq!(seen["meta_tags"]["og:price:amount"], "149.00");
        assert_eq!(seen["jsonld"][0]["offers"]["price"], "149.00");
        assert_eq!(seen["jsonld"].as_array().unwrap().len(), 2, "what is not JSON is left out");
        let product = &seen["microdata"][0];
        assert_eq!(product["type"], "https://schema.org/Product");
        assert_eq!(product["properties"]["name"], json!(["Walnut stool"]));
        assert_eq!(product["properties"]["brand"][0]["properties"]["name"], json!(["Halden"]));
        assert_eq!(
            product["properties"]["offers"][0]["properties"]["priceValidUntil"],
            json!(["2026-12-31"])
        );
        assert_eq!(product["properties"]["url"][0], tester.address("/course/metadata"));
    });
}

#[test]
fn metadata_falls_back_and_stays_bounded() {
    with_instance(async |tester| {
        let seen = metadata(tester).await;
        assert_eq!(seen, json!({"title": "Unknown Page", "url": "about:blank"}), "a new instance");
        tester.visit("/course/blank").await;
        let seen = metadata(tester).await;
        assert_eq!(seen["title"], "Unknown Page");
        assert!(seen["url"].as_str().unwrap().ends_with("/course/blank"));
        assert!(
            seen.get("meta_tags").is_none()
                && seen.get("jsonld").is_none()
                && seen.get("microdata").is_none()
        );
        tester.visit("/course/big-title").await;
        let title = metadata(tester).await["title"].as_str().unwrap().to_owned();
        assert!(title.starts_with("A very long title.") && title.len() <= 4096, "{}", title.len());
        tester.visit("/course/surrogate").await;
        assert_eq!(metadata(tester).await["title"], "Half \u{fffd} a title");
    });
}

#[test]
fn the_address_is_that_of_now() {
    with_instance(async |tester| {
        tester.visit("/course/push-state").await;
        tester.take(&on("click_id", "#next")).await;
        let seen = metadata(tester).await;
        assert_eq!(
            (seen["title"].as_str(), seen["url"].as_str()),
            (Some("Step 2"), Some(&*tester.address("/course/push-state?step=2")))
        );
    });
}

#[test]
fn text_is_cut_at_the_right_line() {
    with_instance(async |tester| {
        tester.visit("/course/text").await;
        let lines = async |tester: &mut crate::common::tester::Tester, arguments: Value| -> Vec<String> {
            let answer = tester.run(json!({"get_webpage_text": arguments})).await;
            answer["text"].as_str().unwrap().lines().map(str::to_owned).collect()
        };
        let all = lines(tester, json!({})).await;
        assert_eq!(all.len(), 100, "the default");
        assert_eq!(
            (all[0].as_str(), all[4].as_str()),
            ("Line 1 of three hundred.", "Line 6 of three hundred."),
            "empty lines are dropped"
        );
        assert_eq!(lines(tester, json!({"n_lines": 1000})).await.len(), 240);
        assert_eq!(lines(tester, json!({"n_lines": "3"})).await.len(), 3);
        assert_eq!(lines(tester, json!({"n_lines": 0})).await.len(), 0);
        tester.visit("/course/blank").await;
        assert_eq!(lines(tester, json!({})).await.len(), 0);
        tester.visit("/course/surrogate").await;
        assert!(lines(tester, json!({})).await.iter().any(|line| line.contains("a\u{fffd}b\u{fffd}c")));
        tester.visit("/course/hidden").await;
        assert!(
            !lines(tester, json!({})).await.iter().any(|line| line.contains("display: none")),
            "what is hidden is not read"
        );
    });
}

#[test]
fn interactive_rects_tell_what_an_element_is() {
    with_instance(async |tester| {
        tester.visit("/course/inputs").await;
        let regions = tester.run(json!({"get_interactive_rects": {}})).await;
        let named = |name: &str| {
            let found = regions.as_object().unwrap().values().find(|region| region["aria_name"] == name);
            found.unwrap_or_else(|| panic!("nothing is called {name:?}"))
        };
        for (name, tag, role) in [
            ("Text", "input, type=text", "textbox"),
            ("Search", "input, type=search", "searchbox"),
            ("Number", "input, type=number", "spinbutton"),
            ("Range", "input, type=range", "slider"),
            ("Check me", "input, type=checkbox", "checkbox"),
            ("One", "input, type=radio", "radio"),
            ("Send", "input, type=submit", "button"),
            ("Send by picture", "input, type=image", "button"),
            ("Obstacle course", "a", "link"),
        ] {
            let region = named(name);
            assert_eq!(
                (region["tag_name"].as_str(), region["role"].as_str()),
                (Some(tag), Some(role)),
                "{name}"
            );
            let rect = &region["rects"][0];
            let side = |name: &str| rect[name].as_f64().unwrap();
            assert!((side("right") - side("x") - side("width")).abs() < 0.01, "{rect}");
            assert_eq!((&rect["top"], &rect["left"]), (&rect["y"], &rect["x"]));
        }
        tester.visit("/course/scroll").await;
        let regions = tester.run(json!({"get_interactive_rects": {}})).await;
        let scrolls = |name: &str| {
            regions.as_object().unwrap().values().find(|region| region["aria_name"] == name).unwrap()["v_scrollable"].clone()
        };
        assert_eq!(
            (scrolls("outer"), scrolls("inner"), scrolls("sideways")),
            (json!(true), json!(true), json!(false))
        );
    });
}

#[test]
fn names_come_from_where_people_read_them() {
    with_instance(async |tester| {
        tester
            .write(
                "<button aria-label='By label'>x</button><span id=l1>Labelled</span> <span id=l2>by two</span>\
                 <button aria-labelledby='l1 l2'>x</button><label>Wrapping <input></label><label for=f>For it</label><input id=f>\
                 <input name=by-name><a href='#'><img alt='By alt' width=20 height=20></a><button title='By title'></button>\
                 <button>  Trimmed \n inner   text </button><input type=submit value='Press me'><input placeholder='Hint only'>\
                 <label>Colour <select><option>Red<option>Green</select></label>",
            )
            .await;
        let info = tester.look().await;
        let names: Vec<&str> = info
            .visible_rects
            .iter()
            .map(|shown| crate::common::tester::region(&info, shown)["aria_name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "By label",
                "Labelled by two",
                "Wrapping",
                "For it",
                "by-name",
                "By alt",
                "By title",
                "Trimmed inner text",
                "Press me",
                "Hint only",
                "Colour",
            ]
        );
    });
}

#[test]
fn screenshot_info_is_that_of_the_last_set_of_marks() {
    with_instance(async |tester| {
        assert_eq!(
            tester.run(json!({"get_screenshot_info": {}})).await,
            json!({"error": "No screenshot info available"})
        );
        tester.visit("/course/long").await;
        tester.run(json!({"page_down": {"amount": 1000}})).await;
        assert_eq!(
            tester.run(json!({"screenshot": {"interaction_mode": "coordinates"}})).await,
            json!({"status": "screenshot_taken"})
        );
        assert_eq!(
            tester.run(json!({"get_screenshot_info": {}})).await,
            json!({"error": "No screenshot info available"})
        );
        tester.run(json!({"screenshot": {}})).await;
        let info = tester.run(json!({"get_screenshot_info": {}})).await;
        assert_eq!(info["visible_rects"], json!(["1"]));
        assert_eq!(info["rects_above"].as_array().unwrap().len(), 2, "the home link and the first button");
        assert_eq!(info["rects_below"].as_array().unwrap().len(), 8);
        let element = info["id_mapping"]["1"].as_str().unwrap();
        assert_eq!(info["interactive_regions"][element]["aria_name"], "Button of section 2");
        assert_eq!(info["interactive_regions"].as_object().unwrap().len(), 11);
    });
}

#[test]
fn pictures_are_of_the_size_and_kind_asked_for() {
    with_instance(async |tester| {
        tester.visit("/course/buttons").await;
        for mode in [InteractionMode::Coordinates, InteractionMode::SetOfMarks] {
            for (format, magic) in [
                (ImageFormat::Png, &b"\x89PNG"[..]),
                (ImageFormat::Jpeg, b"\xff\xd8\xff"),
                (ImageFormat::Webp, b"RIFF"),
            ] {
                let request = browser::ObserveRequest {
                    mode,
                    format,
                    screenshot: true,
                    metadata: true,
                    elements: true,
                };
                let seen = tester.instance.observe(&request).await.unwrap();
                let picture = seen.screenshot.unwrap();
                assert!(picture.bytes.starts_with(magic), "{mode:?} {format:?}");
                assert_eq!((picture.width, picture.height, picture.format), (1280, 768, format));
                if format == ImageFormat::Png {
                    assert_eq!(
                        &picture.bytes[16..24],
                        &[0, 0, 5, 0, 0, 0, 3, 0],
                        "1280 by 768 in the header"
                    );
                }
                assert_eq!(seen.metadata.unwrap().title, "Buttons · Obstacle course");
                assert!(seen.elements.unwrap().visible_rects.len() > 64);
            }
        }
        assert_eq!(tester.instance.size().await.unwrap(), (1280, 768));
    });
}

#[test]
fn ten_thousand_links_are_marked_within_the_limit_of_a_look() {
    with_instance(async |tester| {
        tester.visit("/course/links").await;
        for _ in 0..3 {
            let info = tester.look().await;
            assert!(info.visible_rects.len() > 100 && info.rects_below.len() > 9000);
        }
    });
}

#[test]
fn a_captcha_page_is_a_page() {
    with_instance(async |tester| {
        tester.visit("/course/captcha").await;
        let info = tester.look().await;
        assert!(info.ac_tree().contains("text: Screenshot 9, tag: button"), "{}", info.ac_tree());
        assert!(!info.ac_tree().contains("Verify"), "a disabled button is not offered");
    });
}
