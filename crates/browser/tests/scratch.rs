#![allow(clippy::unwrap_used, clippy::expect_used)]
mod common;
const KIND: browser::BrowserKind = browser::BrowserKind::HeadlessShell;
use serde_json::Value;
#[test]
fn shots() {
    let plan = std::fs::read_to_string("/tmp/exp/plan.txt").unwrap();
    common::stage::with_stage(async |stage| {
        for (n, line) in plan.lines().filter(|l| !l.trim().is_empty()).enumerate() {
            let i = stage.host.instance(&browser::Options::default()).await.unwrap();
            let mut x = common::tester::Tester::new(i, &stage.sites);
            for step in line.split(" ; ") {
                let step = step.trim();
                if let Some(sel) = step.strip_prefix("click ") {
                    let id = x.mark(sel).await;
                    x.run(serde_json::json!({"click_id":{"id":id}})).await;
                } else if step.starts_with('{') {
                    let v: Value = serde_json::from_str(step).unwrap();
                    eprintln!("{}", x.run(v).await.to_string().chars().take(500).collect::<String>());
                } else if let Some(js) = step.strip_prefix("js ") {
                    eprintln!("{}", x.js(js).await);
                } else {
                    x.visit(step).await;
                }
            }
            let (info, picture) = x.look_and_see().await;
            std::fs::write(format!("/tmp/exp/shot{n}.png"), &picture.bytes).unwrap();
            eprintln!("--- {n} {line}\n{}", info.ac_tree().chars().take(1500).collect::<String>());
            x.instance.dispose().await.unwrap();
        }
    });
}
