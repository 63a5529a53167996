//! The typed configuration as users see it: shipped files, overrides, errors, origins of values, the saved record.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::path::Path;

use client::chat::ChatRequest;
use proto::{InteractionMode, network::OnMiss};
use rollout::config::{
    Config, ConfigError, ImageTransport, JudgeEndpoint, JudgeKind, MaxSteps, Question, RankWeights, Resolved,
    Split, append_hyperparameters, load, search_path,
};
use serde_json::json;

fn load_named(name: &str, folder: Option<&Path>, overrides: &[&str]) -> Result<Resolved, ConfigError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let environment = |name: &str| match name {
        "PORT" => Some("7443".to_owned()),
        "FARM_TOKEN" => Some("hush-hush".to_owned()),
        "NAME" => Some("exp9".to_owned()),
        _ => None,
    };
    load(name, &search_path(folder.map(Path::to_owned)), &overrides, &environment)
}

fn load_error(overrides: &[&str]) -> String {
    load_named("rollout_train", None, overrides).unwrap_err().to_string()
}

fn load_train(overrides: &[&str]) -> Config {
    load_named("rollout_train", None, overrides).unwrap().config
}

#[test]
fn shipped_files_equal_the_defaults_in_code() {
    assert_eq!(load_named("rollout", None, &[]).unwrap().config, Config::default());
    let train = load_train(&[]);
    assert_eq!(train.env_config.difficulty_ratio.len(), 3);
    let mut same = train.clone();
    same.env_config.difficulty_ratio.clear();
    same.env_config.max_vllm_sessions = 64;
    assert_eq!(same, Config::default());
    let test = load_named("rollout_test", None, &[]).unwrap().config;
    assert_eq!(test.env_config.split, Split::Test);
}

#[test]
fn user_folder_overrides_built_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "defaults: [rollout_test, _self_]\nenv_config: {server_size: 3, train_difficulty_max_steps: []}\n";
    std::fs::write(folder.path().join("mine.yaml"), text).unwrap();
    let mine = load_named("mine", Some(folder.path()), &["env_config.monitor_port=null"]).unwrap();
    assert_eq!(mine.config.env_config.server_size, 3);
    assert_eq!(mine.config.env_config.split, Split::Test);
    assert_eq!(mine.config.env_config.train_difficulty_max_steps.hard, 30);
    assert!(mine.origin("env_config.server_size").to_string().ends_with("mine.yaml:2"));
    assert_eq!(mine.origin("env_config.split").to_string(), "rollout_test.yaml (built in):9");
    assert_eq!(
        mine.origin("env_config.monitor_port").to_string(),
        "argument \"env_config.monitor_port=null\""
    );
}

#[test]
fn file_of_the_python_system_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "defaults:\n  - default\n  - rollout\n  - _self_\nenv_config:\n  host_ip: 10.0.0.1\n  verbose: False\n  \
                use_rich_actree: False\n  instance_lifetime_max: 45\n  train_difficulty_max_steps: []\n  split: \"test\"\n  \
                train_tasks_rollout_size: 0\n  train_tasks: \"\"\nhydra: {run: {dir: .}}\n";
    std::fs::write(folder.path().join("theirs.yaml"), text).unwrap();
    let got = load_named("theirs", Some(folder.path()), &["hydra.job.chdir=false", "data_path=/d"]).unwrap();
    assert_eq!(got.config.env_config.instance_lifetime_max, 45);
    assert_eq!(got.config.env_config.train_difficulty_max_steps, MaxSteps::TRAIN);
    assert_eq!(got.config.tasks_path().as_deref(), Some(Path::new("/d/test.jsonl")));
    assert!(got.notes[0].contains("about Hydra itself"), "{:?}", got.notes);
}

#[test]
fn override_can_set_key_missing_in_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bare.yaml"), "save_path: /x\n").unwrap();
    let overrides = ["env_config.server_size=4", "+env_config.seed=1"];
    let got = load_named("bare", Some(folder.path()), &overrides[..1]).unwrap().config;
    assert_eq!(got.env_config.server_size, 4);
    assert_eq!(got.env_config.max_retries, 2);
    let error = load_named("bare", Some(folder.path()), &overrides).unwrap_err().to_string();
    assert!(
        error.contains("env_config.seed (argument \"+env_config.seed=1\"): unknown key; did you mean seed?")
    );
}

