//! Reading a page: text, metadata, elements, screenshots; unusual and huge content.

use proto::{ImageFormat, InteractionMode};
use serde_json::{Value, json};

use crate::common::{
    fixture::with_instance,
    table::{HasText, IsTrue, Logged, Run, by_id, table},
};

table! {
    click_works_during_constant_changes: "/course/storm" => [by_id("click_id", "#go"), HasText("#result", "done"), by_id("click_id", "#stop"), Logged("stopped")];
    click_works_among_ten_thousand_links: "/course/links" => [by_id("click_id", "#link-30"), HasText("#field-link", "30")];
    scrolled_click_works_among_ten_thousand_links: "/course/links" => [Run(r#"{"page_down":{"amount":9000}}"#), by_id("click_id", "=Link 4100"), HasText("#field-link", "4100")];
    click_works_with_lone_surrogates: "/course/surrogate" => [by_id("click_id", "#broken"), IsTrue("document.getElementById('log').dataset.last.startsWith('clicked broken')"),
        by_id("click_id", "#link"), IsTrue("location.hash === '#here'")];
}

async fn read_metadata(tester: &mut crate::common::tester::Tester) -> Value {
    tester.run(json!({"get_page_metadata": {}})).await
}

#[test]
fn metadata_contains_structured_data() {
    with_instance(async |tester| {
        tester.visit("/course/metadata").await;
        let metadata = read_metadata(tester).await;
        assert_eq!(metadata["title"], "Walnut stool by Halden");
        assert_eq!(metadata["url"], tester.url("/course/metadata"));
        assert_eq!(metadata["meta_tags"]["description"], "A three-legged stool of oiled walnut.");
        assert_eq!(metadata["meta_tags"]["og:price:amount"], "149.00");
        assert_eq!(metadata["jsonld"][0]["offers"]["price"], "149.00");
        assert_eq!(metadata["jsonld"].as_array().unwrap().len(), 2, "invalid JSON is skipped");
        let product = &metadata["microdata"][0];
        assert_eq!(product["type"], "https://schema.org/Product");
        assert_eq!(product["properties"]["name"], json!(["Walnut stool"]));
        assert_eq!(product["properties"]["brand"][0]["properties"]["name"], json!(["Halden"]));
        assert_eq!(
            product["properties"]["offers"][0]["properties"]["priceValidUntil"],
            json!(["2026-12-31"])
        );
        assert_eq!(product["properties"]["url"][0], tester.url("/course/metadata"));
    });
}

#[test]
fn metadata_has_defaults_and_is_bounded() {
    with_instance(async |tester| {
        let metadata = read_metadata(tester).await;
        assert_eq!(metadata, json!({"title": "Unknown Page", "url": "about:blank"}), "a new instance");
        tester.visit("/course/blank").await;
        let metadata = read_metadata(tester).await;
        assert_eq!(metadata["title"], "Unknown Page");
        assert!(metadata["url"].as_str().unwrap().ends_with("/course/blank"));
        assert!(
            metadata.get("meta_tags").is_none()
                && metadata.get("jsonld").is_none()
                && metadata.get("microdata").is_none()
        );
        tester.visit("/course/big-title").await;
        let title = read_metadata(tester).await["title"].as_str().unwrap().to_owned();
        assert!(title.starts_with("A very long title.") && title.len() <= 4096, "{}", title.len());
        tester.visit("/course/surrogate").await;
        assert_eq!(read_metadata(tester).await["title"], "Half \u{fffd} a title");
    });
}

#[test]
fn metadata_has_the_current_url() {
    with_instance(async |tester| {
        tester.visit("/course/push-state").await;
        tester.run_step(&by_id("click_id", "#next")).await;
        let metadata = read_metadata(tester).await;
        assert_eq!(
            (metadata["title"].as_str(), metadata["url"].as_str()),
            (Some("Step 2"), Some(&*tester.url("/course/push-state?step=2")))
        );
    });
}

#[test]
fn text_is_limited_to_n_lines() {
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
            "hidden text is not read"
        );
    });
}

#[test]
fn interactive_rects_have_tag_and_role() {
    with_instance(async |tester| {
        tester.visit("/course/inputs").await;
        let regions = tester.run(json!({"get_interactive_rects": {}})).await;
        let named = |name: &str| {
            let found = regions.as_object().unwrap().values().find(|region| region["aria_name"] == name);
            found.unwrap_or_else(|| panic!("no element is named {name:?}"))
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
fn accessible_names_come_from_labels() {
    with_instance(async |tester| {
        tester
            .visit_html(
                "<button aria-label='By label'>x</button><span id=l1>Labelled</span> <span id=l2>by two</span>\
                 <button aria-labelledby='l1 l2'>x</button><label>Wrapping <input></label><label for=f>For it</label><input id=f>\
                 <input name=by-name><a href='#'><img alt='By alt' width=20 height=20></a><button title='By title'></button>\
                 <button>  Trimmed \n inner   text </button><input type=submit value='Press me'><input placeholder='Hint only'>\
                 <label>Colour <select><option>Red<option>Green</select></label>",
            )
            .await;
        let info = tester.observe_elements().await;
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
fn screenshot_info_describes_last_set_of_marks() {
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
fn screenshots_have_requested_size_and_format() {
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
                    view: None,
                };
                let observation = tester.instance.observe(&request).await.unwrap();
                let screenshot = observation.screenshot.unwrap();
                assert!(screenshot.bytes.starts_with(magic), "{mode:?} {format:?}");
                assert_eq!((screenshot.width, screenshot.height, screenshot.format), (1280, 768, format));
                if format == ImageFormat::Png {
                    assert_eq!(
                        &screenshot.bytes[16..24],
                        &[0, 0, 5, 0, 0, 0, 3, 0],
                        "1280 by 768 in the header"
                    );
                }
                assert_eq!(observation.metadata.unwrap().title, "Buttons · Obstacle course");
                assert!(observation.elements.unwrap().visible_rects.len() > 64);
            }
        }
        assert_eq!(tester.instance.viewport_size().await.unwrap(), (1280, 768));
    });
}

#[test]
fn ten_thousand_links_are_marked_in_time() {
    with_instance(async |tester| {
        tester.visit("/course/links").await;
        for _ in 0..3 {
            let info = tester.observe_elements().await;
            assert!(info.visible_rects.len() > 100 && info.rects_below.len() > 9000);
        }
    });
}

#[test]
fn captcha_page_is_observed_like_others() {
    with_instance(async |tester| {
        tester.visit("/course/captcha").await;
        let info = tester.observe_elements().await;
        assert!(info.ac_tree().contains("text: Picture 9, tag: button"), "{}", info.ac_tree());
        assert!(!info.ac_tree().contains("Verify"), "a disabled button is listed");
    });
}
