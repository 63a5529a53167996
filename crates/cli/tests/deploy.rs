//! Checks that deploy/ matches the program: every metric in alerts, dashboard and autoscaler is exported by a farm or a
//! run, every flag exists, every probe endpoint responds, and the nginx examples are the output of `webgym nginx-config`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use testkit::{Http, Webgym};
use tokio::process::Command;

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Returns the identifiers in a text that start with a prefix.
fn names(text: &str, prefix: &str) -> BTreeSet<String> {
    let in_identifier = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !in_identifier(letter));
    words.filter(|word| word.starts_with(prefix) && word.len() > prefix.len()).map(str::to_owned).collect()
}

/// Returns every series name that the metrics of a `/metrics` text can have.
fn exported_series(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let suffixes: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            "counter"
                if !name.ends_with("_total") && !name.ends_with("_sum") && !name.ends_with("_count") =>
            {
                &["_total"]
            }
            _ => &[""],
        };
        found.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    assert!(found.len() >= 6, "too few metrics: {text}");
    found
}

async fn metrics_of_a_run() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let demo = Webgym::spawn(WEBGYM, &["demo", "--out", out, "--tasks", "6", "--instances", "1"]);
    let link = demo.monitor_url().await;
    exported_series(&Http::new(&link, None).get("/metrics", &[]).await.text())
}

#[tokio::test]
async fn every_used_metric_exists() {
    let farm = Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0"]).await;
    let mut known = exported_series(&farm.master().http.get("/metrics", &[]).await.text());
    known.extend(metrics_of_a_run().await);
    let env = Webgym::start(WEBGYM, &["env", "--port", "0", "--farm", &farm.url("master")]).await;
    known.extend(exported_series(&Http::new(&env.url("env"), None).get("/metrics", &[]).await.text()));
    let mut named = 0;
    for path in [
        "deploy/prometheus/webgym-alerts.yaml",
        "deploy/prometheus/webgym-alerts.test.yaml",
        "deploy/prometheus/adapter-rules.yaml",
        "deploy/grafana/webgym.json",
        "deploy/helm/webgym/templates/autoscaler.yaml",
        "docs/operations.md",
    ] {
        let used = names(&read(path), "webgym_");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{path} uses unknown metrics {unknown:?}; exported are {known:?}");
        named += used.len();
    }
    assert!(named > 40, "only {named} metrics were found in deploy/; does this test still find them?");
}

#[tokio::test]
async fn probe_endpoints_respond() {
    let farm = Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0"]).await;
    let env = Webgym::start(WEBGYM, &["env", "--port", "0", "--farm", &farm.url("master")]).await;
    let mut probes = 0;
    for (file, url) in [("master", farm.url("master")), ("node", farm.url("node")), ("env", env.url("env"))] {
        let text = read(&format!("deploy/helm/webgym/templates/{file}.yaml"));
        let http = Http::new(&url, None);
        for path in text.lines().filter_map(|line| line.split("httpGet: {path: ").nth(1)) {
            let path = path.split(',').next().unwrap();
            http.get(path, &[]).await.ok();
            probes += 1;
        }
    }
    assert_eq!(probes, 7);
}

async fn flags_of(subcommand: &str) -> BTreeSet<String> {
    let help = Command::new(WEBGYM).args([subcommand, "--help"]).output().await.unwrap();
    assert!(help.status.success(), "{subcommand}");
    flags(&String::from_utf8(help.stdout).unwrap())
}

fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || "\"'`,;[]()".contains(letter));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 2);
    flags.map(|flag| flag.split('=').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_used_flag_exists() {
    let line_of = |path: &str, start: &str| -> String {
        let text = read(path).replace("\\\n", " ");
        let line = text.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("{path} has no {start}")).to_owned()
    };
    let arguments = |path: &str| -> String {
        let text = read(path);
        text.split("args:").nth(1).expect("arguments").split("env:").next().unwrap().to_owned()
    };
    for (subcommand, given) in [
        ("master", line_of("deploy/systemd/webgym-master.service", "ExecStart=")),
        ("node", line_of("deploy/systemd/webgym-node.service", "ExecStart=")),
        ("rollout", line_of("deploy/systemd/webgym-collector@.service", "ExecStart=")),
        ("env", line_of("deploy/systemd/webgym-env.service", "ExecStart=")),
        ("env", line_of("deploy/docker/compose.yaml", "command: [env")),
        ("master", line_of("deploy/docker/compose.yaml", "command: [master")),
        ("node", line_of("deploy/docker/compose.yaml", "command: [node")),
        ("master", arguments("deploy/helm/webgym/templates/master.yaml")),
        ("node", arguments("deploy/helm/webgym/templates/node.yaml")),
        ("env", arguments("deploy/helm/webgym/templates/env.yaml")),
        ("master", line_of("deploy/slurm/webgym.sbatch", "\"${on_first[@]}\" \"$webgym\" master")),
        ("node", line_of("deploy/slurm/webgym.sbatch", "\"${on_all[@]}\" bash -c 'exec \"$0\" node")),
    ] {
        let (given, known) = (flags(&given), flags_of(subcommand).await);
        let unknown: Vec<_> = given.difference(&known).collect();
        assert!(!given.is_empty() && unknown.is_empty(), "webgym {subcommand} does not accept {unknown:?}");
    }
}

#[tokio::test]
async fn every_set_variable_is_read() {
    let mut read_by_us = BTreeSet::new();
    for subcommand in ["master", "node", "rollout", "monitor", "env"] {
        let help = Command::new(WEBGYM).args([subcommand, "--help"]).output().await.unwrap();
        read_by_us.extend(names(&String::from_utf8(help.stdout).unwrap(), "WEBGYM_"));
    }
    // Variables that the unit files put into command lines.
    let in_units: BTreeSet<String> = files_below(&root().join("deploy/systemd"))
        .iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "service"))
        .flat_map(|path| names(&fs::read_to_string(path).unwrap(), "WEBGYM_"))
        .collect();
    let in_compose = BTreeSet::from(["WEBGYM_INSTANCES".to_owned()]);
    for path in files_below(&root().join("deploy")) {
        let used = names(&fs::read_to_string(&path).unwrap(), "WEBGYM_");
        let known = |name: &&String| {
            read_by_us.contains(*name) || in_units.contains(*name) || in_compose.contains(*name)
        };
        let unknown: Vec<_> = used.iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{} sets variables that are never read: {unknown:?}", path.display());
    }
}

#[tokio::test]
async fn nginx_examples_match_generated_config() {
    let proxy = "--master 10.0.0.1:7000 --master 10.0.0.2:7000 --monitor 10.0.0.9:5000 --env 10.0.0.8:8000 \
                 --server-name farm.example.org --tls-cert /etc/ssl/webgym/fullchain.pem --tls-key /etc/ssl/webgym/privkey.pem";
    let compose = "--master master-1:7000 --master master-2:7000 --listen 7000";
    for (path, arguments) in [("deploy/proxy/nginx.conf", proxy), ("deploy/docker/nginx.conf", compose)] {
        let printed = Command::new(WEBGYM)
            .arg("nginx-config")
            .args(arguments.split_whitespace())
            .output()
            .await
            .unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        assert_eq!(read(path), printed, "update it with: webgym nginx-config {arguments} > {path}");
    }
}
