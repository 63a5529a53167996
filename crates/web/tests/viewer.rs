//! The viewer in a real Chromium: iterations, the filtered and sorted table, trajectories by keyboard, comparison, plots,
//! hostile text, accessibility, small screens.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod save_paths;

use common::{Tab, require_built_pages};
use proto::trajectory::Outcome;
use serde_json::json;
use store::{SavePath, Split};
use web::server::{self, PageServer};
use web::view::{View, router};

struct Opened {
    tab: Tab,
    server: PageServer,
    _directory: tempfile::TempDir,
}

impl Opened {
    /// Opens the viewer of the small save path at the given URL fragment.
    async fn open(hash: &str) -> Self {
        require_built_pages();
        let directory = tempfile::tempdir().unwrap();
        let server = serve(&save_paths::small(directory.path())).await;
        let tab = Tab::open().await;
        tab.visit(&format!("{}{hash}", server.link())).await;
        Self { tab, server, _directory: directory }
    }

    async fn hash(&self) -> String {
        self.tab.eval("location.hash").await.as_str().unwrap().to_owned()
    }

    /// Closes the tab after checking that no script of a hostile text ran and no error was reported.
    async fn close(self) {
        assert_eq!(self.tab.eval("window.broken ?? null").await, json!(null));
        self.tab.assert_no_errors();
        self.tab.close().await;
    }
}

async fn serve(save_path: &SavePath) -> PageServer {
    let view = View::new(save_path.clone(), Vec::new());
    server::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap()
}

const ROWS: &str = "[...document.querySelectorAll('tr[data-row]')].map((row) => row.dataset.row)";

#[tokio::test]
async fn table_is_filtered_and_sorted() {
    let opened = Opened::open("").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelectorAll('.iterations tbody tr').length === 3").await;
    tab.wait_until("document.body.textContent.includes('50 %')").await;
    tab.assert_accessible("iterations").await;
    tab.click("a[href='#/train/0']").await;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 12").await;
    tab.assert_accessible("table").await;

    tab.click("input[type=search]").await;
    tab.type_text("kettle").await;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 3").await;
    assert_eq!(tab.eval(ROWS).await, json!(["0", "4", "8"]));
    assert_eq!(opened.hash().await, "#/train/0?q=kettle");
    assert_eq!(tab.text(".filters output").await, "3 of 12");

    tab.press("Escape").await;
    let choose = "(() => { const list = [...document.querySelectorAll('.filters select')].find((list) => list.options[0].text.startsWith('Difficulty')); \
                  list.value = 'medium'; list.dispatchEvent(new Event('change', { bubbles: true })); })()";
    tab.eval(choose).await;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 1").await;
    tab.click(".filters button").await;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 12").await;

    let heading = "[...document.querySelectorAll('.rows th button')].find((element) => element.textContent.startsWith('Difficulty')).click()";
    tab.eval(heading).await;
    tab.eval(heading).await;
    tab.wait_until("location.hash.includes('sort=-difficulty')").await;
    tab.wait_until(&format!("{ROWS}[0] === '8'")).await;
    assert_eq!(
        tab.eval("document.querySelector('th[aria-sort=descending]').textContent.trim()").await,
        "Difficulty▼"
    );
    opened.close().await;
}

