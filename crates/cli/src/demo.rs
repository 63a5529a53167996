//! `webgym demo`: until there is a collector, one browser walks the practice website and saves what it saw.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use browser::{Host, Instance, ObserveRequest};
use clap::Args;
use practice::Sites;
use proto::{Command, InteractionMode, page::ScreenshotInfo};
use serde_json::{Value, json};

use crate::browser_args::BrowserArgs;

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Where the screenshots go.
    #[arg(long, default_value = "demo", value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    browser: BrowserArgs,
}

/// One stop of the walk: a name, and what to do to get there.
type Stop = (&'static str, Value);

fn walk() -> Vec<Stop> {
    vec![
        ("shop", json!({"visit_page": {"url": "/shop/"}})),
        ("shop search", json!({"fill": {"name": "q", "value": "lamp"}})),
        ("first result", json!({"click": {"tag": "a", "nth": "product"}})),
        ("scrolled", json!({"page_down": {"full_page": true}})),
        ("back", json!({"back": {}})),
        ("encyclopedia", json!({"visit_page": {"url": "/wiki/"}})),
        ("job board", json!({"visit_page": {"url": "/jobs/"}})),
        ("obstacle course", json!({"visit_page": {"url": "/course/"}})),
        ("form fields", json!({"visit_page": {"url": "/course/inputs"}})),
        ("shadow roots", json!({"visit_page": {"url": "/course/shadow"}})),
        ("frames", json!({"visit_page": {"url": "/course/iframes"}})),
    ]
}

pub(crate) async fn demo(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let sites = Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let host = Host::launch(&args.browser.launch()?).await?;
    println!("Walking the practice site at {} with {}", sites.url("/"), host.version().product);
    let mut instance = host.instance(&args.browser.options()?).await?;
    let mut last = ScreenshotInfo::default();
    for (number, (name, act)) in walk().iter().enumerate() {
        let started = Instant::now();
        let command = command(act, &sites, &last);
        instance.execute(&command).await.with_context(|| format!("at \"{name}\""))?;
        last = save(&mut instance, args, number, name).await?;
        println!("  {name:<16} {:>5} ms, {} marks", started.elapsed().as_millis(), last.visible_rects.len());
    }
    instance.dispose().await?;
    host.close().await;
    println!("Annotated screenshots are in {}", args.out.display());
    Ok(ExitCode::SUCCESS)
}

async fn save(
    instance: &mut Instance,
    args: &DemoArgs,
    number: usize,
    name: &str,
) -> anyhow::Result<ScreenshotInfo> {
    let seen = instance.observe(&ObserveRequest::screenshot(InteractionMode::SetOfMarks)).await?;
    let file = args.out.join(format!("{number:02}-{}.png", name.replace(' ', "-")));
    let picture = seen.picture.context("no picture was taken")?;
    std::fs::write(&file, &picture.bytes).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(seen.elements.unwrap_or_default())
}

/// Fills in what a stop leaves open: the site's address, or which number the element it means has this time.
fn command(act: &Value, sites: &Sites, last: &ScreenshotInfo) -> Command {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(path) = act["visit_page"]["url"].as_str() {
        return Command::VisitPage { url: sites.url(path) };
    }
    if act["fill"].is_object() {
        let fill = proto::command::Fill {
            value: text(&act["fill"]["value"]),
            press_enter: true,
            delete_existing: true,
        };
        return Command::FillId {
            id: shown(last, |region| region["tag_name"] == "input, type=search"),
            fill,
        };
    }
    if act["click"].is_object() {
        let lamp = |region: &Value| {
            region["tag_name"] == "a" && text(&region["aria_name"]).to_lowercase().contains("lamp")
        };
        return Command::ClickId { id: shown(last, lamp) };
    }
    act.as_object().and_then(|act| Command::from_json(act, &[]).ok()).unwrap_or(Command::Back)
}

fn shown(last: &ScreenshotInfo, wanted: impl Fn(&Value) -> bool) -> String {
    let region = |shown: &str| {
        let element = last.id_mapping.get(shown).and_then(Value::as_str)?;
        last.interactive_regions.get(element)
    };
    let found = last.visible_rects.iter().find(|shown| region(shown).is_some_and(&wanted));
    found.cloned().unwrap_or_else(|| "1".to_owned())
}
