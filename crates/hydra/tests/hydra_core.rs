//! Compares the composer with the real hydra-core: the same files and overrides must give the same tree, or fail in both.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use hydra::SearchPath;
use serde_json::{Value, json};

struct Case {
    name: &'static str,
    overrides: Vec<&'static str>,
}

const BASE: &[(&str, &str)] = &[
    ("default", "a: 1\nenv: {x: 1, y: [1, 2]}\n"),
    ("rollout", "defaults:\n  - default\n  - _self_\nb: 2\na: 5\n"),
    ("diamond", "defaults:\n  - default\n  - rollout\n  - _self_\nc: 3\n"),
    ("plain", "defaults:\n  - rollout\n  - default\nd: null\ne: {f: 1}\nm: ???\n"),
    ("first", "defaults:\n  - _self_\n  - rollout\na: 9\nenv: {x: 7}\n"),
    ("last", "defaults:\n  - rollout\n  - _self_\na: 9\nenv: {x: 7, y: [3], z: {k: 1}}\n"),
    ("nothing", ""),
    ("only", "x: 1\n"),
    ("twice", "defaults: [_self_, default, _self_]\n"),
    ("circle", "defaults: [circle]\nx: 1\n"),
    ("absent", "defaults: [not_there]\n"),
    ("missing", "defaults: [only, _self_]\nx: ???\ny: ???\n"),
    ("erase", "defaults: [last, _self_]\nenv: null\n"),
    ("regrow", "defaults: [erase, _self_]\nenv: {q: 1}\n"),
    ("hydra_node", "hydra: {run: {dir: .}}\na: 1\n"),
    ("list_root", "- 1\n- 2\n"),
    ("duplicate", "a: 1\na: 2\n"),
    ("global", "# @package _global_\na: 1\n"),
    (
        "scalars",
        "a: [yes, No, on, 010, 0x1F, 0b11, 1_000, 1:30, 1e3, 1., .5, -.5, .5e3, 2024-01-01, ~, null, 1.2.3, 089, .inf]\n\
         b: 'yes'\nc: |\n  two\n  lines\nd: >-\n  folded\n  text\ne: \"tab\\tx\"\n2: int key\ntrue: bool key\n",
    ),
    ("anchors", "base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nlist: [*b, *b]\n"),
    (
        "inter",
        "host: h\nport: 80\nurl: http://${host}:${port}/v1\ncopy: ${env}\nenv:\n  x: ${.y}\n  y: 2\n  up: ${..port}\n  deep: ${..list[1]}\n\
         list: [1, '${port}', 3]\nname: port\nnested: ${${name}}\nflag: true\nf: 1.0\nn: null\ntext: ${flag}-${f}-${n}\n\
         escaped: \\${host}\nback: \\\\${host}\nthrough: ${copy.y}\n",
    ),
    ("loop", "a: ${b}\nb: ${a}\n"),
    ("dangling", "a: ${nope}\n"),
    ("to_missing", "a: ${b}\nb: ???\n"),
    (
        "resolvers",
        "a: ${oc.env:WEBGYM_TEST_SET}\nb: ${oc.env:WEBGYM_TEST_UNSET,7}\nc: ${oc.env:WEBGYM_TEST_UNSET,null}\n\
         d: ${oc.decode:${oc.env:WEBGYM_TEST_UNSET,7}}\ne: ${oc.env:WEBGYM_TEST_UNSET,'a, b'}\nf: ${oc.select:nope,3}\n\
         g: ${oc.select:b}\nh: \"${oc.env:WEBGYM_TEST_UNSET, plain words }\"\ni: ${oc.decode:'[1,2]'}\n\
         j: x-${oc.env:WEBGYM_TEST_SET}-y\n",
    ),
    ("unset", "a: ${oc.env:WEBGYM_TEST_UNSET}\n"),
    ("unknown_resolver", "a: ${no.such:1}\n"),
];

