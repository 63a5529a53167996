#![allow(clippy::unwrap_used, clippy::expect_used)]
mod common;
const KIND: browser::BrowserKind = browser::BrowserKind::HeadlessShell;
use serde_json::json;
use std::time::Instant;
#[test]
fn times() {
    common::stage::with_stage(async |stage| {
        for _ in 0..5 {
            let t = Instant::now();
            let i = stage.host.instance(&browser::Options::default()).await.unwrap();
            eprint!("instance {:?} ", t.elapsed());
            let mut x = common::tester::Tester::new(i, &stage.sites);
            let t = Instant::now();
            x.visit("/course/buttons").await;
            eprint!("visit {:?} ", t.elapsed());
            let t = Instant::now();
            x.look().await;
            eprint!("look {:?} ", t.elapsed());
            let t = Instant::now();
            x.run(json!({"click_coords":{"x":500,"y":500}})).await;
            eprint!("click {:?} ", t.elapsed());
            let t = Instant::now();
            x.instance.dispose().await.unwrap();
            eprintln!("dispose {:?} ", t.elapsed());
        }
    });
}
