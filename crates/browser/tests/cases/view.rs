//! Screenshots of a part of the viewport and at another scale, and the position of the mouse.

use browser::{ObserveRequest, Options, View};
use proto::{InteractionMode, SessionOptions, command::Point};
use serde_json::json;

use crate::common::{
    fixture::{with_instance, with_options},
    raw_site::{self, RawResponse},
    tester::Tester,
};

/// Bands of 200 pixels: white, and from 1000 on red, green and blue.
const BANDS: &str = "<body style='margin:0;height:4000px'>
<div style='position:absolute;top:1000px;left:0;width:100%;height:200px;background:#f00'></div>
<div style='position:absolute;top:1200px;left:0;width:100%;height:200px;background:#0f0'></div>
<div style='position:absolute;top:1400px;left:0;width:100%;height:200px;background:#00f'></div>";

const RED: [u8; 3] = [255, 0, 0];
const GREEN: [u8; 3] = [0, 255, 0];
const BLUE: [u8; 3] = [0, 0, 255];

struct Pixels {
    width: u32,
    height: u32,
    samples: usize,
    data: Vec<u8>,
}

impl Pixels {
    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let start = (y * self.width as usize + x) * self.samples;
        [self.data[start], self.data[start + 1], self.data[start + 2]]
    }
}

async fn capture(tester: &mut Tester, view: Option<View>) -> Pixels {
    let request = ObserveRequest { view, ..ObserveRequest::screenshot(InteractionMode::Coordinates) };
    let screenshot = tester.instance.observe(&request).await.unwrap().screenshot.unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&screenshot.bytes[..])).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    assert_eq!((info.width, info.height), (screenshot.width, screenshot.height));
    Pixels { width: info.width, height: info.height, samples: info.color_type.samples(), data }
}

async fn check_views(tester: &mut Tester) {
    tester.visit_html(BANDS).await;
    tester
        .js("window.resizes = 0; addEventListener('resize', () => window.resizes++); scrollTo(0, 1000)")
        .await;
    let (width, height) = (1280.0, 768.0);
    let whole = View { x: 0.0, y: 0.0, width, height, scale: 0.5 };
    let half = capture(tester, Some(whole)).await;
    assert_eq!((half.width, half.height), (640, 384));
    assert_eq!((half.at(5, 50), half.at(600, 150), half.at(5, 250)), (RED, GREEN, BLUE));
    // A display of 1024 by 615 has another height than the viewport at this scale: the screenshot has the size of the display.
    let view = View { height: 615.0 / 0.8, scale: 0.8, ..whole };
    let display = capture(tester, Some(view)).await;
    assert_eq!((display.width, display.height), (1024, 615));
    let zoomed = View { x: 100.0, y: 150.0, width: 200.0, height: 100.0, scale: 4.0 };
    let zoomed = capture(tester, Some(zoomed)).await;
    assert_eq!((zoomed.width, zoomed.height), (800, 400));
    assert_eq!((zoomed.at(400, 190), zoomed.at(400, 210)), (RED, GREEN));
    let plain = capture(tester, None).await;
    assert_eq!((plain.width, plain.height), (1280, 768));
    assert_eq!((plain.at(5, 100), plain.at(5, 300)), (RED, GREEN));
    assert_eq!(tester.js("[window.resizes, innerWidth, scrollY]").await, json!([0, 1280, 1000]));
}

#[test]
fn view_of_a_scrolled_page_is_scaled_by_the_browser() {
    with_instance(check_views);
}

#[test]
fn view_of_a_scrolled_page_has_css_pixels_with_a_device_scale_factor() {
    let session = json!({"device_scale_factor": 2});
    let session = SessionOptions::from_json(session.as_object().unwrap()).unwrap();
    with_options(&Options::default().with_session(session, None), check_views);
}

#[test]
fn open_drop_down_is_drawn_on_a_scaled_view() {
    with_instance(async |tester| {
        tester
            .visit_html(
                "<body style='margin:0'><select style='width:300px;height:40px'><option>one<option>two",
            )
            .await;
        let whole = View { x: 0.0, y: 0.0, width: 1280.0, height: 768.0, scale: 0.5 };
        let closed = capture(tester, Some(whole)).await;
        tester.run(json!({"click_coords": {"x": 100, "y": 20}})).await;
        let open = capture(tester, Some(whole)).await;
        let below = |pixels: &Pixels| (20..60).any(|y| (2..140).any(|x| pixels.at(x, y) != [255; 3]));
        assert!(!below(&closed) && below(&open), "the rows are below the field");
        assert_eq!((open.width, open.height), (640, 384));
    });
}

