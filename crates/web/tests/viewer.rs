//! The viewer in a real Chromium: a person opens an iteration, filters, sorts, drills down, walks by keyboard, compares.

#![allow(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod common;
mod viewdata;

use common::{Tab, pages_are_built};
use serde_json::json;
use store::SavePath;
use web::page::{self, Place};
use web::view::{View, router};

struct Opened {
    tab: Tab,
    place: Place,
    _directory: tempfile::TempDir,
}

impl Opened {
    /// The viewer over a small save path, at the given place behind the '#'.
    async fn at(hash: &str) -> Self {
        pages_are_built();
        let directory = tempfile::tempdir().unwrap();
        let place = serve(&viewdata::small(directory.path())).await;
        let tab = Tab::open().await;
        tab.visit(&format!("{}{hash}", place.link())).await;
        Self { tab, place, _directory: directory }
    }

    async fn hash(&self) -> String {
        self.tab.js("location.hash").await.as_str().unwrap().to_owned()
    }

    /// Nothing went wrong on the way, and no text became anything else.
    async fn close(self) {
        assert_eq!(self.tab.js("window.broken ?? null").await, json!(null));
        self.tab.assert_no_trouble();
        self.tab.close().await;
    }
}

async fn serve(save_path: &SavePath) -> Place {
    let view = View::new(save_path.clone(), Vec::new());
    page::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap()
}

const ROWS: &str = "[...document.querySelectorAll('tr[data-row]')].map((row) => row.dataset.row)";

#[tokio::test]
async fn from_the_iterations_to_a_filtered_and_sorted_table() {
    let opened = Opened::at("").await;
    let tab = &opened.tab;
    tab.until("document.querySelectorAll('.iterations tbody tr').length === 3").await;
    tab.until("document.body.textContent.includes('50 %')").await;
    tab.assert_accessible("the iterations").await;
    tab.click("a[href='#/train/0']").await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 12").await;
    tab.assert_accessible("the table").await;

    tab.click("input[type=search]").await;
    tab.type_text("kettle").await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 3").await;
    assert_eq!(tab.js(ROWS).await, json!(["0", "4", "8"]));
    assert_eq!(opened.hash().await, "#/train/0?q=kettle");
    assert_eq!(tab.text(".filters output").await, "3 of 12");

    tab.press("Escape").await;
    let choose = "(() => { const list = [...document.querySelectorAll('.filters select')].find((one) => one.options[0].text.startsWith('Difficulty')); \
                  list.value = 'medium'; list.dispatchEvent(new Event('change', { bubbles: true })); })()";
    tab.js(choose).await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 1").await;
    tab.click(".filters button").await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 12").await;

    let heading = "[...document.querySelectorAll('.rows th button')].find((one) => one.textContent.startsWith('Difficulty')).click()";
    tab.js(heading).await;
    tab.js(heading).await;
    tab.until("location.hash.includes('sort=-difficulty')").await;
    tab.until(&format!("{ROWS}[0] === '8'")).await;
    assert_eq!(
        tab.js("document.querySelector('th[aria-sort=descending]').textContent.trim()").await,
        "Difficulty▼"
    );
    opened.close().await;
}