/// Each override is applied alone to `plain`.
#[rustfmt::skip]
const SINGLE: &[&str] = &[
    "a=b=c", "a=http://h:80/v1", "a=http://h:80/v1?x", "a=/data/x-1_2/é'", "a=a b", "a= 3 ", "a=", "a=x,y",
    "a=[1,2,x y]", "a={k:1,m:[a]}", "a=user@host:/p", "a=$HOME/x", "a=50%", "a=a|b", "a=*.txt", "env.z=1",
    "+env.z=1", "++env.z=1", "+a=3", "++a=3", "+d=4", "d.q=1", "+d.q=1", "++d.q=1", "a.q=1", "+a.q=1",
    "++a.q=1", "+new.deep.key=1", "new.deep.key=1", "~a", "~a=1", "~a=5", "~zz", "~env.x", "~env.y", "~env",
    "~d", "~e.f=1", "env={q:1}", "+env={q:1}", "++env={x:{n:1}}", "env={x:5}", "env=null", "env=3",
    "env.y=[3]", "env.y.0=9", "env.y.5=9", "+env.y=[5]", "e={}", "a='q\\'s'", "a=\"x\"", "a='a,b=c'",
    "a='${env.x}'", "a=${env.x}", "a=x${env.x}y", "a=\\${env.x}", "a=${b}${b}", "a=${.b}", "env.x=${.y}",
    "env.x=${..b}", "env.x=${.y[1]}", "env.x=${env.y.1}", "env.x=${env[y][0]}", "a=${env}", "env=${a}",
    "a=${nope}", "a=${oc.env:WEBGYM_TEST_SET}", "a=${oc.env:WEBGYM_TEST_UNSET,7}",
    "a=${oc.env:WEBGYM_TEST_UNSET}", "a={x: ${b}}", "a=[${b},2]", "a=1_000", "a=1__0", "a=1e3", "a=1.",
    "a=.5", "a=-.5", "a=inf", "a=-inf", "a=nan", "a=yes", "a=True", "a=tRUE", "a=NULL", "a=0x10", "a=010",
    "a=-3", "a=+3", "a=- 3", "a=1e", "a=???", "m=3", "+m=3", "a=a\\,b", "a=a\\=b", "a=a\\:b", "a=a\\ ",
    "a=\\\\x", "a=C:\\x", "a=2024-01-01", "a=1:30", "a=a: b", "a={a: {b: 1}}", "a={1:2}", "a={true:1}",
    "a={a:b:c}", "a={}", "a=[]", "a=[[1],[2,[3]]]", "a=[ 1 , 2 ]", "a='", "a=[1", "a=[1,]", "a={a}",
    "a={a:1", "a='x'y", "a=it's", "a=(1)", "a=x\ny", "a='x\ny'", "a=\ttab", "a='a\\\\'", "a='a\\\\b'",
    "a=\"a\\\"b\"", "a=\"a'b\"", "a@b=3", "$a=1", "a", "=3", "a =3", "a.=3", ".a=3", "+=3", "a..b=3",
    "a-b=3", "+a-b=3", "+0=3", "+e.0=5", "+e.a$b=3", "hydra.run.dir=x", "a=choice(1,2)", "a=range(3)",
    "x/y=3",
];

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = BASE.iter().map(|(name, _)| Case { name, overrides: vec![] }).collect();
    cases.extend(SINGLE.iter().map(|text| Case { name: "plain", overrides: vec![text] }));
    let several: &[(&str, &[&str])] = &[
        ("plain", &["a=1", "a=2"]),
        ("plain", &["+q=1", "q=2", "~q"]),
        ("plain", &["~a", "+a=7"]),
        ("plain", &["~a", "a=7"]),
        ("plain", &["env=null", "+env.k=1"]),
        ("inter", &["port=81", "host='x y'"]),
        ("inter", &["env.y=[1,2]"]),
        ("missing", &["y=1"]),
        ("diamond.yaml", &[]),
        ("not_there", &[]),
        ("scalars", &["a=[]"]),
    ];
    cases.extend(several.iter().map(|(name, overrides)| Case { name, overrides: overrides.to_vec() }));
    cases
}

fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("WEBGYM_PYTHON") {
        return path.into();
    }
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if local.exists() { local } else { "python3".into() }
}

/// Composes the cases with hydra-core, all in one Python process.
fn compose_with_hydra_core(folder: &Path, cases: &[Case]) -> Vec<Value> {
    let input: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({"folder": folder, "name": case.name, "overrides": case.overrides,
                   "environment": {"WEBGYM_TEST_SET": "from the environment"}})
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hydra_compose.py");
    let mut child = Command::new(python())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python must run; `make setup` installs what the tests need");
    child.stdin.take().unwrap().write_all(json!(input).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "hydra-core did not run; `make setup` installs it\n{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn compose(folder: &Path, case: &Case) -> Result<Value, String> {
    let environment = HashMap::from([("WEBGYM_TEST_SET", "from the environment")]);
    let lookup = |name: &str| environment.get(name).map(ToString::to_string);
    let overrides: Vec<String> = case.overrides.iter().map(ToString::to_string).collect();
    hydra::compose(case.name, &SearchPath::folder(folder), &overrides, &lookup).map_err(|e| e.to_string())
}

fn differences(folder: &Path, cases: &[Case]) -> Vec<String> {
    let theirs = compose_with_hydra_core(folder, cases);
    assert_eq!(theirs.len(), cases.len());
    let mut differences = Vec::new();
    for (case, theirs) in cases.iter().zip(&theirs) {
        let ours = compose(folder, case);
        let is_same = match (&ours, theirs.get("ok")) {
            (Ok(ours), Some(theirs)) => ours == theirs,
            (Err(_), None) => true,
            _ => false,
        };
        if !is_same {
            differences
                .push(format!("{} {:?}\n  ours   {ours:?}\n  theirs {theirs}", case.name, case.overrides));
        }
    }
    differences
}

#[test]
fn composer_agrees_with_hydra_core() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in BASE {
        std::fs::write(folder.path().join(format!("{name}.yaml")), text).unwrap();
    }
    let cases = cases();
    assert!(cases.len() > 100);
    let differences = differences(folder.path(), &cases);
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn shipped_files_agree_with_hydra_core() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/main").canonicalize().unwrap();
    let overrides = vec!["save_path=/data/exp1", "env_config.server_size=4"];
    let names = ["rollout", "rollout_train", "rollout_test"];
    let cases: Vec<Case> = names.map(|name| Case { name, overrides: overrides.clone() }).into();
    assert!(cases.iter().all(|case| compose(&folder, case).is_ok()));
    assert_eq!(differences(&folder, &cases), Vec::<String>::new());
}