#[test]
fn values_of_every_type_are_read() {
    let got = load_train(&[
        "save_path=/data/exp-1",
        "judge=reference",
        "seed=7",
        "context_config.interaction_mode=set_of_marks",
        "env_config.image_transport=data",
        "env_config.all_rank_weights='2,1,1'",
        "env_config.multinode_rank=2",
        "policy_config.temperature=0",
        "env_config.difficulty_ratio.easy.weight=2.5",
        "env_config.master_port=${oc.env:PORT}",
        "env_config.work_queue=redis://h:6379/2",
    ]);
    assert_eq!(got.save_path.as_deref(), Some(Path::new("/data/exp-1")));
    assert_eq!((got.judge, got.seed), (JudgeKind::Reference, Some(7)));
    assert_eq!(got.context_config.interaction_mode, InteractionMode::SetOfMarks);
    assert_eq!(got.env_config.image_transport, ImageTransport::Data);
    assert_eq!(got.env_config.all_rank_weights, Some(RankWeights(vec![2.0, 1.0, 1.0])));
    assert!((got.env_config.difficulty_ratio["easy"].weight - 2.5).abs() < 1e-9);
    assert_eq!(got.env_config.master_port, 7443);
    let listed = load_train(&["env_config.all_rank_weights=[2,1]", "env_config.multinode_rank=0"]);
    assert_eq!(listed.env_config.all_rank_weights, Some(RankWeights(vec![2.0, 1.0])));
}

#[test]
fn program_judge_is_configured() {
    let got = load_train(&[
        "judge=program",
        "program_config.command=[python3, judge.py]",
        "program_config.timeout=2.5",
    ]);
    assert_eq!(got.judge, JudgeKind::Program);
    assert_eq!(got.program_config.command, Some(vec!["python3".to_owned(), "judge.py".to_owned()]));
    assert!(!got.program_config.allow_task_commands);
    for (argument, expected) in [
        ("program_config.command=[]", "must be a list: the program and its arguments"),
        ("program_config.timeout=0", "must be more than 0"),
    ] {
        let error = load_error(&[argument]);
        assert!(error.contains(argument) && error.contains(expected), "{error}");
    }
}

#[test]
fn unknown_key_error_names_origin_and_nearest_key() {
    let got = load_error(&["env_config.sever_size=4"]);
    assert_eq!(
        got,
        "argument \"env_config.sever_size=4\": there is no key env_config.sever_size; did you mean env_config.server_size?"
    );
    assert!(load_error(&["server_size=4"]).contains("did you mean env_config.server_size?"));
    assert!(load_error(&["env_config.colour=4"]).contains("to add it, write +env_config.colour=4"));
    let folder = tempfile::tempdir().unwrap();
    let text = "defaults: [rollout_train]\nenv_config:\n  sevrer_size: 3\npolicy_confg:\n  top_p: 1\n";
    std::fs::write(folder.path().join("typo.yaml"), text).unwrap();
    let got = load_named("typo", Some(folder.path()), &[]).unwrap_err().to_string();
    assert!(got.contains("the configuration has 2 problems"), "{got}");
    assert!(got.contains("typo.yaml:3): unknown key; did you mean env_config.server_size?"), "{got}");
    assert!(got.contains("typo.yaml:5): unknown key; did you mean policy_config?"), "{got}");
}

#[test]
fn wrong_type_error_names_origin() {
    let cases = [
        (
            "env_config.server_size=many",
            "env_config.server_size (argument \"env_config.server_size=many\"): string \"many\" was given; a whole number, 0 or more, is expected",
        ),
        ("env_config.server_size=-1", "integer `-1` was given; a whole number, 0 or more, is expected"),
        ("env_config.server_size=1.5", "a whole number, 0 or more, is expected"),
        ("env_config.split=tran", "must be one of train, test; did you mean train?"),
        ("model_config.model_type=qwen3", "must be one of qwen3-instruct, qwen3-think"),
        ("policy_config.dialect=gpt", "must be one of openai, anthropic, gemini, qwen, ui_tars"),
        (
            "env_config.http_pools=4",
            "env_config.http_pools (argument \"env_config.http_pools=4\"): a mapping with the keys metadata",
        ),
        ("env_config.difficulty_ratio.easy.range=[1]", "env_config.difficulty_ratio.easy.range"),
        ("env_config.skip_bad_tasks=1", "integer `1` was given; a boolean is expected"),
        ("env_config.vllm_server_url=null", "nothing was given; a string is expected"),
        ("env_config.vllm_server_url=???", "a value must be given"),
        ("env_config.all_rank_weights=x", "the weights of all ranks"),
        ("env_config.monitor_port=70000", "a whole number from 0 to 65535 is expected"),
    ];
    for (argument, wanted) in cases {
        let got = load_error(&[argument]);
        assert!(got.contains(wanted), "{argument}: {got}");
    }
}