#[test]
fn mouse_stays_where_the_last_command_left_it() {
    with_instance(async |tester| {
        let at =
            |tester: &Tester, x: f64, y: f64| assert_eq!(tester.instance.mouse_position(), Point { x, y });
        at(tester, 0.0, 0.0);
        tester.visit_html("<body style='height:3000px'><a href='about:blank' target=_blank>a</a>").await;
        tester.run(json!({"mouse_move": {"x": 30, "y": 40}})).await;
        at(tester, 30.0, 40.0);
        tester.run(json!({"mouse_wheel": {"x": 50, "y": 60, "dy": 100}})).await;
        at(tester, 50.0, 60.0);
        tester.run(json!({"drag": {"path": [[1, 2], [70, 80]]}})).await;
        at(tester, 70.0, 80.0);
        tester.run(json!({"click_coords": {"x": 300, "y": 200}})).await;
        at(tester, 300.0, 200.0);
        tester.visit("/course/buttons").await;
        at(tester, 300.0, 200.0);
    });
}

/// Two sites that lead to each other again and again, each in a process of its own.
#[test]
fn page_that_moves_between_processes_is_captured() {
    with_instance(async |tester| {
        let site = raw_site::start(|request| {
            let other = if request.head.contains("localhost") { "127.0.0.1" } else { "localhost" };
            RawResponse::page(format!(
                "<body>moving<script>setTimeout(() => location.replace(`http://{other}:${{location.port}}/?${{Math.random()}}`), 60)</script>"
            ))
        })
        .await;
        tester.run(json!({"visit_page": {"url": format!("http://{site}/")}})).await;
        for _ in 0..10 {
            let plain = capture(tester, None).await;
            assert_eq!((plain.width, plain.height), (1280, 768));
            let whole = View { x: 0.0, y: 0.0, width: 1280.0, height: 768.0, scale: 0.5 };
            assert_eq!(capture(tester, Some(whole)).await.width, 640);
        }
    });
}

/// Boxes with rounded corners at uneven positions. `paint` redraws a part of each, in several frames.
const ROUNDED_BOXES: &str = "<style>div { position: absolute; border: 1px solid #767676; border-radius: 5px; background: #fff; font: 13px sans-serif }
b { position: absolute; right: 0; top: 0; width: 30%; height: 100%; border-radius: 0 5px 5px 0 }</style>
<body style='background: #f5f5f5'><script>
for (let i = 0; i < 300; i++)
    document.body.insertAdjacentHTML('beforeend', `<div style='left: ${20 + i % 12 * 103.3}px; top: ${10 + Math.floor(i / 12) * 29.7}px; width: ${60 + i % 7 * 3.3}px; height: ${15 + i % 5 * 1.7}px'>${i}<b></b></div>`);
const paint = async (colour) => {
    for (const [i, part] of document.querySelectorAll('b').entries()) {
        part.style.background = colour;
        if (i % 23 === 0) await new Promise(requestAnimationFrame);
    }
    return 0;
};
</script>";

#[test]
fn redrawn_parts_of_a_page_have_the_same_pixels() {
    with_instance(async |tester| {
        tester.visit_html(ROUNDED_BOXES).await;
        let first = capture(tester, None).await;
        for _ in 0..2 {
            tester.js("paint('#36c')").await;
            assert!(capture(tester, None).await.data != first.data, "the page has not changed");
            tester.js("paint('')").await;
            let again = capture(tester, None).await;
            let differs = |&index: &usize| again.data[index] != first.data[index];
            let different: Vec<usize> = (0..first.data.len()).filter(differs).collect();
            let position = |index: &usize| {
                let pixel = index / first.samples;
                (pixel % first.width as usize, pixel / first.width as usize)
            };
            let place = different.first().map(position);
            assert_eq!(place, None, "{} values differ, the first at this pixel", different.len());
        }
    });
}