#[tokio::test]
async fn shared_link_works_under_path_prefix() {
    require_built_pages();
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(save_paths::small(directory.path()), Vec::new());
    let routes = axum::Router::new().nest_service("/deep/below", router(view));
    let server = server::serve(([127, 0, 0, 1], 0).into(), None, routes).await.unwrap();
    let tab = Tab::open().await;
    tab.visit(&format!("{}deep/below/#/train/0/4?outcome=success&step=2", server.link())).await;
    tab.wait_until("document.querySelector('.step-view img')?.naturalWidth === 640").await;
    assert_eq!(tab.text(".stepper h3").await, "Step 2 of 6");
    assert!(tab.text(".heading").await.contains("3 of 6"), "position among the successful trajectories");
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test]
async fn trajectory_is_browsed_by_keyboard() {
    let opened = Opened::open("#/train/0/0").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelector('.step-view img')?.naturalWidth === 640").await;
    tab.wait_until("document.querySelector('.marks circle')").await;
    // The click at (250, 500) on the 1000 × 1000 grid: a quarter from the left, halfway down.
    let point = "(() => { const dot = document.querySelector('.marks .dot').getBoundingClientRect(); const box = document.querySelector('.screenshot').getBoundingClientRect(); \
                 return [(dot.x + dot.width / 2 - box.x) / box.width, (dot.y + dot.height / 2 - box.y) / box.height].map((part) => part.toFixed(2)); })()";
    assert_eq!(tab.eval(point).await, json!(["0.25", "0.50"]));
    tab.assert_accessible("trajectory").await;

    tab.press("ArrowRight").await;
    tab.wait_until("document.querySelector('.typed')?.textContent === 'kettle'").await;
    assert_eq!(
        tab.eval("document.querySelectorAll('.marks rect').length").await,
        2,
        "the box that was typed into"
    );
    tab.press("ArrowRight").await;
    tab.wait_until("document.querySelector('.marks path')").await;
    assert!(tab.text(".step-view figcaption").await.starts_with("scroll down"));
    assert!(tab.text(".step-view figcaption").await.contains("page unchanged"));
    tab.press("ArrowRight").await;
    tab.wait_until(
        "document.querySelector('.step-view figcaption').textContent.includes('Search, tag: input')",
    )
    .await;
    // The mark's outline is found on the screenshot: at a tenth of the width, a quarter of the height.
    tab.wait_until("document.querySelectorAll('.marks rect').length === 2").await;
    let mark = "(() => { const mark = document.querySelector('.marks .inner').getBBox(); return [mark.x / 640, mark.y / 400].map((part) => part.toFixed(1)); })()";
    assert_eq!(tab.eval(mark).await, json!(["0.1", "0.2"]));
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.wait_until("document.querySelector('.stepper h3').textContent === 'Step 6 of 6'").await;
    assert_eq!(opened.hash().await, "#/train/0/0?step=6");
    tab.press("ArrowLeft").await;
    tab.wait_until("document.querySelector('.stepper h3').textContent === 'Step 5 of 6'").await;

    let verdict = tab.text(".verdict").await;
    for expected in
        ["12.99 €", "The price is named", "✓ passed", "not judged", "The site let it in.", "answered"]
    {
        assert!(verdict.contains(expected), "{expected:?} is not in {verdict:?}");
    }
    assert!(tab.text(".step-panel").await.contains("seen 4 pages"));
    assert!(tab.text(".timings").await.contains("policy 2.0 s"));
    tab.click(".step-panel .pane:nth-of-type(2) summary").await;
    tab.wait_until("document.querySelector('.messages')?.textContent.includes('You operate a browser.')")
        .await;

    tab.press("j").await;
    tab.press("j").await;
    tab.press("k").await;
    tab.wait_until("location.hash.startsWith('#/train/0/1')").await;
    tab.wait_until("document.querySelector('.verdict')?.textContent.includes('✗ not passed')").await;
    tab.press("k").await;
    tab.wait_until("location.hash.startsWith('#/train/0/0')").await;
    tab.press("?").await;
    tab.wait_until("document.querySelector('dialog').open").await;
    tab.press("Escape").await;
    tab.wait_until("!document.querySelector('dialog').open").await;
    tab.press("u").await;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 12").await;
    opened.close().await;
}

#[tokio::test]
async fn trajectories_are_compared_side_by_side() {
    let opened = Opened::open("#/train/0/1").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelectorAll('.compare-picker option').length === 3").await;
    let choose = "(() => { const list = document.querySelector('.compare-picker'); list.value = 'test/0/1'; list.dispatchEvent(new Event('change', { bubbles: true })); })()";
    tab.eval(choose).await;
    tab.wait_until("document.querySelectorAll('.side .step-view img').length === 2").await;
    assert_eq!(opened.hash().await, "#/compare/train/0/1/test/0/1");
    tab.press("ArrowRight").await;
    tab.wait_until("document.querySelectorAll('.side .typed').length === 2").await;
    tab.assert_accessible("comparison").await;
    opened.close().await;
}