#[test]
fn all_invalid_values_are_reported_together() {
    let cases = [
        ("env_config.server_size=0", "at least 1"),
        ("env_config.completion_threshold=0", "above 0 and at most 1"),
        ("env_config.completion_threshold=1.01", "above 0 and at most 1"),
        ("env_config.operation_timeout=0", "more than 0"),
        ("env_config.wait_timeout=inf", "more than 0"),
        ("env_config.save_every_percent=101", "at most 100"),
        ("env_config.vllm_server_url=localhost:8000", "http://"),
        ("env_config.host_ip='<your-host-ip>'", "host name"),
        ("env_config.train_tasks_rollout_size=0", "at least 1 for the train split"),
        ("env_config.train_difficulty_max_steps.easy=0", "at least 1"),
        ("env_config.difficulty_ratio.easy.range=[5,3]", "not 5 to 3"),
        ("policy_config.top_p=0", "above 0"),
        ("policy_config.temperature=-1", "0 or more"),
        ("policy_config.min_p=2", "between 0 and 1"),
        ("policy_config.max_new_tokens=0", "at least 1"),
        ("policy_config.dialect_version=qwen3", "needs policy_config.dialect"),
        ("openai_config.base_url=api.example.com", "http://"),
    ];
    for (argument, wanted) in cases {
        let got = load_error(&[argument]);
        assert!(got.contains(wanted) && got.contains(&format!("argument {argument:?}")), "{argument}: {got}");
    }
    let dialects = [
        (
            ["policy_config.dialect=qwen", "policy_config.dialect_version=qwen9"],
            "policy_config.dialect_version (argument \"policy_config.dialect_version=qwen9\"): \"qwen9\" is not a version of qwen; accepted: qwen2.5, qwen3, qwen3.5",
        ),
        (
            ["policy_config.dialect=anthropic", "policy_config.dialect_version=browser_toolset_20260801"],
            "only available through the farm's /computer",
        ),
        (
            ["policy_config.dialect=openai", "context_config.interaction_mode=set_of_marks"],
            "needs context_config.interaction_mode=coordinates",
        ),
    ];
    for (arguments, wanted) in dialects {
        let got = load_error(&arguments);
        assert!(got.contains(wanted), "{arguments:?}: {got}");
    }
    let both = load_error(&["env_config.server_size=0", "policy_config.top_p=3"]);
    assert!(both.contains("2 problems"), "{both}");
    let three = [
        "env_config.multinode_rank=1",
        "env_config.multinode_total_workers=2",
        "env_config.all_rank_weights='1,1,1'",
    ];
    assert!(load_error(&three).contains("3 weights for 2 ranks"), "{}", load_error(&three));
    for (argument, word) in
        [("merge_wait_minutes=-1", "0 or more"), ("work_queue_stale_after=0", "more than 0")]
    {
        assert!(load_error(&[&format!("env_config.{argument}")]).contains(word), "{argument}");
    }
    let secret = load_error(&["env_config.work_queue=http://:sesame@h:1"]);
    assert!(secret.contains("env_config.work_queue") && !secret.contains("sesame"), "{secret}");
    let ratio = load_error(&[
        "env_config.train_tasks_sampler=ratio",
        "env_config.difficulty_ratio.easy.weight=0",
        "env_config.difficulty_ratio.medium.weight=0",
        "env_config.difficulty_ratio.hard.weight=0",
    ]);
    assert!(ratio.contains("weights above 0"), "{ratio}");
}

#[test]
fn secret_instead_of_variable_name_is_not_printed() {
    let got = load_error(&["openai_config.openai_api_key_env_var=sk-abc.123"]);
    assert!(got.contains("never the secret itself") && !got.contains("sk-abc"), "{got}");
}