#[tokio::test]
async fn a_shared_link_opens_what_it_names_under_any_prefix() {
    pages_are_built();
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(viewdata::small(directory.path()), Vec::new());
    let routes = axum::Router::new().nest_service("/deep/below", router(view));
    let place = page::serve(([127, 0, 0, 1], 0).into(), None, routes).await.unwrap();
    let tab = Tab::open().await;
    tab.visit(&format!("{}deep/below/#/train/0/4?outcome=success&step=2", place.link())).await;
    tab.until("document.querySelector('.stage img')?.naturalWidth === 640").await;
    assert_eq!(tab.text(".stepper h3").await, "Step 2 of 6");
    assert!(tab.text(".heading").await.contains("3 of 6"), "its place among the successes");
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test]
async fn a_trajectory_is_walked_by_keyboard_with_its_actions_drawn() {
    let opened = Opened::at("#/train/0/0").await;
    let tab = &opened.tab;
    tab.until("document.querySelector('.stage img')?.naturalWidth === 640").await;
    tab.until("document.querySelector('.marks circle')").await;
    // The click at 250, 500 of a thousand: a quarter from the left, half way down.
    let point = "(() => { const dot = document.querySelector('.marks .dot').getBoundingClientRect(); const box = document.querySelector('.picture').getBoundingClientRect(); \
                 return [(dot.x + dot.width / 2 - box.x) / box.width, (dot.y + dot.height / 2 - box.y) / box.height].map((part) => part.toFixed(2)); })()";
    assert_eq!(tab.js(point).await, json!(["0.25", "0.50"]));
    tab.assert_accessible("a trajectory").await;

    tab.press("ArrowRight").await;
    tab.until("document.querySelector('.typed')?.textContent === 'kettle'").await;
    assert_eq!(tab.js("document.querySelectorAll('.marks rect').length").await, 2, "the box it typed into");
    tab.press("ArrowRight").await;
    tab.until("document.querySelector('.marks path')").await;
    assert!(tab.text(".stage figcaption").await.starts_with("scroll down"));
    assert!(tab.text(".stage figcaption").await.contains("page unchanged"));
    tab.press("ArrowRight").await;
    tab.until("document.querySelector('.stage figcaption').textContent.includes('Search, tag: input')").await;
    // The mark's box is found on the picture: from a tenth of the width on, a quarter down.
    tab.until("document.querySelectorAll('.marks rect').length === 2").await;
    let mark = "(() => { const mark = document.querySelector('.marks .inner').getBBox(); return [mark.x / 640, mark.y / 400].map((part) => part.toFixed(1)); })()";
    assert_eq!(tab.js(mark).await, json!(["0.1", "0.2"]));
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.until("document.querySelector('.stepper h3').textContent === 'Step 6 of 6'").await;
    assert_eq!(opened.hash().await, "#/train/0/0?step=6");
    tab.press("ArrowLeft").await;
    tab.until("document.querySelector('.stepper h3').textContent === 'Step 5 of 6'").await;

    let verdict = tab.text(".verdict").await;
    for words in ["12.99 €", "The price is named", "✓ passed", "not asked", "The site let it in."] {
        assert!(verdict.contains(words), "{words}: {verdict}");
    }
    assert!(tab.text(".step-panel").await.contains("seen 4 pages"));
    assert!(tab.text(".timings").await.contains("policy 2.0 s"));
    tab.click(".step-panel .pane:nth-of-type(2) summary").await;
    tab.until("document.querySelector('.messages')?.textContent.includes('You operate a browser.')").await;

    tab.press("j").await;
    tab.press("j").await;
    tab.press("k").await;
    tab.until("location.hash.startsWith('#/train/0/1')").await;
    tab.until("document.querySelector('.verdict')?.textContent.includes('✗ not passed')").await;
    tab.press("k").await;
    tab.until("location.hash.startsWith('#/train/0/0')").await;
    tab.press("?").await;
    tab.until("document.querySelector('dialog').open").await;
    tab.press("Escape").await;
    tab.until("!document.querySelector('dialog').open").await;
    tab.press("u").await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 12").await;
    opened.close().await;
}

#[tokio::test]
async fn two_attempts_at_a_task_stand_side_by_side() {
    let opened = Opened::at("#/train/0/1").await;
    let tab = &opened.tab;
    tab.until("document.querySelectorAll('.compare-picker option').length === 3").await;
    let choose = "(() => { const list = document.querySelector('.compare-picker'); list.value = 'test/0/1'; list.dispatchEvent(new Event('change', { bubbles: true })); })()";
    tab.js(choose).await;
    tab.until("document.querySelectorAll('.side .stage img').length === 2").await;
    assert_eq!(opened.hash().await, "#/compare/train/0/1/test/0/1");
    tab.press("ArrowRight").await;
    tab.until("document.querySelectorAll('.side .typed').length === 2").await;
    tab.assert_accessible("the comparison").await;
    opened.close().await;
}

#[tokio::test]
async fn hostile_texts_stay_texts_on_every_page() {
    let opened = Opened::at("#/train/1").await;
    let tab = &opened.tab;
    tab.until("document.querySelectorAll('tr[data-row]').length === 8").await;
    assert!(tab.text("tr[data-row='5']").await.contains("<img src=x onerror="));
    for page in ["#/train/1/5", "#/train/1/5?step=2", "#/train/1/5?step=6", "#/compare/train/1/5/train/0/5"] {
        tab.js(&format!("location.hash = {}", json!(page))).await;
        tab.until("document.querySelector('.stage') && document.body.textContent.includes('<script>window.broken=2</script>')").await;
        // Those of both sides, as they come.
        let opened = "(() => { const panes = [...document.querySelectorAll('.pane')]; panes.forEach((one) => one.open || one.querySelector('summary').click()); \
                      return panes.length === 3 * document.querySelectorAll('.side, .timeline').length && panes.every((one) => one.querySelector('.pane-body')); })()";
        tab.until(opened).await;
        let strange = "[...document.querySelectorAll('main img')].filter((one) => !one.getAttribute('src').startsWith('api/')).length + document.querySelectorAll('main script').length";
        assert_eq!(tab.js(strange).await, 0, "{page}");
        let links =
            "[...document.querySelectorAll('a')].filter((one) => one.protocol === 'javascript:').length";
        assert_eq!(tab.js(links).await, 0, "{page}");
    }
    opened.close().await;
}