#[tokio::test]
async fn hostile_text_is_not_interpreted() {
    let opened = Opened::open("#/train/1").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 8").await;
    assert!(tab.text("tr[data-row='5']").await.contains("<img src=x onerror="));
    for page in ["#/train/1/5", "#/train/1/5?step=2", "#/train/1/5?step=6", "#/compare/train/1/5/train/0/5"] {
        tab.eval(&format!("location.hash = {}", json!(page))).await;
        tab.wait_until("document.querySelector('.step-view') && document.body.textContent.includes('<script>window.broken=2</script>')").await;
        // Open every pane, on both sides of a comparison.
        let panes_are_open = "(() => { const panes = [...document.querySelectorAll('.pane')]; panes.forEach((element) => element.open || element.querySelector('summary').click()); \
                      return panes.length === 3 * document.querySelectorAll('.side, .timeline').length && panes.every((element) => element.querySelector('.pane-body')); })()";
        tab.wait_until(panes_are_open).await;
        let injected = "[...document.querySelectorAll('main img')].filter((element) => !element.getAttribute('src').startsWith('api/')).length + document.querySelectorAll('main script').length";
        assert_eq!(tab.eval(injected).await, 0, "{page}");
        let links = "[...document.querySelectorAll('a')].filter((element) => element.protocol === 'javascript:').length";
        assert_eq!(tab.eval(links).await, 0, "{page}");
    }
    opened.close().await;
}

#[tokio::test]
async fn missing_files_are_explained() {
    let opened = Opened::open("#/train/0/3").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelector('.no-screenshot')?.textContent.includes('is missing')").await;
    tab.eval("location.hash = '#/train/7'").await;
    tab.wait_until(
        "document.querySelector('[role=alert]')?.textContent.includes('there is no train iteration 7')",
    )
    .await;
    // The browser logs the expected 404; there must be no other error.
    let other: Vec<_> = tab.page_errors().into_iter().filter(|error| !error.contains("404")).collect();
    assert_eq!(other, Vec::<String>::new());
    tab.eval("location.hash = '#/'").await;
    drop(opened.server);
    opened.tab.close().await;
}

#[tokio::test]
async fn plots_are_smoothed_filtered_and_tabulated() {
    let opened = Opened::open("#/plots").await;
    let tab = &opened.tab;
    tab.wait_until("document.querySelectorAll('.chart canvas').length === 15").await;
    tab.assert_accessible("plots").await;
    tab.click("[aria-labelledby=chart-success] summary").await;
    tab.wait_until(
        "document.querySelector('[aria-labelledby=chart-success] .numbers')?.textContent.includes('50.0 %')",
    )
    .await;
    let before = tab
        .eval("document.querySelectorAll('[aria-labelledby=chart-success] thead th').length")
        .await
        .as_u64()
        .unwrap();
    tab.eval(
        "[...document.querySelectorAll('.filters button')].find((element) => element.textContent === 'test').click()",
    )
    .await;
    tab.wait_until(&format!(
        "document.querySelectorAll('[aria-labelledby=chart-success] thead th').length < {before}"
    ))
    .await;
    assert_eq!(opened.hash().await, "#/plots?hide=test");
    tab.eval("(() => { const slider = document.querySelector('input[type=range]'); slider.value = '0.6'; slider.dispatchEvent(new Event('input', { bubbles: true })); })()").await;
    tab.wait_until(
        "location.hash.includes('ema=0.6') && document.querySelectorAll('.chart canvas').length === 15",
    )
    .await;
    opened.close().await;
}

#[tokio::test]
async fn plots_are_shown_by_trajectories_and_for_ood_tasks() {
    require_built_pages();
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_paths::write_iteration(&save_path, Split::Train, 0, &save_paths::learning(0, 20));
    save_paths::write_iteration(&save_path, Split::Test, 0, &save_paths::learning(100, 18));
    let server = serve(&save_path).await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#/plots", server.link())).await;
    tab.wait_until("document.querySelector('.heading').textContent.includes('38 trajectories')").await;
    let press = |name: &str| {
        format!(
            "[...document.querySelectorAll('.filters button')].find((element) => element.textContent === '{name}').click()"
        )
    };
    tab.eval(&press("by trajectories")).await;
    tab.wait_until("document.querySelector('[aria-labelledby=chart-success] .readout')?.textContent.includes('20 trajectories')").await;
    tab.click("[aria-labelledby=chart-success] summary").await;
    let rows = "[...document.querySelectorAll('[aria-labelledby=chart-success] tbody th')].map((row) => row.textContent)";
    assert_eq!(tab.eval(rows).await, json!(["18", "20"]), "test and train each have their own number");
    // Two of the six test tasks are in distribution; each has three trajectories.
    tab.eval(&press("test: only out of distribution")).await;
    tab.wait_until("document.querySelector('.heading').textContent.includes('32 trajectories')").await;
    assert_eq!(tab.eval("location.hash").await, "#/plots?x=trajectories&ood=true");
    let link = "document.querySelector('a[download=\"metrics.svg\"]').getAttribute('href')";
    assert_eq!(tab.eval(link).await, "api/plots.svg?x=trajectories&ood=true");
    tab.assert_accessible("plots").await;
    tab.eval(&press("by iterations")).await;
    tab.wait_until("location.hash === '#/plots?ood=true' && document.querySelector('[aria-labelledby=chart-success] .readout')?.textContent.includes('iteration 0')").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test]
