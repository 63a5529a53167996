//! What is recorded is replayed, without the site.

use std::path::Path;

use serde_json::json;
use testkit::modern_site::{COOKIE_SECRET, HEADER_SECRET, PASSWORD_SECRET};

use crate::common::{WEBGYM, World};

#[tokio::test(flavor = "multi_thread")]
async fn recorded_episode_is_replayed_without_its_site() {
    let mut world = World::start().await;
    let live = world.record("shop").await;
    let live_texts: Vec<&str> = live.iter().map(|shown| shown.text.as_str()).collect();
    assert!(live_texts[1].contains("Service worker got"), "{}", live_texts[1]);
    world.server = None;
    let requests = world.site.requests();
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    let replayed = world.episode(&lease).await;
    for (step, (live, replayed)) in live.iter().zip(&replayed).enumerate() {
        println!("--- step {step}\nLIVE {}\nREPLAY {}", live.text, replayed.text);
    }
    let report = world.farm.network(&lease).await.ok();
    println!("{report}");
    assert_eq!(report["matches"]["missed"], 0, "{report}");
    assert_eq!(world.site.requests(), requests, "the site was not asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_the_bytes_of_the_archive() {
    let world = World::start().await;
    let headers = json!({"authorization": format!("Bearer {HEADER_SECRET}")});
    let options = json!({"network": {"record": "shop"}, "extra_http_headers": headers});
    let lease = world.farm.get_with(&options).await;
    world.episode(&lease).await;
    world.farm.reset(&lease).await.ok();
    world.wait_until_recorded("shop").await;
    let folder = world.archives.path().join("shop");
    let bytes = read_all(&folder);
    assert!(contains(&bytes, b"Modern shop"), "the archive is read");
    for secret in [COOKIE_SECRET, HEADER_SECRET, PASSWORD_SECRET] {
        assert!(!contains(&bytes, secret.as_bytes()), "{secret} is in the archive");
    }
    let check =
        tokio::process::Command::new(WEBGYM).args(["archive", "check"]).arg(&folder).output().await.unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

/// Returns the bytes of all files of a folder, compressed ones also decompressed.
fn read_all(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            bytes.extend(read_all(&path));
            continue;
        }
        let content = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut reader = flate2::read::MultiGzDecoder::new(content.as_slice());
            std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        }
        bytes.extend(content);
    }
    bytes
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
