//! Takes screenshots of the viewer for the README:
//! `cargo run -p webgym-web --example screenshots_viewer -- SAVE_PATH FRAGMENT OUT`.
//! Without arguments, draws the plots of simulated iterations into docs/images/plots.png.

#![allow(clippy::unwrap_used, reason = "stops at the first error")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/save_paths/mod.rs"]
mod save_paths;

use std::path::Path;

use common::Tab;
use store::{SavePath, Split};
use web::plot::{self, ChartOptions, Ema};
use web::server;
use web::view::{View, router};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [save_path, fragment, out] => take(&SavePath::new(save_path), fragment, Path::new(out)).await,
        [out] => draw(Path::new(out)),
        _ => draw(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/plots.png")),
    }
}

/// Takes one page in the light and dark scheme and at the size of a phone.
async fn take(save_path: &SavePath, fragment: &str, out: &Path) {
    let view = View::new(save_path.clone(), Vec::new());
    let server = server::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap();
    let tab = Tab::open().await;
    for (name, width, height, scheme) in
        [("", 1440, 1060, "light"), ("-dark", 1440, 1060, "dark"), ("-phone", 390, 844, "light")]
    {
        tab.set_size(width, height, 1.0).await;
        tab.set_colour_scheme(scheme).await;
        tab.visit("about:blank").await;
        tab.visit(&format!("{}{fragment}", server.link())).await;
        tab.wait_until(
            "document.querySelector('main')?.children.length > 0 && !document.querySelector('.waiting')",
        )
        .await;
        tab.eval(
            "Promise.all([...document.images].map((image) => image.decode().catch(() => null))).then(() => true)",
        )
        .await;
        tab.wait_until("document.getAnimations().length === 0").await;
        let stem = out.file_stem().unwrap().to_string_lossy();
        tab.screenshot(&out.with_file_name(format!("{stem}{name}.png"))).await;
    }
    println!("{:?}", tab.page_errors());
    tab.close().await;
}

/// Draws the plots of twelve simulated iterations of an agent that improves.
fn draw(out: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    for iteration in 0..12_u64 {
        save_paths::write_iteration(
            &save_path,
            Split::Train,
            iteration,
            &save_paths::learning(iteration, 90),
        );
        if iteration % 3 == 0 {
            save_paths::write_iteration(
                &save_path,
                Split::Test,
                iteration,
                &save_paths::learning(iteration + 100, 60),
            );
        }
    }
    let options = ChartOptions { ema: Ema::new(0.5).ok(), ..ChartOptions::default() };
    let charts = View::new(save_path, Vec::new()).charts(options).unwrap();
    std::fs::write(out, plot::png(&charts).unwrap()).unwrap();
    println!("wrote {}", out.display());
}