async fn pages_fit_phone_in_dark_mode() {
    let opened = Opened::open("#/train/0/0").await;
    let tab = &opened.tab;
    tab.set_size(390, 844, 1.0).await;
    tab.set_colour_scheme("dark").await;
    for page in ["#/", "#/train/0", "#/train/0/0", "#/compare/train/0/1/test/0/1", "#/plots"] {
        tab.eval(&format!("location.hash = {}", json!(page))).await;
        tab.wait_until(
            "!document.querySelector('.waiting') && document.querySelector('main').children.length > 0",
        )
        .await;
        let overflow = tab.eval("document.documentElement.scrollWidth - innerWidth").await.as_f64().unwrap();
        assert!(overflow <= 0.0, "{page} is {overflow} pixels too wide");
        tab.assert_accessible(page).await;
    }
    opened.close().await;
}

#[tokio::test]
async fn running_run_updates_pages() {
    require_built_pages();
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let journal = save_paths::journal(&save_path, 5);
    journal.append_finished(&save_paths::trajectory(1)).await.unwrap();
    let server = serve(&save_path).await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#/train/0", server.link())).await;
    tab.wait_until("document.querySelector('.heading .badge')?.textContent.includes('1 of 5 started')").await;
    let unfinished = save_paths::trajectory(2);
    journal.append_episode(&unfinished.task, 0, None).await.unwrap();
    journal.append_step(2, 0, 0, &unfinished.steps[0]).await.unwrap();
    journal.append_finished(&save_paths::trajectory(0)).await.unwrap();
    tab.wait_until("document.querySelectorAll('tr[data-row]').length === 3").await;
    assert!(tab.text("tr[data-row='2']").await.contains("running"));

    // A running trajectory shows its new steps and its verdict.
    tab.eval("location.hash = '#/train/0/2'").await;
    tab.wait_until("document.querySelector('.stepper h3')?.textContent === 'Step 1 of 1'").await;
    journal.append_finished(&unfinished).await.unwrap();
    tab.wait_until("document.querySelector('.stepper h3').textContent === 'Step 1 of 6' && document.querySelector('.verdict .badge').textContent === 'success'").await;
    journal.close().await.unwrap();
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test]
async fn misses_of_a_replay_are_shown() {
    require_built_pages();
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path().join("save"));
    let mut trajectory = save_paths::trajectory(0);
    let network = json!({
        "matches": {"exact": 41, "normalised": 3, "scored": 4, "missed": 2}, "recorded": 0,
        "misses": [{"method": "GET", "url": "https://shop.example/a.js"}, {"method": "POST", "url": "https://shop.example/b"}],
    });
    trajectory.metadata.network = Some(serde_json::from_value(network).unwrap());
    trajectory.metadata.outcome = Some(Outcome::ReplayMiss);
    save_paths::write_iteration(&save_path, Split::Train, 0, &[trajectory]);
    let server = serve(&save_path).await;
    let tab = Tab::open().await;
    tab.visit(&server.link()).await;
    let total = "Replay: 82 % exact, 6.0 % normalised, 8.0 % scored, 4.0 % missed of 50 requests";
    tab.wait_until(&format!("document.querySelector('details summary')?.textContent === '{total}'")).await;
    tab.assert_accessible("iterations with coverage").await;
    tab.visit(&format!("{}#/train/0/0", server.link())).await;
    tab.wait_until("document.querySelectorAll('.misses li').length === 2").await;
    let text = tab.text(".verdict").await;
    for expected in [
        "not in archive",
        "replay: 41 exact, 3 normalised, 4 scored, 2 missed",
        "POST https://shop.example/b",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    }
    assert!(!text.contains("crashed"), "{text:?}");
    tab.assert_no_errors();
    tab.close().await;
}
