//! What is recorded is replayed, without the site.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::json;
use testkit::{
    TlsSite,
    episode::Shown,
    modern_site::{COOKIE_SECRET, HEADER_SECRET, ModernSite, PASSWORD_SECRET},
};

use crate::common::{WEBGYM, World, start_farm};

#[tokio::test(flavor = "multi_thread")]
async fn recorded_episode_is_replayed_without_its_site() {
    let mut world = World::start().await;
    let live = world.record("shop").await;
    assert!(live[1].text.contains("Service worker got"), "{}", live[1].text);
    assert!(live[9].text.contains("Welcome back"), "{}", live[9].text);
    world.server = None;
    let requests = world.site.requests();
    let mut replays = Vec::new();
    for seed in [7, 7, 7, 8] {
        let lease = world.farm.get_with(&json!({"network": {"replay": "shop", "seed": seed}})).await;
        replays.push(world.episode(&lease).await);
        let report = world.farm.network(&lease).await.ok();
        assert_eq!(report["matches"]["missed"], 0, "{report}");
        assert_eq!(report["matches"]["scored"], 0, "{report}");
        world.farm.reset(&lease).await.ok();
    }
    assert_eq!(world.site.requests(), requests, "the site was not asked again");
    for (step, (live, replayed)) in live.iter().zip(&replays[0]).enumerate() {
        assert_eq!(live.tree, replayed.tree, "step {step}");
        let (live, replayed) = (recorded_lines(&live.text), recorded_lines(&replayed.text));
        assert_eq!(live, replayed, "step {step}");
    }
    assert_eq!(replays[0], replays[1]);
    assert_eq!(replays[0], replays[2]);
    let random = |replay: &[Shown]| line(&replay[0].text, "Random");
    assert_ne!(random(&replays[0]), random(&replays[3]), "another seed");
    let clock = |replay: &[Shown]| line(&replay[0].text, "Clock");
    assert_eq!(clock(&replays[0]), clock(&replays[3]), "the clock starts with the recording");
}

fn line(text: &str, start: &str) -> Option<String> {
    text.lines().find(|line| line.starts_with(start)).map(str::to_owned)
}

/// What a page got from its site: the same in the recording and in replays. Other lines have the page's own clock and randomness.
fn recorded_lines(text: &str) -> Vec<&str> {
    let own = ["Clock", "Random", "Ticks", "Frames", "Read on"];
    text.lines().filter(|line| !own.iter().any(|start| line.starts_with(start))).collect()
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
    check_with_other_programs(&folder);
}

/// Our own check, warcio and wacz accept what a farm has recorded.
fn check_with_other_programs(folder: &Path) {
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{} {arguments:?}: {text}", program.display());
        text
    };
    let (path, packed) = (folder.to_str().unwrap(), folder.join("packed.wacz"));
    let packed = packed.to_str().unwrap();
    run(Path::new(WEBGYM), &["archive", "check", path]);
    run(Path::new(WEBGYM), &["archive", "pack", path, "-o", packed]);
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let found = || if local.exists() { local.clone() } else { "python3".into() };
    let python = std::env::var_os("WEBGYM_PYTHON").map_or_else(found, PathBuf::from);
    let module = |name: &str| format!("import sys; from {name} import main; sys.exit(main(sys.argv[1:]))");
    for file in std::fs::read_dir(folder.join("archive")).unwrap().flatten() {
        let file = file.path();
        let text = run(&python, &["-c", &module("warcio.cli"), "check", "-v", file.to_str().unwrap()]);
        assert!(text.contains("digest pass") && !text.contains("failed"), "{text}");
    }
    let text = run(&python, &["-c", &module("wacz.main"), "validate", "-f", packed]);
    assert!(text.contains("Validation succeeded"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_is_passed_on_unread_is_recorded_by_the_browser() {
    let site = ModernSite::default();
    let server = TlsSite::start("shop.localhost", site.router()).await;
    let folder = tempfile::tempdir().unwrap();
    // The connection is not ended by the proxy, so the browser itself must accept the site.
    let wrapper = accepting_browser(folder.path());
    let (_process, farm) = start_farm(
        &folder.path().join("archives"),
        &server.authority(),
        &format!("--allow-private-network --chromium {wrapper}"),
    )
    .await;
    let network = json!({"record": "shop", "tunnel_hosts": ["*.localhost", "shop.localhost"]});
    let lease = farm.get_with(&json!({"network": network})).await;
    farm.visit(&lease, &server.url("/old")).await;
    let live = farm.text(&lease).await;
    let recorded = async || farm.network(&lease).await.ok()["recorded"].as_u64() >= Some(2);
    testkit::eventually("redirect and page are recorded", Duration::from_secs(30), recorded).await;
    let report = farm.network(&lease).await.ok();
    assert_eq!(report["tunnelled"], json!(["shop.localhost"]), "{report}");
    farm.reset(&lease).await.ok();
    let url = server.url("/old");
    drop(server);
    let lease = farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    farm.visit(&lease, &url).await;
    let replayed = farm.text(&lease).await;
    let served = |text: &str| text.lines().find(|line| line.starts_with("Served at")).map(str::to_owned);
    assert!(served(&live).is_some() && served(&live) == served(&replayed), "{live} {replayed}");
}

/// Writes a program that starts the browser and makes it accept every certificate.
fn accepting_browser(folder: &Path) -> String {
    let browser = browser::find_browser(None).unwrap();
    let wrapper = folder.join(browser.path.file_name().unwrap());
    let script = format!("#!/bin/sh\nexec {} --ignore-certificate-errors \"$@\"\n", browser.path.display());
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    wrapper.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_without_tls_of_a_host_that_is_passed_on_are_recorded_by_the_browser() {
    let world = World::start().await;
    let site = testkit::plain_site(world.site.router()).await;
    let home = format!("http://localhost:{site}/");
    let network = json!({"record": "shop", "tunnel_hosts": ["localhost"]});
    let lease = world.farm.get_with(&json!({"network": network})).await;
    world.farm.visit(&lease, &home).await;
    world.farm.reset(&lease).await.ok();
    let folder = world.archives.path().join("shop");
    let recorded = async || {
        let archive = replay::Archive::open(&folder, replay::ArchiveOptions::default()).ok();
        archive.is_some_and(|archive| {
            archive
                .exchanges()
                .iter()
                .any(|stored| stored.request.url.ends_with("/live") && !stored.frames.is_empty())
        })
    };
    testkit::eventually("the messages are recorded", Duration::from_secs(30), recorded).await;
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    world.farm.visit(&lease, &home).await;
    assert!(world.farm.text(&lease).await.contains("price "));
}

#[tokio::test(flavor = "multi_thread")]
async fn part_of_a_file_is_not_recorded() {
    let world = World::start().await;
    let lease = world.farm.get_with(&json!({"network": {"record": "part"}})).await;
    world.farm.visit(&lease, &world.url("/part")).await;
    // The rest of the file is waited for, although the page is gone.
    world.farm.visit(&lease, &world.url("/next")).await;
    let given_up = async || world.farm.network(&lease).await.ok()["unrecorded"] == 1;
    testkit::eventually("the file is given up", Duration::from_secs(60), given_up).await;
    let report = world.farm.network(&lease).await.ok();
    assert_eq!(report["recorded"], 2, "the two pages: {report}");
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