#[test]
fn hyperparameters_are_appended_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let got = load_named(
        "rollout",
        None,
        &[
            "save_path=/data/${oc.env:NAME}",
            "policy_config.base_model=${oc.env:FARM_TOKEN}",
            "env_config.vllm_server_url='http://me:pass@h:1'",
            "data_path='a: b # c'",
        ],
    )
    .unwrap();
    let now: jiff::Timestamp = "2025-03-04T05:06:07Z".parse().unwrap();
    for seed in [1, 2] {
        append_hyperparameters(&got, folder.path(), now, &[("used_seed", json!(seed))]).unwrap();
    }
    let text = std::fs::read_to_string(folder.path().join("hyperparameters.yaml")).unwrap();
    assert!(!text.contains("hush-hush") && !text.contains("pass@"), "{text}");
    let documents: Vec<&str> = text.split("---\n").filter(|part| !part.is_empty()).collect();
    assert_eq!(documents.len(), 2);
    for (document, seed) in documents.iter().zip(["1", "2"]) {
        let head = format!("run_timestamp: \"2025-03-04T05:06:07Z\"\nused_seed: {seed}\nconfig:\n");
        assert!(document.starts_with(&head), "{document}");
        assert!(document.contains("\n  save_path: /data/exp9\n"));
        assert!(document.contains("base_model: \"${oc.env:FARM_TOKEN}\"\n"));
        assert!(document.contains("vllm_server_url: \"http://***@h:1\"\n"));
    }
    assert!(!got.show().contains("pass@"));
    assert_eq!(got.to_json()["policy_config"]["base_model"], "${oc.env:FARM_TOKEN}");
}

#[test]
fn hyperparameters_file_reads_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "data_path=\"yes: 'no' # 12 \\t é | ~ \"";
    let got = load_named("rollout_train", None, &["save_path='010'", odd, "policy_config.base_model='1e3'"])
        .unwrap();
    append_hyperparameters(&got, folder.path(), jiff::Timestamp::UNIX_EPOCH, &[]).unwrap();
    let text = std::fs::read_to_string(folder.path().join("hyperparameters.yaml")).unwrap();
    let config = text.split_once("config:\n").unwrap().1;
    let config: String =
        config.lines().map(|line| line.strip_prefix("  ").unwrap().to_owned() + "\n").collect();
    std::fs::write(folder.path().join("again.yaml"), config).unwrap();
    let again = load_named("again", Some(folder.path()), &[]).unwrap();
    assert_eq!(again.config, got.config);
}

#[test]
fn config_show_prints_the_origin_of_each_value() {
    let got =
        load_named("rollout_test", None, &["save_path=/data/exp1", "env_config.server_size=4"]).unwrap();
    insta::assert_snapshot!(got.show());
}

#[test]
fn derived_values_follow_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let save = format!("save_path={}", folder.path().display());
    let mut got = load_train(&[&save, "data_path=/d", "policy_config.base_model=org/model"]);
    assert_eq!(got.tasks_path().unwrap(), Path::new("/d/train.jsonl"));
    assert_eq!(got.policy_model().as_deref(), Some("org/model"));
    std::fs::write(folder.path().join("model.pt"), "").unwrap();
    assert_eq!(got.policy_model(), Some(folder.path().join("model.pt").display().to_string()));
    assert_eq!(got.farm_url(), None);
    for (host, port, url) in [
        ("10.0.0.7", 7000, "http://10.0.0.7:7000"),
        ("farm.example", 443, "https://farm.example"),
        ("::1", 7000, "http://[::1]:7000"),
    ] {
        got.env_config.host_ip = Some(host.into());
        got.env_config.master_port = port;
        assert_eq!(got.farm_url().as_deref(), Some(url));
    }
    let judge = load_train(&["openai_config.evaluation.model=big"]);
    let endpoint = |request: ChatRequest| JudgeEndpoint {
        api_key_env_var: "OPENAI_API_KEY".into(),
        base_url: "https://api.openai.com/v1".into(),
        request,
    };
    let model = |model: &str| ChatRequest { model: model.into(), ..ChatRequest::default() };
    assert_eq!(judge.judge_endpoint(Question::Evaluation), endpoint(model("big")));
    assert_eq!(judge.judge_endpoint(Question::BlockingDetection), endpoint(model("gpt-4o-mini")));
    let sampling = load_train(&[
        "openai_config.base_url=null",
        "openai_config.temperature=0",
        "openai_config.evaluation.temperature=0.5",
        "openai_config.image_detail=low",
        "openai_config.max_tokens=500",
    ]);
    let request = |temperature: f64| ChatRequest {
        temperature: Some(temperature),
        max_tokens: Some(500),
        image_detail: Some("low"),
        ..model("gpt-4o-mini")
    };
    assert_eq!(sampling.judge_endpoint(Question::Evaluation), endpoint(request(0.5)));
    assert_eq!(sampling.judge_endpoint(Question::KeypointDetection), endpoint(request(0.0)));
}