#[tokio::test]
async fn missing_screenshots_and_broken_files_are_said_in_words() {
    let opened = Opened::at("#/train/0/3").await;
    let tab = &opened.tab;
    tab.until("document.querySelector('.no-picture')?.textContent.includes('is not there')").await;
    tab.js("location.hash = '#/train/7'").await;
    tab.until(
        "document.querySelector('[role=alert]')?.textContent.includes('there is no train iteration 7')",
    )
    .await;
    // The browser itself notes the 404 that this page asked for; nothing else went wrong.
    let other: Vec<_> = tab.troubles().into_iter().filter(|one| !one.contains("404")).collect();
    assert_eq!(other, Vec::<String>::new());
    tab.js("location.hash = '#/'").await;
    drop(opened.place);
    opened.tab.close().await;
}

#[tokio::test]
async fn curves_are_drawn_smoothed_hidden_and_read_as_numbers() {
    let opened = Opened::at("#/plots").await;
    let tab = &opened.tab;
    tab.until("document.querySelectorAll('.chart canvas').length === 9").await;
    tab.assert_accessible("the plots").await;
    tab.click("[aria-labelledby=chart-success] summary").await;
    tab.until(
        "document.querySelector('[aria-labelledby=chart-success] .numbers')?.textContent.includes('50.0 %')",
    )
    .await;
    let before = tab
        .js("document.querySelectorAll('[aria-labelledby=chart-success] thead th').length")
        .await
        .as_u64()
        .unwrap();
    tab.js(
        "[...document.querySelectorAll('.filters button')].find((one) => one.textContent === 'test').click()",
    )
    .await;
    tab.until(&format!(
        "document.querySelectorAll('[aria-labelledby=chart-success] thead th').length < {before}"
    ))
    .await;
    assert_eq!(opened.hash().await, "#/plots?hide=test");
    tab.js("(() => { const slide = document.querySelector('input[type=range]'); slide.value = '0.6'; slide.dispatchEvent(new Event('input', { bubbles: true })); })()").await;
    tab.until("location.hash.includes('ema=0.6') && document.querySelectorAll('.chart canvas').length === 9")
        .await;
    opened.close().await;
}

#[tokio::test]
async fn it_fits_on_a_phone_and_in_the_dark() {
    let opened = Opened::at("#/train/0/0").await;
    let tab = &opened.tab;
    tab.size(390, 844, 1.0).await;
    tab.scheme("dark").await;
    for page in ["#/", "#/train/0", "#/train/0/0", "#/compare/train/0/1/test/0/1", "#/plots"] {
        tab.js(&format!("location.hash = {}", json!(page))).await;
        tab.until(
            "!document.querySelector('.waiting') && document.querySelector('main').children.length > 0",
        )
        .await;
        let over = tab.js("document.documentElement.scrollWidth - innerWidth").await.as_f64().unwrap();
        assert!(over <= 0.0, "{page} is {over} pixels too wide");
        tab.assert_accessible(page).await;
    }
    opened.close().await;
}

#[tokio::test]
async fn a_run_that_writes_is_seen_to_go_on() {
    pages_are_built();
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let journal = viewdata::journal(&save_path, 5);
    journal.append_finished(&viewdata::trajectory(1)).await.unwrap();
    let place = serve(&save_path).await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#/train/0", place.link())).await;
    tab.until("document.querySelector('.heading .badge')?.textContent.includes('1 of 5 begun')").await;
    let begun = viewdata::trajectory(2);
    journal.append_episode(&begun.task, 0, None).await.unwrap();
    journal.append_step(2, 0, 0, &begun.steps[0]).await.unwrap();
    journal.append_finished(&viewdata::trajectory(0)).await.unwrap();
    tab.until("document.querySelectorAll('tr[data-row]').length === 3").await;
    assert!(tab.text("tr[data-row='2']").await.contains("running"));

    // The one that runs is looked at while it gets its last steps.
    tab.js("location.hash = '#/train/0/2'").await;
    tab.until("document.querySelector('.stepper h3')?.textContent === 'Step 1 of 1'").await;
    journal.append_finished(&begun).await.unwrap();
    tab.until("document.querySelector('.stepper h3').textContent === 'Step 1 of 6' && document.querySelector('.verdict .badge').textContent === 'success'").await;
    journal.close().await.unwrap();
    tab.assert_no_trouble();
    tab.close().await;
}
