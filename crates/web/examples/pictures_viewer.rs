//! Takes the pictures of the viewer for the README: `cargo run -p webgym-web --example pictures_viewer -- SAVE_PATH HASH OUT`.
//! Without arguments it draws the plots of made-up iterations into docs/images/plots.png.

#![allow(clippy::unwrap_used, reason = "a picture that cannot be taken is not taken")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/viewdata/mod.rs"]
mod viewdata;

use std::path::Path;

use common::Tab;
use store::{SavePath, Split};
use web::page;
use web::plot::{self, Ema};
use web::view::{View, router};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [save_path, hash, out] => photograph(&SavePath::new(save_path), hash, Path::new(out)).await,
        [out] => draw(Path::new(out)),
        _ => draw(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/plots.png")),
    }
}

/// One page, in light and in dark and on a phone.
async fn photograph(save_path: &SavePath, hash: &str, out: &Path) {
    let view = View::new(save_path.clone(), Vec::new());
    let place = page::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap();
    let tab = Tab::open().await;
    for (name, width, height, scheme) in
        [("", 1440, 1060, "light"), ("-dark", 1440, 1060, "dark"), ("-phone", 390, 844, "light")]
    {
        tab.size(width, height, 1.0).await;
        tab.scheme(scheme).await;
        tab.visit("about:blank").await;
        tab.visit(&format!("{}{hash}", place.link())).await;
        tab.until(
            "document.querySelector('main')?.children.length > 0 && !document.querySelector('.waiting')",
        )
        .await;
        tab.js(
            "Promise.all([...document.images].map((one) => one.decode().catch(() => null))).then(() => true)",
        )
        .await;
        tab.until("document.getAnimations().length === 0").await;
        let stem = out.file_stem().unwrap().to_string_lossy();
        tab.screenshot(&out.with_file_name(format!("{stem}{name}.png"))).await;
    }
    println!("{:?}", tab.troubles());
    tab.close().await;
}

/// Twelve iterations of an agent that gets better: made up, to show what the plots look like.
fn draw(out: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    for iteration in 0..12_u64 {
        viewdata::write_iteration(&save_path, Split::Train, iteration, &viewdata::learning(iteration, 90));
        if iteration % 3 == 0 {
            viewdata::write_iteration(
                &save_path,
                Split::Test,
                iteration,
                &viewdata::learning(iteration + 100, 60),
            );
        }
    }
    let ema = Ema::new(0.5).unwrap();
    let charts = View::new(save_path, Vec::new()).curves().unwrap().charts(Some(ema));
    std::fs::write(out, plot::png(&charts).unwrap()).unwrap();
    println!("wrote {}", out.display());
}