#[test]
fn misspelled_configuration_gets_a_suggestion() {
    let got = load_named("rollout_tran", None, &[]).unwrap_err().to_string();
    assert!(got.contains("did you mean \"rollout_train\"?"), "{got}");
}

#[test]
fn policy_request_uses_the_sampling_settings() {
    let request = Config::default().policy_config.request("org/model", Vec::new());
    let expected = ChatRequest {
        model: "org/model".into(),
        temperature: Some(1.0),
        top_p: Some(0.99),
        top_k: Some(2),
        min_p: Some(0.0),
        max_tokens: Some(3072),
        logprobs: true,
        return_token_ids: true,
        ..ChatRequest::default()
    };
    assert_eq!(request, expected);
}

#[test]
fn contradicting_network_keys_are_refused() {
    for (overrides, expected) in [
        (&["env_config.network=replay"][..], "env_config.network"),
        (&["env_config.archive=shop"], "env_config.archive"),
        (&["env_config.on_miss=404"], "env_config.on_miss"),
        (
            &["env_config.network=replay", "env_config.archive=shop", "env_config.on_miss=ignore"],
            "must be fail, 404 or live",
        ),
        (&["env_config.network=offline"], "env_config.network"),
        (&["env_config.record_network=''"], "env_config.record_network"),
        (
            &["env_config.network=replay", "env_config.archive=a/shop", "env_config.record_network=a/new"],
            "unless env_config.on_miss=live",
        ),
        (
            &[
                "env_config.network=replay",
                "env_config.archive=a/shop",
                "env_config.record_network=b/new",
                "env_config.on_miss=live",
            ],
            "in the same directory as env_config.archive",
        ),
        (&["env_config.archive=/", "env_config.network=replay"], "must be a directory below /"),
        (&["env_config.session.network={replay: shop}"], "the farm inside this process has no directory"),
        (&["env_config.session.network={replay: shop, speed: 2}"], "unknown field `speed`"),
    ] {
        let error = load_error(overrides);
        assert!(error.contains(expected), "{overrides:?}: {error}");
    }
}

#[test]
fn group_from_step_needs_replayed_groups() {
    let accepted = [
        "env_config.group_from_step=3",
        "env_config.group_size=4",
        "env_config.network=replay",
        "env_config.archive=shop",
        "env_config.host_ip=farm.test",
    ];
    assert_eq!(load_train(&accepted).env_config.group_from_step, Some(3));
    for (change, expected) in [
        ("env_config.network=live", "needs env_config.network=replay"),
        ("env_config.group_size=1", "env_config.group_size=2 or more"),
        ("env_config.split=test", "needs env_config.split=train"),
        ("env_config.group_from_step=0", "must be at least 1"),
        ("env_config.group_from_step=30", "must be below 30"),
        ("env_config.work_queue=redis://127.0.0.1", "cannot be combined with env_config.work_queue"),
    ] {
        let error = load_error(&[&accepted[..], &[change]].concat());
        assert!(
            error.contains("env_config.group_from_step") && error.contains(expected),
            "{change}: {error}"
        );
    }
}

#[test]
fn archives_of_an_own_farm_are_absolute() {
    let replay =
        ["env_config.network=replay", "env_config.archive=a/../archives/./shop", "env_config.on_miss=404"];
    let config = load_train(&replay);
    let root = std::env::current_dir().unwrap().join("archives");
    assert_eq!(config.archives_root(), Some(root.clone()));
    let options = config.network_options();
    assert_eq!(options.replay, Some(root.join("shop").display().to_string()));
    assert_eq!(options.on_miss, Some(OnMiss::NotFound));
    let missing = config.check_archive().unwrap_err();
    assert!(
        missing.starts_with("env_config.archive: ") && missing.contains("is not a directory"),
        "{missing}"
    );
    let external = load_train(&[&replay[..], &["env_config.host_ip=farm.test"]].concat());
    assert_eq!(external.network_options().replay.as_deref(), Some("a/../archives/./shop"));
    assert_eq!((external.archives_root(), external.check_archive()), (None, Ok(())));
    let recording = load_train(&["env_config.record_network=archives/shop"]);
    assert_eq!((recording.archives_root(), recording.network_options().on_miss), (Some(root), None));
}
